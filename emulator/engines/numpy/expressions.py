"""Expressions as closures over a warp group: the rows of the op table applied to arrays of lanes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir import nodes as ir
from ...ir.ops import TABLE
from ...language.intrinsics import WARP_SIZE
from ...language.types import Scalar, Vector
from ...sanitizer.places import Dim3
from .warp_group import Register, Values, WarpGroup


def scalar(expr: ir.Expr) -> Callable[[WarpGroup], Values]:
    """A closure that computes a scalar expression for every lane of a group."""
    match expr:
        case ir.Const():
            value = np.full((1, 1, 1), expr.value, expr.type.dtype)
            return lambda group: value
        case ir.Reg():
            assert isinstance(expr.type, Scalar)
            # Both operands of `and` are computed: one may be assigned only where the other holds, so perhaps in no lane.
            name, unassigned = expr.name, np.zeros((1, 1, 1), expr.type.dtype)
            return lambda group: group.registers.get(name, unassigned)  # type: ignore[return-value]
        case ir.Special():
            return _special(expr.name)
        case ir.Extent():
            array = expr.array
            return lambda group: np.full((1, 1, 1), group.memory.lengths[array], np.int32)
        case ir.Op():
            return _operation(expr)
        case ir.Within():
            return scalar(expr.flat)
        case ir.Defined(value=op):
            domain, operands = TABLE[op.name].domain, [scalar(a) for a in op.args]
            assert domain is not None
            return lambda group: domain.holds(*(operand(group) for operand in operands))
        case ir.Component():
            vector_of, index = vector(expr.value), expr.index
            assert isinstance(index, ir.Const)
            at = int(index.value)
            return lambda group: vector_of(group)[at]
    raise TypeError(f"{type(expr).__name__} is left after unrolling")


def vector(expr: ir.Expr) -> Callable[[WarpGroup], tuple[Values, ...]]:
    """Return a closure that computes a vector expression: one array a component."""
    if isinstance(expr, ir.Pack):
        components = tuple(scalar(a) for a in expr.args)
        return lambda group: tuple(part(group) for part in components)
    assert isinstance(expr, ir.Reg)
    name = expr.name
    return lambda group: group.registers[name]  # type: ignore[return-value]


def value(expr: ir.Expr) -> Callable[[WarpGroup], Register]:
    """A closure for an expression of any type."""
    return vector(expr) if isinstance(expr.type, Vector) else scalar(expr)


def _operation(expr: ir.Op) -> Callable[[WarpGroup], Values]:
    assert isinstance(expr.args[-1].type, Scalar)
    meaning = TABLE[expr.name].meaning
    args = [scalar(a) for a in expr.args]
    if len(args) == 1:
        (first,) = args
        return lambda group: meaning(first(group))
    if len(args) == 2:
        first, second = args
        return lambda group: meaning(first(group), second(group))
    first, second, third = args
    return lambda group: meaning(first(group), second(group), third(group))


_OF_CLUSTERS: dict[str, tuple[str, Callable[[Values, Any], Values]]] = {
    "cluster_dim": ("block", lambda block, size: np.full((1, 1, 1), size)),
    "cluster_block": ("block", lambda block, size: block % size),
    "cluster_index": ("block", lambda block, size: block // size),
    "grid_clusters": ("grid_dim", lambda blocks, size: blocks // size),
}
"""The value of each index of clusters, from another index and the blocks of a cluster on an axis."""


def _special(name: str) -> Callable[[WarpGroup], Values]:
    if name == "lane":
        indices = np.arange(WARP_SIZE, dtype=np.int32).reshape(1, 1, WARP_SIZE)
        return lambda group: indices
    if name == "warp":
        return lambda group: group.warps.astype(np.int32).reshape(1, -1, 1)
    if name == "cluster_size":
        return lambda group: np.full((1, 1, 1), np.prod(group.request.cluster), np.int32)
    if name == "cluster_rank":
        parts = [_special(f"cluster_block.{axis}") for axis in "xyz"]
        x, y, z = parts
        return lambda group: x(group) + group.request.cluster[0] * (y(group) + group.request.cluster[1] * z(group))
    index, axis = ir.INDICES[name]
    if index in _OF_CLUSTERS:
        own, of_cluster = _OF_CLUSTERS[index]
        whole = _special(f"{own}.{'xyz'[axis]}")
        return lambda group: of_cluster(whole(group), np.int32(group.request.cluster[axis]))

    def extent(group: WarpGroup) -> Dim3:
        return group.request.block if index in ("thread", "block_dim") else group.request.grid

    if index in ("block_dim", "grid_dim"):
        return lambda group: np.full((1, 1, 1), extent(group)[axis], np.int32)

    def coordinate(group: WarpGroup) -> Values:
        special = group.registers.get(name)  # never changes
        if special is None:
            linear = group.thread if index == "thread" else group.blocks.reshape(-1, 1, 1)
            x, y, _ = extent(group)
            special = (linear // (1, x, x * y)[axis] % extent(group)[axis]).astype(np.int32)
            group.registers[name] = special
        return special  # type: ignore[return-value]

    return coordinate
