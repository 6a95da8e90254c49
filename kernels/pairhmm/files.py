"""The files of the pair-HMM: records of reads and haplotypes in, scores out.

A record is a line `R H`, R lines `bases base-quality insertion deletion gap-continuation` (qualities as Phred + 33),
and H lines of one haplotype each. A file holds any number of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..family import InputError
from ..files import contents, shown
from .problem import Bytes, Offsets, Problem, offsets, ranges

Format = Literal["gpupairhmm", "tsv"]
COLUMNS = ("bases", "base qualities", "insertion qualities", "deletion qualities", "gap continuation")
PHRED, HIGHEST = ord("!"), ord("~")

_BASES = bytes(ord(chr(code).upper()) if chr(code) in "ACGTNacgtn" else 0 for code in range(256))
"""The letter a base stands for, 0 where a byte is no base: a table for bytes.translate."""

_BASES_AT_ONCE = 1 << 18  # as many as the caches hold with their indices


# ------------------------------------------------------------------ reading
def read(path: Path) -> Problem:
    """The problem in a file, plain or gzip; an empty file is an empty problem. Lower case counts as upper case.

    Raises InputError: one line that says where the first mistake is, what is there and what was expected.
    """
    return parse(contents(path), str(path))


def parse(data: bytes, name: str) -> Problem:
    """The problem in the text of a file called `name`. Raises InputError."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    found = _parse(_Text.of(data))
    if isinstance(found, _Mistake):
        # Perhaps only the spacing is unusual. Tidying keeps the line numbers.
        found = _parse(_Text.of(b"\n".join(b" ".join(line.split()) for line in data.split(b"\n"))))
    if isinstance(found, _Mistake):
        raise InputError(f"{name}:{found.line + 1}: {_explained(found)}")
    return found


@dataclass(frozen=True)
class _Text:
    """A file's bytes and where its lines start and end (without the newline); blank lines at the end left out."""

    data: bytes
    starts: Offsets
    ends: Offsets

    @staticmethod
    def of(data: bytes) -> _Text:
        data = data.rstrip()
        newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        ends = np.append(newlines, len(data)) if data else newlines
        return _Text(data, np.append(0, ends[:-1] + 1) if data else ends, ends)


@dataclass(frozen=True)
class _Records:
    """What each line is: headers, and how many reads and haplotypes follow each. `broken`: the line that should be a
    header and is not one, or promises more than there is; the number of lines where there is none."""

    headers: list[int]
    reads: list[int]
    haplotypes: list[int]
    broken: int

    @staticmethod
    def of(text: _Text) -> _Records:
        headers: list[int] = []
        reads: list[int] = []
        haplotypes: list[int] = []
        at, total, data = 0, len(text.starts), text.data
        starts, ends = text.starts.tolist(), text.ends.tolist()
        while at < total:
            fields = data[starts[at] : ends[at]].split()
            if len(fields) != 2 or not (fields[0].isdigit() and fields[1].isdigit()) or ends[at] - starts[at] > 40:
                break
            r, h = int(fields[0]), int(fields[1])
            if r + h > total - at - 1:
                break
            headers.append(at)
            reads.append(r)
            haplotypes.append(h)
            at += 1 + r + h
        return _Records(headers, reads, haplotypes, at)


@dataclass(frozen=True)
class _Mistake:
    """The first line that is not what its record says."""

    text: _Text
    records: _Records
    line: int


def _parse(text: _Text) -> Problem | _Mistake:
    """The problem, if every line is what its record says and single spaces or tabs separate the columns."""
    records = _Records.of(text)
    first = np.array(records.headers, np.int64) + 1
    reads, haplotypes = np.array(records.reads, np.int64), np.array(records.haplotypes, np.int64)
    # All bases of the file in one go: far faster than letter by letter.
    letters = np.frombuffer(text.data.translate(_BASES), np.uint8)
    read_lines, haplotype_lines = ranges(first, reads), ranges(first + reads, haplotypes)
    read_lengths, columns, bad_read = _read_columns(text, letters, read_lines)
    lengths, bases, bad_haplotype = _haplotype_bases(text, letters, haplotype_lines)
    line = min(bad_read, bad_haplotype, records.broken)
    if line < len(text.starts):
        return _Mistake(text, records, line)
    a, b, c, d, e = columns
    read_offsets, haplotype_offsets = offsets(read_lengths), offsets(lengths)
    return Problem(a, b, c, d, e, read_offsets, bases, haplotype_offsets, offsets(reads), offsets(haplotypes))


