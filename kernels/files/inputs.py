"""Opens what a command reads: a file or standard input, packed or plain, a line or a block at a time."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from simtbed.runtime.memory import UNLIMITED, memory_of_process

from ..family import InputError
from .places import DISK, STANDARD, DiskError, descriptor_of
from .unpacked import Unpacked
from .waiting import temporary

if TYPE_CHECKING:  # the door is opened by commands that need no arrays too
    import numpy as np
    import numpy.typing as npt

MEMORY_OF_BATCHES = 4 << 30
"""More memory than this makes no batch larger: it is there for what a single record needs, and for tables."""


def _half() -> int:
    """Half of what the process may have, in whole MiB, 64 at least."""
    most = memory_of_process()
    return MEMORY_OF_BATCHES if most == UNLIMITED else max(most // 2 >> 20, 64) << 20


MEMORY = _half()
"""Bytes that the arrays of a command may take where `--max-memory` says nothing."""
PARTS = 8
"""A line or a record may take this part of the memory: it stands in several forms beside each other."""
BUFFER = 1 << 18
MOST_BLANK = 10_000
"""Lines without anything that may follow each other."""


class Input(io.BufferedReader):
    """The bytes of a file, unpacked. path: as it was given, for messages. longest: bytes of a line or a record."""

    def __init__(self, file: io.BufferedIOBase, path: Path, memory: int = MEMORY) -> None:
        self.path = Path("standard input") if path == STANDARD else path
        self.longest = max(memory // PARTS, 1)
        super().__init__(Unpacked(file, self.path), BUFFER)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """(number from 1, content without its end) of each line. Raises InputError."""
        number, blank = 0, 0
        while line := self.readline(self.longest + 1):
            number += 1
            blank = blank + 1 if len(line) == 1 else 0
            if blank > MOST_BLANK:
                raise InputError(f"{self.path}:{number}: more than {MOST_BLANK:,} blank lines follow each other")
            if len(line) > self.longest:
                raise self.too_long(f"line {number}")
            yield number, line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")

    def fill(self, buffer: npt.NDArray[np.uint8]) -> int:
        """Read until the buffer is full or the file ends; how many bytes. A pipe gives some at a time."""
        filled = 0
        while filled < len(buffer) and (count := self.readinto(buffer[filled:].data)):
            filled += count
        return filled

    def chunks(self, size: int, room: int) -> Iterator[npt.NDArray[np.uint8]]:
        """A file of which nothing is read yet, about `size` bytes at a time, each behind `room` bytes that are not set."""
        import numpy as np

        yield from cast(Unpacked, self.raw).buffers(size, room)
        filled = size
        while filled == size:
            buffer = np.empty(room + size, np.uint8)
            if filled := self.fill(buffer[room:]):
                yield buffer[: room + filled]

    @property
    def part(self) -> float | None:
        """Of the file that is read, from 0 to 1; None where its size is not known."""
        return cast(Unpacked, self.raw).part

    def too_long(self, what: str) -> InputError:
        return InputError(f"{self.path}: {what} has more than {self.longest:,} bytes, an eighth of --max-memory")

    def whole(self) -> bytes:
        """All bytes, where no more are left than a record may have. Raises InputError."""
        parts, total = [], 0
        while part := self.read(BUFFER):
            parts.append(part)
            total += len(part)
            if total > self.longest:
                raise self.too_long("the file")
        return b"".join(parts)

    @contextmanager
    def file_to_seek(self) -> Iterator[io.BufferedIOBase]:
        """All bytes in a file that can be read from anywhere: this one, or a copy of it that is deleted later."""
        raw = cast(Unpacked, self.raw)
        if raw.decoder is None and raw.file.seekable():
            raw.file.seek(0)
            yield raw.file
            return
        with _copied(self, self.path) as file:
            yield file


@contextmanager
def opened(path: Path, memory: int = MEMORY) -> Iterator[Input]:
    """A file to be read once, forwards; `-` is standard input. Raises InputError."""
    with _file(path) as file, Input(file, path, memory) as source:
        yield source


@contextmanager
def opened_again(path: Path, memory: int = MEMORY) -> Iterator[Callable[[], Input]]:
    """A file to be read several times: each call starts over. What comes through a pipe is copied to a file first."""
    with _file(path) as file:
        if file.seekable():
            yield lambda: _restarted(file, path, memory)
            return
        with _copied(file, path) as copy:
            yield lambda: _restarted(copy, path, memory)


def _restarted(file: io.BufferedIOBase, path: Path, memory: int) -> Input:
    file.seek(0)
    return Input(file, path, memory)


@contextmanager
def _copied(file: Any, path: Path) -> Iterator[io.BufferedIOBase]:
    """A temporary file with the same bytes, at its start."""
    with temporary() as copy:
        shutil.copyfileobj(file, copy, BUFFER)
        copy.seek(0)
        yield copy


@contextmanager
def _file(path: Path) -> Iterator[io.BufferedIOBase]:
    if path == STANDARD:
        if sys.stdin is None or sys.stdin.closed:
            raise InputError("standard input: it is closed")
        yield cast(io.BufferedIOBase, sys.stdin.buffer)
        return
    try:
        number = descriptor_of(path)
        file = open(path if number is None or number < 0 else os.dup(number), "rb")  # noqa: SIM115, closed below
    except OSError as error:
        kind = DiskError if error.errno in DISK else InputError
        raise kind(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # such as a zero byte in a name
        raise InputError(f"{path}: {error}") from None
    with file:
        if stat.S_ISDIR(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path}: Is a directory")
        yield file


def contents(path: Path, memory: int = MEMORY) -> bytes:
    """The bytes of a file, unpacked. Raises InputError, for a file larger than a record may be too."""
    with opened(path, memory) as file:
        return file.whole()
