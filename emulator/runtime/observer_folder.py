"""Private folder for the observation of a program: the observer of its processes, and the file of their launches.

The observing process makes the folder for its user alone. SIMTBED_OBSERVER names it. Each process of the program checks the owner
and the mode of the folder and of each file before it opens them, follows no link, and reads and writes data only.
A process may outlive the folder. It then has no observer.
"""

import errno
import json
import os
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import SimtbedError
from .plain_data import Decoder, Encoder

_OPTIONS, _LAUNCHES = "observer.json", "launches.json"
_MAX_OPTIONS = 1 << 24
"""Maximum bytes of the options of an observer."""
_MAX_LINE = 1 << 31
"""Maximum bytes of a record: a planned launch contains its arrays."""
_START = b'{"name":'
"""The first bytes of a record."""


class ObserverFolder:
    """The folder on the side of the observing process. Raises OSError if its files cannot be created."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._decoder = Decoder()
        self._launches = open(path / _LAUNCHES, "x+b", opener=_private)  # noqa: SIM115

    def close(self) -> None:
        """Close the file of launches."""
        self._launches.close()

    def write_observer(self, name: str, options: Mapping[str, Any]) -> None:
        """Set the observer of the processes that start from now on."""
        temporary = self.path / f"{_OPTIONS}.new"
        with open(temporary, "xb", opener=_private) as file:
            file.write(json.dumps({"observer": name, "options": Encoder().lines(dict(options))}).encode())
        os.replace(temporary, self.path / _OPTIONS)

    def values(self, kind: Any) -> Iterator[Any]:
        """Yield the records that are new since the last call, except an incomplete last one. kind: their type.

        Raises SimtbedError, one line, for other content.
        """
        file = self._launches
        try:
            while line := file.readline(_MAX_LINE):
                if not line.endswith(b"\n"):
                    if len(line) == _MAX_LINE or not _START.startswith(line[: len(_START)]):
                        raise ValueError("the last line is not a record of a launch")
                    file.seek(-len(line), os.SEEK_CUR)
                    return
                yield from self._decoder.values([line], kind)
        except ValueError as error:
            raise SimtbedError(f"{file.name}: {error}: only simtbed writes this file") from None


class LaunchWriter:
    """Appends records to the file of launches. A record is one write: it is complete even if its process is killed."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, _LAUNCHES)
        self._file = _open(folder, _LAUNCHES, os.O_WRONLY | os.O_APPEND)
        self._start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._start)

    def _start(self) -> None:
        """Start without shared objects: at a fork another thread may have the lock, and names without lines."""
        self._lock, self._encoder = threading.Lock(), Encoder()

    def add(self, value: Any) -> None:
        """Append a record. Raises SimtbedError, one line, if it cannot be written."""
        with self._lock:
            content = memoryview("".join(f"{line}\n" for line in self._encoder.lines(value)).encode())
            try:
                while content:
                    content = content[os.write(self._file, content) :]
            except OSError as error:
                raise SimtbedError(f"the launch cannot be recorded: {self._path}: {error.strerror}") from None


def read_observer(folder: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of the observer in a folder. Raises OSError or ValueError for another folder or content."""
    with open(_open(folder, _OPTIONS, os.O_RDONLY), "rb") as file:
        content = file.read(_MAX_OPTIONS + 1)
    try:
        if len(content) > _MAX_OPTIONS:
            raise ValueError("too large")
        loaded = json.loads(content)
        *_, options = Decoder().values((line.encode() for line in loaded["options"]), dict[str, Any])
        return str(loaded["observer"]), options
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{_OPTIONS} is not valid: {error}") from None


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _open(folder: str, name: str, flags: int) -> int:
    """Open a file of a folder. Raises OSError unless both are of this user alone."""
    if sys.platform == "win32":  # modes have no meaning
        return os.open(os.path.join(folder, name), flags | os.O_BINARY)
    safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | safe)
    try:
        _require_own(os.fstat(directory))
        file = os.open(name, flags | safe, dir_fd=directory)
    finally:
        os.close(directory)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, f"{name} is not a regular file")
        _require_own(status)
    except OSError:
        os.close(file)
        raise
    return file


def _require_own(status: os.stat_result) -> None:
    """Raise PermissionError unless a file belongs to this user, and others have no access."""
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "another user owns it")
    if status.st_mode & 0o077:
        raise PermissionError(errno.EPERM, f"other users have access (mode {status.st_mode & 0o777:o})")
