"""Copies of arrays that share memory: each connected range of addresses is copied once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from .arrays import Buffer

ALIGNMENT = 256
"""Bytes: the addresses of a copy and of its original have the same remainder."""


def copies_of(arrays: Mapping[str, Buffer], changed: Collection[str]) -> dict[str, Buffer]:
    """Return the arrays over copies of their memory, which overlap as the arrays do. An array without bytes of a changed one is
    returned as it is."""
    ranges = {name: np.lib.array_utils.byte_bounds(array) for name, array in arrays.items() if array.size}
    result = {name: array for name, array in arrays.items() if name not in ranges}
    waiting = sorted(ranges, key=lambda name: ranges[name])
    while waiting:
        begin, end = ranges[waiting[0]]
        group = list[str]()
        while waiting and ranges[waiting[0]][0] < end:
            group.append(waiting.pop(0))
            end = max(end, ranges[group[-1]][1])
        if not any(name in changed for name in group):
            result |= {name: arrays[name] for name in group}
            continue
        memory = np.empty(end - begin + ALIGNMENT, np.uint8)
        lead = (begin - memory.ctypes.data) % ALIGNMENT
        views = dict[str, Buffer]()
        for name in group:
            array, offset = arrays[name], lead + ranges[name][0] - begin
            views[name] = np.ndarray(array.shape, array.dtype, memory, offset, array.strides)
        for name in group:
            views[name][...] = arrays[name]
        result |= views
    return result
