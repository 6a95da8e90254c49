"""Logarithms."""

from ..language.functions import device
from ..language.hints import Const, Global, f64, i64
from ..language.intrinsics import fma, registers
from ..native import native
from .coefficients import LN2, LOG2_E, LOG10_2, LOG10_E
from .double_double import INFINITY, NAN, SMALLEST_NORMAL, log_of, mantissa_log, normal


@device
def outside(x: f64, value: f64) -> f64:
    """Return the logarithm of x: `value` for positive finite x, else the special case."""
    value = x if x == INFINITY or x != x else value
    value = NAN if x < 0.0 else value
    return -INFINITY if x == 0.0 else value


@native
def log(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The natural logarithm."""
    for i in range(n):
        terms = registers(f64, 3)
        mantissa_log(normal(x[i]), 0.0, terms)
        e = terms[2] - (f64(54) if x[i] < SMALLEST_NORMAL else f64(0))
        scale = e * LN2[0]
        total = scale + terms[0]
        low = (scale - total) + terms[0] if scale != 0.0 else 0.0
        to[i] = outside(x[i], total + (low + (terms[1] + e * LN2[1])))


@device
def in_base(x: f64, PER_LOG: Const, PER_EXPONENT: Const) -> f64:
    """log(x) * PER_LOG, where an exponent of two counts PER_EXPONENT."""
    terms = registers(f64, 3)
    mantissa_log(normal(x), 0.0, terms)
    e = terms[2] - (f64(54) if x < SMALLEST_NORMAL else f64(0))
    term = terms[0] * PER_LOG[0]
    term_low = fma(terms[0], PER_LOG[0], -term) + (terms[0] * PER_LOG[1] + terms[1] * PER_LOG[0])
    scale = e * PER_EXPONENT[0]
    total = scale + term
    low = (scale - total) + term if scale != 0.0 else 0.0
    return f64(total + (low + (term_low + e * PER_EXPONENT[1])))


@device
def log2_of(x: f64) -> f64:
    """The logarithm to base 2."""
    return outside(x, in_base(x, LOG2_E, (1.0, 0.0)))


@native
def log2(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The logarithm to base 2."""
    for i in range(n):
        to[i] = log2_of(x[i])


@native
def log10(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The logarithm to base 10."""
    for i in range(n):
        to[i] = outside(x[i], in_base(x[i], LOG10_E, LOG10_2))


@device
def log1p_of(high: f64, low: f64) -> f64:
    """log(1 + high + low), high > -1 and finite; low: at most half a unit in the last place of high."""
    total = 1.0 + high
    more = (high - (total - 1.0) if abs(high) < 1.0 else 1.0 - (total - high)) + low
    terms = registers(f64, 2)
    log_of(total, more, terms)
    return terms[0] + terms[1]


@native
def log1p(x: Global[f64], to: Global[f64], n: i64) -> None:
    """log(1 + x), accurate near 0."""
    for i in range(n):
        value = log1p_of(x[i], 0.0)
        value = outside(1.0 + x[i], value)
        to[i] = x[i] if abs(x[i]) < 1e-17 else value
