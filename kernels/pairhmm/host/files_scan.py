"""The loops over every byte of a pair-HMM file, compiled: lines into columns, scores into text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, Local, f64, i64, u8, u64
from simtbed.native import native

from .problem import Bytes, Offsets

PHRED, HIGHEST = ord("!"), ord("~")
WHOLE, MORE, WRONG = 0, 1, 2
"""How a scan ended: after the last line; at a header with fewer lines after it than it says, or at a blank line in
a header's place; at a line that is not what its record says."""

LONGEST_HEADER = 40
NUMBER = 20
"""Digits of the largest integer."""
SCORE = 18
"""Characters that a score takes at most, with what separates it from the next one."""

Found = tuple[int, int, int, int, int, int, int]


def line_ends(data: Bytes, last: bool) -> Offsets:
    """Where the lines end, without their newlines. last: of a whole file, whose last line may lack the newline, and
    whose blank lines at the end do not count."""
    length = int(_without_blanks(data, len(data))) if last else len(data)
    ends = np.empty(_newlines(data, length) + (1 if last and length else 0), np.int64)
    count = _line_ends(data, length, ends)
    ends[count:] = length
    return ends


@native
def _without_blanks(data: Global[u8], length: i64) -> i64:
    """The length without the blanks at the end."""
    while length > 0 and _blank(data[length - 1]):
        length -= 1
    return length


@native
def _newlines(data: Global[u8], length: i64) -> i64:
    count = i64(0)
    for i in range(length):
        count += i64(data[i] == 10)
    return count


@native
def _line_ends(data: Global[u8], length: i64, ends: Global[i64]) -> i64:
    at = i64(0)
    for i in range(length):
        if data[i] == 10:
            ends[at] = i
            at += 1
    return at


def scan(
    data: Bytes,
    ends: Offsets,
    columns: npt.NDArray[np.uint8],
    read_offsets: Offsets,
    haplotypes: Bytes,
    haplotype_offsets: Offsets,
    record_reads: Offsets,
    record_haplotypes: Offsets,
) -> Found:
    """Fill a problem's arrays, large enough, from the lines of `data` that end at `ends`.

    Returns (how it ended, line, records, reads, haplotypes, the last header's reads, its haplotypes): `line` is the
    number of lines, or the one at which it ended; the counts are those of what is complete before it, or, where a read
    or haplotype is wrong, of what stands before it.
    """
    found, tidied = np.zeros(7, np.int64), np.empty(len(data), np.uint8)
    found[0] = _scan(
        data, ends, len(ends), columns.reshape(-1), columns.shape[1], read_offsets, haplotypes, haplotype_offsets,
        record_reads, record_haplotypes, tidied, found,
    )  # fmt: skip
    outcome, line, records, reads, seen, r, h = found.tolist()
    return outcome, line, records, reads, seen, r, h


@native
def _scan(
    data: Global[u8],
    ends: Global[i64],
    total: i64,
    columns: Global[u8],
    width: i64,
    read_offsets: Global[i64],
    haplotypes: Global[u8],
    haplotype_offsets: Global[i64],
    record_reads: Global[i64],
    record_haplotypes: Global[i64],
    tidied: Global[u8],
    found: Global[i64],
) -> i64:
    """How it ended; `found[1:]` is the rest of what `scan` returns. width: of a column. tidied: room for a line."""
    counts = st.local(i64, 2)
    at = i64(0)
    records = i64(0)
    reads = i64(0)
    seen = i64(0)
    r = i64(0)
    h = i64(0)
    outcome = i64(WHOLE)
    read_offsets[0] = 0
    haplotype_offsets[0] = 0
    record_reads[0] = 0
    record_haplotypes[0] = 0
    while at < total:
        _header(data, _start(ends, at), ends[at], counts)
        r = counts[0]
        h = counts[1]
        if r == _BLANK or r + h > total - at - 1:
            outcome = i64(MORE)
            break
        if r == _NO_HEADER:
            outcome = i64(WRONG)
            break
        line = at + 1
        while line < at + 1 + r + h:
            first = _start(ends, line)
            length = i64(0)
            if line <= at + r:
                to = read_offsets[reads]
                length = _read(data, first, ends[line], columns, width, to)
                if length < 0:  # perhaps only the spacing is unusual
                    length = _read(tidied, i64(0), _tidy(data, first, ends[line], tidied), columns, width, to)
                if length < 0:
                    break
                reads += 1
                read_offsets[reads] = to + length
            else:
                to = haplotype_offsets[seen]
                length = _haplotype(data, first, ends[line], haplotypes, to)
                if length < 0:
                    length = _haplotype(tidied, i64(0), _tidy(data, first, ends[line], tidied), haplotypes, to)
                if length < 0:
                    break
                seen += 1
                haplotype_offsets[seen] = to + length
            line += 1
        if line < at + 1 + r + h:
            at = line
            outcome = i64(WRONG)
            break
        records += 1
        record_reads[records] = reads
        record_haplotypes[records] = seen
        at += 1 + r + h
        r = i64(0)
        h = i64(0)
    found[1] = at
    found[2] = records
    found[3] = reads
    found[4] = seen
    found[5] = r
    found[6] = h
    return outcome


