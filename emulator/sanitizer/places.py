"""Text of a thread in a diagnostic: block, thread, warp, lane."""

from collections.abc import Iterable

Dim3 = tuple[int, int, int]


def coordinates(linear: int, extent: Dim3) -> Dim3:
    """Return (x, y, z) of a linear index."""
    x, y, _ = extent
    return (linear % x, linear // x % y, linear // (x * y))


def in_one_cluster(blocks: Iterable[int], grid: Dim3, cluster: Dim3) -> bool:
    """Return whether blocks are in one cluster of so many blocks by axis. blocks: linear numbers in the grid."""
    places = (coordinates(block, grid) for block in blocks)
    return len({tuple(n // size for n, size in zip(place, cluster, strict=True)) for place in places}) == 1


def thread_text(block: int, thread: int, grid: Dim3, shape: Dim3, more_lanes: int) -> str:
    """Return one line: the block, the thread, and the number of other lanes of its warp with the same finding."""
    more = "" if not more_lanes else f"; {more_lanes} more lane{'s' if more_lanes > 1 else ''} of this warp too"
    position = f"warp {thread // 32} lane {thread % 32}"
    return f"block {coordinates(block, grid)}, thread {coordinates(thread, shape)} = {position}{more}"
