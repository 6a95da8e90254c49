"""Happens-before order of the race detector: transitions of the race state at blocks, barriers, fences and resumed warps."""

from typing import Any, NamedTuple

from ... import language as st
from ...language.hints import Global, i32, i64, u32
from ...language.intrinsics import WARP_SIZE
from ...native import Native, fixed, native
from .release_acquire import (
    acquire_by_fence,
    clear_thread_events,
    discard_events,
    record_fence,
    synchronise_block,
    synchronise_lanes,
)
from .shadow import (
    ACCESS_OF,
    BARRIERS,
    BLOCK,
    BLOCK_FENCE,
    BLOCK_OF,
    BULK_GROUPS,
    CAPACITY,
    CLUSTER,
    DEVICE_FENCE,
    EPOCHS,
    FENCED,
    FOREIGN,
    FRESH,
    GRID,
    LENGTH,
    MERGED,
    NOW,
    PHASE,
    PHASE_OF,
    PRODUCT_GROUPS,
    PROXY,
    PUBLISHED,
    SITES,
    TICK,
    WARP,
    WARP_OF,
    WARPS,
    RaceState,
)

ASYNC_ROWS = {
    "proxy": PROXY, "commit": PRODUCT_GROUPS, "wait": PRODUCT_GROUPS,
    "bulk_commit": BULK_GROUPS, "bulk_wait": BULK_GROUPS, "bulk_wait_read": BULK_GROUPS,
}  # fmt: skip
"""The first row of `copy_groups` that an `ir.AsyncOrder` changes, by its mode."""


def async_order(mode: str, pending: int) -> tuple[int, int] | None:
    """Return the arguments of `order_async` for an `ir.AsyncOrder`; None for one that orders no memory."""
    return (ASYNC_ROWS[mode], -1 if "commit" in mode else pending) if mode in ASYNC_ROWS else None


class BoundRaceState:
    """Calls native functions with one race state, whose arrays are checked once."""

    def __init__(self, race_state: RaceState) -> None:
        self.arrays = race_state
        self._fixed = fixed(*race_state)  # type: ignore[arg-type]

    def __call__(self, function: Native, *rest: Any) -> Any:
        return function(self._fixed, *rest)


@st.device
def has(mask: u32, lane: i64) -> bool:
    """Return whether a lane is in a mask."""
    return (mask >> u32(lane) & 1) != 0


# ------------------------------------------------------------------ blocks and warps
@st.device
def _enter_block(race: RaceState, block: i64, barriers: i64) -> None:
    """Start or resume a block: all accesses so far are of other blocks."""
    race.state[BLOCK] = block
    race.state[BARRIERS] = barriers
    race.state[WARP] = 0
    race.state[PUBLISHED] = 0
    if race.state[FENCED] != 0:
        clear_thread_events(race)
    now = race.state[LENGTH]
    race.state[FOREIGN] = now * TICK
    race.state[PHASE] = now * TICK
    race.state[NOW] = now * TICK
    race.state[FRESH] = now


@native
def begin_block(race: RaceState, block: i64) -> None:
    """Start a block."""
    _enter_block(race, block, i64(0))


@native
def resume_block(race: RaceState, block: i64, barriers: i64) -> None:
    """Resume a block after a grid barrier. barriers: the number of barriers that it has passed."""
    _enter_block(race, block, barriers)


@native
def grid_barrier(race: RaceState) -> None:
    """All blocks pass a grid barrier: all accesses so far are ordered before all later ones."""
    race.state[GRID] = race.state[LENGTH] * TICK


@native
def cluster_barrier(race: RaceState, arrived: i64) -> None:
    """The block passes a barrier of its cluster: the accesses of the cluster before an epoch, at the arrival, precede all later ones."""
    if race.state[FENCED] != 0:
        synchronise_block(race)
    race.state[BARRIERS] += 1
    race.state[GRID] = arrived
    race.state[PHASE] = max(race.state[PHASE], arrived)
    race.state[NOW] = race.state[LENGTH] * TICK
    race.state[FRESH] = race.state[LENGTH]


