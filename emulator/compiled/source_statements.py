"""The source of a compiled kernel as control: statements with their counts, the arms of branches and loops around them."""

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
"""A line of the printed kernel, then those of the calls that lead there, innermost first."""
ListKind = Literal["kernel", "then", "else", "test", "body"]
BranchArm = tuple[Place, ListKind]
"""A branch of the source, and which of its arms, "then" or "else", is taken."""


@dataclass(frozen=True, eq=False)
class StatementList:
    """A statement list: the kernel's, an arm of a branch, or of a loop its body or what its test computes first. site: of
    that branch or loop, -1 of the kernel."""

    site: int
    arm: ListKind
    outer: StatementList | None

    @property
    def loop(self) -> StatementList | None:
        """The innermost loop's body that this is, or lies in."""
        context: StatementList | None = self
        while context is not None and context.arm not in ("body", "test"):
            context = context.outer
        return context

    def lies_in(self, loops: Collection[int]) -> bool:
        """Whether this is the body of one of some loops, or lies in one."""
        context: StatementList | None = self
        while context is not None and not (context.arm == "body" and context.site in loops):
            context = context.outer
        return context is not None


Segment = tuple[StatementList, tuple[int, ListKind] | None]


@dataclass(frozen=True)
class Statement:
    """One counted statement. place: in the printed kernel, (0,) for none."""

    number: int
    site: Site
    place: Place
    context: StatementList
    warps: int
    lanes: int


@dataclass
class SourceStatements:
    """A kernel's statements by number, and the contexts they lie in. chosen: by statement, the branch and the arm that decide about
    it and about no other turn of a loop: what follows an arm that leaves the statement list belongs to the other arm.
    behind: by statement behind one in which lanes may leave its statement list, the next branch or loop there: both are executed by
    those that did not. divided: by statement, whether its divisions and roots that may take a slow path are of integers, one
    after the other. conditions: of branches that are made of several. stays: by branch of which one arm leaves the statement
    list, the other one."""

    statements: dict[int, Statement] = field(default_factory=dict)
    contexts: dict[tuple[int, ListKind], StatementList] = field(default_factory=dict)
    loops: dict[int, ir.While | ir.For] = field(default_factory=dict)
    chosen: dict[int, tuple[int, ListKind]] = field(default_factory=dict)
    behind: dict[int, int] = field(default_factory=dict)
    slow_divisions: dict[int, tuple[bool, ...]] = field(default_factory=dict)
    conditions: dict[int, ir.Expr] = field(default_factory=dict)
    remaining_arm: dict[int, ListKind] = field(default_factory=dict)
    decisions: Decisions = field(default_factory=Decisions)

    @staticmethod
    def of(
        body: ir.Body, sites: tuple[Site, ...], places: list[Place], counts: Counts, decisions: Decisions
    ) -> SourceStatements:
        """body: of the program whose sites these are. places: of each site."""
        source = SourceStatements(decisions=decisions)

        def walk(stmts: ir.Body, context: StatementList, chosen: tuple[int, ListKind] | None = None) -> None:
            source.contexts[context.site, context.arm] = context
            source.behind |= _behind(stmts)
            for stmt in stmts:
                if 0 <= stmt.site < len(sites):
                    row = counts[stmt.site]
                    source.statements[stmt.site] = Statement(
                        stmt.site, sites[stmt.site], places[stmt.site], context, int(row[WARPS]), int(row[LANES])
                    )
                    if chosen is not None:
                        source.chosen[stmt.site] = chosen
                    if slow := slow_path_ops(stmt):
                        source.slow_divisions[stmt.site] = tuple(map(is_long_division, slow))
                match stmt:
                    case ir.If():
                        if atoms(stmt.cond):
                            source.conditions[stmt.site] = stmt.cond
                        walk(stmt.then, StatementList(stmt.site, "then", context), (stmt.site, "then"))
                        walk(stmt.orelse, StatementList(stmt.site, "else", context), (stmt.site, "else"))
                        if _leaves(stmt.then) != _leaves(stmt.orelse):
                            source.remaining_arm[stmt.site] = "else" if _leaves(stmt.then) else "then"
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
        """The same where the compiler tells no calls: a function's statements lie at one place, whoever called it."""
        found = {n: replace(one, place=one.place[:1]) for n, one in self.statements.items()}
        return replace(self, statements=found)

    def part(self, statement: Statement) -> Segment:
        """The part of a statement list that is executed together with a statement: up to where lanes may leave the list, or from
        there on."""
        return statement.context, self.chosen.get(statement.number)

    def choice(self, statement: Statement) -> BranchArm | None:
        """The branch and the arm that decide about a statement."""
        site, arm = self.chosen.get(statement.number, (-1, "kernel"))
        return (self.statements[site].place, arm) if site in self.statements else None

    def loop_of(self, statement: Statement) -> Place | None:
        """The place of the loop that a statement is, or lies in."""
        if statement.number in self.loops:
            return statement.place
        loop = statement.context.loop
        return self.statements[loop.site].place if loop is not None else None

    def arm_around(self, statement: Statement, branches: Collection[int]) -> ListKind | None:
        """The arm of one of some branches that decides about a statement, or about what it lies in."""
        at: Statement | None = statement
        while at is not None:
            site, arm = self.chosen.get(at.number, (-1, "kernel"))
            if site in branches:
                return arm
            at = self.statements.get(site if site >= 0 else at.context.site)
        return None

    @cached_property
    def by_branch_arm(self) -> dict[BranchArm, list[Statement]]:
        """What each arm of the branches at a place decides about."""
        found: dict[BranchArm, list[Statement]] = defaultdict(list)
        for statement in self.statements.values():
            choice = self.choice(statement)
            if choice is not None:
                found[choice].append(statement)
        return dict(found)

    @cached_property
    def by_place(self) -> dict[Place, list[Statement]]:
        """Executed statements by place."""
        found: dict[Place, list[Statement]] = defaultdict(list)
        for statement in self.statements.values():
            found[statement.place].append(statement)
        return dict(found)

    def slow_path_counts(self, number: int, division: int) -> tuple[int, int]:
        """How often lanes and warps took the slow path of a division of a statement."""
        found = self.decisions.sites.get(number, SiteDecisions()).patterns
        taken = found["value"] >> division & 1
        return int((found["count"] * taken.sum(axis=1)).sum()), int((found["count"] * taken.any(axis=1)).sum())

    def taken(self, number: int, arm: ListKind) -> tuple[int, int]:
        """How often lanes and warps took an arm of a branch."""
        patterns = self.decisions.sites.get(number, SiteDecisions()).patterns
        came = patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32) & 1
        taken = came & (patterns["value"] if arm == "then" else ~patterns["value"])
        return int((patterns["count"] * taken.sum(axis=1)).sum()), int((patterns["count"] * taken.any(axis=1)).sum())

    def codes(self, number: int) -> dict[int, int]:
        """How many lanes came to a branch with each code of what its conditions were."""
        patterns = self.decisions.sites.get(number, SiteDecisions()).patterns
        came = patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32) & 1
        lanes = np.bincount((patterns["value"] >> 1).reshape(-1), (came * patterns["count"][:, None]).reshape(-1))
        return dict(enumerate(lanes.astype(np.int64).tolist()))

    def turns(self, loop: int) -> LoopExecutions:
        """How often a loop was entered and how many iterations that made."""
        return LoopExecutions.of(self.decisions.sites.get(loop, SiteDecisions()))


