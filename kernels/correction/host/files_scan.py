"""The loops over every byte of reads in files, compiled: records into columns, corrected reads into text."""

from __future__ import annotations

import simtbed as st
from simtbed import Global, i32, i64, u8
from simtbed.native import native

from ...files.text_loops import VECTOR, copied, decimal, line_end, long_line_end, newline_in_vector, without_return

GOOD, MALFORMED, NOT_ASCII, NO_LETTERS = 0, 1, 2, 3
"""How a scan ended: after the last record; at one that is no FASTQ; at one with bytes of no text; at one whose sequence
holds what is neither a letter nor printable."""
LINES = 4
"""Of a record."""
STRANGE, UNKNOWN = 1, 2
"""What a sequence may hold: bytes that are not printable; others than A, C, G and T."""
KEPT, CHANGED, TRIMMED, DISCARDED, SHORT, EDITS = range(6)
"""Places in what `counts` holds of a block."""
COUNTS = 6


@native
def scan_fastq(
    data: Global[u8],
    length: i64,
    records: i64,
    text: Global[u8],
    offsets: Global[i64],
    known: Global[bool],
    names: Global[i64],
    sequences: Global[i64],
    qualities: Global[i64],
    found: Global[i64],
) -> i64:
    """How it ended. The records' columns: names[2 r], names[2 r + 1]: where a name begins and ends, without '@';
    sequences, qualities: where they begin; text, offsets, known: as of `Reads`. found: (records that are good, where the next
    one begins)."""
    at = i64(0)
    to = i64(0)
    offsets[0] = 0
    for record in range(records):
        found[0] = record
        found[1] = at
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
        letters = upper_case(data, sequence, size, text, to)
        if letters & STRANGE != 0:
            return i64(NO_LETTERS)
        known[record] = letters == 0
        names[2 * record] = name
        names[2 * record + 1] = name_end
        sequences[record] = sequence
        qualities[record] = quality
        to += size
        text[to] = 10
        to += 1
        offsets[record + 1] = to
        at = end + 1
    found[0] = records
    found[1] = at
    return i64(GOOD)


@st.device
def line_end_after(data: Global[u8], at: i64, size: i64, length: i64) -> i64:
    """As `line_end` of a line that most likely has `size` bytes."""
    end = at + size
    if size < VECTOR or end >= length or data[end] != 10:
        return long_line_end(data, at, length)
    found = newline_in_vector(data, end - VECTOR)
    for first in range(at, end - VECTOR, VECTOR):
        found = found | newline_in_vector(data, first)
    if found:
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
    if end - first >= VECTOR:  # the last bytes, some of them again
        for i in range(i64(VECTOR)):
            high = high | data[end - VECTOR + i]
    else:
        for i in range(first, end):
            high = high | data[i]
    return high < 128


@st.device
def upper_case(data: Global[u8], first: i64, size: i64, to: Global[u8], at: i64) -> u8:
    """Copy letters; what is among them."""
    found = u8(0)
    done = i64(0)
    while done + VECTOR <= size:
        for i in range(i64(VECTOR)):
            found = found | in_upper_case(data, first + done + i, to, at + done + i)
        done += VECTOR
    if size >= VECTOR:  # the last letters, some of them again
        for i in range(i64(VECTOR)):
            found = found | in_upper_case(data, first + size - VECTOR + i, to, at + size - VECTOR + i)
    else:
        for i in range(size):
            found = found | in_upper_case(data, first + i, to, at + i)
    return found


@st.device
def in_upper_case(data: Global[u8], place: i64, to: Global[u8], at: i64) -> u8:
    """Copy a letter; what it is."""
    letter = data[place]
    strange = (letter < 33) | (letter > 126)
    lower = (letter >= 97) & (letter <= 122)
    letter = letter - (u8(32) if lower else u8(0))
    unknown = (letter != 65) & (letter != 67) & (letter != 71) & (letter != 84)
    to[at] = letter
    return (u8(STRANGE) if strange else u8(0)) | (u8(UNKNOWN) if unknown else u8(0))


@native
def separate_reads(
    data: Global[u8], bounds: Global[i64], count: i64, text: Global[u8], offsets: Global[i64], known: Global[bool]
) -> i64:
    """Make `Reads` of the records of a FASTA file (`files.fasta.Records`); the first that has no letters, or -1."""
    to = i64(0)
    offsets[0] = 0
    for record in range(count):
        first = bounds[2 * record + 1]
        size = bounds[2 * record + 2] - first
        letters = upper_case(data, first, size, text, to)
        if letters & STRANGE != 0:
            return i64(record)
        known[record] = letters == 0
        text[to + size] = 10
        to += size + 1
        offsets[record + 1] = to
    return i64(-1)


