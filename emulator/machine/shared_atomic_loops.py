"""Costs of shared-memory atomics without an instruction: additions of floats and operations on 64 bits.

The compiler emits a loop that reads the element, computes, and swaps if the element is unchanged (`ATOMS.CAST.SPIN`); a lane with a
changed element retries. In a round, the lowest lane of each bank succeeds, for the same element or not. 8 bytes a
lane are swapped in halves; the second half observes the changes of the first. A swap takes two wavefronts a half, and
none counted as a conflict.
Measured: these rules equal Nsight Compute's counters on an H200 for every row of tests/machine/h200_tries.csv. Other
warps that change
the same elements at the same time cause retries as well: their number depends on timing and is not counted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..language.intrinsics import WARP_SIZE
from . import banks
from .coalescing import Active, Index, Totals
from .device import Device

ROUNDS, LANES, SWAPS, LOADS, CONFLICTS = range(5)
"""Columns: rounds of warps and of lanes, wavefronts of swaps and of reads, and bank conflicts of the reads."""


def count(index: Index, active: Active, size: int, device: Device, out: Totals) -> None:
    """Add the costs of the warps' operations to `out`, int64[5].

    index: integers[warps, 32], elements of `size` bytes from the start of shared memory. active: bool[warps, 32].
    """
    halves = max(1, WARP_SIZE * size // (device.banks * device.bank_width))
    groups = device.banks * device.bank_width // max(size, device.bank_width)
    load, left = banks.kind_of("load", device), np.array(active)
    read = np.zeros(3, np.int64)
    while left.any():
        trying = left.any(axis=1)
        out[ROUNDS] += trying.sum()
        out[LANES] += left.sum()
        banks.count(load, index[trying], left[trying], size, device.banks, device.bank_width, read)
        changed = np.zeros_like(left)
        for half in np.split(np.arange(WARP_SIZE), halves):
            out[SWAPS] += 2 * left[:, half].any(axis=1).sum()
            first = _first_of_bank(index[:, half] % groups, left[:, half])
            elements = np.where(changed, index, -1)
            stale = (index[:, half, None] == elements[:, None, :]).any(axis=2)
            changed[:, half] = first & ~stale
        left &= ~changed
    out[[LOADS, CONFLICTS]] += read[1:]


def _first_of_bank(groups: npt.NDArray[np.int64], active: Active) -> Active:
    """Return the lanes that are the first of their warp in their group of banks."""
    rows, lanes = np.nonzero(active)
    _, firsts = np.unique(np.stack([rows, groups[rows, lanes]]), axis=1, return_index=True)
    first = np.zeros_like(active)
    first[rows[firsts], lanes[firsts]] = True
    return first
