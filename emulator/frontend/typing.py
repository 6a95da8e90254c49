"""The typing rules: literals take the type of the other operand, nothing promotes, each error says what to write."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import nodes as ir
from ..ir.ops import TABLE, may_leave_domain
from ..ir.walk import expressions
from ..language.types import BOOL, F32, I32, Scalar, Vector
from ..language.types import Value as ValueType
from ..span import Span
from .values import Literal, SourceError, Value, describe


def constant(literal: Literal, type: Scalar, span: Span) -> ir.Const:
    """The literal as a constant of `type`, if it has that value there."""
    value = literal.value
    if type is BOOL or isinstance(value, bool):
        if type is BOOL and isinstance(value, bool):
            return ir.Const(value, BOOL, span)
        advice = f"write {type}({value})" if isinstance(value, bool) else "write a comparison, such as x != 0"
        raise SourceError(span, f"{value!r} is not {_a(type)}", advice)
    if type.is_float:
        return ir.Const(float(value), type, span)
    if isinstance(value, float):
        raise SourceError(
            span, f"the literal {value!r} cannot become {_a(type)}", "cast the other operand to a float type"
        )
    low, high = type.range
    if not low <= value <= high:
        raise SourceError(span, f"{value} does not fit {type}, which holds {low} to {high}")
    return ir.Const(value, type, span)


def expression(value: Value, span: Span, type: ValueType | None = None) -> ir.Expr:
    """The value as an expression; a literal becomes `type`, or its natural type where none is asked for."""
    if isinstance(value, Literal):
        if isinstance(type, Vector):
            raise SourceError(span, f"{describe(value)} is not {_a(type)}", f"write {type}(...)")
        return constant(value, type or value.natural, span)
    if isinstance(value, ir.EXPRESSIONS):
        return value
    raise SourceError(span, f"a number is expected here, this is {describe(value)}")


def converted(value: Value, type: ValueType, span: Span, what: str) -> ir.Expr:
    """The value where a `type` is expected: literals take it, anything else must have it already."""
    result = expression(value, span, type)
    if result.type != type:
        raise SourceError(
            span, f"{what} is {type}, this is {result.type}", f"nothing is converted silently: write {type}(...)"
        )
    return result


def unified(values: list[tuple[Value, Span]], word: str) -> list[ir.Expr]:
    """Operands brought to one type: the type of those that have one, given to the literals."""
    typed = [v for v, _ in values if not isinstance(v, Literal)]
    for value, span in values:
        if not isinstance(value, (Literal, *ir.EXPRESSIONS)):
            raise SourceError(span, f"{word} takes numbers, this is {describe(value)}")
        if isinstance(value, ir.EXPRESSIONS) and isinstance(value.type, Vector):
            raise SourceError(
                span, f"{word} takes numbers, this is {_a(value.type)}", "work on its parts: v.x, v.y ..."
            )
    if not typed:
        floats = any(isinstance(v.value, float) for v, _ in values if isinstance(v, Literal))
        kind = values[0][0].natural if isinstance(values[0][0], Literal) else I32
        return [expression(v, s, F32 if floats else kind) for v, s in values]
    wanted = typed[0].type  # type: ignore[union-attr]
    for value, span in values:
        if isinstance(value, ir.EXPRESSIONS) and value.type != wanted:
            message = f"{word} of {wanted} and {value.type}: nothing is converted silently"
            raise SourceError(span, message, f"cast one of them: {wanted}(...) or {value.type}(...)")
    return [expression(v, s, wanted) for v, s in values]  # type: ignore[arg-type]


def operation(name: str, args: list[ir.Expr], span: Span, word: str) -> ir.Op:
    """An Op node, if the table has a row for its operand type."""
    row, type = TABLE[name], args[-1].type
    if type not in row.types or not isinstance(type, Scalar):
        raise SourceError(
            span,
            f"{word} is not defined for {type}",
            _ADVICE.get((name, getattr(type, "kind", "")), _defined(row.types)),
        )
    return ir.Op(name, tuple(args), row.result_type(type), span)


def cast(value: Value, type: Scalar, span: Span) -> ir.Expr:
    """`type(value)`: a literal must be in range, anything else is converted as CUDA does."""
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
        raise SourceError(span, f"{source.type} cannot become {_a(type)}", "cast its parts: v.x, v.y ...")
    return ir.Op(f"cast_{type.name}", (source,), type, span)


def must_be_guarded(expr: ir.Expr) -> bool:
    """Whether the expression may leave a domain where its value is not needed, and so must be evaluated under its condition."""
    return any(
        isinstance(e, ir.Op) and may_leave_domain(e) and (domain := TABLE[e.name].domain) is not None and domain.guards
        for e in (expr, *expressions(expr))
    )


def fold(function: Callable[..., object], values: list[Literal], span: Span) -> Literal:
    """Compile-time arithmetic, with Python's own numbers."""
    try:
        result = function(*(v.value for v in values))
    except ArithmeticError as error:
        raise SourceError(span, f"this constant cannot be computed: {error}") from None
    except (TypeError, ValueError) as error:
        raise SourceError(span, f"this constant cannot be computed: {error}") from None
    assert isinstance(result, bool | int | float)
    return Literal(result)


def _a(type: ValueType) -> str:
    return f"{'an' if type.name[0] in 'ai' else 'a'} {type}"


def _defined(types: tuple[Scalar, ...]) -> str:
    return f"it is defined for {', '.join(t.name for t in types)}"


_ADVICE = {
    ("fdiv", "int"): "write a // b (floors), st.div(a, b) (truncates) or f32(a) / f32(b)",
    ("fdiv", "uint"): "write a // b, or f32(a) / f32(b)",
    ("floordiv", "float"): "write a / b",
    **{(name, "bool"): "cast it first: i32(flag)" for name in ("add", "sub", "mul", "neg", "min", "max")},
    ("invert", "bool"): "write `not flag`",
    **{(name, "int"): "write a comparison, such as x != 0" for name in ("not", "both", "either")},
    **{(name, "uint"): "write a comparison, such as x != 0" for name in ("not", "both", "either")},
}
