"""The files of alignment: pairs as a table or as two FASTA files in, CIGARs as a table or as SAM out.

A table's row is `reference<TAB>alternate`, its answer's `CIGAR<TAB>offset<TAB>score`; neither has a header.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import IO, Literal, NamedTuple

from simtbed import SimtbedError

from ...family import Answer, InputError
from ...files import MEMORY, Input, opened, printable, shown, temporary
from ...files.fasta import records
from .problem import Problem, Strategy

Format = Literal["tsv", "sam"]
EXAMPLE = Path(__file__).parents[1] / "example.tsv"
PRINTABLE = bytes(range(33, 127))
CELLS_AT_ONCE = 1 << 28
LETTERS_AT_ONCE = 1 << 24
"""Of a batch of pairs, beyond one: what it takes is bounded whatever the file."""
NAME = 256
"""Bytes that the name and the length of a reference take at most while SAM's header waits."""


class Pair(NamedTuple):
    """names: of both, where the file has them."""

    reference: bytes
    alternate: bytes
    names: tuple[str, str] | None = None


def example() -> Problem:
    """The problem that ships with the package."""
    return read(EXAMPLE)


def read(path: Path) -> Problem:
    """The pairs in a table, plain or packed; an empty file holds none. Bytes are kept as they are.

    Raises InputError: one line that says where the first mistake is, what is there and what was expected.
    """
    return _problem(list(table(path)), 0)


def read_fasta(references: Path, alternates: Path) -> Problem:
    """The records of two FASTA files, plain or packed, paired in order. Raises InputError."""
    return _problem(list(fasta(references, alternates)), 0)


def batches(pairs: Iterable[Pair], cells: int = CELLS_AT_ONCE) -> Iterator[Problem]:
    """The pairs, some at a time: of so many cells and LETTERS_AT_ONCE letters, beyond one. Once at least, perhaps none."""
    batch: list[Pair] = []
    before = filled = letters = 0
    for pair in pairs:
        batch.append(pair)
        filled += len(pair.reference) * len(pair.alternate)
        letters += len(pair.reference) + len(pair.alternate)
        if filled >= cells or letters >= LETTERS_AT_ONCE:
            yield _problem(batch, before)
            before, batch, filled, letters = before + len(batch), [], 0, 0
    if batch or not before:
        yield _problem(batch, before)


def _problem(pairs: list[Pair], before: int) -> Problem:
    problem = Problem.of((pair.reference, pair.alternate) for pair in pairs)
    return replace(problem, names=tuple(pair.names for pair in pairs if pair.names), before=before)


def table(path: Path, memory: int = MEMORY) -> Iterator[Pair]:
    """The rows of a table; blank lines may stand at its end. Raises InputError."""
    with opened(path, memory) as source:
        blank = 0
        for number, row in source.lines():
            if not row:
                blank = blank or number
                continue
            if blank:
                raise _wrong_row(source, blank, b"")
            fields = row.split(b"\t")
            if len(fields) != 2:
                raise _wrong_row(source, number, row)
            for what, field in zip(("reference", "alternate"), fields, strict=True):
                _check(field, f"{source.path}:{number}: the {what}")
            yield Pair(fields[0], fields[1])


def _wrong_row(source: Input, number: int, row: bytes) -> InputError:
    columns = row.count(b"\t") + 1
    found = f"{shown(row)} has {columns} column{'s' if columns != 1 else ''}"
    return InputError(f"{source.path}:{number}: {found}, expected a reference, a tab, an alternate")


def fasta(references: Path, alternates: Path, memory: int = MEMORY) -> Iterator[Pair]:
    """The records of two FASTA files, paired in order. Raises InputError."""
    with opened(references, memory) as first, opened(alternates, memory) as second:
        both = zip_longest(_sequences(first), _sequences(second))
        for paired, (one, other) in enumerate(both):
            if one is None or other is None:
                more = paired + 1 + sum(1 for _ in both)
                counts = (more, paired) if other is None else (paired, more)
                raise InputError(
                    f"{alternates}: {counts[1]:,} records, expected {counts[0]:,} like {references}: they are paired in order"
                )
            yield Pair(one[1], other[1], (one[0], other[0]))


