"""The happens-before order of the race detector: how blocks, barriers, fences and resumed warps change the race state."""

from __future__ import annotations

from typing import Any

from ... import language as st
from ...language.hints import Global, i32, i64, u32
from ...native import Native, fixed, native
from .hand_overs import forget, forget_known, meet_block, meet_lanes, take_in
from .shadow import (
    ACCESS_OF,
    BARRIERS,
    BITS,
    BLOCK,
    BLOCK_OF,
    CAPACITY,
    EPOCHS,
    FENCED,
    FOREIGN,
    FRESH,
    GRID,
    LENGTH,
    MERGED,
    NOW,
    ONE,
    PHASE,
    PHASE_OF,
    PUBLISHED,
    SITES,
    WARP,
    WARP_OF,
    WARPS,
    RaceState,
)


class Applied:
    """Calls native functions on one race state, with the arrays that they name."""

    def __init__(self, race_state: RaceState) -> None:
        self.arrays = race_state
        self._by_name = dict(zip(RaceState._fields, fixed(*race_state), strict=True))

    def __call__(self, function: Native, *rest: Any) -> Any:
        return function(*(self._by_name[name] for name in function.names if name in self._by_name), *rest)


@st.device
def has(mask: u32, lane: i64) -> bool:
    """Whether a lane is in a mask."""
    return (mask >> u32(lane) & 1) != 0


# ------------------------------------------------------------------ what happens to a block
@native
def begin_block(state: Global[i64], known: Global[i64], block: i64) -> None:
    """A block starts: all accesses so far are of other blocks."""
    state[BLOCK] = block
    state[BARRIERS] = 0
    state[WARP] = 0
    state[PUBLISHED] = 0
    if state[FENCED] != 0:
        forget_known(known)
    now = state[LENGTH]
    state[FOREIGN] = now * ONE
    state[PHASE] = now * ONE
    state[NOW] = now * ONE
    state[FRESH] = now


@native
def resume_block(state: Global[i64], known: Global[i64], block: i64, barriers: i64) -> None:
    """A block goes on after a grid barrier, having passed so many barriers."""
    state[BLOCK] = block
    state[BARRIERS] = barriers
    state[WARP] = 0
    state[PUBLISHED] = 0
    if state[FENCED] != 0:
        forget_known(known)
    now = state[LENGTH]
    state[FOREIGN] = now * ONE
    state[PHASE] = now * ONE
    state[NOW] = now * ONE
    state[FRESH] = now


@native
def grid_barrier(state: Global[i64]) -> None:
    """All blocks pass a grid barrier: all accesses so far are ordered before all later ones."""
    state[GRID] = state[LENGTH] * ONE


@native
def barrier(state: Global[i64], events: Global[i64], known: Global[i64], fences: Global[i64]) -> None:
    """The block passes a barrier: all its accesses so far are ordered before all later ones."""
    if state[FENCED] != 0:
        meet_block(state, events, known, fences)
    now = state[LENGTH]
    state[BARRIERS] += 1
    state[PHASE] = now * ONE
    state[NOW] = now * ONE
    state[FRESH] = now


@native
def resume_warp(state: Global[i64], joined: Global[u32], warp: i64) -> None:
    """A warp resumes."""
    if state[WARP] != warp:
        state[WARP] = warp
        state[FRESH] = state[LENGTH]
        state[NOW] = max(state[PHASE], i64(joined[warp]))


@native
def commit_copies(state: Global[i64], copies: Global[i64]) -> None:
    """The current warp ends a group of asynchronous copies; later ones have timestamps of their own."""
    copies[4 * state[WARP]] += 1
    state[FRESH] = state[LENGTH]


@native
def wait_for_copies(state: Global[i64], copies: Global[i64], pending: i64) -> None:
    """The current warp waits for its groups but the last few."""
    own = 4 * state[WARP]
    if copies[own + 3] != state[BARRIERS]:
        copies[own + 2] = copies[own + 1]
        copies[own + 3] = state[BARRIERS]
    copies[own + 1] = max(copies[own + 1], copies[own] - pending)


