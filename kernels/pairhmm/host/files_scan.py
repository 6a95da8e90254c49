"""Compiled loops over the bytes of a pair-HMM file: lines to columns, scores to text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, Local, f64, i64, u8, u64
from simtbed.native import native

from ...files.letters import fold_letters
from ...files.text_loops import decimal, newlines
from .problem import Bytes, Offsets

PHRED, HIGHEST = ord("!"), ord("~")
WHOLE, MORE, WRONG = 0, 1, 2
"""Status of a scan: ended after the last line; at a header of an incomplete record, or at a blank line instead of a header; at an
invalid line."""

LONGEST_HEADER = 40
NUMBER = 20
"""Digits of the largest integer."""
SCORE = 18
"""Maximum characters of a score and its separator."""


class ProblemColumns(NamedTuple):
    """Arrays of a problem. columns: bases and four qualities, `width` bytes each; the others as in `Problem`."""

    columns: Global[u8]
    width: i64
    read_offsets: Global[i64]
    haplotypes: Global[u8]
    haplotype_offsets: Global[i64]
    record_reads: Global[i64]
    record_haplotypes: Global[i64]


ScanResult = tuple[int, int, int, int, int, int, int]


def line_ends(data: Bytes, last: bool) -> Offsets:
    """Return the ends of the lines, without newlines.

    last: the file ends here; its last line may lack the newline, and blank lines at the end are ignored.
    """
    length = int(_without_blanks(data, len(data))) if last else len(data)
    ends = np.empty(newlines(data, length) + (1 if last and length else 0), np.int64)
    count = _line_ends(data, length, ends)
    ends[count:] = length
    return ends


@native
def _without_blanks(data: Global[u8], length: i64) -> i64:
    """Return the length without trailing blanks."""
    while length > 0 and _blank(data[length - 1]):
        length -= 1
    return length


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
) -> ScanResult:
    """Fill the arrays of a problem, of sufficient size, from the lines of `data` with the given ends.

    Returns (status, line, records, reads, haplotypes, reads of the last header, haplotypes of the last header). line: number of
    lines, or the line at the end of the scan. The counts are those of complete records before it or, for an invalid read or
    haplotype, of all preceding lines.
    """
    result, tidied = np.zeros(7, np.int64), np.empty(len(data), np.uint8)
    problem = (
        columns.reshape(-1),
        columns.shape[1],
        read_offsets,
        haplotypes,
        haplotype_offsets,
        record_reads,
        record_haplotypes,
    )
    result[0] = _scan(data, ends, len(ends), problem, tidied, result)
    outcome, line, records, reads, haplotype_count, r, h = result.tolist()
    return outcome, line, records, reads, haplotype_count, r, h


@native
def _scan(
    data: Global[u8], ends: Global[i64], total: i64, problem: ProblemColumns, tidied: Global[u8], result: Global[i64]
) -> i64:
    """Return the status and write the other results of `scan` to `result[1:]`. tidied: buffer of one line."""
    header = st.local(i64, 2)
    totals = st.local(i64, 2)
    at = i64(0)
    records = i64(0)
    outcome = i64(WHOLE)
    for n in st.unroll(range(2)):
        header[n] = 0
        totals[n] = 0
    problem.read_offsets[0] = 0
    problem.haplotype_offsets[0] = 0
    problem.record_reads[0] = 0
    problem.record_haplotypes[0] = 0
    while at < total:
        _header(data, _start(ends, at), ends[at], header)
        if header[0] == _BLANK or header[0] + header[1] > total - at - 1:
            outcome = i64(MORE)
            break
        if header[0] == _NO_HEADER:
            outcome = i64(WRONG)
            break
        line = _record(data, ends, at + 1, header, problem, tidied, totals)
        end = at + 1 + header[0] + header[1]
        if line < end:
            at = line
            outcome = i64(WRONG)
            break
        records += 1
        problem.record_reads[records] = totals[0]
        problem.record_haplotypes[records] = totals[1]
        at = end
        header[0] = 0
        header[1] = 0
    result[1] = at
    result[2] = records
    for n in st.unroll(range(2)):
        result[3 + n] = totals[n]
        result[5 + n] = header[n]
    return outcome


@st.device
def _record(
    data: Global[u8],
    ends: Global[i64],
    line: i64,
    header: Local[i64],
    problem: ProblemColumns,
    tidied: Global[u8],
    totals: Local[i64],
) -> i64:
    """Append the reads and haplotypes of a record from `line` on. Return the invalid line, or the line after the record.

    header: number of reads and of haplotypes of the record. totals: those of all records, updated.
    """
    haplotypes_start = line + header[0]
    end = haplotypes_start + header[1]
    while line < end:
        first = _start(ends, line)
        length = i64(0)
        if line < haplotypes_start:
            to = problem.read_offsets[totals[0]]
            length = _read(data, first, ends[line], problem.columns, problem.width, to)
            if length < 0:  # the spacing may be unusual
                tidy = _tidy(data, first, ends[line], tidied)
                length = _read(tidied, i64(0), tidy, problem.columns, problem.width, to)
            if length < 0:
                break
            totals[0] += 1
            problem.read_offsets[totals[0]] = to + length
        else:
            to = problem.haplotype_offsets[totals[1]]
            length = _haplotype(data, first, ends[line], problem.haplotypes, to)
            if length < 0:
                length = _haplotype(tidied, i64(0), _tidy(data, first, ends[line], tidied), problem.haplotypes, to)
            if length < 0:
                break
            totals[1] += 1
            problem.haplotype_offsets[totals[1]] = to + length
        line += 1
    return line


_BLANK, _NO_HEADER, _ENOUGH = -1, -2, 1 << 58


@st.device
def _start(ends: Global[i64], line: i64) -> i64:
    return ends[line - 1] + 1 if line > 0 else i64(0)


@st.device
def _blank(c: u8) -> bool:
    """Return whether bytes.split treats a character as a space."""
    return c == 32 or 9 <= c <= 13


@st.device
def _header(data: Global[u8], first: i64, last: i64, counts: Local[i64]) -> None:
    """Parse the two numbers of a header, or a status instead of the first. Numbers larger than any file are clamped."""
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
    """Copy the columns with single spaces between them. Return the length."""
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
    """Copy five columns of equal length, separated by single spaces or tabs. Return the length, -1 for another layout."""
    if last - first < 9 or st.rem(last - first, 5) != 4:
        return i64(-1)
    length = st.div(last - first - 4, 5)
    good = fold_letters(data, first, length, columns, to)
    for number in range(i64(1), i64(5)):
        begin = first + number * (length + 1)
        separator = data[begin - 1]
        good = (
            good
            & ((separator == 32) | (separator == 9))
            & _qualities(data, begin, length, columns, number * width + to)
        )
    return length if good else i64(-1)


@st.device
def _haplotype(data: Global[u8], first: i64, last: i64, haplotypes: Global[u8], to: i64) -> i64:
    good = last > first
    if good:
        good = fold_letters(data, first, last - first, haplotypes, to)
    return last - first if good else i64(-1)


@st.device
def _qualities(data: Global[u8], first: i64, length: i64, to: Global[u8], begin: i64) -> bool:
    """Copy characters as scores. Return whether all are valid."""
    highest = u8(0)
    for i in range(length):
        score = data[first + i] - PHRED  # smaller characters wrap around to large scores
        highest = max(highest, score)
        to[begin + i] = score
    return highest <= HIGHEST - PHRED


# ------------------------------------------------------------------ output
def text(
    scores: npt.NDArray[np.float64], reads: Offsets, haplotypes: Offsets, table: bool, before: int, to: Bytes
) -> int:
    """Write the scores of records in one of the formats of `files.lines`. Return the length.

    reads, haplotypes: of each record. before: number of records written earlier. Scores are below 1e8.
    """
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
    """Write the scores of records. Return the length. units: of the scores, see `_round`."""
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
    """Write a non-negative integer and a character after it. Return the end."""
    end = decimal(number, to, at)
    to[end] = then
    return end + 1


@native
def _round(scores: Global[f64], count: i64, units: Global[i64]) -> None:
    """Round scores to units of 1e-7, to nearest, ties to even, times two, plus one for a negative sign; -1 for NaN or infinity.

    The loop has no branch that depends on a score, so that it can be vectorised.
    """
    for at in range(count):
        size = abs(scores[at])
        score = size if size < np.inf else 0.0
        # The exact product and its rounding error (Dekker): 1e7 has 24 bits, so that halves of 26 bits suffice.
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
    """Write a result of `_round` in the format '%.7f'. Return the end."""
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
    _four_digits(first, to, at)  # three digits, and a place for the point
    to[at] = 46
    _four_digits(fraction - first * 10_000, to, at + 4)
    return at + 8


@st.device
def _four_digits(number: u64, to: Global[u8], at: i64) -> None:
    """Write an unsigned number below 10,000 with leading zeros."""
    high = number // 100
    low = number - high * 100
    to[at] = u8(48 + high // 10)
    to[at + 1] = u8(48 + high % 10)
    to[at + 2] = u8(48 + low // 10)
    to[at + 3] = u8(48 + low % 10)


@st.device
def _no_number(score: f64, to: Global[u8], at: i64) -> i64:
    """Write an infinite score or NaN. Return the end."""
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
