"""Counted loops: the test before each iteration, and the update of the variable after it."""

from __future__ import annotations

from ..language.types import BOOL, Scalar
from . import nodes as ir


def direction(loop: ir.For) -> int:
    """Return 1 for a loop that counts up, -1 for one that counts down, 0 where the sign is known only at run time."""
    step = loop.step.value if isinstance(loop.step, ir.Const) else loop.step
    if isinstance(step, int):
        return (step > 0) - (step < 0)
    return int(loop.rises)


def test(loop: ir.For) -> ir.Expr:
    """Return the condition of another iteration. A loop whose step is 0 has no iteration."""
    up, down = (ir.Op(name, (loop.var, loop.stop), BOOL, loop.span) for name in ("lt", "gt"))
    sign = direction(loop)
    if sign:
        return up if sign > 0 else down
    step = step_of(loop)
    zero = ir.Const(0, step.type, step.span)  # type: ignore[arg-type]
    forth, back = (ir.Op(name, (step, zero), BOOL, step.span) for name in ("gt", "lt"))
    return ir.Op("select", (forth, up, ir.Op("both", (back, down), BOOL, loop.span)), BOOL, loop.span)


def moved(loop: ir.For) -> ir.Op:
    """Return the variable's next value."""
    assert isinstance(loop.var.type, Scalar)
    return ir.Op("add", (loop.var, step_of(loop)), loop.var.type, loop.span)


def step_of(loop: ir.For) -> ir.Expr:
    """The step as an expression of the variable's type; downwards, an unsigned one wraps."""
    type = loop.var.type
    assert isinstance(type, Scalar)
    if not isinstance(loop.step, int):
        return loop.step
    low, _ = type.range
    return ir.Const(loop.step if low < 0 else loop.step % (1 << type.bits), type, loop.span)