@native
def known_reads(text: Global[u8], offsets: Global[i64], reads: i64, known: Global[bool]) -> None:
    """Of each read, whether all its letters are A, C, G or T."""
    for read in range(reads):
        wrong = False
        for i in range(offsets[read], offsets[read + 1] - 1):
            letter = text[i]
            wrong = wrong | ((letter != 65) & (letter != 67) & (letter != 71) & (letter != 84))
        known[read] = not wrong


# ------------------------------------------------------------------ writing
@native
def format_reads(
    data: Global[u8],
    names: Global[i64],
    sequences: Global[i64],
    qualities: Global[i64],
    before: Global[u8],
    text: Global[u8],
    offsets: Global[i64],
    flags: Global[u8],
    spans: Global[i32],
    reads: i64,
    fastq: bool,
    kept: Global[u8],
    discarded: Global[u8],
    wants_discarded: bool,
    counts: Global[i64],
    lengths: Global[i64],
) -> None:
    """Write the reads that are kept, corrected, to `kept`, and the others as they came to `discarded`.

    before, text: of the reads, before and after correction. spans: (first, end) of what is kept, read after read.
    lengths: (of `kept`, of `discarded`).
    """
    out = i64(0)
    aside = i64(0)
    for read in range(reads):
        first = offsets[read]
        size = offsets[read + 1] - 1 - first
        edits = i64(0)
        for i in range(first, first + size):
            edits += i64(before[i] != text[i])
        counts[EDITS] += edits
        mark = u8(64) if fastq else u8(62)
        if flags[read] == 68:
            counts[DISCARDED] += 1
            if wants_discarded:
                discarded[aside] = mark
                aside = copied(data, names[2 * read], names[2 * read + 1], discarded, aside + 1)
                discarded[aside] = 10
                aside = copied(data, sequences[read], sequences[read] + size, discarded, aside + 1)
                discarded[aside] = 10
                aside += 1
                if fastq:
                    aside = qualities_of(data, qualities[read], i64(0), size, discarded, aside)
            continue
        begin = i64(spans[2 * read])
        end = i64(spans[2 * read + 1])
        if flags[read] == 83:
            counts[SHORT] += 1
        elif end - begin < size:
            counts[TRIMMED] += 1
        elif edits > 0:
            counts[CHANGED] += 1
        else:
            counts[KEPT] += 1
        kept[out] = mark
        out = copied(data, names[2 * read], names[2 * read + 1], kept, out + 1)
        kept[out] = 10
        if flags[read] == 83:  # as it came
            out = copied(data, sequences[read], sequences[read] + size, kept, out + 1)
        else:
            out = copied(text, first + begin, first + end, kept, out + 1)
        kept[out] = 10
        out += 1
        if fastq:
            out = qualities_of(data, qualities[read], begin, end, kept, out)
    lengths[0] = out
    lengths[1] = aside


@st.device
def qualities_of(data: Global[u8], quality: i64, begin: i64, end: i64, to: Global[u8], at: i64) -> i64:
    """Write the last two lines of a record; where they end."""
    to[at] = 43
    to[at + 1] = 10
    at = copied(data, quality + begin, quality + end, to, at + 2)
    to[at] = 10
    return at + 1


@native
def printable_names(data: Global[u8], names: Global[i64], reads: i64) -> bool:
    """Whether no name has control characters."""
    wrong = False
    for read in range(reads):
        for i in range(names[2 * read], names[2 * read + 1]):
            wrong = wrong | (data[i] < 32) | (data[i] == 127)
    return not wrong


@native
def format_log(
    data: Global[u8],
    names: Global[i64],
    before: Global[u8],
    text: Global[u8],
    offsets: Global[i64],
    flags: Global[u8],
    spans: Global[i32],
    reads: i64,
    to: Global[u8],
) -> i64:
    """Write a line a read: name, flag, length, sequence, edits as `place:old>new`, places from 1; the length."""
    at = i64(0)
    for read in range(reads):
        first = offsets[read]
        size = offsets[read + 1] - 1 - first
        begin = i64(spans[2 * read])
        end = i64(spans[2 * read + 1])
        if flags[read] == 68:
            begin = i64(0)
            end = size
        at = copied(data, names[2 * read], names[2 * read + 1], to, at)
        to[at] = 9
        to[at + 1] = flags[read]
        to[at + 2] = 9
        at = decimal(end - begin, to, at + 3)
        to[at] = 9
        at = copied(text, first + begin, first + end, to, at + 1)
        to[at] = 9
        at += 1
        edits = 0
        for i in range(size):
            if before[first + i] != text[first + i]:
                if edits > 0:
                    to[at] = 44
                    at += 1
                at = decimal(i + 1, to, at)
                to[at] = 58
                to[at + 1] = before[first + i]
                to[at + 2] = 62
                to[at + 3] = text[first + i]
                at += 4
                edits += 1
        to[at] = 10
        at += 1
    return at