def _read_columns(text: _Text, letters: Bytes, lines: Offsets) -> tuple[Offsets, list[Bytes], int]:
    """(lengths, the five columns as the problem has them, the first bad line or the number of lines)."""
    data, end = np.frombuffer(text.data, np.uint8), len(text.starts)
    starts, widths = text.starts[lines], text.ends[lines] - text.starts[lines]
    shapeless = np.flatnonzero((widths < 9) | (widths % 5 != 4))
    bad = int(lines[shapeless[0]]) if len(shapeless) else end
    whole = int(shapeless[0]) if len(shapeless) else len(lines)
    starts, lengths = starts[:whole], (widths[:whole] - 4) // 5
    to = offsets(lengths)
    columns = [np.empty(to[-1], np.uint8) for _ in COLUMNS]
    for part in _parts(lengths):
        length, start, into = lengths[part], starts[part], slice(to[part.start], to[part.stop])
        where, stride = ranges(start, length), np.repeat(length + 1, length)
        wrong = [~_all(_take(letters, where, columns[0][into]) != 0, length)]
        for column in columns[1:]:
            where += stride
            quality = _take(data, where, column[into])
            quality -= np.uint8(PHRED)  # what is below wraps around to far above
            wrong.append(~_all(quality <= HIGHEST - PHRED, length))
        for number in range(1, 5):
            wrong.append(~np.isin(data[start + number * (length + 1) - 1], (ord(" "), ord("\t"))))
        found = np.flatnonzero(np.logical_or.reduce(wrong))
        if len(found):
            return lengths, columns, int(lines[part][found[0]])
    return lengths, columns, bad


def _haplotype_bases(text: _Text, letters: Bytes, lines: Offsets) -> tuple[Offsets, Bytes, int]:
    """(lengths, bases, the first bad line or the number of lines)."""
    starts, lengths = text.starts[lines], text.ends[lines] - text.starts[lines]
    empty = np.flatnonzero(lengths == 0)
    bad = int(lines[empty[0]]) if len(empty) else len(text.starts)
    whole = int(empty[0]) if len(empty) else len(lines)
    to = offsets(lengths[:whole])
    bases = np.empty(to[-1], np.uint8)
    for part in _parts(lengths[:whole]):
        known = _take(letters, ranges(starts[part], lengths[part]), bases[to[part.start] : to[part.stop]]) != 0
        found = np.flatnonzero(~_all(known, lengths[part]))
        if len(found):
            return lengths, bases, int(lines[part][found[0]])
    return lengths, bases, bad


def _parts(lengths: Offsets) -> Iterator[slice]:
    """Consecutive stretches with a moderate number of bases each."""
    if len(lengths):
        turn = np.cumsum(lengths) // _BASES_AT_ONCE
        cuts = [0, *(np.flatnonzero(np.diff(turn)) + 1).tolist(), len(lengths)]
        yield from map(slice, cuts[:-1], cuts[1:])


def _take(array: Bytes, where: Offsets, into: Bytes) -> Bytes:
    return np.take(array, where, out=into, mode="clip")  # the mode only avoids a copy: no index is outside


def _all(holds: npt.NDArray[np.bool_], lengths: Offsets) -> npt.NDArray[np.bool_]:
    """For each of several runs in a row (none empty), whether all of its elements hold."""
    if holds.all():
        return np.ones(len(lengths), np.bool_)
    return np.asarray(np.logical_and.reduceat(holds, np.cumsum(lengths) - lengths))


# ------------------------------------------------------------------ explaining
def _explained(mistake: _Mistake) -> str:
    """What is wrong with a line of tidied text, and what was expected."""
    text, records, line = mistake.text, mistake.records, mistake.line
    content = text.data[text.starts[line] : text.ends[line]]
    if line == records.broken:
        return _wrong_header(content, len(text.starts) - line - 1)
    record = int(np.searchsorted(records.headers, line, "right")) - 1
    header, reads, haplotypes = records.headers[record], records.reads[record], records.haplotypes[record]
    number, where = line - header, f"of the record at line {header + 1}"
    if number <= reads:
        return _wrong_read(content, f"read {number} of {reads} {where}")
    return _wrong_haplotype(content, f"haplotype {number - reads} of {haplotypes} {where}")


