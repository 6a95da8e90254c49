"""The race rule: two threads access one element, at least one of them writes, and nothing orders the two accesses.

Atomic operations do not race with each other. A volatile load and a volatile store of two lanes of a warp do, unless the load polls a
flag: lanes are not in step. An atomic operation is ordered before a plain access if the thread of the access, or one ordered before it,
has since read the element by an atomic operation of its own.
Two races are benign: a write of the value that is there already, and a load that only proposes a compare-and-swap on its element. They
are reported as remarks, and are faults only on request. The rule is applied to one access of a warp at a time.

`engines.llvm.races.fast_path` states the rule again, for accesses that are certainly no findings. The property test
`tests/checkers/test_fast_path.py` holds the two to each other.
"""

from typing import NamedTuple

from ... import language as st
from ...language.hints import Global, i32, i64, u32
from ...language.intrinsics import WARP_SIZE
from ...native import native
from .happens_before import has, synchronise_warp, timestamp_of
from .release_acquire import (
    ACQUIRED,
    NOT_RELEASED,
    READ_NOT_ACQUIRED,
    RELEASED_BY_LANE,
    read_head,
    release,
    release_status,
)
from .shadow import (
    ACCESS_OF,
    ACQUIRES,
    ALTERNATING,
    ASYNCHRONOUS,
    ATOMIC,
    ATOMIC_READ,
    ATOMICS,
    BARRIERS,
    BITS,
    BLOCK,
    BLOCK_ATOMICS,
    BLOCK_OF,
    BULK,
    BULK_GROUPS,
    CLUSTER,
    EXCHANGES,
    FENCED,
    FOREIGN,
    GRID,
    LOADS,
    LOADS_ONLY,
    MERGED,
    MOST_PAIRS,
    NOW,
    OTHER,
    PAIR,
    PHASE,
    PRODUCT,
    PRODUCT_GROUPS,
    PROPOSES,
    PROXY,
    READ,
    RELEASES,
    RETURNS,
    STORES,
    THREAD,
    TICK,
    WARP,
    WARP_SYNCHRONOUS,
    WRITTEN,
    RaceState,
)

ORDERED, WITHIN_WARP, WITHIN_BLOCK, WITHIN_GRID = range(4)
"""The smallest group that contains two threads with unordered accesses."""
(
    USED, FIRST, SECOND, ARRAY, REMARK, RELATION, COUNT, INDEX, BLOCK_1, THREAD_1, BLOCK_2, PHASE_2, THREAD_2, OVERLAP, RELEASER,
) = range(PAIR)  # fmt: skip
"""Columns of a finding: access ids and threads of the first access and of the second, at which it was found."""
HARMFUL, SAME_VALUE, UNACQUIRED, PROPOSAL = range(4)
"""REMARK: none; both write the same value; the first was released, and the second thread has read the release but not acquired it; the
load of the two proposes a compare-and-swap."""
SEPARATE, SAME_INSTRUCTION, PENDING_COPY, PENDING_READ, UNFENCED = range(5)
"""OVERLAP: the second access is another one; it is the same, of other lanes; the first is an asynchronous copy not waited for, or a bulk
copy or a product that may still read; the second is one of these, and no `fence_async` follows the first.
RELEASER: RELEASED_BY_LANE, RELEASED_BY_WARP, or 0."""


class Access(NamedTuple):
    """One access of the current warp. base: the epoch of lane 0. start: of the WRITTEN plane. size: epochs of a plane.
    shared: whether the array is the block's own. words: 64-bit words of a stored element."""

    array: i64
    access_id: i64
    base: i64
    start: i64
    size: i64
    shared: bool
    words: i64


class Finding(NamedTuple):
    """Columns REMARK, RELATION, OVERLAP and RELEASER of a finding."""

    remark: i32
    relation: i32
    overlap: i32
    releaser: i32


# ------------------------------------------------------------------ order
@st.device
def _relation(race: RaceState, shared: bool, epoch: i64, thread: i64) -> i32:
    """Return the smallest group that contains the thread of an earlier access and the current one; ORDERED if they are ordered.

    Vector clocks and fences are not considered.
    """
    if epoch < race.state[GRID] and epoch >= race.state[CLUSTER]:
        return ORDERED
    if _is_alternate(race, epoch):
        return WITHIN_GRID
    if epoch < race.state[FOREIGN]:
        return ORDERED if epoch < TICK or shared else WITHIN_GRID  # of shared memory: a block that has ended
    other = epoch & THREAD
    if epoch < race.state[PHASE] or other == thread:
        return ORDERED
    if other >> 5 != thread >> 5:
        return WITHIN_BLOCK
    in_step = race.state[WARP_SYNCHRONOUS] != 0 or epoch < i64(race.full_warp_syncs[thread >> 5])
    return ORDERED if in_step else WITHIN_WARP


