"""Native loops over the bytes of reads in files: records into columns, corrected reads into text."""

from __future__ import annotations

from typing import NamedTuple

import simtbed as st
from simtbed import Global, i32, i64, u8
from simtbed.native import native

from ...files.text_loops import VECTOR, copied, decimal, line_end, long_line_end, newline_in_vector, without_return

GOOD, MALFORMED, NOT_ASCII, NO_LETTERS = 0, 1, 2, 3
"""Status of a scan: all records read; a record that is no FASTQ; non-ASCII bytes; a sequence with unprintable bytes."""
LINES = 4
"""Lines of a record."""
STRANGE, UNKNOWN = 1, 2
"""Flags of a sequence: unprintable bytes; letters other than A, C, G and T."""
UNCHANGED, CHANGED, TRIMMED, DISCARDED, SHORT, EDITS = range(6)
"""Indices of the counts of a block."""
COUNTS = 6


class RecordColumns(NamedTuple):
    """Columns of the records of a file. names: start and end of the name of record r, without its mark, are elements 2 r and
    2 r + 1. sequences, qualities: first byte of each; FASTA has no qualities."""

    names: Global[i64]
    sequences: Global[i64]
    qualities: Global[i64]


class ReadColumns(NamedTuple):
    """Columns of `Reads`."""

    text: Global[u8]
    offsets: Global[i64]
    valid: Global[bool]


class CorrectedColumns(NamedTuple):
    """Corrected reads. before, text: letters before and after correction. spans: start and end of the retained letters of each
    read, alternating. reads: number of reads."""

    before: Global[u8]
    text: Global[u8]
    offsets: Global[i64]
    flags: Global[u8]
    spans: Global[i32]
    reads: i64


class ReadTexts(NamedTuple):
    """Output buffers of a block: corrected reads, discarded reads, counts by outcome, and the lengths of the two texts."""

    corrected: Global[u8]
    discarded: Global[u8]
    with_discarded: bool
    counts: Global[i64]
    lengths: Global[i64]


@native
def scan_fastq(
    data: Global[u8],
    length: i64,
    records: i64,
    reads: ReadColumns,
    columns: RecordColumns,
    state: Global[i64],
) -> i64:
    """Parse FASTQ records into columns; return the status. state: number of good records, start of the next record."""
    at = i64(0)
    to = i64(0)
    reads.offsets[0] = 0
    for record in range(records):
        state[0] = record
        state[1] = at
        name = at + 1
        end = line_end(data, at, length)
        name_end = without_return(data, at, end)
        sequence = end + 1
        end = long_line_end(data, sequence, length)
        size = without_return(data, sequence, end) - sequence
        plus = end + 1
        end = line_end(data, plus, length)
        plus_end = without_return(data, plus, end)
        quality = end + 1
        end = line_end_after(data, quality, size, length)
        if data[at] != 64 or quality >= length or data[plus] != 43:
            return i64(MALFORMED)
        if without_return(data, quality, end) - quality != size:
            return i64(MALFORMED)
        if plus_end > plus + 1:
            if plus_end - plus != name_end - name + 1:
                return i64(MALFORMED)
            for i in range(name_end - name):
                if data[name + i] != data[plus + 1 + i]:
                    return i64(MALFORMED)
        if not is_ascii(data, at, end):
            return i64(NOT_ASCII)
        letters = upper_case(data, sequence, size, reads.text, to)
        if letters & STRANGE != 0:
            return i64(NO_LETTERS)
        reads.valid[record] = letters == 0
        columns.names[2 * record] = name
        columns.names[2 * record + 1] = name_end
        columns.sequences[record] = sequence
        columns.qualities[record] = quality
        to += size
        reads.text[to] = 10
        to += 1
        reads.offsets[record + 1] = to
        at = end + 1
    state[0] = records
    state[1] = at
    return i64(GOOD)


