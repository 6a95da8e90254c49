"""The loops over every byte of a pair-HMM file, compiled: lines into columns, scores into text."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

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


@njit(cache=True, nogil=True)
def line_ends(data: Bytes, last: bool) -> Offsets:
    """Where the lines end, without their newlines. last: of a whole file, whose last line may lack the newline, and
    whose blank lines at the end do not count."""
    length = len(data)
    while last and length and _blank(data[length - 1]):
        length -= 1
    count = 0
    for c in data[:length]:
        count += c == 10
    ends = np.empty(count + (1 if last and length else 0), np.int64)
    at = 0
    if last and length:
        ends[count] = length
    for i in range(length):
        if data[i] == 10:
            ends[at] = i
            at += 1
    return ends


@njit(cache=True, nogil=True)
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
    tidied = np.empty(0, np.uint8)
    at, total, records, reads, seen = 0, len(ends), 0, 0, 0
    read_offsets[0] = haplotype_offsets[0] = record_reads[0] = record_haplotypes[0] = 0
    while at < total:
        r, h = _header(data[_start(ends, at) : ends[at]])
        if r == _BLANK or r + h > total - at - 1:
            return MORE, at, records, reads, seen, r, h
        if r == _NO_HEADER:
            return WRONG, at, records, reads, seen, r, h
        for line in range(at + 1, at + 1 + r + h):
            text = data[_start(ends, line) : ends[line]]
            tidy = False
            while True:
                if line <= at + r:
                    to = read_offsets[reads]
                    length = _read(text, columns, to)
                else:
                    to = haplotype_offsets[seen]
                    length = _haplotype(text, haplotypes[to:])
                if length > 0 or tidy:
                    break
                tidied = np.empty(len(text), np.uint8)  # perhaps only the spacing is unusual
                text, tidy = tidied[: _tidy(text, tidied)], True
            if length < 0:
                return WRONG, line, records, reads, seen, r, h
            if line <= at + r:
                reads += 1
                read_offsets[reads] = to + length
            else:
                seen += 1
                haplotype_offsets[seen] = to + length
        records += 1
        record_reads[records], record_haplotypes[records] = reads, seen
        at += 1 + r + h
    return WHOLE, at, records, reads, seen, 0, 0


_BLANK, _NO_HEADER, _ENOUGH = -1, -2, 1 << 58


@njit(cache=True, nogil=True)
def _start(ends: Offsets, line: int) -> int:
    return ends[line - 1] + 1 if line else 0


@njit(cache=True, nogil=True)
def _blank(c: int) -> bool:
    """What bytes.split takes for a space."""
    return c == 32 or 9 <= c <= 13


@njit(cache=True, nogil=True)
def _header(text: Bytes) -> tuple[int, int]:
    """The two numbers, or what there is instead; a number beyond all files counts as enough."""
    counts = np.zeros(2, np.int64)
    fields, width, inside = 0, 0, False
    for c in text:
        if _blank(c):
            inside = False
            continue
        if not inside:
            inside = True
            fields += 1
            width += 1
        width += 1
        if fields > 2 or not 48 <= c <= 57:
            return _NO_HEADER, 0
        counts[fields - 1] = min(counts[fields - 1] * 10 + c - 48, _ENOUGH)
    if fields == 0:
        return _BLANK, 0
    if fields != 2:
        return _NO_HEADER, 0
    return _ENOUGH if width - 1 > LONGEST_HEADER else counts[0], counts[1]


@njit(cache=True, nogil=True)
def _tidy(text: Bytes, to: Bytes) -> int:
    """Copy the columns with one space between each two; the length of that."""
    at, inside = 0, False
    for c in text:
        if _blank(c):
            inside = False
            continue
        if not inside and at:
            to[at] = 32
            at += 1
        inside = True
        to[at] = c
        at += 1
    return at


@njit(cache=True, nogil=True)
def _read(text: Bytes, columns: npt.NDArray[np.uint8], to: int) -> int:
    """Put five columns of one length, one space or tab between them, where they belong; the length, -1 if it is not so."""
    if len(text) < 9 or len(text) % 5 != 4:
        return -1
    length = (len(text) - 4) // 5
    good = _letters(text[:length], columns[0, to : to + length])
    for number in range(1, 5):
        first = number * (length + 1)
        good &= text[first - 1] == 32 or text[first - 1] == 9
        good &= _qualities(text[first : first + length], columns[number, to : to + length])
    return length if good else -1


@njit(cache=True, nogil=True)
def _haplotype(text: Bytes, to: Bytes) -> int:
    return len(text) if len(text) and _letters(text, to[: len(text)]) else -1


@njit(cache=True, nogil=True)
def _letters(text: Bytes, to: Bytes) -> bool:
    """Copy bases as upper case; whether all are some."""
    wrong = False
    for i in range(len(text)):
        c = text[i] & np.uint8(0xDF)
        wrong |= not ((c == 65) | (c == 67) | (c == 71) | (c == 84) | (c == 78))
        to[i] = c
    return not wrong


@njit(cache=True, nogil=True)
def _qualities(text: Bytes, to: Bytes) -> bool:
    """Copy characters as scores; whether all are some."""
    highest = np.uint8(0)
    for i in range(len(text)):
        score = np.uint8(text[i] - np.uint8(PHRED))  # what is below wraps around to far above
        highest = max(highest, score)
        to[i] = score
    return bool(highest <= HIGHEST - PHRED)


# ------------------------------------------------------------------ writing
@njit(cache=True, nogil=True)
def text(
    scores: npt.NDArray[np.float64], reads: Offsets, haplotypes: Offsets, table: bool, before: int, to: Bytes
) -> int:
    """Write the scores of records with so many reads and haplotypes, `before` of them written earlier, in either
    format of `files.lines`; the length. Scores are below 1e8."""
    units = np.empty(len(scores), np.int64)
    _round(scores, units)
    at, pair = 0, 0
    for record in range(len(reads)):
        if not table:
            at = _number(reads[record], to, at, 32)
            at = _number(haplotypes[record], to, at, 10)
        for read in range(reads[record]):
            for haplotype in range(haplotypes[record]):
                if table:
                    at = _number(before + record + 1, to, at, 9)
                    at = _number(read + 1, to, at, 9)
                    at = _number(haplotype + 1, to, at, 9)
                at = _score(units[pair], to, at) if units[pair] >= 0 else _no_number(scores[pair], to, at)
                pair += 1
                to[at] = 32 if haplotype + 1 < haplotypes[record] and not table else 10
                at += 1
            if not table and haplotypes[record] == 0:
                to[at] = 10
                at += 1
    return at


@njit(cache=True, nogil=True)
def _number(number: int, to: Bytes, at: int, then: int) -> int:
    """Write an integer, not negative, and a character after it."""
    left, ten = np.uint64(number), np.uint64(10)
    digits, rest = 1, left // ten
    while rest:
        digits += 1
        rest //= ten
    for place in range(at + digits - 1, at - 1, -1):
        to[place] = np.uint64(48) + left % ten
        left //= ten
    to[at + digits] = then
    return at + digits + 1


@njit(cache=True, nogil=True)
def _round(scores: npt.NDArray[np.float64], units: npt.NDArray[np.int64]) -> None:
    """Units of 1e-7, rounded to nearest, a tie to even, times two; one more for a minus. -1 for what is no number.

    Nothing here depends on a score by a branch, so that several are rounded at a time.
    """
    for at in range(len(scores)):
        score = abs(scores[at])
        # The product and what rounding it left out, exactly (Dekker): 1e7 has 24 bits, so halves of 26 bits suffice.
        split = score * 134217729.0
        high = split - (split - score)
        product = score * 1e7
        rest = (high * 1e7 - product) + (score - high) * 1e7
        whole = np.int64(product)
        over = (product - np.float64(whole) - 0.5) + rest
        whole += np.int64((over > 0) | ((over == 0) & (whole & 1 == 1)))
        minus = np.int64(math.copysign(1.0, scores[at]) < 0)
        units[at] = 2 * whole + minus if score < np.inf else np.int64(-1)


@njit(cache=True, nogil=True)
def _score(units: int, to: Bytes, at: int) -> int:
    """Write as '%.7f' does what `_round` found."""
    to[at] = 45
    at += units & 1
    ten, zero = np.uint64(10), np.uint64(48)  # unsigned: Python's // of signed numbers is slow
    number = np.uint64(units) >> np.uint64(1)
    whole = number // np.uint64(10_000_000)
    fraction = number - whole * np.uint64(10_000_000)
    if whole < np.uint64(100):
        tens = whole // ten
        to[at] = zero + tens
        at += 1 if tens else 0
        to[at] = zero + whole - tens * ten
        at += 1
    else:
        at = _number((units >> 1) // 10_000_000, to, at, 46) - 1
    first = fraction // np.uint64(10_000)
    _four_digits(first, to, at)  # three of them, and a place for the point
    to[at] = 46
    _four_digits(fraction - first * np.uint64(10_000), to, at + 4)
    return at + 8


@njit(cache=True, nogil=True)
def _four_digits(number: np.uint64, to: Bytes, at: int) -> None:
    """Write an unsigned number below 10,000 with its leading zeros."""
    ten, zero = np.uint64(10), np.uint64(48)
    high = number // np.uint64(100)
    low = number - high * np.uint64(100)
    to[at], to[at + 1] = zero + high // ten, zero + high % ten
    to[at + 2], to[at + 3] = zero + low // ten, zero + low % ten


@njit(cache=True, nogil=True)
def _no_number(score: float, to: Bytes, at: int) -> int:
    """Write what is infinite or NaN."""
    if math.isnan(score):
        to[at], to[at + 1], to[at + 2] = 110, 97, 110
        return at + 3
    to[at] = 45
    at += 1 if score < 0 else 0
    to[at], to[at + 1], to[at + 2] = 105, 110, 102
    return at + 3
