"""Hand-overs: what a thread did before a fence and an atomic operation, and who knows of it through what it has read.

A release makes an *event*: the accesses that its thread's fence covers, and the events that its thread knew of. It becomes the
head of its element. A thread that later acts atomically on the element knows of its head once it has acquired it: by the
order of the operation, by a fence after it, or by a barrier or `syncwarp`. So knowledge passes from thread to thread,
over any number of elements. Events are numbered in order of execution, and each names at most two earlier ones.

The table of events has an end. Then all of them are forgotten, and accesses before that count as ordered.
"""

from __future__ import annotations

from ... import language as st
from ...language.hints import Global, i32, i64, u32
from .shadow import (
    BARRIERS,
    BITS,
    BLOCK,
    BLOCK_OF,
    EVENT,
    EVENTS,
    FOREIGN,
    FORGOTTEN,
    FORGOTTEN_EVENTS,
    HANDED,
    LENGTH,
    MERGED,
    MOST_THREADS,
    MOST_VISITS,
    ONE,
    PHASE_OF,
    PUBLISHED,
    SEARCHES,
    THREAD,
    WARP_SYNCHRONOUS,
    WARPS,
)

FIRST, SECOND, OF_BLOCK, OF_THREAD, FENCED_AT, FENCED_PHASE, SCOPE, MADE, MET, PARTNERS, MET_PARTNERS = range(EVENT)
"""Columns of an event: those it follows; its block, -1 where it only joins two others; its thread; timestamp and phase of the fence;
its scope; timestamps so far; `full` of the warp; the lanes of its thread's last `syncwarp` of some lanes, and when that was."""
ACQUIRES, LOADS_ONLY = 1, 2
"""Bits of `roles`: the operation acquires by itself; it writes nothing, so that it cannot release."""
NOT_AT_ALL, TAKEN_IN, READ_ONLY, BY_LANE, BY_WARP = range(5)
"""How an access was handed over: it was not; the thread knows of it; it has read so, and not acquired; what it knows of was released
by another lane of the warp, or by another warp of the block, without a synchronisation after the access."""


@st.device
def forget(state: Global[i64]) -> None:
    """Let go of all events: every access so far counts as ordered."""
    state[FORGOTTEN_EVENTS] = state[EVENTS]
    state[FORGOTTEN] = state[LENGTH] * ONE


@st.device
def _current(state: Global[i64], event: i64) -> i64:
    """The event, or 0 where it is forgotten."""
    return event if event > state[FORGOTTEN_EVENTS] else i64(0)


@st.device
def _row(state: Global[i64], event: i64) -> i64:
    return EVENT * (event - state[FORGOTTEN_EVENTS])


@st.device
def _new(state: Global[i64], events: Global[i64], first: i64, second: i64) -> i64:
    """A new event that follows two others, or fewer, and joins them only."""
    if state[EVENTS] - state[FORGOTTEN_EVENTS] + 1 == state[HANDED]:
        forget(state)
    state[EVENTS] += 1
    row = _row(state, state[EVENTS])
    events[row + FIRST] = _current(state, first)
    events[row + SECOND] = _current(state, second)
    events[row + OF_BLOCK] = -1
    events[row + MADE] = state[LENGTH]
    return state[EVENTS]


@st.device
def joined(state: Global[i64], events: Global[i64], one: i64, other: i64) -> i64:
    """An event from which both can be reached; 0 where neither is left."""
    a = _current(state, one)
    b = _current(state, other)
    if b == 0 or a == b:
        return a
    if a == 0:
        return b
    row = _row(state, a)
    if events[row + FIRST] == b or events[row + SECOND] == b:
        return a
    return _new(state, events, a, b)


@st.device
def forget_known(known: Global[i64]) -> None:
    """A block starts: its threads know of nothing."""
    for thread in range(i64(2 * MOST_THREADS)):
        known[thread] = 0


@st.device
def take_in(state: Global[i64], events: Global[i64], known: Global[i64], thread: i64, scope: i32) -> None:
    """A fence of a thread: it acquires what its atomic operations before have read. A fence of the block's scope does not
    acquire from another block."""
    pending = _current(state, known[MOST_THREADS + thread])
    if pending == 0:
        return
    block = events[_row(state, pending) + OF_BLOCK]
    if scope == 2 or block < 0 or block == state[BLOCK]:
        known[thread] = joined(state, events, known[thread], pending)
        known[MOST_THREADS + thread] = 0


