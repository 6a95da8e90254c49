"""Instrumentation of a kernel with recording statements for the decisions of warps, for `profiler.decisions`.

All engines share it. The sites of these statements follow those of the counted statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeGuard

from ..ir import nodes as ir
from ..ir.walk import map_bodies
from ..language.types import BOOL, I32
from .slow_paths import slow_path_ops, slow_path_predicates

MAX_ATOMS = 8
"""Atomic conditions that a branch records, in addition to the whole condition."""


def note_decisions(kernel: ir.Function, sites: int) -> ir.Function:
    """Return the kernel with recorded decisions. sites: the number of sites in use."""
    return _Noter(sites).run(kernel)


def atoms(cond: ir.Expr) -> tuple[ir.Expr, ...]:
    """Return the atomic conditions of a compound condition, from the left; none for an atomic condition."""
    terms = tuple(_atoms(cond))
    return terms if len(terms) > 1 else ()


def is_connective(cond: ir.Expr) -> TypeGuard[ir.Op]:
    """Return whether a condition is compound."""
    if not isinstance(cond, ir.Op) or cond.type is not BOOL:
        return False
    return cond.name in ("both", "either", "not") or (cond.name in ("eq", "ne") and cond.args[0].type is BOOL)


def _atoms(cond: ir.Expr) -> Iterator[ir.Expr]:
    if is_connective(cond):
        for arg in cond.args:
            yield from _atoms(arg)
    else:
        yield cond


class _Noter:
    """Inserts the recording statements. loops: those around the current statement in its frame."""

    def __init__(self, sites: int) -> None:
        self.sites = sites
        self.loops: list[ir.While | ir.For] = []

    def run(self, kernel: ir.Function) -> ir.Function:
        return replace(kernel, body=self.body(kernel.body))

    def body(self, stmts: ir.Body) -> ir.Body:
        return tuple(new for stmt in stmts for new in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        match stmt:
            case ir.If():
                yield self.note(stmt, _code(stmt.cond))
                yield map_bodies(stmt, self.body)
            case ir.While() | ir.For():
                yield from self.loop(stmt)
            case ir.Frame():
                around, self.loops = self.loops, []
                yield map_bodies(stmt, self.body)
                self.loops = around
            case ir.Return():
                for loop in reversed(self.loops):
                    yield self.note(loop, _iterations(loop), whole=False, alone=True)
                yield stmt
            case ir.Let() | ir.Store() if slow_path_ops(stmt):
                yield self.note(stmt, _bits(slow_path_predicates(stmt)))
                yield stmt
            case _:
                yield stmt

    def loop(self, stmt: ir.While | ir.For) -> Iterator[ir.Stmt]:
        iterations, step = _iterations(stmt), ir.Const(1, I32, stmt.span)
        yield self.numbered(ir.Let(iterations, ir.Const(0, I32, stmt.span), stmt.span))
        if isinstance(stmt, ir.While):
            stmt = replace(stmt, setup=self.body(stmt.setup))
        self.loops.append(stmt)
        count = self.numbered(ir.Let(iterations, ir.Op("add", (iterations, step), I32, stmt.span), stmt.span))
        yield replace(stmt, body=(count, *self.body(stmt.body)))
        self.loops.pop()
        yield self.note(stmt, iterations, alone=_returns(stmt.body))

    def note(
        self,
        about: ir.If | ir.While | ir.For | ir.Let | ir.Store,
        value: ir.Expr,
        whole: bool = True,
        alone: bool = False,
    ) -> ir.Stmt:
        return self.numbered(ir.RecordDecision(about.site, value, whole, alone, about.span))

    def numbered(self, stmt: ir.Let | ir.RecordDecision) -> ir.Stmt:
        self.sites += 1
        return replace(stmt, site=self.sites - 1)


def _iterations(loop: ir.While | ir.For) -> ir.Reg:
    """The counter register for the iterations of the current execution of a loop."""
    return ir.Reg(f"iterations@{loop.site}", I32, loop.span)


def _returns(body: ir.Body) -> bool:
    """Whether lanes may leave the frame inside."""
    for stmt in body:
        match stmt:
            case ir.Return():
                return True
            case ir.If() if _returns(stmt.then) or _returns(stmt.orelse):
                return True
            case ir.While() | ir.For() if _returns(stmt.body):
                return True
    return False


def _code(cond: ir.Expr) -> ir.Expr:
    """Return an i32: bit 0 is the condition, bit k its k-th atomic condition."""
    return _bits((cond, *atoms(cond)[:MAX_ATOMS]))


def _bits(conditions: Iterable[ir.Expr]) -> ir.Expr:
    """A bit for each condition."""
    total: ir.Expr | None = None
    for bit, condition in enumerate(conditions):
        yes, no = (ir.Const(n, I32, condition.span) for n in (1 << bit, 0))
        term = ir.Op("select", (condition, yes, no), I32, condition.span)
        total = term if total is None else ir.Op("or", (total, term), I32, condition.span)
    assert total is not None
    return total
