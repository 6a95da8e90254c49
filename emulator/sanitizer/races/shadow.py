"""Shadow memory of the race detector: the last accesses to each element, and the synchronisation state that orders accesses.

A *timestamp* is one site executed by one warp between two synchronisations. Timestamps are numbered in order of
execution. The log has a row for each: block, phase (the number of barriers that the block has passed), warp, access id.
An *access id* is a site and its operation: 4 site + LOADS, STORES, ATOMICS, or BLOCK_ATOMICS for operations of block
scope. Volatile, acquiring and releasing loads and stores count as atomic operations. An *epoch* is a thread at a
timestamp, as u32: timestamp << 10 | thread in the block. Epoch 0 is no thread. The other epochs of timestamp 0 are no
threads either: they mark elements written before the launch.

Each tracked element has three epochs, in planes of u32: its last write (WRITTEN), its last read (READ) and the read by
another thread (OTHER). Arrays with atomic operations have two more: the last atomic operation (ATOMIC), and the last one that only
reads (ATOMIC_READ). All but writes share OTHER; the kind of the latest access has it. WRITTEN contains the epoch of an atomic operation
if no store wrote the element.

Two readers are enough. OTHER is the reader farthest from READ: of another block if there is one, else of another warp,
else of another lane. An access that is not ordered after some reader is not ordered after READ or not after OTHER: an
access of READ's warp races with OTHER, any other access with READ. So an element that two warps have read since the
last barrier needs no third reader. An element that its own thread has written since its last synchronisation needs no
reader: any access that races with the read races with the write.

Two accesses are ordered if they are of one thread; of one block, with a barrier between; of one warp, with a `syncwarp`
of both lanes between (a vector clock for each lane) or on a warp-synchronous device; or by releases and acquires from
thread to thread (`release_acquire`). Blocks run one after another here, each phase warp by warp. So an epoch below
FOREIGN is another block's, and an epoch below PHASE is older than the block's last barrier.

In a cooperative launch the blocks alternate between grid barriers. An epoch below GRID is older than the last grid
barrier, which orders it. Shared and local arrays then have planes for each block, and count as global arrays. So they
do in a cluster, whose blocks alternate between its barriers, and in a launch whose blocks wait for later ones, and alternate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...language.hints import Global, i32, i64, u32
from ...language.intrinsics import WARP_SIZE
from ...language.types import Array

BITS = 10
"""Bits of an epoch for the thread."""
TICK = 1 << BITS
"""Epochs of one timestamp. Epochs below TICK are of no thread."""
THREAD = TICK - 1
"""Mask of the thread in an epoch."""
MOST_THREADS = TICK
"""Threads of a block."""
MOST_TIMESTAMPS = 1 << (32 - BITS)
LOADS, STORES, ATOMICS, BLOCK_ATOMICS = range(4)
"""Operations of an access id."""
WRITTEN, READ, OTHER, ATOMIC, ATOMIC_READ = range(5)
"""Planes of an array."""
PADDING = 64
"""Epochs before and after each plane: a vector of 32 epochs around any element may be loaded."""

(
    LENGTH, FRESH, FOREIGN, PHASE, NOW, WARP_SYNCHRONOUS, BLOCK, BARRIERS, WARP, EVENTS, DISCARDED_EVENTS, MERGED, CAPACITY,
    FENCED, SITES, WARPS, EPOCHS, EVENT_CAPACITY, GRID, DISCARDED, PUBLISHED, SEARCHES, ALTERNATING, CLUSTER,
) = range(24)  # fmt: skip
"""Indices of `state`. LENGTH: number of timestamps. FRESH: the first timestamp since the warp last synchronised or resumed.
FOREIGN, PHASE: epochs, see above. NOW: the first epoch since the warp last synchronised. EVENTS, DISCARDED_EVENTS: number of
events (`release_acquire`) and of discarded events. MERGED: whether rows of several blocks were merged.
CAPACITY: rows of the log. FENCED: whether the kernel has fences. SITES, WARPS, EPOCHS: their numbers.
EVENT_CAPACITY: rows of `events`. GRID: the first epoch since the last grid barrier. DISCARDED: the first epoch since events were
discarded. PUBLISHED: the phase before which all warps of the block have fenced their accesses. SEARCHES: number of searches of events.
ALTERNATING: whether the block of an epoch is that of its row in the log alone (`resident_blocks`). CLUSTER: the first epoch that GRID
orders: of the cluster, if the barrier was one of a cluster."""
STATE = 24
BLOCK_OF, PHASE_OF, WARP_OF, ACCESS_OF = range(4)
"""Columns of the log."""
ACQUIRES, LOADS_ONLY, ASYNCHRONOUS, PROPOSES, EXCHANGES, RETURNS, OVERWRITES, RELEASES, BULK, PRODUCT = (
    1 << bit for bit in range(10)
)
"""Bits of `roles`: the operation acquires by itself; it writes nothing and so cannot release; it is an asynchronous copy; it is a plain
load that proposes a compare-and-swap (`load_uses`); it is a volatile access that is no poll; its thread uses the old value; it is a store,
which reads nothing; it releases by itself; it is of a bulk copy, or of a product of a warpgroup, by the asynchronous proxy."""
BULK_GROUPS, PRODUCT_GROUPS, PROXY = 32, 64, 96
"""First rows of `copy_groups` for groups of bulk copies and of products, and for the timestamps that a `fence_async` covers."""
PAIR = 15
"""Columns of a finding."""
MOST_PAIRS = 1024
DEVICE_FENCE, BLOCK_FENCE, RELEASE = range(3)
SLOTS = 3
"""Fences of a thread: the last one of the device, the last one of the block, and the last release."""
FENCE_TIMESTAMP, FENCE_PHASE, FENCE_BLOCK, FENCE_ELEMENT, RELEASE_SCOPE, FULL_SYNC, CLOCKS = range(7)
FENCE = CLOCKS + WARP_SIZE
"""Columns of a fence: the first timestamp that it does not cover; its phase and its block; of a release, the index of the element and its
scope (1 block, 2 device); `full_warp_syncs` of the warp and `clocks` of the thread."""
EVENT = 7 + FENCE
"""Columns of an event (`release_acquire`)."""
MOST_EVENTS = 1 << 17
MOST_VISITS = 1 << 12
"""Events that one search visits."""


class RaceState(NamedTuple):
    """The flat arrays of the race detector: one parameter of its native functions.

    state: int64[STATE]. log: int32[rows, 4]. timestamps: int32[site], the last timestamp of each. epochs: uint32, the
    planes of all arrays. planes: int64[array, 4]: first epoch of its WRITTEN plane, elements of a plane, whether the array
    is the block's own, whether it has the planes of atomic operations.
    warp_syncs, full_warp_syncs: uint32[warp], the first epoch after the last `syncwarp`, and after the last one of all lanes.
    clocks: int32[warp, lane, lane]: accesses of the second lane at a smaller timestamp are ordered before the first lane's next.
    fences: int64[thread, SLOTS, FENCE].
    events: int64[., EVENT], releases (columns in `release_acquire`). heads: uint32, the last event of an element, at the index
    of its WRITTEN epoch. thread_events: int64[2, thread]: the last event that a thread has acquired, and the last event that it
    has read and not acquired. visits: int32, workspace of searches. roles: int32[site], see ACQUIRES.
    findings: int64[., PAIR] (columns in `detect`). scratch: int32, workspace for shortening the log.
    copy_groups: int64[4 * 32, 4], a row for each warp, counts of groups of asynchronous copies: committed, completed, completed in
    earlier phases, and the phase of the last wait; the same of bulk copies and of products; the first timestamp after the last
    `fence_async`.
    log_groups: int32[row of the log], the group of an asynchronous copy.
    """

    state: Global[i64]
    log: Global[i32]
    timestamps: Global[i32]
    epochs: Global[u32]
    planes: Global[i64]
    warp_syncs: Global[u32]
    full_warp_syncs: Global[u32]
    clocks: Global[i32]
    fences: Global[i64]
    events: Global[i64]
    heads: Global[u32]
    thread_events: Global[i64]
    visits: Global[i32]
    roles: Global[i32]
    findings: Global[i64]
    scratch: Global[i32]
    copy_groups: Global[i64]
    log_groups: Global[i32]


@dataclass(frozen=True)
class OverlappingArrays:
    """Global arrays with common memory, in units that divide their elements and the distances between them.

    length: units of the memory. starts: units from its begin to each array. units: of an element of each array.
    """

    length: int
    starts: Mapping[str, int]
    units: Mapping[str, int]

    @property
    def overlap(self) -> tuple[tuple[str, int], ...]:
        """The names of the arrays, and the units of their elements: everything that compiled code depends on."""
        return tuple(self.units.items())


@dataclass
class Layout:
    """The offsets of the planes of the tracked arrays.

    numbers: of arrays, by name. starts: of the WRITTEN plane, in epochs. lengths: elements of a plane; a local
    array's are those of all threads of a block, [element][thread]; those of arrays with common memory are its units. size: epochs
    in all.
    """

    numbers: dict[str, int]
    starts: list[int]
    lengths: list[int]
    size: int = 0


def layout(
    lengths: dict[str, int], planes: dict[str, int], copies: dict[str, int], common: Sequence[OverlappingArrays] = ()
) -> Layout:
    """Return the layout of arrays, given the elements, the number of planes and the number of copies (one per block) of each.

    common: arrays with common memory, all with one number of planes. Their planes are behind the others and overlap as the arrays
    do.
    """
    overlapping = {name for memory in common for name in memory.starts}
    result = Layout({name: number for number, name in enumerate(lengths)}, [0] * len(lengths), [0] * len(lengths))
    for name in (name for name in lengths if name not in overlapping):
        number, length = result.numbers[name], lengths[name] + PADDING
        result.starts[number], result.lengths[number] = result.size + PADDING, length
        result.size += copies[name] * (planes[name] * length + PADDING)
    for memory in common:
        if not (names := memory.starts.keys() & lengths.keys()):
            continue
        length = memory.length + PADDING
        for name in names:
            number = result.numbers[name]
            result.starts[number], result.lengths[number] = result.size + PADDING + memory.starts[name], length
        result.size += max(planes[name] for name in names) * length + PADDING
    return result


def tracks(type: Array, written: bool, empty: bool) -> bool:
    """Return whether accesses to an array can race: shared arrays, and global arrays that the kernel writes."""
    return type.space == "shared" or (type.space == "global" and written)


def new(
    layout: Layout,
    attributes: Sequence[tuple[bool, bool]],
    sites: int,
    warps: int,
    warp_synchronous: bool,
    fenced: bool,
    rows: int,
    roles: Mapping[int, int],
) -> RaceState:
    """Return the race state before any access.

    attributes: of each array, whether it is the block's own, and whether it has the planes of atomic operations. rows: of the log, which
    is shortened when it is full. roles: bits (ACQUIRES) of the sites that have any.
    """
    site_roles = np.zeros(sites, np.int32)
    site_roles[list(roles)] = list(roles.values())
    asynchronous = any(role & (ASYNCHRONOUS | BULK | PRODUCT) for role in roles.values())
    events = MOST_EVENTS if fenced else 1
    state = np.zeros(STATE, np.int64)
    state[LENGTH] = state[FRESH] = 1  # timestamp 0 is no access
    state[WARP_SYNCHRONOUS], state[CAPACITY], state[FENCED] = warp_synchronous, rows, fenced
    state[SITES], state[WARPS], state[EPOCHS], state[EVENT_CAPACITY] = sites, warps, layout.size, events
    planes = [(*place, *flags) for *place, flags in zip(layout.starts, layout.lengths, attributes, strict=True)]
    arrays: dict[str, Any] = {
        "state": state,
        "log": np.empty(4 * rows, np.int32),
        "timestamps": np.zeros(sites, np.int32),
        "epochs": np.zeros(layout.size, np.uint32),
        "planes": np.array(planes, np.int64).reshape(-1),
        "warp_syncs": np.zeros(32, np.uint32),
        "full_warp_syncs": np.zeros(32, np.uint32),
        "clocks": np.zeros(1024 * warps, np.int32),
        "fences": np.zeros(FENCE * SLOTS * WARP_SIZE * warps, np.int64),
        "events": np.zeros(EVENT * events, np.int64),
        "heads": np.zeros(layout.size if fenced else 1, np.uint32),
        "thread_events": np.zeros(2 * MOST_THREADS, np.int64),
        "visits": np.zeros(events + 2 * MOST_VISITS, np.int32),
        "roles": site_roles,
        "findings": np.zeros(MOST_PAIRS * PAIR, np.int64),
        "scratch": np.empty(2 * (rows + 1) + 5 * (1 + 34 * sites), np.int32),
        "copy_groups": np.zeros(4 * 128, np.int64),
        "log_groups": np.zeros(rows if asynchronous else 1, np.int32),
    }
    return RaceState(**arrays)