@native
def barrier(race: RaceState) -> None:
    """The block passes a barrier: all its accesses so far are ordered before all later ones."""
    if race.state[FENCED] != 0:
        synchronise_block(race)
    now = race.state[LENGTH]
    race.state[BARRIERS] += 1
    race.state[PHASE] = now * TICK
    race.state[NOW] = now * TICK
    race.state[FRESH] = now


@native
def resume_warp(race: RaceState, warp: i64) -> None:
    """A warp resumes."""
    if race.state[WARP] != warp:
        race.state[WARP] = warp
        race.state[FRESH] = race.state[LENGTH]
        race.state[NOW] = max(race.state[PHASE], i64(race.warp_syncs[warp]))


@native
def commit_copies(race: RaceState) -> None:
    """The current warp ends a group of asynchronous copies; later copies get new timestamps."""
    _commit(race, race.state[WARP])


@native
def wait_for_copies(race: RaceState, pending: i64) -> None:
    """The current warp waits for its groups of asynchronous copies but the last few. pending: their number."""
    _wait(race, race.state[WARP], pending)


@native
def order_async(race: RaceState, first: i64, pending: i64) -> None:
    """Order bulk copies or products of the current warp. first: of ASYNC_ROWS. pending: groups that a wait leaves; -1 for a commit."""
    row = first + race.state[WARP]
    if first == PROXY:
        race.copy_groups[4 * row] = race.state[LENGTH]
        race.state[FRESH] = race.state[LENGTH]
    elif pending < 0:
        _commit(race, row)
    else:
        _wait(race, row, pending)


@st.device
def _commit(race: RaceState, row: i64) -> None:
    race.copy_groups[4 * row] += 1
    race.state[FRESH] = race.state[LENGTH]


@st.device
def _wait(race: RaceState, row: i64, pending: i64) -> None:
    own = 4 * row
    if race.copy_groups[own + 3] != race.state[BARRIERS]:
        race.copy_groups[own + 2] = race.copy_groups[own + 1]
        race.copy_groups[own + 3] = race.state[BARRIERS]
    race.copy_groups[own + 1] = max(race.copy_groups[own + 1], race.copy_groups[own] - pending)


@native
def fence(race: RaceState, mask: u32, scope: i32) -> None:
    """Lanes of the current warp pass a fence; scope: 1 block, 2 device."""
    warp = race.state[WARP]
    now = synchronise_warp(race)
    for lane in range(i64(WARP_SIZE)):
        if has(mask, lane):
            record_fence(race, WARP_SIZE * warp + lane, i64(DEVICE_FENCE if scope == 2 else BLOCK_FENCE), now)
            acquire_by_fence(race, WARP_SIZE * warp + lane, scope)


@st.device
def synchronise_warp(race: RaceState) -> i64:
    """Start new timestamps for the current warp; return the first."""
    now = race.state[LENGTH]
    race.state[FRESH] = now
    race.state[NOW] = now * TICK
    race.warp_syncs[race.state[WARP]] = u32(now * TICK)
    return now


@native
def syncwarp(race: RaceState, active: u32, alive: u32, masks: Global[u32]) -> None:
    """Active lanes of the current warp synchronise in a `syncwarp`, each with the active lanes of its mask. masks: u32[32].

    alive: the lanes that have not returned.
    """
    warp = race.state[WARP]
    now = synchronise_warp(race)
    if race.state[FENCED] != 0:
        synchronise_lanes(race, warp, active, masks)
    complete = active == alive
    for lane in range(i64(WARP_SIZE)):
        if has(active, lane) and (masks[lane] & alive) != alive:
            complete = False
    if complete:
        race.full_warp_syncs[warp] = u32(now * TICK)
        return
    before = st.local(i32, 1024)
    for at in range(i64(1024)):
        before[at] = race.clocks[1024 * warp + at]
    for lane in range(i64(WARP_SIZE)):
        if not has(active, lane):
            continue
        partners = masks[lane] & active
        own = 1024 * warp + WARP_SIZE * lane
        for other in range(i64(WARP_SIZE)):
            if has(partners, other):
                for third in range(i64(WARP_SIZE)):
                    race.clocks[own + third] = max(race.clocks[own + third], before[WARP_SIZE * other + third])
        for other in range(i64(WARP_SIZE)):
            if has(partners, other):
                race.clocks[own + other] = i32(now)