@st.device
def meet_block(state: Global[i64], events: Global[i64], known: Global[i64], fences: Global[i64]) -> None:
    """At a barrier, before it is counted: each thread learns what any of the block knows or has read, and what all warps
    have fenced is published."""
    together = i64(0)
    for thread in range(32 * state[WARPS]):
        together = joined(state, events, together, known[thread])
        together = joined(state, events, together, known[MOST_THREADS + thread])
    published = True
    for warp in range(state[WARPS]):
        fenced = False
        for lane in range(i64(32)):
            fence = 4 * (32 * warp + lane)
            now = fences[fence + 1] == state[BARRIERS] and fences[fence + 2] == state[BLOCK]
            fenced = fenced or (fences[fence] != 0 and now and fences[fence + 3] == 2)
        published = published and fenced
        for lane in range(i64(32)):
            known[32 * warp + lane] = together
            known[MOST_THREADS + 32 * warp + lane] = 0
    if published:
        state[PUBLISHED] = state[BARRIERS] + 1


@st.device
def meet_lanes(
    state: Global[i64], events: Global[i64], known: Global[i64], warp: i64, active: u32, masks: Global[u32]
) -> None:
    """At a `syncwarp` of active lanes, each with its mask: each learns what those of its mask know or have read."""
    before = st.local(i64, 32)
    for lane in range(i64(32)):
        thread = 32 * warp + lane
        before[lane] = joined(state, events, known[thread], known[MOST_THREADS + thread])
    for lane in range(i64(32)):
        if (active >> u32(lane) & 1) != 0:
            together = before[lane]
            for other in range(i64(32)):
                if ((masks[lane] & active) >> u32(other) & 1) != 0:
                    together = joined(state, events, together, before[other])
            known[32 * warp + lane] = together
            known[MOST_THREADS + 32 * warp + lane] = 0


@st.device
def hand_over(
    state: Global[i64],
    full: Global[u32],
    clock: Global[i32],
    fences: Global[i64],
    events: Global[i64],
    heads: Global[u32],
    known: Global[i64],
    at: i64,
    shared: bool,
    role: i32,
    thread: i64,
) -> None:
    """An atomic operation reads the head of its element, and releases what its thread did before its fence. at: where the head
    is. shared: whether the element ends with its block."""
    before = _current(state, i64(heads[at]))
    if before != 0 and shared and events[_row(state, before) + MADE] < state[FOREIGN] // ONE:
        before = i64(0)
    first = thread & ~31 if state[WARP_SYNCHRONOUS] != 0 else thread
    last = first + 32 if state[WARP_SYNCHRONOUS] != 0 else thread + 1
    for learner in range(first, last):
        to = learner if role & ACQUIRES != 0 else learner + MOST_THREADS
        known[to] = joined(state, events, known[to], before)
    fence = 4 * thread
    if role & LOADS_ONLY != 0 or fences[fence] == 0 or fences[fence + 2] != state[BLOCK]:
        return
    phase = max(fences[fence + 1], state[PUBLISHED])
    met = i64(full[thread >> 5])
    mine = _current(state, known[thread])
    if before != 0:
        row = _row(state, before)
        again = events[row + OF_BLOCK] == state[BLOCK] and events[row + OF_THREAD] == thread
        again = again and events[row + FENCED_AT] == fences[fence] and events[row + FENCED_PHASE] == phase
        if again and events[row + MET] == met and (mine == before or events[row + FIRST] == mine):
            return
    event = _new(state, events, mine, before)
    row = _row(state, event)
    events[row + OF_BLOCK] = state[BLOCK]
    events[row + OF_THREAD] = thread
    events[row + FENCED_AT] = fences[fence]
    events[row + FENCED_PHASE] = phase
    events[row + SCOPE] = fences[fence + 3]
    events[row + MET] = met
    last_met = i64(0)
    for lane in range(i64(32)):
        last_met = max(last_met, i64(clock[32 * thread + lane]))
    partners = i64(0)
    for lane in range(i64(32)):
        partners |= i64(i64(clock[32 * thread + lane]) == last_met) << lane
    events[row + PARTNERS] = partners
    events[row + MET_PARTNERS] = last_met
    heads[at] = u32(event)


