"""Races: two threads access one element of memory, one of them writes, and nothing orders the two.

Atomic operations do not race with each other. A write of the value that is there already is benign: it is told, and
is no fault unless it is asked for. What orders accesses says `history`; the rule here goes by one access of a warp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numba
import numpy as np

from ...errors import Diagnostic
from ...language.types import Array
from ...span import Span
from ..bounds import user_name
from ..places import Dim3, coordinates
from . import shadow as past
from .shadow import (  # fmt: skip
    ACQUIRED,
    ACTED,
    ACTS,
    BARRIERS,
    BITS,
    BLOCK,
    FENCED,
    FOREIGN,
    LENGTH,
    LOADS,
    LOCKSTEP,
    MERGED,
    NOW,
    OTHER,
    PHASE,
    READ,
    RELEASES,
    STORES,
    THREAD,
    WARP,
    History,
)

ORDERED, OF_WARP, OF_BLOCK, OF_GRID = range(4)
"""How far apart two threads are that nothing orders."""
(USED, FIRST, SECOND, ARRAY, BENIGN, RELATION, COUNT, INDEX, BLOCK_1, THREAD_1, BLOCK_2, PHASE_2, THREAD_2, AT_ONCE) = (
    range(past.PAIR)
)
"""A finding: acts and threads of the first access and of the second, which found it."""


# ------------------------------------------------------------------ order
class _Here(NamedTuple):
    """What stamps are held against in one access: numbers, for arrays are slow to hand on."""

    shared: int
    foreign: int
    phase: int
    now: int
    full: int
    lockstep: int
    fenced: int


@numba.njit(inline="always")
def _distance(here: _Here, stamp: int, thread: int) -> int:
    """How far the thread of an earlier access is from the current thread, but for what only clocks and fences know."""
    if stamp < here.foreign:
        return ORDERED if stamp == 0 or here.shared else OF_GRID  # of shared memory: of a block that is over
    other = stamp & THREAD
    if stamp < here.phase or other == thread:
        return ORDERED
    if other >> 5 != thread >> 5:
        return OF_BLOCK
    return ORDERED if here.lockstep or stamp < here.full else OF_WARP


@numba.njit(inline="always")
def _owns(here: _Here, stamp: int, thread: int) -> bool:
    """Whether the thread itself did this, and has met nobody since: then nobody can have accessed the element
    without being found, and who clashes with this access clashes with that one."""
    return stamp >= here.now and stamp & THREAD == thread


@numba.njit(inline="always")
def _covered(here: _Here, read: int, other: int, thread: int) -> bool:
    """Whether the two readers known stand for the current thread too."""
    if read < here.phase:
        return False
    if _owns(here, read, thread):
        return True
    if other < here.phase:
        return 0 < other < here.foreign and not here.shared
    if (read ^ other) & (THREAD & ~31):
        return True
    return min(read, other) >= here.now and (read & THREAD) >> 5 == thread >> 5 and (read ^ other) & THREAD != 0


@numba.njit(cache=True)
def _met(h: History, stamp: int, thread: int) -> bool:
    """Whether a `syncwarp` of some lanes orders two lanes of a warp."""
    other = stamp & THREAD
    if stamp < h.state[FOREIGN] or other >> 5 != thread >> 5:
        return False
    return bool(stamp >> BITS < h.clock[thread >> 5, thread & 31, other & 31])


@numba.njit(cache=True)
def _released(h: History, stamp: int, thread: int) -> bool:
    """Whether its thread handed the access over by a fence and an atomic operation, and the current thread took it."""
    when = stamp >> BITS
    if h.state[MERGED] and stamp < h.state[FOREIGN]:
        return True  # its block is forgotten
    block, phase, other = h.log[when, 0], h.log[when, 1], stamp & THREAD
    low, high = 0, h.state[RELEASES]
    while low < high:  # the first release after it
        middle = (low + high) // 2
        if h.releases[middle, 7] > when:
            high = middle
        else:
            low = middle + 1
    while low < h.state[RELEASES] and h.releases[low, 2] == block:
        row = h.releases[low]
        by_itself = row[4] == other and when < row[5]
        by_warp = row[4] >> 5 == other >> 5 and stamp < row[8]
        if (phase < row[3] or by_itself or by_warp) and (row[6] == 2 or block == h.state[BLOCK]):
            for number in range(h.state[ACQUIRED]):
                taken = h.acquired[number]
                mine = taken[2] == thread or taken[3] < h.state[BARRIERS]
                if taken[0] == row[0] and taken[1] == row[1] and taken[4] > low and mine:
                    return True
        low += 1
    return False


@numba.njit(cache=True)
def _hand_over(h: History, array: int, element: int, thread: int) -> None:
    """An atomic operation takes what was released on its word, and releases what its thread fenced."""
    if h.state[ACQUIRED] < len(h.acquired):
        row = h.acquired[h.state[ACQUIRED]]
        row[0], row[1], row[2], row[3], row[4] = array, element, thread, h.state[BARRIERS], h.state[RELEASES]
        h.state[ACQUIRED] += 1
    fence = h.fences[thread]
    if fence[0] == 0 or fence[2] != h.state[BLOCK]:
        return
    if h.state[RELEASES] == len(h.releases):
        h.state[MERGED] = 1
        return
    row = h.releases[h.state[RELEASES]]
    row[0], row[1], row[2], row[3], row[4] = array, element, h.state[BLOCK], fence[1], thread
    row[5], row[6], row[7], row[8] = fence[0], fence[3], h.state[LENGTH], h.full[thread >> 5]
    h.state[RELEASES] += 1


# ------------------------------------------------------------------ one access of a warp
@numba.njit(cache=True)
def access(h: History, array: int, act: int, moment: int, mask: int, index: Any, values: Any, before: Any) -> None:
    """Lanes of the current warp access elements of an array: find races, and note the access.

    moment: of the act, now. index: int64[32]. values, before: int64[parts, 32], the bits a store writes and those it finds.
    """
    kind, state, stamps, log = act & 3, h.state, h.stamps, h.log
    warp = int(state[WARP])
    base = moment << BITS | warp << 5
    start, size = int(h.places[array, 0]), int(h.places[array, 1])
    here = _Here(
        int(h.places[array, 2]), int(state[FOREIGN]), int(state[PHASE]), int(state[NOW]), int(h.full[warp]),
        int(state[LOCKSTEP]), int(state[FENCED]),
    )  # fmt: skip
    atomic = h.places[array, 3]
    main = (ACTED if kind == ACTS else READ) * size
    noted = 0
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        thread = warp << 5 | lane
        at = start + index[lane]
        wrote: Any = np.int64(stamps[at])
        read: Any = np.int64(stamps[at + READ * size])
        other: Any = np.int64(stamps[at + OTHER * size])
        acted: Any = np.int64(stamps[at + ACTED * size] if atomic else 0)
        if kind != ACTS and _owns(here, wrote, thread) and log[wrote >> BITS, 3] & 3 == STORES:
            continue
        for stamp in (wrote, read, other, acted):
            apart = _distance(here, stamp, thread)
            if apart != ORDERED and _unlike(log[stamp >> BITS, 3] & 3, kind):
                same = stamp == wrote and kind == STORES and _equal(values, before, lane, lane)
                if _clash(h, array, act, stamp, thread, index[lane], same, apart):
                    break
        if kind == ACTS:
            if here.fenced:
                _hand_over(h, array, index[lane], thread)
            if wrote == 0 or (here.shared and wrote < here.foreign):
                stamps[at] = base | lane
        if kind == STORES:
            noted |= 1 << lane
            continue
        last = acted if kind == ACTS else read
        second = other if log[other >> BITS, 3] & 3 == kind else 0
        if not _covered(here, last, second, thread):
            noted |= 1 << lane
            far = _distance(here, last, thread)
            if far != ORDERED and _distance(here, second, thread) <= far:
                stamps[at + OTHER * size] = last
    if kind == STORES:
        for lane in range(32):
            if noted >> lane & 1:
                stamps[start + index[lane]] = base | lane
        _at_once(h, array, act, base, noted, index, values)
    else:
        _note_readers(stamps, here, start + main, start + OTHER * size, base, noted, index)


@numba.njit(inline="always")
def _unlike(first: int, second: int) -> bool:
    """Whether accesses of two kinds may race."""
    return first == STORES or second == STORES or first != second


@numba.njit(inline="always")
def _equal(first: Any, second: Any, lane: int, other: int) -> bool:
    """Whether two lanes have the same bits, all parts."""
    same = True
    for part in range(len(first)):
        same = same and first[part, lane] == second[part, other]
    return same


@numba.njit(cache=True)
def _note_readers(stamps: Any, here: _Here, last: int, second: int, base: int, mask: int, index: Any) -> None:
    """Of several lanes that mean one element the last is noted as such, the one before it as OTHER, if none is
    farther. last, second: where these planes begin."""
    for lane in range(32):
        if mask >> lane & 1:
            stamps[last + index[lane]] = base | lane
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        stamp, known = base | lane, int(stamps[second + index[lane]])
        if stamps[last + index[lane]] != stamp and _distance(here, known, stamp & THREAD) <= OF_WARP:
            stamps[second + index[lane]] = stamp


@numba.njit(cache=True)
def _at_once(h: History, array: int, act: int, base: int, mask: int, index: Any, values: Any) -> None:
    """Lanes of a store that mean one element race with the one that came last."""
    for lane in range(32):
        if mask >> lane & 1:
            stamp = int(h.stamps[h.places[array, 0] + index[lane]])
            if stamp != base | lane:
                same = _equal(values, values, lane, stamp & 31)
                _report(h, array, act, stamp, (base | lane) & THREAD, index[lane], same, OF_WARP, True)


@numba.njit(cache=True)
def _clash(h: History, array: int, act: int, stamp: int, thread: int, element: int, same: bool, apart: int) -> bool:
    """Report the race with an earlier access, if nothing else orders the two. `same`: it finds what it writes."""
    if _met(h, stamp, thread) or (h.state[FENCED] and _released(h, stamp, thread)):
        return False
    first = h.log[stamp >> BITS, 3] & 3
    _report(h, array, act, stamp, thread, element, same and first == STORES, apart, False)
    return True


@numba.njit(cache=True)
def _report(
    h: History, array: int, act: int, stamp: int, thread: int, element: int, same: bool, apart: int, at_once: bool
) -> None:
    """Count a finding under its pair of sites; keep the first of those farthest apart, who need the strongest order."""
    when = stamp >> BITS
    first = h.log[when, 3]
    for number in range(len(h.pairs)):
        row = h.pairs[number]
        forth = row[FIRST] == first and row[SECOND] == act
        back = row[FIRST] == act and row[SECOND] == first
        if row[USED] and not ((forth or back) and row[ARRAY] == array and row[BENIGN] == same):
            continue
        row[COUNT] += 1
        if not row[USED] or apart > row[RELATION]:
            row[USED], row[FIRST], row[SECOND], row[ARRAY], row[BENIGN] = 1, first, act, array, same
            row[RELATION], row[INDEX], row[AT_ONCE] = apart, element, at_once
            row[BLOCK_1], row[THREAD_1] = h.log[when, 0], stamp & THREAD
            row[BLOCK_2], row[PHASE_2], row[THREAD_2] = h.state[BLOCK], h.state[BARRIERS], thread
        return


# ------------------------------------------------------------------ what is said about them
def findings(
    h: History,
    names: Sequence[str],
    arrays: Sequence[Array],
    sites: Mapping[int, Span],
    barriers: Sequence[int],
    grid: Dim3,
    block: Dim3,
) -> list[tuple[tuple[int, int, int], set[int], Diagnostic]]:
    """(order, its sites, diagnostic) of every pair of sites that raced. names, arrays: by number of the array.
    barriers: their lines."""
    rows = sorted(h.pairs[h.pairs[:, USED] != 0], key=_order)
    harmful = {_places(row, sites) for row in rows if not row[BENIGN]}
    together: dict[Any, list[Any]] = {}  # copies of an unrolled line, and a line that reads and writes, are one
    for row in rows:
        if not row[BENIGN] or _places(row, sites) not in harmful:
            together.setdefault(_places(row, sites), []).append(row)
    found = []
    for same in together.values():
        row = max(same, key=lambda one: one[RELATION])  # the first of those farthest apart
        number = int(row[ARRAY])
        forgotten = bool(h.state[MERGED]) and row[RELATION] == OF_GRID
        told = _Finding(row, user_name(names[number]), arrays[number], sites, barriers, grid, block, forgotten).told()
        told = replace(told, count=sum(int(one[COUNT]) for one in same))
        accessed = {int(one[n]) // 4 for one in same for n in (FIRST, SECOND)}
        found.append((_order(row), accessed, told))
    return found


def _order(row: Any) -> tuple[int, int, int]:
    return int(row[BLOCK_2]), int(row[PHASE_2]), int(row[THREAD_2]) // 32


def _places(row: Any, sites: Mapping[int, Span]) -> tuple[int, frozenset[Span]]:
    return int(row[ARRAY]), frozenset(sites[int(row[n]) // 4] for n in (FIRST, SECOND))


@dataclass(frozen=True)
class _Finding:
    """One row of `pairs`, to be told."""

    row: Any
    name: str
    type: Array
    sites: Mapping[int, Span]
    barriers: Sequence[int]
    grid: Dim3
    block: Dim3
    forgotten: bool

    def told(self) -> Diagnostic:
        row, (first, second), kinds = self.row, self.spans, self.kinds
        element = f"{self.name}[{int(row[INDEX])}]"
        if row[AT_ONCE]:
            what = f"{element} is written by several threads at once"
        elif first == second and kinds[0] == kinds[1]:
            what = f"two threads {_VERBS[kinds[0]]} {element} here"
        elif first == second:
            what = f"one thread {_THIRD[kinds[1]]} {element} here and another one {_THIRD[kinds[0]]} it"
        else:
            what = f"{element} is {_DONE[kinds[1]]} here, and {_DONE[kinds[0]]} by another thread at {first.place}"
        notes = [self._thread(1), self._thread(0), self._advice()]
        if row[BENIGN]:
            notes.insert(2, "both write the same value: the result does not depend on who comes last")
        benign = "benign " if row[BENIGN] else ""
        message = f"{benign}race on {self.type.space} memory: {what}"
        related = None if first == second else first
        return Diagnostic(f"{benign}{KIND}", message, second, tuple(notes), int(row[COUNT]), related)

    @property
    def spans(self) -> tuple[Span, Span]:
        return self.sites[int(self.row[FIRST]) // 4], self.sites[int(self.row[SECOND]) // 4]

    @property
    def kinds(self) -> tuple[int, int]:
        return int(self.row[FIRST]) & 3, int(self.row[SECOND]) & 3

    def _thread(self, which: int) -> str:
        block, thread = (int(self.row[n]) for n in ((BLOCK_1, THREAD_1), (BLOCK_2, THREAD_2))[which])
        where = f"block {coordinates(block, self.grid)}"
        if which == 0 and self.forgotten:
            where = "an earlier block"
        position = f"warp {thread // 32} lane {thread % 32}"
        return f"{_THIRD[self.kinds[which]]}: {where}, thread {coordinates(thread, self.block)} = {position}"

    def _advice(self) -> str:
        """What would order the two accesses."""
        first, second = self.spans
        if self.row[AT_ONCE]:
            return "give each thread an element of its own, let one thread write, or use an atomic operation"
        if first == second and STORES in self.kinds:
            return "use an atomic operation, or give each thread an element of its own"
        between = "between the two, in statements of their own"
        if first.line != second.line:
            low, high = sorted((first.line, second.line))
            between = f"between lines {low} and {high}"
            if any(low < line < high for line in self.barriers):
                between = f"after line {high} too, before another turn comes to line {low}"
        how = _ORDERS[int(self.row[RELATION])].format(between)
        if ACTS in self.kinds:
            plain = second if self.kinds[0] == ACTS else first
            return f"line {plain.line} is not atomic: make it so, or order it: {how}"
        return f"to order them: {how}"


KIND = "race"
_VERBS = {LOADS: "read", STORES: "write", ACTS: "act on"}
_THIRD = {LOADS: "reads", STORES: "writes", ACTS: "acts atomically on"}
_DONE = {LOADS: "read", STORES: "written", ACTS: "changed by an atomic operation"}
_ORDERS = {
    OF_WARP: "st.syncwarp() {} (from compute capability 7.0 on the lanes of a warp are not in step)",
    OF_BLOCK: "st.sync() {}",
    OF_GRID: "end the launch between them (no barrier orders blocks), or hand over by st.fence() and an atomic flag",
}
NOTHING = np.zeros((0, 32), np.int64)
"""For accesses that write no plain values."""
