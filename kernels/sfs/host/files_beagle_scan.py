"""Native Beagle scanner for lines with exactly convertible numbers. Other lines are left to the full reader.

A number of at most 2^53, times or divided by a power of ten up to 10^22, is the nearest double after one rounding:
the result of Python's float.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Global, f64, i64, u8, u64
from simtbed.native import native

from ...files.text_loops import line_end

AT, LINES, SITES, STOPPED = range(4)
"""Indices of the scan state: bytes and lines read, number of sites, reason of the stop."""
STATE_SIZE = 4
END, FULL, UNUSUAL = range(3)
"""Reasons of a stop: end of the data; no capacity for another site; a line of another form."""
NAMES = 3
"""Columns before the likelihoods."""
MOST_EXACT = 1 << 53
"""Integers up to this value are doubles."""
MOST_POWER = 22
"""Largest exact power of ten."""


@st.device
def blank(letter: u8) -> bool:
    """Return whether the character separates fields."""
    return letter == 32 or 9 <= letter <= 13


@st.device
def number_end(data: Global[u8], p: i64, last: i64, to: Global[f64], index: i64) -> i64:
    """Read a decimal number; return its end, or -1 if it has another form or is not exact."""
    minus = p < last and data[p] == 45
    p += i64(p < last and (data[p] == 45 or data[p] == 43))
    value = u64(0)
    digits = i64(0)
    decimals = i64(0)
    point = False
    while p < last and (48 <= data[p] <= 57 or (data[p] == 46 and not point)):
        if data[p] == 46:
            point = True
        else:
            value = value * 10 + u64(data[p]) - 48
            digits += 1
            decimals += i64(point)
            if value > MOST_EXACT:
                return i64(-1)
        p += 1
    if digits == 0:
        return i64(-1)
    power = -decimals
    if p < last and (data[p] | 32) == 101:
        p += 1
        down = p < last and data[p] == 45
        p += i64(p < last and (data[p] == 45 or data[p] == 43))
        first = p
        exponent = i64(0)
        while p < last and 48 <= data[p] <= 57 and p < first + 4:
            exponent = exponent * 10 + i64(data[p]) - 48
            p += 1
        if p == first:
            return i64(-1)
        power += -exponent if down else exponent
    if abs(power) > MOST_POWER or (p < last and not blank(data[p])):
        return i64(-1)
    scale = f64(1)
    for _tens in range(abs(power)):
        scale *= 10
    state = f64(value) / scale if power < 0 else f64(value) * scale
    to[index] = -state if minus else state
    return p


@native
def scan_markers(
    data: Global[u8],
    length: i64,
    individuals: i64,
    capacity: i64,
    likelihoods: Global[f64],
    markers: Global[i64],
    lines: Global[i64],
    state: Global[i64],
) -> None:
    """Read lines from data[state[AT]] on as sites from state[SITES] on. Blank lines are skipped.

    likelihoods: three per individual. markers: start and end of the marker of each site. lines: number of preceding lines.
    """
    at = state[AT]
    line = state[LINES]
    site = state[SITES]
    state[STOPPED] = END
    while at < length:
        end = line_end(data, at, length)
        p = at
        while p < end and blank(data[p]):
            p += 1
        if p < end:
            if site == capacity:
                state[STOPPED] = FULL
                break
            column = i64(0)
            while column < NAMES and p < end:
                first = p
                while p < end and not blank(data[p]):
                    p += 1
                if column == 0:
                    markers[2 * site] = first
                    markers[2 * site + 1] = p
                while p < end and blank(data[p]):
                    p += 1
                column += 1
            value = i64(0)
            while 0 <= p < end and value < 3 * individuals:
                p = number_end(data, p, end, likelihoods, site * 3 * individuals + value)
                while 0 <= p < end and blank(data[p]):
                    p += 1
                value += 1
            if p < end or value < 3 * individuals:
                state[STOPPED] = UNUSUAL
                break
            lines[site] = line
            site += 1
        line += 1
        at = end + 1
    state[AT] = at
    state[LINES] = line
    state[SITES] = site
