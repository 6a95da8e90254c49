"""Files of the pair-HMM: input records of reads and haplotypes, output scores.

A record is a line `R H`, R lines `bases base-quality insertion deletion gap-continuation` (qualities as Phred + 33), and H lines
of one haplotype each. A file has any number of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ...family import InputError
from ...files import MEMORY, MEMORY_OF_BATCHES, Input, excerpt, open_input
from ...files.letters import EXPECTED, no_letter
from ...pipeline import Flow
from . import files_gatk
from .files_scan import HIGHEST, MORE, NUMBER, PHRED, SCORE, WRONG, line_ends, scan
from .files_scan import text as scores_as_text
from .problem import Bytes, Problem

Format = Literal["gpupairhmm", "tsv", "gatk"]
EXAMPLE = Path(__file__).parents[1] / "example.in"
COLUMNS = ("bases", "base qualities", "insertion qualities", "deletion qualities", "gap continuation")
BLOCK, BLOCKS = 1 << 24, 64
"""Bytes of a file per read, increased until a record is complete, and the divisor of the memory limit for them."""
MOST_SHARES = 8
"""Maximum number of blocks that a block is split into for several GPUs."""
BYTES_OF_A_PAIR = 64
"""Bytes of the arrays of a pair while a block is solved."""
VALUES_AT_ONCE = 1 << 18


# ------------------------------------------------------------------ input
def example() -> Problem:
    """Return the shipped example."""
    return read(EXAMPLE)


def read(path: Path) -> Problem:
    """Return the problem of a file or a GATK dump, plain or compressed; an empty file is an empty problem. Letters: see `files.letters`.

    Raises InputError with the line of the first mistake, its text and the expected text.
    """
    with open_input(path) as file:
        if files_gatk.is_dump(file):
            return files_gatk.whole(file)
        return parse(file.whole(), str(path))


def parse(data: bytes, name: str) -> Problem:
    """Return the problem in the text of a file called `name`. Raises InputError."""
    return _Scanned(np.frombuffer(data, np.uint8), name, 0, last=True).problem()


class Block(NamedTuple):
    """Consecutive records of a file. fraction: fraction of the file read so far; None if unknown."""

    problem: Problem
    fraction: float | None


def blocks(path: Path, size: int | None = None, memory: int = MEMORY, shares: int = 1) -> Flow[Block]:
    """Return the blocks of a file or a GATK dump: at least one, perhaps empty.

    A block has about `size` bytes of text (BLOCK, or less under a memory limit), and at most the pairs for a quarter of the memory.
    shares: number of GPUs; several get smaller blocks, so that all have work throughout. One thread reads, another
    one parses. Raises
    InputError after the blocks before the mistake.
    """
    size = (size or BLOCK) // min(shares, MOST_SHARES)

    def pieces() -> Iterator[_Piece | Block]:
        with open_input(path, memory) as file:
            if files_gatk.is_dump(file):
                yield from (Block(problem, file.fraction) for problem, _ in files_gatk.read_batches(file))
                return
            last = False
            while not last:
                buffer = np.empty(min(size, memory // BLOCKS, file.longest), np.uint8)
                filled = file.fill(buffer)
                last = filled < len(buffer)
                yield _Piece(buffer[:filled], file, last, file.fraction)

    return Flow(pieces()).through(lambda given: _blocks(given, memory // BYTES_OF_A_PAIR))


class _Piece(NamedTuple):
    """Bytes of a file. last: the file ends here. fraction: fraction of the file read so far."""

    data: Bytes
    file: Input
    last: bool
    fraction: float | None


def _blocks(pieces: Iterator[_Piece | Block], pairs: int) -> Iterator[Block]:
    """Yield the blocks of consecutive pieces; a block is passed through."""
    rest, line, scanned_bytes = np.empty(0, np.uint8), 0, 0
    for piece in pieces:
        if isinstance(piece, Block):
            yield piece
            continue
        data, file, last, fraction = piece
        name = str(file.path)
        rest = np.concatenate([rest, data]) if len(rest) else data
        if len(rest) < 2 * scanned_bytes and not last:  # an incomplete record would be scanned repeatedly
            continue
        scanned = _Scanned(rest, name, line, last)
        if last or scanned.records or scanned.outcome == WRONG:
            for problem in _of_few_pairs(scanned.problem(), name, line, pairs):
                yield Block(problem, fraction)
        rest, line = rest[scanned.length :].copy(), line + scanned.lines
        scanned_bytes = 0 if scanned.records else len(rest)
        if 2 * scanned_bytes > file.longest:
            raise file.too_long(f"the record at line {line + 1}")


def _of_few_pairs(problem: Problem, name: str, before: int, most: int) -> Iterator[Problem]:
    """Yield the records of a problem in batches of a quarter of `most` pairs. Raises InputError for a record with more than `most`."""
    reads, haplotypes = np.diff(problem.record_reads), np.diff(problem.record_haplotypes)
    pairs = reads * haplotypes
    for record in np.flatnonzero(pairs > most)[:1].tolist():
        line = before + record + int(reads[:record].sum() + haplotypes[:record].sum()) + 1
        raise InputError(
            f"{name}:{line}: a record of {pairs[record]:,} pairs, expected at most the {most:,} allowed by --max-memory"
        )
    pairs_until = np.concatenate([[0], np.cumsum(pairs)])
    first, few = 0, min(most, MEMORY_OF_BATCHES // BYTES_OF_A_PAIR) // 4
    while first < len(reads) or not first:
        last = max(int(np.searchsorted(pairs_until, pairs_until[first] + few, "right")) - 1, first + 1)
        yield problem.record_subset(first, min(last, len(reads)))
        first = last


class _Scanned:
    """The records at the start of a piece of a file, after `before` lines of the file.

    outcome: see `scan`. records: number of complete records. lines, length: of these records. last: the file ends here.
    """

    def __init__(self, data: Bytes, name: str, before: int, last: bool) -> None:
        self.data, self.name, self.before, self.last = data, name, before, last
        self.ends = line_ends(data, last)
        count = len(self.ends) + 1
        columns, haplotypes = np.empty((5, len(data) // 5 + 1), np.uint8), np.empty(len(data) + 1, np.uint8)
        read_offsets, haplotype_offsets, record_reads, record_haplotypes = (np.empty(count, np.int64) for _ in range(4))
        self.outcome, self.line, self.records, *self.header = scan(
            data, self.ends, columns, read_offsets, haplotypes, haplotype_offsets, record_reads, record_haplotypes
        )
        reads, haplotype_count = record_reads[self.records], record_haplotypes[self.records]
        bases = read_offsets[reads]
        a, b, c, d, e = (column[:bases] for column in columns)
        self.complete = Problem(
            a, b, c, d, e, read_offsets[: reads + 1],
            haplotypes[: haplotype_offsets[haplotype_count]], haplotype_offsets[: haplotype_count + 1],
            record_reads[: self.records + 1], record_haplotypes[: self.records + 1],
        )  # fmt: skip
        self.lines = int(self.records + reads + haplotype_count)
        self.length = int(self.ends[self.lines - 1]) + 1 if self.lines else 0

    def problem(self) -> Problem:
        """Return the complete records. Raises InputError for an invalid line or, in the file's last piece, an incomplete record."""
        if self.outcome == WRONG or (self.last and self.outcome == MORE):
            raise self.mistake()
        return self.complete

    def mistake(self) -> InputError:
        """Return the error of the line at the end of the scan, with the expected text."""
        line = self.line
        start = int(self.ends[line - 1]) + 1 if line else 0
        content = b" ".join(self.data[start : self.ends[line]].tobytes().split())
        number = line - self.lines
        if number == 0:
            description = _wrong_header(content, len(self.ends) - line - 1)
        else:
            reads, haplotypes = self.header[-2:]
            location = f"of the record at line {self.before + self.lines + 1}"
            if number <= reads:
                description = _wrong_read(content, f"read {number} of {reads} {location}")
            else:
                description = _wrong_haplotype(content, f"haplotype {number - reads} of {haplotypes} {location}")
        return InputError(f"{self.name}:{self.before + line + 1}: {description}")


