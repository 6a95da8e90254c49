"""Type inference of variables initialised by a literal: the function is read again after another use decides the type."""

import re
from collections.abc import Mapping

from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language.types import Scalar
from ..language.types import Value as ValueType
from .values import SourceError, TypeConflict

Soft = Mapping[str, frozenset[str]]
"""By register, the registers whose initial literals decide its type."""


class Decided(Exception):
    """Raised with the type of a register that is initialised by a literal."""

    def __init__(self, name: str, type: Scalar) -> None:
        super().__init__(name)
        self.name, self.type = name, type


class StartsAsFloat(Decided):
    """Raised for a variable that starts as a whole number and becomes a float. error: to report; the function is read again with a
    float for its other errors."""

    def __init__(self, name: str, type: Scalar, variable: str, error: SourceError) -> None:
        super().__init__(name, type)
        self.variable, self.error = variable, error

    @property
    def is_read(self) -> bool:
        """Return whether the variable is read as a float in a statement that does not assign it."""
        return re.match(rf"[^=]*\b{self.variable}\b[^=]*=", self.error.span.source) is None


class IsWhole(Exception):
    """Raised with the register of a variable read as a float where it must be a whole number."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def roots(expr: ir.Expr, soft: Soft) -> frozenset[str]:
    """Return the registers whose initial literals decide the type of an expression; empty if it is decided otherwise."""
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
    """Raise Decided if a type conflict is resolved by another type of a literal-initialised variable."""
    for expr, expected in conflict.pairs:
        for name in sorted(roots(expr, soft) - set(decided)):
            if isinstance(expected, Scalar) and isinstance(expr.type, Scalar) and _same_kind(expr.type, expected):
                raise Decided(name, expected)


def _same_kind(a: Scalar, b: Scalar) -> bool:
    return (a.is_integer and b.is_integer) or (a.is_float and b.is_float)


def whole_number(expr: ir.Expr, expected: ValueType, soft: Soft) -> str | None:
    """Return the integer-initialised variable behind an expression of which a float is expected."""
    integer = isinstance(expr.type, Scalar) and expr.type.is_integer
    names = sorted(roots(expr, soft))
    return names[0] if names and integer and isinstance(expected, Scalar) and expected.is_float else None