# ------------------------------------------------------------------ timestamps
@st.device
def timestamp_of(race: RaceState, access_id: i64) -> i64:
    """Return the timestamp of an access of the current warp; a new one unless the site has one since FRESH."""
    site = access_id // 4
    present = i64(race.timestamps[site])
    if present >= race.state[FRESH]:
        return present
    if race.state[LENGTH] == race.state[CAPACITY]:
        _shorten_log(race)
    now = race.state[LENGTH]
    race.log[4 * now + BLOCK_OF] = i32(race.state[BLOCK])
    race.log[4 * now + PHASE_OF] = i32(race.state[BARRIERS])
    race.log[4 * now + WARP_OF] = i32(race.state[WARP])
    race.log[4 * now + ACCESS_OF] = i32(access_id)
    race.timestamps[site] = i32(now)
    race.state[LENGTH] = now + 1
    return now


@native
def unwritten(race: RaceState, array: i64, mask: u32, index: Global[i64]) -> u32:
    """Return the lanes of a mask whose element was never written. index: int64[32]."""
    least = race.state[FOREIGN] if race.planes[4 * array + 2] != 0 else i64(1)
    result = u32(0)
    for lane in range(i64(WARP_SIZE)):
        if has(mask, lane) and i64(race.epochs[race.planes[4 * array] + index[lane]]) < least:
            result |= u32(1) << u32(lane)
    return result


@native
def record_writes(race: RaceState, array: i64, mask: u32, index: Global[i64]) -> None:
    """Lanes write elements of an array that is not checked for races: the writing thread is not recorded. index: int64[32]."""
    for lane in range(i64(WARP_SIZE)):
        if has(mask, lane):
            race.epochs[race.planes[4 * array] + index[lane]] = u32(race.state[FOREIGN])


# ------------------------------------------------------------------ shortening the log
class MergeLimits(NamedTuple):
    """Timestamps that decide which rows of the log are merged. sites: number of sites. foreign, phase: first of the block, of
    the phase."""

    sites: i64
    foreign: i64
    phase: i64


@st.device
def _group(race: RaceState, limits: MergeLimits, row: i64) -> i64:
    """Return the group of rows with which a row is merged; 0 if it is not merged."""
    warp = i64(race.log[4 * row + WARP_OF])
    site = i64(race.log[4 * row + ACCESS_OF]) // 4
    if row < limits.foreign:
        return 1 + site
    if row < limits.phase:
        return 1 + limits.sites + site
    if row < i64(race.full_warp_syncs[warp]) // TICK:
        return 1 + 2 * limits.sites + 32 * site + warp
    return i64(0)


