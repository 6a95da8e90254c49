"""Bulk copies between global and shared memory: one function of interpreted and of compiled code."""

from __future__ import annotations

from ..language.hints import Global, i64, u8, u32
from ..native import native

UNIT = 16
"""Bytes of a unit of a bulk copy."""


@native
def copy_units(
    shared: Global[u32],
    index: i64,
    capacity: i64,
    memory: Global[u32],
    owned: Global[u8],
    size: i64,
    offset: i64,
    bytes: i64,
) -> i64:
    """Copy bytes from global to shared memory; to global memory if they are negative.

    index: in the shared memory of all blocks, -1 for a wild address; capacity: bytes of the block from there. size, offset: of global
    memory, in bytes. Return -1; of a wild or misaligned address 0 in shared, 1 in global memory.
    """
    count = abs(bytes)
    if count == 0:
        return i64(-1)
    if index < 0 or capacity % UNIT != 0 or capacity < count:
        return i64(0)
    if offset < 0 or offset % UNIT != 0 or offset + count > size:
        return i64(1)
    for n in range(count):
        if owned[offset + n] == u8(0):
            return i64(1)
    for n in range(count // 4):
        if bytes > 0:
            shared[index // 4 + n] = memory[offset // 4 + n]
        else:
            memory[offset // 4 + n] = shared[index // 4 + n]
    return i64(-1)
