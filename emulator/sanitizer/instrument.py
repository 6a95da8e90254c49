"""Instrumentation: the statements that checkers add to a kernel, the same for every engine.

Their sites are numbered after the counted sites.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..ir import nodes as ir
from ..ir.walk import map_bodies
from . import checkers


def instrument(kernel: ir.Function, sites: int, checks: frozenset[str]) -> ir.Function:
    """Return the kernel with the requested checks only. sites: number of counted sites."""
    return _Instrumenter(kernel, sites, checks).run()


class _Instrumenter:
    def __init__(self, kernel: ir.Function, sites: int, checks: frozenset[str]) -> None:
        self.kernel, self.sites, self.checks = kernel, sites, checks
        self.added = [row.instrument(kernel) for row in checkers.requested(checks) if row.instrument is not None]

    def run(self) -> ir.Function:
        return replace(self.kernel, body=self.body(self.kernel.body))

    def numbered(self, stmts: Iterable[ir.Stmt]) -> Iterator[ir.Stmt]:
        for stmt in stmts:
            self.sites += 1
            yield replace(stmt, site=self.sites - 1)

    def body(self, stmts: ir.Body) -> ir.Body:
        return tuple(new for stmt in stmts for new in self.statement(stmt))

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        if isinstance(stmt, ir.Check):
            always_true = isinstance(stmt.cond, ir.Const) and stmt.cond.value
            if checkers.keeps(stmt.about, self.checks) and not always_true:
                yield from self.numbered((stmt,))
            return
        if isinstance(stmt, ir.While):
            setup = (*self.body(stmt.setup), *self.before(stmt))
            yield replace(stmt, setup=setup, body=self.body(stmt.body))
        else:
            yield from self.before(stmt)
            yield map_bodies(stmt, self.body)
        for added in self.added:
            yield from self.numbered(added.after(stmt))

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        for added in self.added:
            yield from self.numbered(added.before(stmt))


def unchecked(body: ir.Body) -> ir.Body:
    """Return the statements without checks."""
    return tuple(map_bodies(stmt, unchecked) for stmt in body if not isinstance(stmt, ir.Check))
