"""Release and acquire: accesses ordered by fences and atomic operations, as a graph of events.

A release makes an *event*: the accesses that its thread's fence covers, and the events that its thread has acquired. It
becomes the head of its element. A thread whose later atomic operation reads the element acquires the head: by the order
of the operation, by a fence after it, or by a barrier or `syncwarp`. So the order passes from thread to thread, over any
number of elements. Events are numbered in order of execution, and each names at most two earlier events.

Known limit: the table of events has a fixed size. When it is full, all events are discarded, and earlier accesses count
as ordered.
"""

from __future__ import annotations

from ... import language as st
from ...language.hints import Global, i32, i64, u32
from ...language.intrinsics import WARP_SIZE
from .shadow import (
    ACQUIRES,
    BARRIERS,
    BITS,
    BLOCK,
    BLOCK_OF,
    DISCARDED,
    DISCARDED_EVENTS,
    EVENT,
    EVENT_CAPACITY,
    EVENTS,
    FOREIGN,
    LENGTH,
    LOADS_ONLY,
    MERGED,
    MOST_THREADS,
    MOST_VISITS,
    OVERWRITES,
    PHASE_OF,
    PUBLISHED,
    SEARCHES,
    THREAD,
    TICK,
    WARP_SYNCHRONOUS,
    WARPS,
    RaceState,
)

(
    PREDECESSOR_1, PREDECESSOR_2, EVENT_BLOCK, EVENT_THREAD, FENCE_TIMESTAMP, FENCE_PHASE, SCOPE, CREATED, FULL_SYNC, PARTNERS,
    PARTNER_SYNC,
) = range(EVENT)  # fmt: skip
"""Columns of an event: its predecessors; its block, -1 if it only joins two others; its thread; timestamp and phase of the fence;
its scope; number of timestamps at its creation; `full_warp_syncs` of the warp; the lanes of its thread's last `syncwarp` of some lanes,
and the timestamp of that."""
NOT_RELEASED, ACQUIRED, READ_NOT_ACQUIRED, RELEASED_BY_LANE, RELEASED_BY_WARP = range(5)
"""Release of an access to a thread: none; acquired; the thread has read it and not acquired it; the release acquired is by another
lane of the warp, or by another warp of the block, without a synchronisation after the access."""


@st.device
def discard_events(race: RaceState) -> None:
    """Discard all events: every access so far counts as ordered."""
    race.state[DISCARDED_EVENTS] = race.state[EVENTS]
    race.state[DISCARDED] = race.state[LENGTH] * TICK


@st.device
def _current(race: RaceState, event: i64) -> i64:
    """Return the event, or 0 if it was discarded."""
    return event if event > race.state[DISCARDED_EVENTS] else i64(0)


@st.device
def _row(race: RaceState, event: i64) -> i64:
    return EVENT * (event - race.state[DISCARDED_EVENTS])


@st.device
def _new(race: RaceState, first: i64, second: i64) -> i64:
    """Return a new event that joins up to two others."""
    if race.state[EVENTS] - race.state[DISCARDED_EVENTS] + 1 == race.state[EVENT_CAPACITY]:
        discard_events(race)
    race.state[EVENTS] += 1
    row = _row(race, race.state[EVENTS])
    race.events[row + PREDECESSOR_1] = _current(race, first)
    race.events[row + PREDECESSOR_2] = _current(race, second)
    race.events[row + EVENT_BLOCK] = -1
    race.events[row + CREATED] = race.state[LENGTH]
    return race.state[EVENTS]


@st.device
def _join(race: RaceState, first: i64, second: i64) -> i64:
    """Return an event that both reach; 0 if both were discarded."""
    a = _current(race, first)
    b = _current(race, second)
    if b == 0 or a == b:
        return a
    if a == 0:
        return b
    row = _row(race, a)
    if race.events[row + PREDECESSOR_1] == b or race.events[row + PREDECESSOR_2] == b:
        return a
    return _new(race, a, b)


@st.device
def clear_thread_events(race: RaceState) -> None:
    """Clear the acquired events at the start of a block."""
    for thread in range(i64(2 * MOST_THREADS)):
        race.thread_events[thread] = 0


@st.device
def acquire_by_fence(race: RaceState, thread: i64, scope: i32) -> None:
    """Acquire the events that earlier atomic operations of a thread have read.

    A fence of block scope does not acquire from another block.
    """
    pending = _current(race, race.thread_events[MOST_THREADS + thread])
    if pending == 0:
        return
    block = race.events[_row(race, pending) + EVENT_BLOCK]
    if scope == 2 or block < 0 or block == race.state[BLOCK]:
        race.thread_events[thread] = _join(race, race.thread_events[thread], pending)
        race.thread_events[MOST_THREADS + thread] = 0


