"""Release and acquire: accesses ordered by fences and atomic operations, as a graph of events.

A release makes an *event*: the accesses that its thread's fence covers, and the events that its thread has acquired. It
becomes the head of its element. A thread whose later atomic operation reads the element acquires the head: by the order
of the operation, by a fence after it, or by a barrier or `syncwarp`. So the order passes from thread to thread, over any
number of elements. Events are numbered in order of execution, and each names at most two earlier events.

Known limit: the table of events has a fixed size. When it is full, all events are discarded, and earlier accesses count
as ordered.
"""

from ... import language as st
from ...language.hints import Global, i32, i64, u32
from ...language.intrinsics import WARP_SIZE
from .shadow import (
    ACQUIRES,
    BARRIERS,
    BITS,
    BLOCK,
    BLOCK_FENCE,
    BLOCK_OF,
    CLOCKS,
    DEVICE_FENCE,
    DISCARDED,
    DISCARDED_EVENTS,
    EVENT,
    EVENT_CAPACITY,
    EVENTS,
    FENCE,
    FENCE_BLOCK,
    FENCE_ELEMENT,
    FENCE_PHASE,
    FENCE_TIMESTAMP,
    FOREIGN,
    FULL_SYNC,
    LENGTH,
    LOADS_ONLY,
    MERGED,
    MOST_THREADS,
    MOST_VISITS,
    OVERWRITES,
    PHASE_OF,
    PUBLISHED,
    RELEASE,
    RELEASE_SCOPE,
    RELEASES,
    SEARCHES,
    SLOTS,
    THREAD,
    TICK,
    WARP_SYNCHRONOUS,
    WARPS,
    RaceState,
)

(PREDECESSOR_1, PREDECESSOR_2, EVENT_BLOCK, EVENT_THREAD, CREATED, SCOPE, COVERED) = range(EVENT - FENCE)
"""Columns of an event: its predecessors; its block, -1 if it only joins two others; its thread; number of timestamps at its creation;
its scope; from COVERED on, the columns of its fence."""
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
def record_fence(race: RaceState, thread: i64, slot: i64, timestamp: i64) -> None:
    """Record a fence or a release of a thread. slot: DEVICE_FENCE, BLOCK_FENCE or RELEASE."""
    row = FENCE * (SLOTS * thread + slot)
    race.fences[row + FENCE_TIMESTAMP] = timestamp
    race.fences[row + FENCE_PHASE] = race.state[BARRIERS]
    race.fences[row + FENCE_BLOCK] = race.state[BLOCK]
    race.fences[row + FULL_SYNC] = i64(race.full_warp_syncs[thread >> 5])
    for lane in range(i64(WARP_SIZE)):
        race.fences[row + CLOCKS + lane] = i64(race.clocks[WARP_SIZE * thread + lane])
    copies = 4 * (thread >> 5)  # groups that its warp has waited for: the threads that acquire know them
    race.copy_groups[copies + 2] = race.copy_groups[copies + 1]


@st.device
def _is_present(race: RaceState, row: i64) -> bool:
    """Return whether a fence is of the block that runs."""
    return race.fences[row + FENCE_TIMESTAMP] != 0 and race.fences[row + FENCE_BLOCK] == race.state[BLOCK]


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
            row = FENCE * (SLOTS * (WARP_SIZE * warp + lane) + DEVICE_FENCE)
            fenced = fenced or (_is_present(race, row) and race.fences[row + FENCE_PHASE] == race.state[BARRIERS])
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
def read_head(race: RaceState, at: i64, shared: bool, role: i32, thread: i64, of_block: bool) -> None:
    """Read the head of an element by an atomic operation. A store reads no head, and ends the releases to its element: only a
    read-modify-write operation continues them.

    at: index of the head. shared: whether the element ends with its block. of_block: whether the operation is atomic for its block.
    """
    head = _current(race, i64(race.heads[at])) if role & OVERWRITES == 0 else i64(0)
    if head != 0 and shared and race.events[_row(race, head) + CREATED] < race.state[FOREIGN] // TICK:
        head = i64(0)
    if head != 0 and of_block and race.events[_row(race, head) + EVENT_BLOCK] != race.state[BLOCK]:
        head = i64(0)
    if role & LOADS_ONLY == 0:
        race.heads[at] = u32(head)
    first = thread & ~(WARP_SIZE - 1) if race.state[WARP_SYNCHRONOUS] != 0 else thread
    last = first + WARP_SIZE if race.state[WARP_SYNCHRONOUS] != 0 else thread + 1
    for reader in range(first, last):
        to = reader if role & ACQUIRES != 0 else reader + MOST_THREADS
        race.thread_events[to] = _join(race, race.thread_events[to], head)


