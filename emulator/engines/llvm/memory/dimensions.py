"""Bounds checks of multi-dimensional indices in each dimension."""

from collections.abc import Sequence

from ....language.types import I64
from ....llvm.builder import many, scalar_type
from ....llvm.casts import extended
from ....llvm.values import Value, broadcast, lanes
from ..context import CodegenContext


def all_inside(context: CodegenContext, position: Value, extent: Value) -> str:
    """Return an i1: the index of each active lane is in [0, extent)."""
    builder = context.builder
    position, extent = _of_one_width(context, position, extent)
    element = scalar_type(position.type)
    if position.uniform and extent.uniform:
        return builder.let(f"icmp ult {element} {position.ref}, {extent.ref}", "inside")
    outside = builder.let(f"bitcast {many('i1')} {_outside(context, position, extent)} to i32", "outside")
    wrong = builder.let(f"and i32 {outside}, {context.active()}", "invalid")
    return builder.let(f"icmp eq i32 {wrong}, 0", "inside")


def invalid(context: CodegenContext, index: Value, dimensions: Sequence[tuple[Value, Value]]) -> Value:
    """Return the index, or -1 if any dimension is exceeded."""
    builder, element = context.builder, scalar_type(index.type)
    for position, extent in (_of_one_width(context, *pair) for pair in dimensions):
        if index.uniform:
            outside = builder.let(f"icmp uge {scalar_type(position.type)} {position.ref}, {extent.ref}", "outside")
            index = Value(index.type, builder.let(f"select i1 {outside}, {element} -1, {element} {index.ref}", "index"))
        else:
            outside, all_lanes = _outside(context, position, extent), lanes(builder, index)
            never = broadcast(builder, element, "-1")
            chosen = f"select {many('i1')} {outside}, {many(element)} {never}, {many(element)} {all_lanes}"
            index = Value(index.type, builder.let(chosen, "index"), None)
    return index


def _outside(context: CodegenContext, position: Value, extent: Value) -> str:
    """Return an i1 per lane: the index is out of bounds."""
    builder, element = context.builder, scalar_type(position.type)
    operands = f"{many(element)} {lanes(builder, position)}, {lanes(builder, extent)}"
    return builder.let(f"icmp uge {operands}", "outside")


def _of_one_width(context: CodegenContext, position: Value, extent: Value) -> tuple[Value, Value]:
    """Return both as unsigned numbers of one width: a negative index exceeds every extent."""
    if position.type.size == extent.type.size:
        return position, extent
    return _wide(context, position), _wide(context, extent)


def _wide(context: CodegenContext, value: Value) -> Value:
    return value if value.type.size == I64.size else extended(context.builder, value, I64)
