"""Python's `math` functions and `**` in a kernel."""

import math
import operator
from typing import Any

from ..ir import nodes as ir
from ..language import intrinsics, maths
from ..language.types import Scalar
from ..span import Span
from . import typing
from .constants import Literal
from .protocols import FunctionReader
from .values import SourceError, Value

SAME = (
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf", "erfc",
    "exp", "exp2", "expm1", "floor", "fmod", "frexp", "hypot", "isfinite", "isinf", "isnan", "ldexp", "lgamma", "log",
    "log10", "log1p", "log2", "pow", "remainder", "sin", "sinh", "tan", "tanh", "trunc",
)  # fmt: skip
WORDS: dict[Any, Any] = {getattr(math, name): getattr(maths, name) for name in SAME if hasattr(math, name)}
WORDS |= {math.gamma: maths.tgamma, math.sqrt: intrinsics.sqrt}
"""The intrinsic for each function of Python's `math`; Python computes it for constant arguments."""
MULTIPLIED = (2, 3, 4)
"""Constant exponents of `**` expanded to multiplications."""


def folded_power(a: Any, b: Any) -> Any:
    """Return a ** b of constants."""
    result = operator.pow(a, b)
    if isinstance(result, complex):
        raise ValueError(f"{a} ** {b} is no real number")
    return result


def power(reader: FunctionReader, a: Value, b: Value, span: Span, left: Span, right: Span) -> Value:
    """`a ** b`: x * x, x * x * x and (x * x) * (x * x) where b is a constant 2, 3 or 4, else CUDA's pow."""
    if isinstance(a, Literal) and isinstance(b, Literal):
        return typing.fold(folded_power, [a, b], span)
    if isinstance(b, Literal) and b.value in MULTIPLIED:
        (base,) = typing.unified([(a, left)], "**")
        base = base if isinstance(base, ir.Reg) else reader.let(base, "base", span)
        square = typing.operation("mul", [base, base], span, "**")
        if b.value == 2:
            return square
        if b.value == 3:
            return typing.operation("mul", [square, base], span, "**")
        twice = reader.let(square, "square", span)
        return typing.operation("mul", [twice, twice], span, "**")
    values = typing.unified([(a, left), (b, right)], "**")
    type = values[0].type
    if isinstance(type, Scalar) and not type.is_float:
        advice = f"write x * x, or st.pow(st.f64(x), st.f64(n)), which is a float; exponents {', '.join(map(str, MULTIPLIED))} multiply"
        raise SourceError(span, f"** of {type} takes a constant exponent", advice)
    return typing.operation("pow", values, span, "**")
