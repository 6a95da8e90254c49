"""Exponentials and powers."""

from ..language.functions import device
from ..language.hints import Global, f64, i64
from ..language.intrinsics import bitcast, fma, registers
from ..language.maths import trunc
from ..native import native
from .coefficients import LN2, LN2_FULL, LN10, LOG10_2
from .double_double import (
    INFINITY,
    NAN,
    ROUNDING,
    SMALLEST_NORMAL,
    exp_of,
    growth,
    log_of,
    normal,
    one_more,
    power_of_two,
    scaled,
    two_sum,
    whole,
)


@native
def exp(x: Global[f64], to: Global[f64], n: i64) -> None:
    """e**x."""
    for i in range(n):
        value = exp_of(x[i], 0.0)
        to[i] = value if x[i] == x[i] else x[i]


@device
def exp2_of(x: f64) -> f64:
    limited = min(max(x, -1100.0), 1100.0)
    n = (limited + ROUNDING) - ROUNDING
    r = limited - n
    high = r * LN2_FULL[0]
    terms = registers(f64, 3)
    growth(high, fma(r, LN2_FULL[0], -high) + r * LN2_FULL[1], terms)
    one_more(terms[0], terms[1], terms)
    return scaled(terms[0] + terms[1], whole(n + terms[2]))


@native
def exp2(x: Global[f64], to: Global[f64], n: i64) -> None:
    """2**x."""
    for i in range(n):
        value = exp2_of(x[i])
        to[i] = value if x[i] == x[i] else x[i]


@device
def exp10_of(x: f64) -> f64:
    limited = min(max(x, -350.0), 350.0)
    n = fma(limited, 3.321928094887362, ROUNDING) - ROUNDING
    first = fma(-n, LOG10_2[0], limited)
    r = fma(-n, LOG10_2[1], first)
    r_low = fma(-n, LOG10_2[1], first - r)
    high = r * LN10[0]
    low = fma(r, LN10[0], -high) + (r * LN10[1] + r_low * LN10[0])
    terms = registers(f64, 3)
    growth(high, low, terms)
    one_more(terms[0], terms[1], terms)
    return scaled(terms[0] + terms[1], whole(n + terms[2]))


@native
def exp10(x: Global[f64], to: Global[f64], n: i64) -> None:
    """10**x."""
    for i in range(n):
        value = exp10_of(x[i])
        to[i] = value if x[i] == x[i] else x[i]


@device
def expm1_of(x: f64) -> f64:
    """exp(x) - 1, for x from -50 to 710."""
    terms = registers(f64, 3)
    growth(x, 0.0, terms)
    # 2^n (1 + p) - 1, halved throughout: 2^n is finite for the largest n
    scale = power_of_two(whole(terms[2]) - 1)
    less = registers(f64, 2)
    two_sum(scale, -0.5, less)
    sums = registers(f64, 2)
    two_sum(less[0], scale * terms[0], sums)
    return 2.0 * (sums[0] + (sums[1] + (scale * terms[1] + less[1])))


@native
def expm1(x: Global[f64], to: Global[f64], n: i64) -> None:
    """e**x - 1, accurate near 0."""
    for i in range(n):
        value = expm1_of(min(max(x[i], -50.0), 710.0))
        value = INFINITY if x[i] > 709.782712893384 else value
        to[i] = value if abs(x[i]) > 1e-300 else x[i]


@device
def power(x: f64, y: f64) -> f64:
    """x**y for positive, finite x and any y, of magnitude below 2**66 where x is not 1."""
    logs = registers(f64, 2)
    log_of(normal(x), 0.0, logs)
    shift = f64(-54) if x < SMALLEST_NORMAL else f64(0)
    sums = registers(f64, 2)
    two_sum(logs[0], shift * LN2[0], sums)
    log_low = sums[1] + (logs[1] + shift * LN2[1])
    high = y * sums[0]
    return exp_of(high, fma(y, sums[0], -high) + y * log_low)


@native
def pow(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """x**y, with C's special cases."""
    for i in range(n):
        base = abs(x[i])
        exponent = y[i]
        limited = min(max(exponent, -7e19), 7e19)
        finite = base if base > 0.0 and base < INFINITY else 1.0
        value = power(finite, limited)
        grows = (base > 1.0) == (exponent > 0.0)
        edge = f64(INFINITY) if grows else f64(0)
        value = edge if base == 0.0 or base == INFINITY or abs(exponent) == INFINITY else value
        value = 1.0 if base == 1.0 else value
        whole_number = trunc(exponent) == exponent
        odd = whole_number and 2.0 * trunc(0.5 * exponent) != exponent
        below = bitcast(i64, x[i]) < 0
        value = -value if below and odd else value
        bad = x[i] < 0.0 and base < INFINITY and not whole_number
        value = NAN if bad or base != base or exponent != exponent else value
        to[i] = 1.0 if exponent == 0.0 or x[i] == 1.0 else value