_BLANK, _NO_HEADER, _ENOUGH = -1, -2, 1 << 58


@st.device
def _start(ends: Global[i64], line: i64) -> i64:
    return ends[line - 1] + 1 if line > 0 else i64(0)


@st.device
def _blank(c: u8) -> bool:
    """What bytes.split takes for a space."""
    return c == 32 or 9 <= c <= 13


@st.device
def _header(data: Global[u8], first: i64, last: i64, counts: Local[i64]) -> None:
    """The two numbers, or what there is instead of the first; a number beyond all files counts as enough."""
    counts[0] = 0
    counts[1] = 0
    fields = i64(0)
    width = i64(0)
    inside = False
    for i in range(first, last):
        c = data[i]
        if _blank(c):
            inside = False
            continue
        if not inside:
            inside = True
            fields += 1
            width += 1
        width += 1
        if fields > 2 or not 48 <= c <= 57:
            counts[0] = _NO_HEADER
            counts[1] = 0
            return
        counts[fields - 1] = min(counts[fields - 1] * 10 + i64(c) - 48, _ENOUGH)
    if fields != 2:
        counts[0] = _BLANK if fields == 0 else i64(_NO_HEADER)
        counts[1] = 0
    elif width - 1 > LONGEST_HEADER:
        counts[0] = _ENOUGH


@st.device
def _tidy(data: Global[u8], first: i64, last: i64, to: Global[u8]) -> i64:
    """Copy the columns with one space between each two; the length of that."""
    at = i64(0)
    inside = False
    for i in range(first, last):
        c = data[i]
        if _blank(c):
            inside = False
            continue
        if not inside and at > 0:
            to[at] = 32
            at += 1
        inside = True
        to[at] = c
        at += 1
    return at


@st.device
def _read(data: Global[u8], first: i64, last: i64, columns: Global[u8], width: i64, to: i64) -> i64:
    """Put five columns of one length, one space or tab between them, where they belong; the length, -1 if it is not so."""
    if last - first < 9 or st.rem(last - first, 5) != 4:
        return i64(-1)
    length = st.div(last - first - 4, 5)
    good = _letters(data, first, length, columns, to)
    for number in range(i64(1), i64(5)):
        begin = first + number * (length + 1)
        between = data[begin - 1]
        good = good & ((between == 32) | (between == 9)) & _qualities(data, begin, length, columns, number * width + to)
    return length if good else i64(-1)


@st.device
def _haplotype(data: Global[u8], first: i64, last: i64, haplotypes: Global[u8], to: i64) -> i64:
    good = last > first
    if good:
        good = _letters(data, first, last - first, haplotypes, to)
    return last - first if good else i64(-1)


@st.device
def _letters(data: Global[u8], first: i64, length: i64, to: Global[u8], begin: i64) -> bool:
    """Copy bases as upper case; whether all are some."""
    wrong = False
    for i in range(length):
        c = data[first + i] & 0xDF
        wrong = wrong | ((c != 65) & (c != 67) & (c != 71) & (c != 84) & (c != 78))
        to[begin + i] = c
    return not wrong


@st.device
def _qualities(data: Global[u8], first: i64, length: i64, to: Global[u8], begin: i64) -> bool:
    """Copy characters as scores; whether all are some."""
    highest = u8(0)
    for i in range(length):
        score = data[first + i] - PHRED  # what is below wraps around to far above
        highest = max(highest, score)
        to[begin + i] = score
    return highest <= HIGHEST - PHRED


