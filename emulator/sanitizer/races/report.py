"""Diagnostics of the races found by `detect`: one for each pair of source places, with advice on how to order them.

The advice is a barrier at a place that all threads of the group reach, if there is one. Pairs that one barrier orders have the
same remedy; `suppressions` merges them into one finding.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...errors import Diagnostic, Insertion
from ...ir.walk import same
from ...language.intrinsics import WARP_SIZE
from ...passes.grids import is_cooperative
from ...passes.varying_control import Group
from ...span import Span
from ..bounds import user_name
from ..places import coordinates
from . import asynchronous
from .detect import (
    ARRAY,
    BLOCK_1,
    BLOCK_2,
    COUNT,
    FIRST,
    HARMFUL,
    OVERLAP,
    PENDING_COPY,
    PENDING_READ,
    PHASE_2,
    PROPOSAL,
    RELATION,
    RELEASER,
    REMARK,
    SAME_INSTRUCTION,
    SAME_VALUE,
    SECOND,
    SEPARATE,
    THREAD_1,
    THREAD_2,
    UNACQUIRED,
    USED,
    WITHIN_BLOCK,
    WITHIN_GRID,
    WITHIN_WARP,
)
from .placement import Around, Gap, Placement, Placer, before
from .racing_launch import RacingLaunch
from .release_acquire import RELEASED_BY_LANE, RELEASED_BY_WARP
from .shadow import ATOMICS, BLOCK_ATOMICS, LOADS, LOADS_ONLY, OVERWRITES, PAIR, STORES, RaceState
from .source_paths import path_to


@dataclass(frozen=True)
class Tentative(Diagnostic):
    """A race with a remedy that a run has to confirm (`repairs`).

    simpler: the diagnostic with barriers between iterations alone, None without that choice.
    """

    simpler: Diagnostic | None = field(default=None, kw_only=True)

    @property
    def confirmed(self) -> Diagnostic:
        """The diagnostic itself, no longer tentative."""
        return Diagnostic(**{one.name: getattr(self, one.name) for one in fields(Diagnostic)})


def findings(h: RaceState, launch: RacingLaunch) -> list[tuple[tuple[int, int, int], set[int], Diagnostic]]:
    """Return (order, its sites, diagnostic) of every pair of sites that race."""
    rows = sorted((row for row in np.asarray(h.findings).reshape(-1, PAIR) if row[USED]), key=_order)
    harmful = {_places(row, launch) for row in rows if not row[REMARK]}
    together: dict[Any, list[Any]] = {}  # copies of an unrolled line, and a line that reads and writes, are merged
    for row in rows:
        if not row[REMARK] or _places(row, launch) not in harmful:
            together.setdefault(_places(row, launch), []).append(row)
    stored = {int(row[SECOND]) // 4 for row in rows if row[FIRST] == row[SECOND]}
    races = [_Finding(max(same, key=lambda row: row[RELATION]), same, launch, stored) for same in together.values()]
    _widen(races)
    placers: dict[Group, Placer] = {}
    for finding in races:
        if finding.is_placed:
            if finding.group not in placers:
                placers[finding.group] = launch.placer(finding.group)
            finding.place(placers[finding.group])
    _share_places(races)
    return [(_order(finding.row), finding.accessed, finding.diagnostic()) for finding in races]


def _widen(races: Sequence[_Finding]) -> None:
    """Give the races of two statements the widest of their groups: a barrier of fewer threads leaves the others unordered."""
    widest: dict[Any, int] = {}
    for finding in races:
        key = finding.statements, frozenset(finding.arrays)
        widest[key] = max(widest.get(key, 0), finding.relation)
    for finding in races:
        finding.relation = widest[finding.statements, frozenset(finding.arrays)]


def _share_places(races: Sequence[_Finding]) -> None:
    """Choose the fewest barriers that close all paths, those of larger groups first.

    A barrier at the end of a loop, for races between its iterations, also closes the gaps after the loop.
    """
    by_scope = sorted(races, key=lambda finding: -finding.relation)
    ends = {id(finding.around.loop): finding.around for finding in by_scope if finding.around is not None}
    statement: dict[int, str] = {}
    for finding in by_scope:
        for loop in finding.loops:
            statement.setdefault(loop, finding.statement)
    chosen: list[tuple[Gap, int, str]] = []
    for finding in sorted(by_scope, key=lambda finding: (-finding.relation, finding.last)):
        closing = [loop for loop in finding.loops if loop in ends]
        if finding.around is not None:
            finding.around_statement = statement[id(finding.around.loop)]
        elif closing:
            finding.barrier = ends[closing[-1]].insertion(statement[closing[-1]])
            continue
        gap = finding.gap
        if gap is None or not gap.possible:
            continue
        shared = (c for c in chosen if c[0].body is gap.body and gap.first <= c[1] <= gap.last)
        if (at := next(shared, None)) is None:
            chosen.append(at := (gap, gap.last, finding.statement))
        finding.barrier = before(gap, at[1], at[2])


def _order(row: Any) -> tuple[int, int, int]:
    return int(row[BLOCK_2]), int(row[PHASE_2]), int(row[THREAD_2]) // WARP_SIZE


def _places(row: Any, launch: RacingLaunch) -> tuple[frozenset[int], frozenset[Span]]:
    sites = [int(row[n]) // 4 for n in (FIRST, SECOND)]
    return frozenset(launch.of_sites[site] for site in sites), frozenset(launch.sites[site] for site in sites)


@dataclass
class _Finding:
    """The rows of one pair of places, and the one with the widest scope. stored: sites where several threads write an element.
    placement: of barriers between the two accesses. barrier: the one that closes its gap. around_statement: the statement that
    closes the path around a loop. relation: of the threads that a barrier must order."""

    row: Any
    rows: Sequence[Any]
    launch: RacingLaunch
    stored: Set[int]
    relation: int = field(init=False)
    placement: Placement | None = None
    barrier: Insertion | None = None
    around_statement: str = ""

    def __post_init__(self) -> None:
        self.relation = int(self.row[RELATION])

    @cached_property
    def statements(self) -> frozenset[Any]:
        """The places of the statements of its accesses: one if a statement has both."""
        steps = [(span, path_to(span)[-1:]) for span in self.spans]
        return frozenset((span.calls, span.file, step[0].node.lineno if step else span.line) for span, step in steps)

    @property
    def accessed(self) -> set[int]:
        """Its sites."""
        return {int(row[n]) // 4 for row in self.rows for n in (FIRST, SECOND)}

    @property
    def array(self) -> str:
        return user_name(self.launch.arrays[int(self.row[ARRAY])].name)

    @property
    def arrays(self) -> tuple[int, int]:
        """The numbers of the arrays of its two accesses."""
        first, second = (self.launch.of_sites[int(self.row[n]) // 4] for n in (FIRST, SECOND))
        return first, second

    @property
    def is_update(self) -> bool:
        """Whether both accesses have one place and one writes, or one statement reads and writes an element, as `h[i] += 1`."""
        first, second = self.spans
        if STORES not in self.kinds or (first.file, first.line) != (second.file, second.line):
            return False
        return first.text.startswith(second.text) or second.text.startswith(first.text)

    @property
    def is_of_copies(self) -> bool:
        """Whether threads of a block load an element by the address by which one of them, and no other, stores it, or lanes of a warp
        store it at once in shared memory."""
        indices = self.launch.indices
        if self.row[OVERLAP] == SAME_INSTRUCTION:
            return self.launch.arrays[int(self.row[ARRAY])].type.space == "shared"
        for row in self.rows:
            sites = [int(row[n]) // 4 for n in (FIRST, SECOND)]
            kinds = {int(row[n]) & 3 for n in (FIRST, SECOND)}
            if kinds != {LOADS, STORES} or row[RELATION] > WITHIN_BLOCK or self.stored & {*sites}:
                return False
            if not (indices.keys() >= {*sites} and same(*map(indices.__getitem__, sites))):
                return False
        return True

    @property
    def gap(self) -> Gap | None:
        return self.placement.gap if self.placement is not None else None

    @property
    def last(self) -> int:
        """The last index of its gap."""
        return self.gap.last if self.gap is not None else 0

    @property
    def loops(self) -> list[int]:
        """The identities of loops with an end where a barrier orders the accesses, outermost first."""
        own = [id(self.around.loop)] if self.around is not None else []
        return [*own, *(id(loop) for loop in (self.gap.loops if self.gap is not None else ()))]

    @property
    def group(self) -> Group:
        """The threads that a barrier must order; a block for copies of another thread, which the detector relates to the warp."""
        if self.row[OVERLAP] == PENDING_COPY:
            return "block"
        return _GROUPS[self.relation]

    @property
    def statement(self) -> str:
        return _STATEMENTS[self.group]

    @property
    def is_placed(self) -> bool:
        """Whether a barrier may order the accesses."""
        row = self.row
        if self.group == "grid" and not is_cooperative(self.launch.kernel):
            return False
        plain = row[OVERLAP] in (SEPARATE, PENDING_COPY) and row[REMARK] != UNACQUIRED and not row[RELEASER]
        return bool(plain) and min(self.kinds) < ATOMICS and row[REMARK] != PROPOSAL

    def place(self, placer: Placer) -> None:
        """Find the places of barriers. A pending copy needs one before its read."""
        if self.row[OVERLAP] == PENDING_COPY:
            gap = placer.at(self.spans[1])
            self.placement = Placement(gap, None) if gap is not None else None
        else:
            self.placement = placer.place(*self.spans)

    def diagnostic(self) -> Diagnostic:
        first, second = self.spans
        space = self.launch.arrays[int(self.row[ARRAY])].type.space
        benign = _BENIGN[int(self.row[REMARK])]
        exchange = " between lanes that are assumed in step" * self.is_exchange
        message = f"{benign}race on {space} memory{exchange}: {self._event()}"
        remedy, advice = self._advice()
        notes = [self._thread(1), self._thread(0), advice]
        if self.row[REMARK] == SAME_VALUE:
            notes.insert(2, "both write the same value: the result does not depend on their order")
        related = None if first == second else first
        count = sum(int(row[COUNT]) for row in self.rows)
        facts = self.array, self.blocks, self.is_of_copies
        final = Diagnostic(f"{benign}{KIND}", message, second, tuple(notes), count, related, remedy, *facts)
        simpler, around = None, self.around
        if around is not None and self.gap is not None:
            insertion = around.insertion(self.around_statement)
            notes[-1] = self._ordered(str(insertion))
            simpler = replace(final, notes=tuple(notes), remedy=(insertion,))
        if benign:
            return final
        hides = bool(remedy) and self.launch.writes_of(self.arrays) > 1
        return Tentative(**vars(final), simpler=simpler) if simpler is not None or hides else final

    def _event(self) -> str:
        """Return a text about the two accesses."""
        (first, second), kinds = self.spans, self.operations
        other, name = (self.launch.element(number, self.row) for number in self.arrays)
        alias = f" as {other}" if other != name else ""
        if self.row[OVERLAP] >= PENDING_COPY:
            return asynchronous.event(self.row[OVERLAP], name, _PARTICIPLES[kinds[1]], self.roles, first)
        if self.row[OVERLAP]:
            return f"{name} is written by several threads at once"
        if first == second and kinds[0] == kinds[1]:
            return f"two threads {_VERBS[kinds[0]]} {name} here"
        if first == second:
            return f"one thread {_THIRD[kinds[1]]} {name} here and another one {_THIRD[kinds[0]]} it{alias}"
        return f"{name} is {_PARTICIPLES[kinds[1]]} here, and {_PARTICIPLES[kinds[0]]} by another thread{alias} at {first.place}"

    @property
    def spans(self) -> tuple[Span, Span]:
        sites = self.launch.sites
        return sites[int(self.row[FIRST]) // 4], sites[int(self.row[SECOND]) // 4]

    @property
    def kinds(self) -> tuple[int, int]:
        """The operations of the two accesses. Two volatile accesses of a warp, which race, are a load and a store."""
        first, second = (int(self.row[n]) & 3 for n in (FIRST, SECOND))
        if not self.is_exchange:
            return first, second
        return (LOADS, STORES) if self.roles[0] & LOADS_ONLY else (STORES, LOADS)

    @property
    def roles(self) -> list[int]:
        """The bits of the two accesses, see `shadow.ACQUIRES`."""
        return [self.launch.roles.get(int(self.row[n]) // 4, 0) for n in (FIRST, SECOND)]

    @property
    def operations(self) -> list[int]:
        """The operations of the two accesses for messages: a volatile access, which counts as atomic, is a load or a store."""
        volatile = (LOADS if role & LOADS_ONLY else STORES if role & OVERWRITES else ATOMICS for role in self.roles)
        return [own if kind >= ATOMICS > own else kind for kind, own in zip(self.kinds, volatile, strict=True)]

    @property
    def is_exchange(self) -> bool:
        """Whether both accesses are volatile, of one warp."""
        return bool(self.row[RELATION] == WITHIN_WARP) and min(int(self.row[n]) & 3 for n in (FIRST, SECOND)) >= ATOMICS

    def _thread(self, which: int) -> str:
        block, thread = (int(self.row[n]) for n in ((BLOCK_1, THREAD_1), (BLOCK_2, THREAD_2))[which])
        owner = f"block {coordinates(block, self.launch.grid)}"
        if which == 0 and self._is_earlier_unknown:
            owner = "an earlier block"
        position = f"warp {thread // 32} lane {thread % 32}"
        return (
            f"{_THIRD[self.operations[which]]}: {owner}, thread {coordinates(thread, self.launch.block)} = {position}"
        )

    @property
    def blocks(self) -> tuple[int, ...]:
        """The blocks of the two threads, in order."""
        first, second = int(self.row[BLOCK_1]), int(self.row[BLOCK_2])
        return (second,) if self._is_earlier_unknown or first == second else (first, second)

    @property
    def _is_earlier_unknown(self) -> bool:
        return self.launch.forgotten and bool(self.row[RELATION] == WITHIN_GRID)

    @property
    def around(self) -> Around | None:
        """The open path around a loop, if a barrier closes it."""
        around = self.placement.around if self.placement is not None else None
        return around if around is not None and not around.illegal else None

    def _advice(self) -> tuple[tuple[Insertion, ...], str]:
        """Return the barriers that order the two accesses, and the advice."""
        row, first = self.row, self.spans[0]
        if row[OVERLAP] == PENDING_COPY:
            return self._wait()
        if row[OVERLAP] >= PENDING_READ:
            return (), asynchronous.advice(row[OVERLAP], self.roles, first)
        if row[OVERLAP]:
            return (), "give each thread an element of its own, let one thread write, or use an atomic operation"
        if row[REMARK] == PROPOSAL:
            return (), "the read only proposes a compare-and-swap on its element, which fails for a stale value"
        if row[REMARK] == UNACQUIRED:
            fence = "st.fence()" if row[RELATION] == WITHIN_GRID else "st.fence_block()"
            advice = f'it was released, and the atomic operation that read so does not acquire: {fence} after it, or order="acquire"'
            return (), advice
        if min(self.kinds) >= ATOMICS:
            return (), 'scope="block" holds for the threads of one block: use scope="device"'
        if row[RELEASER] == RELEASED_BY_LANE:
            return (
                (),
                f"another lane of the warp released it: st.syncwarp() after line {first.line}, before that release",
            )
        if row[RELEASER] == RELEASED_BY_WARP:
            return (), f"another warp of the block released it: st.sync() after line {first.line}, before that release"
        if self.group == "grid" and not is_cooperative(self.launch.kernel):
            if self.is_update:
                return (), self._exclusive()
            if self.launch.in_one_cluster(*self.blocks):
                return (), self._ordered("st.cluster_sync() between the two")
            together = len(self.statements) == 1 and max(self.kinds) < ATOMICS
            return (), _OTHER_ARRAY if together else self._ordered(_BETWEEN_BLOCKS)
        remedy = self._remedy()
        return remedy, self._ordered(" and ".join(map(str, remedy))) if remedy else self._unplaced()

    def _remedy(self) -> tuple[Insertion, ...]:
        """Return a barrier for each open path; empty if one of them cannot be closed."""
        placement = self.placement
        if placement is None or (placement.gap is not None and self.barrier is None):
            return ()
        if placement.around is not None and self.around is None:
            return ()
        around = [self.around.insertion(self.around_statement)] if self.around is not None else []
        return (*([self.barrier] if self.barrier is not None else []), *around)

    def _unplaced(self) -> str:
        """Return advice where no barrier orders the two accesses."""
        placement, statement = self.placement, self.statement
        if self.is_update:
            return self._exclusive()
        if placement is None or (placement.gap is None and placement.around is None):
            return self._ordered(f"{statement} between the two")
        gap = placement.gap
        illegal = gap.illegal if gap is not None else placement.around.illegal if placement.around is not None else 0
        if gap is not None and gap.branches:
            return (
                f"no barrier orders the two branches of line {illegal}, which threads take at the same time: end the first branch, "
                f"then {statement}, then the second one under its own condition"
            )
        members = {"warp": "lanes of the warp", "block": "threads of the block", "grid": "blocks of the grid"}[
            self.group
        ]
        if gap is not None and gap.together:
            branch = f", end the branch or loop of line {illegal}, which not all {members} take alike" * bool(illegal)
            condition = " under the same condition" * bool(illegal)
            return f"no barrier fits inside one statement: read into a variable{branch}, then {statement}, then write{condition}"
        mask = ", or name the lanes that take it: st.syncwarp(mask) with mask = st.ballot(condition) before it" * (
            self.group == "warp"
        )
        return (
            f"no {statement} is legal between the two: not all {members} reach them, because of line {illegal}; move one of them out "
            f"of that branch or loop{mask}"
        )

    def _wait(self) -> tuple[tuple[Insertion, ...], str]:
        """Return the wait for an asynchronous copy, with a barrier if another thread copies."""
        gap = self.gap
        advice = "write st.async_wait(...) before it, and st.sync() after that for the copies of other threads"
        own = int(self.row[THREAD_1]) == int(self.row[THREAD_2])
        if gap is None or (gap.illegal and not own):
            return (), advice
        wait = before(gap, gap.last, "st.async_wait(0)")
        return ((wait,) if own else (wait, before(gap, gap.last, "st.sync()"))), advice

    def _exclusive(self) -> str:
        release = "; or release it: st.fence() before the atomic operation" * self.launch.fenced
        return f"use an atomic operation, or give each thread an element of its own{release}"

    def _ordered(self, how: str) -> str:
        """Return advice with a text on how to order the accesses."""
        if self.group == "warp" and "syncwarp" in how:
            volatile = ", and volatile does not order them" * self.is_exchange
            how += f" (from compute capability 7.0 on the lanes of a warp are not in step{volatile})"
        if max(self.kinds) >= ATOMICS:
            first, second = self.spans
            plain, kind = (second, self.kinds[1]) if self.kinds[0] >= ATOMICS else (first, self.kinds[0])
            alternative = "st.volatile_load()" if kind == LOADS else "st.volatile_store()"
            how += f"; if either order is correct, use an atomic operation or {alternative} in line {plain.line}"
        return f"to order them: {how}"


KIND = "race"
_BENIGN = {HARMFUL: "", SAME_VALUE: "benign ", UNACQUIRED: "unacquired ", PROPOSAL: "benign "}
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
_GROUPS: dict[int, Group] = {WITHIN_WARP: "warp", WITHIN_BLOCK: "block", WITHIN_GRID: "grid"}
_STATEMENTS = {"warp": "st.syncwarp()", "block": "st.sync()", "grid": "st.grid_sync()"}
_OTHER_ARRAY = "no barrier orders blocks, and no launch ends inside a statement: write the results to another array than the one read"
_BETWEEN_BLOCKS = "end the launch between them (no barrier orders blocks), or release by st.fence() and an atomic flag"