# ------------------------------------------------------------------ errors
def _wrong_header(content: bytes, following: int) -> str:
    fields = content.split()
    expected = "expected a record's header: the number of reads and the number of haplotypes"
    if not fields:
        return f"a blank line, {expected}"
    if len(fields) != 2:
        return f"{excerpt(content)} has {_columns(len(fields))}, {expected}"
    for field in fields:
        if field[:1] == b"-" and field[1:].isdigit():
            return f"the count {excerpt(field)} is negative, {expected}"
        if not field.isdigit():
            return f"{excerpt(field)} is not a whole number, {expected}"
    reads, haplotypes = (excerpt(f)[1:-1] for f in fields)
    return f"expected {reads} reads and {haplotypes} haplotypes after this line, but only {following} lines follow"


def _wrong_read(content: bytes, what: str) -> str:
    fields = content.split()
    if not fields:
        return f"a blank line, expected {what}"
    if len(fields) != 5:
        return f"{excerpt(content)} has {_columns(len(fields))}, expected {what}: bases and four quality strings"
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
                place = f"{excerpt(bytes([character]))} at {at + 1} in the {column}"
                return f"{place} of {what} is no quality, expected characters from '!' to '~'"
    raise AssertionError("a good line was called a mistake")


def _wrong_haplotype(content: bytes, what: str) -> str:
    fields = content.split()
    if not fields:
        return f"a blank line, expected {what}"
    if len(fields) != 1:
        return f"{excerpt(content)} has {_columns(len(fields))}, expected {what}: bases only"
    return _wrong_base(fields[0], what)


