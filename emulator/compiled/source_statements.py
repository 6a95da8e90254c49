"""Control structure of the source of a compiled kernel: statements with counts, statement lists, branch arms and loops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..ir import nodes as ir
from ..passes.decisions import atoms
from ..passes.sites import Site
from ..passes.slow_paths import is_long_division, slow_path_ops
from ..profiler.decisions import Decisions, SiteDecisions
from ..profiler.events import LANES, WARPS, Counts

Place = tuple[int, ...]
"""Source location: a line of the printed kernel, then the lines of the inlined calls, innermost first."""
ListKind = Literal["kernel", "then", "else", "test", "body"]
BranchArm = tuple[Place, ListKind]
"""A branch by source location, and its arm, "then" or "else"."""


@dataclass(frozen=True, eq=False)
class StatementList:
    """A list of statements: the kernel's, an arm of a branch, or the body or test setup of a loop. site: of the branch
    or loop, -1 for the kernel."""

    site: int
    arm: ListKind
    outer: StatementList | None

    @property
    def loop(self) -> StatementList | None:
        """The innermost enclosing loop list, possibly itself."""
        enclosing: StatementList | None = self
        while enclosing is not None and enclosing.arm not in ("body", "test"):
            enclosing = enclosing.outer
        return enclosing

    def is_inside(self, loops: Collection[int]) -> bool:
        """Return whether this list is in the body of one of some loops."""
        enclosing: StatementList | None = self
        while enclosing is not None and not (enclosing.arm == "body" and enclosing.site in loops):
            enclosing = enclosing.outer
        return enclosing is not None


Segment = tuple[StatementList, tuple[int, ListKind] | None]


@dataclass(frozen=True)
class Statement:
    """A counted statement. place: its source location, (0,) for none."""

    number: int
    site: Site
    place: Place
    context: StatementList
    warps: int
    lanes: int


@dataclass
class SourceStatements:
    """Statements by number, with their control structure.

    deciding_arm: by statement, the branch and arm that decide its execution; statements after an arm that leaves the
    list belong to the other arm. next_branch: by statement after a possible early exit, the next branch or loop of its
    list; both are executed equally often. slow_divisions: by statement, its divisions and roots with slow paths,
    whether of integers. conditions: of branches with several. remaining_arm: by branch with one leaving arm, the other
    one.
    """

    statements: dict[int, Statement] = field(default_factory=dict)
    contexts: dict[tuple[int, ListKind], StatementList] = field(default_factory=dict)
    loops: dict[int, ir.While | ir.For] = field(default_factory=dict)
    deciding_arm: dict[int, tuple[int, ListKind]] = field(default_factory=dict)
    next_branch: dict[int, int] = field(default_factory=dict)
    slow_divisions: dict[int, tuple[bool, ...]] = field(default_factory=dict)
    conditions: dict[int, ir.Expr] = field(default_factory=dict)
    remaining_arm: dict[int, ListKind] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)

    @staticmethod
    def from_kernel(
        body: ir.Body, sites: tuple[Site, ...], places: list[Place], counts: Counts, decisions: Decisions
    ) -> SourceStatements:
        """Build from the body of a program, the sites, their source locations, counts and decisions."""
        source = SourceStatements(decisions=decisions)

        def walk(stmts: ir.Body, context: StatementList, chosen: tuple[int, ListKind] | None = None) -> None:
            source.contexts[context.site, context.arm] = context
            source.next_branch |= _next_branches(stmts)
            for stmt in stmts:
                if 0 <= stmt.site < len(sites):
                    row = counts[stmt.site]
                    source.statements[stmt.site] = Statement(
                        stmt.site, sites[stmt.site], places[stmt.site], context, int(row[WARPS]), int(row[LANES])
                    )
                    if chosen is not None:
                        source.deciding_arm[stmt.site] = chosen
                    if slow := slow_path_ops(stmt):
                        source.slow_divisions[stmt.site] = tuple(map(is_long_division, slow))
                match stmt:
                    case ir.If():
                        if atoms(stmt.cond):
                            source.conditions[stmt.site] = stmt.cond
                        walk(stmt.then, StatementList(stmt.site, "then", context), (stmt.site, "then"))
                        walk(stmt.orelse, StatementList(stmt.site, "else", context), (stmt.site, "else"))
                        if _always_leaves(stmt.then) != _always_leaves(stmt.orelse):
                            source.remaining_arm[stmt.site] = "else" if _always_leaves(stmt.then) else "then"
                            chosen = stmt.site, source.remaining_arm[stmt.site]
                    case ir.While():
                        source.loops[stmt.site] = stmt
                        walk(stmt.setup, StatementList(stmt.site, "test", context))
                        walk(stmt.body, StatementList(stmt.site, "body", context))
                    case ir.For():
                        source.loops[stmt.site] = stmt
                        walk(stmt.body, StatementList(stmt.site, "body", context))
                    case ir.Frame():
                        walk(stmt.body, context, chosen)

        walk(body, StatementList(-1, "kernel", None))
        return source

    def without_inlining(self) -> SourceStatements:
        """Return a copy with locations without calls, for line tables without inlining information."""
        inlined = {n: replace(one, place=one.place[:1]) for n, one in self.statements.items()}
        return replace(self, statements=inlined)

    def segment(self, statement: Statement) -> Segment:
        """Return the segment of a statement: its list up to, or from, a possible early exit."""
        return statement.context, self.deciding_arm.get(statement.number)

    def branch_arm(self, statement: Statement) -> BranchArm | None:
        """Return the branch arm that decides a statement's execution."""
        site, arm = self.deciding_arm.get(statement.number, (-1, "kernel"))
        return (self.statements[site].place, arm) if site in self.statements else None

    def enclosing_loop(self, statement: Statement) -> Place | None:
        """Return the location of a statement's loop, or its own if it is one."""
        if statement.number in self.loops:
            return statement.place
        loop = statement.context.loop
        return self.statements[loop.site].place if loop is not None else None

    def arm_around(self, statement: Statement, branches: Collection[int]) -> ListKind | None:
        """Return the arm of one of some branches around a statement."""
        at: Statement | None = statement
        while at is not None:
            site, arm = self.deciding_arm.get(at.number, (-1, "kernel"))
            if site in branches:
                return arm
            at = self.statements.get(site if site >= 0 else at.context.site)
        return None

    @cached_property
    def by_branch_arm(self) -> dict[BranchArm, list[Statement]]:
        """Statements by deciding branch arm."""
        result: dict[BranchArm, list[Statement]] = defaultdict(list)
        for statement in self.statements.values():
            choice = self.branch_arm(statement)
            if choice is not None:
                result[choice].append(statement)
        return dict(result)

    @cached_property
    def by_place(self) -> dict[Place, list[Statement]]:
        """Statements by source location."""
        result: dict[Place, list[Statement]] = defaultdict(list)
        for statement in self.statements.values():
            result[statement.place].append(statement)
        return dict(result)

    def slow_path_counts(self, number: int, division: int) -> tuple[int, int]:
        """Return executions of a division's slow path, by lanes and by warps."""
        patterns = self.decisions.sites.get(number, SiteDecisions()).patterns
        slow = patterns["value"] >> division & 1
        return int((patterns["count"] * slow.sum(axis=1)).sum()), int((patterns["count"] * slow.any(axis=1)).sum())

    def arm_counts(self, number: int, arm: ListKind) -> tuple[int, int]:
        """Return executions of an arm, by lanes and by warps."""
        patterns = self.decisions.sites.get(number, SiteDecisions()).patterns
        arrived = patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32) & 1
        selected = arrived & (patterns["value"] if arm == "then" else ~patterns["value"])
        return int((patterns["count"] * selected.sum(axis=1)).sum()), int(
            (patterns["count"] * selected.any(axis=1)).sum()
        )

    def code_counts(self, number: int) -> dict[int, int]:
        """Return lanes at a branch by condition code (a bit per condition)."""
        patterns = self.decisions.sites.get(number, SiteDecisions()).patterns
        arrived = patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32) & 1
        lanes = np.bincount((patterns["value"] >> 1).reshape(-1), (arrived * patterns["count"][:, None]).reshape(-1))
        return dict(enumerate(lanes.astype(np.int64).tolist()))

    def loop_executions(self, loop: int) -> LoopExecutions:
        """Return entries and iterations of a loop."""
        return LoopExecutions.from_kernel(self.decisions.sites.get(loop, SiteDecisions()))