@st.device
def synchronise_block(race: RaceState) -> None:
    """At a barrier, before it is counted: each thread acquires the events that any thread of the block has acquired or read.

    If all warps have fenced, their accesses are published.
    """
    union = i64(0)
    for thread in range(WARP_SIZE * race.state[WARPS]):
        union = _join(race, union, race.thread_events[thread])
        union = _join(race, union, race.thread_events[MOST_THREADS + thread])
    published = True
    for warp in range(race.state[WARPS]):
        fenced = False
        for lane in range(i64(WARP_SIZE)):
            fence = 4 * (WARP_SIZE * warp + lane)
            now = race.fences[fence + 1] == race.state[BARRIERS] and race.fences[fence + 2] == race.state[BLOCK]
            fenced = fenced or (race.fences[fence] != 0 and now and race.fences[fence + 3] == 2)
        published = published and fenced
        for lane in range(i64(WARP_SIZE)):
            race.thread_events[WARP_SIZE * warp + lane] = union
            race.thread_events[MOST_THREADS + WARP_SIZE * warp + lane] = 0
    if published:
        race.state[PUBLISHED] = race.state[BARRIERS] + 1


@st.device
def synchronise_lanes(race: RaceState, warp: i64, active: u32, masks: Global[u32]) -> None:
    """At a `syncwarp` of active lanes, each with its mask: each acquires the events of the lanes in its mask."""
    before = st.local(i64, WARP_SIZE)
    for lane in range(i64(WARP_SIZE)):
        thread = WARP_SIZE * warp + lane
        before[lane] = _join(race, race.thread_events[thread], race.thread_events[MOST_THREADS + thread])
    for lane in range(i64(WARP_SIZE)):
        if (active >> u32(lane) & 1) != 0:
            union = before[lane]
            for other in range(i64(WARP_SIZE)):
                if ((masks[lane] & active) >> u32(other) & 1) != 0:
                    union = _join(race, union, before[other])
            race.thread_events[WARP_SIZE * warp + lane] = union
            race.thread_events[MOST_THREADS + WARP_SIZE * warp + lane] = 0


@st.device
def atomic_operation(race: RaceState, at: i64, shared: bool, role: i32, thread: i64) -> None:
    """Read the head of an element, and release the accesses before the thread's fence.

    A store reads no head, and ends the releases of other threads to its element: only a read-modify-write operation continues them.
    at: index of the head. shared: whether the element ends with its block.
    """
    before = _current(race, i64(race.heads[at]))
    if before != 0 and shared and race.events[_row(race, before) + CREATED] < race.state[FOREIGN] // TICK:
        before = i64(0)
    if role & OVERWRITES != 0:
        before = i64(0)
        race.heads[at] = u32(0)
    first = thread & ~(WARP_SIZE - 1) if race.state[WARP_SYNCHRONOUS] != 0 else thread
    last = first + WARP_SIZE if race.state[WARP_SYNCHRONOUS] != 0 else thread + 1
    for reader in range(first, last):
        to = reader if role & ACQUIRES != 0 else reader + MOST_THREADS
        race.thread_events[to] = _join(race, race.thread_events[to], before)
    fence = 4 * thread
    if role & LOADS_ONLY != 0 or race.fences[fence] == 0 or race.fences[fence + 2] != race.state[BLOCK]:
        return
    _release(race, at, before, thread)


@st.device
def _release(race: RaceState, at: i64, before: i64, thread: i64) -> None:
    """Make an event of the thread's fence the head at an index. before: the present head."""
    fence = 4 * thread
    phase = max(race.fences[fence + 1], race.state[PUBLISHED])
    full_sync = i64(race.full_warp_syncs[thread >> 5])
    acquired = _current(race, race.thread_events[thread])
    if before != 0:
        row = _row(race, before)
        same = race.events[row + EVENT_BLOCK] == race.state[BLOCK] and race.events[row + EVENT_THREAD] == thread
        same = same and race.events[row + FENCE_TIMESTAMP] == race.fences[fence]
        same = same and race.events[row + FENCE_PHASE] == phase and race.events[row + FULL_SYNC] == full_sync
        if same and (acquired == before or race.events[row + PREDECESSOR_1] == acquired):
            return
    event = _new(race, acquired, before)
    row = _row(race, event)
    race.events[row + EVENT_BLOCK] = race.state[BLOCK]
    race.events[row + EVENT_THREAD] = thread
    race.events[row + FENCE_TIMESTAMP] = race.fences[fence]
    race.events[row + FENCE_PHASE] = phase
    race.events[row + SCOPE] = race.fences[fence + 3]
    race.events[row + FULL_SYNC] = full_sync
    partner_sync = i64(0)
    for lane in range(i64(WARP_SIZE)):
        partner_sync = max(partner_sync, i64(race.clocks[WARP_SIZE * thread + lane]))
    partners = i64(0)
    for lane in range(i64(WARP_SIZE)):
        partners |= i64(i64(race.clocks[WARP_SIZE * thread + lane]) == partner_sync) << lane
    race.events[row + PARTNERS] = partners
    race.events[row + PARTNER_SYNC] = partner_sync
    race.heads[at] = u32(event)


