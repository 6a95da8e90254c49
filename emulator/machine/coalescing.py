"""Coalescing rules: requests, sectors and cache lines of a warp's access to global memory.

The rules are measured: on an H200 they equal Nsight Compute's counters
(`l1tex__t_{requests,sectors}_pipe_lsu_mem_global_op_{ld,st,atom,red}`) for every row of
tests/machine/h200_access_patterns.csv. Sizes, sectors and lines are powers of two, no access is wider than a
sector, and buffers begin at a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, Local, i64
from ..language.intrinsics import WARP_SIZE
from ..native import native
from .device import LINE_BYTES, SECTOR_BYTES, log2

Index = npt.NDArray[Any]
Active = npt.NDArray[np.bool_]
Totals = npt.NDArray[np.int64]
Counter = Callable[[Index, Active, int, int, int, Totals], None]


class Traffic(NamedTuple):
    """The cost of one warp's access to global memory."""

    requests: int
    sectors: int
    lines: int


def flat(index: Index, active: Active) -> tuple[npt.NDArray[np.int64], Active, int]:
    """Return elements and active lanes as flat arrays for native functions, and the number of warps."""
    return np.ascontiguousarray(index, np.int64).reshape(-1), np.ascontiguousarray(active).reshape(-1), len(index)


@st.device
def consecutive(index: Global[i64], active: Global[bool], warp: i64) -> bool:
    """Whether all lanes of the warp are active and each index is its predecessor's plus one."""
    first = index[WARP_SIZE * warp]
    wrong = i64(0)
    for lane in range(i64(WARP_SIZE)):  # no early exit, so that the loop is vectorised
        wrong |= (index[WARP_SIZE * warp + lane] - first - lane) | i64(not active[WARP_SIZE * warp + lane])
    return wrong == 0


@st.device
def ascend(values: Local[i64], count: i64) -> bool:
    """Whether none of the first `count` of `values` is below its predecessor."""
    falls = i64(0)
    for i in range(1, count):
        falls += i64(values[i] < values[i - 1])
    return falls == 0


@st.device
def occurred(values: Local[i64], i: i64, ascending: bool) -> bool:
    """Return whether values[i] occurs before i; `ascending`: the result of `ascend`."""
    if ascending:
        return i > 0 and values[i] == values[i - 1]
    matches = i64(0)
    for j in range(i):
        matches += i64(values[j] == values[i])
    return matches > 0


@st.device
def distinct(values: Local[i64], count: i64) -> i64:
    """Return the number of distinct values among the first `count`."""
    ascending = ascend(values, count)
    total = i64(0)
    for i in range(count):
        total += i64(not occurred(values, i, ascending))
    return total


@native
def count_warps(
    index: Global[i64], active: Global[bool], warps: i64, to_sector: i64, to_line: i64, out: Global[i64]
) -> None:
    sectors = st.local(i64, WARP_SIZE)
    lines = st.local(i64, WARP_SIZE)
    for warp in range(warps):
        if consecutive(index, active, warp):
            first = index[WARP_SIZE * warp] >> to_sector
            last = index[WARP_SIZE * warp + WARP_SIZE - 1] >> to_sector
            out[0] += 1
            out[1] += last - first + 1
            out[2] += (last >> to_line) - (first >> to_line) + 1
            continue
        used = i64(0)
        for lane in range(i64(WARP_SIZE)):
            if active[WARP_SIZE * warp + lane]:
                sectors[used] = index[WARP_SIZE * warp + lane] >> to_sector
                lines[used] = sectors[used] >> to_line
                used += 1
        if used != 0:
            out[0] += 1
            out[1] += distinct(sectors, used)
            out[2] += distinct(lines, used)


