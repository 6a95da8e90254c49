"""The checks that a program is asked for, as statements of the program: every engine then runs the same ones.

What they need beside them (a flag for each register of an array: was it assigned?) is added too. Statements added
here have sites beyond those that are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..ir import nodes as ir
from ..ir.walk import bodies, children, expressions, statements
from ..language.types import BOOL, Array
from .arithmetic import obligations


def instrument(kernel: ir.Function, sites: int, checks: frozenset[str]) -> ir.Function:
    """The kernel with the checks asked for and without the others. sites: those that are numbered already."""
    return _Instrumenter(kernel, sites, checks).run()


class _Instrumenter:
    def __init__(self, kernel: ir.Function, sites: int, checks: frozenset[str]) -> None:
        self.kernel, self.sites, self.checks = kernel, sites, checks
        self.lengths = {
            s.array: s.type.length or 0
            for s in statements(kernel.body)
            if isinstance(s, ir.Alloc) and s.type.space == "register" and "uninitialised" in checks
        }

    def run(self) -> ir.Function:
        return replace(self.kernel, body=self.body(self.kernel.body))

    def site(self) -> int:
        self.sites += 1
        return self.sites - 1

    def body(self, stmts: ir.Body) -> ir.Body:
        return tuple(new for stmt in stmts for new in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if isinstance(stmt, ir.Check):
            known = isinstance(stmt.cond, ir.Const) and stmt.cond.value
            if stmt.about in self.checks and not known:
                yield replace(stmt, site=self.site())
            return
        if not isinstance(stmt, ir.While):
            yield from self.before(stmt)
        match stmt:
            case ir.If():
                yield replace(stmt, then=self.body(stmt.then), orelse=self.body(stmt.orelse))
            case ir.While():
                setup = (*self.body(stmt.setup), *self.before(stmt))
                yield replace(stmt, setup=setup, body=self.body(stmt.body))
            case ir.For() | ir.Frame():
                yield replace(stmt, body=self.body(stmt.body))
            case _:
                yield stmt
        yield from self.after(stmt)

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """The checks of what a statement is about to evaluate, its bodies left out."""
        seen = set()
        for expr in children(stmt):
            for register in (e for e in (expr, *expressions(expr)) if isinstance(e, ir.Reg)):
                if self._element(register) and register.name not in seen:
                    seen.add(register.name)
                    yield ir.Check("uninitialised", _flag(register), register, (), register.span, self.site())
        if "arithmetic" not in self.checks:
            return
        for expr in children(stmt):
            for op, given in obligations(expr):
                holds: ir.Expr = ir.Defined(op, BOOL, op.span)
                if given is not None:
                    holds = ir.Op("either", (ir.Op("not", (given,), BOOL, op.span), holds), BOOL, op.span)
                yield ir.Check("arithmetic", holds, op, op.args, op.span, self.site())

    def after(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        """Registers that are assigned, and those that begin."""
        match stmt:
            case ir.Let(target=ir.Reg() as target) if self._element(target):
                yield self._assign(target, True)
            case ir.Alloc(type=Array(space="register")):
                for number in range(self.lengths.get(stmt.array, 0)):
                    yield self._assign(ir.Reg(f"{stmt.array}[{number}]", BOOL, stmt.span), False)

    def _element(self, register: ir.Reg) -> bool:
        return "[" in register.name and register.name.partition("[")[0] in self.lengths

    def _assign(self, register: ir.Reg, value: bool) -> ir.Let:
        return ir.Let(_flag(register), ir.Const(value, BOOL, register.span), register.span, self.site())


def _flag(register: ir.Reg) -> ir.Reg:
    """Whether the register was assigned."""
    return ir.Reg(f"{register.name}@set", BOOL, register.span)


def unchecked(body: ir.Body) -> ir.Body:
    """The statements without checks."""
    kept: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.Check):
            continue
        inner = [unchecked(b) for b in bodies(stmt)]
        match stmt:
            case ir.If():
                stmt = replace(stmt, then=inner[0], orelse=inner[1])
            case ir.While():
                stmt = replace(stmt, setup=inner[0], body=inner[1])
            case ir.For() | ir.Frame():
                stmt = replace(stmt, body=inner[0])
        kept.append(stmt)
    return tuple(kept)
