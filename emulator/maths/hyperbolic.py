"""Hyperbolic functions and their inverses."""

from ..language.functions import device
from ..language.hints import Global, Registers, f64, i64
from ..language.intrinsics import fma, registers, sqrt
from ..native import native
from .coefficients import LN2_FULL, SINH
from .double_double import (
    INFINITY,
    LARGEST,
    NAN,
    growth,
    log_of,
    one_more,
    polynomial,
    power_of_two,
    sixth_of_cube,
    two_sum,
    whole,
)
from .logarithmic import log1p_of


@device
def halves(x: f64, to: Registers[f64]) -> None:
    """exp(x) / 2 = to[0] + to[1] and exp(-x) / 2 = to[2] + to[3], for x from 0 to 711."""
    terms = registers(f64, 3)
    growth(x, 0.0, terms)
    exponential = registers(f64, 2)
    one_more(terms[0], terms[1], exponential)
    scale = power_of_two(whole(terms[2]) - 2)
    high = exponential[0] + exponential[1]
    low = (exponential[0] - high) + exponential[1]
    back = 0.125 / (high * scale)
    to[0] = 2.0 * (high * scale)
    to[1] = 2.0 * (low * scale)
    to[2] = back
    to[3] = (fma(-back, to[0], 0.25) - back * to[1]) / to[0]


@native
def sinh(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The hyperbolic sine."""
    for i in range(n):
        size = abs(x[i])
        terms = registers(f64, 4)
        halves(min(size, 710.5), terms)
        total = terms[0] - terms[2]
        large = total + (((terms[0] - total) - terms[2]) + (terms[1] - terms[3]))
        z = size * size
        third = registers(f64, 2)
        sixth_of_cube(size, third)
        start = size + third[0]
        small = start + (((size - start) + third[0]) + fma(size * z * z, polynomial(z, SINH), third[1]))
        value = small if size < 1.0 else large
        value = INFINITY if size > 710.4758600739439 else value
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 1e-300 else x[i]


@native
def cosh(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The hyperbolic cosine."""
    for i in range(n):
        size = abs(x[i])
        terms = registers(f64, 4)
        halves(min(size, 710.5), terms)
        total = terms[0] + terms[2]
        value = total + (((terms[0] - total) + terms[2]) + (terms[1] + terms[3]))
        value = INFINITY if size > 710.4758600739439 else value
        to[i] = value if x[i] == x[i] else x[i]


@device
def tanh_of(x: f64) -> f64:
    """tanh(x), for x from 0 to 20: (exp(2 x) - 1) / (exp(2 x) + 1)."""
    terms = registers(f64, 3)
    growth(2.0 * x, 0.0, terms)
    scale = power_of_two(whole(terms[2]))
    less = registers(f64, 2)
    two_sum(scale, -1.0, less)
    grown = registers(f64, 2)
    two_sum(less[0], scale * terms[0], grown)
    low = grown[1] + (scale * terms[1] + less[1])
    top = grown[0] + low
    top_low = (grown[0] - top) + low
    bottom = registers(f64, 2)
    two_sum(top, 2.0, bottom)
    value = top / bottom[0]
    return value + (fma(-value, bottom[0], top) + (top_low - value * (bottom[1] + top_low))) / bottom[0]


@native
def tanh(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The hyperbolic tangent."""
    for i in range(n):
        size = abs(x[i])
        value = tanh_of(min(size, 20.0))
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 1e-300 else x[i]


@device
def log_of_double(x: f64) -> f64:
    """log(2 x), for x from 1 on, which may be infinite."""
    logs = registers(f64, 2)
    log_of(max(min(x, LARGEST), 1.0), 0.0, logs)
    sums = registers(f64, 2)
    two_sum(LN2_FULL[0], logs[0], sums)
    return sums[0] + (sums[1] + (logs[1] + LN2_FULL[1]))


@native
def asinh(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The inverse of the hyperbolic sine."""
    for i in range(n):
        size = abs(x[i])
        a = min(size, 1e9)
        square = a * a
        square_low = fma(a, a, -square)
        sums = registers(f64, 2)
        two_sum(1.0, square, sums)
        root = sqrt(sums[0])
        root_low = (fma(-root, root, sums[0]) + (sums[1] + square_low)) / (2.0 * root)
        bottom = 1.0 + root
        bottom_low = (root - (bottom - 1.0) if root < 1e8 else 1.0 - (bottom - root)) + root_low
        more = square / bottom
        more_low = (fma(-more, bottom, square) + (square_low - more * bottom_low)) / bottom
        two_sum(a, more, sums)
        value = log1p_of(sums[0], sums[1] + more_low)
        value = log_of_double(size) if size > 1e8 else value
        value = INFINITY if size == INFINITY else value
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 1e-160 else x[i]


@native
def acosh(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The inverse of the hyperbolic cosine."""
    for i in range(n):
        t = min(x[i], 1e9) - 1.0
        square = t * t
        square_low = fma(t, t, -square)
        sums = registers(f64, 2)
        two_sum(2.0 * t, square, sums)
        root = sqrt(sums[0])
        root_low = (fma(-root, root, sums[0]) + (sums[1] + square_low)) / (2.0 * root) if root > 0.0 else f64(0)
        two_sum(t, root, sums)
        value = log1p_of(sums[0], sums[1] + root_low)
        value = log_of_double(x[i]) if x[i] > 1e8 else value
        value = INFINITY if x[i] == INFINITY else value
        to[i] = value if x[i] >= 1.0 else NAN


@native
def atanh(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The inverse of the hyperbolic tangent."""
    for i in range(n):
        size = abs(x[i])
        a = size if size < 1.0 else f64(0.5)
        bottom = 1.0 - a
        bottom_low = (1.0 - bottom) - a
        ratio = 2.0 * a / bottom
        ratio_low = (fma(-ratio, bottom, 2.0 * a) - ratio * bottom_low) / bottom
        value = 0.5 * log1p_of(ratio, ratio_low)
        value = INFINITY if size == 1.0 else value
        value = NAN if size > 1.0 else value
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 1e-17 else x[i]
