"""Types of variables that begin with a literal: the function is read again once another use has decided one."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language.types import Scalar
from ..language.types import Value as ValueType
from .values import TypeConflict

Soft = Mapping[str, frozenset[str]]
"""By register, the registers whose first literals decide its type."""


class Decided(Exception):
    """A register that began with a literal is of this type."""

    def __init__(self, name: str, type: Scalar) -> None:
        super().__init__(name)
        self.name, self.type = name, type


def roots(expr: ir.Expr, soft: Soft) -> frozenset[str]:
    """The registers whose first literals decide the type of an expression; none where something else does."""
    return _roots(expr, soft) or frozenset()


def _roots(expr: ir.Expr, soft: Soft) -> frozenset[str] | None:
    match expr:
        case ir.Const():
            return frozenset()
        case ir.Reg():
            return soft.get(expr.name)
        case ir.Op() if (row := TABLE[expr.name]).deciding(expr.args).type == expr.type:
            operands = expr.args[:1] if row.count else expr.args[1:] if expr.name == "select" else expr.args
            operand_roots = [_roots(arg, soft) for arg in operands]
            return None if None in operand_roots else frozenset().union(*(f for f in operand_roots if f is not None))
    return None


def decide(conflict: TypeConflict, soft: Soft, decided: Mapping[str, Scalar]) -> None:
    """Raise Decided where a conflict is one of a variable that began with a literal, and the literal can have the
    other type."""
    for expr, expected in conflict.pairs:
        for name in sorted(roots(expr, soft) - set(decided)):
            if isinstance(expected, Scalar) and isinstance(expr.type, Scalar) and _same_kind(expr.type, expected):
                raise Decided(name, expected)


def _same_kind(a: Scalar, b: Scalar) -> bool:
    return (a.is_integer and b.is_integer) or (a.is_float and b.is_float)


def whole_number(expr: ir.Expr, expected: ValueType, soft: Soft) -> str | None:
    """The variable that began with a whole number, where a float is wanted of it."""
    integer = isinstance(expr.type, Scalar) and expr.type.is_integer
    names = sorted(roots(expr, soft))
    return names[0] if names and integer and isinstance(expected, Scalar) and expected.is_float else None
