"""The history of memory, as data: who wrote and who read each word last, and what orders accesses.

A *timestamp* is one site as one warp executes it between two synchronisations. Timestamps are numbered in order of
execution, and the log has a row for each: block, phase (barriers the block has passed), warp, access_id. An *access_id* is a site
and what it does: 4 site + LOADS, STORES or ATOMICS (atomically). A *epoch* is a thread at a timestamp, u32:
timestamp << 10 | thread in the block; 0 is nobody. Each checked element has three epochs in planes of u32: who wrote it
last, who read it last, and another reader; where the kernel acts atomically on the array, a fourth: who did so last.
Operations that do not race with each other share OTHER: those that came last have it. (WRITTEN holds an atomic
operation's epoch where nothing else wrote.)

Two readers are enough. `OTHER` is the reader farthest from `READ`: of another block if there is one, else of another
warp, else of another lane. Whatever is not ordered after some reader is not ordered after one of these two: what is
of READ's warp is told by OTHER, everything else by READ. So a word that two warps read since the last barrier needs
no third reader, and neither does one that its thread wrote and that nobody could be ordered with since: whoever
clashes with the read clashes with the write.

Ordered are: accesses of one thread; of one block, with a barrier between; of one warp, with a `syncwarp` of both
lanes between (a vector clock a lane), or in lockstep at all; and by a release and an acquire: the first thread passes
a fence and then acts atomically on a word on which the second thread, later, acts atomically. Blocks run one after
another here, each phase warp by warp, so an epoch below FOREIGN is another block's, and one below PHASE is older than
the block's last barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...language.types import Array

BITS = 10
"""Of an epoch, the thread's."""
MOST_TIMESTAMPS = 1 << (32 - BITS)
LOADS, STORES, ATOMICS = range(3)
WRITTEN, READ, OTHER, ATOMIC = range(4)
PADDING = 64
"""Epochs before and after each plane, so that a row of 32 around any element may be loaded."""

(
    LENGTH,
    FRESH,
    FOREIGN,
    PHASE,
    NOW,
    WARP_SYNCHRONOUS,
    BLOCK,
    BARRIERS,
    WARP,
    RELEASES,
    ACQUIRED,
    MERGED,
    CAPACITY,
    FENCED,
) = range(14)
"""State. LENGTH: timestamps so far. FRESH: timestamps below it are not this stretch's. FOREIGN, PHASE: epochs, see above.
NOW: the epoch from which on accesses belong to the current warp's current stretch.
RELEASES: rows of `releases`; ACQUIRED: rows of `acquired`, the current block's. MERGED: whether old rows lost their blocks.
CAPACITY: rows of the log. FENCED: whether the kernel has fences."""
STATE = 14
ONE = 1 << BITS
THREAD = ONE - 1


class RaceState(NamedTuple):
    """The arrays, as compiled functions take them.

    state: int64[STATE]. log: int32[timestamps, 4]. timestamp: int32[site], the last timestamp of each. epochs: uint32, the
    planes of all arrays. places: int64[array, 4]: where its WRITTEN plane begins, elements a plane, whether it is the
    block's own, whether it has an ATOMIC plane.
    joined, full: uint32[warp], the epoch from which on no `syncwarp`, or none of all lanes, has happened.
    clock: int32[warp, lane, lane], timestamps of the second lane below it are ordered before the first lane's next.
    fences: int64[thread, 4]: timestamp, phase and block of the last fence, and its scope (1 block, 2 device).
    releases: int64[., 9]: array, element, block, phase, thread, timestamp of the fence, scope, timestamps so far, `full` of
    the warp. acquired: int64[., 5]: array, element, thread, phase, releases so far. pairs: int64[., PAIR], findings (see `races`).
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


@dataclass
class Layout:
    """Which arrays are watched, and where their planes lie.

    numbers: of arrays, by name. starts: of the WRITTEN plane, in epochs. lengths: elements of a plane; a local
    array's are those of all threads of a block, [element][thread].
    """

    numbers: dict[str, int]
    starts: list[int]
    lengths: list[int]
    size: int = 0


def layout(lengths: dict[str, int], planes: dict[str, int]) -> Layout:
    """A place for the planes of each array, given its elements and the number of planes."""
    found = Layout({}, [], [])
    for number, (name, length) in enumerate(lengths.items()):
        found.numbers[name] = number
        found.starts.append(found.size + PADDING)
        found.lengths.append(length + PADDING)
        found.size += planes[name] * (length + PADDING) + PADDING
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
) -> RaceState:
    """A history in which nothing has happened. rows: of the log, which is made shorter when it is full."""
    state = np.zeros(STATE, np.int64)
    state[LENGTH] = state[FRESH] = 1  # timestamp 0 is nobody's
    state[WARP_SYNCHRONOUS], state[CAPACITY], state[FENCED] = warp_synchronous, rows, fenced
    handed = MOST_RELEASES if fenced else 1
    places = np.array([*zip(where.starts, where.lengths, own, atomic, strict=True)], np.int64).reshape(-1, 4)
    return RaceState(
        state, np.empty((rows, 4), np.int32), np.zeros(sites, np.int32), np.zeros(where.size, np.uint32), places,
        np.zeros(32, np.uint32), np.zeros(32, np.uint32), np.zeros((warps, 32, 32), np.int32),
        np.zeros((32 * warps, 4), np.int64), np.zeros((handed, 9), np.int64), np.zeros((handed, 5), np.int64),
        np.zeros((MOST_PAIRS, PAIR), np.int64),
    )  # fmt: skip
