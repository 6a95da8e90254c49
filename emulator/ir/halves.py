"""Arithmetic and conversions of f16 and bf16 on arrays, each rounded once, and their CUDA spelling.

A wider type rounds twice only where its result is not exact: there its last bit is made odd, which no tie is.
Sums, products and quotients need no such care: f32 holds more than twice the bits of a half, and two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..language.types import BF16, BOOL, F16, F32, F64, HALVES, I64, U64, Scalar, holds_floats

Values = npt.NDArray[Any]


def _toward(near: Values, inexact: Values, away: Values) -> Values:
    """`near`, where it is inexact and its last bit is even, moved by one bit: away from 0 or toward it."""
    bits = near.view(f"i{near.dtype.itemsize}")
    moved = bits + np.where(away, 1, -1).astype(bits.dtype)
    return np.asarray(np.where(inexact & (bits & 1 == 0), moved, bits)).view(near.dtype)


def odd_f32(x: Values) -> Values:
    """f64 as f32, the last bit odd where it is inexact."""
    near = np.asarray(x.astype(np.float32))
    back = near.astype(np.float64)
    return _toward(near, (back != x) & ~np.isnan(x), np.abs(back) < np.abs(x))


def odd_sum(a: Values, b: Values) -> Values:
    """a + b of f64, the last bit odd where it is inexact."""
    total = np.asarray(a + b)
    other = total - a
    error = (a - (total - other)) + (b - other)
    return _toward(total, (error != 0) & ~np.isnan(error), (error > 0) == (total > 0))


def rounded(x: Values, type: Scalar) -> Values:
    """f64 as a half, rounded once."""
    return odd_f32(x).astype(type.dtype)


def converted(x: Values, type: Scalar) -> Values:
    """Any number as a half, rounded once."""
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        low = x & x.dtype.type(0xFFFFFFFF)
        return rounded(odd_sum((x - low).astype(np.float64), low.astype(np.float64)), type)
    return rounded(x.astype(np.float64), type)


def number(value: float, type: Scalar) -> float:
    """The half nearest to a number."""
    with np.errstate(all="ignore"):
        return float(rounded(np.array(value, np.float64), type))


def fused(fma: Callable[..., Values]) -> Callable[..., Values]:
    """A fused multiply-add of f32 and f64, made one of halves too: f64 holds their products exactly."""

    def meaning(a: Values, b: Values, c: Values) -> Values:
        if a.dtype.itemsize > 2:
            return fma(a, b, c)
        x, y, z = (v.astype(np.float64) for v in (a, b, c))
        return rounded(odd_sum(x * y, z), F16 if a.dtype == F16.dtype else BF16)

    return meaning


def in_f32(function: Callable[..., Values]) -> Callable[..., Values]:
    """A function that picks one of its operands, made to pick among halves as it does among f32."""

    def meaning(*operands: Values) -> Values:
        if operands[0].dtype.itemsize > 2 or not holds_floats(operands[0].dtype):
            return function(*operands)
        return np.asarray(function(*(x.astype(np.float32) for x in operands))).astype(operands[0].dtype)

    return meaning


# ------------------------------------------------------------------ CUDA
_WORDS = {F16: "half", BF16: "bfloat16"}
"""In the names of conversions."""


def widened(type: Scalar) -> str:
    """The template of a half as a float; {0} for other types."""
    return f"__{_WORDS[type]}2float({{0}})" if type in HALVES else "{0}"


def narrowed(source: Scalar, target: Scalar) -> str:
    """The template of a cast to a half."""
    word = _WORDS[target]
    if source in HALVES or source is F32:
        return f"__float2{word}_rn({widened(source)})"
    if source is F64:
        return f"__double2{word}({{0}})"
    short = {I64: "ll", U64: "ull", BOOL: "int"}.get(source, "int" if source.kind == "int" else "uint")
    return f"__{short}2{word}_rn({{0}})"


def through_float(template: str) -> dict[Scalar, str]:
    """Templates that compute with floats, IEEE's division and root among them, and round once more."""
    functions = {}
    for type in HALVES:
        inner = template.replace("{0}", widened(type)).replace("{1}", widened(type).replace("{0}", "{1}"))
        functions[type] = f"__float2{_WORDS[type]}_rn({inner})"
    return functions


def called(name: str, operands: int) -> dict[Scalar, str]:
    """CUDA's function of that name, the same for both halves."""
    return dict.fromkeys(HALVES, f"{name}({', '.join(f'{{{n}}}' for n in range(operands))})")
