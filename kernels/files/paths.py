"""Classification of paths: regular file, open descriptor, pipe or device; detection of paths to the same file."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path

from simtbed import SimtbedError

STANDARD = Path("-")
"""Standard input as an input, standard output as an output."""
STDIN, STDOUT = 0, 1
MAX_LINKS = 40
DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


class DiskError(SimtbedError):
    """A full or broken disk, or a limit of this machine: neither the command nor its input is wrong."""


def failure(what: str, error: OSError) -> SimtbedError:
    """Return the error as DiskError if its cause is the machine, else as SimtbedError."""
    return (DiskError if error.errno in DISK_ERRORS else SimtbedError)(f"{what}: {error.strerror or error}")


def descriptor_of(path: Path) -> int | None:
    """Return N if the path refers to /dev/fd/N of this process, -1 for a descriptor of another process, None for other paths."""
    target = str(path)
    for _ in range(MAX_LINKS):
        folder, name = os.path.split(target)
        match = re.fullmatch(r"/dev/fd|/proc/(\d+)(?:/task/\d+)?/fd", os.path.realpath(folder or "."))
        if match and name.isascii() and name.isdigit():
            return int(name) if match[1] in (None, str(os.getpid())) else -1
        if not os.path.islink(target):
            return None
        target = os.path.join(folder, os.readlink(target))
    return None


def is_file_name(path: Path) -> bool:
    """Return whether the path names a regular file or a file that can be created: not `-`, a folder or a device."""
    info = status(path, STDOUT)
    named = path != STANDARD and path.name != "" and descriptor_of(path) is None
    return named and (info is None or stat.S_ISREG(info.st_mode))


def status(path: Path, standard: int) -> os.stat_result | None:
    """Return the status of a path, of the descriptor `standard` for `-`; None if there is none or it is inaccessible."""
    try:
        return os.fstat(standard) if path == STANDARD else os.stat(path)
    except (OSError, ValueError):
        return None


def identities(path: Path, standard: int) -> set[object]:
    """Return keys that equal paths share: the resolved name, or the device and inode of a file or a block device."""
    result: set[object] = set() if path == STANDARD else {os.path.realpath(path)}
    info = status(path, standard)
    if info is not None and (stat.S_ISREG(info.st_mode) or stat.S_ISBLK(info.st_mode)):
        result = {(info.st_dev, info.st_ino)}
    elif info is not None:  # a pipe or a terminal may be read and written
        result = set()
    return result


def flush_standard_output() -> None:
    """Flush standard output. Raise SimtbedError if that fails, BrokenPipeError if the reader closed it."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise failure("standard output: cannot be written", error) from None


def discard_standard_output() -> None:
    """Redirect standard output to the null device: its reader closed it, or it cannot be written."""
    with suppress(OSError):  # a replacement of sys.stdout without a descriptor
        number = os.open(os.devnull, os.O_WRONLY)
        os.dup2(number, sys.stdout.fileno())
        os.close(number)
