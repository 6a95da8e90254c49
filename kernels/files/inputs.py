"""Input of a command: a file or standard input, compressed or not, read by lines or blocks."""

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
from .decompression import DecompressedFile
from .paths import DISK_ERRORS, STANDARD, DiskError, descriptor_of
from .temporary_files import temporary_file

if TYPE_CHECKING:  # commands without arrays import this module too
    import numpy as np
    import numpy.typing as npt

MEMORY_OF_BATCHES = 4 << 30
"""Memory limit of batches, in bytes. Memory beyond it serves single large records and tables."""


def _half_of_memory() -> int:
    """Return half of the memory limit of the process in whole MiB, at least 64 MiB."""
    limit = memory_of_process()
    return MEMORY_OF_BATCHES if limit == UNLIMITED else max(limit // 2 >> 20, 64) << 20


MEMORY = _half_of_memory()
"""Default of `--max-memory`: bytes for the arrays of a command."""
RECORD_SHARE = 8
"""A line or a record may occupy 1 / RECORD_SHARE of the memory: several copies of it exist at the same time."""
BUFFER = 1 << 18
MAX_BLANK_LINES = 10_000
"""Maximum number of consecutive blank lines."""


class Input(io.BufferedReader):
    """The decompressed bytes of a file. path: name for messages. longest: maximum bytes of a line or a record."""

    def __init__(self, file: io.BufferedIOBase, path: Path, memory: int = MEMORY) -> None:
        self.path = Path("standard input") if path == STANDARD else path
        self.longest = max(memory // RECORD_SHARE, 1)
        super().__init__(DecompressedFile(file, self.path), BUFFER)

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield (number from 1, content without line end) of each line. Raise InputError if a line is too long."""
        number, blank = 0, 0
        while line := self.readline(self.longest + 1):
            number += 1
            blank = blank + 1 if len(line) == 1 else 0
            if blank > MAX_BLANK_LINES:
                raise InputError(f"{self.path}:{number}: more than {MAX_BLANK_LINES:,} blank lines follow each other")
            if len(line) > self.longest:
                raise self.too_long(f"line {number}")
            yield number, line[:-2] if line.endswith(b"\r\n") else line.removesuffix(b"\n")

    def fill(self, buffer: npt.NDArray[np.uint8]) -> int:
        """Read until the buffer is full or the file ends; return the number of bytes. A pipe returns short reads."""
        filled = 0
        while filled < len(buffer) and (count := self.readinto(buffer[filled:].data)):
            filled += count
        return filled

    def chunks(self, size: int, margin: int) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield an unread file in buffers of about `size` bytes after an unset margin of `margin` bytes."""
        import numpy as np

        yield from cast(DecompressedFile, self.raw).buffers(size, margin)
        filled = size
        while filled == size:
            buffer = np.empty(margin + size, np.uint8)
            if filled := self.fill(buffer[margin:]):
                yield buffer[: margin + filled]

    @property
    def fraction(self) -> float | None:
        """Fraction of the file already read, None if its size is unknown."""
        return cast(DecompressedFile, self.raw).fraction

    def too_long(self, what: str) -> InputError:
        return InputError(f"{self.path}: {what} has more than {self.longest:,} bytes, an eighth of --max-memory")

    def whole(self) -> bytes:
        """Return all bytes. Raise InputError if they exceed the limit of a record."""
        blocks, total = [], 0
        while block := self.read(BUFFER):
            blocks.append(block)
            total += len(block)
            if total > self.longest:
                raise self.too_long("the file")
        return b"".join(blocks)

    @contextmanager
    def seekable_file(self) -> Iterator[io.BufferedIOBase]:
        """Provide all bytes as a seekable file: this file, or a temporary copy."""
        raw = cast(DecompressedFile, self.raw)
        if raw.decoder is None and raw.file.seekable():
            raw.file.seek(0)
            yield raw.file
            return
        with _temporary_copy(self, self.path) as file:
            yield file


@contextmanager
def open_input(path: Path, memory: int = MEMORY) -> Iterator[Input]:
    """Open a file for one sequential read; `-` is standard input. Raise InputError if that fails."""
    with _file(path) as file, Input(file, path, memory) as source:
        yield source


@contextmanager
def open_repeatedly(path: Path, memory: int = MEMORY) -> Iterator[Callable[[], Input]]:
    """Open a file for several reads: each call of the result starts again. A pipe is copied to a temporary file first."""
    with _file(path) as file:
        if file.seekable():
            yield lambda: _restart(file, path, memory)
            return
        with _temporary_copy(file, path) as copy:
            yield lambda: _restart(copy, path, memory)


def _restart(file: io.BufferedIOBase, path: Path, memory: int) -> Input:
    file.seek(0)
    return Input(file, path, memory)


@contextmanager
def _temporary_copy(file: Any, path: Path) -> Iterator[io.BufferedIOBase]:
    """Provide a temporary file with the same bytes, positioned at its start."""
    with temporary_file() as copy:
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
        kind = DiskError if error.errno in DISK_ERRORS else InputError
        raise kind(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # for example a zero byte in the name
        raise InputError(f"{path}: {error}") from None
    with file:
        if stat.S_ISDIR(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path}: Is a directory")
        yield file


def contents(path: Path) -> bytes:
    """Return the decompressed bytes of a file. Raise InputError if it cannot be read or exceeds the limit of a record."""
    with open_input(path) as file:
        return file.whole()
