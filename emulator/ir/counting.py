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
    return _before(loop, loop.stop)


def moved(loop: ir.For) -> ir.Op:
    """Return the variable's next value; with a limit, the stop instead of a number beyond it, which may have wrapped."""
    type = _type(loop)
    following = ir.Op("add", (loop.var, step_of(loop)), type, loop.span)
    if isinstance(loop.step, int) and loop.step < 0:
        following = ir.Op("sub", (loop.var, ir.Const(-loop.step, type, loop.span)), type, loop.span)
    if loop.limit is None:
        return following
    return ir.Op("select", (_before(loop, loop.limit), following, loop.stop), type, loop.span)


def limit(loop: ir.For) -> ir.Expr:
    """Return the stop minus the step, saturated at the range of the type. No operation overflows."""
    type, span = _type(loop), loop.span
    low, high = (ir.Const(number, type, span) for number in type.range)
    step, sign = step_of(loop), direction(loop)

    def op(name: str, a: ir.Expr, b: ir.Expr) -> ir.Op:
        return ir.Op(name, (a, b), type, span)

    if isinstance(loop.step, int) and isinstance(loop.stop, ir.Const):
        return ir.Const(min(max(int(loop.stop.value) - loop.step, low.value), high.value), type, span)
    if isinstance(loop.step, int):
        size = ir.Const(abs(loop.step), type, span)
        if sign > 0:
            return op("sub", op("max", loop.stop, ir.Const(low.value + loop.step, type, span)), size)
        return op("add", op("min", loop.stop, ir.Const(high.value + loop.step, type, span)), size)
    if sign > 0:
        return op("sub", op("max", loop.stop, op("add", step, low)), step)
    zero = ir.Const(0, type, span)
    stop = op("max", loop.stop, op("add", op("max", step, zero), low))
    return op("sub", op("min", stop, op("add", op("min", step, zero), high)), step)


def step_of(loop: ir.For) -> ir.Expr:
    """The step as an expression of the variable's type; downwards, an unsigned one wraps."""
    type = _type(loop)
    if not isinstance(loop.step, int):
        return loop.step
    low, _ = type.range
    return ir.Const(loop.step if low < 0 else loop.step % (1 << type.bits), type, loop.span)


def _before(loop: ir.For, end: ir.Expr) -> ir.Expr:
    """Return whether the counter is before `end` in the direction of the loop."""
    up, down = (ir.Op(name, (loop.var, end), BOOL, loop.span) for name in ("lt", "gt"))
    sign = direction(loop)
    if sign:
        return up if sign > 0 else down
    step = step_of(loop)
    zero = ir.Const(0, _type(loop), step.span)
    forth, back = (ir.Op(name, (step, zero), BOOL, step.span) for name in ("gt", "lt"))
    return ir.Op("select", (forth, up, ir.Op("both", (back, down), BOOL, loop.span)), BOOL, loop.span)


def _type(loop: ir.For) -> Scalar:
    assert isinstance(loop.var.type, Scalar)
    return loop.var.type