def _wrong_header(content: bytes, following: int) -> str:
    fields = content.split()
    expected = "expected a record's header: the number of reads and the number of haplotypes"
    if not fields:
        return f"a blank line, {expected}"
    if len(fields) != 2:
        return f"{shown(content)} has {_columns(len(fields))}, {expected}"
    for field in fields:
        if field[:1] == b"-" and field[1:].isdigit():
            return f"the count {shown(field)} is negative, {expected}"
        if not field.isdigit():
            return f"{shown(field)} is not a whole number, {expected}"
    reads, haplotypes = (shown(f)[1:-1] for f in fields)
    return f"expected {reads} reads and {haplotypes} haplotypes after this line, but only {following} lines follow"


def _wrong_read(content: bytes, what: str) -> str:
    fields = content.split()
    if not fields:
        return f"a blank line, expected {what}"
    if len(fields) != 5:
        return f"{shown(content)} has {_columns(len(fields))}, expected {what}: bases and four quality strings"
    for column, field in zip(COLUMNS[1:], fields[1:], strict=True):
        if len(field) != len(fields[0]):
            expected = f"expected {len(fields[0])} like the bases"
            return f"the {column} of {what} are {len(field)} characters, {expected}"
    base = _wrong_base(fields[0], what)
    if base:
        return base
    for column, field in zip(COLUMNS[1:], fields[1:], strict=True):
        for at, character in enumerate(field):
            if not PHRED <= character <= HIGHEST:
                place = f"{shown(bytes([character]))} at {at + 1} in the {column}"
                return f"{place} of {what} is no quality, expected characters from '!' to '~'"
    raise AssertionError("a good line was called a mistake")


def _wrong_haplotype(content: bytes, what: str) -> str:
    fields = content.split()
    if not fields:
        return f"a blank line, expected {what}"
    if len(fields) != 1:
        return f"{shown(content)} has {_columns(len(fields))}, expected {what}: bases only"
    return _wrong_base(fields[0], what)


def _wrong_base(field: bytes, what: str) -> str:
    for at, character in enumerate(field):
        if not _BASES[character]:
            return f"{shown(bytes([character]))} at {at + 1} in {what} is no base, expected A, C, G, T or N"
    return ""


def _columns(count: int) -> str:
    return f"{count} column{'s' if count != 1 else ''}"


# ------------------------------------------------------------------ writing
def lines(problem: Problem, scores: npt.NDArray[np.float64], form: Format = "gpupairhmm") -> Iterator[str]:
    """The scores as text, a line at a time with its newline.

    gpupairhmm: a record's header `R H`, then a line of H scores for each read.
    tsv: a header, then `record read haplotype log10`, all counted from 1, one pair a line.
    """
    values = scores.tolist()
    at = 0
    if form == "tsv":
        yield "record\tread\thaplotype\tlog10\n"
    shapes = zip(np.diff(problem.record_reads).tolist(), np.diff(problem.record_haplotypes).tolist(), strict=True)
    for record, (reads, haplotypes) in enumerate(shapes, 1):
        if form == "gpupairhmm":
            yield f"{reads} {haplotypes}\n"
        for read_number in range(1, reads + 1):
            row = values[at : at + haplotypes]
            at += haplotypes
            if form == "gpupairhmm":
                yield " ".join(map("%.7f".__mod__, row)) + "\n"
            else:
                yield from (f"{record}\t{read_number}\t{h}\t{value:.7f}\n" for h, value in enumerate(row, 1))


def records(problem: Problem) -> Iterator[str]:
    """A problem in the input format, a line at a time with its newline."""
    for reads, haplotypes in problem.records():
        yield f"{len(reads)} {len(haplotypes)}\n"
        for bases, *qualities in reads:
            columns = (bases, *(quality + np.uint8(PHRED) for quality in qualities))
            yield " ".join(column.tobytes().decode("ascii") for column in columns) + "\n"
        yield from (haplotype.tobytes().decode("ascii") + "\n" for haplotype in haplotypes)
