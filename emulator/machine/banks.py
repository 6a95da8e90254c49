# mypy: disallow-untyped-decorators=False
"""How the accesses of a warp to shared memory become wavefronts and bank conflicts.

The rules are measured: on an H200 they give what Nsight Compute counts
(`l1tex__data_{pipe_lsu_wavefronts,bank_conflicts_pipe_lsu}_mem_shared_op_{ld,st,atom}`) for every row of
tests/machine/h200_access_patterns.csv. For Fermi (32 banks of 4 bytes; 8 bytes a lane in two halves) and
Kepler's 8-byte mode (32 banks of 8 bytes; 8 bytes a lane at once) they are those of the CUDA C Programming
Guide's sections on compute capabilities 2.x and 3.x, which are the measured ones without merging.
Sizes, banks and widths are powers of two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from .coalescing import ascend, consecutive, log2, occurred
from .device import Device

LOAD, STORE, ATOMIC = 0, 1, 2
"""Kinds of access that `count` tells apart."""


class Wavefronts(NamedTuple):
    """What one warp's access to shared memory costs."""

    requests: int
    wavefronts: int
    conflicts: int


def load_kind(device: Device) -> int:
    """The kind by which a load counts on `device`: where halves never merge, it is that of a store."""
    return LOAD if device.shared_load_merges else STORE


@njit(cache=True)
def _merges(index: Any, active: Any, warp: int, distance: int) -> bool:
    """Whether each active lane reads the element of the lane at that xor distance, or that one is inactive."""
    same = True
    for lane in range(32):
        other = lane ^ distance
        same &= (index[warp, lane] == index[warp, other]) | (not active[warp, lane]) | (not active[warp, other])
    return same


@njit(cache=True)
def _worst_bank(units: Any, used: int, groups: int, every_lane: bool, load: Any) -> int:
    """The most that one group of banks must deliver: different units, or one unit for `every_lane`."""
    load[:groups] = 0
    worst = 0
    ascending = ascend(units, used)
    for i in range(used):
        if every_lane or not occurred(units, i, ascending):
            group = units[i] & (groups - 1)
            load[group] += 1
            worst = max(worst, load[group])
    return worst


@njit(cache=True)
def count(kind: int, index: Any, active: Any, size: int, banks: int, width: int, out: Any) -> None:
    """Add the requests, wavefronts and bank conflicts of shared accesses to `out`.

    kind: LOAD (see `load_kind`), STORE or ATOMIC (with a result). index: int32 or int64[warps, 32], elements from
    the start of shared memory. active: bool[warps, 32]; other lanes are ignored. size, width: bytes. out: int64[3].

    The warp is taken in phases of as many lanes as all banks together can serve; each costs as many wavefronts
    as the most different words (for atomics: lanes) that fall in one bank. The phases of a load merge in pairs
    when every lane shares its element with the lane next to it, or every lane with the one after that.
    Conflicts are wavefronts beyond one a phase that has an active lane.
    """
    phases = max(1, 32 * size // (banks * width))
    unit = max(size, width)  # what lies in one group of banks: a word, or an element of several
    groups = banks * width // unit
    to_unit = log2(unit // size)
    units, load = np.empty(32, np.int64), np.empty(groups, np.int64)
    for warp in range(index.shape[0]):
        if kind != ATOMIC and consecutive(index, active, warp):
            out[0] += 1
            out[1] += phases
            continue
        turns = phases
        if kind == LOAD and phases > 1 and (_merges(index, active, warp, 1) or _merges(index, active, warp, 2)):
            turns = phases // 2
        width_of_turn = 32 // turns
        requests = 0
        for turn in range(turns):
            used = 0
            for lane in range(turn * width_of_turn, (turn + 1) * width_of_turn):
                if active[warp, lane]:
                    units[used] = np.int64(index[warp, lane]) >> to_unit
                    used += 1
            if used:
                cost = _worst_bank(units, used, groups, kind == ATOMIC, load)
                requests = 1
                out[1] += cost
                out[2] += cost - 1
        out[0] += requests


def of_warp(kind: int, lanes: Sequence[int], size: int, banks: int = 32, width: int = 4) -> Wavefronts:
    """The rule of `count` as it is said, for one warp: byte by byte, phase by phase.

    lanes: the element of each of the 32 lanes, -1 where it is inactive.
    """
    a_phase = min(32, banks * width // size)
    alike = [all(lanes[i] == lanes[i ^ d] or min(lanes[i], lanes[i ^ d]) < 0 for i in range(32)) for d in (1, 2)]
    if kind == LOAD and a_phase < 32 and any(alike):
        a_phase *= 2
    costs = []
    for start in range(0, 32, a_phase):
        words: defaultdict[int, list[int]] = defaultdict(list)
        for element in lanes[start : start + a_phase]:
            if element >= 0:
                for word in range(element * size // width, (element * size + size - 1) // width + 1):
                    words[word % banks].append(word)
        if words:
            costs.append(max(len(bank if kind == ATOMIC else set(bank)) for bank in words.values()))
    return Wavefronts(int(bool(costs)), sum(costs), sum(costs) - len(costs))
