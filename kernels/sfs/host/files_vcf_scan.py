"""Native VCF scanner for lines of the usual form. Other lines are left to the full reader.

A usual line has two alleles, ASCII characters, the expected FORMAT, and three PL or GL numbers, or missing ones, per
sample. The results equal those of cyvcf2 to the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import simtbed as st
from simtbed import Global, Local, f32, f64, i64, u8
from simtbed.native import native

from ...files.text_loops import line_end, without_return

TEXT, PHRED, LOGARITHMS = range(3)
"""Kinds of FORMAT fields: ignored; the likelihoods, PL or GL."""
AT, LINES, SITES, STOPPED = range(4)
"""Indices of the scan state: bytes and lines read, number of sites, reason of the stop."""
STATE_SIZE = 4
END, FULL, UNUSUAL = range(3)
"""Reasons of a stop: end of the data; no capacity for another site; a line of another form."""
PLACES = 8
"""Elements per site: start and end of CHROM, ID, REF and ALT."""
COLUMNS = 9
"""Columns before the samples."""
MOST_DIGITS, MOST_SIGNIFICANT = 9, 15
"""Maximum digits of an integer (32 bits) and of a real number (exact in a double except for its power of ten)."""
TEN_TO_PHRED, TEN = -0.23025850929940458, 2.302585092994046
"""log(10) / -10 and log(10)."""


class ExpectedFormat(NamedTuple):
    """FORMAT of the usual lines: its text, the kinds of its fields and their number; and the number of samples."""

    text: Global[u8]
    length: i64
    kinds: Global[u8]
    fields: i64
    samples: i64


class SiteColumns(NamedTuple):
    """Columns of a batch of sites. logarithms: three of each sample minus their maximum, which is in `largest`; zeros if one is
    missing. places: start and end of the texts of a site. capacity: number of sites."""

    capacity: i64
    logarithms: Global[f64]
    largest: Global[f64]
    positions: Global[i64]
    places: Global[i64]


@native
def scan_sites(data: Global[u8], length: i64, expected: ExpectedFormat, sites: SiteColumns, state: Global[i64]) -> None:
    """Read lines from data[state[AT]] on as sites from state[SITES] on."""
    columns = st.local(i64, COLUMNS + 1)
    at = state[AT]
    line = state[LINES]
    site = state[SITES]
    state[STOPPED] = END
    while at < length:
        if site == sites.capacity:
            state[STOPPED] = FULL
            break
        end = line_end(data, at, length)
        last = without_return(data, at, end) if end < length else end
        position = _head(data, at, last, expected, columns)
        p = i64(-1)
        if position >= 0:
            p = _samples(data, columns[COLUMNS], last, expected, sites, site)
        if p != last:
            state[STOPPED] = UNUSUAL
            break
        sites.positions[site] = position
        for n in range(i64(2)):
            sites.places[site * PLACES + n] = columns[0] if n == 0 else columns[1] - 1
        for n in range(i64(3)):
            sites.places[site * PLACES + 2 + 2 * n] = columns[2 + n]
            sites.places[site * PLACES + 3 + 2 * n] = columns[3 + n] - 1
        site += 1
        line += 1
        at = end + 1
    state[AT] = at
    state[LINES] = line
    state[SITES] = site


@st.device
def _samples(data: Global[u8], p: i64, last: i64, expected: ExpectedFormat, sites: SiteColumns, site: i64) -> i64:
    """Read the samples of a line; return their end, or -1 if one is unusual."""
    numbers = st.local(f64, 4)
    good = True
    sample = i64(0)
    while good and sample < expected.samples:
        place = site * expected.samples + sample
        for n in range(i64(3)):
            sites.logarithms[3 * place + n] = 0
        sites.largest[place] = 0
        field = i64(0)
        more = True
        while good and more:
            kind = expected.kinds[field]
            p = _field(data, p, last, kind, numbers)
            good = p >= 0
            if good and kind >= PHRED:
                good = _put(numbers, kind, sites.logarithms, sites.largest, place)
            more = good and p < last and data[p] == 58
            if more:
                p += 1
                field += 1
                good = field < expected.fields
        sample += 1
        if good and sample < expected.samples:
            good = p < last and data[p] == 9
            p += 1
    return p if good else i64(-1)


@st.device
def _head(data: Global[u8], first: i64, last: i64, expected: ExpectedFormat, columns: Local[i64]) -> i64:
    """Return POS, or -1 if the line is unusual. columns: start of each column and of the samples."""
    p = first
    good = last > first
    column = i64(0)
    while good and column < COLUMNS:
        columns[column] = p
        while p < last and data[p] != 9:
            c = data[p]
            good = good & (c >= 32) & (c <= 126) & ((c != 32) | (column == 7))
            p += 1
        good = good & (p < last) & (p > columns[column])
        p += 1
        column += 1
    if not good:
        return i64(-1)
    columns[COLUMNS] = p
    position = i64(0)
    for place in range(columns[1], columns[2] - 1):
        c = data[place]
        good = good & (c >= 48) & (c <= 57)
        position = position * 10 + i64(c) - 48
    good = good & (columns[2] - 1 - columns[1] <= MOST_DIGITS)
    for place in range(columns[4], columns[5] - 1):  # one other allele, in letters
        c = data[place]
        good = good & (c != 44) & (c != 60) & (c != 42) & (c != 46)
    good = good & (p - 1 - columns[8] == expected.length)
    for place in range(expected.length):
        good = good and data[columns[8] + place] == expected.text[place]
    return position if good else i64(-1)


@st.device
def _field(data: Global[u8], p: i64, last: i64, kind: u8, numbers: Local[f64]) -> i64:
    """Return the end of a sample's field, or -1 if it is unusual. numbers: the first three numbers and their count,
    negative if one is missing."""
    first = p
    if kind == TEXT:
        while p < last and data[p] != 9 and data[p] != 58:
            if data[p] < 32 or data[p] > 126:
                return i64(-1)
            p += 1
        return p if p > first else i64(-1)
    count = i64(0)
    missing = False
    real = kind == LOGARITHMS
    while True:
        if p < last and data[p] == 46:
            missing = True
            p += 1
        else:
            p = _number(data, p, last, real, numbers, min(count, i64(2)))
            if p < 0:
                return i64(-1)
        count += 1
        if not (p < last and data[p] == 44):
            break
        p += 1
    numbers[3] = f64(-count if missing else count)
    return p if p == last or data[p] == 58 or data[p] == 9 else i64(-1)


@st.device
def _number(data: Global[u8], p: i64, last: i64, real: bool, numbers: Local[f64], index: i64) -> i64:
    """Read a plain number: digits, for real numbers with an optional minus and decimal point; return its end."""
    minus = real and p < last and data[p] == 45
    p += i64(minus)
    value = i64(0)
    digits = i64(0)
    decimals = i64(-1)
    while p < last and (48 <= data[p] <= 57 or (real and decimals < 0 and digits > 0 and data[p] == 46)):
        if data[p] == 46:
            decimals = i64(0)
        else:
            value = value * 10 + i64(data[p]) - 48
            digits += 1
            decimals += i64(decimals >= 0)
        if digits > MOST_SIGNIFICANT:
            return i64(-1)
        p += 1
    if digits == 0 or decimals == 0 or (not real and digits > MOST_DIGITS):
        return i64(-1)
    power = f64(1)
    for _decimal in range(decimals):
        power *= 10  # exact up to 10^22
    number = f64(value) / power
    if real:
        number = f64(f32(number))  # htslib stores floats
    numbers[index] = -number if minus else number
    return p


@st.device
def _put(numbers: Local[f64], kind: u8, logarithms: Global[f64], largest: Global[f64], place: i64) -> bool:
    """Store the likelihoods of a sample; return whether there are three, or some of at most three are missing."""
    if numbers[3] < 0:
        return numbers[3] >= -3
    if numbers[3] != 3:
        return False
    factor = f64(TEN_TO_PHRED) if kind == PHRED else f64(TEN)
    a = numbers[0] * factor
    b = numbers[1] * factor
    c = numbers[2] * factor
    most = max(max(a, b), c)
    logarithms[3 * place] = a - most
    logarithms[3 * place + 1] = b - most
    logarithms[3 * place + 2] = c - most
    largest[place] = most
    return True


@native
def same_texts(data: Global[u8], places: Global[i64], count: i64, step: i64, to: Global[bool]) -> None:
    """Return whether each text equals the preceding one. places: start and end of each text, with a stride of `step`."""
    for number in range(count):
        first = places[number * step]
        size = places[number * step + 1] - first
        same = number > 0
        if same:
            before = places[(number - 1) * step]
            same = places[(number - 1) * step + 1] - before == size
            for i in range(size):
                same = same and data[first + i] == data[before + i]
        to[number] = same
