"""Disk cache of compiled code by name: private to the user, written atomically, verified on reading."""

import errno
import hashlib
import os
import pickle
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

from .escaping import printable

Content = TypeVar("Content")

_HEAD = b"simtbed entry 1\n"
"""Header of every entry: the format version. A digest and the content follow."""
_DIGEST = 32
_MOST_LINKS = 40
_MAX_BYTES = 1 << 28
"""Maximum bytes of a file, above the size of any entry."""
_PARTIAL = ".part"
_PARTIAL_LIFETIME = 3600
"""Seconds after which an incomplete file belongs to an ended process."""
_ENTRY_LIFETIME = 90 * 86400
"""Seconds after which an entry is rebuilt, so that entries of earlier editions expire."""
_ENTRY_NAME = re.compile(r"[0-9a-f]{64}\.[a-z]+|(key|[0-9a-f]{64}\.[a-z]+)\.[0-9a-f]{16}\.part")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
_IRRELEVANT_FOLDERS = ("kernels", "oracles", "reports", "testing", "__pycache__")
"""Folders of an installed simtbed without influence on compiled code."""
_PROCESS_START = time.time_ns()
"""Approximate time of this process's first source import."""


# ------------------------------------------------------------------ where
@dataclass(frozen=True)
class CacheFolder:
    """The cache folder. folder: None without a usable folder; then each process compiles its own code. refused: a
    sentence for each rejected folder. key: the secret of this folder's digests."""

    folder: Path | None
    refused: tuple[str, ...] = ()
    key: bytes = field(default=b"", repr=False)


def cache_folder() -> CacheFolder:
    """Return the cache folder: SIMTBED_CACHE, else the user's cache folder, else a folder of the user among the temporary files.

    A folder is accepted if only this user and root can write or move it. A rejected SIMTBED_CACHE is reported once on stderr.
    """
    return _find_folder(
        *(os.environ.get(name, "") for name in ("SIMTBED_CACHE", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA", "TMPDIR"))
    )


@cache
def _find_folder(requested: str, *usual: str) -> CacheFolder:
    refused: list[str] = []
    for folder in [requested] if requested else _usual(*usual):
        try:
            real = private(folder)
            return CacheFolder(real, tuple(refused), _key(real))
        except OSError as error:
            refused.append(f"{folder!r} is not used: {error.strerror}: {error.filename or folder!r}")
    if requested and sys.stderr is not None:
        with suppress(OSError, ValueError):
            warning = f"simtbed: warning: compiled code is not kept: {refused[0]} (SIMTBED_CACHE)"
            print(printable(warning), file=sys.stderr)
    return CacheFolder(None, tuple(refused))


def _usual(xdg: str, home: str, local: str, temporary: str) -> Iterator[str]:
    """Yield the user's cache folder by the rules of the system, then a folder among the temporary files."""
    home = home or os.path.expanduser("~")
    if sys.platform == "darwin":
        folder = os.path.join(home, "Library", "Caches", "simtbed")
    elif sys.platform == "win32":
        folder = os.path.join(local or home, "simtbed", "cache")
    else:
        folder = os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".cache"), "simtbed")
    if os.path.isabs(folder):
        yield folder
    if sys.platform != "win32":
        yield os.path.join(temporary or "/tmp", f"simtbed-{_user()}")


def private(folder: str) -> Path:
    """Return a folder's real path; a missing folder is created.

    Raises OSError if other users can write it or replace it: each parent and each link must belong to this user or
    root, and may be writable by others only if it is sticky.
    """
    if sys.platform == "win32":  # profiles are private there, and modes have no meaning
        os.makedirs(folder, exist_ok=True)
        return Path(folder).resolve()
    waiting = [*reversed(Path(folder).absolute().parts)]  # the current folder may be deleted
    at, links = waiting.pop(), 0
    while waiting:
        level = os.path.normpath(os.path.join(at, waiting.pop()))  # `at` contains no link: its `..` is its parent
        status = _create_folder(level)
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


def _create_folder(level: str) -> os.stat_result:
    """Return the status of a folder; a missing one is created for this user alone."""
    try:
        return os.lstat(level)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process created it first
            os.mkdir(level, 0o700)
        return os.lstat(level)


def _user() -> int:
    return 0 if sys.platform == "win32" else os.geteuid()


def _key(folder: Path) -> bytes:
    """Return the secret key of a folder's digests; a missing or damaged one is recreated."""
    path = folder / "key"
    if not os.path.lexists(path):
        with suppress(OSError):  # the first of concurrent processes creates it
            _write(path, os.urandom(_DIGEST), os.link)
    key = _read(path)
    if key is None or len(key) != _DIGEST:
        _write(path, key := os.urandom(_DIGEST), os.replace)
    return key


