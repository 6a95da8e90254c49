"""Host memory with the addresses of a device: allocations, ranges that belong to the host, and the memory of arrays."""

import ctypes
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..forking import hold_at_fork
from ..runtime.written_bytes import WrittenBytes

ALIGNMENT = 512
"""Bytes: alignment of allocations of the CUDA driver."""
UNDEFINED = 0xCD
"""The bytes of new memory: the driver leaves its contents undefined."""


class Pointer(NamedTuple):
    """The memory of an array argument. low: the lowest address of its elements; size: bytes from there to the end of the last."""

    address: int
    low: int
    size: int


def pointer_to(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Pointer:
    """Return the memory of an array with strides in bytes."""
    if 0 in shape:
        return Pointer(address, address, 0)
    low = high = 0
    for n, step in zip(shape, strides, strict=True):
        if step > 0:
            high += (n - 1) * step
        else:
            low += (n - 1) * step
    return Pointer(address, address + low, high - low + itemsize)


@dataclass
class AddressSpace:
    """Ranges of host memory by their first address. An address of the device is the host's address of the same byte."""

    sizes: dict[int, int] = field(default_factory=dict)
    owners: dict[int, Any] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    used: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        hold_at_fork(self.lock)
        self.written = WrittenBytes(self.range_of)

    def allocate(self, size: int) -> int:
        """Return the address of new memory. Raises MemoryError."""
        start, owner = self.new_memory(size)
        ctypes.memset(start, UNDEFINED, size)
        with self.lock:
            self.owners[start] = owner
            self._add(start, size)
        self.written.allocated(start, size)
        return start

    def new_memory(self, size: int) -> tuple[int, Any]:
        """Return the address of new memory, and the object whose end frees it. Raises MemoryError."""
        owner = np.empty(size + ALIGNMENT, np.uint8)
        return -(-owner.ctypes.data // ALIGNMENT) * ALIGNMENT, owner

    def register(self, start: int, size: int) -> bool:
        """Add memory of the host; False if it overlaps another range."""
        with self.lock:
            if self._find(start) or self._find(start + max(size, 1) - 1):
                return False
            self._add(start, size)
        return True

    def remove(self, start: int) -> bool:
        """Remove a range, and free its memory if it was allocated; False if none begins at this address."""
        with self.lock:
            self.written.freed(start)
            size = self.sizes.pop(start, None)
            if size is None:
                return False
            del self.starts[bisect_left(self.starts, start)]
            self.owners.pop(start, None)
            self.used -= size
        return True

    def range_of(self, address: int) -> tuple[int, int] | None:
        """Return start and size of the range that contains an address; None outside of all ranges."""
        with self.lock:
            return self._find(address)

    def contains(self, address: int, size: int) -> bool:
        """Return whether all bytes belong to one range."""
        place = self.range_of(address)
        return not size or (place is not None and address + size <= place[0] + place[1])

    def _add(self, start: int, size: int) -> None:
        self.sizes[start] = size
        insort(self.starts, start)
        self.used += size

    def _find(self, address: int) -> tuple[int, int] | None:
        number = bisect_right(self.starts, address) - 1
        if number < 0:
            return None
        start = self.starts[number]
        size = self.sizes[start]
        return (start, size) if address < start + max(size, 1) else None
