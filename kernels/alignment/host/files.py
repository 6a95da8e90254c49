"""The files of alignment: pairs as a table or as two FASTA files in, CIGARs as a table or as SAM out.

A table's row is `reference<TAB>alternate`, its answer's `CIGAR<TAB>offset<TAB>score`; neither has a header.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import dnaio

from ...family import Answer, InputError
from ...files import contents, shown
from .problem import Problem, Strategy

Format = Literal["tsv", "sam"]
EXAMPLE = Path(__file__).parents[1] / "example.tsv"
PRINTABLE = bytes(range(33, 127))


def example() -> Problem:
    """The problem that ships with the package."""
    return read(EXAMPLE)


def read(path: Path) -> Problem:
    """The pairs in a table, plain or gzip; an empty file holds none. Bytes are kept as they are.

    Raises InputError: one line that says where the first mistake is, what is there and what was expected.
    """
    pairs = []
    rows = contents(path).replace(b"\r\n", b"\n").rstrip(b"\n").split(b"\n")
    for number, row in enumerate(rows if rows != [b""] else [], 1):
        fields = row.split(b"\t")
        if len(fields) != 2:
            columns = f"{len(fields)} column{'s' if len(fields) != 1 else ''}"
            raise InputError(f"{path}:{number}: {shown(row)} has {columns}, expected a reference, a tab, an alternate")
        for what, field in zip(("reference", "alternate"), fields, strict=True):
            _check(field, f"{path}:{number}: the {what}")
        pairs.append((fields[0], fields[1]))
    return Problem.of(pairs)


def read_fasta(references: Path, alternates: Path) -> Problem:
    """The records of two FASTA files, plain or compressed, paired in order. Raises InputError."""
    found = [_records(path) for path in (references, alternates)]
    if len(found[0]) != len(found[1]):
        raise InputError(
            f"{alternates}: {len(found[1]):,} records, expected {len(found[0]):,} like {references}: they are paired in order"
        )
    both = list(zip(*found, strict=True))
    problem = Problem.of((a, b) for (_, a), (_, b) in both)
    return replace(problem, names=tuple((a, b) for (a, _), (b, _) in both))


def _records(path: Path) -> list[tuple[str, bytes]]:
    """(name up to the first space, sequence) of each record."""
    found = []
    try:
        with dnaio.open(path, fileformat="fasta") as reader:
            for number, record in enumerate(reader, 1):
                sequence = record.sequence.encode("ascii")
                _check(sequence, f"{path}: record {number}, {shown(record.name.encode())},")
                if not record.id:
                    raise InputError(f"{path}: record {number} has no name")
                found.append((record.id, sequence))
    except (dnaio.FileFormatError, EOFError, UnicodeError) as error:
        raise InputError(f"{path}: not FASTA: {' '.join(str(error).split())}") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    return found


def _check(sequence: bytes, what: str) -> None:
    if not sequence:
        raise InputError(f"{what} is empty")
    if strange := sequence.translate(None, PRINTABLE):
        raise InputError(f"{what} holds {shown(strange[:1])}, expected printable letters without spaces")


# ------------------------------------------------------------------ writing
def lines(problem: Problem, answer: Answer, form: Format = "tsv") -> Iterator[str]:
    """The answer as text, a line at a time with its newline. Raises InputError for what SAM cannot say.

    SAM: names are those of FASTA records, or ref1, alt1 and so on; AS is the score.
    """
    if form == "sam":
        return _sam(problem, answer, _lengths(problem))
    return (f"{cigar}\t{offset}\t{score}\n" for cigar, offset, score in answer.tolist())


def _names(problem: Problem) -> Iterator[tuple[str, str]]:
    return iter(problem.names or ((f"ref{p}", f"alt{p}") for p in range(1, len(problem) + 1)))


def _lengths(problem: Problem) -> dict[str, int]:
    """The length of each reference by name, as SAM's header lists them."""
    if problem.strategy is Strategy.IGNORE:
        raise InputError("SAM cannot say that an alignment begins before its reference, as IGNORE does: use tsv")
    lengths: dict[str, int] = {}
    for (name, other), (reference, alternate) in zip(_names(problem), problem.pairs(), strict=True):
        if lengths.setdefault(name, len(reference)) != len(reference):
            raise InputError(f"references of different lengths are called {name}: SAM has one length a name")
        if not alternate.tobytes().isalpha():
            raise InputError(f"{other} holds more than letters, which SAM cannot say: use tsv")
    return lengths


def _sam(problem: Problem, answer: Answer, lengths: dict[str, int]) -> Iterator[str]:
    yield "@HD\tVN:1.6\tSO:unknown\n"
    yield from (f"@SQ\tSN:{name}\tLN:{length}\n" for name, length in lengths.items())
    for (reference, name), (_, alternate), found in zip(_names(problem), problem.pairs(), answer.tolist(), strict=True):
        cigar, offset, score = found
        sequence = alternate.tobytes().decode("ascii")
        yield f"{name}\t0\t{reference}\t{offset + 1}\t255\t{cigar}\t*\t0\t0\t{sequence}\t*\tAS:i:{score}\n"


def rows(problem: Problem) -> Iterator[str]:
    """A problem in the input format, a line at a time with its newline."""
    for reference, alternate in problem.pairs():
        yield f"{reference.tobytes().decode('ascii')}\t{alternate.tobytes().decode('ascii')}\n"
