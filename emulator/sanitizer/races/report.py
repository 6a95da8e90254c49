"""Diagnostics of the races found by `detect`: one for each pair of source places, with advice on how to order them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...errors import Diagnostic
from ...language.intrinsics import WARP_SIZE
from ...language.types import Array
from ...span import Span
from ..elements import Forms, element
from ..places import Dim3, coordinates
from .detect import (
    ARRAY,
    BLOCK_1,
    BLOCK_2,
    COUNT,
    FIRST,
    HARMFUL,
    INDEX,
    OVERLAP,
    PENDING_COPY,
    PHASE_2,
    RELATION,
    RELEASER,
    REMARK,
    SAME_VALUE,
    SECOND,
    THREAD_1,
    THREAD_2,
    UNACQUIRED,
    USED,
    WITHIN_BLOCK,
    WITHIN_GRID,
    WITHIN_WARP,
)
from .release_acquire import RELEASED_BY_LANE, RELEASED_BY_WARP
from .shadow import ATOMICS, BLOCK_ATOMICS, FENCED, LOADS, MERGED, PAIR, STORES, RaceState


def findings(
    h: RaceState,
    names: Sequence[str],
    arrays: Sequence[Array],
    sites: Mapping[int, Span],
    barriers: Sequence[int],
    grid: Dim3,
    block: Dim3,
    forms: Forms,
) -> list[tuple[tuple[int, int, int], set[int], Diagnostic]]:
    """Return (order, its sites, diagnostic) of every pair of sites that race.

    names, arrays: by number of the array. barriers: their lines.
    """
    rows = sorted((row for row in np.asarray(h.findings).reshape(-1, PAIR) if row[USED]), key=_order)
    harmful = {_places(row, sites) for row in rows if not row[REMARK]}
    together: dict[Any, list[Any]] = {}  # copies of an unrolled line, and a line that reads and writes, are merged
    for row in rows:
        if not row[REMARK] or _places(row, sites) not in harmful:
            together.setdefault(_places(row, sites), []).append(row)
    result = []
    for same in together.values():
        row = max(same, key=lambda one: one[RELATION])  # the first with the widest scope
        number = int(row[ARRAY])
        forgotten = bool(h.state[MERGED]) and row[RELATION] == WITHIN_GRID
        place = element(names[number], arrays[number], int(row[INDEX]), forms)
        fenced = bool(h.state[FENCED])
        diagnostic = _Finding(row, place, arrays[number], sites, barriers, grid, block, forgotten, fenced).diagnostic()
        diagnostic = replace(diagnostic, count=sum(int(one[COUNT]) for one in same))
        accessed = {int(one[n]) // 4 for one in same for n in (FIRST, SECOND)}
        result.append((_order(row), accessed, diagnostic))
    return result


def _order(row: Any) -> tuple[int, int, int]:
    return int(row[BLOCK_2]), int(row[PHASE_2]), int(row[THREAD_2]) // WARP_SIZE


def _places(row: Any, sites: Mapping[int, Span]) -> tuple[int, frozenset[Span]]:
    return int(row[ARRAY]), frozenset(sites[int(row[n]) // 4] for n in (FIRST, SECOND))


@dataclass(frozen=True)
class _Finding:
    """One row of `findings`, with the data that describe it."""

    row: Any
    element: str
    type: Array
    sites: Mapping[int, Span]
    barriers: Sequence[int]
    grid: Dim3
    block: Dim3
    forgotten: bool
    fenced: bool

    def diagnostic(self) -> Diagnostic:
        row, (first, second), kinds = self.row, self.spans, self.kinds
        element = self.element
        if row[OVERLAP] == PENDING_COPY:
            what = f"{element} is {_PARTICIPLES[kinds[1]]} here before its asynchronous copy at {first.place} is waited for"
        elif row[OVERLAP]:
            what = f"{element} is written by several threads at once"
        elif first == second and kinds[0] == kinds[1]:
            what = f"two threads {_VERBS[kinds[0]]} {element} here"
        elif first == second:
            what = f"one thread {_THIRD[kinds[1]]} {element} here and another one {_THIRD[kinds[0]]} it"
        else:
            what = f"{element} is {_PARTICIPLES[kinds[1]]} here, and {_PARTICIPLES[kinds[0]]} by another thread at {first.place}"
        notes = [self._thread(1), self._thread(0), self._advice()]
        if row[REMARK] == SAME_VALUE:
            notes.insert(2, "both write the same value: the result does not depend on their order")
        benign = _BENIGN[int(row[REMARK])]
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
        owner = f"block {coordinates(block, self.grid)}"
        if which == 0 and self.forgotten:
            owner = "an earlier block"
        position = f"warp {thread // 32} lane {thread % 32}"
        return f"{_THIRD[self.kinds[which]]}: {owner}, thread {coordinates(thread, self.block)} = {position}"

    def _advice(self) -> str:
        """Return advice on how to order the two accesses."""
        first, second = self.spans
        if self.row[OVERLAP] == PENDING_COPY:
            return "write st.async_wait(...) before it, and st.sync() after that for the copies of other threads"
        if self.row[OVERLAP]:
            return "give each thread an element of its own, let one thread write, or use an atomic operation"
        if self.row[REMARK] == UNACQUIRED:
            fence = "st.fence()" if self.row[RELATION] == WITHIN_GRID else "st.fence_block()"
            return f'it was released, and the atomic operation that read so does not acquire: {fence} after it, or order="acquire"'
        if min(self.kinds) >= ATOMICS:
            return 'scope="block" holds for the threads of one block: use scope="device"'
        if self.row[RELEASER] == RELEASED_BY_LANE:
            return f"another lane of the warp released it: st.syncwarp() after line {first.line}, before that release"
        if self.row[RELEASER] == RELEASED_BY_WARP:
            return f"another warp of the block released it: st.sync() after line {first.line}, before that release"
        if first == second and STORES in self.kinds:
            release = "; or release it: st.fence() before the atomic operation" * self.fenced
            return f"use an atomic operation, or give each thread an element of its own{release}"
        position = "between the two, in statements of their own"
        if first.line != second.line:
            low, high = sorted((first.line, second.line))
            position = f"between lines {low} and {high}"
            if any(low < line < high for line in self.barriers):
                position = f"after line {high} too, before the next iteration reaches line {low}"
        how = _ORDERS[int(self.row[RELATION])].format(position)
        if max(self.kinds) >= ATOMICS:
            plain, kind = (second, self.kinds[1]) if self.kinds[0] >= ATOMICS else (first, self.kinds[0])
            alternative = "st.volatile_load() where it only reads" if kind == LOADS else "st.volatile_store()"
            return f"line {plain.line} is not atomic: make it so, by an atomic operation or {alternative}, or order it: {how}"
        return f"to order them: {how}"


KIND = "race"
_BENIGN = {HARMFUL: "", SAME_VALUE: "benign ", UNACQUIRED: "unacquired "}
_VERBS = {LOADS: "read", STORES: "write", ATOMICS: "act on", BLOCK_ATOMICS: "act, for their blocks alone, on"}
_THIRD = {
    LOADS: "reads",
    STORES: "writes",
    ATOMICS: "acts atomically on",
    BLOCK_ATOMICS: "acts, atomically for its block, on",
}
_PARTICIPLES = {
    LOADS: "read",
    STORES: "written",
    ATOMICS: "changed by an atomic operation",
    BLOCK_ATOMICS: "accessed by an atomic operation of a block",
}
_ORDERS = {
    WITHIN_WARP: "st.syncwarp() {} (from compute capability 7.0 on the lanes of a warp are not in step)",
    WITHIN_BLOCK: "st.sync() {}",
    WITHIN_GRID: "end the launch between them (no barrier orders blocks), or release by st.fence() and an atomic flag",
}
