"""Arrays that share memory: their connected ranges of addresses, and copies of each range."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Buffer

ALIGNMENT = 256
"""Bytes: the addresses of a copy and of its original have the same remainder."""


@dataclass(frozen=True)
class MemoryRange:
    """Connected memory of arrays. memory: its bytes; valid as long as the arrays. offsets: the bytes from its begin to each array."""

    memory: Buffer
    offsets: Mapping[str, int]

    @property
    def lead(self) -> int:
        """Bytes from the last aligned address to the range."""
        return int(self.memory.ctypes.data % ALIGNMENT)


def ranges_of(arrays: Mapping[str, Buffer]) -> list[MemoryRange]:
    """Return the memory of all arrays with elements, by address."""
    bounds = {name: np.lib.array_utils.byte_bounds(array) for name, array in arrays.items() if array.size}
    ranges = []
    waiting = sorted(bounds, key=lambda name: bounds[name])
    while waiting:
        begin, end = bounds[waiting[0]]
        offsets = dict[str, int]()
        while waiting and bounds[waiting[0]][0] < end:
            name = waiting.pop(0)
            offsets[name] = bounds[name][0] - begin
            end = max(end, bounds[name][1])
        memory: Any = (ctypes.c_ubyte * (end - begin)).from_address(begin)
        ranges.append(MemoryRange(np.frombuffer(memory, np.uint8), offsets))
    return ranges


def copies_of(arrays: Mapping[str, Buffer], changed: Collection[str]) -> dict[str, Buffer]:
    """Return the arrays over copies of their memory, which overlap as the arrays do. An array without bytes of a changed one is
    returned as it is. Arrays with negative strides are not accepted."""
    result = dict(arrays)
    for common in ranges_of(arrays):
        if not any(name in changed for name in common.offsets):
            continue
        size = common.memory.size
        memory = np.empty(size + ALIGNMENT, np.uint8)
        lead = (common.lead - memory.ctypes.data) % ALIGNMENT
        memory[lead : lead + size] = common.memory
        for name, offset in common.offsets.items():
            array = arrays[name]
            result[name] = np.ndarray(array.shape, array.dtype, memory, lead + offset, array.strides)
    return result
