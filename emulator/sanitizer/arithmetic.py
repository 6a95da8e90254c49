"""Arithmetic checker: operands outside the domain of their operation, for which CUDA leaves the result undefined.

The emulator defines a result for them, so a kernel may look right that is wrong on a GPU. Only evaluated operations are
checked: not those in the other arm of a conditional expression, or in a skipped right operand of `and`.
"""

from collections.abc import Iterator, Sequence

from ..errors import Diagnostic
from ..ir import nodes as ir
from ..ir.domains import NonZeroDivisor, NoOverflow, NotLowest, ShiftInRange, promoted_bits
from ..ir.ops import TABLE, may_leave_domain
from ..ir.walk import children
from ..language.types import BOOL, Scalar
from . import checker

Evaluation = tuple[ir.Op, ir.Expr | None]
"""An operation, and the condition under which it is evaluated."""


class Instrumentation(checker.Instrumentation):
    """Adds checks before each statement for the operations it evaluates."""

    def before(self, stmt: ir.Stmt) -> Iterator[ir.Stmt]:
        for op, guard in evaluated_operations(stmt):
            if may_leave_domain(op):
                holds = guarded(ir.Defined(op, BOOL, op.span), guard)
                yield ir.Check("arithmetic", holds, op, op.args, op.span)


def guarded(holds: ir.Expr, guard: ir.Expr | None) -> ir.Expr:
    """Return a condition that holds where an operation is not evaluated."""
    if guard is None:
        return holds
    return ir.Op("either", (ir.Op("not", (guard,), BOOL, holds.span), holds), BOOL, holds.span)


def evaluated_operations(stmt: ir.Stmt) -> Iterator[Evaluation]:
    """Yield the operations that a statement evaluates, without those of its body, in the order of evaluation."""
    for expr in children(stmt):
        yield from _operations(expr, None)


def _operations(expr: ir.Expr, guard: ir.Expr | None) -> Iterator[Evaluation]:
    match expr:
        case ir.Op(name="select" | "both" | "either" as name, args=(first, *rest)):
            yield from _operations(first, guard)
            without = ir.Op("not", (first,), BOOL, expr.span)
            conditions = {"select": (first, without), "both": (first,), "either": (without,)}[name]
            for condition, arm in zip(conditions, rest, strict=True):
                yield from _operations(arm, _and(guard, condition))
        case ir.Op():
            for arg in expr.args:
                yield from _operations(arg, guard)
            yield expr, guard
        case ir.Pack():
            for arg in expr.args:
                yield from _operations(arg, guard)
        case ir.Component():
            yield from _operations(expr.value, guard)


def _and(a: ir.Expr | None, b: ir.Expr) -> ir.Expr:
    return b if a is None else ir.Op("both", (a, b), BOOL, b.span)


def undefined_result(check: ir.Check, kernel: ir.Function, values: Sequence[object], thread: str) -> Diagnostic:
    """Return the diagnostic of an operation with these operands."""
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
    return Diagnostic("arithmetic", what, op.span, (thread, f"CUDA leaves the result undefined{advice}"))