@cache
def edition() -> str:
    """Return the edition of the emulator: a digest of Python and of the source files with influence on compiled code.

    A source file changed since the start of the process makes the edition unique: the running code is unknown.
    """
    root = os.path.dirname(__file__)
    digest = hashlib.blake2b(sys.version.encode(), digest_size=_DIGEST)
    for path in sorted(entry.path for entry in _sources(root)):
        with open(path, "rb", buffering=0) as file:
            content = file.read()
        digest.update(f"{path[len(root) :]}\0{len(content)}\0".encode() + content)
    if _edited(_second()):
        digest.update(os.urandom(_DIGEST))
    return digest.hexdigest()


def edition_covers(module: str) -> bool:
    """Return whether the source of a module, by its name, belongs to the edition."""
    package, _, rest = module.partition(".")
    return package == __package__ and rest.partition(".")[0] not in _IRRELEVANT_FOLDERS


def _second() -> int:
    return int(time.monotonic())


def source_digest(path: str) -> str:
    """Return a digest of a source file's current content. Raises OSError."""
    with open(path, "rb", buffering=0) as file:
        return hashlib.blake2b(file.read(), digest_size=_DIGEST).hexdigest()


@lru_cache(1)
def _edited(second: int) -> bool:
    """Return whether a source file was changed since the start of the process: later imports differ from `edition`.
    Cached for one second, numbered by `second`."""
    for entry in _sources(os.path.dirname(__file__)):
        status = entry.stat()
        # Any user can set a file's modification time, and clocks may differ; the system records the change time itself.
        changed = status.st_mtime_ns if sys.platform == "win32" else status.st_ctime_ns
        if changed > _PROCESS_START:
            return True
    return False


def _sources(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".pyc", "special_functions.json")):
                yield entry
            elif entry.name not in _IRRELEVANT_FOLDERS and entry.is_dir():
                yield from _sources(entry.path)


# ------------------------------------------------------------------ what
def load(name: str, read: Callable[[bytes], Content]) -> Content | None:
    """Return `read` of an entry's content; None for a missing, damaged or unreadable entry."""
    cache = cache_folder()
    data = cache.folder and _read(cache.folder / name)
    if not data or data[: len(_HEAD)] != _HEAD:
        return None
    digest, content = data[len(_HEAD) : len(_HEAD) + _DIGEST], data[len(_HEAD) + _DIGEST :]
    if digest != _digest(cache.key, name, content):
        return None
    try:
        return read(content)
    except Exception:  # any error: the entry is rebuilt
        return None


def cached_object(key: str, make: Callable[[], Content]) -> Content:
    """Return an object that depends on a key alone, from the cache on disk if it is there. It is pickled."""
    name = f"{hashlib.sha256(key.encode()).hexdigest()}.object"
    result: Content | None = load(name, pickle.loads)
    if result is None:
        result = make()
        save(name, pickle.dumps(result))
    return result


def save(name: str, content: bytes) -> None:
    """Store an entry. Failures are ignored; after a full disk or a changed source file, this run stores nothing more."""
    cache = cache_folder()
    if cache.folder is None or cache in _DISABLED:
        return
    if _edited(_second()):
        _DISABLED.add(cache)
        return
    _sweep(cache.folder)
    try:
        _write(cache.folder / name, _HEAD + _digest(cache.key, name, content) + content, os.replace)
    except OSError as error:
        if error.errno in _FULL:
            _DISABLED.add(cache)


_DISABLED: set[CacheFolder] = set()


def _digest(key: bytes, name: str, content: bytes) -> bytes:
    digest = hashlib.blake2b(f"{name}\0".encode(), key=key, digest_size=_DIGEST)
    digest.update(content)
    return digest.digest()


def _read(path: Path) -> bytes | None:
    """Return a regular file of this user that others cannot write; None if missing."""
    try:
        with open(path, "rb", opener=_opener) as file:
            status = os.fstat(file.fileno())
            ours = sys.platform == "win32" or (status.st_uid == _user() and not status.st_mode & 0o022)
            if not (ours and stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_BYTES):
                return None
            return file.read()
    except OSError:
        return None


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), 0o600)


def _write(path: Path, content: bytes, name: Callable[[Path, Path], None]) -> None:
    """Write a temporary file in the same folder and rename it when it is complete."""
    partial = path.with_name(f"{path.name}.{os.urandom(8).hex()}{_PARTIAL}")
    with open(partial, "xb", opener=_opener) as file:
        try:
            file.write(content)
            file.flush()
            name(partial, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(partial)


@cache
def _sweep(folder: Path) -> None:
    """Remove files of ended processes and expired entries."""
    now = time.time()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            limit = _PARTIAL_LIFETIME if entry.name.endswith(_PARTIAL) else _ENTRY_LIFETIME
            if _ENTRY_NAME.fullmatch(entry.name) and now - entry.stat(follow_symlinks=False).st_mtime > limit:
                os.unlink(entry)