def _next_branches(body: ir.Body) -> dict[int, int]:
    """Return `SourceStatements.next_branch` of one statement list."""
    result, pending, may_leave = dict[int, int](), list[int](), False
    for stmt in body:
        if may_leave and stmt.site >= 0:
            pending.append(stmt.site)
        if isinstance(stmt, ir.If | ir.While | ir.For):
            result |= dict.fromkeys(pending, stmt.site)
            pending.clear()
            may_leave |= _may_leave_list(stmt, ir.Return if isinstance(stmt, ir.While | ir.For) else _LEAVING)
    return result


_LEAVING = ir.Break | ir.Continue | ir.Return


def _may_leave_list(stmt: ir.Stmt, leaving: Any) -> bool:
    """Return whether a branch or loop contains a statement that leaves the enclosing list."""
    match stmt:
        case ir.If():
            return any(isinstance(one, leaving) or _may_leave_list(one, leaving) for one in (*stmt.then, *stmt.orelse))
        case ir.While() | ir.For():
            return any(isinstance(one, ir.Return) or _may_leave_list(one, ir.Return) for one in stmt.body)
    return False


def _always_leaves(body: ir.Body) -> bool:
    """Return whether no lane continues after a statement list."""
    match body[-1:]:
        case (ir.Break() | ir.Continue() | ir.Return(),):
            return True
        case (ir.If() as last,):
            return _always_leaves(last.then) and _always_leaves(last.orelse)
    return False


@dataclass(frozen=True)
class LoopExecutions:
    """Executions of a loop, by pattern. count: int64[n], by warps. lanes: bool[n, 32], that entered. iterations:
    int32[n, 32]. unrecorded: as `others` of `SiteDecisions`."""

    count: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.bool_]
    iterations: npt.NDArray[np.int32]
    unrecorded: tuple[int, int, int]

    @staticmethod
    def from_kernel(decisions: SiteDecisions) -> LoopExecutions:
        patterns = decisions.patterns
        lanes = (patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32)) & 1
        return LoopExecutions(patterns["count"], lanes.astype(np.bool_), patterns["value"], decisions.excess)

    @property
    def with_final_test(self) -> LoopExecutions:
        """The same with the final test as an iteration, if some lanes have no iteration."""
        if not (self.lanes & (self.iterations == 0)).any():
            return self
        executions, started, iterations_taken = self.unrecorded
        lanes = int((self.count * self.lanes.sum(axis=1)).sum()) / max(int(self.count.sum()), 1)
        unrecorded = executions, round(started + executions * lanes), iterations_taken + executions
        return replace(self, iterations=self.iterations + self.lanes, unrecorded=unrecorded)

    @property
    def total_iterations(self) -> int:
        """Recorded iterations of all lanes."""
        return int((self.count * self.iterations.sum(axis=1, dtype=np.int64)).sum())
