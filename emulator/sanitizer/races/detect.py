"""The race rule: two threads access one element, at least one of them writes, and nothing orders the two accesses.

Atomic operations do not race with each other. A write of the value that is there already is benign: it is reported as
a remark, and is a fault only if asked for. The rule is applied to one access of a warp at a time.
"""

from __future__ import annotations

from ... import language as st
from ...language.hints import Global, i32, i64, u32
from ...native import native
from .hand_overs import BY_LANE, NOT_AT_ALL, READ_ONLY, hand_over, handed_over
from .happens_before import has, timestamp_of
from .shadow import (
    ACCESS_OF,
    ATOMIC,
    ATOMICS,
    BARRIERS,
    BITS,
    BLOCK,
    BLOCK_ATOMICS,
    BLOCK_OF,
    FENCED,
    FOREIGN,
    GRID,
    LOADS,
    MERGED,
    MOST_PAIRS,
    NOW,
    ONE,
    OTHER,
    PAIR,
    PHASE,
    READ,
    STORES,
    THREAD,
    WARP,
    WARP_SYNCHRONOUS,
)

ORDERED, OF_WARP, OF_BLOCK, OF_GRID = range(4)
"""The smallest group that holds two threads whose accesses nothing orders."""
(
    USED, FIRST, SECOND, ARRAY, BENIGN, RELATION, COUNT, INDEX, BLOCK_1, THREAD_1, BLOCK_2, PHASE_2, THREAD_2, AT_ONCE, RELEASED,
) = range(PAIR)  # fmt: skip
"""Columns of a finding: access ids and threads of the first access and of the second, at which it was found."""
HARMFUL, SAME_VALUE, UNACQUIRED = range(3)
"""BENIGN: no remark; both write the same value; the first was released, and the second thread has read that but not acquired it."""
NOT_AT_ONCE, ALL_AT_ONCE, UNDER_WAY = range(3)
"""AT_ONCE: the second access is another one, or the same of other lanes; or the first is a copy not waited for. RELEASED: how near it
came to being handed over: BY_LANE, BY_WARP, or not at all."""


# ------------------------------------------------------------------ order
@st.device
def _distance(state: Global[i64], full: Global[u32], shared: bool, epoch: i64, thread: i64) -> i32:
    """The smallest group that holds the thread of an earlier access and the current one; ORDERED if they are ordered.

    Orders that only vector clocks and fences give are left out.
    """
    if epoch < state[GRID]:
        return ORDERED
    if epoch < state[FOREIGN]:
        return ORDERED if epoch < ONE or shared else OF_GRID  # of shared memory: a block that has ended
    other = epoch & THREAD
    if epoch < state[PHASE] or other == thread:
        return ORDERED
    if other >> 5 != thread >> 5:
        return OF_BLOCK
    return ORDERED if state[WARP_SYNCHRONOUS] != 0 or epoch < i64(full[thread >> 5]) else OF_WARP


@st.device
def _owns(state: Global[i64], epoch: i64, thread: i64) -> bool:
    """Whether an access is of the current thread since its last synchronisation.

    No other access to the element can be ordered between the two, so any access that races with one races with the other.
    """
    return epoch >= state[NOW] and epoch & THREAD == thread


@st.device
def _covered(state: Global[i64], shared: bool, read: i64, other: i64, thread: i64) -> bool:
    """Whether any later access that races with this read races with READ or OTHER already."""
    if read < state[PHASE]:
        return False
    if _owns(state, read, thread):
        return True
    if other < state[PHASE]:
        return other > 0 and state[GRID] <= other < state[FOREIGN] and not shared
    if (read ^ other) & (THREAD & ~31) != 0:
        return True
    lately = min(read, other) >= state[NOW]
    return lately and (read & THREAD) >> 5 == thread >> 5 and (read ^ other) & THREAD != 0


@st.device
def _met(state: Global[i64], clock: Global[i32], epoch: i64, thread: i64) -> bool:
    """Whether a `syncwarp` of some lanes orders two lanes of a warp."""
    other = epoch & THREAD
    if epoch < state[FOREIGN] or other >> 5 != thread >> 5:
        return False
    return (epoch >> BITS) < i64(clock[32 * thread + (other & 31)])


