"""Who wrote and who read each word last, and what orders accesses: the shadow that races and unwritten words are found in.

A *moment* is one site as one warp executes it between two synchronisations. Moments are numbered in order of
execution, and the log has a row for each: block, phase (barriers the block has passed), warp, act. An *act* is a site
and what it does: 4 site + LOADS, STORES or ACTS (atomically). A *stamp* is a
thread at a moment, u32: moment << 10 | thread in the block; 0 is nobody. Each checked element has three stamps in
planes of u32: who wrote it last (an atomic operation writes too), who read it last, and another reader.

Two readers are enough. `OTHER` is the reader farthest from `READ`: of another block if there is one, else of another
warp, else of another lane. Whatever is not ordered after some reader is not ordered after one of these two: what is
of READ's warp is told by OTHER, everything else by READ. A word that its thread wrote and that nobody could be
ordered with since needs no reader: whoever clashes with the read clashes with the write.

Ordered are: accesses of one thread; of one block, with a barrier between; of one warp, with a `syncwarp` of both
lanes between (a vector clock a lane), or in lockstep at all; and by a release and an acquire: the first thread passes
a fence and then acts atomically on a word on which the second thread, later, acts atomically. Blocks run one after
another here, each phase warp by warp, so a stamp below FOREIGN is another block's, and one below PHASE is older than
the block's last barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

BITS = 10
"""Of a stamp, the thread's."""
MOST_MOMENTS = 1 << (32 - BITS)
LOADS, STORES, ACTS = range(3)
WRITTEN, READ, OTHER = range(3)
PLANES = 3
PADDING = 64
"""Stamps before and after each plane, so that a row of 32 around any element may be loaded."""

LENGTH, FRESH, FOREIGN, PHASE, LOCKSTEP, BLOCK, BARRIERS, WARP, RELEASES, ACQUIRED, MERGED = range(11)
"""State. LENGTH: moments so far. FRESH: moments below it are not this stretch's. FOREIGN, PHASE: stamps, see above.
RELEASES: rows of `releases`; ACQUIRED: rows of `acquired`, the current block's. MERGED: whether old rows lost their blocks."""
STATE = 11
FOREVER = 0xFFFFFFFF
ONE = 1 << BITS
THREAD = ONE - 1


class History(NamedTuple):
    """The arrays, as compiled functions take them.

    state: int64[STATE]. log: int32[moments, 4]. moment: int32[site], the last moment of each. stamps: uint32, the
    planes of all arrays. places: int64[array, 3]: where its WRITTEN plane begins, elements a plane, whether shared.
    joined, full: uint32[warp], the stamp from which on no `syncwarp`, or none of all lanes, has happened.
    clock: int32[warp, lane, lane], moments of the second lane below it are ordered before the first lane's next.
    fences: int64[thread, 4]: moment, phase and block of the last fence, and its scope (1 block, 2 device).
    releases: int64[., 9]: array, element, block, phase, thread, moment of the fence, scope, moments so far, `full` of
    the warp. acquired: int64[., 5]: array, element, thread, phase, releases so far. pairs: int64[., PAIR], findings (see `races`).
    """

    state: Any
    log: Any
    moment: Any
    stamps: Any
    places: Any
    joined: Any
    full: Any
    clock: Any
    fences: Any
    releases: Any
    acquired: Any
    pairs: Any


@dataclass
class Layout:
    """Which arrays are watched, and where their planes lie.

    numbers: of arrays, by name. starts: of the WRITTEN plane, in stamps. lengths: elements of a plane; a local
    array's are those of all threads of a block, [element][thread].
    """

    numbers: dict[str, int]
    starts: list[int]
    lengths: list[int]
    size: int = 0


def layout(lengths: dict[str, int]) -> Layout:
    """A place for the planes of each array."""
    found = Layout({}, [], [])
    for number, (name, length) in enumerate(lengths.items()):
        found.numbers[name] = number
        found.starts.append(found.size + PADDING)
        found.lengths.append(length + PADDING)
        found.size += PLANES * (length + PADDING) + PADDING
    return found


PAIR = 14
MOST_PAIRS = 1024
MOST_RELEASES = 1 << 16


