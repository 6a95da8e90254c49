"""Approximate instructions of the special function unit, to the bit of an H200. Arguments are f32 values stored as f64.

A function is a quadratic polynomial for each segment of its argument (Oberman and Siu 2005), with exact products and one
truncation: C0 + C1 * x + C2 * s(x), for x the lower bits of the mantissa. s is a squarer whose folded partial products
below column 19 are not formed. `special_functions.json` has the coefficients, integers. Sums are exact in f64.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..documents import json_of, text_of
from ..language.functions import device
from ..language.hints import Const, Global, f32, f64, i32, i64, u64
from ..language.intrinsics import bitcast, constant, unroll
from ..language.maths import copysign, floor
from ..native import native
from .double_double import INFINITY, power_of_two, whole

SMALLEST = 2.0**-126
"""The smallest normal number of f32. Smaller arguments and results are zero."""
_ROWS: dict[str, Any] = json_of(text_of(Path(__file__).with_suffix(".json")))


def _scaled(names: Sequence[str], fraction_bits: int) -> tuple[float, ...]:
    """Return the coefficients of tables, row by row."""
    return tuple(c * 2.0**-fraction_bits for name in names for row in _ROWS[name] for c in row)


RCP = _scaled(["rcp"], 39)
RSQ = _scaled(["rsq1", "rsq2"], 40)
SQRT = _scaled(["sqrt1", "sqrt2"], 40)
EX2 = _scaled(["ex2"], 38)
LG2 = _scaled(["lg2"], 2)
SIN = _scaled(["sin"], 37)
TANH = tuple(c for c0, c1, c2, bits in _ROWS["tanh"] for c in (c0 * 2.0**-26, c1 * 2.0**-bits, c2 * 2.0**-bits))
TANH_FIRST: tuple[int, ...] = tuple(_ROWS["tanh_first"])
TANH_DROPPED = (23, 23, 23, 22, 22, 21, 21, 21, 20, 19, 20)
TANH_SHIFTS = (6, 6, 6, 5, 5, 4, 4, 4, 3, 2, 3)
"""By exponent from 2^-8 on: the first segment, and the bits of the mantissa below the segment and below x."""


@device
def rounded(x: f64) -> f64:
    """Round to f32."""
    return f64(f32(x))


@device
def not_a_number() -> f64:
    """The NaN of the unit, 0x7fffffff as f32."""
    return bitcast(f64, u64(0x7FFFFFFFE0000000))


@device
def truncated(x: f64) -> f64:
    """Truncate to the 24 bits of an f32 significand."""
    return bitcast(f64, bitcast(u64, x) & 0xFFFFFFFFE0000000)


@device
def flushed(x: f64) -> f64:
    return copysign(0.0, x) if abs(x) < SMALLEST else x


@device
def exponent_of(x: f64) -> i64:
    return ((bitcast(i64, x) >> 52) & 2047) - 1023


@device
def mantissa_of(x: f64) -> i32:
    """The 23 bits of f32."""
    return i32((bitcast(i64, x) >> 29) & 0x7FFFFF)


@device
def squared(x: i32) -> i32:
    """The square of 17 bits, divided by 2^19, without the partial products below column 19."""
    low = x & 511
    high = x >> 9
    total = (high * high) >> 1
    for k in unroll(range(1, 8)):
        total += (low >> (9 - k)) & (0 - ((high >> k) & 1))
    return total


@device
def quadratic(C: Const, row: i32, x: i32, square: i32) -> f64:
    table = constant(f64, C)
    return table[3 * row] + f64(x) * table[3 * row + 1] + f64(square) * table[3 * row + 2]


@device
def segmented(C: Const, mantissa: i32) -> f64:
    """Evaluate a polynomial in segments of 17 bits."""
    x = mantissa & 0x1FFFF
    return quadratic(C, mantissa >> 17, x, squared(x))


@device
def significand_reciprocal(mantissa: i32) -> f64:
    """1 / (1 + mantissa / 2^23)."""
    x = mantissa & 0xFFFF
    value = truncated(quadratic(RCP, mantissa >> 16, x, squared(x << 1)))
    return 1.0 if mantissa == 0 else value


@device
def rcp(x: f64) -> f64:
    """1 / x."""
    size = abs(x)
    value = significand_reciprocal(mantissa_of(x)) * power_of_two(-exponent_of(x))
    value = value if value >= SMALLEST else 0.0
    value = INFINITY if size < SMALLEST else value
    value = 0.0 if size == INFINITY else value
    return copysign(value, x) if x == x else not_a_number()


@device
def root_reciprocal(mantissa: i32, exponent: i64) -> f64:
    """1 / sqrt(1 + mantissa / 2^23), divided by sqrt(2) for odd exponents, for normal results."""
    odd = i32(exponent & 1)
    value = truncated(segmented(RSQ, mantissa + (odd << 23)))
    return 1.0 if mantissa == 0 and odd == 0 else value


@device
def rsq(x: f64) -> f64:
    """1 / sqrt(x)."""
    exponent = exponent_of(x)
    value = root_reciprocal(mantissa_of(x), exponent) * power_of_two(-(exponent >> 1))
    value = 0.0 if x == INFINITY else value
    value = not_a_number() if x < 0.0 or x != x else value
    return copysign(INFINITY, x) if abs(x) < SMALLEST else value


@device
def root(x: f64) -> f64:
    """sqrt(x)."""
    exponent = exponent_of(x)
    value = truncated(segmented(SQRT, mantissa_of(x) + (i32(exponent & 1) << 23))) * power_of_two(exponent >> 1)
    value = INFINITY if x == INFINITY else value
    value = not_a_number() if x < 0.0 or x != x else value
    return copysign(0.0, x) if abs(x) < SMALLEST else value


@device
def ex2(x: f64) -> f64:
    """2^x: the argument in fixed point with 23 fraction bits; a negative one is complemented."""
    size = abs(x)
    fixed = i32(whole(floor(min(size, 128.0) * 2.0**23)))
    if x < 0.0:
        fixed = 0 - fixed if (fixed & 0x7FFFFF) == 0 else ~fixed
    value = truncated(segmented(EX2, fixed & 0x7FFFFF)) * power_of_two(i64(fixed >> 23))
    value = value if value >= SMALLEST else 0.0
    edge = 0.0 if x < 0.0 else f64(INFINITY)
    value = edge if size >= 128.0 else value
    value = 1.0 if size < SMALLEST else value
    return value if x == x else not_a_number()


@device
def lg2(x: f64) -> f64:
    """log2(x): a sum with 36 fraction bits; a negative one is complemented."""
    total = floor(segmented(LG2, mantissa_of(x))) + f64(i32(exponent_of(x))) * 2.0**36
    size = total if total >= 0.0 else -1.0 - total
    value = copysign(truncated(size) * 2.0**-36, total)
    value = 0.0 if x == 1.0 else value
    value = INFINITY if x == INFINITY else value
    value = not_a_number() if x < 0.0 or x != x else value
    return -INFINITY if abs(x) < SMALLEST else value


@device
def sine(x: f64, quadrant: i32) -> f64:
    """The sine of x periods, with 25 fraction bits, plus quarters of a period."""
    size = abs(x)
    periods = i32(whole(floor((size - floor(size)) * 2.0**25)))
    quarter = (periods >> 23) + quadrant
    argument = ~periods if (quarter & 1) != 0 else periods
    value = truncated(segmented(SIN, argument & 0x7FFFFF))
    value = value if (quarter & 2) == 0 else -value
    value = -value if quadrant == 0 and bitcast(i64, x) < 0 else value
    return value if size < INFINITY else not_a_number()


@device
def tanh(x: f64) -> f64:
    size = abs(x)
    mantissa = mantissa_of(x)
    octave = i32(min(max(exponent_of(x) + 8, i64(0)), i64(10)))
    first = constant(i32, TANH_FIRST)
    dropped = constant(i32, TANH_DROPPED)
    shifts = constant(i32, TANH_SHIFTS)
    row = first[octave] + (mantissa >> dropped[octave])
    low = (mantissa >> shifts[octave]) & 0x1FFFF
    value = copysign(truncated(quadratic(TANH, row, low, squared(low))), x)
    value = x if size < 2.0**-8 else value
    value = copysign(1.0, x) if size >= 8.0 else value
    return value if x == x else not_a_number()


# ------------------------------------------------------------------ instructions
@native
def mufu_rcp(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 / x."""
    for i in range(n):
        to[i] = rcp(x[i])


