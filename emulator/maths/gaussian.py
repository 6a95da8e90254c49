"""Error function, its complement, and the normal distribution."""

from ..language.functions import device
from ..language.hints import Global, Registers, f64, i64
from ..language.intrinsics import fma, registers
from ..native import native
from .coefficients import ERF, ERF_SLOPE, ERFC, ROOT_HALF
from .double_double import exp_of, polynomial

JOINT = 0.75
"""Below it the complement is 1 minus the error function."""


@device
def near_zero(a: f64, to: Registers[f64]) -> None:
    """erf(a) = to[0] + to[1], for a from 0 to 1."""
    z = a * a
    high = a * ERF_SLOPE[0]
    low = fma(a, ERF_SLOPE[0], -high) + fma(a * z, polynomial(z, ERF), a * ERF_SLOPE[1])
    to[0] = high + low
    to[1] = (high - to[0]) + low


@device
def tail(a: f64, exponential: f64) -> f64:
    """erfc(a), given exp(-a**2), for a from 0.71 on."""
    return exponential * (polynomial((a - 4.0) / (a + 4.0), ERFC) / fma(a, 2.0, 1.0))


@device
def complement(a: f64) -> f64:
    """erfc(a), for a from 0.71 on."""
    size = min(a, 30.0)
    square = size * size
    return tail(size, exp_of(-square, -fma(size, size, -square)))


@native
def erf(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The error function."""
    for i in range(n):
        size = abs(x[i])
        terms = registers(f64, 2)
        near_zero(min(size, 1.0), terms)
        value = terms[0] + terms[1] if size < 1.0 else 1.0 - complement(size)
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 0.0 else x[i]


@native
def erfc(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 - erf(x)."""
    for i in range(n):
        size = abs(x[i])
        terms = registers(f64, 2)
        near_zero(min(size, 1.0), terms)
        sign = f64(-1) if x[i] < 0.0 else f64(1)
        high = 1.0 - sign * terms[0]
        inner = high + (((1.0 - high) - sign * terms[0]) - sign * terms[1])
        outer = complement(size)
        outer = 2.0 - outer if x[i] < 0.0 else outer
        value = inner if size < JOINT else outer
        to[i] = value if x[i] == x[i] else x[i]


@native
def normcdf(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The cumulative distribution function of the standard normal distribution."""
    for i in range(n):
        size = min(abs(x[i]), 50.0)
        a = size * ROOT_HALF[0]
        a_low = fma(size, ROOT_HALF[0], -a) + size * ROOT_HALF[1]
        terms = registers(f64, 2)
        near_zero(min(a, 1.0), terms)
        sign = f64(-0.5) if x[i] < 0.0 else f64(0.5)
        rest = terms[1] + a_low * ERF_SLOPE[0] * (1.0 - a * a)
        high = 0.5 + sign * terms[0]
        inner = high + (((0.5 - high) + sign * terms[0]) + sign * rest)
        square = size * size
        outer = 0.5 * tail(a, exp_of(-0.5 * square, -0.5 * fma(size, size, -square)))
        outer = outer if x[i] < 0.0 else 1.0 - outer
        value = inner if a < JOINT else outer
        to[i] = value if x[i] == x[i] else x[i]
