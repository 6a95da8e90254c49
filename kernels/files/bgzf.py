"""BGZF: gzip in blocks that stand for themselves, so that threads pack and unpack them side by side."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, cast

from isal import igzip_lib, isal_zlib

from ..pipeline import workers_for

END_OF_BGZF = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
HEADER = 18
"""Bytes of a block before its data."""
MOST = 1 << 16
"""Bytes that a block unpacks to at most."""
CONTENT = 0xFF00
"""Bytes that a block is made of here: what cannot be packed fits too."""
GROUP = 16
"""Blocks that a thread packs at a time."""
WORKERS = 16
LEVEL = 2

DeflateError = cast(type[Exception], igzip_lib.IsalError)
"""Of data that are no gzip, or whose checksum is wrong."""

_START = bytes.fromhex("1f8b08040000000000ff060042430200")
_RAW = -15
"""Of zlib: data without header and checksum."""


def begins_block(data: bytes, at: int = 0) -> bool:
    """Whether a block of BGZF begins there."""
    return data[at : at + 4] == b"\x1f\x8b\x08\x04" and data[at + 12 : at + 14] == b"BC"


def length_of_blocks(data: bytes) -> int:
    """How long the whole blocks are with which the data begin."""
    at = 0
    while begins_block(data, at) and len(data) >= at + HEADER:
        size = int.from_bytes(data[at + 16 : at + 18], "little") + 1
        if size <= HEADER or at + size > len(data):
            break
        at += size
    return at


def unpacked_blocks(data: bytes) -> bytes:
    """The contents of whole blocks. Raises ValueError where one is damaged."""
    found = []
    view, at = memoryview(data), 0
    while at < len(data):
        size = int.from_bytes(data[at + 16 : at + 18], "little") + 1
        decoder = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        try:
            found.append(decoder.decompress(view[at : at + size], MOST + 1))
        except DeflateError as error:
            raise ValueError(str(error)) from None
        if not decoder.eof or decoder.unused_data or len(found[-1]) > MOST:
            raise ValueError("a block of BGZF does not end where it says")
        at += size
    return b"".join(found)


def packed_blocks(data: bytes) -> bytes:
    """Data as blocks, without the empty one that ends a file."""
    return b"".join(_blocks(data))


def _blocks(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    for at in range(0, len(data), CONTENT):
        content = view[at : at + CONTENT]
        packed = isal_zlib.compress(content, LEVEL, _RAW)
        yield _START
        yield (HEADER + len(packed) + 8 - 1).to_bytes(2, "little")
        yield packed
        yield isal_zlib.crc32(content).to_bytes(4, "little")
        yield len(content).to_bytes(4, "little")


class BgzfWriter(io.BufferedIOBase):
    """Packs what is written, in threads, and writes it to a file in order; the same bytes for any number of threads.

    Closing it writes the end; the file stays open.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file = file
        self._waiting = bytearray()
        self._workers = workers_for(WORKERS)
        self._pool = ThreadPoolExecutor(self._workers)
        self._under_way: deque[Future[bytes]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        size = GROUP * CONTENT
        for at in range(0, len(view), size):
            self._waiting += view[at : at + size]
            if len(self._waiting) >= size:
                self._pack(size)
        return len(view)

    def _pack(self, size: int) -> None:
        some = bytes(self._waiting[:size])
        del self._waiting[:size]
        self._under_way.append(self._pool.submit(packed_blocks, some))
        while len(self._under_way) > 2 * self._workers:
            self.file.write(self._under_way.popleft().result())

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._pack(len(self._waiting))
            while self._under_way:
                self.file.write(self._under_way.popleft().result())
            self.file.write(END_OF_BGZF)
        finally:
            self._pool.shutdown(cancel_futures=True)
            super().close()