@st.device
def _merge_limits(race: RaceState) -> MergeLimits:
    """Return the limits of the present phase; those of a new phase if fewer than half of the rows would be merged."""
    limits = MergeLimits(race.state[SITES], race.state[FOREIGN] // TICK, race.state[PHASE] // TICK)
    single = i64(0)
    for row in range(1, race.state[LENGTH]):
        single += i64(_group(race, limits, row) == 0)
    if 2 * single > race.state[CAPACITY]:
        limits = MergeLimits(limits.sites, limits.foreign, race.state[LENGTH])
    return limits


@st.device
def _shorten_log(race: RaceState) -> None:
    """Merge rows of the log that order later accesses equally. The blocks of merged rows are lost.

    These are rows of one site in other blocks, of one site before the last barrier, and of one site and warp before the
    last `syncwarp` of all lanes. If these are few, all rows count as before the last barrier. Events refer to rows, and are
    discarded.

    scratch: the new number of each row, and one more; the same for `_renumber`; of each group its number, then its row.
    """
    limits = _merge_limits(race)
    merged = _number_groups(race, limits)
    length = _move_rows(race, limits, merged)
    race.scratch[race.state[LENGTH]] = i32(length)
    for at in range(race.state[EPOCHS]):
        epoch = race.epochs[at]
        if epoch >= TICK:
            race.epochs[at] = u32(race.scratch[epoch // TICK]) * TICK + epoch % TICK
    _renumber(race, merged, length)
    race.state[CLUSTER] = 0
    if race.state[GRID] != 0:
        race.state[GRID] = race.state[FOREIGN]  # rows before and after the grid barrier were merged
    race.state[MERGED] = 1
    if race.state[FENCED] != 0:
        discard_events(race)


@st.device
def _number_groups(race: RaceState, limits: MergeLimits) -> i64:
    """Number the groups that have rows, from 1 on, and set FOREIGN and PHASE to theirs. Return the number after the last."""
    groups = 1 + 34 * limits.sites
    number = 2 * (race.state[CAPACITY] + 1)
    for g in range(groups):
        race.scratch[number + g] = 0
    for row in range(1, race.state[LENGTH]):
        race.scratch[number + _group(race, limits, row)] = 1
    count = i64(1)
    for g in range(1, groups):
        if g == 1 + limits.sites:
            race.state[FOREIGN] = count * TICK
        elif g == 1 + 2 * limits.sites:
            race.state[PHASE] = count * TICK
        if race.scratch[number + g] != 0:
            race.scratch[number + g] = i32(count)
            count += 1
    return count


@st.device
def _move_rows(race: RaceState, limits: MergeLimits, merged: i64) -> i64:
    """Move merged rows to the start of the log and the other rows after them. Return the new length of the log."""
    number = 2 * (race.state[CAPACITY] + 1)
    rows = number + 1 + 34 * limits.sites
    end = i64(1)  # unmerged rows move to the front first, then after the merged rows
    for row in range(1, race.state[LENGTH]):
        group = _group(race, limits, row)
        if group != 0:
            race.scratch[row] = race.scratch[number + group]
            for column in range(i64(4)):
                race.scratch[rows + 4 * i64(race.scratch[row]) + column] = race.log[4 * row + column]
        else:
            race.scratch[row] = i32(end + merged - 1)
            for column in range(i64(4)):
                race.log[4 * end + column] = race.log[4 * row + column]
            end += 1
    for at in range(4 * end - 1, i64(3), -1):
        race.log[4 * (merged - 1) + at] = race.log[at]
    for at in range(i64(4), 4 * merged):
        race.log[at] = race.scratch[rows + at]
    return end + merged - 1


@st.device
def _renumber(race: RaceState, first: i64, length: i64) -> None:
    """Update the timestamps outside shadow memory. first: of the unmerged rows. length: of the log."""
    before = race.state[LENGTH]
    upward = race.state[CAPACITY] + 1  # the first unmerged row at or above each old one
    race.scratch[upward + before] = i32(length)
    for row in range(before - 1, 0, -1):
        unmerged = i64(race.scratch[row]) >= first
        race.scratch[upward + row] = race.scratch[row] if unmerged else race.scratch[upward + row + 1]
    for warp in range(i64(32)):
        full = i64(race.full_warp_syncs[warp]) // TICK
        if race.full_warp_syncs[warp] != 0:
            race.full_warp_syncs[warp] = u32(race.scratch[upward + min(full, before)]) * TICK
        last = i64(race.warp_syncs[warp]) // TICK
        if race.warp_syncs[warp] != 0:
            race.warp_syncs[warp] = u32(race.scratch[upward + min(last, before)]) * TICK
    for at in range(1024 * race.state[WARPS]):
        if race.clocks[at] != 0:
            race.clocks[at] = race.scratch[upward + i64(race.clocks[at])]
    for site in range(race.state[SITES]):
        race.timestamps[site] = 0
    race.state[LENGTH] = length
    race.state[FRESH] = length
    race.state[NOW] = max(race.state[PHASE], i64(race.warp_syncs[race.state[WARP]]))
