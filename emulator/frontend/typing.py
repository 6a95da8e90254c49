"""Typing rules: literals adapt to the other operand, nothing promotes, each error names the fix."""

import math
import operator
from collections.abc import Callable
from dataclasses import replace

from ..checked import shown
from ..ir import halves
from ..ir import nodes as ir
from ..ir.ops import TABLE, may_leave_domain
from ..ir.walk import expressions
from ..language.types import BOOL, COMPLEX, F32, HALVES, I32, INTEGERS, UNSIGNED, Scalar, Vector
from ..language.types import Value as ValueType
from ..span import Span
from .advice import advice_for, cast_of
from .constants import Literal
from .values import ArrayValue, Choice, SourceError, TypeConflict, Value, describe, view_as_number, written


def constant(literal: Literal, type: Scalar, span: Span) -> ir.Const:
    """Return the literal as a constant of `type`. Raises SourceError if the value is not exact there."""
    value = literal.value
    if isinstance(value, complex):
        raise SourceError(
            span, f"{shown(value)} is complex, not {_a(type)}", "write c64(...), or a component: z.real, z.imag"
        )
    if type is BOOL or isinstance(value, bool):
        if type is BOOL and isinstance(value, bool):
            return ir.Const(value, BOOL, span)
        number = f"{float(value)}" if type.is_float else f"{int(value)}"
        advice = f"write {number}" if isinstance(value, bool) else "write a comparison, such as x != 0"
        raise SourceError(span, f"{value!r} is not {_a(type)}", advice)
    if type.is_float:
        if abs(value) > type.largest and value not in (math.inf, -math.inf):
            raise SourceError(
                span,
                f"{shown(value)} does not fit {type}, which holds up to {type.largest:.8g}",
                "use st.f64, or math.inf",
            )
        return ir.Const(halves.number(value, type) if type in HALVES else float(value), type, span)
    if isinstance(value, float):
        raise SourceError(
            span, f"the literal {value!r} cannot become {_a(type)}", "write a whole number, or use a float type"
        )
    low, high = type.range
    if not low <= value <= high:
        message = f"{shown(value)} does not fit {type}, which holds {low} to {high}"
        raise SourceError(span, message, _bits_of(type, value, span) or _wider(type, value))
    return ir.Const(value, type, span)


def expression(value: Value, span: Span, type: ValueType | None = None) -> ir.Expr:
    """Return the value as an expression; a literal gets `type`, or its natural type without one."""
    if isinstance(value, Literal | Choice):
        type = type or value.natural
        if type in COMPLEX:
            assert isinstance(type, Vector)
            both = [_untyped(_component(name, value), type.element, span) for name in ("real", "imag")]
            return ir.Pack(tuple(both), type, span)
        if isinstance(type, Vector):
            raise SourceError(span, f"{describe(value)} is not {_a(type)}", f"write {written(type)}(...)")
        return _untyped(value, type, span)
    if isinstance(value, ir.Expr):
        return value
    if isinstance(value, ArrayValue) and value.is_view:
        raise view_as_number(value, span)
    raise SourceError(span, f"a number is expected here, this is {describe(value)}", advice_for(value))


def _component(name: str, value: Literal | Choice) -> Literal | Choice:
    """Return the real or the imaginary part of literals."""
    if isinstance(value, Literal):
        return Literal(getattr(value.value, name))
    return replace(value, yes=_component(name, value.yes), no=_component(name, value.no))


def _untyped(value: Literal | Choice, type: Scalar, span: Span) -> ir.Expr:
    if isinstance(value, Literal):
        return constant(value, type, span)
    arms = (_untyped(value.yes, type, span), _untyped(value.no, type, span))
    return operation("select", [value.condition, *arms], span, "if else")


def converted(value: Value, type: ValueType, span: Span, what: str) -> ir.Expr:
    """Return the value where `type` is expected; only literals are converted."""
    result = expression(value, span, type)
    if result.type != type:
        raise TypeConflict(
            span,
            f"{what} is {type}, this is {result.type}",
            f"nothing is converted silently: write {cast_of(type, result.type, result.span)}",
            pairs=((result, type),),
        )
    return result


