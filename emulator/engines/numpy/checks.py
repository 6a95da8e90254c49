"""Assertions and the conditions of checkers."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...sanitizer import barriers, checkers
from .expressions import scalar
from .warp_group import WarpGroup


def check(stmt: ir.Check, kernel: ir.Function) -> Callable[[WarpGroup], None]:
    """A closure that reports the lanes for which a checker's condition does not hold."""
    holds, shown = scalar(stmt.cond), [scalar(e) for e in stmt.shown]

    def run(group: WarpGroup) -> None:
        failed = group.full(group.active) & ~group.full(holds(group))
        if failed.any():
            values = [group.full(v(group)) for v in shown]

            def describe(row: int, lane: int, place: str) -> Diagnostic:
                return checkers.describe(stmt, kernel, [v[row, lane].item() for v in values], place)

            group.fault(stmt.about, stmt.site, failed, describe)

    return run


def assertion(stmt: ir.Assert) -> Callable[[WarpGroup], None]:
    """A closure that reports the lanes for which an assertion does not hold."""
    holds, shown = scalar(stmt.cond), [scalar(e) for e in barriers.asserted_values(stmt)]

    def run(group: WarpGroup) -> None:
        failed = group.full(group.active) & ~group.full(holds(group))
        if failed.any():
            values = [group.full(value(group)) for value in shown]

            def describe(row: int, lane: int, place: str) -> Diagnostic:
                return barriers.failed(stmt, place, [v[row, lane].item() for v in values])

            group.fault("assertion", stmt.site, failed, describe)

    return run
