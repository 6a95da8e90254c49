"""Double-double arithmetic: polynomials, powers of two, and the exponential and logarithm of sums of two floats.

A double-double is the unevaluated sum of a float and a correction of about half a unit in its last place, or less.
"""

import math

from ..language.functions import device
from ..language.hints import Const, Registers, f64, i64
from ..language.intrinsics import bitcast, constant, fma, registers, unroll
from .coefficients import ATANH, EXP, LN2, LOG2_E, SIXTH, TWO_THIRDS

ROUNDING = 6755399441055744.0
"""1.5 * 2**52: adding it to a float of up to 2**51 rounds it to an integer, stored in the low bits of the sum."""
ROUNDING_BITS = 0x4338000000000000
INFINITY, NAN = math.inf, math.nan
ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
SMALLEST_NORMAL, LARGEST = 2.0**-1022, 1.7976931348623157e308
HUGE, TINY = 2.0**500, 2.0**-500
"""Squares and quotients of numbers in this range are normal numbers."""
UP, DOWN = 2.0**600, 2.0**-600
"""Factors that move smaller and larger numbers into this range."""


@device
def polynomial(x: f64, C: Const) -> f64:
    """C[0] + C[1] * x + C[2] * x**2 ..."""
    table = constant(f64, C)
    value = table[len(C) - 1]
    for k in unroll(range(len(C) - 1)):
        value = fma(value, x, table[len(C) - 2 - k])
    return value


@device
def power_of_two(n: i64) -> f64:
    """2**n, for exponents n of normal numbers."""
    return bitcast(f64, (n + 1023) << 52)


@device
def scaled(x: f64, n: i64) -> f64:
    """x * 2**n, n from -2000 to 2000: rounded once if |x| is at least 1 / 4 and no step overflows."""
    half = n >> 1
    return x * power_of_two(half) * power_of_two(n - half)


@device
def two_sum(a: f64, b: f64, to: Registers[f64]) -> None:
    """a + b = to[0] + to[1]."""
    total = a + b
    of_b = total - a
    to[1] = (a - (total - of_b)) + (b - of_b)
    to[0] = total


@device
def sixth_of_cube(x: f64, to: Registers[f64]) -> None:
    """x**3 / 6 = to[0] + to[1]."""
    square = x * x
    square_low = fma(x, x, -square)
    cube = x * square
    cube_low = fma(x, square, -cube) + x * square_low
    to[0] = cube * SIXTH[0]
    to[1] = fma(cube, SIXTH[0], -to[0]) + (cube * SIXTH[1] + cube_low * SIXTH[0])


@device
def growth(high: f64, low: f64, to: Registers[f64]) -> None:
    """exp(r) - 1 = to[0] + to[1] and n = to[2], where high + low = r + n * ln(2), |r| <= ln(2) / 2. The argument is clamped to 800."""
    limited = min(max(high, -800.0), 800.0)
    more = low if limited == high else 0.0
    n = fma(limited, LOG2_E[0], ROUNDING) - ROUNDING
    first = fma(-n, LN2[0], limited)
    near = fma(-n, LN2[1], first)
    near_low = fma(-n, LN2[1], first - near) + more
    r = near + near_low
    r_low = (near - r) + near_low
    square = r * r
    half = 0.5 * square
    half_low = 0.5 * fma(r, r, -square)
    to[0] = r + half
    to[1] = ((r - to[0]) + half) + (half_low + fma(r * square, polynomial(r, EXP), fma(r, r_low, r_low)))
    to[2] = n


@device
def whole(n: f64) -> i64:
    """Return an integral float of up to 2**51 as an integer."""
    return bitcast(i64, n + ROUNDING) - ROUNDING_BITS


@device
def real(n: i64) -> f64:
    """Return an integer of up to 2**51 as a float."""
    return bitcast(f64, n + ROUNDING_BITS) - ROUNDING


@device
def one_more(high: f64, low: f64, to: Registers[f64]) -> None:
    """1 + high + low = to[0] + to[1], for |high| < 1."""
    to[0] = 1.0 + high
    to[1] = (high - (to[0] - 1.0)) + low


@device
def exp_of(high: f64, low: f64) -> f64:
    """exp(high + low), rounded; high is not NaN."""
    terms = registers(f64, 3)
    growth(high, low, terms)
    one_more(terms[0], terms[1], terms)
    return scaled(terms[0] + terms[1], whole(terms[2]))


@device
def mantissa_log(x: f64, more: f64, to: Registers[f64]) -> None:
    """log(m) = to[0] + to[1] and e = to[2], where x + more = m * 2**e, x is normal and positive, and m is from sqrt(1 / 2)
    to sqrt(2). more: at most half a unit in the last place of x, or x is near 1."""
    bits = bitcast(i64, x)
    exponent = (bits - ROOT_HALF_BITS) >> 52
    m = bitcast(f64, bits - (exponent << 52))
    extra = more * power_of_two(0 - min(exponent, 1022))
    f = m - 1.0
    d = m + 1.0
    d_low = (m - (d - 1.0)) + extra
    s = f / d
    s_low = (fma(-s, d, f) + extra - s * d_low) / d
    # log(m) = 2 s + 2 s^3 / 3 + 2 s^5 ATANH, the second term as a double-double
    z = s * s
    z_low = fma(s, s, -z) + 2.0 * s * s_low
    cube = s * z
    cube_low = fma(s, z, -cube) + s * z_low + s_low * z
    third = cube * TWO_THIRDS[0]
    third_low = fma(cube, TWO_THIRDS[0], -third) + (cube * TWO_THIRDS[1] + cube_low * TWO_THIRDS[0])
    rest = 2.0 * cube * z * polynomial(z, ATANH)
    first = 2.0 * s
    high = first + third
    low = ((first - high) + third) + (third_low + 2.0 * s_low + rest)
    to[0] = high + low
    to[1] = (high - to[0]) + low
    to[2] = real(exponent)


@device
def log_of(x: f64, more: f64, to: Registers[f64]) -> None:
    """log(x + more) = to[0] + to[1], for x and more as in `mantissa_log`."""
    terms = registers(f64, 3)
    mantissa_log(x, more, terms)
    scale = terms[2] * LN2[0]
    total = scale + terms[0]
    low = ((scale - total) + terms[0] if scale != 0.0 else 0.0) + (terms[1] + terms[2] * LN2[1])
    to[0] = total + low
    to[1] = (total - to[0]) + low


@device
def normal(x: f64) -> f64:
    """Return a positive number, times 2**54 if it is subnormal."""
    return x * 18014398509481984.0 if x < SMALLEST_NORMAL else x
