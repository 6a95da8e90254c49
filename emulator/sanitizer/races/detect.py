"""The race rule: two threads access one element, at least one of them writes, and nothing orders the two accesses.

Atomic operations do not race with each other. A write of the value that is there already is benign: it is reported as
a remark, and is a fault only if asked for. The rule is applied to one access of a warp at a time.
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
from . import shadow
from .shadow import (  # fmt: skip
    ACQUIRED,
    ATOMIC,
    ATOMICS,
    BARRIERS,
    BITS,
    BLOCK,
    FENCED,
    FOREIGN,
    LENGTH,
    LOADS,
    MERGED,
    NOW,
    OTHER,
    PHASE,
    READ,
    RELEASES,
    STORES,
    THREAD,
    WARP,
    WARP_SYNCHRONOUS,
    RaceState,
)

ORDERED, OF_WARP, OF_BLOCK, OF_GRID = range(4)
"""The smallest group that holds two threads whose accesses nothing orders."""
(USED, FIRST, SECOND, ARRAY, BENIGN, RELATION, COUNT, INDEX, BLOCK_1, THREAD_1, BLOCK_2, PHASE_2, THREAD_2, AT_ONCE) = (
    range(shadow.PAIR)
)
"""A finding: acts and threads of the first access and of the second, which found it."""


# ------------------------------------------------------------------ order
class _Here(NamedTuple):
    """The state that epochs are compared with in one access, as numbers: arrays are slow to pass on."""

    shared: int
    foreign: int
    phase: int
    now: int
    full: int
    warp_synchronous: int
    fenced: int


@numba.njit(inline="always")
def _distance(here: _Here, epoch: int, thread: int) -> int:
    """How far the thread of an earlier access is from the current thread, but for what only clocks and fences know."""
    if epoch < here.foreign:
        return ORDERED if epoch == 0 or here.shared else OF_GRID  # of shared memory: of a block that is over
    other = epoch & THREAD
    if epoch < here.phase or other == thread:
        return ORDERED
    if other >> 5 != thread >> 5:
        return OF_BLOCK
    return ORDERED if here.warp_synchronous or epoch < here.full else OF_WARP


@numba.njit(inline="always")
def _owns(here: _Here, epoch: int, thread: int) -> bool:
    """Whether the thread itself did this, and has met nobody since: then nobody can have accessed the element
    without being found, and who clashes with this access clashes with that one."""
    return epoch >= here.now and epoch & THREAD == thread


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
def _met(h: RaceState, epoch: int, thread: int) -> bool:
    """Whether a `syncwarp` of some lanes orders two lanes of a warp."""
    other = epoch & THREAD
    if epoch < h.state[FOREIGN] or other >> 5 != thread >> 5:
        return False
    return bool(epoch >> BITS < h.clock[thread >> 5, thread & 31, other & 31])


@numba.njit(cache=True)
def _released(h: RaceState, epoch: int, thread: int) -> bool:
    """Whether its thread handed the access over by a fence and an atomic operation, and the current thread took it."""
    when = epoch >> BITS
    if h.state[MERGED] and epoch < h.state[FOREIGN]:
        return True  # its block is forgotten
    block, phase, other = h.log[when, 0], h.log[when, 1], epoch & THREAD
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
        by_warp = row[4] >> 5 == other >> 5 and epoch < row[8]
        if (phase < row[3] or by_itself or by_warp) and (row[6] == 2 or block == h.state[BLOCK]):
            for number in range(h.state[ACQUIRED]):
                taken = h.acquired[number]
                mine = taken[2] == thread or taken[3] < h.state[BARRIERS]
                if taken[0] == row[0] and taken[1] == row[1] and taken[4] > low and mine:
                    return True
        low += 1
    return False


@numba.njit(cache=True)
def _hand_over(h: RaceState, array: int, element: int, thread: int) -> None:
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
def access(
    h: RaceState, array: int, access_id: int, timestamp: int, mask: int, index: Any, values: Any, before: Any
) -> None:
    """Lanes of the current warp access elements of an array: find races, and note the access.

    timestamp: of the access_id, now. index: int64[32]. values, before: int64[parts, 32], the bits a store writes and those it finds.
    """
    kind, state, epochs, log = access_id & 3, h.state, h.epochs, h.log
    warp = int(state[WARP])
    base = timestamp << BITS | warp << 5
    start, size = int(h.places[array, 0]), int(h.places[array, 1])
    here = _Here(
        int(h.places[array, 2]), int(state[FOREIGN]), int(state[PHASE]), int(state[NOW]), int(h.full[warp]),
        int(state[WARP_SYNCHRONOUS]), int(state[FENCED]),
    )  # fmt: skip
    atomic = h.places[array, 3]
    main = (ATOMIC if kind == ATOMICS else READ) * size
    noted = 0
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        thread = warp << 5 | lane
        at = start + index[lane]
        wrote: Any = np.int64(epochs[at])
        read: Any = np.int64(epochs[at + READ * size])
        other: Any = np.int64(epochs[at + OTHER * size])
        last_atomic: Any = np.int64(epochs[at + ATOMIC * size] if atomic else 0)
        if kind != ATOMICS and _owns(here, wrote, thread) and log[wrote >> BITS, 3] & 3 == STORES:
            continue
        for epoch in (wrote, read, other, last_atomic):
            apart = _distance(here, epoch, thread)
            if apart != ORDERED and _unlike(log[epoch >> BITS, 3] & 3, kind):
                same = epoch == wrote and kind == STORES and _equal(values, before, lane, lane)
                if _clash(h, array, access_id, epoch, thread, index[lane], same, apart):
                    break
        if kind == ATOMICS:
            if here.fenced:
                _hand_over(h, array, index[lane], thread)
            if wrote == 0 or (here.shared and wrote < here.foreign):
                epochs[at] = base | lane
        if kind == STORES:
            noted |= 1 << lane
            continue
        last = last_atomic if kind == ATOMICS else read
        second = other if log[other >> BITS, 3] & 3 == kind else 0
        if not _covered(here, last, second, thread):
            noted |= 1 << lane
            far = _distance(here, last, thread)
            if far != ORDERED and _distance(here, second, thread) <= far:
                epochs[at + OTHER * size] = last
    if kind == STORES:
        for lane in range(32):
            if noted >> lane & 1:
                epochs[start + index[lane]] = base | lane
        _at_once(h, array, access_id, base, noted, index, values)
    else:
        _note_readers(epochs, here, start + main, start + OTHER * size, base, noted, index)


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
def _note_readers(epochs: Any, here: _Here, last: int, second: int, base: int, mask: int, index: Any) -> None:
    """Of several lanes that mean one element the last is noted as such, the one before it as OTHER, if none is
    farther. last, second: where these planes begin."""
    for lane in range(32):
        if mask >> lane & 1:
            epochs[last + index[lane]] = base | lane
    for lane in range(32):
        if not mask >> lane & 1:
            continue
        epoch, known = base | lane, int(epochs[second + index[lane]])
        if epochs[last + index[lane]] != epoch and _distance(here, known, epoch & THREAD) <= OF_WARP:
            epochs[second + index[lane]] = epoch


@numba.njit(cache=True)
def _at_once(h: RaceState, array: int, access_id: int, base: int, mask: int, index: Any, values: Any) -> None:
    """Lanes of a store that mean one element race with the one that came last."""
    for lane in range(32):
        if mask >> lane & 1:
            epoch = int(h.epochs[h.places[array, 0] + index[lane]])
            if epoch != base | lane:
                same = _equal(values, values, lane, epoch & 31)
                _report(h, array, access_id, epoch, (base | lane) & THREAD, index[lane], same, OF_WARP, True)


@numba.njit(cache=True)
def _clash(
    h: RaceState, array: int, access_id: int, epoch: int, thread: int, element: int, same: bool, apart: int
) -> bool:
    """Report the race with an earlier access, if nothing else orders the two. `same`: it finds what it writes."""
    if _met(h, epoch, thread) or (h.state[FENCED] and _released(h, epoch, thread)):
        return False
    first = h.log[epoch >> BITS, 3] & 3
    _report(h, array, access_id, epoch, thread, element, same and first == STORES, apart, False)
    return True


@numba.njit(cache=True)
def _report(
    h: RaceState,
    array: int,
    access_id: int,
    epoch: int,
    thread: int,
    element: int,
    same: bool,
    apart: int,
    at_once: bool,
) -> None:
    """Count a finding under its pair of sites; keep the first of those farthest apart, who need the strongest order."""
    when = epoch >> BITS
    first = h.log[when, 3]
    for number in range(len(h.pairs)):
        row = h.pairs[number]
        forth = row[FIRST] == first and row[SECOND] == access_id
        back = row[FIRST] == access_id and row[SECOND] == first
        if row[USED] and not ((forth or back) and row[ARRAY] == array and row[BENIGN] == same):
            continue
        row[COUNT] += 1
        if not row[USED] or apart > row[RELATION]:
            row[USED], row[FIRST], row[SECOND], row[ARRAY], row[BENIGN] = 1, first, access_id, array, same
            row[RELATION], row[INDEX], row[AT_ONCE] = apart, element, at_once
            row[BLOCK_1], row[THREAD_1] = h.log[when, 0], epoch & THREAD
            row[BLOCK_2], row[PHASE_2], row[THREAD_2] = h.state[BLOCK], h.state[BARRIERS], thread
        return


# ------------------------------------------------------------------ diagnostics
def findings(
    h: RaceState,
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
        diagnostic = _Finding(
            row, user_name(names[number]), arrays[number], sites, barriers, grid, block, forgotten
        ).diagnostic()
        diagnostic = replace(diagnostic, count=sum(int(one[COUNT]) for one in same))
        accessed = {int(one[n]) // 4 for one in same for n in (FIRST, SECOND)}
        found.append((_order(row), accessed, diagnostic))
    return found


def _order(row: Any) -> tuple[int, int, int]:
    return int(row[BLOCK_2]), int(row[PHASE_2]), int(row[THREAD_2]) // 32


def _places(row: Any, sites: Mapping[int, Span]) -> tuple[int, frozenset[Span]]:
    return int(row[ARRAY]), frozenset(sites[int(row[n]) // 4] for n in (FIRST, SECOND))


@dataclass(frozen=True)
class _Finding:
    """One row of `pairs`, and what is needed to describe it."""

    row: Any
    name: str
    type: Array
    sites: Mapping[int, Span]
    barriers: Sequence[int]
    grid: Dim3
    block: Dim3
    forgotten: bool

    def diagnostic(self) -> Diagnostic:
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
                between = f"after line {high} too, before the next iteration reaches line {low}"
        how = _ORDERS[int(self.row[RELATION])].format(between)
        if ATOMICS in self.kinds:
            plain = second if self.kinds[0] == ATOMICS else first
            return f"line {plain.line} is not atomic: make it so, or order it: {how}"
        return f"to order them: {how}"


KIND = "race"
_VERBS = {LOADS: "read", STORES: "write", ATOMICS: "act on"}
_THIRD = {LOADS: "reads", STORES: "writes", ATOMICS: "acts atomically on"}
_DONE = {LOADS: "read", STORES: "written", ATOMICS: "changed by an atomic operation"}
_ORDERS = {
    OF_WARP: "st.syncwarp() {} (from compute capability 7.0 on the lanes of a warp are not in step)",
    OF_BLOCK: "st.sync() {}",
    OF_GRID: "end the launch between them (no barrier orders blocks), or hand over by st.fence() and an atomic flag",
}
NOTHING = np.zeros((0, 32), np.int64)
"""For accesses that write no plain values."""
