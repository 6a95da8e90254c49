"""What an atomic operation on shared memory costs that no instruction makes: an addition of floats, one of 64 bits.

Such operations are compiled to a loop that reads the element, computes, and swaps where nobody has changed it meanwhile
(`ATOMS.CAST.SPIN`); a lane for which somebody had tries again. Of the lanes of a warp that fall in one bank the lowest one gets
its turn in a round, be it for the same element or not; 8 bytes a lane are swapped in halves, the second of which finds what the first
has changed. A swap takes two wavefronts a half, and none that is counted as a conflict. Measured: these rules give what Nsight Compute
counts on an H200 for every row of tests/machine/h200_tries.csv. Other warps that change the same elements at the same time have lanes try
again as well: how often hangs on their timing, and is not counted.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..language.intrinsics import WARP_SIZE
from . import banks
from .coalescing import Active, Index, Totals
from .device import Device

ROUNDS, LANES, SWAPS, LOADS, CONFLICTS = range(5)
"""What is counted: rounds of warps and of lanes, wavefronts of swaps and of reads, and bank conflicts of these."""


def count(index: Index, active: Active, size: int, device: Device, out: Totals) -> None:
    """Add what operations of warps cost to `out`, int64[5].

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
    """Which lanes are the first of their warp in their group of banks."""
    rows, lanes = np.nonzero(active)
    _, firsts = np.unique(np.stack([rows, groups[rows, lanes]]), axis=1, return_index=True)
    first = np.zeros_like(active)
    first[rows[firsts], lanes[firsts]] = True
    return first
