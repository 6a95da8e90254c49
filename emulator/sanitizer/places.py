"""The text that names a thread in a diagnostic: block, thread, warp, lane."""

from __future__ import annotations

Dim3 = tuple[int, int, int]


def coordinates(linear: int, extent: Dim3) -> Dim3:
    """(x, y, z) of a linear index."""
    x, y, _ = extent
    return (linear % x, linear // x % y, linear // (x * y))


def where(block: int, thread: int, grid: Dim3, shape: Dim3, others: int) -> str:
    """One line: the block, the thread, and how many lanes of its warp did the same."""
    more = "" if not others else f"; {others} more lane{'s' if others > 1 else ''} of this warp too"
    position = f"warp {thread // 32} lane {thread % 32}"
    return f"block {coordinates(block, grid)}, thread {coordinates(thread, shape)} = {position}{more}"
