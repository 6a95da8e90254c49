"""Exact remainders, and composition and decomposition of floats."""

from ..language.functions import device
from ..language.hints import Global, f64, i32, i64, u64
from ..language.intrinsics import bitcast
from ..native import native
from .double_double import INFINITY, NAN, SMALLEST_NORMAL, normal, power_of_two, real, scaled

FRACTION = (1 << 52) - 1
ONE_BITS = 0x3FF0000000000000
SMALL = 2.0**-1000


@device
def mantissa(bits: u64) -> u64:
    """Return the mantissa of a float's bits: its magnitude is this times 2**(exponent(bits) - 1075)."""
    return (bits & FRACTION) | (u64(FRACTION + 1) if bits > FRACTION else u64(0))


@device
def exponent(bits: u64) -> i64:
    return max(i64(bits >> 52), 1)


@device
def rest(a: f64, b: f64, doubled: u64) -> f64:
    """a modulo b * 2**doubled, for finite a >= 0, finite b > 0 and doubled of 0 or 1."""
    top = bitcast(u64, a)
    bottom = bitcast(u64, b)
    left = exponent(top) - exponent(bottom)
    if left < 0:
        return a
    divisor = mantissa(bottom) << doubled
    residue = mantissa(top) % divisor
    while left > 0 and residue != 0:
        step = min(left, 10)
        residue = (residue << u64(step)) % divisor
        left -= step
    scale = exponent(bottom) - 1075
    return f64(i64(residue)) * power_of_two(scale >> 1) * power_of_two(scale - (scale >> 1))


@native
def fmod(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """x - y * trunc(x / y)."""
    for i in range(n):
        value = f64(NAN)
        if abs(x[i]) < INFINITY and abs(y[i]) > 0.0:
            value = abs(x[i]) if abs(y[i]) == INFINITY else rest(abs(x[i]), abs(y[i]), u64(0))
        to[i] = -value if bitcast(i64, x[i]) < 0 else value


@native
def remainder(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """x - y * rint(x / y)."""
    for i in range(n):
        value = f64(NAN)
        if abs(x[i]) < INFINITY and abs(y[i]) > 0.0:
            b = abs(y[i])
            value = abs(x[i]) if b == INFINITY else rest(abs(x[i]), b, u64(1))
            past = value + value > b if b < SMALL else value > 0.5 * b
            value = value - b if past else value
            past = past and (value + value >= b if b < SMALL else value >= 0.5 * b)
            value = value - b if past else value
        to[i] = -value if bitcast(i64, x[i]) < 0 else value


@native
def ldexp(power: Global[i32], x: Global[f64], to: Global[f64], n: i64) -> None:
    """x * 2**power, rounded once."""
    for i in range(n):
        size = abs(x[i])
        bits = bitcast(i64, normal(size))
        own = (bits >> 52) - (i64(1077) if size < SMALLEST_NORMAL else i64(1023))
        fraction = bitcast(f64, (bits & FRACTION) | ONE_BITS)
        target = own + min(max(i64(power[i]), -3000), 3000)
        value = scaled(fraction, min(max(target, -1200), 1200))
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 0.0 and size < INFINITY else x[i]


@native
def frexp_fraction(x: Global[f64], to: Global[f64], n: i64) -> None:
    """x scaled by a power of two to a magnitude from 1 / 2 to 1."""
    for i in range(n):
        size = abs(x[i])
        value = bitcast(f64, (bitcast(i64, normal(size)) & FRACTION) | (ONE_BITS - (1 << 52)))
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 0.0 and size < INFINITY else x[i]


@native
def frexp_exponent(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The exponent for `frexp_fraction`; 0 for 0, infinity and NaN."""
    for i in range(n):
        size = abs(x[i])
        bits = bitcast(i64, normal(size))
        value = real((bits >> 52) - (i64(1076) if size < SMALLEST_NORMAL else i64(1022)))
        to[i] = value if size > 0.0 and size < INFINITY else f64(0)