@native
def fence(
    state: Global[i64],
    joined: Global[u32],
    fences: Global[i64],
    events: Global[i64],
    known: Global[i64],
    mask: u32,
    scope: i32,
) -> None:
    """Lanes of the current warp pass a fence; scope: 1 block, 2 device."""
    warp = state[WARP]
    now = _meet(state, joined)
    for lane in range(i64(32)):
        if has(mask, lane):
            row = 4 * (32 * warp + lane)
            fences[row] = now
            fences[row + 1] = state[BARRIERS]
            fences[row + 2] = state[BLOCK]
            fences[row + 3] = i64(scope)
            take_in(state, events, known, 32 * warp + lane, scope)


@st.device
def _meet(state: Global[i64], joined: Global[u32]) -> i64:
    """Start new timestamps for the current warp, which has synchronised; gives back the first."""
    now = state[LENGTH]
    state[FRESH] = now
    state[NOW] = now * ONE
    joined[state[WARP]] = u32(now * ONE)
    return now


@native
def join(
    state: Global[i64],
    joined: Global[u32],
    full: Global[u32],
    clock: Global[i32],
    events: Global[i64],
    known: Global[i64],
    active: u32,
    alive: u32,
    masks: Global[u32],
) -> None:
    """Lanes of the current warp meet in a `syncwarp`, each with the active lanes of its mask. masks: u32[32]."""
    warp = state[WARP]
    now = _meet(state, joined)
    if state[FENCED] != 0:
        meet_lanes(state, events, known, warp, active, masks)
    together = active == alive
    for lane in range(i64(32)):
        if has(active, lane) and (masks[lane] & alive) != alive:
            together = False
    if together:
        full[warp] = u32(now * ONE)
        return
    before = st.local(i32, 1024)
    for at in range(i64(1024)):
        before[at] = clock[1024 * warp + at]
    for lane in range(i64(32)):
        if not has(active, lane):
            continue
        others = masks[lane] & active
        own = 1024 * warp + 32 * lane
        for other in range(i64(32)):
            if has(others, other):
                for third in range(i64(32)):
                    clock[own + third] = max(clock[own + third], before[32 * other + third])
        for other in range(i64(32)):
            if has(others, other):
                clock[own + other] = i32(now)


# ------------------------------------------------------------------ timestamps
@st.device
def timestamp_of(
    state: Global[i64],
    log: Global[i32],
    timestamp: Global[i32],
    epochs: Global[u32],
    joined: Global[u32],
    full: Global[u32],
    clock: Global[i32],
    scratch: Global[i32],
    access_id: i64,
) -> i64:
    """The timestamp of an access of the current warp."""
    site = access_id // 4
    known = i64(timestamp[site])
    if known >= state[FRESH]:
        return known
    if state[LENGTH] == state[CAPACITY]:
        _shorten(state, log, timestamp, epochs, joined, full, clock, scratch)
    now = state[LENGTH]
    log[4 * now + BLOCK_OF] = i32(state[BLOCK])
    log[4 * now + PHASE_OF] = i32(state[BARRIERS])
    log[4 * now + WARP_OF] = i32(state[WARP])
    log[4 * now + ACCESS_OF] = i32(access_id)
    timestamp[site] = i32(now)
    state[LENGTH] = now + 1
    return now


@native
def unwritten(
    state: Global[i64], epochs: Global[u32], places: Global[i64], array: i64, mask: u32, index: Global[i64]
) -> u32:
    """The lanes of a mask whose element was never written."""
    least = state[FOREIGN] if places[4 * array + 2] != 0 else i64(1)
    found = u32(0)
    for lane in range(i64(32)):
        if has(mask, lane) and i64(epochs[places[4 * array] + index[lane]]) < least:
            found |= u32(1) << u32(lane)
    return found


@native
def note_written(
    state: Global[i64], epochs: Global[u32], places: Global[i64], array: i64, mask: u32, index: Global[i64]
) -> None:
    """Lanes write elements of an array in which races are not looked for: the writing thread is not recorded."""
    for lane in range(i64(32)):
        if has(mask, lane):
            epochs[places[4 * array] + index[lane]] = u32(state[FOREIGN])


# ------------------------------------------------------------------ a shorter log
@st.device
def _group(log: Global[i32], full: Global[u32], sites: i64, foreign: i64, phase: i64, m: i64) -> i64:
    """The group of rows that row m is merged with; 0: it is not merged."""
    warp = i64(log[4 * m + WARP_OF])
    site = i64(log[4 * m + ACCESS_OF]) // 4
    if m < foreign:
        return 1 + site
    if m < phase:
        return 1 + sites + site
    if m < i64(full[warp]) // ONE:
        return 1 + 2 * sites + 32 * site + warp
    return i64(0)


