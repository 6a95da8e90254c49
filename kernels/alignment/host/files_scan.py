"""Compiled loops over pairs and CIGARs: parsing of table rows, formatting of result rows."""

from __future__ import annotations

from typing import NamedTuple

import simtbed as st
from simtbed import Const, Global, i32, i64, u8, u32
from simtbed.native import native

from ...files.letters import fold_letters
from ...files.text_loops import copied, decimal, line_end, signed, without_return

GOOD, WRONG = 0, 1
"""Status of a scan: ended after the last line, or at a row that is not two sequences of letters separated by a tab."""
LINES, ROWS, BLANK, FOLLOWING = range(4)
"""Indices of the result of a scan: valid lines, rows among them, the first blank line from 1, and the number of consecutive blank
lines at the end."""
SCAN_STATE = 4
NUMBER = 20
"""Characters of the longest number, including the sign."""
TAB, NEWLINE, UNKNOWN = 9, 10, 78


class TextColumn(NamedTuple):
    """Concatenated texts: text t is [offsets[t], offsets[t + 1])."""

    text: Global[u8]
    offsets: Global[i64]


class AlignmentColumns(NamedTuple):
    """Columns of `Alignments`."""

    operations: Global[u32]
    firsts: Global[i64]
    offsets: Global[i32]
    scores: Global[i32]


# ------------------------------------------------------------------ input
@native
def scan_table(
    data: Global[u8],
    length: i64,
    before: i64,
    most_blank: i64,
    references: TextColumn,
    alternates: TextColumn,
    state: Global[i64],
) -> i64:
    """Parse the rows of `data`. Return the status. before: number of preceding lines, with their scan result in `state`."""
    at = i64(0)
    line = i64(0)
    rows = i64(0)
    blank = state[BLANK]
    following = state[FOLLOWING]
    outcome = i64(GOOD)
    references.offsets[0] = 0
    alternates.offsets[0] = 0
    while at < length:
        end = line_end(data, at, length)
        last = without_return(data, at, end)
        if last == at:
            blank = before + line + 1 if blank == 0 else blank
            following = following + 1 if end == at else i64(0)
            if following > most_blank:
                outcome = i64(WRONG)
                break
        else:
            middle = at
            while middle < last and data[middle] != TAB:
                middle += 1
            good = (blank == 0) & (middle > at) & (middle + 1 < last)
            if good:
                first = references.offsets[rows]
                good = fold_letters(data, at, middle - at, references.text, first)
                references.offsets[rows + 1] = first + middle - at
                first = alternates.offsets[rows]
                good = fold_letters(data, middle + 1, last - middle - 1, alternates.text, first) and good
                alternates.offsets[rows + 1] = first + last - middle - 1
            if not good:
                outcome = i64(WRONG)
                break
            rows += 1
        line += 1
        at = end + 1
    state[LINES] = line
    state[ROWS] = rows
    state[BLANK] = blank
    state[FOLLOWING] = following
    return outcome


@native
def gathered(
    text: Global[u8], offsets: Global[i64], chosen: Global[i64], count: i64, begin: i64, to: Global[u8]
) -> i64:
    """Copy the chosen sequences to consecutive places from `begin` on. Return the end."""
    at = begin
    for number in range(count):
        at = copied(text, offsets[chosen[number]], offsets[chosen[number] + 1], to, at)
    return at


# ------------------------------------------------------------------ operations
@native
def collect(
    operations: Global[u32],
    results: Global[i32],
    pairs: Global[i64],
    count: i64,
    capacity: i64,
    firsts: Global[i64],
    to: Global[u32],
) -> None:
    """Copy the operations of `traceback`, in reverse order, to their final places.

    pairs: the pairs of the launch, in order. Pairs with more than `capacity` operations are skipped.
    """
    for t in range(count):
        own = i64(results[2 * t])
        last = firsts[pairs[t]] + own - 1
        if own <= capacity:
            for o in range(own):
                to[last - o] = operations[o * count + t]


# ------------------------------------------------------------------ output
@st.device
def _cigar(operations: Global[u32], first: i64, last: i64, to: Global[u8], at: i64) -> i64:
    """Write operations as a CIGAR. Return the end. BAM's numbers are the letters MIDNS."""
    for place in range(first, last):
        word = operations[place]
        kind = word & 15
        at = decimal(i64(word >> 4), to, at)
        letter = u8(77)
        letter = u8(73) if kind == 1 else letter
        letter = u8(68) if kind == 2 else letter
        letter = u8(83) if kind == 4 else letter
        to[at] = letter
        at += 1
    return at


@native
def cigars(operations: Global[u32], firsts: Global[i64], pairs: i64, to: Global[u8], ends: Global[i64]) -> i64:
    """Write the CIGARs of pairs without separators. Return the length. ends: end of each CIGAR."""
    at = i64(0)
    for pair in range(pairs):
        at = _cigar(operations, firsts[pair], firsts[pair + 1], to, at)
        ends[pair] = at
    return at