@st.device
def line_end_after(data: Global[u8], at: i64, size: i64, length: i64) -> i64:
    """Return the same as `line_end`, for a line with a probable length of `size` bytes."""
    end = at + size
    if size < VECTOR or end >= length or data[end] != 10:
        return long_line_end(data, at, length)
    state = newline_in_vector(data, end - VECTOR)
    for first in range(at, end - VECTOR, VECTOR):
        state = state | newline_in_vector(data, first)
    if state:
        end = long_line_end(data, at, length)
    return end


@st.device
def is_ascii(data: Global[u8], first: i64, end: i64) -> bool:
    high = u8(0)
    at = first
    while at + VECTOR <= end:
        for i in range(i64(VECTOR)):
            high = high | data[at + i]
        at += VECTOR
    if end - first >= VECTOR:  # the last bytes, with an overlap
        for i in range(i64(VECTOR)):
            high = high | data[end - VECTOR + i]
    else:
        for i in range(first, end):
            high = high | data[i]
    return high < 128


@st.device
def upper_case(data: Global[u8], first: i64, size: i64, to: Global[u8], at: i64) -> u8:
    """Copy letters in upper case; return their flags."""
    state = u8(0)
    copied_letters = i64(0)
    while copied_letters + VECTOR <= size:
        for i in range(i64(VECTOR)):
            state = state | in_upper_case(data, first + copied_letters + i, to, at + copied_letters + i)
        copied_letters += VECTOR
    if size >= VECTOR:  # the last letters, with an overlap
        for i in range(i64(VECTOR)):
            state = state | in_upper_case(data, first + size - VECTOR + i, to, at + size - VECTOR + i)
    else:
        for i in range(size):
            state = state | in_upper_case(data, first + i, to, at + i)
    return state


@st.device
def in_upper_case(data: Global[u8], place: i64, to: Global[u8], at: i64) -> u8:
    """Copy a letter in upper case, U as T; return its flags."""
    letter = data[place]
    strange = (letter < 33) | (letter > 126)
    lower = (letter >= 97) & (letter <= 122)
    letter = letter - (u8(32) if lower else u8(0))
    letter = letter - u8(letter == 85)  # U is T
    unknown = (letter != 65) & (letter != 67) & (letter != 71) & (letter != 84)
    to[at] = letter
    return (u8(STRANGE) if strange else u8(0)) | (u8(UNKNOWN) if unknown else u8(0))


@native
def split_reads(
    data: Global[u8], bounds: Global[i64], count: i64, text: Global[u8], offsets: Global[i64], valid: Global[bool]
) -> i64:
    """Fill `Reads` from the records of a FASTA file (`files.fasta.Records`); return the first record with unprintable bytes, or -1."""
    to = i64(0)
    offsets[0] = 0
    for record in range(count):
        first = bounds[2 * record + 1]
        size = bounds[2 * record + 2] - first
        letters = upper_case(data, first, size, text, to)
        if letters & STRANGE != 0:
            return i64(record)
        valid[record] = letters == 0
        text[to + size] = 10
        to += size + 1
        offsets[record + 1] = to
    return i64(-1)


@native
def find_valid_reads(text: Global[u8], offsets: Global[i64], reads: i64, valid: Global[bool]) -> None:
    """Compute for each read whether all its letters are A, C, G or T."""
    for read in range(reads):
        wrong = False
        for i in range(offsets[read], offsets[read + 1] - 1):
            letter = text[i]
            wrong = wrong | ((letter != 65) & (letter != 67) & (letter != 71) & (letter != 84))
        valid[read] = not wrong