def unified(values: list[tuple[Value, Span]], word: str) -> list[ir.Expr]:
    """Return operands of one type: that of the typed operands, given to the literals."""
    typed = [v for v, _ in values if not isinstance(v, Literal | Choice)]
    for value, span in values:
        if isinstance(value, ArrayValue) and value.is_view:
            raise view_as_number(value, span)
        if not isinstance(value, Literal | Choice | ir.Expr):
            raise SourceError(span, f"{word} takes numbers, this is {describe(value)}", advice_for(value))
        if isinstance(value, ir.Expr) and isinstance(value.type, Vector):
            raise SourceError(
                span,
                f"{word} takes numbers, this is {_a(value.type)}",
                f"work on its components: {component_names(value.type)}",
            )
    if not typed:
        kinds = [v.natural for v, _ in values if isinstance(v, Literal | Choice)]
        return [expression(v, s, F32 if F32 in kinds else kinds[0]) for v, s in values]
    common = typed[0].type  # type: ignore[union-attr]
    for value, span in values:
        if isinstance(value, ir.Expr) and value.type != common:
            message = f"{word} of {common} and {value.type}: nothing is converted silently"
            advice = _cast_of(values, common, value.type)  # type: ignore[arg-type]
            pairs = ((value, common), *((v, value.type) for v in typed if v.type == common))  # type: ignore[union-attr]
            raise TypeConflict(span, message, advice, pairs=pairs)  # type: ignore[arg-type]
    for value, span in values:
        if isinstance(value, Literal) and isinstance(value.value, float) and not common.is_float:  # type: ignore[union-attr]
            message = f"{word} of {common} and the literal {value.value!r}: nothing is converted silently"
            pairs = tuple((v, F32) for v in typed)
            raise TypeConflict(span, message, _cast_of(values, common, F32), pairs=pairs)  # type: ignore[arg-type]
    return [expression(v, s, common) for v, s in values]  # type: ignore[arg-type]


def shift_count(value: Value, count: Value, span: Span, symbol: str) -> ir.Expr | None:
    """Return the count of a shift of `value` if both have types; None if one is a literal."""
    number = count.value if isinstance(count, Literal) else None
    type = count.type if isinstance(count, ir.Expr) else None
    if isinstance(number, float) or (isinstance(type, Scalar) and not type.is_integer):
        advice = "write a whole number" if type is None else f"cast it: {cast_of(I32, type, span)}"
        raise SourceError(span, f"{symbol} takes an integer as its count, this is {describe(count)}", advice)
    typed = isinstance(value, ir.Expr) and isinstance(value.type, Scalar) and isinstance(type, Scalar)
    return count if typed else None  # type: ignore[return-value]


def _cast_of(values: list[tuple[Value, Span]], first: Scalar, second: Scalar) -> str:
    """Return the casts for two different types: of the bool, of the integer for a float, or of the narrower integer."""
    place = {v.type: s for v, s in reversed(values) if isinstance(v, ir.Expr)}
    casts = {type: cast_of(type, source, place.get(source)) for type, source in ((first, second), (second, first))}
    if BOOL in (first, second):
        return f"write {casts[first if second == BOOL else second]}"
    if first.is_integer and second.is_integer and first.size != second.size:
        return f"write {casts[first if first.size > second.size else second]}"
    if first.is_float == second.is_float:
        return f"cast one of them: {casts[first]} or {casts[second]}"
    return f"write {casts[first if first.is_float else second]}"


def operation(name: str, args: list[ir.Expr], span: Span, word: str) -> ir.Op:
    """Return an Op node. Raises SourceError if the operation has no row for its operand type."""
    row = TABLE[name]
    type = row.deciding(args).type
    if type not in row.types or not isinstance(type, Scalar):
        raise SourceError(
            span,
            f"{word} is not defined for {type}",
            _ADVICE.get((name, getattr(type, "kind", "")), _defined(type, row.types)),
        )
    return ir.Op(name, tuple(args), row.result_type(type), span)


def cast(value: Value, type: Scalar, span: Span) -> ir.Expr:
    """Return `type(value)`: a literal must be in range, other values are converted as in CUDA."""
    if isinstance(value, Choice):
        value = expression(value, span)
    if isinstance(value, Literal):
        number = value.value
        whole = type.is_integer and isinstance(number, float) and number.is_integer()
        if whole or (isinstance(number, bool) and type is not BOOL):
            number = int(number)
        return constant(Literal(number), type, span)
    source = expression(value, span)
    if source.type == type:
        return source
    if isinstance(source.type, Vector):
        raise SourceError(
            span, f"{source.type} cannot become {_a(type)}", f"cast its components: {component_names(source.type)}"
        )
    return ir.Op(f"cast_{type.name}", (source,), type, span)


