"""Trigonometric functions with argument reduction to pi / 4 for any angle."""

from ..language.bits import mulhi
from ..language.functions import device
from ..language.hints import Global, Registers, f64, i64, u64
from ..language.intrinsics import bitcast, constant, fma, registers
from ..native import native
from .coefficients import COS, HALF_PI, SIN, TWO_OVER_PI
from .double_double import INFINITY, ROUNDING, polynomial, sixth_of_cube, two_sum

TO_53, TO_64 = 2.0**-53, 2.0**-64
NEAR = 2.0**28
"""Largest angle reduced precisely with pi / 2 as a sum of three floats."""


@device
def reduced_near(x: f64, to: Registers[f64]) -> None:
    """x - n * pi / 2 = to[0] + to[1] of at most pi / 4, for |x| up to NEAR, and to[2], whose low bits are n's."""
    shifted = fma(x, 0.6366197723675814, ROUNDING)
    n = shifted - ROUNDING
    first = fma(-n, HALF_PI[0], x)
    product = n * HALF_PI[1]
    product_low = fma(n, HALF_PI[1], -product)
    sums = registers(f64, 2)
    two_sum(first, -product, sums)
    low = sums[1] - (product_low + n * HALF_PI[2])
    to[0] = sums[0] + low
    to[1] = (sums[0] - to[0]) + low
    to[2] = shifted


@device
def reduced_far(x: f64, to: Registers[f64]) -> None:
    """Return the result of `reduced_near` for finite x above NEAR: the mantissa times the relevant bits of 2 / pi."""
    table = constant(u64, TWO_OVER_PI)
    bits = bitcast(u64, abs(x))
    mantissa = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000
    exponent = i64(bits >> 52) - 1075
    # the 192 bits after bit `skipped` of the table; earlier bits contribute multiples of 2 pi
    skipped = exponent + 62
    place = skipped >> 6
    shift = u64(skipped & 63)
    back = 63 - shift
    first = (table[place] << shift) | ((table[place + 1] >> 1) >> back)
    second = (table[place + 1] << shift) | ((table[place + 2] >> 1) >> back)
    third = (table[place + 2] << shift) | ((table[place + 3] >> 1) >> back)
    middle = mantissa * second
    carried = mulhi(mantissa, third)
    low = middle + carried
    high = mantissa * first + mulhi(mantissa, second) + (u64(1) if low < carried else u64(0))
    # |x| * 2 / pi modulo 4, with the binary point below the upper two bits of high
    quarters = high >> 62
    fraction = (high << 2) | (low >> 62)
    fraction_low = low << 2
    up = fraction >> 63
    n = quarters + up
    signed = bitcast(i64, fraction)
    ratio = f64(signed >> 11) * TO_53
    ratio_low = (f64(signed & 2047) + f64(fraction_low >> 11) * TO_53) * TO_64
    angle = ratio + ratio_low
    angle_low = (ratio - angle) + ratio_low
    r = angle * HALF_PI[0]
    r_low = fma(angle, HALF_PI[0], -r) + (angle * HALF_PI[1] + angle_low * HALF_PI[0])
    below = x < 0.0
    to[0] = -r if below else r
    to[1] = -r_low if below else r_low
    to[2] = bitcast(f64, 0 - n if below else n)


@device
def sine(r: f64, r_low: f64, to: Registers[f64]) -> None:
    """sin(r + r_low) = to[0] + to[1]."""
    z = r * r
    third = registers(f64, 2)
    sixth_of_cube(r, third)
    high = r - third[0]
    rest = fma(r * z * z, polynomial(z, SIN), r_low * fma(z, -0.5, 1.0)) - third[1]
    low = ((r - high) - third[0]) + rest
    to[0] = high + low
    to[1] = (high - to[0]) + low


@device
def cosine(r: f64, r_low: f64, to: Registers[f64]) -> None:
    """cos(r + r_low) = to[0] + to[1]."""
    z = r * r
    z_low = fma(r, r, -z)
    half = 0.5 * z
    high = 1.0 - half
    low = ((1.0 - high) - half) + fma(z * z, polynomial(z, COS), fma(z_low, -0.5, -(r * r_low)))
    to[0] = high + low
    to[1] = (high - to[0]) + low


@device
def of_quarter(terms: Registers[f64], quarters: i64) -> f64:
    """Sine of a reduced angle plus `quarters` * pi / 2."""
    quarter = bitcast(i64, terms[2]) + quarters
    s = registers(f64, 2)
    c = registers(f64, 2)
    sine(terms[0], terms[1], s)
    cosine(terms[0], terms[1], c)
    value = c[0] if (quarter & 1) != 0 else s[0]
    return -value if (quarter & 2) != 0 else value


@device
def tangent(terms: Registers[f64]) -> f64:
    """Tangent of a reduced angle."""
    s = registers(f64, 2)
    c = registers(f64, 2)
    sine(terms[0], terms[1], s)
    cosine(terms[0], terms[1], c)
    odd = (bitcast(i64, terms[2]) & 1) != 0
    top = -c[0] if odd else s[0]
    top_low = -c[1] if odd else s[1]
    bottom = s[0] if odd else c[0]
    bottom_low = s[1] if odd else c[1]
    value = top / bottom
    return value + (fma(-value, bottom, top) + (top_low - value * bottom_low)) / bottom


@device
def is_far(x: f64) -> bool:
    return abs(x) > NEAR and abs(x) < INFINITY


@native
def sin(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The sine."""
    for i in range(n):
        terms = registers(f64, 3)
        reduced_near(x[i], terms)
        to[i] = of_quarter(terms, i64(0)) if x[i] != 0.0 else x[i]
    for i in range(n):
        if is_far(x[i]):
            far = registers(f64, 3)
            reduced_far(x[i], far)
            to[i] = of_quarter(far, i64(0))


@native
def cos(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The cosine."""
    for i in range(n):
        terms = registers(f64, 3)
        reduced_near(x[i], terms)
        to[i] = of_quarter(terms, i64(1))
    for i in range(n):
        if is_far(x[i]):
            far = registers(f64, 3)
            reduced_far(x[i], far)
            to[i] = of_quarter(far, i64(1))


@native
def tan(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The tangent."""
    for i in range(n):
        terms = registers(f64, 3)
        reduced_near(x[i], terms)
        to[i] = tangent(terms) if x[i] != 0.0 else x[i]
    for i in range(n):
        if is_far(x[i]):
            far = registers(f64, 3)
            reduced_far(x[i], far)
            to[i] = tangent(far)
