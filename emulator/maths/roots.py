"""Cube roots, and the Euclidean length of a vector."""

from ..language.functions import device
from ..language.hints import Global, Registers, f64, i64
from ..language.intrinsics import bitcast, fma, registers, sqrt
from ..native import native
from .coefficients import CBRT
from .double_double import (
    DOWN,
    HUGE,
    INFINITY,
    SMALLEST_NORMAL,
    TINY,
    UP,
    normal,
    polynomial,
    power_of_two,
    real,
    whole,
)


@device
def cube_root(x: f64, to: Registers[f64]) -> None:
    """cbrt(m) = to[0] + to[1] and q = to[2], where x = m * 2**(3 q), m is from 1 to 8, and x is positive and finite."""
    big = normal(x)
    bits = bitcast(i64, big)
    exponent = real((bits >> 52) - 1023)
    third = whole((exponent - 1.0) * 0.3333333333333333)
    m = bitcast(f64, bits - ((3 * third) << 52))
    y = polynomial(m, CBRT)
    for _ in range(2):
        cube = y * y * y
        y = y * (cube + 2.0 * m) / (2.0 * cube + m)
    square = y * y
    square_low = fma(y, y, -square)
    cube = square * y
    cube_low = fma(square, y, -cube) + square_low * y
    to[1] = ((m - cube) - cube_low) / (3.0 * square)
    to[0] = y
    to[2] = real(third) - (f64(18) if x < SMALLEST_NORMAL else f64(0))


@device
def finite(x: f64) -> f64:
    """|x|, or 1 for 0, infinity and NaN."""
    size = abs(x)
    return size if size > 0.0 and size < INFINITY else f64(1)


@native
def cbrt(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The cube root."""
    for i in range(n):
        terms = registers(f64, 3)
        cube_root(finite(x[i]), terms)
        value = (terms[0] + terms[1]) * power_of_two(whole(terms[2]))
        value = -value if x[i] < 0.0 else value
        to[i] = value if abs(x[i]) > 0.0 and abs(x[i]) < INFINITY else x[i]


@native
def rcbrt(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 over the cube root."""
    for i in range(n):
        terms = registers(f64, 3)
        cube_root(finite(x[i]), terms)
        y = 1.0 / terms[0]
        value = fma(y, fma(-y, terms[0], 1.0) - y * terms[1], y) * power_of_two(0 - whole(terms[2]))
        value = -value if x[i] < 0.0 else value
        to[i] = value if abs(x[i]) > 0.0 and abs(x[i]) < INFINITY else 1.0 / x[i]


@native
def hypot(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """sqrt(x**2 + y**2); infinite if an argument is."""
    for i in range(n):
        large = max(abs(x[i]), abs(y[i]))
        scale = f64(DOWN) if large > HUGE else f64(UP) if large < TINY else f64(1)
        back = f64(UP) if large > HUGE else f64(DOWN) if large < TINY else f64(1)
        a = large * scale
        b = min(abs(x[i]), abs(y[i])) * scale
        first = a * a
        second = b * b
        total = first + second
        rest = ((first - total) + second) + (fma(a, a, -first) + fma(b, b, -second))
        root = sqrt(total)
        value = (root + (fma(-root, root, total) + rest) / (2.0 * root)) * back
        value = large if large == 0.0 else value
        value = value if x[i] == x[i] and y[i] == y[i] else x[i] + y[i]
        to[i] = INFINITY if large == INFINITY else value
