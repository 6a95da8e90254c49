"""What a path leads to: a file that can be replaced, an open descriptor, a pipe or a device; and which paths are one."""

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
"""Standard input among inputs, standard output among outputs."""
STDIN, STDOUT = 0, 1
MOST_LINKS = 40
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE}


class DiskError(SimtbedError):
    """A disk that is full or broken, or a limit of this machine: neither the command nor its input is at fault."""


def failure(what: str, error: OSError) -> SimtbedError:
    """The error that says so, as DiskError where the machine is at fault."""
    return (DiskError if error.errno in DISK else SimtbedError)(f"{what}: {error.strerror or error}")


def descriptor_of(path: Path) -> int | None:
    """N where the path leads to /dev/fd/N or the like of this process; -1 where to another one's."""
    at = str(path)
    for _ in range(MOST_LINKS):
        folder, name = os.path.split(at)
        found = re.fullmatch(r"/dev/fd|/proc/(\d+)(?:/task/\d+)?/fd", os.path.realpath(folder or "."))
        if found and name.isascii() and name.isdigit():
            return int(name) if found[1] in (None, str(os.getpid())) else -1
        if not os.path.islink(at):
            return None
        at = os.path.join(folder, os.readlink(at))
    return None


def is_file_name(path: Path) -> bool:
    """Whether a regular file is there or may come to be: neither `-`, nor a folder, nor a device."""
    there = status(path, STDOUT)
    named = path != STANDARD and path.name != "" and descriptor_of(path) is None
    return named and (there is None or stat.S_ISREG(there.st_mode))


def status(path: Path, standard: int) -> os.stat_result | None:
    """What is there now; of `-` what the descriptor `standard` leads to. None where nothing is, or it cannot be seen."""
    try:
        return os.fstat(standard) if path == STANDARD else os.stat(path)
    except (OSError, ValueError):
        return None


def identities(path: Path, standard: int) -> set[object]:
    """What tells that two paths are one: the resolved name, and the device and inode of a file or a disk."""
    found: set[object] = set() if path == STANDARD else {os.path.realpath(path)}
    there = status(path, standard)
    if there is not None and (stat.S_ISREG(there.st_mode) or stat.S_ISBLK(there.st_mode)):
        found = {(there.st_dev, there.st_ino)}
    elif there is not None:  # a pipe or a terminal may be read and written
        found = set()
    return found


def flush_standard_output() -> None:
    """What was printed is out. Raises SimtbedError, or BrokenPipeError where nobody reads on."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise failure("standard output: cannot be written", error) from None


def discard_standard_output() -> None:
    """What is still printed goes nowhere: whoever read it has seen enough, or it cannot be written."""
    with suppress(OSError):  # what stands for it has no descriptor
        number = os.open(os.devnull, os.O_WRONLY)
        os.dup2(number, sys.stdout.fileno())
        os.close(number)