@st.device
def _covers(state: Global[i64], events: Global[i64], row: i64, epoch: i64, block: i64, phase: i64) -> bool:
    """Whether a release was after an access of its own block, by a fence that reaches the current thread."""
    if events[row + OF_BLOCK] != block or (events[row + SCOPE] != 2 and block != state[BLOCK]):
        return False
    other = epoch & THREAD
    if phase < events[row + FENCED_PHASE]:
        return True
    if other >> 5 != events[row + OF_THREAD] >> 5:
        return False
    if (events[row + PARTNERS] >> (other & 31) & 1) != 0 and epoch >> BITS < events[row + MET_PARTNERS]:
        return True
    in_step = other == events[row + OF_THREAD] or state[WARP_SYNCHRONOUS] != 0
    return epoch < events[row + MET] or (in_step and epoch >> BITS < events[row + FENCED_AT])


@st.device
def _near(state: Global[i64], events: Global[i64], row: i64, epoch: i64, block: i64) -> i32:
    """By whom a release was made that would cover an access, had the two threads met: BY_LANE, BY_WARP, or NOT_AT_ALL."""
    if events[row + OF_BLOCK] != block or (events[row + SCOPE] != 2 and block != state[BLOCK]):
        return NOT_AT_ALL
    other = epoch & THREAD
    if other == events[row + OF_THREAD]:
        return NOT_AT_ALL
    return BY_LANE if other >> 5 == events[row + OF_THREAD] >> 5 else BY_WARP


@st.device
def handed_over(
    state: Global[i64],
    log: Global[i32],
    events: Global[i64],
    known: Global[i64],
    visited: Global[i32],
    epoch: i64,
    thread: i64,
) -> i32:
    """Whether an access was released by an event that the current thread knows of (TAKEN_IN), or has read (READ_ONLY), or nearly so."""
    if epoch < state[FORGOTTEN] or (state[MERGED] != 0 and epoch < state[FOREIGN]):
        return TAKEN_IN  # its block is lost
    found = _leads_to(state, log, events, visited, known[thread], epoch)
    if found == TAKEN_IN:
        return TAKEN_IN
    if _leads_to(state, log, events, visited, known[MOST_THREADS + thread], epoch) == TAKEN_IN:
        return READ_ONLY
    return found


@st.device
def _leads_to(
    state: Global[i64],
    log: Global[i32],
    events: Global[i64],
    visited: Global[i32],
    event: i64,
    epoch: i64,
) -> i32:
    """TAKEN_IN where an event, or one before it, covers an access; else how near one comes to it. A search that takes too long ends
    with TAKEN_IN.

    visited: of each event the last search that came to it, then the events that a search has still to look at.
    """
    when = epoch >> BITS
    block = i64(log[4 * when + BLOCK_OF])
    phase = i64(log[4 * when + PHASE_OF])
    state[SEARCHES] += 1
    bottom = state[HANDED]
    left = i64(1)
    visited[bottom] = i32(_current(state, event) - state[FORGOTTEN_EVENTS])
    visits = i64(0)
    nearest = i32(NOT_AT_ALL)
    while left > 0:
        left -= 1
        number = i64(visited[bottom + left])
        if number <= 0 or visited[number] == i32(state[SEARCHES]) or events[EVENT * number + MADE] <= when:
            continue
        visited[number] = i32(state[SEARCHES])
        visits += 1
        row = EVENT * number
        if visits == MOST_VISITS or _covers(state, events, row, epoch, block, phase):
            return TAKEN_IN
        near = _near(state, events, row, epoch, block)
        if near != NOT_AT_ALL and nearest != BY_LANE:
            nearest = near
        visited[bottom + left] = i32(events[row + FIRST] - state[FORGOTTEN_EVENTS])
        visited[bottom + left + 1] = i32(events[row + SECOND] - state[FORGOTTEN_EVENTS])
        left += 2
    return nearest
