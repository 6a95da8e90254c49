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
def _count_in_packets(index: Any, active: Any, size: int, sector: int, line: int, exact: bool, out: Any) -> None:
    """Lanes of a sector share a packet, unless that would put a lane before another that may have its address.

    Lane by lane: a packet is open for each sector met. A lane joins the first packet of its sector that is newer
    than every packet with a lane of its key; where there is none, it opens one. Each packet moves its sector.
    """
    to_sector, to_line = log2(sector // size), log2(line // sector)
    keys, sectors, packets, lines = np.empty((4, 32), np.int64)
    for warp in range(index.shape[0]):
        used, opened = 0, 0
        for lane in range(32):
            if active[warp, lane]:
                element = np.int64(index[warp, lane])
                keys[used] = element if exact else reduction_key(element * size >> 2)
                sectors[used] = element >> to_sector
                lines[used] = sectors[used] >> to_line
                newest, packet = -1, opened
                for earlier in range(used):
                    if keys[earlier] == keys[used]:
                        newest = max(newest, packets[earlier])
                for earlier in range(used):
                    if sectors[earlier] == sectors[used] and packets[earlier] > newest:
                        packet = min(packet, packets[earlier])
                opened = max(opened, packet + 1)
                packets[used] = packet
                used += 1
        if used:
            out[0] += 1
            out[1] += opened
            out[2] += distinct(lines, used)


REDUCTION_FOLDS = (0x2F6F, 0x55DA)
"""Bits of a 128-byte line's number whose parity enters the key of a reduction, one mask a bit of the key. The masks
are measured for lines within 4 MiB of each other; further apart, addresses are no longer the ones that lanes use."""


@njit(cache=True)
def _parity(bits: Any) -> Any:
    for shift in (32, 16, 8, 4, 2, 1):
        bits ^= bits >> shift
    return bits & 1


@njit(cache=True)
def reduction_key(word: Any) -> Any:
    """Seven bits by which a reduction tells 4-byte words apart: the place in the line, and two parities of the line.

    Of 890 reductions measured on an H200 (tests/machine/h200_reductions.csv and the rows in
    tests/machine/h200_access_patterns.csv) this gives all but 4, each of which counts one sector more.
    """
    line = word >> 5
    return (word & 31) | _parity(line & REDUCTION_FOLDS[0]) << 5 | _parity(line & REDUCTION_FOLDS[1]) << 6


@njit(cache=True)
def count_atomic(index: Any, active: Any, size: int, sector: int, line: int, out: Any) -> None:
    """Add the requests, sectors and lines of atomics that return a value; arguments as for `count`.

    Lanes at one address go one after another, so a sector counts as often as its most wanted address.
    """
    _count_in_packets(index, active, size, sector, line, True, out)


@njit(cache=True)
def count_reduction(index: Any, active: Any, size: int, sector: int, line: int, out: Any) -> None:
    """Add the requests, sectors and lines of atomics whose result is unused; arguments as for `count`.

    As `count_atomic`, save that addresses are compared by `reduction_key`: a lane that seems to have the address of
    another sector's lane must not go before it, which may take a packet more.
    """
    _count_in_packets(index, active, size, sector, line, False, out)


def of_warp(counter: Counter, lanes: Sequence[int], size: int, sector: int = 32, line: int = 128) -> Traffic:
    """What `counter` (count, count_atomic, count_reduction) says of one warp.

    lanes: the element of each of the 32 lanes, -1 where the lane is inactive.
    """
    index, out = np.array([lanes], np.int64), np.zeros(3, np.int64)
    counter(index, index >= 0, size, sector, line, out)
    return Traffic(*(int(v) for v in out))
