"""Expressions as closures over a team: the row of the op table, applied to arrays of lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir.ops import TABLE
from ...language.types import Scalar, Vector
from ...sanitizer.places import Dim3
from .warp_group import Register, Team, Values

Expression = Callable[[Team], Any]


def scalar(expr: ir.Expr) -> Callable[[Team], Values]:
    """A closure that computes a scalar expression for every lane of a team."""
    match expr:
        case ir.Const():
            value = np.full((1, 1, 1), expr.value, expr.type.dtype)
            return lambda team: value
        case ir.Reg():
            name = expr.name
            return lambda team: team.registers[name]  # type: ignore[return-value]
        case ir.Special():
            return _special(expr.name)
        case ir.Extent():
            array = expr.array
            return lambda team: np.full((1, 1, 1), team.memory.lengths[array], np.int32)
        case ir.Op():
            return _operation(expr)
        case ir.Defined(value=op):
            domain, operands = TABLE[op.name].domain, [scalar(a) for a in op.args]
            assert domain is not None
            return lambda team: domain.holds(*(operand(team) for operand in operands))
        case ir.Part():
            vector_of, index = vector(expr.value), expr.index
            assert isinstance(index, ir.Const)
            at = int(index.value)
            return lambda team: vector_of(team)[at]
    raise TypeError(f"{type(expr).__name__} is left after unrolling")


def vector(expr: ir.Expr) -> Callable[[Team], tuple[Values, ...]]:
    """A closure that computes a vector expression: one array a part."""
    if isinstance(expr, ir.Pack):
        parts = tuple(scalar(a) for a in expr.args)
        return lambda team: tuple(part(team) for part in parts)
    assert isinstance(expr, ir.Reg)
    name = expr.name
    return lambda team: team.registers[name]  # type: ignore[return-value]


def value(expr: ir.Expr) -> Callable[[Team], Register]:
    """A closure for an expression of any type."""
    return vector(expr) if isinstance(expr.type, Vector) else scalar(expr)


def _operation(expr: ir.Op) -> Callable[[Team], Values]:
    assert isinstance(expr.args[-1].type, Scalar)
    meaning = TABLE[expr.name].meaning
    args = [scalar(a) for a in expr.args]
    if len(args) == 1:
        (first,) = args
        return lambda team: meaning(first(team))
    if len(args) == 2:
        first, second = args
        return lambda team: meaning(first(team), second(team))
    first, second, third = args
    return lambda team: meaning(first(team), second(team), third(team))


def _special(name: str) -> Callable[[Team], Values]:
    if name == "lane":
        indices = np.arange(32, dtype=np.int32).reshape(1, 1, 32)
        return lambda team: indices
    if name == "warp":
        return lambda team: team.warps.astype(np.int32).reshape(1, -1, 1)
    group, _, axis_name = name.partition(".")
    axis = "xyz".index(axis_name)

    def extent(team: Team) -> Dim3:
        return team.request.block if group in ("thread", "block_dim") else team.request.grid

    if group in ("block_dim", "grid_dim"):
        return lambda team: np.full((1, 1, 1), extent(team)[axis], np.int32)

    def index(team: Team) -> Values:
        kept = team.registers.get(name)  # does not change while the team lives
        if kept is None:
            linear = team.thread if group == "thread" else team.blocks.reshape(-1, 1, 1)
            x, y, _ = extent(team)
            kept = (linear // (1, x, x * y)[axis] % extent(team)[axis]).astype(np.int32)
            team.registers[name] = kept
        return kept  # type: ignore[return-value]

    return index