@native
def table_rows(
    operations: Global[u32],
    firsts: Global[i64],
    offsets: Global[i32],
    scores: Global[i32],
    pairs: i64,
    to: Global[u8],
) -> i64:
    """Write a row per pair: CIGAR, offset, score. Return the length."""
    at = i64(0)
    for pair in range(pairs):
        at = _cigar(operations, firsts[pair], firsts[pair + 1], to, at)
        to[at] = TAB
        at = signed(i64(offsets[pair]), to, at + 1)
        to[at] = TAB
        at = signed(i64(scores[pair]), to, at + 1)
        to[at] = NEWLINE
        at += 1
    return at


@st.device
def _constant(text: Const, to: Global[u8], at: i64) -> i64:
    """Write a constant text. Return the end."""
    for number in st.unroll(range(len(text))):
        to[at + number] = text[number]
    return at + len(text)


@native
def numbered_names(before: i64, pairs: i64, to: Global[u8], ends: Global[i64]) -> i64:
    """Write the names ref1, alt1, ref2, alt2 ..., numbered after `before`. Return the length. ends: end of each name."""
    at = i64(0)
    for pair in range(pairs):
        at = decimal(before + pair + 1, to, _constant(REFERENCE, to, at))
        ends[2 * pair] = at
        at = decimal(before + pair + 1, to, _constant(ALTERNATE, to, at))
        ends[2 * pair + 1] = at
    return at


@native
def sam_references(
    names: Global[u8], name_offsets: Global[i64], offsets: Global[i64], new: Global[bool], pairs: i64, to: Global[u8]
) -> i64:
    """Write SAM's header lines of the references that are `new`. Return the length. names: reference and alternate, alternating."""
    at = i64(0)
    for pair in range(pairs):
        if new[pair]:
            at = copied(names, name_offsets[2 * pair], name_offsets[2 * pair + 1], to, _constant(SQ, to, at))
            at = decimal(offsets[pair + 1] - offsets[pair], to, _constant(LN, to, at))
            to[at] = NEWLINE
            at += 1
    return at


@st.device
def _differences(
    references: Global[u8], i: i64, alternates: Global[u8], j: i64, operations: Global[u32], first: i64, last: i64
) -> i64:
    """Return the inserted and deleted bases and mismatches of an alignment from (i, j) on.

    By SAM's definition only A, C, G and T match.
    """
    count = i64(0)
    for place in range(first, last):
        word = operations[place]
        kind, length = word & 15, i64(word >> 4)
        if kind == 0:
            for step in range(length):
                c = references[i + step]
                count += i64((c != alternates[j + step]) | (c == UNKNOWN))
        elif kind < 3:
            count += length
        i += length if (kind == 0) | (kind == 2) else i64(0)
        j += length if kind != 2 else i64(0)
    return count


@native
def sam_rows(
    names: TextColumn,
    references: TextColumn,
    alternates: TextColumn,
    alignments: AlignmentColumns,
    pairs: i64,
    to: Global[u8],
) -> i64:
    """Write a SAM record per pair, with its score (AS) and its differences (NM). Return the length."""
    at = i64(0)
    for pair in range(pairs):
        first, end = alignments.firsts[pair], alignments.firsts[pair + 1]
        at = copied(names.text, names.offsets[2 * pair + 1], names.offsets[2 * pair + 2], to, at)
        at = _constant(FLAG, to, at)
        at = copied(names.text, names.offsets[2 * pair], names.offsets[2 * pair + 1], to, at)
        to[at] = TAB
        at = signed(i64(alignments.offsets[pair]) + 1, to, at + 1)
        at = _constant(QUALITY, to, at)
        at = _cigar(alignments.operations, first, end, to, at)
        at = _constant(MATE, to, at)
        at = copied(alternates.text, alternates.offsets[pair], alternates.offsets[pair + 1], to, at)
        at = _constant(SCORE, to, at)
        at = signed(i64(alignments.scores[pair]), to, at)
        at = _constant(DIFFERENCES, to, at)
        i, j = references.offsets[pair] + i64(alignments.offsets[pair]), alternates.offsets[pair]
        at = decimal(_differences(references.text, i, alternates.text, j, alignments.operations, first, end), to, at)
        to[at] = NEWLINE
        at += 1
    return at


REFERENCE, ALTERNATE = tuple(b"ref"), tuple(b"alt")
SQ, LN = tuple(b"@SQ\tSN:"), tuple(b"\tLN:")
FLAG, QUALITY, MATE = tuple(b"\t0\t"), tuple(b"\t255\t"), tuple(b"\t*\t0\t0\t")
SCORE, DIFFERENCES = tuple(b"\t*\tAS:i:"), tuple(b"\tNM:i:")
CONSTANTS = len(SQ + LN + FLAG + QUALITY + MATE + SCORE + DIFFERENCES) + 8
"""Constant characters of a record and its header line, with tabs and newlines."""
