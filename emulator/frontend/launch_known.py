"""Integers of a kernel that do not change during a launch, as expressions of its parameters and of the launch's sizes."""

from __future__ import annotations

import ast
from copy import copy

from ..ir import nodes as ir
from ..ir.walk import expressions, rewrite
from ..language.types import Scalar
from .source import FunctionSource

SIZES = ("block_dim", "grid_dim")


class LaunchKnown:
    """The variables of a kernel whose value is known at launch.

    A parameter is known where the kernel does not assign it, a variable where its only value is known. takes_rest: the
    dynamic shared array without a count.
    """

    def __init__(self, source: FunctionSource) -> None:
        self.stored = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.parameters: set[str] = set()
        self.variables: dict[str, ir.Expr] = {}
        self.takes_rest: str | None = None

    def copy(self) -> LaunchKnown:
        """What is known so far, apart from what is added later."""
        result = copy(self)
        result.parameters, result.variables = set(self.parameters), dict(self.variables)
        return result

    def add_parameter(self, name: str) -> None:
        if name not in self.stored:
            self.parameters.add(name)

    def add_variable(self, name: str, value: ir.Expr) -> None:
        """A variable that has no other value."""
        known_value = self.resolve(value)
        if known_value is not None:
            self.variables[name] = known_value

    def resolve(self, value: ir.Expr) -> ir.Expr | None:
        """The value of an integer expression in terms of parameters and sizes; None where the launch does not know it."""
        if not (isinstance(value.type, Scalar) and value.type.is_integer):
            return None
        whole: ir.Expr = rewrite(value, lambda e: self.variables.get(e.name, e) if isinstance(e, ir.Reg) else e)
        return whole if all(self._is_constant_leaf(e) for e in (whole, *expressions(whole))) else None

    def _is_constant_leaf(self, expr: ir.Expr) -> bool:
        match expr:
            case ir.Reg() | ir.Extent():
                return (expr.name if isinstance(expr, ir.Reg) else expr.array) in self.parameters
            case ir.Special():
                return expr.name.split(".")[0] in SIZES
        return isinstance(expr, ir.Const | ir.Op)
