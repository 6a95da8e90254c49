"""The happens-before order of the race detector: how blocks, barriers, fences and resumed warps change the race state."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from .shadow import ACQUIRED, BARRIERS, BLOCK, FOREIGN, FRESH, LENGTH, MERGED, NOW, ONE, PHASE, WARP, RaceState


# ------------------------------------------------------------------ what happens to a block
@numba.njit(cache=True)
def begin_block(h: RaceState, block: int) -> None:
    """A block starts: what came before is another block's."""
    h.state[BLOCK], h.state[BARRIERS], h.state[WARP], h.state[ACQUIRED] = block, 0, 0, 0
    h.state[FOREIGN] = h.state[PHASE] = h.state[NOW] = h.state[LENGTH] * ONE
    h.state[FRESH] = h.state[LENGTH]


@numba.njit(cache=True)
def barrier(h: RaceState) -> None:
    """The block passes a barrier: all its accesses so far are ordered before all later ones."""
    h.state[BARRIERS] += 1
    h.state[PHASE] = h.state[NOW] = h.state[LENGTH] * ONE
    h.state[FRESH] = h.state[LENGTH]


@numba.njit(cache=True)
def resume_warp(h: RaceState, warp: int) -> None:
    """A warp resumes."""
    if h.state[WARP] != warp:
        h.state[WARP] = warp
        h.state[FRESH] = h.state[LENGTH]
        h.state[NOW] = max(h.state[PHASE], h.joined[warp])


@numba.njit(cache=True)
def fence(h: RaceState, mask: int, scope: int) -> None:
    """Lanes of the current warp pass a fence; scope: 1 block, 2 device."""
    warp, now = h.state[WARP], h.state[LENGTH]
    h.state[FRESH] = now
    h.joined[warp] = h.state[NOW] = now * ONE
    for lane in range(32):
        if mask >> lane & 1:
            row = h.fences[32 * warp + lane]
            row[0], row[1], row[2], row[3] = now, h.state[BARRIERS], h.state[BLOCK], scope


@numba.njit(cache=True)
def join(h: RaceState, active: int, alive: int, masks: Any) -> None:
    """Lanes of the current warp meet in a `syncwarp`: each with the active lanes of its mask."""
    warp, now = h.state[WARP], h.state[LENGTH]
    h.state[FRESH] = now
    h.joined[warp] = h.state[NOW] = now * ONE
    together = True
    for lane in range(32):
        if active >> lane & 1 and (masks[lane] & alive) != alive:
            together = False
    if together and active == alive:
        h.full[warp] = now * ONE
        return
    before = h.clock[warp].copy()
    for lane in range(32):
        if not active >> lane & 1:
            continue
        for other in range(32):
            if masks[lane] & active & (1 << other):
                for third in range(32):
                    h.clock[warp, lane, third] = max(h.clock[warp, lane, third], before[other, third])
        for other in range(32):
            if masks[lane] & active & (1 << other):
                h.clock[warp, lane, other] = now


# ------------------------------------------------------------------ timestamps
@numba.njit(cache=True)
def timestamp(h: RaceState, access_id: int) -> int:
    """The timestamp of an access of the current warp."""
    site = access_id // 4
    known = h.timestamp[site]
    if known >= h.state[FRESH]:
        return int(known)
    if h.state[LENGTH] == len(h.log):
        shorten(h)
    now = h.state[LENGTH]
    h.log[now, 0], h.log[now, 1] = h.state[BLOCK], h.state[BARRIERS]
    h.log[now, 2], h.log[now, 3] = h.state[WARP], access_id
    h.timestamp[site] = now
    h.state[LENGTH] = now + 1
    return int(now)


@numba.njit(cache=True)
def unwritten(h: RaceState, array: int, mask: int, index: Any) -> int:
    """The lanes of a mask whose element nobody wrote."""
    least = h.state[FOREIGN] if h.places[array, 2] else ONE
    found = 0
    for lane in range(32):
        if mask >> lane & 1 and h.epochs[h.places[array, 0] + index[lane]] < least:
            found |= 1 << lane
    return found


@numba.njit(cache=True)
def note_written(h: RaceState, array: int, mask: int, index: Any) -> None:
    """Lanes write elements; by whom is not noted where races are not looked for."""
    for lane in range(32):
        if mask >> lane & 1:
            h.epochs[h.places[array, 0] + index[lane]] = h.state[FOREIGN]


@numba.njit(cache=True)
def shorten(h: RaceState) -> None:
    """Merge rows of the log that order later accesses in the same way.

    These are rows of one site in other blocks, of one site before the last barrier, and of one site and warp before
    the last `syncwarp` of all lanes. The blocks of merged rows are lost.
    """
    length, sites = int(h.state[LENGTH]), len(h.timestamp)
    phase, foreign = int(h.state[PHASE]) // ONE, int(h.state[FOREIGN]) // ONE
    group = np.zeros(length, np.int64)  # 0: a row of its own, in the current phase
    for m in range(1, length):
        warp, site = h.log[m, 2], h.log[m, 3] // 4
        if m < foreign:
            group[m] = 1 + site
        elif m < phase:
            group[m] = 1 + sites + site
        elif m < int(h.full[warp]) // ONE:
            group[m] = 1 + 2 * sites + 32 * site + warp
    groups = 1 + 34 * sites
    number = np.zeros(groups, np.int64)
    for m in range(1, length):
        number[group[m]] = 1
    number[0] = 0
    count = 1
    for g in range(1, groups):
        if g == 1 + sites:
            h.state[FOREIGN] = count * ONE
        elif g == 1 + 2 * sites:
            h.state[PHASE] = count * ONE
        if number[g]:
            number[g] = count
            count += 1
    new = np.zeros(length + 1, np.int64)
    rows = np.zeros((count, 4), np.int32)
    before = h.log[:length].copy()
    own = count
    for m in range(1, length):
        if group[m]:
            new[m] = number[group[m]]
            rows[new[m]] = before[m]
        else:
            new[m] = own
            h.log[own] = before[m]
            own += 1
    new[length] = own
    h.log[1:count] = rows[1:]
    for at in range(len(h.epochs)):
        epoch = h.epochs[at]
        if epoch:
            h.epochs[at] = new[epoch // ONE] * ONE + epoch % ONE
    _move(h, new, count, own)
    h.state[MERGED] = 1


@numba.njit(cache=True)
def _move(h: RaceState, new: Any, first: int, length: int) -> None:
    """Thresholds within the current phase, whose rows of their own now begin with `first`."""
    before = int(h.state[LENGTH])
    upward = np.full(before + 1, length, np.int64)  # the first row of its own at or above each old one
    for m in range(before - 1, 0, -1):
        upward[m] = new[m] if new[m] >= first else upward[m + 1]
    for warp in range(len(h.full)):
        h.full[warp] = upward[min(int(h.full[warp]) // ONE, before)] * ONE if h.full[warp] else 0
        h.joined[warp] = upward[min(int(h.joined[warp]) // ONE, before)] * ONE if h.joined[warp] else 0
    for warp in range(h.clock.shape[0]):
        for lane in range(32):
            for other in range(32):
                known = h.clock[warp, lane, other]
                h.clock[warp, lane, other] = upward[known] if known else 0
    for site in range(len(h.timestamp)):
        h.timestamp[site] = 0
    h.state[LENGTH] = h.state[FRESH] = length
    h.state[NOW] = max(h.state[PHASE], h.joined[h.state[WARP]])
