"""Complex numbers: two-component vectors in the IR, with operations on real numbers.

The formulas are those of the documentation (docs/language.md); none of their operations is fused.
"""

import ast
from typing import Any, TypeGuard

from ..ir import nodes as ir
from ..language.types import COMPLEX, Vector
from ..span import Span
from . import typing
from .constants import Literal
from .protocols import Emitter, FunctionReader
from .values import Choice, SourceError, Value, describe

Operand = tuple[Value, Span]
RealImag = tuple[ir.Expr, ir.Expr]


def is_complex(value: Value) -> TypeGuard[ir.Expr | Literal | Choice]:
    """Return whether a value, or a literal by its natural type, is a complex number."""
    if isinstance(value, Literal | Choice):
        return value.natural in COMPLEX
    return isinstance(value, ir.Expr) and value.type in COMPLEX


# ------------------------------------------------------------------ values
def construct(reader: FunctionReader, node: ast.Call, type: Any, span: Span) -> Value:
    """Read `c64(re, im)`, `c64(re)`, or a conversion of a complex number to `c64`."""
    if len(node.args) not in (1, 2) or node.keywords:
        raise SourceError(span, f"{type} takes a real and an imaginary part", f"write {type}(re, im), or {type}(re)")
    if len(node.args) == 2:
        components = zip(reader.values(*node.args), map(reader.span, node.args), strict=True)
        return _pack(
            (typing.converted(v, type.element, s, f"a component of {type}") for v, s in components), type, span
        )
    value = reader.value(node.args[0])
    if isinstance(value, Literal | Choice):
        return typing.expression(value, span, type)
    if is_complex(value):
        return _pack(
            (typing.cast(component, type.element, span) for component in _components(reader, value, span)), type, span
        )
    return _pack((typing.cast(value, type.element, span), typing.constant(Literal(0), type.element, span)), type, span)


def attribute(value: Value, name: str, span: Span) -> Value:
    """Return `z.real` or `z.imag`."""
    if name not in ("real", "imag"):
        raise SourceError(span, f"{describe(value)} has no {name}", "write z.real, z.imag, st.conj(z) or abs(z)")
    if isinstance(value, Literal):
        return Literal(getattr(value.value, name))
    return typing.component(typing.expression(value, span), int(name == "imag"), span)


def refuse_components(value: Value, span: Span) -> None:
    """Refuse a complex number where vector components are indexed or assigned."""
    if is_complex(value):
        raise SourceError(
            span,
            f"the components of {describe(value)} have no index and cannot be assigned",
            "write z.real, z.imag, or c64(re, im)",
        )


def conjugate(reader: FunctionReader, value: Value, span: Span) -> Value:
    """`st.conj(z)`."""
    if isinstance(value, Literal):
        return Literal(complex(value.value).conjugate())
    if not is_complex(value):
        raise SourceError(
            span, f"st.conj takes a complex number, this is {describe(value)}", "write c64(x), or x itself"
        )
    real, imag = _components(reader, value, span)
    return _pack((real, _real("neg", span, imag)), _type(value), span)


def magnitude(reader: FunctionReader, value: Value, span: Span) -> Value:
    """Return `abs(z)`: hypot of the components."""
    return _real("hypot", span, *_components(reader, value, span))


def negative(reader: FunctionReader, value: Value, span: Span) -> Value:
    """`-z`."""
    return _pack((_real("neg", span, component) for component in _components(reader, value, span)), _type(value), span)


# ------------------------------------------------------------------ operators
def arithmetic(reader: FunctionReader, kind: type, symbol: str, a: Operand, b: Operand, span: Span) -> Value:
    """`a + b`, `a - b`, `a * b` and `a / b`."""
    if kind not in _OPERATORS:
        advice = "write z * z" if kind is ast.Pow else "they have +, -, * and /"
        raise SourceError(span, f"{symbol} is not defined for complex numbers", advice)
    left, right = _unified(a, b, symbol)
    return _pack(
        _OPERATORS[kind](reader, _components(reader, left, a[1]), _components(reader, right, b[1]), span),
        _type(left),
        span,
    )