def _sequences(source: Input) -> Iterator[tuple[str, bytes]]:
    """(name up to the first space, sequence) of each record."""
    for number, record in enumerate(records(source), 1):
        _check(record.sequence, f"{source.path}: record {number}, {shown(record.name.encode())},")
        name = record.name.split(maxsplit=1)[0] if record.name.split() else ""
        if not name or record.name[0].isspace():
            raise InputError(f"{source.path}: record {number} has no name")
        if not name.isprintable():
            raise InputError(f"{source.path}: record {number}: its name {shown(name.encode())} is not printable")
        yield name, record.sequence


def _check(sequence: bytes, what: str) -> None:
    if not sequence:
        raise InputError(f"{what} is empty")
    if strange := sequence.translate(None, PRINTABLE):
        raise InputError(f"{what} holds {shown(strange[:1])}, expected printable letters without spaces")


# ------------------------------------------------------------------ writing
def lines(problem: Problem, answer: Answer) -> Iterator[str]:
    """The answer as a table, a line at a time with its newline."""
    return (f"{cigar}\t{offset}\t{score}\n" for cigar, offset, score in answer.tolist())


def write(answers: Iterable[tuple[Problem, Answer]], form: Format, to: IO[bytes], memory: int = MEMORY) -> None:
    """The answers of batches, one after the other. Raises InputError for what SAM cannot say.

    SAM: names are those of FASTA records, or ref1, alt1 and so on; AS is the score. Its header names every reference,
    so that the records wait in a file; names of FASTA records are kept in memory, a part of which they may take.
    """
    if form == "tsv":
        for problem, answer in answers:
            to.writelines(line.encode() for line in lines(problem, answer))
        return
    with temporary() as header, temporary() as waiting:
        lengths: dict[str, int] = {}
        for problem, answer in answers:
            header.writelines(line.encode() for line in _references(problem, lengths))
            if len(lengths) * NAME > memory // 2:
                raise InputError(
                    f"SAM of {len(lengths):,} names of references takes more than half of --max-memory: use tsv"
                )
            waiting.writelines(line.encode() for line in _sam(problem, answer))
        to.write(b"@HD\tVN:1.6\tSO:unknown\n")
        for part in (header, waiting):
            part.seek(0)
            shutil.copyfileobj(part, to)


def check_form(form: Format, strategy: Strategy) -> None:
    """Raises SimtbedError where a format cannot say what a strategy may answer."""
    if form == "sam" and strategy is Strategy.IGNORE:
        raise SimtbedError("SAM cannot say that an alignment begins before its reference, as IGNORE does: use tsv")


def _names(problem: Problem) -> Iterator[tuple[str, str]]:
    first = problem.before + 1
    return iter(problem.names or ((f"ref{p}", f"alt{p}") for p in range(first, first + len(problem))))


def _references(problem: Problem, lengths: dict[str, int]) -> Iterator[str]:
    """SAM's header lines of references that are new; `lengths` keeps those that have names."""
    for (name, other), (reference, alternate) in zip(_names(problem), problem.pairs(), strict=True):
        if not alternate.tobytes().isalpha():
            raise InputError(f"{printable(other)} holds more than letters, which SAM cannot say: use tsv")
        if problem.names:
            known = lengths.setdefault(name, -len(reference))
            if abs(known) != len(reference):
                raise InputError(
                    f"references of different lengths are called {printable(name)}: SAM has one length a name"
                )
            if known > 0:
                continue
            lengths[name] = len(reference)
        yield f"@SQ\tSN:{name}\tLN:{len(reference)}\n"


def _sam(problem: Problem, answer: Answer) -> Iterator[str]:
    for (reference, name), (_, alternate), found in zip(_names(problem), problem.pairs(), answer.tolist(), strict=True):
        cigar, offset, score = found
        sequence = alternate.tobytes().decode("ascii")
        yield f"{name}\t0\t{reference}\t{offset + 1}\t255\t{cigar}\t*\t0\t0\t{sequence}\t*\tAS:i:{score}\n"


def rows(problem: Problem) -> Iterator[str]:
    """A problem in the input format, a line at a time with its newline."""
    for reference, alternate in problem.pairs():
        yield f"{reference.tobytes().decode('ascii')}\t{alternate.tobytes().decode('ascii')}\n"
