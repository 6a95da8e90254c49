"""Loops over the lanes of many warps, compiled: populations of masks, branches, guarded indices."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


@numba.njit(cache=True)
def population(active: Mask) -> tuple[int, int]:
    """(warps with an active lane, active lanes) of bool[warps, 32]."""
    warps = lanes = 0
    for w in range(active.shape[0]):
        n = 0
        for lane in range(32):
            n += active[w, lane]
        warps += n > 0
        lanes += n
    return warps, lanes


@numba.njit(cache=True)
def branch(active: Mask, holds: Mask, taken: Mask, rest: Mask) -> tuple[int, int, int, int]:
    """Split active lanes by a condition: (warps, lanes, lanes taken, warps whose lanes disagree)."""
    warps = lanes = lanes_taken = divergent = 0
    for w in range(active.shape[0]):
        n = m = 0
        for lane in range(32):
            here = active[w, lane]
            yes = here and holds[w, lane]
            taken[w, lane] = yes
            rest[w, lane] = here and not yes
            n += here
            m += yes
        warps += n > 0
        lanes += n
        lanes_taken += m
        divergent += 0 < m < n
    return warps, lanes, lanes_taken, divergent


@numba.njit(cache=True)
def guard(index: npt.NDArray[Any], active: Mask, length: int, safe: npt.NDArray[Any], inside: Mask) -> int:
    """Bounds: `inside` = active lanes whose index is in range, `safe` = their index, else 0. Returns how many are not."""
    bad = 0
    for w in range(index.shape[0]):
        for lane in range(32):
            i = index[w, lane]
            ok = active[w, lane] and i >= 0 and i < length
            inside[w, lane] = ok
            safe[w, lane] = i if ok else 0
            bad += active[w, lane] and not ok
    return bad