@native
def mufu_rsq(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 / sqrt(x)."""
    for i in range(n):
        to[i] = rsq(x[i])


@native
def mufu_sqrt(x: Global[f64], to: Global[f64], n: i64) -> None:
    """sqrt(x)."""
    for i in range(n):
        to[i] = root(x[i])


@native
def mufu_ex2(x: Global[f64], to: Global[f64], n: i64) -> None:
    """2^x."""
    for i in range(n):
        to[i] = ex2(x[i])


@native
def mufu_lg2(x: Global[f64], to: Global[f64], n: i64) -> None:
    """log2(x)."""
    for i in range(n):
        to[i] = lg2(x[i])


@native
def mufu_sin(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The sine of x periods."""
    for i in range(n):
        to[i] = sine(x[i], 0)


@native
def mufu_cos(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The cosine of x periods."""
    for i in range(n):
        to[i] = sine(x[i], 1)


@native
def mufu_tanh(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The hyperbolic tangent."""
    for i in range(n):
        to[i] = tanh(x[i])


@native
def mufu_rcp64h(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 / x of the upper words of f64 numbers; a NaN is 0x7fffffff."""
    for i in range(n):
        bits = bitcast(i64, x[i])
        exponent = (bits >> 52) & 2047
        mantissa = i32((bits >> 29) & 0x7FFFF8)
        significand = bitcast(i64, significand_reciprocal(mantissa))
        result = significand + ((1023 - exponent) << 52)
        result = result if result >= 1 << 52 else i64(0)
        result = i64(2047) << 52 if exponent == 0 else result
        result = i64(0) if exponent == 2047 else result
        result = (result & ~0xFFFFFFFF) | (bits & (i64(1) << 63))
        result = i64(0x7FFFFFFF) << 32 if exponent == 2047 and mantissa != 0 else result
        to[i] = bitcast(f64, result)


@native
def mufu_rsq64h(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 / sqrt(x) of the upper words of f64 numbers; a NaN is 0x7fffffff."""
    for i in range(n):
        bits = bitcast(i64, x[i])
        exponent = (bits >> 52) & 2047
        mantissa = i32((bits >> 29) & 0x7FFFF8)
        significand = bitcast(i64, root_reciprocal(mantissa, exponent - 1023))
        result = (significand - (((exponent - 1023) >> 1) << 52)) & ~0xFFFFFFFF
        result = i64(0) if exponent == 2047 else result
        result = i64(0x7FFFFFFF) << 32 if bits < 0 or (exponent == 2047 and mantissa != 0) else result
        result = (bits & (i64(1) << 63)) | (i64(2047) << 52) if exponent == 0 else result
        to[i] = bitcast(f64, result)