def component_names(type: Vector) -> str:
    """Return the component names of a vector for a hint."""
    return "z.real, z.imag" if type in COMPLEX else "v.x, v.y ..."


def component(vector: ir.Expr, index: int, span: Span) -> ir.Expr:
    """Return a component of a vector."""
    assert isinstance(vector.type, Vector)
    if isinstance(vector, ir.Pack):
        return vector.args[index]
    return ir.Component(vector, ir.Const(index, I32, span), vector.type.element, span)


def must_be_guarded(expr: ir.Expr) -> bool:
    """Return whether the expression may be evaluated only under its condition, because it may leave its domain otherwise."""
    return any(
        isinstance(e, ir.Op) and may_leave_domain(e) and (domain := TABLE[e.name].domain) is not None and domain.guards
        for e in (expr, *expressions(expr))
    )


def fold(function: Callable[..., object], values: list[Literal], span: Span) -> Literal:
    """Return the result of compile-time arithmetic in Python numbers."""
    numbers = [v.value for v in values]
    if function is operator.lshift and isinstance(numbers[1], int) and numbers[1] > MAX_CONSTANT_BITS:
        raise SourceError(span, f"this constant needs more than {MAX_CONSTANT_BITS} bits", "write a smaller number")
    try:
        result = function(*numbers)
    except ArithmeticError as error:
        raise SourceError(span, f"this constant cannot be computed: {error}", _SEE) from None
    except (TypeError, ValueError) as error:
        raise SourceError(span, f"this constant cannot be computed: {error}", _SEE) from None
    assert isinstance(result, bool | int | float | complex)
    if isinstance(result, int) and result.bit_length() > MAX_CONSTANT_BITS:
        raise SourceError(span, f"this constant needs more than {MAX_CONSTANT_BITS} bits", "write a smaller number")
    return Literal(result)


MAX_CONSTANT_BITS = 256
"""Maximum bits of a compile-time integer."""

_SEE = "write a constant that Python can compute"


def _bits_of(type: Scalar, value: float, span: Span) -> str:
    """Return the hint for the bits of a negative number in an unsigned type, as in `~0`."""
    is_complement = type.kind == "uint" and -1 - type.range[1] <= value < 0 and "~" in span.text
    return f"write ~{written(type)}({shown(-1 - value)})" if is_complement else ""


def _wider(type: Scalar, value: float) -> str:
    """Return the hint for an integer out of a type's range."""
    signed = "int" if value < 0 else "uint"
    wider = next((t for t in INTEGERS if t.range[0] <= value <= t.range[1] and t.size >= type.size), None)
    if wider is None:
        return "write a smaller number"
    if type.kind == signed and wider.size == type.size:
        return "write a smaller number"
    unsigned = next((t for t in UNSIGNED if t.size == type.size and 0 <= value <= t.range[1]), None)
    if unsigned is None or unsigned is wider:
        return f"use {written(wider)}"
    return f"use {written(unsigned)}(...) or {written(wider)}(...)"


def _a(type: ValueType) -> str:
    return f"{'an' if type.name[0] in 'ai' or type.name.startswith(('f1', 'f3', 'f6')) else 'a'} {type}"


def _defined(type: ValueType, types: tuple[Scalar, ...]) -> str:
    if type in HALVES and F32 in types:
        return "compute in st.f32: st.f32(x)"
    return f"it is defined for {', '.join(t.name for t in types)}"


_BITS = "cast it: st.i32(x), or st.bitcast(st.i32, x) for its bits"
_ADVICE = {
    ("fdiv", "int"): "write a // b (floors), st.div(a, b) (truncates) or st.f32(a) / st.f32(b)",
    ("fdiv", "uint"): "write a // b, or st.f32(a) / st.f32(b)",
    ("floordiv", "float"): "write st.floor(a / b)",
    ("mod", "float"): "write a - st.floor(a / b) * b, or st.fmod(a, b), which has the sign of a",
    **{(name, "float"): _BITS for name in ("shl", "shr", "and", "or", "xor", "invert")},
    **{(name, "bool"): "cast it first: st.i32(flag)" for name in ("add", "sub", "mul", "neg", "min", "max")},
    ("invert", "bool"): "write `not flag`",
    **{(name, "int"): "write a comparison, such as x != 0" for name in ("not", "both", "either")},
    **{(name, "uint"): "write a comparison, such as x != 0" for name in ("not", "both", "either")},
}
