"""Domains of operations as LLVM instructions, one lowering for each kind of domain.

`ir/domains.py` defines the kinds in NumPy. `tests/ops` compares both on edge values of every type.
"""

from collections.abc import Callable, Sequence
from typing import Any

from ...ir import nodes as ir
from ...ir.domains import Domain, FitsInteger, NonZeroDivisor, NoOverflow, NotLowest, ShiftInRange, promoted_bits
from ...ir.ops import TABLE
from ...language.types import BOOL, F32, HALVES
from ...llvm.builder import LANES, FunctionBuilder
from ...llvm.halves import widened
from ...llvm.operations import shift_count
from ...llvm.shape import Shape
from ...llvm.values import Value


def defined(builder: FunctionBuilder, op: ir.Op, args: Sequence[Value]) -> Value:
    """Return whether the operands are in the domain of the operation."""
    domain = TABLE[op.name].domain
    assert domain is not None
    row = TABLE[op.name]
    shape = Shape(row.deciding(args).type, all(a.uniform for a in args))
    if row.count:
        args = [args[0], shift_count(builder, args[1], shape.scalar)]
    lower = _LOWERINGS[type(domain)]
    return shape.value(BOOL, lower(builder, shape, domain, shape.refs(builder, *args)))


def _no_overflow(builder: FunctionBuilder, shape: Shape, domain: NoOverflow, args: Sequence[str]) -> str:
    width = shape.element if shape.uniform else f"v{LANES}{shape.element}"
    pair = f"{{ {shape.type}, {shape.bool} }}"
    operands = [(shape.type, a) for a in args[:2]]
    overflow = builder.call(pair, f"llvm.s{domain.operation}.with.overflow.{width}", *operands, hint="exact")
    over = builder.let(f"extractvalue {pair} {overflow}, 1", "overflow")
    return builder.let(f"xor {shape.bool} {over}, {shape.with_type(BOOL).constant(True)}", "defined")


def _not_lowest(builder: FunctionBuilder, shape: Shape, domain: NotLowest, args: Sequence[str]) -> str:
    return builder.let(f"icmp ne {shape.type} {args[0]}, {shape.constant(shape.scalar.range[0])}", "defined")


def _non_zero_divisor(builder: FunctionBuilder, shape: Shape, domain: NonZeroDivisor, args: Sequence[str]) -> str:
    dividend, divisor = args
    result = builder.let(f"icmp ne {shape.type} {divisor}, {shape.constant(0)}", "defined")
    if shape.scalar.kind == "uint":
        return result
    lowest = builder.let(f"icmp ne {shape.type} {dividend}, {shape.constant(shape.scalar.range[0])}", "fits")
    minus = builder.let(f"icmp ne {shape.type} {divisor}, {shape.constant(-1)}", "fits")
    fits = builder.let(f"or {shape.bool} {lowest}, {minus}", "fits")
    return builder.let(f"and {shape.bool} {result}, {fits}", "defined")


def _shift_in_range(builder: FunctionBuilder, shape: Shape, domain: ShiftInRange, args: Sequence[str]) -> str:
    bits = shape.constant(promoted_bits(shape.scalar))
    return builder.let(f"icmp ult {shape.type} {args[1]}, {bits}", "defined")


def _fits_integer(builder: FunctionBuilder, shape: Shape, domain: FitsInteger, args: Sequence[str]) -> str:
    if shape.scalar in HALVES:
        args, shape = [widened(builder, shape, a) for a in args], shape.with_type(F32)
    low, high = domain.target.range
    # Its truncation is at least `low` if it is above `low - 1`, provided this type represents `low - 1`.
    exact = int(shape.scalar.dtype.type(low - 1)) == low - 1
    test, least = ("ogt", low - 1) if exact else ("oge", low)
    above = builder.let(f"fcmp {test} {shape.type} {args[0]}, {shape.constant(float(least))}", "defined")
    below = builder.let(f"fcmp olt {shape.type} {args[0]}, {shape.constant(float(high + 1))}", "defined")
    return builder.let(f"and {shape.bool} {above}, {below}", "defined")


_LOWERINGS: dict[type[Domain], Callable[[FunctionBuilder, Shape, Any, Sequence[str]], str]] = {
    NoOverflow: _no_overflow,
    NotLowest: _not_lowest,
    NonZeroDivisor: _non_zero_divisor,
    ShiftInRange: _shift_in_range,
    FitsInteger: _fits_integer,
}
