"""Decompression of gzip, BGZF, xz, bzip2 and zstd, recognised by the first bytes of a file, with a limit on the ratio."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import stat
from collections.abc import Callable, Iterator
from gzip import BadGzipFile
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar, cast

from isal import isal_zlib
from simtbed import UnavailableError

from ..family import InputError
from ..pipeline import Flow, workers_for
from .bgzf import END_OF_BGZF, HEADER, Blocks, Bytes, DeflateError, Job, jobs, starts_with_block
from .paths import DISK_ERRORS, DiskError

RATIO, ALLOWANCE = 1_100, 1 << 26
"""A file may decompress to RATIO times its size plus ALLOWANCE bytes; gzip's maximum ratio is 1,032."""
XZ_MEMORY = 1 << 30
"""Memory limit of the xz decoder, in bytes."""
PIECE = 1 << 16
Read = TypeVar("Read")
READ_SIZE = 1 << 20
"""Bytes of compressed data per read."""
MAX_UNPACKERS = 8
"""Maximum number of threads that decompress BGZF."""
BUFFER_SIZE = 1 << 22
"""Default size of a buffer of decompressed BGZF, in bytes."""
LONGEST_MAGIC = HEADER


class Decoder(Protocol):
    """Decoder of one member of a compressed file, with the interface of bz2, lzma and zstd."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _zstd() -> Any:
    try:
        try:
            from compression import zstd  # type: ignore[import-not-found]
        except ModuleNotFoundError:
            from backports import zstd
    except ModuleNotFoundError:
        raise UnavailableError("reading zstd needs Python 3.14 or backports.zstd") from None
    return zstd.ZstdDecompressor()


def _xz() -> Any:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)


COMPRESSIONS: dict[bytes, tuple[str, Callable[[], Any] | None]] = {
    b"\x1f\x8b": ("gzip", None),
    b"\xfd7zXZ\x00": ("xz", _xz),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
"""Name and decoder of each compression, by its magic number. gzip has no decoder: one reader handles all members."""


def compression_of(start: bytes) -> tuple[str, Callable[[], Any] | None] | None:
    """Return the compression of a file with these first bytes. bzip2 continues with the digits of pi; a text may start with BZh."""
    if start[:3] == b"BZh" and start[4:10] not in (b"1AY&SY", b"\x17rE8P\x90"):
        return None
    return next((packing for magic, packing in COMPRESSIONS.items() if start.startswith(magic)), None)


def _size(file: io.BufferedIOBase) -> int:
    """Return the size of a regular file in bytes, 0 for any other file."""
    try:
        info = os.fstat(file.fileno())
    except (OSError, ValueError):
        return 0
    return info.st_size if stat.S_ISREG(info.st_mode) else 0


class DecompressedFile(io.RawIOBase):
    """The decompressed bytes of an open file. Errors are raised as InputError or DiskError."""

    def __init__(self, file: io.BufferedIOBase, path: Path) -> None:
        super().__init__()
        self.file, self.path = file, path
        self.packed, self.produced = 0, 0  # compressed bytes read, decompressed bytes returned
        self.size = _size(file)
        self.last = b""
        self.waiting = b""
        while len(self.waiting) < LONGEST_MAGIC and (more := self._read_some(LONGEST_MAGIC - len(self.waiting))):
            self.waiting += more
        compression = compression_of(self.waiting)
        self.name = compression[0] if compression else ""
        self.new_decoder = compression[1] if compression else None
        self.decoder: Decoder | None = self.new_decoder() if self.new_decoder else None
        self._after_member = False  # between two members: no decoder is active
        self._members: Any = None  # the gzip reader
        self._in_blocks = self.blocked = starts_with_block(self.waiting)
        self._blocks: Any = None
        self._content: Any = b""  # decompressed BGZF, not yet returned

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if not self.name:
            if not self.waiting:
                count = self._checked_read(lambda: self.file.readinto1(view))
                self.packed += count
                return count
            count = min(len(view), len(self.waiting))
            view[:count], self.waiting = self.waiting[:count], self.waiting[count:]
            return count
        if self.name == "gzip":
            return self._check_ratio(self._from_blocks(view) or self._from_members(view))
        data = self._unpack(len(view))
        view[: len(data)] = data
        return self._check_ratio(len(data))

    def _check_ratio(self, count: int) -> int:
        """Add to the number of decompressed bytes. Raise InputError if the ratio is exceeded."""
        self.produced += count
        if self.produced > ALLOWANCE + RATIO * self.packed:
            raise InputError(
                f"{self.path}: {self.packed:,} bytes of {self.name} unpack to more than {self.produced:,}: "
                f"a file may unpack to {RATIO:,} times its size and {ALLOWANCE >> 20} MiB"
            )
        return count

    @property
    def fraction(self) -> float | None:
        """Fraction of the compressed file already read, None if its size is unknown."""
        return min(self.packed / self.size, 1.0) if self.size else None

    def close(self) -> None:
        if self._blocks is not None:
            self._blocks.close()
        super().close()

    # ------------------------------------------------------------------ BGZF
    def buffers(self, size: int, margin: int) -> Iterator[Bytes]:
        """Yield the content of the BGZF blocks at the start of an unread file in buffers of about `size` bytes after an
        unset margin of `margin` bytes. Threads fill each buffer. Raise InputError if a block is damaged."""
        while self._in_blocks:
            buffer = self._next_buffer(size, margin)
            if buffer is not None:
                self._check_ratio(len(buffer) - margin)
                yield buffer

    def _next_buffer(self, size: int, margin: int) -> Bytes | None:
        """Return the next buffer, or None after the last block. The sizes of the first call apply."""
        if self._blocks is None:
            self._blocks = iter(Flow(jobs(self._groups(), size, margin)).map(Job.unpack, workers_for(MAX_UNPACKERS)))
        try:
            for buffer in self._blocks:
                if buffer is not None:
                    return cast("Bytes", buffer)
        except ValueError as error:
            raise self._damaged(error) from None
        self._in_blocks = False
        return None

    def _first_blocks(self) -> Bytes | None:
        """Decompress the first blocks in this thread: readers of a few bytes need no thread pool."""
        from .bgzf_scan import whole_blocks  # imported late: most files have another format

        start = self.waiting + self._read_some(PIECE)
        blocks = whole_blocks(start)
        self.waiting = start[len(blocks.data) :]
        if not len(blocks.ends):
            return self._next_buffer(BUFFER_SIZE, 0)
        try:
            buffers = [job.unpack() for job in jobs([blocks], BUFFER_SIZE, 0)]
        except ValueError as error:
            raise self._damaged(error) from None
        return next((buffer for buffer in buffers if buffer is not None), None)

    def _groups(self) -> Iterator[Blocks]:
        """Yield groups of complete BGZF blocks. The bytes after the last block remain in `waiting`."""
        from .bgzf_scan import whole_blocks  # imported late: most files have another format

        rest, self.waiting = self.waiting, b""
        while more := self._read_some(READ_SIZE):
            rest = rest + more if rest else more
            blocks = whole_blocks(rest)
            if len(blocks.ends):
                yield blocks
                rest = rest[len(blocks.data) :]
            if len(rest) > LONGEST_MAGIC and not starts_with_block(rest):
                break
        self.waiting = rest

    def _from_blocks(self, view: memoryview) -> int:
        """Copy content of BGZF blocks into the view; return the number of bytes, 0 after the last block."""
        while self._in_blocks and not len(self._content):
            buffer = self._next_buffer(BUFFER_SIZE, 0) if self.produced else self._first_blocks()
            if buffer is not None:
                self._content = buffer
        count = min(len(view), len(self._content))
        if count:
            import numpy as np

            np.frombuffer(view, np.uint8)[:count] = self._content[:count]  # releases the interpreter's lock
            self._content = self._content[count:]
        return count

    # ------------------------------------------------------------------ members
    def _from_members(self, view: memoryview) -> int:
        """Copy content of gzip members into the view; return the number of bytes, 0 at the end of the file. Releases
        the interpreter's lock."""
        if self._members is None:
            self._members = isal_zlib._GzipReader(cast("BinaryIO", _CompressedSource(self)), READ_SIZE)
        try:
            count: int = self._members.readinto(view)
        except BadGzipFile as error:
            if "Not a gzipped file" in str(error):
                raise self._trailing_data() from None
            raise self._damaged(error) from None
        except EOFError:
            raise self._truncated() from None
        except DeflateError as error:
            raise self._damaged(error) from None
        if not count:
            self._check_end()
        return count

    def _unpack(self, size: int) -> bytes:
        """Return up to `size` bytes, none at the end of the file."""
        assert self.decoder is not None and self.new_decoder is not None
        while True:
            try:
                if self._after_member or self.decoder.eof:
                    rest = self.decoder.unused_data or self.waiting or self._read_some(PIECE)
                    self.waiting, self._after_member = b"", False
                    while rest and not rest.strip(b"\0"):  # padding
                        rest = self._read_some(PIECE)
                    if not rest:
                        self._after_member = True
                        return b""
                    rest = rest.lstrip(b"\0")
                    while len(rest) < LONGEST_MAGIC and (more := self._read_some(PIECE)):
                        rest += more
                    compression = compression_of(rest)
                    if compression is None or compression[0] != self.name:
                        raise self._trailing_data()
                    self.decoder, self.waiting = self.new_decoder(), rest
                data = b""
                if self.decoder.needs_input:
                    data = self.waiting or self._read_some(PIECE)
                    self.waiting = b""
                    if not data:
                        raise self._truncated()
                if output := self.decoder.decompress(data, size):
                    return output
            except (DeflateError, lzma.LZMAError, EOFError, ValueError) as error:
                raise self._damaged(error) from None
            except OSError as error:  # raised by bz2
                raise self._damaged(error) from None
            except Exception as error:
                if type(error).__name__ != "ZstdError":
                    raise
                raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: damaged or truncated: {error}")

    def _trailing_data(self) -> InputError:
        return InputError(f"{self.path}: damaged: other data follow the end of the {self.name} data")

    def _truncated(self) -> InputError:
        return InputError(f"{self.path}: damaged or truncated: it ends within its {self.name} data")

    def _check_end(self) -> None:
        if self.blocked and self.last != END_OF_BGZF:
            raise InputError(f"{self.path}: truncated: the empty block at the end of a BGZF file is missing")

    def _read_some(self, size: int) -> bytes:
        data = self._checked_read(lambda: self.file.read1(size))
        self._record_read(data)
        return data

    def _record_read(self, data: bytes | memoryview) -> None:
        """Count compressed bytes and record the last ones."""
        self.packed += len(data)
        self.last = (self.last + bytes(data[-len(END_OF_BGZF) :]))[-len(END_OF_BGZF) :]

    def _checked_read(self, read: Callable[[], Read]) -> Read:
        try:
            return read()
        except OSError as error:
            kind = DiskError if error.errno in DISK_ERRORS else InputError
            raise kind(f"{self.path}: {error.strerror or error}") from None


class _CompressedSource:
    """The compressed bytes of a file, for the gzip reader."""

    def __init__(self, owner: DecompressedFile) -> None:
        self.owner = owner

    def read(self, size: int) -> bytes:
        raise NotImplementedError

    def readinto(self, view: memoryview) -> int:
        owner = self.owner
        if owner.waiting:
            count = min(len(view), len(owner.waiting))
            view[:count], owner.waiting = owner.waiting[:count], owner.waiting[count:]
            return count
        count = owner._checked_read(lambda: owner.file.readinto1(view))
        owner._record_read(view[:count])
        return count
