"""Arrays that share memory: their connected ranges of addresses, copies of each range, and refusals."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import LaunchError
from .arrays import Buffer

if TYPE_CHECKING:
    from ..sanitizer.races.shadow import OverlappingArrays

ALIGNMENT = 256
"""Bytes: the addresses of a copy and of its original have the same remainder."""


class CommonMemory(np.ndarray[Any, Any]):
    """Bytes that several arrays share. A record of a launch contains them once."""


@dataclass(frozen=True)
class MemoryRange:
    """Connected memory of arrays. memory: its bytes; valid as long as the arrays. offsets: the bytes from its begin to each array."""

    memory: Buffer
    offsets: Mapping[str, int]

    @property
    def lead(self) -> int:
        """Bytes from the last aligned address to the range."""
        return int(self.memory.ctypes.data % ALIGNMENT)


def common_memory_of(array: Buffer) -> CommonMemory | None:
    """Return the common memory of which an array is a view; None for other arrays."""
    base: Any = array.base
    while base is not None and not isinstance(base, CommonMemory):
        base = getattr(base, "base", None)
    return base if isinstance(base, CommonMemory) else None


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


def overlapping_arrays(arrays: Mapping[str, Buffer]) -> list[OverlappingArrays]:
    """Return the arrays that overlap another one, by memory. arrays: as a request has them, without gaps."""
    from ..sanitizer.races.shadow import OverlappingArrays  # late: few launches are checked

    result = []
    for shared in ranges_of(arrays):
        if len(shared.offsets) > 1:
            sizes = {name: arrays[name].itemsize * math.prod(arrays[name].shape[1:]) for name in shared.offsets}
            unit = math.gcd(*sizes.values(), *shared.offsets.values())
            starts = {name: offset // unit for name, offset in shared.offsets.items()}
            units = {name: size // unit for name, size in sizes.items()}
            result.append(OverlappingArrays(-(-shared.memory.size // unit), starts, units))
    return result


def copies_of(arrays: Mapping[str, Buffer], changed: Collection[str]) -> dict[str, Buffer]:
    """Return the arrays over copies of their memory, which overlap as the arrays do. An array without bytes of a changed one is
    returned as it is. Arrays with negative strides are not accepted."""
    result = dict(arrays)
    for common in ranges_of(arrays):
        if not any(name in changed for name in common.offsets):
            continue
        size = common.memory.size
        memory = CommonMemory(size + ALIGNMENT, np.uint8)
        lead = (common.lead - memory.ctypes.data) % ALIGNMENT
        memory[lead : lead + size] = common.memory
        for name, offset in common.offsets.items():
            array = arrays[name]
            result[name] = np.ndarray(array.shape, array.dtype, memory, lead + offset, array.strides)
    return result


def check_overlap(args: Mapping[str, Any], changed: Iterable[str]) -> None:
    """Raise LaunchError if a written array shares memory with another argument: a launch works on copies, so the other
    would not change."""
    arrays = {name: value for name, value in args.items() if isinstance(value, np.ndarray)}
    written = set(changed)
    for (a_name, a), (b_name, b) in combinations(arrays.items(), 2):
        if (a_name in written or b_name in written) and np.may_share_memory(a, b) and _share(a, b):
            written_name = a_name if a_name in written else b_name
            raise LaunchError(
                f"{a_name} and {b_name} share memory, and the kernel writes {written_name}: give one of them as a copy"
            )


def check_writeable(args: Mapping[str, Any], changed: Iterable[str]) -> None:
    """Raise LaunchError for a read-only array that a launch in place would write."""
    for name in changed:
        if isinstance(array := args.get(name), np.ndarray) and not array.flags.writeable:
            raise LaunchError(f"{name} is read only, and the kernel writes it: give a copy")


def _share(a: Buffer, b: Buffer) -> bool:
    most_work: Any = 1 << 20  # documented by NumPy, but missing from its type stubs
    try:
        return np.shares_memory(a, b, max_work=most_work)
    except np.exceptions.TooHardError:
        return True