@st.device
def _is_alternate(race: RaceState, epoch: i64) -> bool:
    """Return whether an epoch is of another block, in a launch whose blocks alternate."""
    if race.state[ALTERNATING] == 0 or epoch < TICK:
        return False
    return i64(race.log[4 * (epoch >> BITS) + BLOCK_OF]) != race.state[BLOCK]


@st.device
def _owns(race: RaceState, epoch: i64, thread: i64) -> bool:
    """Return whether an access is of the current thread since its last synchronisation.

    No other access to the element can be ordered between the two, so any access that races with one races with the other.
    """
    return epoch >= race.state[NOW] and epoch & THREAD == thread


@st.device
def _covered(race: RaceState, shared: bool, read: i64, other: i64, thread: i64) -> bool:
    """Return whether any later access that races with this read races with READ or OTHER already."""
    if read < race.state[PHASE] or _is_alternate(race, read) or _is_alternate(race, other):
        return False
    if _owns(race, read, thread):
        return True
    if other < race.state[PHASE]:
        return other > 0 and race.state[GRID] <= other < race.state[FOREIGN] and not shared
    if (read ^ other) & (THREAD & ~(WARP_SIZE - 1)) != 0:
        return True
    recent = min(read, other) >= race.state[NOW]
    return recent and (read & THREAD) >> 5 == thread >> 5 and (read ^ other) & THREAD != 0


@st.device
def _synchronised(race: RaceState, epoch: i64, thread: i64) -> bool:
    """Return whether a `syncwarp` of some lanes orders two lanes of a warp."""
    other = epoch & THREAD
    if epoch < race.state[FOREIGN] or other >> 5 != thread >> 5 or _is_alternate(race, epoch):
        return False
    return (epoch >> BITS) < i64(race.clocks[WARP_SIZE * thread + (other & (WARP_SIZE - 1))])


@st.device
def _is_known(race: RaceState, shared: bool, epoch: i64) -> bool:
    """Return whether the log has the access of an epoch, which is of this block if the memory is shared."""
    logged = epoch >= TICK and epoch >= race.state[GRID] and race.state[MERGED] == 0
    return logged and not (shared and epoch < race.state[FOREIGN])


@st.device
def _is_pending(race: RaceState, shared: bool, epoch: i64, kind: i32) -> bool:
    """Return whether an earlier access is an asynchronous one that may be pending for the current warp. kind: ASYNCHRONOUS, BULK, PRODUCT.

    The warp knows its own waits, and those of other warps before the last barrier.
    """
    if not _is_known(race, shared, epoch) or _role_of(race, epoch) & kind == 0:
        return False
    warp = (epoch & THREAD) >> 5
    row = 4 * (_first_row(kind) + warp)
    visible = warp == race.state[WARP] or race.copy_groups[row + 3] < race.state[BARRIERS]
    completed = race.copy_groups[row + 1] if visible else race.copy_groups[row + 2]
    return i64(race.log_groups[epoch >> BITS]) > completed


@st.device
def _first_row(role: i32) -> i64:
    """Return the first row of `copy_groups` for the groups of an asynchronous access."""
    if role & PRODUCT != 0:
        return i64(PRODUCT_GROUPS)
    return i64(BULK_GROUPS) if role & BULK != 0 else i64(0)


@st.device
def _is_unfenced(race: RaceState, wrote: i64) -> bool:
    """Return whether a thread has written an element of shared memory with no `fence_async` after it, of its warp or the current one."""
    if not _is_known(race, True, wrote) or _role_of(race, wrote) & (ASYNCHRONOUS | BULK) != 0:
        return False
    writer, own = 4 * (PROXY + ((wrote & THREAD) >> 5)), 4 * (PROXY + race.state[WARP])
    return wrote >> BITS >= max(race.copy_groups[writer], race.copy_groups[own])


