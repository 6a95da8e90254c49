# mypy: disallow-untyped-decorators=False
"""How the accesses of a warp to global memory become requests, sectors and lines.

The rules are measured: on an H200 they give what Nsight Compute counts
(`l1tex__t_{requests,sectors}_pipe_lsu_mem_global_op_{ld,st,atom,red}`) for every row of
tests/machine/h200_access_patterns.csv. Sizes, sectors and lines are powers of two, no access is wider than a
sector, and buffers begin at a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Index = npt.NDArray[np.int32] | npt.NDArray[np.int64]
Active = npt.NDArray[np.bool_]
Totals = npt.NDArray[np.int64]
Counter = Callable[[Index, Active, int, int, int, Totals], None]


class Traffic(NamedTuple):
    """What one warp's access to global memory costs."""

    requests: int
    sectors: int
    lines: int


@njit(cache=True)
def log2(power: int) -> int:
    """The exponent of a power of two."""
    exponent = 0
    while (1 << exponent) < power:
        exponent += 1
    return exponent


@njit(cache=True)
def consecutive(index: Any, active: Any, warp: int) -> bool:
    """Whether all lanes of the warp are active and each index is its predecessor's plus one."""
    first = index[warp, 0]
    wrong = 0
    for lane in range(index.shape[1]):  # no way out of the loop, so that it runs on vector units
        wrong |= (index[warp, lane] - first - lane) | (np.int64(active[warp, lane]) ^ 1)
    return wrong == 0


@njit(cache=True)
def ascend(values: Any, count: int) -> bool:
    """Whether none of the first `count` of `values` is below its predecessor."""
    falls = 0
    for i in range(1, count):
        falls += values[i] < values[i - 1]
    return falls == 0


@njit(cache=True)
def occurred(values: Any, i: int, ascending: bool) -> bool:
    """Whether values[i] is among those before it; `ascending`: what `ascend` says of them."""
    if ascending:
        return i > 0 and values[i] == values[i - 1]
    matches = 0
    for j in range(i):
        matches += values[j] == values[i]
    return matches > 0


@njit(cache=True)
def distinct(values: Any, count: int) -> int:
    """How many different numbers the first `count` of `values` hold."""
    ascending = ascend(values, count)
    found = 0
    for i in range(count):
        found += not occurred(values, i, ascending)
    return found


@njit(cache=True)
def count(index: Any, active: Any, size: int, sector: int, line: int, out: Any) -> None:
    """Add the requests, sectors and lines of loads or stores to `out`.

    index: int32 or int64[warps, 32], the elements accessed. active: bool[warps, 32]; other lanes are ignored.
    size, sector, line: bytes. out: int64[3].
    A warp with an active lane makes one request; it moves each sector and line touched once.
    """
    to_sector, to_line = log2(sector // size), log2(line // sector)
    sectors, lines = np.empty(32, np.int64), np.empty(32, np.int64)
    for warp in range(index.shape[0]):
        if consecutive(index, active, warp):
            first, last = np.int64(index[warp, 0]) >> to_sector, np.int64(index[warp, 31]) >> to_sector
            out[0] += 1
            out[1] += last - first + 1
            out[2] += (last >> to_line) - (first >> to_line) + 1
            continue
        used = 0
        for lane in range(32):
            if active[warp, lane]:
                sectors[used] = np.int64(index[warp, lane]) >> to_sector
                lines[used] = sectors[used] >> to_line
                used += 1
        if used:
            out[0] += 1
            out[1] += distinct(sectors, used)
            out[2] += distinct(lines, used)


@njit(cache=True)
def _count_in_turns(index: Any, active: Any, size: int, sector: int, line: int, exact: bool, out: Any) -> None:
    """Lanes that are taken to have one address go in turns, by ascending lane; a turn touches its sectors anew."""
    to_sector, to_line = log2(sector // size), log2(line // sector)
    keys, touched, lines = np.empty(32, np.int64), np.empty(32, np.int64), np.empty(32, np.int64)
    for warp in range(index.shape[0]):
        used = 0
        for lane in range(32):
            if active[warp, lane]:
                element = np.int64(index[warp, lane])
                keys[used] = element if exact else reduction_key(element * size >> 2)
                turn = 0
                for earlier in range(used):
                    turn += keys[earlier] == keys[used]
                touched[used] = (element >> to_sector) * 32 + turn
                lines[used] = element >> to_sector >> to_line
                used += 1
        if used:
            out[0] += 1
            out[1] += distinct(touched, used)
            out[2] += distinct(lines, used)


@njit(cache=True)
def reduction_key(word: Any) -> Any:
    """Nine bits by which a reduction tells 4-byte words apart, so that a few different ones look the same.

    A fit: two measured rows show that words 512 apart look the same. How bits 10 and up enter rests on one row,
    which 7 % of the ways to fold bits 10-13 would explain; this is the plainest of them.
    """
    return (word ^ (word >> 11)) & 511


@njit(cache=True)
def count_atomic(index: Any, active: Any, size: int, sector: int, line: int, out: Any) -> None:
    """Add the requests, sectors and lines of atomics that return a value; arguments as for `count`.

    Lanes at one address go one after another, so a sector counts as often as its most wanted address.
    """
    _count_in_turns(index, active, size, sector, line, True, out)


@njit(cache=True)
def count_reduction(index: Any, active: Any, size: int, sector: int, line: int, out: Any) -> None:
    """Add the requests, sectors and lines of atomics whose result is unused; arguments as for `count`.

    As `count_atomic`, save that addresses are compared by `reduction_key`: a lane whose address looks like an
    earlier lane's goes later, and its sector counts again if others of it went before.
    """
    _count_in_turns(index, active, size, sector, line, False, out)


def of_warp(counter: Counter, lanes: Sequence[int], size: int, sector: int = 32, line: int = 128) -> Traffic:
    """What `counter` (count, count_atomic, count_reduction) says of one warp.

    lanes: the element of each of the 32 lanes, -1 where the lane is inactive.
    """
    index, out = np.array([lanes], np.int64), np.zeros(3, np.int64)
    counter(index, index >= 0, size, sector, line, out)
    return Traffic(*(int(v) for v in out))
