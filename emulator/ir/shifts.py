"""Divisions by powers of two, which are shifts and masks."""

from __future__ import annotations

from ..language.types import Scalar
from . import nodes as ir
from .op import Cost
from .ops import TABLE


def power_of_two(expr: ir.Expr) -> int | None:
    """k where the expression is the constant 2**k."""
    if not isinstance(expr, ir.Const) or not expr.type.is_integer:
        return None
    value = int(expr.value)
    return value.bit_length() - 1 if value > 0 and not value & (value - 1) else None


def is_shift(op: ir.Op) -> bool:
    """Whether an operation is a division that floors, or its remainder, by a power of two."""
    return op.name in ("floordiv", "mod") and power_of_two(op.args[1]) is not None


def cost_class(op: ir.Op) -> Cost | None:
    """What an operation is counted as, a shift as one; None where the operand that decides is no number."""
    row = TABLE[op.name]
    type = row.deciding(op.args).type
    if not isinstance(type, Scalar):
        return None
    return "alu" if is_shift(op) else row.cost_class(type)
