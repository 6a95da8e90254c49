"""What the engines compiled, on disk by name: where only this user can write, whole or not at all, checked when read."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeVar

Content = TypeVar("Content")

_HEAD = b"simtbed entry 1\n"
"""What every entry begins with: the form of entries. Its digest follows, then the content."""
_DIGEST = 32
_MOST_LINKS = 40
_LARGEST = 1 << 28
"""Bytes of a file; no entry comes near it."""
_PART = ".part"
_ABANDONED = 3600
"""Seconds after which what was not written to its end belongs to a process that is gone."""
_FORGOTTEN = 90 * 86400
"""Seconds after which an entry is made anew, so that those of earlier editions go."""
_OURS = re.compile(r"[0-9a-f]{64}\.[a-z]+|(key|[0-9a-f]{64}\.[a-z]+)\.[0-9a-f]{16}\.part")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
_OTHERS = ("kernels", "oracles", "reports", "testing", "__pycache__")
"""Folders of an installed simtbed that do not decide what is compiled."""
_BEGAN = time.time_ns()
"""When this process imported its first sources, about."""


# ------------------------------------------------------------------ where
@dataclass(frozen=True)
class Place:
    """Where entries are kept. folder: None where no folder will do; then each process compiles what it needs.
    refused: a sentence for each folder that was not taken. key: the secret of the digests of this folder."""

    folder: Path | None
    refused: tuple[str, ...] = ()
    key: bytes = field(default=b"", repr=False)


def place() -> Place:
    """SIMTBED_CACHE; else the user's cache folder; else a folder of the user's among the temporary files.

    A folder is taken where nobody but this user and root can write or move it. One that was asked for by name and is
    refused is told on stderr, once.
    """
    return _place(
        *(os.environ.get(name, "") for name in ("SIMTBED_CACHE", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "TMPDIR"))
    )


@cache
def _place(asked: str, *usual: str) -> Place:
    refused: list[str] = []
    for folder in [asked] if asked else _usual(*usual):
        try:
            real = private(folder)
            return Place(real, tuple(refused), _key(real))
        except OSError as error:
            refused.append(f"{folder!r} is not used: {error.strerror}: {error.filename or folder!r}")
    if asked and sys.stderr is not None:
        with suppress(OSError):
            print(f"simtbed: warning: compiled code is not kept: {refused[0]} (SIMTBED_CACHE)", file=sys.stderr)
    return Place(None, tuple(refused))


def _usual(xdg: str, home: str, local: str, temporary: str) -> Iterator[str]:
    """The user's cache folder by the rules of the system, then a folder among the temporary files."""
    home = home or os.path.expanduser("~")
    if sys.platform == "darwin":
        known = os.path.join(home, "Library", "Caches", "simtbed")
    elif sys.platform == "win32":
        known = os.path.join(local or home, "simtbed", "cache")
    else:
        known = os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".cache"), "simtbed")
    if os.path.isabs(known):
        yield known
    if sys.platform != "win32":
        yield os.path.join(temporary or "/tmp", f"simtbed-{_user()}")


def private(folder: str) -> Path:
    """A folder's real path, made where it is missing. Raises OSError where others can write it, or put another one in
    its place: whatever it is in, and every link on the way, is this user's or root's, and can be written by others only
    where what is in it stays its owner's.
    """
    if sys.platform == "win32":  # profiles are private there, and modes say nothing
        os.makedirs(folder, exist_ok=True)
        return Path(folder).resolve()
    waiting = [*reversed(Path(folder).absolute().parts)]  # the current folder may be gone
    at, links = waiting.pop(), 0
    while waiting:
        level = os.path.normpath(os.path.join(at, waiting.pop()))  # no link is left in `at`: `..` is above it
        status = _made(level)
        if status.st_uid not in (_user(), 0):
            raise PermissionError(errno.EPERM, "Another user owns it", level)
        if stat.S_ISLNK(status.st_mode):
            if (links := links + 1) > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), level)
            waiting += reversed(Path(os.readlink(level)).parts)
        elif not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), level)
        elif status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
            raise _open_to_others(level, status)
        else:
            at = level
    status = os.lstat(at)
    if status.st_uid != _user():
        raise PermissionError(errno.EPERM, "Another user owns it", at)
    if status.st_mode & 0o022:
        raise _open_to_others(at, status)
    if not os.access(at, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, "It cannot be written", at)
    return Path(at)


def _open_to_others(level: str, status: os.stat_result) -> OSError:
    return PermissionError(errno.EPERM, f"Other users can write it (mode {status.st_mode & 0o7777:o})", level)


def _made(level: str) -> os.stat_result:
    """Of a folder, which is made for this user alone where it is missing, or of whatever has its name."""
    try:
        return os.lstat(level)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(level, 0o700)
        return os.lstat(level)


