"""Bank rules: wavefronts and bank conflicts of a warp's access to shared memory.

The rules are measured: on an H200 they equal Nsight Compute's counters
(`l1tex__data_{pipe_lsu_wavefronts,bank_conflicts_pipe_lsu}_mem_shared_op_{ld,st,atom}`) for every row of
tests/machine/h200_access_patterns.csv. For Fermi (32 banks of 4 bytes; 8 bytes a lane in two halves) and
Kepler's 8-byte mode (32 banks of 8 bytes; 8 bytes a lane at once) they are those of the CUDA C Programming
Guide's sections on compute capabilities 2.x and 3.x, which equal the measured rules without merging.
Sizes, banks and widths are powers of two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, Local, i64
from ..language.intrinsics import WARP_SIZE
from ..native import native
from .coalescing import Active, Index, Totals, ascend, consecutive, flat, occurred
from .device import Device, log2

LOAD, STORE, ATOMIC, SWAP = 0, 1, 2, 3
"""Kinds of access that `count` distinguishes."""


class Wavefronts(NamedTuple):
    """The cost of one warp's access to shared memory."""

    requests: int
    wavefronts: int
    conflicts: int


def kind_of(operation: str, device: Device) -> int:
    """Return the kind of an operation (`ir.access.Operation`) on shared memory on `device`. A load counts as a store if
    halves never merge; a
    copy counts as an atomic, since its lanes are not merged."""
    load = LOAD if device.shared_load_merges else STORE
    return {"load": load, "store": STORE, "count": STORE, "swap": SWAP, "copy": ATOMIC, "atomic": ATOMIC}[operation]


@st.device
def _merges(index: Global[i64], active: Global[bool], warp: i64, distance: i64) -> bool:
    """Return whether each active lane reads the element of the lane at that xor distance, or the other lane is inactive."""
    differ = False
    for lane in range(i64(WARP_SIZE)):
        own = WARP_SIZE * warp + lane
        other = WARP_SIZE * warp + (lane ^ distance)
        differ |= (index[own] != index[other]) & active[own] & active[other]
    return not differ


@st.device
def _worst_bank(units: Local[i64], used: i64, groups: i64, every_lane: bool, load: Global[i64]) -> i64:
    """Return the largest load of a group of banks: distinct units, or one unit for `every_lane`."""
    for group in range(groups):
        load[group] = 0
    worst = i64(0)
    ascending = ascend(units, used)
    for i in range(used):
        if every_lane or not occurred(units, i, ascending):
            own = units[i] & (groups - 1)
            load[own] += 1
            worst = max(worst, load[own])
    return worst


@native
def count_warps(
    kind: i64, index: Global[i64], active: Global[bool], warps: i64, shape: Global[i64], load: Global[i64],
    out: Global[i64],
) -> None:  # fmt: skip
    """Add the counters of warps to `out`.

    shape: phases of a warp, shift from an element to its unit, groups of banks. load: int64[groups], scratch memory for
    the units of each group of banks.
    """
    phases, to_unit, groups = shape[0], shape[1], shape[2]
    # Consecutive elements smaller than a word touch one more word if they start within one.
    all_fit = to_unit == 0 or (WARP_SIZE // phases >> to_unit) < groups
    units = st.local(i64, WARP_SIZE)
    for warp in range(warps):
        if kind < ATOMIC and all_fit and consecutive(index, active, warp):
            out[0] += 1
            out[1] += phases
            continue
        merged_phases = phases
        halves = kind == LOAD and phases > 1
        if halves and (_merges(index, active, warp, i64(1)) or _merges(index, active, warp, i64(2))):
            merged_phases = phases // 2
        width = WARP_SIZE // merged_phases
        requests = i64(0)
        for phase in range(merged_phases):
            used = i64(0)
            for lane in range(phase * width, (phase + 1) * width):
                if active[WARP_SIZE * warp + lane]:
                    units[used] = index[WARP_SIZE * warp + lane] >> to_unit
                    used += 1
            if used != 0:
                cost = _worst_bank(units, used, groups, kind >= ATOMIC, load)
                requests = 1
                out[1] += 2 * cost if kind == SWAP else cost
                out[2] += cost - 1
        out[0] += requests


def count(kind: int, index: Index, active: Active, size: int, banks: int, width: int, out: Totals) -> None:
    """Add the requests, wavefronts and bank conflicts of shared accesses to `out`.

    kind: LOAD (see `kind_of`), STORE, ATOMIC (with a result) or SWAP (a compare-and-swap: twice the wavefronts for
    the same conflicts).
    index: integers[warps, 32], elements from the start of shared memory. active: bool[warps, 32]; other lanes are ignored.
    size, width: bytes. out: int64[3].

    A phase has as many lanes as all banks together can serve. It costs as many wavefronts as the most different words (for
    atomics: lanes) of one bank. The phases of a load merge in pairs if every lane shares its element with the lane next
    to it, or every lane with the one after that. Conflicts are wavefronts beyond one for each phase with an active lane.
    """
    shape = shape_of(size, banks, width)
    count_warps(kind, *flat(index, active), shape, np.empty(int(shape[2]), np.int64), out)


def shape_of(size: int, banks: int, width: int) -> npt.NDArray[np.int64]:
    """Return the `shape` of `count_warps` for accesses of `size` bytes."""
    unit = max(size, width)  # the unit of a group of banks: a word, or an element of several
    phases = max(1, WARP_SIZE * size // (banks * width))
    return np.array([phases, log2(unit // size), banks * width // unit], np.int64)


def of_warp(kind: int, lanes: Sequence[int], size: int, banks: int = 32, width: int = 4) -> Wavefronts:
    """Return the cost of one warp by the rule of `count` in plain form: byte by byte, phase by phase.

    lanes: the element of each of the 32 lanes, -1 for inactive lanes.
    """
    a_phase = min(WARP_SIZE, banks * width // size)
    mergeable = [
        all(lanes[i] == lanes[i ^ d] or min(lanes[i], lanes[i ^ d]) < 0 for i in range(WARP_SIZE)) for d in (1, 2)
    ]
    if kind == LOAD and a_phase < WARP_SIZE and any(mergeable):
        a_phase *= 2
    costs = []
    for start in range(0, WARP_SIZE, a_phase):
        words: defaultdict[int, list[int]] = defaultdict(list)
        for element in lanes[start : start + a_phase]:
            if element >= 0:
                for word in range(element * size // width, (element * size + size - 1) // width + 1):
                    words[word % banks].append(word)
        if words:
            costs.append(max(len(bank if kind >= ATOMIC else set(bank)) for bank in words.values()))
    return Wavefronts(int(bool(costs)), (2 if kind == SWAP else 1) * sum(costs), sum(costs) - len(costs))
