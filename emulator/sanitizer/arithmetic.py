"""The arithmetic checker: operands outside the domain of their operation, where CUDA leaves the result undefined.

The emulator has a result for them, so a kernel may look right where a GPU computes anything. Only operations that are
evaluated are checked: those in the arm of a conditional expression that is taken, and in the right side of an `and`
that is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.domains import NonZeroDivisor, NoOverflow, NotLowest, ShiftInRange, promoted_bits
from ..ir.ops import TABLE, may_leave_domain
from ..ir.walk import children
from ..language.types import BOOL, Scalar
from . import checker

Obligation = tuple[ir.Op, ir.Expr | None]
"""An operation, and the condition under which it is evaluated."""


class Instrumentation(checker.Instrumentation):
    """Checks before each statement of the operations it is about to evaluate."""

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        for expr in children(stmt):
            for op, given in obligations(expr):
                holds: ir.Expr = ir.Defined(op, BOOL, op.span)
                if given is not None:
                    holds = ir.Op("either", (ir.Op("not", (given,), BOOL, op.span), holds), BOOL, op.span)
                yield ir.Check("arithmetic", holds, op, op.args, op.span)


def obligations(expr: ir.Expr, given: ir.Expr | None = None) -> Iterator[Obligation]:
    """The operations in an expression that may leave their domain, in the order of evaluation."""
    match expr:
        case ir.Op(name="select" | "both" | "either" as name, args=(first, *rest)):
            yield from obligations(first, given)
            without = ir.Op("not", (first,), BOOL, expr.span)
            conditions = {"select": (first, without), "both": (first,), "either": (without,)}[name]
            for condition, arm in zip(conditions, rest, strict=True):
                yield from obligations(arm, _and(given, condition))
        case ir.Op():
            for arg in expr.args:
                yield from obligations(arg, given)
            if may_leave_domain(expr):
                yield expr, given
        case ir.Pack():
            for arg in expr.args:
                yield from obligations(arg, given)
        case ir.Component():
            yield from obligations(expr.value, given)


def _and(a: ir.Expr | None, b: ir.Expr) -> ir.Expr:
    return b if a is None else ir.Op("both", (a, b), BOOL, b.span)


def undefined_result(check: ir.Check, kernel: ir.Function, values: Sequence[object], where: str) -> Diagnostic:
    """The diagnostic of one operation whose operands had these values."""
    op = check.subject
    assert isinstance(op, ir.Op)
    type, domain = op.args[0].type, TABLE[op.name].domain
    assert isinstance(type, Scalar) and domain is not None
    advice = ""
    match domain:
        case ShiftInRange():
            what = f"a shift by {values[1]}, but {type} has {promoted_bits(type)} bits here"
        case NonZeroDivisor() if values[1] == 0:
            what = "division by zero"
        case NoOverflow() | NotLowest() | NonZeroDivisor():
            what = f"signed overflow: {domain.written.format(*values)} does not fit in {type}"
            advice = f"; wrap on purpose in {str(type).replace('i', 'u')}, or use a wider type"
        case _:
            what = f"{values[0]} does not fit in {op.type}"
    return Diagnostic("arithmetic", what, op.span, (where, f"CUDA leaves the result undefined{advice}"))
