"""CUDA's fast functions of f32: the approximation of each instruction, rounded to f32 at each step.

Arguments are f32 values stored as f64.
"""

from __future__ import annotations

from ..language.functions import device
from ..language.hints import Global, f32, f64, i64
from ..language.intrinsics import registers
from ..language.maths import copysign
from ..native import native
from .exponential import exp2_of
from .logarithmic import log2_of
from .trigonometric import is_far, of_quarter, reduced_far, reduced_near

LOG2_E = 1.44269502162933349609375
LOG2_10 = 3.3219280242919921875
LN2 = 0.693147182464599609375
LOG10_2 = 0.301029980182647705078125
LARGEST_DIVISOR = 2.0**126


@device
def rounded(x: f64) -> f64:
    """Round to f32."""
    return f64(f32(x))


@device
def exp2_or_nan(x: f64) -> f64:
    value = exp2_of(x)
    return value if x == x else x


@native
def fast_exp(x: Global[f64], to: Global[f64], n: i64) -> None:
    """2**(x * log2(e))."""
    for i in range(n):
        to[i] = exp2_or_nan(rounded(x[i] * LOG2_E))


@native
def fast_exp10(x: Global[f64], to: Global[f64], n: i64) -> None:
    """2**(x * log2(10))."""
    for i in range(n):
        to[i] = exp2_or_nan(rounded(x[i] * LOG2_10))


@native
def fast_log(x: Global[f64], to: Global[f64], n: i64) -> None:
    """log2(x) * log(2)."""
    for i in range(n):
        to[i] = rounded(log2_of(x[i])) * LN2


@native
def fast_log10(x: Global[f64], to: Global[f64], n: i64) -> None:
    """log2(x) * log10(2)."""
    for i in range(n):
        to[i] = rounded(log2_of(x[i])) * LOG10_2


@native
def fast_tan(x: Global[f64], to: Global[f64], n: i64) -> None:
    """sin(x) / cos(x)."""
    for i in range(n):
        terms = registers(f64, 3)
        reduced_near(x[i], terms)
        sine = of_quarter(terms, i64(0)) if x[i] != 0.0 else x[i]
        to[i] = rounded(sine) / rounded(of_quarter(terms, i64(1)))
    for i in range(n):
        if is_far(x[i]):
            far = registers(f64, 3)
            reduced_far(x[i], far)
            to[i] = rounded(of_quarter(far, i64(0))) / rounded(of_quarter(far, i64(1)))


@native
def fast_pow(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """2**(y * log2(x))."""
    for i in range(n):
        to[i] = exp2_or_nan(rounded(y[i] * rounded(log2_of(x[i]))))


@native
def fast_divide(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """x / y; 0 for |y| beyond 2**126."""
    for i in range(n):
        to[i] = x[i] / y[i] if abs(y[i]) <= LARGEST_DIVISOR or y[i] != y[i] else x[i] * copysign(0.0, y[i])
