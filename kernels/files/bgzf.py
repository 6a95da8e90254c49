"""BGZF: gzip in blocks that stand for themselves, so that threads pack and unpack them side by side."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias, cast

from isal import igzip_lib, isal_zlib

from ..pipeline import workers_for

if TYPE_CHECKING:  # the door is opened by commands that need no arrays too
    from concurrent.futures import Future

    import numpy as np
    import numpy.typing as npt

    from .deflate import Buffer

Bytes: TypeAlias = "npt.NDArray[np.uint8]"

HEADER = 18
"""Bytes of a block before its data."""
END_OF_BGZF = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
MOST = 1 << 16
"""Bytes that a block unpacks to at most."""
CONTENT = 0xFF00
"""Bytes that a block is made of here: what cannot be packed fits too."""
GROUP = 16
"""Blocks that a thread packs at a time."""
WORKERS = 8
"""Threads that pack at most."""

DeflateError = cast(type[Exception], igzip_lib.IsalError)
"""Of data that are no gzip, or whose checksum is wrong."""

_START = bytes.fromhex("1f8b08040000000000ff060042430200")
_LAST = bytes.fromhex("0300")
"""An empty part of packed data after which none follows."""
_STORED = bytes.fromhex("000100feff")
"""Before a single byte that is stored as it is."""
_ROOM = MOST + (MOST >> 2)
"""Bytes that a block is packed to at most."""


def begins_block(data: bytes) -> bool:
    """Whether they begin with a block of BGZF."""
    return data[:4] == b"\x1f\x8b\x08\x04" and data[12:14] == b"BC"


class Blocks(NamedTuple):
    """Whole blocks that follow each other. ends: of each, in the data. totals: bytes that the blocks up to each say they hold."""

    data: memoryview
    ends: npt.NDArray[np.int64]
    totals: npt.NDArray[np.int64]


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


def jobs(groups: Iterable[Blocks], size: int, room: int) -> Iterator[Job]:
    """What is to be done to unpack groups of whole blocks into buffers of about `size` bytes behind `room` others, which
    are left as they are. Raises ValueError."""
    import numpy as np

    size = room + max(size, MOST)
    buffer, at = np.empty(size, np.uint8), room
    for data, ends, totals in groups:
        if np.diff(totals, prepend=0).max(initial=0) > MOST:
            raise ValueError("a block of BGZF does not hold what it says")
        begin, done = 0, 0
        while (fit := int(np.searchsorted(totals, done + size - at, "right"))) < len(totals):
            end, total = (int(ends[fit - 1]), int(totals[fit - 1])) if fit else (0, 0)
            full = at + total - done
            yield Job(data[begin:end], buffer[at:full], buffer[:full])
            buffer, at, begin, done = np.empty(size, np.uint8), room, end, total
        full = at + int(totals[-1]) - done
        yield Job(data[begin:], buffer[at:full])
        at = full
    if at > room:
        yield Job(memoryview(b""), buffer[at:at], buffer[:at])


def packed_blocks(data: bytes | bytearray | memoryview) -> bytes:
    """Data as blocks, without the empty one that ends a file."""
    view, size = memoryview(data), GROUP * CONTENT
    groups = [b"".join(_blocks(view[at : at + size])) for at in range(0, len(view), size)]
    return groups[0] if len(groups) == 1 else b"".join(groups)


def _blocks(view: memoryview) -> Iterator[Buffer]:
    """The first byte of a block is stored, and what is packed of the others stands behind it."""
    from .deflate import pack_each  # late: most files are of another kind

    for number, (packed, checksum) in enumerate(pack_each(view, CONTENT, _ROOM)):
        at = number * CONTENT
        length = HEADER + len(_STORED) + 1 + len(packed) + len(_LAST) + 8
        yield _START + (length - 1).to_bytes(2, "little") + _STORED + view[at : at + 1]
        yield packed
        yield _LAST + checksum.to_bytes(4, "little") + min(CONTENT, len(view) - at).to_bytes(4, "little")


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
