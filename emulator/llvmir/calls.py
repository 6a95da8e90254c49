"""Calls of functions: their translations, and their operands."""

from collections.abc import Callable

from ..ir import nodes as ir
from .accesses import Scope
from .module import Instruction
from .types import UnsupportedError
from .values import Item

Handler = Callable[[Scope, Instruction], Item | None]
"""A translation of the calls of a function."""


def operand_values(scope: Scope, call: Instruction) -> list[ir.Expr]:
    """Return the operands of a call, numbers."""
    return [scope.values.expr(operand) for operand in call.operands]


def fixed(expr: ir.Expr, what: str) -> int:
    """Return an operand that must be constant. what: its name for users."""
    if not isinstance(expr, ir.Const):
        raise UnsupportedError(f"a computed {what} is not supported")
    return int(expr.value)
