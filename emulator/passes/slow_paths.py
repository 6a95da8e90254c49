"""Operands for which the compiler calls a slow path of a division or a square root.

The inline fast path is correct if operands, quotient and intermediate values are normal numbers. Its tests on the exponents of the
operands were read from compiled code: reciprocals, roots and divisions of f64 compare them with constants; a division of f32 has an
instruction of its own (FCHK), assumed to test that all these are normal. A division of 64-bit integers is one of 32 bits if no
operand has an upper bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from ..ir import nodes as ir
from ..ir.walk import children
from ..language.types import BOOL, F32, F64, I32, I64, U64, Scalar

MAX_SLOW_PATHS = 8
"""Distinguished divisions and roots of a statement."""


def slow_path_ops(stmt: ir.Stmt) -> tuple[ir.Op, ...]:
    """Return the divisions and roots of a statement that may call a slow path, in source order."""
    return tuple(op for op, _ in _guarded(stmt))


def slow_path_predicates(stmt: ir.Stmt) -> tuple[ir.Expr, ...]:
    """Return for each of them the condition on a lane's operands that selects the slow path."""
    predicates = []
    for op, guards in _guarded(stmt):
        tests = list(_root(op) if op.name == "sqrt" else _division(op) if op.name == "fdiv" else _long_division(op))
        slow = reduce(lambda one, other: ir.Op("either", (one, other), BOOL, op.span), tests)
        predicates.append(reduce(lambda one, other: ir.Op("both", (one, other), BOOL, op.span), (*guards, slow)))
    return tuple(predicates)


def _guarded(stmt: ir.Stmt) -> list[tuple[ir.Op, tuple[ir.Expr, ...]]]:
    """Return the operations, each with the conditions that select its value: a compiler emits branches for them."""
    if not isinstance(stmt, ir.Let | ir.Store):
        return []
    return [one for child in children(stmt) for one in _inside(child, ())][:MAX_SLOW_PATHS]


def _inside(expr: ir.Expr, guards: tuple[ir.Expr, ...]) -> Iterator[tuple[ir.Op, tuple[ir.Expr, ...]]]:
    if isinstance(expr, ir.Op) and expr.name == "select":
        cond, yes, no = expr.args
        yield from _inside(cond, guards)
        yield from _inside(yes, (*guards, cond))
        yield from _inside(no, (*guards, ir.Op("not", (cond,), BOOL, cond.span)))
        return
    for child in children(expr):
        yield from _inside(child, guards)
    if isinstance(expr, ir.Op) and (
        is_long_division(expr) or (expr.name in ("fdiv", "sqrt") and expr.type in (F32, F64))
    ):
        yield expr, guards


def is_long_division(op: ir.Op) -> bool:
    """Return whether an operation divides 64-bit integers by a variable divisor."""
    divides = op.name in ("floordiv", "mod", "div", "rem") and op.type in (I64, U64)
    return divides and not isinstance(op.args[1], ir.Const)


def _root(op: ir.Op) -> Iterator[ir.Expr]:
    """Yield the tests for small exponents and for operands not finite and positive."""
    (x,) = op.args
    exponent, sign = _exponent(x)
    least, infinite = (26, 255) if op.type is F32 else (53, 2047)
    yield _compare("lt", exponent, least)
    yield _compare("ge", exponent, infinite)
    yield _compare("lt", sign, 0)


def _division(op: ir.Op) -> Iterator[ir.Expr]:
    a, b = op.args
    (above, _), (below, _) = _exponent(a), _exponent(b)
    if op.type is F32:
        yield _compare("eq", below, 0)
        yield _compare("gt", below, 252)
        if isinstance(a, ir.Const) and a.value == 1:
            return
        yield _compare("lt", above, LEAST)
        yield _compare("eq", above, 255)
        difference = ir.Op("sub", (above, below), I32, op.span)
        yield _compare("gt", difference, 126)
        yield _compare("lt", difference, -125)
    else:
        yield _compare("lt", above, 54)
        yield _compare("eq", below, 2047)
        yield _compare("lt", ir.Op("sub", (above, below), I32, op.span), -1021)


def _long_division(op: ir.Op) -> Iterator[ir.Expr]:
    """Yield the test for an upper bit in either operand."""
    word = op.type
    upper = ir.Op("shr", (ir.Op("or", op.args, word, op.span), ir.Const(32, word, op.span)), word, op.span)
    yield ir.Op("ne", (upper, ir.Const(0, word, op.span)), BOOL, op.span)


LEAST = 25
"""The least exponent, as it is stored, of a dividend whose remainders, 24 bits below it, are normal numbers."""


def _exponent(x: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """The exponent of a number as it is stored, and a number with its sign."""
    word, name, shift, most = (I32, "as_i32", 23, 255) if x.type is F32 else (I64, "as_i64", 52, 2047)
    bits = ir.Op(name, (x,), word, x.span)
    shifted = ir.Op("shr", (bits, ir.Const(shift, word, x.span)), word, x.span)
    exponent: ir.Expr = ir.Op("and", (shifted, ir.Const(most, word, x.span)), word, x.span)
    return _as_i32(exponent, word), _as_i32(shifted, word)


def _as_i32(x: ir.Expr, word: Scalar) -> ir.Expr:
    return x if word is I32 else ir.Op("cast_i32", (x,), I32, x.span)


def _compare(name: str, x: ir.Expr, n: int) -> ir.Expr:
    return ir.Op(name, (x, ir.Const(n, I32, x.span)), BOOL, x.span)