def _wrong_base(field: bytes, what: str) -> str:
    wrong = no_letter(field)
    return f"{wrong} in {what} is no base, {EXPECTED}" if wrong else ""


def _columns(count: int) -> str:
    return f"{count} column{'s' if count != 1 else ''}"


# ------------------------------------------------------------------ output
def lines(
    problem: Problem, scores: npt.NDArray[np.float64], form: Format = "gpupairhmm", before: int = 0
) -> Iterator[bytes]:
    """Yield the scores as text, in whole lines. before: number of records of the same file written earlier.

    gpupairhmm: a record's header `R H`, then a line of H scores for each read.
    tsv: a header, then `record read haplotype log10`, all numbered from 1, one pair per line.
    gatk: a dump of GATK's pair-HMM, with these scores.
    """
    if form == "gatk":
        yield from files_gatk.lines(problem, scores, before)
        return
    if form == "tsv" and not before:
        yield b"record\tread\thaplotype\tlog10\n"
    reads, haplotypes = np.diff(problem.record_reads), np.diff(problem.record_haplotypes)
    values = np.cumsum(reads * haplotypes)
    first = 0
    while first < len(reads):
        written = values[first - 1] if first else 0
        last = max(int(np.searchsorted(values, written + VALUES_AT_ONCE, "right")), first + 1)
        last = min(last, first + VALUES_AT_ONCE)
        some = slice(first, last)
        width = SCORE + 3 * NUMBER if form == "tsv" else SCORE
        capacity = (values[last - 1] - written) * width + int(reads[some].sum()) + 2 * NUMBER * (last - first)
        to = np.empty(capacity, np.uint8)
        chunk = scores[written : values[last - 1]]
        length = scores_as_text(chunk, reads[some], haplotypes[some], form == "tsv", before + first, to)
        yield to[:length].tobytes()
        first = last


def records(problem: Problem) -> Iterator[str]:
    """Yield a problem in the input format, line by line with newlines."""
    for reads, haplotypes in problem.records():
        yield f"{len(reads)} {len(haplotypes)}\n"
        for bases, *qualities in reads:
            columns = (bases, *(quality + np.uint8(PHRED) for quality in qualities))
            yield " ".join(column.tobytes().decode("ascii") for column in columns) + "\n"
        yield from (haplotype.tobytes().decode("ascii") + "\n" for haplotype in haplotypes)
