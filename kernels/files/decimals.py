"""Native formatting of doubles as by '%.10g': the nearest number of ten significant digits, ties to even.

A double m 2^e is multiplied by 10^q, known to 128 bits, so that the product has ten digits before the decimal point. The
product of 192 bits is smaller than the exact one by less than 2^64. The error matters only if the 64 bits above are all ones
just below a tie; the function reports such a case. Powers from 0 to 55 are exact in 128 bits.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Global, f64, i64, u8, u64

from .text_loops import decimal

DIGITS = 10
MIN_POWER, MAX_POWER = -300, 334
"""Range of the powers of ten."""
MAX_EXACT_POWER = 55
MAX_CHARACTERS = 17
"""Maximum length of a formatted number."""
UNDECIDED = -1


class Powers(NamedTuple):
    """10^q for q = MIN_POWER...: (high 2^64 + low) 2^exponent, truncated."""

    high: Global[u64]
    low: Global[u64]
    exponent: Global[i64]


@cache
def power_table() -> Powers:
    """Return the table, computed once."""
    rows = []
    for q in range(MIN_POWER, MAX_POWER + 1):
        whole = 10**q if q >= 0 else (1 << 1200) // 10**-q
        exponent = whole.bit_length() - 128
        mantissa = whole >> exponent if exponent >= 0 else whole << -exponent
        rows.append((mantissa >> 64, mantissa & (1 << 64) - 1, exponent - (0 if q >= 0 else 1200)))
    high, low, exponents = zip(*rows, strict=True)
    return Powers._make((np.array(high, np.uint64), np.array(low, np.uint64), np.array(exponents, np.int64)))


@st.device
def ten_digits(number: f64, powers: Powers, to: Global[u8], at: i64) -> i64:
    """Write a number; return its end, or UNDECIDED."""
    bits = st.bitcast(u64, number)
    if bits >> 63 != 0 and number == number:
        to[at] = 45
        at += 1
    if bits << 1 == 0:
        to[at] = 48
        return at + 1
    biased = i64(bits >> 52 & 2047)
    m = bits & ((u64(1) << 52) - 1)
    if biased == 2047:
        to[at] = u8(105) if m == 0 else u8(110)
        to[at + 1] = u8(110) if m == 0 else u8(97)
        to[at + 2] = u8(102) if m == 0 else u8(110)
        return at + 3
    m = m | u64(1) << 52 if biased > 0 else m
    zeros = i64(st.clz(m))
    m <<= u64(zeros)
    e = max(biased, i64(1)) - 1075 - zeros
    d = i64(st.floor(f64(e + 63) * 0.3010299956639812))  # the number is in [2^(e + 63), 2^(e + 64))
    digits = u64(0)
    while True:
        q = DIGITS - 1 - d - MIN_POWER
        cut = -(e + powers.exponent[q]) - 128
        middle = m * powers.high[q] + st.mulhi(m, powers.low[q])
        top = st.mulhi(m, powers.high[q]) + (u64(1) if middle < st.mulhi(m, powers.low[q]) else u64(0))
        digits = top >> u64(cut)
        if digits < 10_000_000_000:
            rest = top & ((u64(1) << u64(cut)) - 1)
            half = u64(1) << u64(cut - 1)
            exact = q + MIN_POWER >= 0 and q + MIN_POWER <= MAX_EXACT_POWER
            if not exact and rest == half - 1 and middle + 1 == 0:
                return i64(UNDECIDED)
            tie = exact and rest == half and middle == 0 and m * powers.low[q] == 0
            if rest >= half and (not tie or digits & 1 == 1):
                digits += 1
            break
        d += 1
    if digits == 10_000_000_000:
        digits = u64(1_000_000_000)
        d += 1
    return _write_digits(digits, d, to, at)


@st.device
def _write_digits(digits: u64, d: i64, to: Global[u8], at: i64) -> i64:
    """Write ten digits without trailing zeros; the first digit has the weight 10^d."""
    count = i64(DIGITS)
    while digits % 10 == 0:
        digits //= 10
        count -= 1
    scientific = d < -4 or d >= DIGITS
    before = i64(1) if scientific else d + 1  # digits before the decimal point
    if before <= 0:
        to[at] = 48
        to[at + 1] = 46
        for zero in range(-before):
            to[at + 2 + zero] = 48
        at += 2 - before
        before = count
    for place in range(count, before):
        to[at + place] = 48
    point = i64(count > before)
    for back in range(count):
        place = count - 1 - back
        to[at + place + (point if place >= before else i64(0))] = u8(48 + digits % 10)
        digits //= 10
    if point == 1:
        to[at + before] = 46
    at += max(count, before) + point
    if scientific:
        to[at] = 101
        to[at + 1] = u8(45) if d < 0 else u8(43)
        to[at + 2] = 48
        at = decimal(abs(d), to, at + 2 + i64(abs(d) < 10))
    return at