@st.device
def release(race: RaceState, at: i64, role: i32, thread: i64, timestamp: i64, of_block: bool) -> None:
    """Release what the fences of a thread cover by an atomic operation that has read the head of its element. A release covers itself
    too, and later operations of the thread on its element continue it. timestamp: of the operation."""
    if role & LOADS_ONLY != 0:
        return
    first = FENCE * SLOTS * thread
    own = first + FENCE * RELEASE
    if role & RELEASES != 0:
        record_fence(race, thread, i64(RELEASE), timestamp + 1)
        race.fences[own + FENCE_ELEMENT] = at
        race.fences[own + RELEASE_SCOPE] = 1 if of_block else 2
    of_device = race.fences[first + FENCE_TIMESTAMP] if _is_present(race, first) else i64(0)
    for slot in range(i64(SLOTS)):
        row = first + FENCE * slot
        is_newer = slot == DEVICE_FENCE or race.fences[row + FENCE_TIMESTAMP] > of_device
        if _is_present(race, row) and is_newer and (slot != RELEASE or race.fences[row + FENCE_ELEMENT] == at):
            scope = i64(1) if of_block or slot == BLOCK_FENCE else i64(2)
            if slot == RELEASE:
                scope = min(scope, race.fences[row + RELEASE_SCOPE])
            _release(race, at, thread, row, scope)


@st.device
def _release(race: RaceState, at: i64, thread: i64, fence: i64, scope: i64) -> None:
    """Make an event of a thread's fence the head at an index. fence: its row."""
    before = _current(race, i64(race.heads[at]))
    phase = max(race.fences[fence + FENCE_PHASE], race.state[PUBLISHED])
    acquired = _current(race, race.thread_events[thread])
    if before != 0:
        row = _row(race, before)
        same = race.events[row + EVENT_BLOCK] == race.state[BLOCK] and race.events[row + EVENT_THREAD] == thread
        same = same and race.events[row + COVERED + FENCE_TIMESTAMP] == race.fences[fence + FENCE_TIMESTAMP]
        same = same and race.events[row + COVERED + FENCE_PHASE] == phase and race.events[row + SCOPE] == scope
        if same and (acquired == before or race.events[row + PREDECESSOR_1] == acquired):
            return
    event = _new(race, acquired, before)
    row = _row(race, event)
    race.events[row + EVENT_BLOCK] = race.state[BLOCK]
    race.events[row + EVENT_THREAD] = thread
    race.events[row + SCOPE] = scope
    for column in range(i64(FENCE)):
        race.events[row + COVERED + column] = race.fences[fence + column]
    race.events[row + COVERED + FENCE_PHASE] = phase
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
    fence = row + COVERED
    if phase < race.events[fence + FENCE_PHASE]:
        return True
    if other >> 5 != race.events[row + EVENT_THREAD] >> 5:
        return False
    if (
        epoch < race.events[fence + FULL_SYNC]
        or epoch >> BITS < race.events[fence + CLOCKS + (other & (WARP_SIZE - 1))]
    ):
        return True
    in_step = other == race.events[row + EVENT_THREAD] or race.state[WARP_SYNCHRONOUS] != 0
    return in_step and epoch >> BITS < race.events[fence + FENCE_TIMESTAMP]


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