@st.device
def _reaches(race: RaceState, row: i64, block: i64) -> bool:
    """Return whether a release is of an access's block, by a fence whose scope includes the current thread."""
    return race.events[row + EVENT_BLOCK] == block and (race.events[row + SCOPE] == 2 or block == race.state[BLOCK])


@st.device
def _covers(race: RaceState, row: i64, epoch: i64, block: i64, phase: i64) -> bool:
    """Return whether a release is ordered after an access of its own block, and reaches the current thread."""
    if not _reaches(race, row, block):
        return False
    other = epoch & THREAD
    if phase < race.events[row + FENCE_PHASE]:
        return True
    if other >> 5 != race.events[row + EVENT_THREAD] >> 5:
        return False
    is_partner = (race.events[row + PARTNERS] >> (other & (WARP_SIZE - 1)) & 1) != 0
    if is_partner and epoch >> BITS < race.events[row + PARTNER_SYNC]:
        return True
    in_step = other == race.events[row + EVENT_THREAD] or race.state[WARP_SYNCHRONOUS] != 0
    return epoch < race.events[row + FULL_SYNC] or (in_step and epoch >> BITS < race.events[row + FENCE_TIMESTAMP])


@st.device
def _unsynchronised(race: RaceState, row: i64, epoch: i64, block: i64) -> i32:
    """Return the releaser of an event that would cover an access if the two threads had synchronised.

    RELEASED_BY_LANE, RELEASED_BY_WARP, or NOT_RELEASED.
    """
    other = epoch & THREAD
    if not _reaches(race, row, block) or other == race.events[row + EVENT_THREAD]:
        return NOT_RELEASED
    return RELEASED_BY_LANE if other >> 5 == race.events[row + EVENT_THREAD] >> 5 else RELEASED_BY_WARP


@st.device
def release_status(race: RaceState, epoch: i64, thread: i64) -> i32:
    """Return how an access was released to the current thread: NOT_RELEASED, ACQUIRED, ..."""
    if epoch < race.state[DISCARDED] or (race.state[MERGED] != 0 and epoch < race.state[FOREIGN]):
        return ACQUIRED  # the log no longer has its block
    status = _search(race, race.thread_events[thread], epoch)
    if status == ACQUIRED:
        return ACQUIRED
    if _search(race, race.thread_events[MOST_THREADS + thread], epoch) == ACQUIRED:
        return READ_NOT_ACQUIRED
    return status


@st.device
def _search(race: RaceState, event: i64, epoch: i64) -> i32:
    """Search an event and its predecessors, depth first, for a release that covers an access.

    Returns ACQUIRED if there is one, else the nearest unsynchronised release. After MOST_VISITS events the search ends with
    ACQUIRED. `visits` contains the last search that visited each event, then the stack of the search.
    """
    when = epoch >> BITS
    block = i64(race.log[4 * when + BLOCK_OF])
    phase = i64(race.log[4 * when + PHASE_OF])
    race.state[SEARCHES] += 1
    bottom = race.state[EVENT_CAPACITY]
    depth = i64(1)
    race.visits[bottom] = i32(_current(race, event) - race.state[DISCARDED_EVENTS])
    visited = i64(0)
    nearest = i32(NOT_RELEASED)
    while depth > 0:
        depth -= 1
        number = i64(race.visits[bottom + depth])
        if number <= 0 or race.visits[number] == i32(race.state[SEARCHES]):
            continue
        if race.events[EVENT * number + CREATED] <= when:
            continue
        race.visits[number] = i32(race.state[SEARCHES])
        visited += 1
        row = EVENT * number
        if visited == MOST_VISITS or _covers(race, row, epoch, block, phase):
            return ACQUIRED
        releaser = _unsynchronised(race, row, epoch, block)
        if releaser != NOT_RELEASED and nearest != RELEASED_BY_LANE:
            nearest = releaser
        race.visits[bottom + depth] = i32(race.events[row + PREDECESSOR_1] - race.state[DISCARDED_EVENTS])
        race.visits[bottom + depth + 1] = i32(race.events[row + PREDECESSOR_2] - race.state[DISCARDED_EVENTS])
        depth += 2
    return nearest
