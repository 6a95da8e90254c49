"""Native search for the ends of BGZF blocks."""

from __future__ import annotations

import numpy as np
from simtbed import Global, i64, u8
from simtbed.native import native

from .bgzf import HEADER, Blocks


def whole_blocks(data: bytes) -> Blocks:
    """Return the complete blocks at the start of the data."""
    ends, contents = (np.empty(len(data) // HEADER, np.int64) for _ in range(2))
    number = int(scan_blocks(np.frombuffer(data, np.uint8), len(data), ends, contents))
    length = int(ends[number - 1]) if number else 0
    return Blocks(memoryview(data)[:length], ends[:number], np.cumsum(contents[:number]))


@native
def scan_blocks(data: Global[u8], length: i64, ends: Global[i64], contents: Global[i64]) -> i64:
    """Find complete blocks; return their number."""
    count = i64(0)
    at = i64(0)
    while length - at >= HEADER:
        if data[at] != 0x1F or data[at + 1] != 0x8B or data[at + 2] != 8 or data[at + 3] != 4:
            return count
        if data[at + 12] != 66 or data[at + 13] != 67:
            return count
        end = at + i64(data[at + 16]) + (i64(data[at + 17]) << 8) + 1
        if end - at <= HEADER or end > length:
            return count
        content = i64(0)
        for i in range(4):
            content |= i64(data[end - 4 + i64(i)]) << (8 * i64(i))
        at = end
        ends[count] = at
        contents[count] = content
        count += 1
    return count