def new(
    where: Layout, shared: Sequence[bool], sites: int, warps: int, lockstep: bool, moments: int = MOST_MOMENTS
) -> History:
    """A history in which nothing has happened. moments: rows of the log, which is made shorter when it is full."""
    state = np.zeros(STATE, np.int64)
    state[LENGTH] = state[FRESH] = 1  # moment 0 is nobody's
    state[LOCKSTEP] = lockstep
    places = np.array([*zip(where.starts, where.lengths, shared, strict=True)], np.int64).reshape(-1, 3)
    return History(
        state, np.empty((moments, 4), np.int32), np.zeros(sites, np.int32), np.zeros(where.size, np.uint32), places,
        np.zeros(32, np.uint32), np.zeros(32, np.uint32), np.zeros((warps, 32, 32), np.int32),
        np.zeros((32 * warps, 4), np.int64), np.zeros((MOST_RELEASES, 9), np.int64), np.zeros((MOST_RELEASES, 5), np.int64),
        np.zeros((MOST_PAIRS, PAIR), np.int64),
    )  # fmt: skip


# ------------------------------------------------------------------ what happens to a block
@numba.njit(cache=True)
def begin_block(h: History, block: int) -> None:
    """A block starts: what came before is another block's."""
    h.state[BLOCK], h.state[BARRIERS], h.state[WARP], h.state[ACQUIRED] = block, 0, 0, 0
    h.state[FOREIGN] = h.state[PHASE] = h.state[LENGTH] * ONE
    h.state[FRESH] = h.state[LENGTH]


@numba.njit(cache=True)
def barrier(h: History) -> None:
    """The block passes a barrier: all its accesses so far are ordered before all later ones."""
    h.state[BARRIERS] += 1
    h.state[PHASE] = h.state[LENGTH] * ONE
    h.state[FRESH] = h.state[LENGTH]


@numba.njit(cache=True)
def begin_turn(h: History, warp: int) -> None:
    """A warp goes on."""
    if h.state[WARP] != warp:
        h.state[WARP] = warp
        h.state[FRESH] = h.state[LENGTH]


@numba.njit(cache=True)
def fence(h: History, mask: int, scope: int) -> None:
    """Lanes of the current warp pass a fence; scope: 1 block, 2 device."""
    warp, now = h.state[WARP], h.state[LENGTH]
    h.state[FRESH] = now
    h.joined[warp] = now * ONE
    for lane in range(32):
        if mask >> lane & 1:
            row = h.fences[32 * warp + lane]
            row[0], row[1], row[2], row[3] = now, h.state[BARRIERS], h.state[BLOCK], scope


@numba.njit(cache=True)
def join(h: History, active: int, alive: int, masks: Any) -> None:
    """Lanes of the current warp meet in a `syncwarp`: each with the active lanes of its mask."""
    warp, now = h.state[WARP], h.state[LENGTH]
    h.state[FRESH] = now
    h.joined[warp] = now * ONE
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


# ------------------------------------------------------------------ moments
@numba.njit(cache=True)
def moment(h: History, act: int) -> int:
    """The number of the act as the current warp executes it now."""
    site = act // 4
    known = h.moment[site]
    if known >= h.state[FRESH]:
        return int(known)
    if h.state[LENGTH] == len(h.log):
        shorten(h)
    now = h.state[LENGTH]
    h.log[now, 0], h.log[now, 1] = h.state[BLOCK], h.state[BARRIERS]
    h.log[now, 2], h.log[now, 3] = h.state[WARP], act
    h.moment[site] = now
    h.state[LENGTH] = now + 1
    return int(now)


@numba.njit(cache=True)
def unwritten(h: History, array: int, mask: int, index: Any) -> int:
    """The lanes of a mask whose element nobody wrote."""
    least = h.state[FOREIGN] if h.places[array, 2] else ONE
    found = 0
    for lane in range(32):
        if mask >> lane & 1 and h.stamps[h.places[array, 0] + index[lane]] < least:
            found |= 1 << lane
    return found


@numba.njit(cache=True)
def note_written(h: History, array: int, act: int, mask: int, index: Any) -> None:
    """Lanes write elements: all that is noted where races are not looked for."""
    base = moment(h, act) << BITS | h.state[WARP] << 5
    for lane in range(32):
        if mask >> lane & 1:
            h.stamps[h.places[array, 0] + index[lane]] = base | lane


@numba.njit(cache=True)
def shorten(h: History) -> None:
    """Merge rows that no verdict tells apart: those of one site in other blocks, those of one site before the last
    barrier, and those of one site and warp that a whole `syncwarp` has passed. Names of blocks may be lost."""
    length, sites = int(h.state[LENGTH]), len(h.moment)
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
    for at in range(len(h.stamps)):
        stamp = h.stamps[at]
        if stamp:
            h.stamps[at] = new[stamp // ONE] * ONE + stamp % ONE
    _move(h, new, count, own)
    h.state[MERGED] = 1


@numba.njit(cache=True)
def _move(h: History, new: Any, first: int, length: int) -> None:
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
    for site in range(len(h.moment)):
        h.moment[site] = 0
    h.state[LENGTH] = h.state[FRESH] = length