@st.device
def _is_under_way(
    state: Global[i64],
    log: Global[i32],
    copies: Global[i64],
    asynchronous: Global[i32],
    groups: Global[i32],
    shared: bool,
    wrote: i64,
) -> bool:
    """Whether an element was written last by an asynchronous copy that nobody waited for, as the current warp may know:
    its own waits, and those of other warps before the last barrier."""
    if wrote < ONE or wrote < state[GRID] or (shared and wrote < state[FOREIGN]) or state[MERGED] != 0:
        return False
    when = wrote >> BITS
    if asynchronous[i64(log[4 * when + ACCESS_OF]) // 4] == 0:
        return False
    warp = (wrote & THREAD) >> 5
    known = warp == state[WARP] or copies[4 * warp + 3] < state[BARRIERS]
    done = copies[4 * warp + 1] if known else copies[4 * warp + 2]
    return i64(groups[when]) > done


# ------------------------------------------------------------------ one access of a warp
@native
def access(
    state: Global[i64],
    log: Global[i32],
    timestamp: Global[i32],
    epochs: Global[u32],
    places: Global[i64],
    joined: Global[u32],
    full: Global[u32],
    clock: Global[i32],
    fences: Global[i64],
    events: Global[i64],
    heads: Global[u32],
    known: Global[i64],
    visited: Global[i32],
    roles: Global[i32],
    pairs: Global[i64],
    scratch: Global[i32],
    copies: Global[i64],
    asynchronous: Global[i32],
    groups: Global[i32],
    array: i64,
    access_id: i64,
    mask: u32,
    lanes: Global[i64],
    parts: i64,
) -> None:
    """Lanes of the current warp access elements of an array: find races, and update shadow memory.

    lanes: int64[1 + 2 parts, 32]: the elements, the bits a store writes, part by part, and those it finds.
    """
    kind = access_id & 3
    base = (
        timestamp_of(state, log, timestamp, epochs, joined, full, clock, scratch, access_id) << BITS | state[WARP] << 5
    )
    copying = asynchronous[access_id // 4] != 0
    if copying:
        groups[base >> BITS] = i32(copies[4 * state[WARP]] + 1)
    start = places[4 * array]
    size = places[4 * array + 1]
    shared = places[4 * array + 2] != 0
    atomic = places[4 * array + 3] != 0
    noted = u32(0)
    for lane in range(i64(32)):
        if not has(mask, lane):
            continue
        thread = base & THREAD | lane
        element = lanes[lane]
        at = start + element
        wrote = i64(epochs[at])
        read = i64(epochs[at + READ * size])
        other = i64(epochs[at + OTHER * size])
        last_atomic = i64(epochs[at + ATOMIC * size]) if atomic else i64(0)
        if not copying and _is_under_way(state, log, copies, asynchronous, groups, shared, wrote):
            _report(
                state, log, pairs, array, access_id, wrote, thread, element, HARMFUL, OF_WARP, i32(UNDER_WAY),
                i32(NOT_AT_ALL),
            )  # fmt: skip
            continue
        if kind < ATOMICS and _owns(state, wrote, thread) and _kind(log, wrote) == STORES:
            continue
        for which in range(4):
            epoch = wrote if which == 0 else read if which == 1 else other if which == 2 else last_atomic
            apart = _distance(state, full, shared, epoch, thread)
            if apart == ORDERED:
                continue
            first = _kind(log, epoch)
            if first == LOADS and kind == LOADS:
                continue
            if first >= ATOMICS and kind >= ATOMICS and not (apart == OF_GRID and max(first, kind) == BLOCK_ATOMICS):
                continue  # of scopes that hold both threads
            ordered = _met(state, clock, epoch, thread)
            handed = i32(NOT_AT_ALL)
            if state[FENCED] != 0 and not ordered:
                handed = handed_over(state, log, events, known, visited, epoch, thread)
                if handed == READ_ONLY:
                    _report(
                        state, log, pairs, array, access_id, epoch, thread, element, UNACQUIRED, apart,
                        i32(NOT_AT_ONCE), handed,
                    )  # fmt: skip
                ordered = handed != NOT_AT_ALL and handed < BY_LANE
                if ordered and kind == STORES and which > 0:
                    epochs[at + i64(which) * size] = u32(0)  # what races with it races with this store
            if not ordered:
                same = epoch == wrote and kind == STORES and first == STORES
                same = same and _equal(lanes, parts, 1 + parts, lane, lane)
                mark = i32(SAME_VALUE if same else HARMFUL)
                _report(
                    state, log, pairs, array, access_id, epoch, thread, element, mark, apart, i32(NOT_AT_ONCE), handed
                )
                break
        if kind >= ATOMICS:
            if state[FENCED] != 0:
                hand_over(state, full, clock, fences, events, heads, known, at, shared, roles[access_id // 4], thread)
            if wrote < ONE or (shared and wrote < state[FOREIGN]):
                epochs[at] = u32(base | lane)
        if kind == STORES:
            noted |= u32(1) << u32(lane)
            continue
        last = last_atomic if kind >= ATOMICS else read
        second = other if (_kind(log, other) >= ATOMICS) == (kind >= ATOMICS) else i64(0)
        if not _covered(state, shared, last, second, thread):
            noted |= u32(1) << u32(lane)
            far = _distance(state, full, shared, last, thread)
            if far != ORDERED and _distance(state, full, shared, second, thread) <= far:
                epochs[at + OTHER * size] = u32(last)
    if kind == STORES:
        for lane in range(i64(32)):
            if has(noted, lane):
                epochs[start + lanes[lane]] = u32(base | lane)
        _at_once(state, log, epochs, pairs, array, access_id, start, base, noted, lanes, parts)
    else:
        main = (i64(ATOMIC) if kind >= ATOMICS else i64(READ)) * size
        _note_readers(state, full, epochs, shared, start + main, start + OTHER * size, base, noted, lanes)


@st.device
def _kind(log: Global[i32], epoch: i64) -> i64:
    """The operation at the timestamp of an epoch."""
    return i64(log[4 * (epoch >> BITS) + ACCESS_OF]) & 3


@st.device
def _equal(lanes: Global[i64], parts: i64, second: i64, lane: i64, other: i64) -> bool:
    """Whether one lane writes the bits that another one writes or finds, which begin with row `second`; all parts."""
    same = True
    for part in range(parts):
        same = same and lanes[32 * (1 + part) + lane] == lanes[32 * (second + part) + other]
    return same


@st.device
def _note_readers(
    state: Global[i64],
    full: Global[u32],
    epochs: Global[u32],
    shared: bool,
    last: i64,
    second: i64,
    base: i64,
    mask: u32,
    lanes: Global[i64],
) -> None:
    """Where several lanes access one element, the last becomes its READ or ATOMIC epoch, the one before it OTHER if none
    is farther. last, second: where these planes begin."""
    for lane in range(i64(32)):
        if has(mask, lane):
            epochs[last + lanes[lane]] = u32(base | lane)
    for lane in range(i64(32)):
        if not has(mask, lane):
            continue
        epoch = base | lane
        known = i64(epochs[second + lanes[lane]])
        latest = i64(epochs[last + lanes[lane]])
        if latest != epoch and _distance(state, full, shared, known, epoch & THREAD) <= OF_WARP:
            epochs[second + lanes[lane]] = u32(epoch)


@st.device
def _at_once(
    state: Global[i64],
    log: Global[i32],
    epochs: Global[u32],
    pairs: Global[i64],
    array: i64,
    access_id: i64,
    start: i64,
    base: i64,
    mask: u32,
    lanes: Global[i64],
    parts: i64,
) -> None:
    """Lanes of a store to one element race with the last of them."""
    for lane in range(i64(32)):
        if has(mask, lane):
            epoch = i64(epochs[start + lanes[lane]])
            if epoch != base | lane:
                same = _equal(lanes, parts, i64(1), lane, epoch & 31)
                _report(
                    state, log, pairs, array, access_id, epoch, (base | lane) & THREAD, lanes[lane],
                    SAME_VALUE if same else HARMFUL, OF_WARP, i32(ALL_AT_ONCE), i32(NOT_AT_ALL),
                )  # fmt: skip


@st.device
def _report(
    state: Global[i64],
    log: Global[i32],
    pairs: Global[i64],
    array: i64,
    access_id: i64,
    epoch: i64,
    thread: i64,
    element: i64,
    benign: i32,
    apart: i32,
    at_once: i32,
    handed: i32,
) -> None:
    """Count a finding under its pair of sites; keep the first of those that need the strongest order."""
    when = epoch >> BITS
    first = i64(log[4 * when + ACCESS_OF])
    for number in range(i64(MOST_PAIRS)):
        row = PAIR * number
        used = pairs[row + USED] != 0
        forth = pairs[row + FIRST] == first and pairs[row + SECOND] == access_id
        back = pairs[row + FIRST] == access_id and pairs[row + SECOND] == first
        alike = pairs[row + ARRAY] == array and pairs[row + BENIGN] == i64(benign)
        if used and not ((forth or back) and alike):
            continue
        pairs[row + COUNT] += 1
        if not used or i64(apart) > pairs[row + RELATION]:
            pairs[row + USED] = 1
            pairs[row + FIRST] = first
            pairs[row + SECOND] = access_id
            pairs[row + ARRAY] = array
            pairs[row + BENIGN] = i64(benign)
            pairs[row + RELATION] = i64(apart)
            pairs[row + INDEX] = element
            pairs[row + AT_ONCE] = i64(at_once)
            pairs[row + RELEASED] = i64(handed) if handed >= BY_LANE else i64(0)
            pairs[row + BLOCK_1] = i64(log[4 * when + BLOCK_OF])
            pairs[row + THREAD_1] = epoch & THREAD
            pairs[row + BLOCK_2] = state[BLOCK]
            pairs[row + PHASE_2] = state[BARRIERS]
            pairs[row + THREAD_2] = thread
        return