@st.device
def _shorten(
    state: Global[i64],
    log: Global[i32],
    timestamp: Global[i32],
    epochs: Global[u32],
    joined: Global[u32],
    full: Global[u32],
    clock: Global[i32],
    scratch: Global[i32],
) -> None:
    """Merge rows of the log that order later accesses in the same way. The blocks of merged rows are lost.

    These are rows of one site in other blocks, of one site before the last barrier, and of one site and warp before the
    last `syncwarp` of all lanes. Where these are few, all rows count as before the last barrier. Events name rows, and are
    forgotten.

    scratch: the new number of each row, and one more; the same for `_move`; of each group its number, then its row.
    """
    length = state[LENGTH]
    sites = state[SITES]
    phase = state[PHASE] // ONE
    foreign = state[FOREIGN] // ONE
    single = i64(0)
    for m in range(1, length):
        single += i64(_group(log, full, sites, foreign, phase, m) == 0)
    if 2 * single > state[CAPACITY]:
        phase = length
    groups = 1 + 34 * sites
    number = 2 * (state[CAPACITY] + 1)
    rows = number + groups
    for g in range(groups):
        scratch[number + g] = 0
    for m in range(1, length):
        scratch[number + _group(log, full, sites, foreign, phase, m)] = 1
    count = i64(1)
    for g in range(1, groups):
        if g == 1 + sites:
            state[FOREIGN] = count * ONE
        elif g == 1 + 2 * sites:
            state[PHASE] = count * ONE
        if scratch[number + g] != 0:
            scratch[number + g] = i32(count)
            count += 1
    kept = i64(1)  # rows of their own first move to the front, then to where they belong
    for m in range(1, length):
        group = _group(log, full, sites, foreign, phase, m)
        if group != 0:
            scratch[m] = scratch[number + group]
            for column in range(i64(4)):
                scratch[rows + 4 * i64(scratch[m]) + column] = log[4 * m + column]
        else:
            scratch[m] = i32(kept + count - 1)
            for column in range(i64(4)):
                log[4 * kept + column] = log[4 * m + column]
            kept += 1
    for at in range(4 * kept - 1, i64(3), -1):
        log[4 * (count - 1) + at] = log[at]
    for at in range(i64(4), 4 * count):
        log[at] = scratch[rows + at]
    own = kept + count - 1
    scratch[length] = i32(own)
    for at in range(state[EPOCHS]):
        epoch = epochs[at]
        if epoch >= ONE:
            epochs[at] = (u32(scratch[epoch >> BITS]) << BITS) + epoch % ONE
    _move(state, timestamp, joined, full, clock, scratch, count, own)
    if state[GRID] != 0:
        state[GRID] = state[FOREIGN]  # rows before and after the grid barrier were merged
    state[MERGED] = 1
    if state[FENCED] != 0:
        forget(state)


@st.device
def _move(
    state: Global[i64],
    timestamp: Global[i32],
    joined: Global[u32],
    full: Global[u32],
    clock: Global[i32],
    scratch: Global[i32],
    first: i64,
    length: i64,
) -> None:
    """Update the timestamps kept elsewhere, now that the rows of the current phase begin with `first`."""
    before = state[LENGTH]
    upward = state[CAPACITY] + 1  # the first row of its own at or above each old one
    scratch[upward + before] = i32(length)
    for m in range(before - 1, 0, -1):
        known = i64(scratch[m]) >= first
        scratch[upward + m] = scratch[m] if known else scratch[upward + m + 1]
    for warp in range(i64(32)):
        if full[warp] != 0:
            full[warp] = u32(scratch[upward + min(i64(full[warp]) // ONE, before)]) * ONE
        if joined[warp] != 0:
            joined[warp] = u32(scratch[upward + min(i64(joined[warp]) // ONE, before)]) * ONE
    for at in range(1024 * state[WARPS]):
        if clock[at] != 0:
            clock[at] = scratch[upward + i64(clock[at])]
    for site in range(state[SITES]):
        timestamp[site] = 0
    state[LENGTH] = length
    state[FRESH] = length
    state[NOW] = max(state[PHASE], i64(joined[state[WARP]]))
