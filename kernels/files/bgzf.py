"""BGZF: gzip in independent blocks, so that threads compress and decompress them in parallel."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias, cast

from isal import igzip_lib, isal_zlib

from ..pipeline import workers_for

if TYPE_CHECKING:  # commands without arrays import this module too
    from concurrent.futures import Future

    import numpy as np
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"

HEADER = 18
"""Bytes of a block before its data."""
END_OF_BGZF = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
MAX_BLOCK = 1 << 16
"""Maximum number of bytes that a block decompresses to."""
BLOCK_CONTENT = 0xFF00
"""Uncompressed bytes per written block. Incompressible content fits too."""
LEVEL = 2
"""Level of compression."""
GROUP_BLOCKS = 16
"""Blocks that a thread compresses at a time."""
MAX_WORKERS = 8
"""Maximum number of compressing threads."""

DeflateError = cast(type[Exception], igzip_lib.IsalError)
"""Error for data without a gzip header or with a wrong checksum."""

_START = bytes.fromhex("1f8b08040000000000ff060042430200")
_LAST = bytes.fromhex("0300")
"""An empty last DEFLATE block."""
_STORED = bytes.fromhex("000100feff")
"""Header of a stored DEFLATE block of one byte."""
_MAX_PACKED = MAX_BLOCK + (MAX_BLOCK >> 2)
"""Maximum size of a compressed block, in bytes."""


def starts_with_block(data: bytes) -> bool:
    """Return whether the data start with a BGZF block."""
    return data[:4] == b"\x1f\x8b\x08\x04" and data[12:14] == b"BC"


class Blocks(NamedTuple):
    """Consecutive complete blocks. ends: end of each block in the data. totals: cumulative uncompressed sizes as the
    blocks state them, in bytes."""

    data: memoryview
    ends: npt.NDArray[np.int64]
    totals: npt.NDArray[np.int64]


class Job(NamedTuple):
    """Blocks to decompress. target: destination, exactly as long as their content. whole: the buffer, if this job completes it."""

    blocks: memoryview
    target: Bytes
    whole: Bytes | None = None

    def unpack(self) -> Bytes | None:
        """Decompress without the interpreter's lock. Return the buffer if it is complete. Raise ValueError if a block is damaged."""
        try:
            reader = isal_zlib._GzipReader(cast(BinaryIO, self.blocks))  # accepts any buffer
            wrong = reader.readinto(self.target.data) != len(self.target) or reader.read(1)
        except (DeflateError, OSError, EOFError) as error:
            raise ValueError(str(error)) from None
        if wrong:
            raise ValueError("the content of a BGZF block does not have the stated size")
        return self.whole


def jobs(groups: Iterable[Blocks], size: int, margin: int) -> Iterator[Job]:
    """Yield jobs that decompress groups of complete blocks into buffers of about `size` bytes after an unset margin of
    `margin` bytes. Raise ValueError if a block is damaged."""
    import numpy as np

    size = margin + max(size, MAX_BLOCK)
    buffer, at = np.empty(size, np.uint8), margin
    for data, ends, totals in groups:
        if np.diff(totals, prepend=0).max(initial=0) > MAX_BLOCK:
            raise ValueError("the content of a BGZF block does not have the stated size")
        begin, unpacked = 0, 0
        while (fit := int(np.searchsorted(totals, unpacked + size - at, "right"))) < len(totals):
            end, total = (int(ends[fit - 1]), int(totals[fit - 1])) if fit else (0, 0)
            full = at + total - unpacked
            yield Job(data[begin:end], buffer[at:full], buffer[:full])
            buffer, at, begin, unpacked = np.empty(size, np.uint8), margin, end, total
        full = at + int(totals[-1]) - unpacked
        yield Job(data[begin:], buffer[at:full])
        at = full
    if at > margin:
        yield Job(memoryview(b""), buffer[at:at], buffer[:at])


def packed_blocks(data: bytes | bytearray | memoryview) -> bytes:
    """Return the data as BGZF blocks, without the empty block at the end of a file."""
    view, size = memoryview(data), GROUP_BLOCKS * BLOCK_CONTENT
    groups = [b"".join(_blocks(view[at : at + size])) for at in range(0, len(view), size)]
    return groups[0] if len(groups) == 1 else b"".join(groups)


def _blocks(view: memoryview) -> Iterator[bytes | memoryview]:
    """Yield the pieces of each block: header and stored first byte, compressed other bytes, checksum and length.

    The first byte of a block is not compressed; it is the dictionary of the others. Without a dictionary, ISA-L's loop at this
    level hashes the third byte from the address of its own state, and the output sometimes depends on that address.
    """
    packer = isal_zlib._ParallelCompress(_MAX_PACKED, LEVEL)
    for at in range(0, len(view), BLOCK_CONTENT):
        first, rest = view[at : at + 1], view[at + 1 : at + BLOCK_CONTENT]
        packed, checksum = packer.compress_and_crc(rest, first)
        checksum = isal_zlib.crc32_combine(isal_zlib.crc32(first), checksum, len(rest))
        length = HEADER + len(_STORED) + 1 + len(packed) + len(_LAST) + 8
        yield _START + (length - 1).to_bytes(2, "little") + _STORED + first
        yield packed
        yield _LAST + checksum.to_bytes(4, "little") + (1 + len(rest)).to_bytes(4, "little")


class BgzfWriter(io.BufferedIOBase):
    """Compresses written data in threads and writes the blocks in order. The bytes do not depend on the number of threads.

    Closing it writes the end-of-file block; the underlying file remains open.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file = file
        self._waiting = bytearray()
        self._workers = workers_for(MAX_WORKERS)
        from concurrent.futures import ThreadPoolExecutor  # imported late: most files have another format

        self._pool = ThreadPoolExecutor(self._workers)
        self._pending: deque[Future[bytes]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write data. Read-only data are not copied and must not change afterwards."""
        view, size = memoryview(data).cast("B"), GROUP_BLOCKS * BLOCK_CONTENT
        at = 0
        while at < len(view):
            if view.readonly and not self._waiting and len(view) - at >= size:
                self._pack(view[at : at + size])
                at += size
                continue
            chunk = view[at : at + size - len(self._waiting)]
            self._waiting += chunk
            at += len(chunk)
            if len(self._waiting) == size:
                self._pack(self._waiting)
                self._waiting = bytearray()
        return len(view)

    def _pack(self, chunk: bytearray | memoryview) -> None:
        self._pending.append(self._pool.submit(packed_blocks, chunk))
        while len(self._pending) > 2 * self._workers:
            self.file.write(self._pending.popleft().result())

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._pack(self._waiting)
            while self._pending:
                self.file.write(self._pending.popleft().result())
            self.file.write(END_OF_BGZF)
        finally:
            self._pool.shutdown(cancel_futures=True)
            super().close()
