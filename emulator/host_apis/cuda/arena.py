"""The memory of all allocations of a program, from one fixed address on, and the table in which kernels find the allocation of a
pointer that they read from memory."""

import ctypes
import mmap
import threading
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...cuda_cpp.addresses import Bytes, memory_at
from ...driver.memory import AddressSpace
from ...forking import hold_at_fork
from ...ir.access import FREED, OUTSIDE
from ...llvmir.allocations import ARENA, GRANULE

_CHUNK = 1 << 24
"""Bytes by which the arena grows."""
_NORESERVE, _FIXED_NOREPLACE, _DONTNEED = 0x4000, 0x10_0000, 4
"""Flags of Linux's `mmap`, and an advice of its `madvise`."""


@dataclass
class Arena:
    """Allocations in ascending order of their addresses. A distance of at least GRANULE is free behind each.

    mapped: bytes of host memory from ARENA on. rows: start and size of the allocation of each granule, and of that behind it; the size
    is 0 outside of allocations.
    """

    starts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    mapped: int = 0
    rows: npt.NDArray[np.int64] = field(default_factory=lambda: _outside(1))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        hold_at_fork(self.lock)

    @property
    def bytes(self) -> int:
        """The bytes from ARENA to the granule behind the last allocation and its distance, a multiple of GRANULE."""
        return _granules(self.starts[-1] + self.sizes[-1] - ARENA + GRANULE) * GRANULE if self.starts else GRANULE

    def memory(self) -> Bytes:
        """Return the bytes of all allocations and those between them."""
        return memory_at(ARENA, self.bytes) if self.mapped else np.zeros(GRANULE, np.uint8)

    def table(self) -> npt.NDArray[np.int64]:
        """Return `rows` as int64[rows * 2]. The last row is of no allocation."""
        return self.rows.reshape(-1)

    def allocate(self, size: int) -> int:
        """Return the address of new memory. Raises MemoryError."""
        with self.lock:
            offset = self.bytes
            missing = offset + size + 2 * GRANULE - self.mapped
            if missing > 0:
                self._grow(-(-missing // _CHUNK) * _CHUNK)
            start = ARENA + offset
            self.starts.append(start)
            self.sizes.append(size)
            self.rows[offset // GRANULE : _granules(offset + size) + 1] = start, size
        return start

    def _grow(self, size: int) -> None:
        function = ctypes.CDLL(None).mmap
        function.restype = ctypes.c_size_t
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | _FIXED_NOREPLACE
        end = ARENA + self.mapped
        place = ctypes.c_void_p(end), ctypes.c_size_t(size)
        if function(*place, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, ctypes.c_size_t(0)) != end:
            raise MemoryError(size)
        self.mapped += size
        self.rows = np.concatenate([self.rows, _outside(self.mapped // GRANULE - len(self.rows))])

    def free(self, start: int) -> None:
        """Free an allocation."""
        with self.lock:
            number = bisect_left(self.starts, start)
            size = self.sizes.pop(number)
            del self.starts[number]
            self.rows[(start - ARENA) // GRANULE : _granules(start - ARENA + size) + 1] = start + FREED, 0
            first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
            if (whole := (start + size - first) // mmap.PAGESIZE * mmap.PAGESIZE) > 0:
                ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(whole), _DONTNEED)


def _outside(count: int) -> npt.NDArray[np.int64]:
    return np.tile(np.array([OUTSIDE, 0]), (count, 1))


def _granules(size: int) -> int:
    return -(-size // GRANULE)


THE_ARENA = Arena()
"""That of this process."""


class _Block:
    """The memory of an allocation; its end frees it."""

    def __init__(self, size: int) -> None:
        self.start = THE_ARENA.allocate(size)

    def __del__(self) -> None:
        if hasattr(self, "start"):
            THE_ARENA.free(self.start)


class ArenaSpace(AddressSpace):
    """Ranges of host memory, of which allocations are in the arena."""

    def new_memory(self, size: int) -> tuple[int, Any]:
        block = _Block(size)
        return block.start, block
