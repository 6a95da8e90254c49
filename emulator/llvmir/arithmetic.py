"""Construction of expressions from rows of the op table: casts, constants, comparisons."""

from typing import Any

import numpy as np

from ..ir import nodes as ir
from ..ir.ops import TABLE
from ..language.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Scalar
from ..span import Span
from .types import UnsupportedError

UNSIGNED = {I8: U8, I16: U16, I32: U32, I64: U64}
SIGNED = {unsigned: signed for signed, unsigned in UNSIGNED.items()}
_OPPOSITES = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_BITS = {F16: I16, BF16: I16, F32: I32, F64: I64}
"""The integer type with the bits of a float type."""
_AS_FLOAT = {(I16, F16): "as_f16", (I16, BF16): "as_bf16", (I32, F32): "as_f32", (I64, F64): "as_f64"}


def constant(value: Any, type: Scalar, span: Span) -> ir.Const:
    """Return a constant; an integer wraps to its type, a float is rounded."""
    if type is BOOL:
        return ir.Const(bool(value), BOOL, span)
    if type.is_float:
        with np.errstate(all="ignore"):
            return ir.Const(float(np.float64(value).astype(type.dtype)), type, span)
    low, high = type.range
    return ir.Const((int(value) - low) % (high - low + 1) + low, type, span)


def is_constant(expr: ir.Expr, value: Any) -> bool:
    return isinstance(expr, ir.Const) and expr.value == value


def operation(name: str, *args: ir.Expr) -> ir.Expr:
    """Return an operation with its result type; the result where all operands are integer constants.

    Raises UnsupportedError for types that the row does not have.
    """
    row, span = TABLE[name], args[0].span
    type = row.deciding(args).type
    if not isinstance(type, Scalar) or type not in row.types:
        raise UnsupportedError(f"the operation {name} is not supported for {type}")
    if name in ("add", "sub") and is_constant(args[1], 0) and type.is_integer:
        return args[0]
    if name in ("add", "mul") and is_constant(args[0], int(name == "mul")) and type.is_integer:
        return args[1]
    if name == "mul" and is_constant(args[1], 1) and type.is_integer:
        return args[0]
    result = row.result_type(type)
    values = [arg.value for arg in args if isinstance(arg, ir.Const)]
    if (
        len(values) == len(args)
        and not any(getattr(arg.type, "is_float", True) for arg in args)
        and not result.is_float
    ):
        with np.errstate(all="ignore"):
            arrays = [np.array([v], arg.type.dtype) for v, arg in zip(values, args, strict=True)]  # type: ignore[union-attr]
            return constant(row.meaning(*arrays)[0], result, span)
    return ir.Op(name, args, result, span)


def cast(value: ir.Expr, type: Scalar) -> ir.Expr:
    """Return a value converted to a type: integers wrap, floats round or saturate."""
    if value.type is type:
        return value
    if isinstance(value, ir.Const) and type is not BOOL and (value.type.is_integer or value.type is BOOL):
        return constant(value.value, type, value.span)
    if isinstance(value, ir.Op) and value.name.startswith("cast_") and _is_resign(value.args[0].type, value.type, type):
        return cast(value.args[0], type)
    return ir.Op(f"cast_{type.name}", (value,), type, value.span)


def _is_resign(first: Any, middle: Any, last: Scalar) -> bool:
    """Whether a cast between the signs of one size, then to `last`, is a cast from the first type: `last` is not wider."""
    integers = all(isinstance(t, Scalar) and t.is_integer for t in (first, middle, last))
    return bool(integers and first.size == middle.size and last.size <= first.size)


def unsigned(value: ir.Expr) -> ir.Expr:
    """Return the bits of a signed integer as an unsigned one."""
    return cast(value, UNSIGNED[_scalar(value)]) if _scalar(value) in UNSIGNED else value


def signed(value: ir.Expr) -> ir.Expr:
    """Return the bits of an unsigned integer as a signed one."""
    return cast(value, SIGNED[_scalar(value)]) if _scalar(value) in SIGNED else value


def _scalar(value: ir.Expr) -> Scalar:
    assert isinstance(value.type, Scalar)
    return value.type


def bitcast(value: ir.Expr, type: Scalar) -> ir.Expr:
    """Return the same bits as another type of the same size."""
    own = _scalar(value)
    if own is type:
        return value
    if own.size != type.size or BOOL in (own, type):
        raise UnsupportedError(f"the bits of {own} as {type} are not supported")
    if own.is_float:
        bits = ir.Op(f"as_{_BITS[own].name}", (value,), _BITS[own], value.span)
        return bits if type is _BITS[own] else bitcast(bits, type)
    if type.is_float:
        name = _AS_FLOAT[_BITS[type], type]
        return ir.Op(name, (signed(value),), type, value.span)
    return cast(value, type)


def negated(condition: ir.Expr) -> ir.Expr:
    """Return the negation of a condition, without `not` where a comparison has an opposite."""
    if isinstance(condition, ir.Const):
        return constant(not condition.value, BOOL, condition.span)
    if isinstance(condition, ir.Op):
        if condition.name == "not":
            return condition.args[0]
        if condition.name in ("eq", "ne"):
            return ir.Op({"eq": "ne", "ne": "eq"}[condition.name], condition.args, BOOL, condition.span)
        if condition.name in _OPPOSITES and not _scalar(condition.args[0]).is_float:  # a NaN compares false
            return ir.Op(_OPPOSITES[condition.name], condition.args, BOOL, condition.span)
    return ir.Op("not", (condition,), BOOL, condition.span)


def compared(predicate: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return the result of an icmp."""
    name = predicate if predicate in ("eq", "ne") else predicate[1:]
    if a.type is BOOL and name not in ("eq", "ne"):
        if predicate[0] == "s":  # true is -1
            a, b = negated(a), negated(b)
        a, b = cast(a, I32), cast(b, I32)
    elif predicate[0] == "u":
        a, b = unsigned(a), unsigned(b)
    return operation(name, a, b)


def compared_floats(predicate: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return the result of an fcmp. Raises UnsupportedError for an unknown predicate."""
    if predicate in ("oeq", "olt", "ole", "ogt", "oge"):
        return operation(predicate[1:], a, b)
    opposite = {"ult": "ge", "ule": "gt", "ugt": "le", "uge": "lt"}.get(predicate)
    if opposite:
        return negated(operation(opposite, a, b))
    unordered = operation("either", operation("ne", a, a), operation("ne", b, b))
    if isinstance(b, ir.Const) and b.value == b.value:
        unordered = operation("ne", a, a)
    match predicate:
        case "une":
            return operation("ne", a, b)
        case "uno":
            return unordered
        case "ord":
            return negated(unordered)
        case "one":
            return operation("either", operation("lt", a, b), operation("gt", a, b))
        case "ueq":
            return operation("either", operation("eq", a, b), unordered)
        case "true" | "false":
            return constant(predicate == "true", BOOL, a.span)
    raise UnsupportedError(f"the comparison {predicate} is not supported")


def selected(condition: ir.Expr, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """Return a select; of truth values, connectives."""
    if a.type is not BOOL:
        return operation("select", condition, a, b)
    if is_constant(b, False):
        return operation("both", condition, a)
    if is_constant(a, True):
        return operation("either", condition, b)
    if is_constant(a, False):
        return operation("both", negated(condition), b)
    if is_constant(b, True):
        return operation("either", negated(condition), a)
    return operation("select", condition, a, b)
