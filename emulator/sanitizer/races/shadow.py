"""Shadow memory of the race detector, as data: the last accesses to each element, and what orders accesses.

A *timestamp* is one site as one warp executes it between two synchronisations. Timestamps are numbered in order of
execution. The log has a row for each: block, phase (barriers that the block has passed), warp, access id. An *access
id* is a site and its operation: 4 site + LOADS, STORES, ATOMICS, or BLOCK_ATOMICS for those of the scope of a block.
Volatile, acquiring and releasing loads and stores count as atomic operations. An *epoch* is a thread at a timestamp, as u32:
timestamp << 10 | thread in the block. Epoch 0 is no thread; neither are the others of timestamp 0, which stand for what was
written before the launch. Each tracked element has three epochs, in planes of u32:
its last write (WRITTEN), its last read (READ) and the read by another thread (OTHER). Where the kernel has atomic
operations on the array there is a fourth: the last of these (ATOMIC). Reads and atomic operations share OTHER; the
kind of access that came last has it. WRITTEN holds the epoch of an atomic operation where nothing else wrote.

Two readers are enough. OTHER is the reader farthest from READ: of another block if there is one, else of another warp,
else of another lane. An access that is not ordered after some reader is not ordered after one of these two: an access
of READ's warp races with OTHER, any other access with READ. So an element that two warps have read since the last
barrier needs no third reader. Neither does one that its own thread has written since its last synchronisation: any
access that races with the read races with the write.

Two accesses are ordered if they are of one thread; of one block, with a barrier between; of one warp, with a `syncwarp`
of both lanes between (a vector clock for each lane) or on a warp-synchronous device; or by hand-overs, releases and
acquires from thread to thread (`hand_overs`). Blocks run one after another here, each phase warp by warp, so an epoch
below FOREIGN is another block's, and one below PHASE is older than the block's last barrier.

In a cooperative launch blocks take their turns between grid barriers. An epoch below GRID is older than the last grid
barrier, which orders it. Shared and local arrays have planes for each block then, and count as global ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...language.types import Array

BITS = 10
"""Bits of an epoch that hold the thread."""
MOST_TIMESTAMPS = 1 << (32 - BITS)
LOADS, STORES, ATOMICS, BLOCK_ATOMICS = range(4)
WRITTEN, READ, OTHER, ATOMIC = range(4)
PADDING = 64
"""Epochs before and after each plane, so that a row of 32 around any element may be loaded."""

(
    LENGTH, FRESH, FOREIGN, PHASE, NOW, WARP_SYNCHRONOUS, BLOCK, BARRIERS, WARP, EVENTS, FORGOTTEN_EVENTS, MERGED, CAPACITY,
    FENCED, SITES, WARPS, EPOCHS, HANDED, GRID, FORGOTTEN, PUBLISHED, SEARCHES,
) = range(22)  # fmt: skip
"""Indices of `state`. LENGTH: timestamps so far. FRESH: the first timestamp since the warp last synchronised or resumed.
FOREIGN, PHASE: epochs, see above. NOW: the first epoch since the warp last synchronised. EVENTS, FORGOTTEN_EVENTS: events so
far (`hand_overs`), and those of them that were let go. MERGED: whether rows of several blocks were merged.
CAPACITY: rows of the log. FENCED: whether the kernel has fences. SITES, WARPS, EPOCHS: how many there are.
HANDED: the most rows of `events`. GRID: the first epoch since the last grid barrier. FORGOTTEN: the first epoch since events were
let go. PUBLISHED: the phase before which all warps of the block have fenced what they did. SEARCHES: of events, so far."""
STATE = 22
BLOCK_OF, PHASE_OF, WARP_OF, ACCESS_OF = range(4)
"""Columns of the log."""
ONE = 1 << BITS
THREAD = ONE - 1


class RaceState(NamedTuple):
    """The flat arrays of the race detector, as compiled functions take them.

    state: int64[STATE]. log: int32[rows, 4]. timestamp: int32[site], the last timestamp of each. epochs: uint32, the
    planes of all arrays. places: int64[array, 4]: where its WRITTEN plane begins, elements a plane, whether it is the
    block's own, whether it has an ATOMIC plane.
    joined, full: uint32[warp], the epoch from which on no `syncwarp`, or none of all lanes, has happened.
    clock: int32[warp, lane, lane], timestamps of the second lane below it are ordered before the first lane's next.
    fences: int64[thread, 4]: timestamp, phase and block of the last fence, and its scope (1 block, 2 device).
    events: int64[., EVENT], of hand-overs (columns in `hand_overs`). heads: uint32, at the place of an element's WRITTEN epoch
    its last event. known: int64[2, thread]: the last event that a thread knows of, and the one that it has read and not
    acquired. visited: int32, for searches. roles: int32[site], how an atomic operation takes part in hand-overs.
    pairs: int64[., PAIR], the findings (columns in `detect`). scratch: int32, for shortening the log.
    copies: int64[warp, 4], of groups of asynchronous copies: committed, waited for, waited for in earlier phases, phase of
    the last wait. asynchronous: int32[site], whether it makes such copies. groups: int32[row of the log], of theirs.
    """

    state: Any
    log: Any
    timestamp: Any
    epochs: Any
    places: Any
    joined: Any
    full: Any
    clock: Any
    fences: Any
    events: Any
    heads: Any
    known: Any
    visited: Any
    roles: Any
    pairs: Any
    scratch: Any
    copies: Any
    asynchronous: Any
    groups: Any


@dataclass
class Layout:
    """The tracked arrays, and the offsets of their planes.

    numbers: of arrays, by name. starts: of the WRITTEN plane, in epochs. lengths: elements of a plane; a local
    array's are those of all threads of a block, [element][thread]. steps: from the planes of one block to those of the
    next.
    """

    numbers: dict[str, int]
    starts: list[int]
    lengths: list[int]
    steps: list[int]
    size: int = 0


def layout(lengths: dict[str, int], planes: dict[str, int], copies: dict[str, int]) -> Layout:
    """The layout of the planes of arrays, given their elements, the number of planes of each, and how many blocks have
    planes of their own."""
    found = Layout({}, [], [], [])
    for number, (name, length) in enumerate(lengths.items()):
        found.numbers[name] = number
        found.starts.append(found.size + PADDING)
        found.lengths.append(length + PADDING)
        found.steps.append(planes[name] * (length + PADDING) + PADDING)
        found.size += copies[name] * found.steps[-1]
    return found


def tracks(type: Array, written: bool, empty: bool) -> bool:
    """Whether accesses to an array can race: those to shared memory, and to global arrays that the kernel writes."""
    return type.space == "shared" or (type.space == "global" and written)


PAIR = 15
MOST_PAIRS = 1024
EVENT = 11
"""Columns of an event."""
MOST_EVENTS = 1 << 17
MOST_VISITS = 1 << 12
"""Events that one search looks at."""
MOST_THREADS = ONE
"""Threads of a block."""


def new(
    where: Layout,
    own: Sequence[bool],
    atomic: Sequence[bool],
    sites: int,
    warps: int,
    warp_synchronous: bool,
    fenced: bool,
    rows: int,
    asynchronous: Sequence[int],
    roles: Mapping[int, int],
) -> RaceState:
    """The race state before any access. rows: of the log, which is shortened when it is full. asynchronous: sites of
    asynchronous copies. roles: of the sites that take part in hand-overs."""
    parts = np.zeros(sites, np.int32)
    parts[list(roles)] = list(roles.values())
    by_themselves = np.zeros(sites, np.int32)
    by_themselves[list(asynchronous)] = 1
    state = np.zeros(STATE, np.int64)
    state[LENGTH] = state[FRESH] = 1  # timestamp 0 is no access
    state[WARP_SYNCHRONOUS], state[CAPACITY], state[FENCED] = warp_synchronous, rows, fenced
    state[SITES], state[WARPS], state[EPOCHS] = sites, warps, where.size
    state[HANDED] = handed = MOST_EVENTS if fenced else 1
    places = np.array([*zip(where.starts, where.lengths, own, atomic, strict=True)], np.int64).reshape(-1)
    return RaceState(
        state, np.empty(4 * rows, np.int32), np.zeros(sites, np.int32), np.zeros(where.size, np.uint32), places,
        np.zeros(32, np.uint32), np.zeros(32, np.uint32), np.zeros(1024 * warps, np.int32),
        np.zeros(4 * 32 * warps, np.int64), np.zeros(EVENT * handed, np.int64),
        np.zeros(where.size if fenced else 1, np.uint32), np.zeros(2 * MOST_THREADS, np.int64),
        np.zeros(handed + 2 * MOST_VISITS, np.int32), parts,
        np.zeros(MOST_PAIRS * PAIR, np.int64), np.empty(2 * (rows + 1) + 5 * (1 + 34 * sites), np.int32),
        np.zeros(4 * 32, np.int64), by_themselves, np.zeros(rows if len(asynchronous) else 1, np.int32),
    )  # fmt: skip