# ------------------------------------------------------------------ writing
@native
def format_reads(
    data: Global[u8], columns: RecordColumns, corrected: CorrectedColumns, fastq: bool, texts: ReadTexts
) -> None:
    """Write the corrected reads, and the discarded reads as they were read."""
    out = i64(0)
    aside = i64(0)
    for read in range(corrected.reads):
        first = corrected.offsets[read]
        size = corrected.offsets[read + 1] - 1 - first
        edits = i64(0)
        for i in range(first, first + size):
            edits += i64(corrected.before[i] != corrected.text[i])
        texts.counts[EDITS] += edits
        begin = i64(corrected.spans[2 * read])
        end = i64(corrected.spans[2 * read + 1])
        texts.counts[outcome(corrected.flags[read], end - begin < size, edits > 0)] += 1
        if corrected.flags[read] == 68:
            if texts.with_discarded:
                aside = read_name(data, columns, read, fastq, texts.discarded, aside)
                aside = copied(data, columns.sequences[read], columns.sequences[read] + size, texts.discarded, aside)
                texts.discarded[aside] = 10
                aside += 1
                if fastq:
                    aside = qualities_of(data, columns.qualities[read], i64(0), size, texts.discarded, aside)
            continue
        out = read_name(data, columns, read, fastq, texts.corrected, out)
        if corrected.flags[read] == 83:  # unchanged, in its original case
            out = copied(data, columns.sequences[read], columns.sequences[read] + size, texts.corrected, out)
        else:
            out = copied(corrected.text, first + begin, first + end, texts.corrected, out)
        texts.corrected[out] = 10
        out += 1
        if fastq:
            out = qualities_of(data, columns.qualities[read], begin, end, texts.corrected, out)
    texts.lengths[0] = out
    texts.lengths[1] = aside


@st.device
def outcome(flag: u8, shortened: bool, edited: bool) -> i64:
    """Return the index of a read's outcome in the counts."""
    if flag == 68:
        return i64(DISCARDED)
    if flag == 83:
        return i64(SHORT)
    if shortened:
        return i64(TRIMMED)
    return i64(CHANGED) if edited else i64(UNCHANGED)


@st.device
def read_name(data: Global[u8], columns: RecordColumns, read: i64, fastq: bool, to: Global[u8], at: i64) -> i64:
    """Write the first line of a record; return its end."""
    to[at] = u8(64) if fastq else u8(62)
    at = copied(data, columns.names[2 * read], columns.names[2 * read + 1], to, at + 1)
    to[at] = 10
    return at + 1


@st.device
def qualities_of(data: Global[u8], quality: i64, begin: i64, end: i64, to: Global[u8], at: i64) -> i64:
    """Write the last two lines of a record; return their end."""
    to[at] = 43
    to[at + 1] = 10
    at = copied(data, quality + begin, quality + end, to, at + 2)
    to[at] = 10
    return at + 1


@native
def printable_names(data: Global[u8], names: Global[i64], reads: i64) -> bool:
    """Return whether all names are free of control characters."""
    wrong = False
    for read in range(reads):
        for i in range(names[2 * read], names[2 * read + 1]):
            wrong = wrong | (data[i] < 32) | (data[i] == 127)
    return not wrong


@native
def format_log(data: Global[u8], names: Global[i64], corrected: CorrectedColumns, to: Global[u8]) -> i64:
    """Write one line per read; return the length: name, flag, length, sequence, edits as `position:old>new` from 1."""
    at = i64(0)
    for read in range(corrected.reads):
        first = corrected.offsets[read]
        size = corrected.offsets[read + 1] - 1 - first
        begin = i64(corrected.spans[2 * read])
        end = i64(corrected.spans[2 * read + 1])
        if corrected.flags[read] == 68:
            begin = i64(0)
            end = size
        at = copied(data, names[2 * read], names[2 * read + 1], to, at)
        to[at] = 9
        to[at + 1] = corrected.flags[read]
        to[at + 2] = 9
        at = decimal(end - begin, to, at + 3)
        to[at] = 9
        at = copied(corrected.text, first + begin, first + end, to, at + 1)
        to[at] = 9
        at += 1
        edits = 0
        for i in range(size):
            if corrected.before[first + i] != corrected.text[first + i]:
                if edits > 0:
                    to[at] = 44
                    at += 1
                at = decimal(i + 1, to, at)
                to[at] = 58
                to[at + 1] = corrected.before[first + i]
                to[at + 2] = 62
                to[at + 3] = corrected.text[first + i]
                at += 4
                edits += 1
        to[at] = 10
        at += 1
    return at
