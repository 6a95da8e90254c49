"""Shadow memory of the race detector, as data: the last accesses to each element, and what orders accesses.

A *timestamp* is one site as one warp executes it between two synchronisations. Timestamps are numbered in order of
execution. The log has a row for each: block, phase (barriers that the block has passed), warp, access id. An *access
id* is a site and its operation: 4 site + LOADS, STORES, ATOMICS, or BLOCK_ATOMICS for those of the scope of a block.
Volatile, acquiring and releasing loads and stores count as atomic operations. An *epoch* is a thread at a timestamp, as u32:
timestamp << 10 | thread in the block. Epoch 0 is no thread. Each tracked element has three epochs, in planes of u32:
its last write (WRITTEN), its last read (READ) and the read by another thread (OTHER). Where the kernel has atomic
operations on the array there is a fourth: the last of these (ATOMIC). Reads and atomic operations share OTHER; the
kind of access that came last has it. WRITTEN holds the epoch of an atomic operation where nothing else wrote.

Two readers are enough. OTHER is the reader farthest from READ: of another block if there is one, else of another warp,
else of another lane. An access that is not ordered after some reader is not ordered after one of these two: an access
of READ's warp races with OTHER, any other access with READ. So an element that two warps have read since the last
barrier needs no third reader. Neither does one that its own thread has written since its last synchronisation: any
access that races with the read races with the write.

Two accesses are ordered if they are of one thread; of one block, with a barrier between; of one warp, with a `syncwarp`
of both lanes between (a vector clock for each lane) or on a warp-synchronous device; or by a release and an acquire:
the first thread passes a fence and then has an atomic operation on an element, on which the second thread later has
one too. Blocks run one after another here, each phase warp by warp, so an epoch below FOREIGN is another block's, and
one below PHASE is older than the block's last barrier.

In a cooperative launch blocks take their turns between grid barriers. An epoch below GRID is older than the last grid
barrier, which orders it. Shared and local arrays have planes for each block then, and count as global ones.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    LENGTH, FRESH, FOREIGN, PHASE, NOW, WARP_SYNCHRONOUS, BLOCK, BARRIERS, WARP, RELEASES, ACQUIRED, MERGED, CAPACITY,
    FENCED, SITES, WARPS, EPOCHS, HANDED, GRID,
) = range(19)  # fmt: skip
"""Indices of `state`. LENGTH: timestamps so far. FRESH: the first timestamp since the warp last synchronised or resumed.
FOREIGN, PHASE: epochs, see above. NOW: the first epoch since the warp last synchronised. RELEASES: rows of `releases`.
ACQUIRED: rows of `acquired`, which are the current block's. MERGED: whether rows of several blocks were merged.
CAPACITY: rows of the log. FENCED: whether the kernel has fences. SITES, WARPS, EPOCHS: how many there are.
HANDED: the most rows of `releases`, and of `acquired`.
GRID: the first epoch since the last grid barrier."""
STATE = 19
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
    releases: int64[., 9]: array, element, block, phase, thread, timestamp of the fence, scope, timestamps so far, `full` of
    the warp. acquired: int64[., 5]: array, element, thread, phase, releases so far. pairs: int64[., PAIR],
    the findings (columns in `detect`). scratch: int32, for shortening the log.
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
    releases: Any
    acquired: Any
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


PAIR = 14
MOST_PAIRS = 1024
MOST_RELEASES = 1 << 16


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
) -> RaceState:
    """The race state before any access. rows: of the log, which is shortened when it is full. asynchronous: sites of
    asynchronous copies."""
    by_themselves = np.zeros(sites, np.int32)
    by_themselves[list(asynchronous)] = 1
    state = np.zeros(STATE, np.int64)
    state[LENGTH] = state[FRESH] = 1  # timestamp 0 is no access
    state[WARP_SYNCHRONOUS], state[CAPACITY], state[FENCED] = warp_synchronous, rows, fenced
    state[SITES], state[WARPS], state[EPOCHS] = sites, warps, where.size
    state[HANDED] = MOST_RELEASES if fenced else 1
    handed = int(state[HANDED])
    places = np.array([*zip(where.starts, where.lengths, own, atomic, strict=True)], np.int64).reshape(-1)
    return RaceState(
        state, np.empty(4 * rows, np.int32), np.zeros(sites, np.int32), np.zeros(where.size, np.uint32), places,
        np.zeros(32, np.uint32), np.zeros(32, np.uint32), np.zeros(1024 * warps, np.int32),
        np.zeros(4 * 32 * warps, np.int64), np.zeros(9 * handed, np.int64), np.zeros(5 * handed, np.int64),
        np.zeros(MOST_PAIRS * PAIR, np.int64), np.empty(2 * (rows + 1) + 5 * (1 + 34 * sites), np.int32),
        np.zeros(4 * 32, np.int64), by_themselves, np.zeros(rows if len(asynchronous) else 1, np.int32),
    )  # fmt: skip
