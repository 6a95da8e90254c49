"""Assertions and the conditions of checkers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...sanitizer import barriers, checkers
from .expressions import scalar
from .warp_group import WarpGroup


def check(stmt: ir.Check, kernel: ir.Function) -> Callable[[WarpGroup], None]:
    """A closure that reports the lanes for which a checker's condition does not hold."""
    return _reporting(
        stmt, stmt.about, stmt.shown, lambda values, place: checkers.describe(stmt, kernel, values, place)
    )


def assertion(stmt: ir.Assert) -> Callable[[WarpGroup], None]:
    """A closure that reports the lanes for which an assertion does not hold."""
    values = barriers.asserted_values(stmt)
    return _reporting(stmt, "assertion", values, lambda shown, place: barriers.failed(stmt, place, shown))


def _reporting(
    stmt: ir.Check | ir.Assert, kind: str, shown: Iterable[ir.Expr], describe: Callable[[list[Any], str], Diagnostic]
) -> Callable[[WarpGroup], None]:
    """A closure that reports the lanes for which a condition does not hold. describe: from the values of `shown` and a place."""
    holds, operands = scalar(stmt.cond), [scalar(expr) for expr in shown]

    def run(group: WarpGroup) -> None:
        failed = group.full(group.active) & ~group.full(holds(group))
        if failed.any():
            values = [group.full(operand(group)) for operand in operands]
            group.fault(
                kind, stmt.site, failed, lambda row, lane, place: describe([v[row, lane].item() for v in values], place)
            )

    return run
