"""Conversions between scalar types as LLVM instructions."""

from ..language.types import BOOL, F32, F64, HALVES, Scalar
from . import halves
from .builder import LANES, FunctionBuilder, many, splat
from .shape import Shape
from .values import Value, number


def convert(builder: FunctionBuilder, shape: Shape, target: Scalar, x: str) -> str:
    """Return a value of `shape` converted to another type."""
    source, to = shape.scalar, shape.with_type(target).type
    if source in HALVES:
        wide = halves.widened(builder, shape, x)
        return wide if target is F32 else convert(builder, shape.with_type(F32), target, wide)
    if target in HALVES:
        return _half(builder, shape, target, x)
    if target is BOOL:
        word = "fcmp une" if source.is_float else "icmp ne"
        return builder.let(f"{word} {shape.type} {x}, {shape.constant(0)}", "truth")
    if source.is_float and target.is_integer:
        return _whole(builder, shape, target, x)
    if source.is_float:
        return builder.let(f"{'fpext' if target is F64 else 'fptrunc'} {shape.type} {x} to {to}", "real")
    if target.is_float:
        return builder.let(f"{'sitofp' if source.kind == 'int' else 'uitofp'} {shape.type} {x} to {to}", "real")
    if target.bits == source.bits:
        return x
    word = "trunc" if target.bits < source.bits else "sext" if source.kind == "int" else "zext"
    return builder.let(f"{word} {shape.type} {x} to {to}", "whole")


def _half(builder: FunctionBuilder, shape: Shape, target: Scalar, x: str) -> str:
    if shape.scalar is F32:
        return halves.rounded(builder, shape, target, x)
    if shape.scalar is F64:
        return halves.rounded_f64(builder, shape, target, x)
    return halves.rounded_integer(builder, shape, target, x)


def _whole(builder: FunctionBuilder, shape: Shape, target: Scalar, x: str) -> str:
    """Return a float truncated to an integer: saturated at 32 or more bits, then wrapped, as in CUDA."""
    bits = max(32, target.bits)
    element = f"i{bits}"
    middle = element if shape.uniform else many(element)
    ends = (f"v{LANES}{element}", f"v{LANES}{_float(shape)}") if not shape.uniform else (element, _float(shape))
    word = "fptosi" if target.kind == "int" else "fptoui"
    whole = builder.call(middle, f"llvm.{word}.sat.{ends[0]}.{ends[1]}", (shape.type, x), hint="whole")
    if shape.scalar.size == 8 or bits == 64:  # PTX: the result for a NaN is the top bit, not 0
        top = -(1 << (bits - 1))
        nan = builder.let(f"fcmp uno {shape.type} {x}, {x}", "nan")
        highest = top if shape.uniform else splat(element, top)
        whole = builder.let(f"select {shape.bool} {nan}, {middle} {highest}, {middle} {whole}", "whole")
    return (
        whole
        if target.bits == bits
        else builder.let(f"trunc {middle} {whole} to {shape.with_type(target).type}", "whole")
    )


def _float(shape: Shape) -> str:
    return "f32" if shape.scalar is F32 else "f64"


def converted(builder: FunctionBuilder, value: Value, target: Scalar) -> Value:
    """Return a value converted to another type."""
    shape = Shape(value.type, value.uniform)
    return shape.value(target, convert(builder, shape, target, *shape.refs(builder, value)))


def extended(builder: FunctionBuilder, value: Value, target: Scalar) -> Value:
    """Return an integer widened to another type; an affine value becomes a vector."""
    if value.constant is not None:
        return number(int(value.constant), target)
    return converted(builder, value, target)
