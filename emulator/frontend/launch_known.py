"""Launch-invariant integers of a kernel, as expressions of its parameters and the launch's dimensions."""

from __future__ import annotations

import ast
from copy import copy

from ..ir import nodes as ir
from ..ir.walk import expressions, rewrite
from ..language.types import Scalar
from .source import FunctionSource

SIZES = ("block_dim", "grid_dim")


class LaunchKnown:
    """The launch-invariant variables of a kernel.

    Parameters qualify if the kernel does not assign them; variables if they have a single, invariant value.
    takes_rest: the dynamic shared array without a count.
    """

    def __init__(self, source: FunctionSource) -> None:
        self.stored = {n.id for n in ast.walk(source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.parameters: set[str] = set()
        self.variables: dict[str, ir.Expr] = {}
        self.takes_rest: str | None = None

    def copy(self) -> LaunchKnown:
        """Return an independent copy."""
        result = copy(self)
        result.parameters, result.variables = set(self.parameters), dict(self.variables)
        return result

    def add_parameter(self, name: str) -> None:
        if name not in self.stored:
            self.parameters.add(name)

    def add_variable(self, name: str, value: ir.Expr) -> None:
        """Record a variable with a single value."""
        known_value = self.resolve(value)
        if known_value is not None:
            self.variables[name] = known_value

    def resolve(self, value: ir.Expr) -> ir.Expr | None:
        """Return an integer expression in terms of parameters and dimensions; None if it is not launch-invariant."""
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
