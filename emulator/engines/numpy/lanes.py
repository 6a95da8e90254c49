"""Loops over the lanes of many warps, compiled: populations of masks, branches, guarded indices."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ...language.hints import Global, i64
from ...language.intrinsics import WARP_SIZE
from ...native import native

Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int64]


def _flat(mask: Mask) -> Mask:
    return np.ascontiguousarray(mask).reshape(-1)


@native
def _population(active: Global[bool], warps: i64, counts: Global[i64]) -> None:
    for w in range(warps):
        n = i64(0)
        for lane in range(WARP_SIZE * w, WARP_SIZE * w + WARP_SIZE):
            n += i64(active[lane])
        counts[0] += i64(n > 0)
        counts[1] += n


def population(active: Mask) -> tuple[int, int]:
    """(warps with an active lane, active lanes) of bool[warps, 32]."""
    counts = np.zeros(2, np.int64)
    _population(_flat(active), len(active), counts)
    return int(counts[0]), int(counts[1])


@native
def _branch(
    active: Global[bool],
    holds: Global[bool],
    warps: i64,
    true_lanes: Global[bool],
    rest: Global[bool],
    counts: Global[i64],
) -> None:
    for w in range(warps):
        n = i64(0)
        m = i64(0)
        for lane in range(WARP_SIZE * w, WARP_SIZE * w + WARP_SIZE):
            is_active = active[lane]
            yes = is_active & holds[lane]
            true_lanes[lane] = yes
            rest[lane] = is_active ^ yes
            n += i64(is_active)
            m += i64(yes)
        counts[0] += i64(n > 0)
        counts[1] += n
        counts[2] += m
        counts[3] += i64(0 < m < n)


def branch(active: Mask, holds: Mask, true_lanes: Mask, rest: Mask) -> tuple[int, int, int, int]:
    """Split active lanes by a condition: (warps, lanes, lanes for which it holds, warps whose lanes disagree)."""
    counts = np.zeros(4, np.int64)
    _branch(_flat(active), _flat(holds), len(active), true_lanes.reshape(-1), rest.reshape(-1), counts)
    warps, lanes, lanes_taken, divergent = counts.tolist()
    return warps, lanes, lanes_taken, divergent


@native
def _guard(
    index: Global[i64], active: Global[bool], lanes: i64, length: i64, safe: Global[i64], inside: Global[bool]
) -> i64:
    bad = i64(0)
    for lane in range(lanes):
        i = index[lane]
        ok = active[lane] & (i >= 0) & (i < length)
        inside[lane] = ok
        safe[lane] = i if ok else 0
        bad += i64(active[lane] ^ ok)
    return bad


def guard(index: npt.NDArray[Any], active: Mask, length: int) -> tuple[int, Words, Mask]:
    """Check bounds: (active lanes out of range, index of the others, else 0, lanes in range)."""
    safe, inside = np.empty(index.shape, np.int64), np.empty(index.shape, np.bool_)
    whole = np.ascontiguousarray(index, np.int64).reshape(-1)
    outside = _guard(whole, _flat(active), index.size, length, safe.reshape(-1), inside.reshape(-1))
    return outside, safe, inside