def compared(reader: Emitter, name: str, symbol: str, a: Operand, b: Operand, span: Span) -> Value:
    """`a == b` and `a != b`."""
    if name not in _JOINED:
        raise SourceError(span, f"{symbol}: complex numbers have no order", "compare abs(z), z.real or z.imag")
    left, right = _unified(a, b, symbol)
    pairs = zip(_components(reader, left, a[1]), _components(reader, right, b[1]), strict=True)
    return _real(_JOINED[name], span, *(_real(name, span, x, y) for x, y in pairs))


def _sum(reader: FunctionReader, a: RealImag, b: RealImag, span: Span) -> RealImag:
    return _real("add", span, a[0], b[0]), _real("add", span, a[1], b[1])


def _difference(reader: FunctionReader, a: RealImag, b: RealImag, span: Span) -> RealImag:
    return _real("sub", span, a[0], b[0]), _real("sub", span, a[1], b[1])


def _product(reader: FunctionReader, a: RealImag, b: RealImag, span: Span) -> RealImag:
    real = _real("sub", span, _real("mul", span, a[0], b[0]), _real("mul", span, a[1], b[1]))
    return real, _real("add", span, _real("mul", span, a[0], b[1]), _real("mul", span, a[1], b[0]))


def _quotient(reader: FunctionReader, a: RealImag, b: RealImag, span: Span) -> RealImag:
    """Smith's formula (Communications of the ACM 5, 1962): scaled by the larger component of the divisor."""
    size = [_real("abs", span, component) for component in b]
    wide = reader.let(_real("ge", span, *size), "wide", span)

    def chosen(yes: ir.Expr, no: ir.Expr) -> ir.Expr:
        return _real("select", span, wide, yes, no)

    large, small = reader.let(chosen(*b), "large", span), reader.let(chosen(b[1], b[0]), "small", span)
    ratio = reader.let(_real("fdiv", span, small, large), "ratio", span)
    scale = reader.let(_real("add", span, large, _real("mul", span, small, ratio)), "scale", span)
    first, second = chosen(*a), chosen(a[1], a[0])
    real = _real("add", span, first, _real("mul", span, second, ratio))
    scaled = _real("mul", span, first, ratio)
    imag = chosen(_real("sub", span, a[1], scaled), _real("sub", span, _real("mul", span, a[1], ratio), a[0]))
    return _real("fdiv", span, real, scale), _real("fdiv", span, imag, scale)


_OPERATORS = {ast.Add: _sum, ast.Sub: _difference, ast.Mult: _product, ast.Div: _quotient}
_JOINED = {"eq": "both", "ne": "either"}


# ------------------------------------------------------------------ components
def _unified(a: Operand, b: Operand, symbol: str) -> tuple[ir.Expr, ir.Expr]:
    """Return both operands as complex numbers of one type; only literals are converted."""
    typed = [value.type for value, _ in (a, b) if isinstance(value, ir.Expr)]
    type = next((t for t in typed if t in COMPLEX), None)
    for value, span in (a, b):
        if type is None or (isinstance(value, ir.Expr) and value.type != type):
            names = " and ".join(describe(v) for v, _ in (a, b))
            real = next((s for v, s in (a, b) if isinstance(v, ir.Expr) and v.type != type), span)
            advice = f"write {type or 'c64'}({real.text})"
            raise SourceError(real, f"{symbol} of {names}: nothing is converted silently", advice)
    left, right = (typing.expression(value, span, type) for value, span in (a, b))
    return left, right


def _components(reader: Emitter, value: Value, span: Span) -> RealImag:
    """Return the real and imaginary parts; the value is computed once."""
    whole = typing.expression(value, span)
    plain = isinstance(whole, ir.Reg) or (isinstance(whole, ir.Pack) and all(map(_is_plain, whole.args)))
    whole = whole if plain else reader.let(whole, "complex", span)
    return typing.component(whole, 0, span), typing.component(whole, 1, span)


def _is_plain(component: ir.Expr) -> bool:
    return isinstance(component, ir.Reg | ir.Const) or (
        isinstance(component, ir.Component) and isinstance(component.value, ir.Reg)
    )


def _type(value: Value) -> Vector:
    type = typing.expression(value, value.span).type if isinstance(value, ir.Expr) else value.natural  # type: ignore[union-attr]
    assert isinstance(type, Vector)
    return type


def _real(name: str, span: Span, *args: ir.Expr) -> ir.Op:
    return typing.operation(name, list(args), span, name)


def _pack(components: Any, type: Any, span: Span) -> ir.Pack:
    return ir.Pack(tuple(components), type, span)
