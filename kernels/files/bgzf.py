"""BGZF: gzip in blocks that stand for themselves, so that threads pack and unpack them side by side."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias, cast

from isal import igzip_lib, isal_zlib

from ..pipeline import workers_for

if TYPE_CHECKING:  # the door is opened by commands that need no arrays too
    from concurrent.futures import Future

    import numpy as np
    import numpy.typing as npt

Bytes: TypeAlias = "npt.NDArray[np.uint8]"

END_OF_BGZF = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
HEADER = 18
"""Bytes of a block before its data."""
MOST = 1 << 16
"""Bytes that a block unpacks to at most."""
CONTENT = 0xFF00
"""Bytes that a block is made of here: what cannot be packed fits too."""
GROUP = 16
"""Blocks that a thread packs at a time."""
WORKERS = 6
"""Threads that pack at most: each block asks for the interpreter's lock, and more of them wait for it longer than they work."""
LEVEL = 2

DeflateError = cast(type[Exception], igzip_lib.IsalError)
"""Of data that are no gzip, or whose checksum is wrong."""

_START = bytes.fromhex("1f8b08040000000000ff060042430200")
_LAST = bytes.fromhex("0300")
"""An empty part of packed data after which none follows."""
_STORED = bytes.fromhex("000100feff")
"""Before a single byte that is stored as it is."""
_ROOM = MOST + (MOST >> 2)
"""Bytes that a block is packed to at most."""


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


class Job(NamedTuple):
    """Blocks to be unpacked. to: where, just as long as their contents. whole: a buffer that is full when this is done."""

    blocks: memoryview
    to: Bytes
    whole: Bytes | None = None

    def unpack(self) -> Bytes | None:
        """The buffer, if it is full now. The interpreter's lock is not held. Raises ValueError where a block is damaged."""
        try:
            reader = isal_zlib._GzipReader(cast(BinaryIO, self.blocks))  # takes any buffer
            wrong = reader.readinto(self.to.data) != len(self.to) or reader.read(1)
        except (DeflateError, OSError, EOFError) as error:
            raise ValueError(str(error)) from None
        if wrong:
            raise ValueError("a block of BGZF does not hold what it says")
        return self.whole


def jobs(groups: Iterator[memoryview], size: int, room: int) -> Iterator[Job]:
    """What is to be done to unpack groups of whole blocks into buffers of about `size` bytes behind `room` others, which
    are left as they are. Raises ValueError."""
    import numpy as np

    size = room + max(size, MOST)
    buffer, at = np.empty(size, np.uint8), room
    for group in groups:
        begin, end, first = 0, 0, at
        while end < len(group):
            packed = int.from_bytes(group[end + 16 : end + 18], "little") + 1
            content = int.from_bytes(group[end + packed - 4 : end + packed], "little")
            if content > MOST:
                raise ValueError("a block of BGZF does not hold what it says")
            if at + content > size:
                yield Job(group[begin:end], buffer[first:at], buffer[:at])
                buffer, begin, first, at = np.empty(size, np.uint8), end, room, room
            end, at = end + packed, at + content
        yield Job(group[begin:end], buffer[first:at])
    if at > room:
        yield Job(memoryview(b""), buffer[at:at], buffer[:at])


def packed_blocks(data: bytes | bytearray | memoryview) -> bytes:
    """Data as blocks, without the empty one that ends a file."""
    return b"".join(_blocks(memoryview(data)))


def _blocks(view: memoryview) -> Iterator[bytes]:
    """The first byte of a block is stored, and stands before the others as what they may repeat: where nothing stands
    before them, ISA-L's loop at this level takes the hash of the third byte from the address of its own state, and what is
    packed depends, now and then, on where that lies."""
    packer = isal_zlib._ParallelCompress(_ROOM, LEVEL)
    for at in range(0, len(view), CONTENT):
        first, others = view[at : at + 1], view[at + 1 : at + CONTENT]
        packed, checksum = packer.compress_and_crc(others, first)  # the lock is let go once
        checksum = isal_zlib.crc32_combine(isal_zlib.crc32(first), checksum, len(others))
        length = HEADER + len(_STORED) + 1 + len(packed) + len(_LAST) + 8
        yield _START + (length - 1).to_bytes(2, "little") + _STORED + first
        yield packed
        yield _LAST + checksum.to_bytes(4, "little") + (1 + len(others)).to_bytes(4, "little")


class BgzfWriter(io.BufferedIOBase):
    """Packs what is written, in threads, and writes it to a file in order; the same bytes for any number of threads.

    Closing it writes the end; the file stays open.
    """

    def __init__(self, file: BinaryIO) -> None:
        super().__init__()
        self.file = file
        self._waiting = bytearray()
        self._workers = workers_for(WORKERS)
        from concurrent.futures import ThreadPoolExecutor  # late: most files are of another kind

        self._pool = ThreadPoolExecutor(self._workers)
        self._under_way: deque[Future[bytes]] = deque()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Data that are read-only are not copied: nobody may change them any more."""
        view, size = memoryview(data).cast("B"), GROUP * CONTENT
        at = 0
        while at < len(view):
            if view.readonly and not self._waiting and len(view) - at >= size:
                self._pack(view[at : at + size])
                at += size
                continue
            some = view[at : at + size - len(self._waiting)]
            self._waiting += some
            at += len(some)
            if len(self._waiting) == size:
                self._pack(self._waiting)
                self._waiting = bytearray()
        return len(view)

    def _pack(self, some: bytearray | memoryview) -> None:
        self._under_way.append(self._pool.submit(packed_blocks, some))
        while len(self._under_way) > 2 * self._workers:
            self.file.write(self._under_way.popleft().result())

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._pack(self._waiting)
            while self._under_way:
                self.file.write(self._under_way.popleft().result())
            self.file.write(END_OF_BGZF)
        finally:
            self._pool.shutdown(cancel_futures=True)
            super().close()
