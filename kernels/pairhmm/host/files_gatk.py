"""Dumps of GATK's pair-HMM: inputs and output of the pair-HMM, one pair per line.

`gatk HaplotypeCaller --pair-hmm-results-file FILE` writes them (`writeToResultsFileIfApplicable` of GATK's PairHMM and
VectorLoglessPairHMM); the tests of GATK and of Intel's GKL read them (`pairhmm-testdata.txt`). A header starts with
`# hap-bases`. Then, separated by blanks: haplotype, read, base, insertion, deletion and gap continuation qualities as Phred + 33,
and the likelihood's log10 in `%e` format. The haplotypes of each read are consecutive.

The file does not mark the start of a region. Consecutive reads with the same haplotypes form a record. The likelihood of a pair
does not depend on its record, and pairs retain their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...family import InputError
from ...files import Input, excerpt, open_input
from ...files.letters import EXPECTED, FOLDED, no_letter
from .files_scan import HIGHEST, PHRED
from .problem import Problem

HEADER = b"# hap-bases read-bases read-qual read-ins-qual read-del-qual gcp expected-result\n"
COLUMNS = ("haplotype", "bases", "base qualities", "insertion qualities", "deletion qualities", "gap continuation")
BEGIN = b"# hap-bases"
QUALITIES = bytes(range(PHRED, HIGHEST + 1))
TO_PHRED = bytes((code - PHRED) % 256 for code in range(256))
PAIRS_AT_ONCE = 1 << 16
BYTES_AT_ONCE = 1 << 26
"""Limit of the bytes of lines in a batch of more than one read."""

Values = npt.NDArray[np.float64]


class Row(NamedTuple):
    """A pair: the haplotype, the read with its four qualities as in the file, GATK's likelihood."""

    haplotype: bytes
    read: tuple[bytes, ...]
    answer: float


def is_dump(source: Input) -> bool:
    """Return whether a file starts with the header of a dump."""
    return source.peek(len(BEGIN))[: len(BEGIN)] == BEGIN


def batches(path: Path) -> Iterator[tuple[Problem, Values]]:
    """Yield (problem, GATK's likelihoods in the order of its pairs) for batches of reads; at least one, perhaps without pairs.

    Letters: see `files.letters`. Raises InputError.
    """
    with open_input(path) as source:
        if not is_dump(source):
            raise InputError(
                f"{source.path}:1: expected the header of a GATK pair-HMM dump, '{HEADER.decode().strip()}'"
            )
        yield from read_batches(source)


def read_batches(source: Input) -> Iterator[tuple[Problem, Values]]:
    """Yield batches as `batches` does, for an open dump."""
    reads: list[list[Row]] = []
    pairs = size = 0
    some = False
    for rows in _reads(_rows(source)):
        reads.append(rows)
        pairs += len(rows)
        size += sum(len(row.haplotype) + 5 * len(row.read[0]) for row in rows)
        if pairs >= PAIRS_AT_ONCE or size >= min(BYTES_AT_ONCE, source.longest):
            yield _as_problem(reads)
            reads, pairs, size, some = [], 0, 0, True
    if reads or not some:
        yield _as_problem(reads)


def whole(source: Input) -> Problem:
    """Return all pairs of an open dump. Raises InputError."""
    return _as_problem(list(_reads(_rows(source))))[0]


def _rows(source: Input) -> Iterator[Row]:
    numbered = source.lines()
    next(numbered)
    for number, line in numbered:
        if not line:
            continue
        place, fields = f"{source.path}:{number}", line.split()
        if len(fields) != len(COLUMNS) + 1:
            raise InputError(
                f"{place}: {len(fields)} column{'s' * (len(fields) != 1)}, expected a haplotype, a read's bases, four "
                "quality strings and a likelihood"
            )
        for what, field in zip(COLUMNS[:2], fields, strict=False):
            if wrong := no_letter(field):
                raise InputError(f"{place}: {wrong} in the {what} is no base, {EXPECTED}")
        for what, field in zip(COLUMNS[2:], fields[2:], strict=False):
            if len(field) != len(fields[1]):
                raise InputError(
                    f"{place}: the {what} are {len(field)} characters, expected {len(fields[1])} like the bases"
                )
            if strange := field.translate(None, QUALITIES):
                raise InputError(f"{place}: {excerpt(strange[:1])} in the {what} is no quality, expected '!' to '~'")
        haplotype, bases = (field.translate(FOLDED) for field in fields[:2])
        yield Row(haplotype, (bases, *fields[2:6]), _number(fields[6], place))


def _number(field: bytes, place: str) -> float:
    """Return a likelihood in Java's format, in any locale."""
    try:
        value = float(field.replace(b",", b"."))
    except ValueError:
        value = np.nan
    if np.isnan(value):
        raise InputError(f"{place}: the likelihood is {excerpt(field)}, expected a logarithm such as -5.156349e+00")
    return value


def _reads(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yield the rows of each read. A read ends if it changes, or if its first haplotype occurs again."""
    for _, same in groupby(rows, key=lambda row: row.read):
        rows_of_read: list[Row] = []
        for row in same:
            if rows_of_read and row.haplotype == rows_of_read[0].haplotype:
                yield rows_of_read
                rows_of_read = []
            rows_of_read.append(row)
        yield rows_of_read


def _as_problem(reads: list[list[Row]]) -> tuple[Problem, Values]:
    """Return reads as a problem, with one record for consecutive reads with the same haplotypes."""
    records = []
    for haplotypes, group in groupby(reads, key=lambda rows: [row.haplotype for row in rows]):
        records.append(([_columns(rows[0].read) for rows in group], haplotypes))
    answers = np.array([row.answer for rows in reads for row in rows], np.float64)
    return Problem.from_records(records), answers


def _columns(read: tuple[bytes, ...]) -> list[bytes]:
    bases, *qualities = read
    return [bases, *(quality.translate(TO_PHRED) for quality in qualities)]


# ------------------------------------------------------------------ output
def lines(problem: Problem, scores: Values, before: int = 0) -> Iterator[bytes]:
    """Yield a dump with these scores in the last column, a read at a time. before: number of records written earlier."""
    if not before:
        yield HEADER
    first = 0
    for reads, haplotypes in problem.records():
        starts = [haplotype.tobytes() for haplotype in haplotypes]
        for bases, *qualities in reads:
            read = b" ".join([bases.tobytes(), *((quality + np.uint8(PHRED)).tobytes() for quality in qualities)])
            answers = scores[first : first + len(starts)].tolist()
            yield b"".join(b"%b %b %e\n" % (start, read, answer) for start, answer in zip(starts, answers, strict=True))
            first += len(starts)