def count(index: Index, active: Active, size: int, sector: int, line: int, out: Totals) -> None:
    """Add the requests, sectors and lines of loads or stores to `out`.

    index: integers[warps, 32], the elements accessed. active: bool[warps, 32]; other lanes are ignored.
    size, sector, line: bytes. out: int64[3].
    A warp with an active lane makes one request and moves each distinct sector and line once.
    """
    count_warps(*flat(index, active), log2(sector // size), log2(line // sector), out)


@native
def count_packets(
    index: Global[i64],
    active: Global[bool],
    warps: i64,
    size: i64,
    to_sector: i64,
    to_line: i64,
    out: Global[i64],
) -> None:
    """Count atomics in packets. Lanes of a sector share a packet, unless this would reorder lanes with equal keys.

    A packet belongs to one sector. Lane by lane, a lane joins the first packet of its sector that is newer than
    every packet with a lane of its key; if there is none, it opens one. Each packet moves its sector.
    """
    keys = st.local(i64, WARP_SIZE)
    sectors = st.local(i64, WARP_SIZE)
    packets = st.local(i64, WARP_SIZE)
    lines = st.local(i64, WARP_SIZE)
    for warp in range(warps):
        used = i64(0)
        opened = i64(0)
        for lane in range(i64(WARP_SIZE)):
            if active[WARP_SIZE * warp + lane]:
                element = index[WARP_SIZE * warp + lane]
                keys[used] = atomic_key(element * size >> 2)
                sectors[used] = element >> to_sector
                lines[used] = sectors[used] >> to_line
                newest = i64(-1)
                packet = opened
                for earlier in range(used):
                    if keys[earlier] == keys[used]:
                        newest = max(newest, packets[earlier])
                for earlier in range(used):
                    if sectors[earlier] == sectors[used] and packets[earlier] > newest:
                        packet = min(packet, packets[earlier])
                opened = max(opened, packet + 1)
                packets[used] = packet
                used += 1
        if used != 0:
            out[0] += 1
            out[1] += opened
            out[2] += distinct(lines, used)


ATOMIC_FOLDS = (0x2F6F, 0x55DA)
"""Bits of a 128-byte line's number whose parity enters the key of an atomic, one mask a bit of the key. The masks are measured for
lines within 4 MiB of each other; beyond that, lanes use other addresses."""


@native
def atomic_key(word: i64) -> i64:
    """Return the key of seven bits by which atomics compare 4-byte words: the position in the line, and two parities of the line.

    Of 1,252 atomics measured on an H200, with and without a result (tests/machine/h200_reductions.csv and rows of
    h200_access_patterns.csv and h200_random_accesses.csv.gz there), it explains all but 16, which differ by a sector or two.
    """
    line = word >> 5
    low = i64(st.popcount(line & ATOMIC_FOLDS[0]) & 1)
    high = i64(st.popcount(line & ATOMIC_FOLDS[1]) & 1)
    return (word & 31) | low << 5 | high << 6


def count_atomic(index: Index, active: Active, size: int, sector: int, line: int, out: Totals) -> None:
    """Add the requests, sectors and lines of atomics, with and without a result; arguments as for `count`.

    Lanes of one address are serialised, so a sector counts as often as its most frequent address. Addresses are compared by
    `atomic_key`: lanes of different sectors with equal keys preserve their order, which may cost another packet.
    """
    count_packets(*flat(index, active), size, log2(sector // size), log2(line // sector), out)


@native
def _count_local(
    index: Global[i64], active: Global[bool], warps: i64, size: i64, to_sector: i64, to_line: i64, out: Global[i64]
) -> None:
    sectors = st.local(i64, 128)
    lines = st.local(i64, 128)
    words = max(i64(1), size >> 2)
    for warp in range(warps):
        used = i64(0)
        for lane in range(i64(WARP_SIZE)):
            if active[WARP_SIZE * warp + lane]:
                first = index[WARP_SIZE * warp + lane] * size >> 2
                for word in range(first, first + words):
                    sectors[used] = (WARP_SIZE * word + lane) * 4 >> to_sector
                    lines[used] = sectors[used] >> to_line
                    used += 1
        if used != 0:
            out[0] += words
            out[1] += distinct(sectors, used)
            out[2] += distinct(lines, used)


def count_local(index: Index, active: Active, size: int, sector: int, line: int, out: Totals) -> None:
    """Add the requests, sectors and lines of loads or stores of local memory; arguments as for `count`. An index is an element of the
    thread's own memory.

    Word w of lane l is at address 4 * (32 * w + l) of the warp's memory (CUDA C++ Programming Guide, "Local
    Memory"). Each word of an
    element is a request: measured, for every local row of tests/machine/h200_random_accesses.csv.gz.
    """
    flattened, mask, warps = flat(index, active)
    _count_local(flattened, mask, warps, size, log2(sector), log2(line // sector), out)


def of_warp(
    counter: Counter, lanes: Sequence[int], size: int, sector: int = SECTOR_BYTES, line: int = LINE_BYTES
) -> Traffic:
    """Return the result of `counter` (count, count_atomic, count_local) for one warp.

    lanes: the element of each of the 32 lanes, -1 for inactive lanes.
    """
    index, out = np.array([lanes], np.int64), np.zeros(3, np.int64)
    counter(index, index >= 0, size, sector, line, out)
    return Traffic(*(int(v) for v in out))
