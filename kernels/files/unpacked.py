"""What a file is packed in, by its first bytes, and its bytes without it: no more of them than its size allows."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from isal import igzip_lib
from simtbed import UnavailableError

from ..family import InputError
from ..pipeline import Flow, workers_for
from .bgzf import END_OF_BGZF, HEADER, DeflateError, begins_block, length_of_blocks, unpacked_blocks
from .places import DISK, DiskError

RATIO, ALLOWANCE = 1_100, 1 << 26
"""A file may unpack to RATIO times its size, which is more than gzip reaches, and ALLOWANCE bytes."""
XZ_MEMORY = 1 << 30
"""Bytes that an xz file may ask for to be unpacked."""
PIECE = 1 << 16
Read = TypeVar("Read")
PACKED = 1 << 20
"""Bytes of BGZF that are read at a time."""
UNPACKERS = 16
"""Threads that unpack BGZF at most."""
LONGEST_MAGIC = HEADER


class Decoder(Protocol):
    """Takes one member of a packed file, as bz2, lzma and zstd give it."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


def _gzip() -> Any:
    return igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)


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


PACKINGS: dict[bytes, tuple[str, Callable[[], Any]]] = {
    b"\x1f\x8b": ("gzip", _gzip),
    b"\xfd7zXZ\x00": ("xz", _xz),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
"""By its first bytes: the name of a packing, and what takes one member of it off."""


def packing_of(start: bytes) -> tuple[str, Callable[[], Any]] | None:
    """What a file that begins like this is packed in. A text may begin with BZh: bzip2 goes on with the digits of pi."""
    if start[:3] == b"BZh" and start[4:10] not in (b"1AY&SY", b"\x17rE8P\x90"):
        return None
    return next((packing for magic, packing in PACKINGS.items() if start.startswith(magic)), None)


def _size(file: io.BufferedIOBase) -> int:
    """Bytes of a regular file; 0 for anything else."""
    try:
        there = os.fstat(file.fileno())
    except (OSError, ValueError):
        return 0
    return there.st_size if stat.S_ISREG(there.st_mode) else 0


class Unpacked(io.RawIOBase):
    """The bytes of an open file without its packing. What goes wrong is an InputError or a DiskError."""

    def __init__(self, file: io.BufferedIOBase, path: Path) -> None:
        super().__init__()
        self.file, self.path = file, path
        self.packed, self.given = 0, 0  # bytes read, bytes handed out
        self.size = _size(file)
        self.last = b""
        self.waiting = b""
        while len(self.waiting) < LONGEST_MAGIC and (more := self._more(LONGEST_MAGIC - len(self.waiting))):
            self.waiting += more
        found = packing_of(self.waiting)
        self.name = found[0] if found else ""
        self.new = found[1] if found else None
        self.blocked = begins_block(self.waiting)
        self.decoder: Decoder | None = self.new() if self.new else None
        self._blocks: Any = iter(Flow(self._groups()).each(unpacked_blocks, workers_for(UNPACKERS)))
        self._content = memoryview(b"")  # of blocks, and not handed out yet
        self._in_blocks = self._between = self.blocked  # between members of a packed file: no decoder is at work

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if self.decoder is None:
            if not self.waiting:
                count = self._reading(lambda: self.file.readinto1(view))
                self.packed += count
                return count
            count = min(len(view), len(self.waiting))
            view[:count], self.waiting = self.waiting[:count], self.waiting[count:]
            return count
        data = self._from_blocks(len(view)) or self._unpack(len(view))
        view[: len(data)] = data
        self.given += len(data)
        if self.given > ALLOWANCE + RATIO * self.packed:
            raise InputError(
                f"{self.path}: {self.packed:,} bytes of {self.name} unpack to more than {self.given:,}: "
                f"a file may unpack to {RATIO:,} times its size and {ALLOWANCE >> 20} MiB"
            )
        return len(data)

    @property
    def part(self) -> float | None:
        """Of the file that is read, from 0 to 1; None where its size is not known."""
        return min(self.packed / self.size, 1.0) if self.size else None

    def close(self) -> None:
        self._blocks.close()
        super().close()

    def _groups(self) -> Iterator[bytes]:
        """Whole blocks of BGZF, many at a time; what follows the last one is left waiting."""
        rest, self.waiting = self.waiting, b""
        while more := self._more(PACKED):
            rest += more
            length = length_of_blocks(rest)
            if length:
                yield rest[:length]
                rest = rest[length:]
            if len(rest) > LONGEST_MAGIC and not begins_block(rest):
                break
        self.waiting = rest

    def _from_blocks(self, size: int) -> memoryview:
        """Some bytes of blocks, which threads unpack ahead; none after the last block."""
        try:
            while self._in_blocks and not self._content:
                found = next(self._blocks, None)
                if found is None:
                    self._in_blocks = False
                    break
                self._content = memoryview(found)
        except ValueError as error:
            raise InputError(f"{self.path}: damaged or truncated: {error}") from None
        some, self._content = self._content[:size], self._content[size:]
        return some

    def _unpack(self, size: int) -> bytes:
        """Some bytes, or none at the end of the file."""
        assert self.decoder is not None and self.new is not None
        while True:
            try:
                if self._between or self.decoder.eof:
                    rest = self.decoder.unused_data or self.waiting or self._more(PIECE)
                    self.waiting, self._between = b"", False
                    while rest and not rest.strip(b"\0"):  # padding
                        rest = self._more(PIECE)
                    if not rest:
                        self._between = True
                        return self._ended()
                    rest = rest.lstrip(b"\0")
                    while len(rest) < LONGEST_MAGIC and (more := self._more(PIECE)):
                        rest += more
                    found = packing_of(rest)
                    if found is None or found[0] != self.name:
                        raise InputError(
                            f"{self.path}: damaged: something else follows the end of the {self.name} data"
                        )
                    self.decoder, self.waiting = self.new(), rest
                data = b""
                if self.decoder.needs_input:
                    data = self.waiting or self._more(PIECE)
                    self.waiting = b""
                    if not data:
                        raise InputError(f"{self.path}: damaged or truncated: it ends within its {self.name} data")
                if made := self.decoder.decompress(data, size):
                    return made
            except (DeflateError, lzma.LZMAError, EOFError, ValueError) as error:
                raise InputError(f"{self.path}: damaged or truncated: {error}") from None
            except OSError as error:  # of bz2
                raise InputError(f"{self.path}: damaged or truncated: {error}") from None
            except Exception as error:
                if type(error).__name__ != "ZstdError":
                    raise
                raise InputError(f"{self.path}: damaged or truncated: {error}") from None

    def _ended(self) -> bytes:
        if self.blocked and self.last != END_OF_BGZF:
            raise InputError(f"{self.path}: truncated: the empty block that ends a BGZF file is not there")
        return b""

    def _more(self, size: int) -> bytes:
        data = self._reading(lambda: self.file.read1(size))
        self.packed += len(data)
        self.last = (self.last + data)[-len(END_OF_BGZF) :]
        return data

    def _reading(self, read: Callable[[], Read]) -> Read:
        try:
            return read()
        except OSError as error:
            kind = DiskError if error.errno in DISK else InputError
            raise kind(f"{self.path}: {error.strerror or error}") from None
