"""What a file is packed in, by its first bytes, and its bytes without it: no more of them than its size allows."""

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
from .bgzf import END_OF_BGZF, HEADER, Blocks, Bytes, DeflateError, Job, begins_block, jobs
from .places import DISK, DiskError

RATIO, ALLOWANCE = 1_100, 1 << 26
"""A file may unpack to RATIO times its size, which is more than gzip reaches, and ALLOWANCE bytes."""
XZ_MEMORY = 1 << 30
"""Bytes that an xz file may ask for to be unpacked."""
PIECE = 1 << 16
Read = TypeVar("Read")
PACKED = 1 << 20
"""Bytes of BGZF that are read at a time."""
UNPACKERS = 8
"""Threads that unpack BGZF at most."""
UNPACKED = 1 << 22
"""Bytes of BGZF, unpacked, that are handed on at a time where nothing else is asked for."""
LONGEST_MAGIC = HEADER


class Decoder(Protocol):
    """Takes one member of a packed file, as bz2, lzma and zstd give it."""

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


PACKINGS: dict[bytes, tuple[str, Callable[[], Any] | None]] = {
    b"\x1f\x8b": ("gzip", None),
    b"\xfd7zXZ\x00": ("xz", _xz),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
"""By its first bytes: the name of a packing, and what takes one member of it off; of gzip, a reader takes all of them."""


def packing_of(start: bytes) -> tuple[str, Callable[[], Any] | None] | None:
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
        self.decoder: Decoder | None = self.new() if self.new else None
        self._between = False  # between members of a packed file: no decoder is at work
        self._members: Any = None  # what reads gzip
        self._in_blocks = self.blocked = begins_block(self.waiting)
        self._blocks: Any = None
        self._content: Any = b""  # of blocks, and not handed out yet

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if not self.name:
            if not self.waiting:
                count = self._reading(lambda: self.file.readinto1(view))
                self.packed += count
                return count
            count = min(len(view), len(self.waiting))
            view[:count], self.waiting = self.waiting[:count], self.waiting[count:]
            return count
        if self.name == "gzip":
            return self._counted(self._from_blocks(view) or self._from_members(view))
        data = self._unpack(len(view))
        view[: len(data)] = data
        return self._counted(len(data))

    def _counted(self, count: int) -> int:
        """So many bytes are handed out. Raises InputError where they are too many."""
        self.given += count
        if self.given > ALLOWANCE + RATIO * self.packed:
            raise InputError(
                f"{self.path}: {self.packed:,} bytes of {self.name} unpack to more than {self.given:,}: "
                f"a file may unpack to {RATIO:,} times its size and {ALLOWANCE >> 20} MiB"
            )
        return count

    @property
    def part(self) -> float | None:
        """Of the file that is read, from 0 to 1; None where its size is not known."""
        return min(self.packed / self.size, 1.0) if self.size else None

    def close(self) -> None:
        if self._blocks is not None:
            self._blocks.close()
        super().close()

    # ------------------------------------------------------------------ BGZF
    def buffers(self, size: int, room: int) -> Iterator[Bytes]:
        """What the blocks hold with which a file begins of which nothing is read yet, about `size` bytes at a time behind
        `room` others. Threads unpack them, each a part of a buffer. Raises InputError."""
        while self._in_blocks:
            found = self._next_buffer(size, room)
            if found is not None:
                self._counted(len(found) - room)
                yield found

    def _next_buffer(self, size: int, room: int) -> Bytes | None:
        """The next buffer, or None after the last block. Sizes are those of the first call."""
        if self._blocks is None:
            self._blocks = iter(Flow(jobs(self._groups(), size, room)).each(Job.unpack, workers_for(UNPACKERS)))
        try:
            for found in self._blocks:
                if found is not None:
                    return cast("Bytes", found)
        except ValueError as error:
            raise self._damaged(error) from None
        self._in_blocks = False
        return None

    def _first_blocks(self) -> Bytes | None:
        """What a file begins with, unpacked here: who only looks how it begins needs no threads."""
        from .bgzf_scan import whole_blocks  # late: most files are of another kind

        start = self.waiting + self._more(PIECE)
        blocks = whole_blocks(start)
        self.waiting = start[len(blocks.data) :]
        if not len(blocks.ends):
            return self._next_buffer(UNPACKED, 0)
        try:
            made = [job.unpack() for job in jobs([blocks], UNPACKED, 0)]
        except ValueError as error:
            raise self._damaged(error) from None
        return next((one for one in made if one is not None), None)

    def _groups(self) -> Iterator[Blocks]:
        """Whole blocks of BGZF, many at a time; what follows the last one is left waiting."""
        from .bgzf_scan import whole_blocks  # late: most files are of another kind

        rest, self.waiting = self.waiting, b""
        while more := self._more(PACKED):
            rest = rest + more if rest else more
            blocks = whole_blocks(rest)
            if len(blocks.ends):
                yield blocks
                rest = rest[len(blocks.data) :]
            if len(rest) > LONGEST_MAGIC and not begins_block(rest):
                break
        self.waiting = rest

    def _from_blocks(self, view: memoryview) -> int:
        """Fill a part of the view with what blocks hold; nothing after the last one."""
        while self._in_blocks and not len(self._content):
            found = self._next_buffer(UNPACKED, 0) if self.given else self._first_blocks()
            if found is not None:
                self._content = found
        count = min(len(view), len(self._content))
        if count:
            import numpy as np

            np.frombuffer(view, np.uint8)[:count] = self._content[:count]  # without the interpreter's lock
            self._content = self._content[count:]
        return count

    # ------------------------------------------------------------------ members
    def _from_members(self, view: memoryview) -> int:
        """Fill a part of the view with what members of gzip hold; nothing at the end of the file. The interpreter's lock is
        not held meanwhile."""
        if self._members is None:
            self._members = isal_zlib._GzipReader(cast("BinaryIO", _Packed(self)), PACKED)
        try:
            count: int = self._members.readinto(view)
        except BadGzipFile as error:
            if "Not a gzipped file" in str(error):
                raise self._other() from None
            raise self._damaged(error) from None
        except EOFError:
            raise self._cut() from None
        except DeflateError as error:
            raise self._damaged(error) from None
        if not count:
            self._ended()
        return count

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
                        return b""
                    rest = rest.lstrip(b"\0")
                    while len(rest) < LONGEST_MAGIC and (more := self._more(PIECE)):
                        rest += more
                    found = packing_of(rest)
                    if found is None or found[0] != self.name:
                        raise self._other()
                    self.decoder, self.waiting = self.new(), rest
                data = b""
                if self.decoder.needs_input:
                    data = self.waiting or self._more(PIECE)
                    self.waiting = b""
                    if not data:
                        raise self._cut()
                if made := self.decoder.decompress(data, size):
                    return made
            except (DeflateError, lzma.LZMAError, EOFError, ValueError) as error:
                raise self._damaged(error) from None
            except OSError as error:  # of bz2
                raise self._damaged(error) from None
            except Exception as error:
                if type(error).__name__ != "ZstdError":
                    raise
                raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> InputError:
        return InputError(f"{self.path}: damaged or truncated: {error}")

    def _other(self) -> InputError:
        return InputError(f"{self.path}: damaged: something else follows the end of the {self.name} data")

    def _cut(self) -> InputError:
        return InputError(f"{self.path}: damaged or truncated: it ends within its {self.name} data")

    def _ended(self) -> None:
        if self.blocked and self.last != END_OF_BGZF:
            raise InputError(f"{self.path}: truncated: the empty block that ends a BGZF file is not there")

    def _more(self, size: int) -> bytes:
        data = self._reading(lambda: self.file.read1(size))
        self._note(data)
        return data

    def _note(self, data: bytes | memoryview) -> None:
        """Count what was read of the file, and keep its end."""
        self.packed += len(data)
        self.last = (self.last + bytes(data[-len(END_OF_BGZF) :]))[-len(END_OF_BGZF) :]

    def _reading(self, read: Callable[[], Read]) -> Read:
        try:
            return read()
        except OSError as error:
            kind = DiskError if error.errno in DISK else InputError
            raise kind(f"{self.path}: {error.strerror or error}") from None


class _Packed:
    """The bytes of a packed file, as a reader of gzip asks for them."""

    def __init__(self, owner: Unpacked) -> None:
        self.owner = owner

    def read(self, size: int) -> bytes:
        raise NotImplementedError

    def readinto(self, view: memoryview) -> int:
        owner = self.owner
        if owner.waiting:
            count = min(len(view), len(owner.waiting))
            view[:count], owner.waiting = owner.waiting[:count], owner.waiting[count:]
            return count
        count = owner._reading(lambda: owner.file.readinto1(view))
        owner._note(view[:count])
        return count