# ------------------------------------------------------------------ one access of a warp
@native
def access(race: RaceState, array: i64, access_id: i64, mask: u32, lanes: Global[i64], words: i64) -> None:
    """Check an access of lanes of the current warp for races, and update shadow memory.

    lanes: int64[1 + 2 words, 32]: the elements, then the words a store writes, then the words in memory before it.
    """
    if race.roles[access_id // 4] & RELEASES != 0:
        synchronise_warp(race)
    base = timestamp_of(race, access_id) << BITS | race.state[WARP] << 5
    if race.roles[access_id // 4] & (ASYNCHRONOUS | BULK | PRODUCT) != 0:
        row = _first_row(race.roles[access_id // 4]) + race.state[WARP]
        race.log_groups[base >> BITS] = i32(race.copy_groups[4 * row] + 1)
    place = 4 * array
    shared = race.planes[place + 2] != 0
    current = Access(array, access_id, base, race.planes[place], race.planes[place + 1], shared, words)
    recorded = u32(0)
    for lane in range(i64(WARP_SIZE)):
        if has(mask, lane) and _check_lane(race, current, lanes, lane):
            recorded |= u32(1) << u32(lane)
    if access_id & 3 == STORES:
        for lane in range(i64(WARP_SIZE)):
            if has(recorded, lane):
                race.epochs[current.start + lanes[lane]] = u32(base | lane)
        _check_same_instruction(race, current, lanes, recorded)
    else:
        _record_readers(race, current, lanes, recorded)


@st.device
def _check_lane(race: RaceState, current: Access, lanes: Global[i64], lane: i64) -> bool:
    """Check the access of one lane. Return whether its epoch is to be recorded."""
    kind = current.access_id & 3
    thread = current.base & THREAD | lane
    at = current.start + lanes[lane]
    wrote = i64(race.epochs[at])
    role = race.roles[current.access_id // 4]
    if role & ASYNCHRONOUS == 0 and _is_pending(race, current.shared, wrote, ASYNCHRONOUS):
        finding = Finding(HARMFUL, WITHIN_WARP, PENDING_COPY, NOT_RELEASED)
        _report(race, current, lanes[lane], wrote, thread, finding)
        return False
    if current.shared and kind == LOADS and role & (BULK | PRODUCT) != 0 and _is_unfenced(race, wrote):
        _report(race, current, lanes[lane], wrote, thread, Finding(HARMFUL, WITHIN_WARP, UNFENCED, NOT_RELEASED))
        return False
    if current.shared and kind != LOADS and role & LOADS_ONLY == 0:
        for plane in range(i64(READ), i64(OTHER + 1)):
            read = i64(race.epochs[at + plane * current.size])
            pending = _is_pending(race, True, read, PRODUCT) or _is_pending(race, True, read, BULK)
            if pending and _kind(race, read) == LOADS:
                finding = Finding(HARMFUL, WITHIN_WARP, PENDING_READ, NOT_RELEASED)
                _report(race, current, lanes[lane], read, thread, finding)
                return False
    if kind < ATOMICS and _owns(race, wrote, thread) and _kind(race, wrote) == STORES:
        return False
    if role & ACQUIRES != 0:  # it is ordered after what it acquires
        read_head(race, at, current.shared, role, thread, kind == BLOCK_ATOMICS)
    planes = i64(ATOMIC_READ + 1) if race.planes[4 * current.array + 3] != 0 else i64(ATOMIC)
    for plane in range(planes):
        if _check_earlier(race, current, lanes, lane, plane):
            break
    if kind >= ATOMICS:
        if race.state[FENCED] != 0:
            if role & ACQUIRES == 0:
                read_head(race, at, current.shared, role, thread, kind == BLOCK_ATOMICS)
            release(race, at, role, thread, current.base >> BITS, kind == BLOCK_ATOMICS)
        if role & LOADS_ONLY == 0 and (wrote < TICK or (current.shared and wrote < race.state[FOREIGN])):
            race.epochs[at] = u32(current.base | lane)
    if kind == STORES:
        return True
    return _is_new_reader(race, current, at, thread)


@st.device
def _check_earlier(race: RaceState, current: Access, lanes: Global[i64], lane: i64, plane: i64) -> bool:
    """Check the access of one lane against the epoch of one plane. Return whether they race."""
    kind = current.access_id & 3
    thread = current.base & THREAD | lane
    at = current.start + lanes[lane] + plane * current.size
    epoch = i64(race.epochs[at])
    relation = _relation(race, current.shared, epoch, thread)
    if relation == ORDERED:
        return False
    first = _kind(race, epoch)
    role = race.roles[current.access_id // 4]
    first_role = _role_of(race, epoch)
    if (first == LOADS or first_role & LOADS_ONLY != 0) and (kind == LOADS or role & LOADS_ONLY != 0):
        return False
    if first >= ATOMICS and kind >= ATOMICS:
        exchange = (
            relation == WITHIN_WARP and role & first_role & EXCHANGES != 0 and (role ^ first_role) & LOADS_ONLY != 0
        )
        if not exchange and not (relation == WITHIN_GRID and max(first, kind) == BLOCK_ATOMICS):
            return False  # of scopes that include both threads
    if _synchronised(race, epoch, thread) or (
        first >= ATOMICS and _precedes_own(race, current, lanes[lane], epoch, thread)
    ):
        return False
    status = i32(NOT_RELEASED)
    if race.state[FENCED] != 0:
        status = release_status(race, epoch, thread)
        if status == READ_NOT_ACQUIRED:
            _report(race, current, lanes[lane], epoch, thread, Finding(UNACQUIRED, relation, SEPARATE, status))
        if status != NOT_RELEASED and status < RELEASED_BY_LANE:
            if kind == STORES and plane > WRITTEN:
                race.epochs[at] = u32(0)  # an access that races with it races with this store
            return False
    same = kind == STORES and first == STORES and epoch == i64(race.epochs[current.start + lanes[lane]])
    same = same and _writes_same(current, lanes, 1 + current.words, lane, lane)
    remark = i32(SAME_VALUE) if same else i32(HARMFUL)
    if max(first, kind) >= ATOMICS and (role | first_role) & PROPOSES != 0:
        remark = i32(PROPOSAL)
    _report(race, current, lanes[lane], epoch, thread, Finding(remark, relation, SEPARATE, status))
    return True


@st.device
def _precedes_own(race: RaceState, current: Access, element: i64, epoch: i64, thread: i64) -> bool:
    """Return whether an atomic operation precedes one on its element that is ordered before a plain access and uses the old value: a
    read-modify-write operation, or after a write a read. All threads see the writes of an element in one order."""
    if current.access_id & 3 == ATOMICS:
        return False
    first_reads = _role_of(race, epoch) & LOADS_ONLY != 0
    ordered = False
    for plane in range(i64(OTHER), i64(ATOMIC_READ + 1)):
        last = i64(race.epochs[current.start + element + plane * current.size])
        if last <= epoch or _kind(race, last) < ATOMICS:
            continue
        role = _role_of(race, last)
        if (role & LOADS_ONLY != 0 and not first_reads) or role & (RETURNS | LOADS_ONLY) == RETURNS:
            later = _relation(race, current.shared, last, thread) == ORDERED or _synchronised(race, last, thread)
            ordered = ordered or later or (race.state[FENCED] != 0 and release_status(race, last, thread) == ACQUIRED)
    return ordered


@st.device
def _plane_of(race: RaceState, access_id: i64) -> i64:
    """Return the plane of the last access that is a read, an atomic read or another atomic operation as one is."""
    if access_id & 3 < ATOMICS:
        return i64(READ)
    return i64(ATOMIC_READ) if race.roles[access_id // 4] & LOADS_ONLY != 0 else i64(ATOMIC)


@st.device
def _is_new_reader(race: RaceState, current: Access, at: i64, thread: i64) -> bool:
    """Return whether a read or an atomic operation is to be recorded. If so, move the epoch that it replaces to OTHER unless
    OTHER is farther. An operation that is atomic for the device does not replace one that is for its block: it becomes OTHER."""
    kind = current.access_id & 3
    plane = _plane_of(race, current.access_id)
    last = i64(race.epochs[at + plane * current.size])
    other = i64(race.epochs[at + OTHER * current.size])
    second = other if _plane_of(race, i64(race.log[4 * (other >> BITS) + ACCESS_OF])) == plane else i64(0)
    narrow = last >= TICK and _kind(race, last) == BLOCK_ATOMICS
    if kind == ATOMICS and narrow:
        if _relation(race, current.shared, other, thread) == ORDERED:
            race.epochs[at + OTHER * current.size] = u32(current.base | thread & (WARP_SIZE - 1))
        return False
    if race.roles[current.access_id // 4] & EXCHANGES != 0:
        if _owns(race, last, thread):
            return False
    elif _owns(race, last, thread) and race.roles[current.access_id // 4] & ~_role_of(race, last) & RETURNS != 0:
        return True
    elif (kind != BLOCK_ATOMICS or narrow) and _covered(race, current.shared, last, second, thread):
        return False
    relation = _relation(race, current.shared, last, thread)
    if relation != ORDERED and _relation(race, current.shared, second, thread) <= relation:
        race.epochs[at + OTHER * current.size] = u32(last)
    return True


@st.device
def _kind(race: RaceState, epoch: i64) -> i64:
    """Return the operation at the timestamp of an epoch."""
    return i64(race.log[4 * (epoch >> BITS) + ACCESS_OF]) & 3


@st.device
def _role_of(race: RaceState, epoch: i64) -> i32:
    """Return the bits of the access at the timestamp of an epoch, see `shadow.ACQUIRES`."""
    return race.roles[i64(race.log[4 * (epoch >> BITS) + ACCESS_OF]) // 4]


@st.device
def _writes_same(current: Access, lanes: Global[i64], second: i64, lane: i64, other: i64) -> bool:
    """Return whether the words a lane writes equal another lane's words in the rows from `second` on."""
    same = True
    for word in range(current.words):
        same = same and lanes[WARP_SIZE * (1 + word) + lane] == lanes[WARP_SIZE * (second + word) + other]
    return same


@st.device
def _record_readers(race: RaceState, current: Access, lanes: Global[i64], mask: u32) -> None:
    """Record the epochs of lanes that read or act atomically.

    If several lanes access one element, the last becomes the epoch of its plane, and the one before it OTHER unless OTHER is
    farther.
    """
    last = current.start + _plane_of(race, current.access_id) * current.size
    second = current.start + OTHER * current.size
    for lane in range(i64(WARP_SIZE)):
        if has(mask, lane):
            race.epochs[last + lanes[lane]] = u32(current.base | lane)
    for lane in range(i64(WARP_SIZE)):
        if not has(mask, lane):
            continue
        epoch = current.base | lane
        present = i64(race.epochs[second + lanes[lane]])
        latest = i64(race.epochs[last + lanes[lane]])
        if latest != epoch and _relation(race, current.shared, present, epoch & THREAD) <= WITHIN_WARP:
            race.epochs[second + lanes[lane]] = u32(epoch)


@st.device
def _check_same_instruction(race: RaceState, current: Access, lanes: Global[i64], mask: u32) -> None:
    """Report lanes of a store that write one element: each races with the last of them."""
    for lane in range(i64(WARP_SIZE)):
        if has(mask, lane):
            epoch = i64(race.epochs[current.start + lanes[lane]])
            if epoch != current.base | lane:
                same = _writes_same(current, lanes, i64(1), lane, epoch & (WARP_SIZE - 1))
                remark = i32(SAME_VALUE) if same else i32(HARMFUL)
                finding = Finding(remark, WITHIN_WARP, SAME_INSTRUCTION, NOT_RELEASED)
                _report(race, current, lanes[lane], epoch, (current.base | lane) & THREAD, finding)


@st.device
def _report(race: RaceState, current: Access, element: i64, epoch: i64, thread: i64, finding: Finding) -> None:
    """Count a finding under its pair of sites; keep the first of those that need the strongest order."""
    when = epoch >> BITS
    first = i64(race.log[4 * when + ACCESS_OF])
    for number in range(i64(MOST_PAIRS)):
        row = PAIR * number
        used = race.findings[row + USED] != 0
        forward = race.findings[row + FIRST] == first and race.findings[row + SECOND] == current.access_id
        backward = race.findings[row + FIRST] == current.access_id and race.findings[row + SECOND] == first
        equal = race.findings[row + ARRAY] == current.array and race.findings[row + REMARK] == i64(finding.remark)
        if used and not ((forward or backward) and equal):
            continue
        race.findings[row + COUNT] += 1
        if not used or i64(finding.relation) > race.findings[row + RELATION]:
            race.findings[row + USED] = 1
            race.findings[row + FIRST] = first
            race.findings[row + SECOND] = current.access_id
            race.findings[row + ARRAY] = current.array
            race.findings[row + REMARK] = i64(finding.remark)
            race.findings[row + RELATION] = i64(finding.relation)
            race.findings[row + INDEX] = element
            race.findings[row + OVERLAP] = i64(finding.overlap)
            race.findings[row + RELEASER] = i64(finding.releaser) if finding.releaser >= RELEASED_BY_LANE else i64(0)
            race.findings[row + BLOCK_1] = i64(race.log[4 * when + BLOCK_OF])
            race.findings[row + THREAD_1] = epoch & THREAD
            race.findings[row + BLOCK_2] = race.state[BLOCK]
            race.findings[row + PHASE_2] = race.state[BARRIERS]
            race.findings[row + THREAD_2] = thread
        return