# ------------------------------------------------------------------ writing
def text(
    scores: npt.NDArray[np.float64], reads: Offsets, haplotypes: Offsets, table: bool, before: int, to: Bytes
) -> int:
    """Write the scores of records with so many reads and haplotypes, `before` of them written earlier, in either
    format of `files.lines`; the length. Scores are below 1e8."""
    units = np.empty(len(scores), np.int64)
    _round(scores, len(scores), units)
    return int(_text(scores, units, reads, haplotypes, len(reads), table, before, to))


@native
def _text(
    scores: Global[f64],
    units: Global[i64],
    reads: Global[i64],
    haplotypes: Global[i64],
    records: i64,
    table: bool,
    before: i64,
    to: Global[u8],
) -> i64:
    """units: of the scores, as `_round` finds them."""
    at = i64(0)
    pair = i64(0)
    for record in range(records):
        if not table:
            at = _number(reads[record], to, at, u8(32))
            at = _number(haplotypes[record], to, at, u8(10))
        for read in range(reads[record]):
            for haplotype in range(haplotypes[record]):
                if table:
                    at = _number(before + record + 1, to, at, u8(9))
                    at = _number(read + 1, to, at, u8(9))
                    at = _number(haplotype + 1, to, at, u8(9))
                at = _score(units[pair], to, at) if units[pair] >= 0 else _no_number(scores[pair], to, at)
                pair += 1
                to[at] = u8(32) if haplotype + 1 < haplotypes[record] and not table else u8(10)
                at += 1
            if not table and haplotypes[record] == 0:
                to[at] = 10
                at += 1
    return at


@st.device
def _number(number: i64, to: Global[u8], at: i64, then: u8) -> i64:
    """Write an integer, not negative, and a character after it."""
    left = u64(number)
    digits = i64(1)
    rest = left // 10
    while rest != 0:
        digits += 1
        rest //= 10
    for place in range(at + digits - 1, at - 1, -1):
        to[place] = u8(48 + left % 10)
        left //= 10
    to[at + digits] = then
    return at + digits + 1


@native
def _round(scores: Global[f64], count: i64, units: Global[i64]) -> None:
    """Units of 1e-7, rounded to nearest, a tie to even, times two; one more for a minus. -1 for what is no number.

    Nothing here depends on a score by a branch, so that several are rounded at a time.
    """
    for at in range(count):
        size = abs(scores[at])
        score = size if size < np.inf else 0.0
        # The product and what rounding it left out, exactly (Dekker): 1e7 has 24 bits, so halves of 26 bits suffice.
        split = score * 134217729.0
        high = split - (split - score)
        product = score * 1e7
        rest = (high * 1e7 - product) + (score - high) * 1e7
        whole = i64(product)
        over = (product - f64(whole) - 0.5) + rest
        whole += i64((over > 0) | ((over == 0) & (whole & 1 == 1)))
        minus = i64(st.bitcast(i64, scores[at]) < 0)
        units[at] = 2 * whole + minus if size < np.inf else i64(-1)


@st.device
def _score(units: i64, to: Global[u8], at: i64) -> i64:
    """Write as '%.7f' does what `_round` found."""
    to[at] = 45
    at += units & 1
    number = u64(units) >> 1
    whole = number // 10_000_000
    fraction = number - whole * 10_000_000
    if whole < 100:
        tens = whole // 10
        to[at] = u8(48 + tens)
        at += i64(tens != 0)
        to[at] = u8(48 + whole - tens * 10)
        at += 1
    else:
        at = _number(i64(whole), to, at, u8(46)) - 1
    first = fraction // 10_000
    _four_digits(first, to, at)  # three of them, and a place for the point
    to[at] = 46
    _four_digits(fraction - first * 10_000, to, at + 4)
    return at + 8


@st.device
def _four_digits(number: u64, to: Global[u8], at: i64) -> None:
    """Write an unsigned number below 10,000 with its leading zeros."""
    high = number // 100
    low = number - high * 100
    to[at] = u8(48 + high // 10)
    to[at + 1] = u8(48 + high % 10)
    to[at + 2] = u8(48 + low // 10)
    to[at + 3] = u8(48 + low % 10)


@st.device
def _no_number(score: f64, to: Global[u8], at: i64) -> i64:
    """Write what is infinite or NaN."""
    if score != score:
        to[at] = 110
        to[at + 1] = 97
        to[at + 2] = 110
        return at + 3
    to[at] = 45
    at += i64(score < 0)
    to[at] = 105
    to[at + 1] = 110
    to[at + 2] = 102
    return at + 3