def _user() -> int:
    return 0 if sys.platform == "win32" else os.geteuid()


def _key(folder: Path) -> bytes:
    """What the digests of a folder's entries are keyed with, made where it is missing or damaged."""
    path = folder / "key"
    if not os.path.lexists(path):
        with suppress(OSError):  # of processes that begin at once the first one makes it
            _write(path, os.urandom(_DIGEST), os.link)
    found = _read(path)
    if found is None or len(found) != _DIGEST:
        _write(path, found := os.urandom(_DIGEST), os.replace)
    return found


@cache
def edition() -> str:
    """Which edition of the emulator this is: a digest of the Python and of the source files that decide what it compiles.

    Where one of them was changed since the process began, nobody can say what the process runs: that is an edition of its own.
    """
    root = os.path.dirname(__file__)
    found = hashlib.blake2b(sys.version.encode(), digest_size=_DIGEST)
    for path in sorted(entry.path for entry in _sources(root)):
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        found.update(f"{path[len(root) :]}\0{len(content)}\0".encode() + content)
    if _edited(_second()):
        found.update(os.urandom(_DIGEST))
    return found.hexdigest()


def _second() -> int:
    return int(time.monotonic())


def source_digest(path: str) -> str:
    """A digest of a source file as it is now. Raises OSError."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.blake2b(file.read(), digest_size=_DIGEST).hexdigest()


@lru_cache(1)
def _edited(second: int) -> bool:
    """Whether a source file was changed since the process began: what it imports from now on is not what `edition` read. Looked
    at once a second, of which there are `second`."""
    for entry in _sources(os.path.dirname(__file__)):
        status = entry.stat()
        # Anybody can give a file an old time, and clocks that differ one to come; when it was changed, the system notes itself.
        changed = status.st_mtime_ns if sys.platform == "win32" else status.st_ctime_ns
        if changed > _BEGAN:
            return True
    return False


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".pyc")):
                yield entry
            elif entry.name not in _OTHERS and entry.is_dir():
                yield from _sources(entry.path)


# ------------------------------------------------------------------ what
def load(name: str, read: Callable[[bytes], Content]) -> Content | None:
    """What `read` makes of what is kept under a name; None where nothing is, or nothing whole that `read` understands."""
    here = place()
    data = here.folder and _read(here.folder / name)
    if not data or data[: len(_HEAD)] != _HEAD:
        return None
    digest, content = data[len(_HEAD) : len(_HEAD) + _DIGEST], data[len(_HEAD) + _DIGEST :]
    if digest != _digest(here.key, name, content):
        return None
    try:
        return read(content)
    except Exception:  # whatever is wrong with it, it is made anew
        return None


def save(name: str, content: bytes) -> None:
    """Keep something. That it cannot be kept is no error; once the disk is full nothing more is kept in this run, nor once a
    source file of the emulator was changed."""
    here = place()
    if here.folder is None or here in _GIVEN_UP:
        return
    if _edited(_second()):
        _GIVEN_UP.add(here)
        return
    _sweep(here.folder)
    try:
        _write(here.folder / name, _HEAD + _digest(here.key, name, content) + content, os.replace)
    except OSError as error:
        if error.errno in _FULL:
            _GIVEN_UP.add(here)


_GIVEN_UP: set[Place] = set()


def _digest(key: bytes, name: str, content: bytes) -> bytes:
    found = hashlib.blake2b(f"{name}\0".encode(), key=key, digest_size=_DIGEST)
    found.update(content)
    return found.digest()


def _read(path: Path) -> bytes | None:
    """A regular file of this user's that others cannot write; None where that is not there."""
    try:
        with open(path, "rb", opener=_opener) as file:
            status = os.fstat(file.fileno())
            ours = sys.platform == "win32" or (status.st_uid == _user() and not status.st_mode & 0o022)
            if not (ours and stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST):
                return None
            return file.read()
    except OSError:
        return None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o600)


def _write(path: Path, content: bytes, name: Callable[[Path, Path], None]) -> None:
    """Write a file beside and give it its name when it is whole."""
    part = path.with_name(f"{path.name}.{os.urandom(8).hex()}{_PART}")
    with open(part, "xb", opener=_opener) as file:
        try:
            file.write(content)
            file.flush()
            name(part, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)


@cache
def _sweep(folder: Path) -> None:
    """Remove what processes that are gone left, and what was kept long ago."""
    now = time.time()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            limit = _ABANDONED if entry.name.endswith(_PART) else _FORGOTTEN
            if _OURS.fullmatch(entry.name) and now - entry.stat(follow_symlinks=False).st_mtime > limit:
                os.unlink(entry)