def _behind(body: ir.Body) -> dict[int, int]:
    """Of a statement list what `Source.behind` has."""
    found, waiting, left = dict[int, int](), list[int](), False
    for stmt in body:
        if left and stmt.site >= 0:
            waiting.append(stmt.site)
        if isinstance(stmt, ir.If | ir.While | ir.For):
            found |= dict.fromkeys(waiting, stmt.site)
            waiting.clear()
            left |= _may_leave(stmt, ir.Return if isinstance(stmt, ir.While | ir.For) else _LEAVING)
    return found


_LEAVING = ir.Break | ir.Continue | ir.Return


def _may_leave(stmt: ir.Stmt, by: Any) -> bool:
    """Whether a branch or loop has a statement, not of a loop or call inside, by which lanes leave the list that it stands in."""
    match stmt:
        case ir.If():
            return any(isinstance(one, by) or _may_leave(one, by) for one in (*stmt.then, *stmt.orelse))
        case ir.While() | ir.For():
            return any(isinstance(one, ir.Return) or _may_leave(one, ir.Return) for one in stmt.body)
    return False


def _leaves(body: ir.Body) -> bool:
    """Whether no lane goes on behind a statement list."""
    match body[-1:]:
        case (ir.Break() | ir.Continue() | ir.Return(),):
            return True
        case (ir.If() as last,):
            return _leaves(last.then) and _leaves(last.orelse)
    return False


@dataclass(frozen=True)
class LoopExecutions:
    """Executions of a loop. count[n]: of a pattern by warps. lanes: bool[n, 32] that entered; iterations: int[n, 32] that
    each lane began. others: as in `SiteDecisions`."""

    count: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.bool_]
    iterations: npt.NDArray[np.int32]
    others: tuple[int, int, int]

    @staticmethod
    def of(decisions: SiteDecisions) -> LoopExecutions:
        patterns = decisions.patterns
        lanes = (patterns["mask"][:, None] >> np.arange(32, dtype=np.uint32)) & 1
        return LoopExecutions(patterns["count"], lanes.astype(np.bool_), patterns["value"], decisions.excess)

    @property
    def with_final_test(self) -> LoopExecutions:
        """The same with the test that ends the loop as another iteration, where some lanes make none."""
        if not (self.lanes & (self.iterations == 0)).any():
            return self
        executions, began, took = self.others
        lanes = int((self.count * self.lanes.sum(axis=1)).sum()) / max(int(self.count.sum()), 1)
        others = executions, round(began + executions * lanes), took + executions
        return replace(self, iterations=self.iterations + self.lanes, others=others)

    @property
    def began(self) -> int:
        """Iterations that lanes began, but those of `others`."""
        return int((self.count * self.iterations.sum(axis=1, dtype=np.int64)).sum())
