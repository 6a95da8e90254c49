"""Files of alignment: input as a table or as two FASTA files, output as a CIGAR table or as SAM.

A table row is `reference<TAB>alternate`, a result row `CIGAR<TAB>offset<TAB>score`; neither has a header.
"""

from __future__ import annotations

import codecs
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from hashlib import md5
from itertools import chain
from pathlib import Path
from typing import IO, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed import SimtbedError
from simtbed.escaping import printable

from ...family import InputError
from ...files import MEMORY, Input, excerpt, open_input, temporary_file
from ...files.fasta import Records, read_records
from ...files.inputs import MAX_BLANK_LINES
from ...files.letters import EXPECTED, fold_sequences, no_letter
from ...files.pieces import Piece, read_pieces
from ...files.text_loops import whole_lines
from .answer import Alignments
from .files_scan import (
    BLANK,
    CONSTANTS,
    FOLLOWING,
    GOOD,
    LINES,
    NUMBER,
    ROWS,
    SCAN_STATE,
    numbered_names,
    sam_references,
    sam_rows,
    scan_table,
    table_rows,
)
from .problem import Bytes, Offsets, Problem, Strategy, concatenate

Format = Literal["tsv", "sam"]
EXAMPLE = Path(__file__).parents[1] / "example.tsv"
BLOCK, BLOCKS = 1 << 24, 64
"""Bytes of a table per read, and the divisor of the memory limit for them."""
CELLS_AT_ONCE = 1 << 28
LETTERS_AT_ONCE = 1 << 24
"""Letters of a batch of FASTA pairs, unless it is a single pair: a bound on memory for any file."""
NAME = 512
"""Upper bound in bytes of the name and digest of a reference in SAM's pending header."""


def example() -> Problem:
    """Return the shipped example."""
    return read(EXAMPLE)


def read(path: Path) -> Problem:
    """Return the pairs of a table, plain or compressed; an empty file has none. Letters: see `files.letters`.

    Raises InputError with the line of the first mistake, its text and the expected text.
    """
    return concatenate(list(table(path)))


def read_fasta(references: Path, alternates: Path) -> Problem:
    """Return the records of two FASTA files, plain or compressed, paired in order. Raises InputError."""
    return concatenate(list(fasta(references, alternates)))


# ------------------------------------------------------------------ tables
def table(path: Path, cells: int = CELLS_AT_ONCE, memory: int = MEMORY) -> Iterator[Problem]:
    """Yield the rows of a table in batches of BLOCK bytes and at most `cells` cells, or one pair.

    At least one batch is yielded. A byte order mark is skipped; blank lines are allowed at the end. Raises InputError.
    """
    with open_input(path, memory) as source:
        scanned = _Rows(source)
        pieces = read_pieces(source, min(BLOCK, memory // BLOCKS), whole_lines, "a row")
        first = next(pieces)
        if first.data[: len(codecs.BOM_UTF8)].tobytes() == codecs.BOM_UTF8:
            first = first._replace(data=first.data[len(codecs.BOM_UTF8) :])
        for piece in chain([first], pieces):
            yield from _of_few_cells(scanned.take(piece), cells)


class _Rows:
    """Reader of the rows of consecutive pieces."""

    def __init__(self, source: Input) -> None:
        self.source, self.before = source, 0
        self.state = np.zeros(SCAN_STATE, np.int64)

    def take(self, piece: Piece) -> Problem:
        """Return the pairs of the next piece. Raises InputError."""
        size = len(piece.data)
        references, alternates = np.empty(size, np.uint8), np.empty(size, np.uint8)
        most = size // 4 + 2  # a row has at least four bytes, and the last one may lack its newline
        first_reference, first_alternate = np.empty(most, np.int64), np.empty(most, np.int64)
        columns = (references, first_reference), (alternates, first_alternate)
        outcome = scan_table(piece.data, size, piece.lines, MAX_BLANK_LINES, *columns, self.state)
        if outcome != GOOD:
            raise self._mistake(piece)
        rows = int(self.state[ROWS])
        r, a = first_reference[: rows + 1], first_alternate[: rows + 1]
        self.before += rows
        return Problem(references[: r[-1]], r, alternates[: a[-1]], a, before=self.before - rows)

    def _mistake(self, piece: Piece) -> InputError:
        """Return the error of the line at the end of the scan."""
        path, lines = self.source.path, int(self.state[LINES])
        number = piece.lines + lines + 1
        if self.state[FOLLOWING] > MAX_BLANK_LINES:
            return InputError(f"{path}:{number}: more than {MAX_BLANK_LINES:,} blank lines follow each other")
        if blank := int(self.state[BLANK]):
            return _wrong_row(path, blank, b"")
        row = piece.data.tobytes().split(b"\n", lines + 1)[lines].removesuffix(b"\r")
        fields = row.split(b"\t")
        if len(fields) == 2:
            for what, field in zip(("reference", "alternate"), fields, strict=True):
                if wrong := _wrong_sequence(field):
                    return InputError(f"{path}:{number}: the {what} {wrong}")
        return _wrong_row(path, number, row)


def _wrong_row(path: Path, number: int, row: bytes) -> InputError:
    columns = row.count(b"\t") + 1
    description = f"{excerpt(row)} has {columns} column{'s' if columns != 1 else ''}"
    return InputError(f"{path}:{number}: {description}, expected a reference, a tab, an alternate")


def _wrong_sequence(sequence: bytes) -> str:
    if not sequence:
        return "is empty"
    wrong = no_letter(sequence)
    return f"holds {wrong}, {EXPECTED}" if wrong else ""


def _of_few_cells(problem: Problem, cells: int) -> Iterator[Problem]:
    """Split a problem into batches of at most `cells` cells, or one pair."""
    cells_until = np.cumsum(problem.rows * problem.columns)
    first = 0
    while first < len(problem) or not first:
        before = int(cells_until[first - 1]) if first else 0
        last = min(int(np.searchsorted(cells_until, before + cells, "left")) + 1, len(problem))
        yield problem.subset(first, last)
        first = max(last, 1)


# ------------------------------------------------------------------ FASTA
def fasta(references: Path, alternates: Path, cells: int = CELLS_AT_ONCE, memory: int = MEMORY) -> Iterator[Problem]:
    """Yield the records of two FASTA files, paired in order, in batches as `table` does. Raises InputError."""
    size, before = min(LETTERS_AT_ONCE, memory // BLOCKS), 0
    with open_input(references, memory) as first, open_input(alternates, memory) as second:
        for first_batch, second_batch in _paired(
            _sequences(first, size), _sequences(second, size), references, alternates
        ):
            names = tuple(zip(first_batch.names, second_batch.names, strict=True))
            problem = Problem(
                first_batch.letters,
                first_batch.offsets,
                second_batch.letters,
                second_batch.offsets,
                names=names,
                before=before,
            )
            yield from _of_few_cells(problem, cells)
            before += len(problem)
    if not before:
        yield Problem.from_pairs([])


class _Sequences(NamedTuple):
    """Concatenated sequences, and their names."""

    letters: Bytes
    offsets: Offsets
    names: list[str]

    def subset(self, first: int, last: int) -> _Sequences:
        offsets = self.offsets[first : last + 1]
        return _Sequences(self.letters[offsets[0] : offsets[-1]], offsets - offsets[0], self.names[first:last])


def _paired(
    first: Iterator[_Sequences], second: Iterator[_Sequences], references: Path, alternates: Path
) -> Iterator[tuple[_Sequences, _Sequences]]:
    """Yield equal numbers of sequences of both files in order. Raises InputError if one file ends early."""
    reference_batch = alternate_batch = _Sequences(np.empty(0, np.uint8), np.zeros(1, np.int64), [])
    paired = 0
    while True:
        reference_batch = reference_batch if reference_batch.names else next(first, reference_batch)
        alternate_batch = alternate_batch if alternate_batch.names else next(second, alternate_batch)
        count = min(len(reference_batch.names), len(alternate_batch.names))
        if not count:
            break
        yield reference_batch.subset(0, count), alternate_batch.subset(0, count)
        paired += count
        reference_batch, alternate_batch = (
            reference_batch.subset(count, len(reference_batch.names)),
            alternate_batch.subset(count, len(alternate_batch.names)),
        )
    more = [
        paired + len(left.names) + sum(len(some.names) for some in rest)
        for left, rest in ((reference_batch, first), (alternate_batch, second))
    ]
    if more[0] != more[1]:
        raise InputError(
            f"{alternates}: {more[1]:,} records, expected {more[0]:,} like {references}: they are paired in order"
        )


def _sequences(source: Input, size: int) -> Iterator[_Sequences]:
    """Yield batches of at least one record: sequences, and names up to the first space."""
    before = 0
    for batch in read_records(source, size):
        letters, offsets = batch.sequences()
        wrong = int(fold_sequences(letters, offsets, len(batch)))
        names = [
            _first_word(batch, record, before, source.path) for record in range(len(batch) if wrong < 0 else wrong)
        ]
        if wrong >= 0:
            name = excerpt(batch.name(wrong).encode())
            what = _wrong_sequence(batch.sequence(wrong))
            raise InputError(f"{source.path}: record {before + wrong + 1}, {name}, {what}")
        if names:
            yield _Sequences(letters, offsets, names)
        before += len(names)


def _first_word(batch: Records, record: int, before: int, path: Path) -> str:
    """Return the name of a record; `before` records precede the batch. Raises InputError for an empty name."""
    whole = batch.name(record)
    name = whole.split(maxsplit=1)[0] if whole.split() else ""
    if not name or whole[0].isspace():
        raise InputError(f"{path}: record {before + record + 1} has no name")
    if not name.isprintable():
        raise InputError(f"{path}: record {before + record + 1}: its name {excerpt(name.encode())} is not printable")
    return name


# ------------------------------------------------------------------ output
def rows(problem: Problem) -> Iterator[str]:
    """Yield a problem in the input format, line by line with newlines."""
    for reference, alternate in problem.pairs():
        yield f"{reference.tobytes().decode('ascii')}\t{alternate.tobytes().decode('ascii')}\n"


class Texts(NamedTuple):
    """Output of a batch. For SAM: names; lengths: start of each reference; digests: of each reference with a name from the input;
    before: number of preceding pairs."""

    rows: memoryview
    names: Names | None = None
    lengths: Offsets | None = None
    digests: tuple[bytes, ...] = ()
    before: int = 0


REFERENCE_NAME = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*", re.ASCII)
READ_NAME = re.compile(r"[!-?A-~]{1,254}")
"""Valid names in SAM."""


def _check_names(names: tuple[tuple[str, str], ...]) -> None:
    """Raises InputError for a name that SAM does not allow."""
    for reference, alternate in names:
        for name, takes in ((reference, REFERENCE_NAME), (alternate, READ_NAME)):
            if not takes.fullmatch(name):
                raise InputError(f"{printable(name)[:60]} is no name for SAM: use tsv")


class Names(NamedTuple):
    """Names of references and alternates, alternating, concatenated. own: the names are from the input."""

    text: Bytes
    offsets: Offsets
    own: bool

    @staticmethod
    def of_problem(problem: Problem) -> Names:
        pairs = len(problem)
        if problem.names:
            _check_names(problem.names)
            named = [name.encode() for both in problem.names for name in both]
            lengths = np.fromiter(map(len, named), np.int64, len(named))
            return Names(np.frombuffer(b"".join(named), np.uint8), np.concatenate([[0], np.cumsum(lengths)]), True)
        text, ends = np.empty(2 * pairs * (NUMBER + 3), np.uint8), np.zeros(2 * pairs + 1, np.int64)
        length = numbered_names(problem.before, pairs, text, ends[1:])
        return Names(text[:length], ends, False)


def texts(problem: Problem, alignments: Alignments, form: Format) -> Texts:
    """Return the rows of a batch in a format. Raises InputError if SAM cannot represent it."""
    pairs = len(problem)
    if form == "tsv":
        to = np.empty(alignments.cigar_capacity + pairs * (2 * NUMBER + 3), np.uint8)
        length = table_rows(alignments.operations, alignments.firsts, alignments.offsets, alignments.scores, pairs, to)
        return Texts(to[:length].data)
    names = Names.of_problem(problem)
    to = np.empty(
        alignments.cigar_capacity + len(names.text) + len(problem.alternates) + pairs * (3 * NUMBER + CONSTANTS),
        np.uint8,
    )
    length = sam_rows(
        (names.text, names.offsets),
        (problem.references, problem.reference_offsets),
        (problem.alternates, problem.alternate_offsets),
        (alignments.operations, alignments.firsts, alignments.offsets, alignments.scores),
        pairs,
        to,
    )
    digests = tuple(_digest(problem.reference(pair)) for pair in range(pairs)) if names.own else ()
    return Texts(to[:length].data, names, problem.reference_offsets, digests, problem.before)


def _digest(sequence: Bytes) -> bytes:
    return md5(sequence.tobytes(), usedforsecurity=False).digest()


class _Reference(NamedTuple):
    """The first reference of a name. record: its number in the file, from 1."""

    record: int
    digest: bytes


class Writer:
    """Writer of the texts of batches as a table or as SAM.

    SAM: names are those of FASTA records, or ref1, alt1 and so on; AS is the score, NM the number of differences. The header names
    every reference, so that a temporary file stores the records until `finish`. Names of FASTA records are in memory, at most half
    of the limit. Raises InputError if SAM cannot represent a record.
    """

    def __init__(self, form: Format, to: IO[bytes], memory: int = MEMORY) -> None:
        self.to, self.memory = to, memory
        self.references: dict[bytes, _Reference] = {}
        self.waiting = self.header = None
        with ExitStack() as stack:
            if form == "sam":
                self.header = stack.enter_context(temporary_file())
                self.waiting = stack.enter_context(temporary_file())
            self.stack = stack.pop_all()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def put(self, some: Texts) -> None:
        """Write a batch."""
        if self.header is None or self.waiting is None:
            self.to.write(some.rows)
            return
        assert some.names is not None and some.lengths is not None
        new = self._new(some.names, some.digests, some.before, len(some.lengths) - 1)
        to = np.empty(len(some.names.text) + len(new) * (NUMBER + CONSTANTS), np.uint8)
        length = sam_references(some.names.text, some.names.offsets, some.lengths, new, len(new), to)
        self.header.write(to[:length].data)
        self.waiting.write(some.rows)

    def _new(self, names: Names, digests: tuple[bytes, ...], before: int, pairs: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the references not yet in the header. Raises InputError for other sequences of the same name."""
        new = np.ones(pairs, np.bool_)
        if not names.own:
            return new
        text, begins = names.text.tobytes(), names.offsets.tolist()
        for pair, digest in enumerate(digests):
            name, own = text[begins[2 * pair] : begins[2 * pair + 1]], _Reference(before + pair + 1, digest)
            first = self.references.setdefault(name, own)
            new[pair] = first is own
            if first.digest != digest:
                raise InputError(
                    f"the references of pairs {first.record} and {own.record} are both called {printable(name.decode())}, with "
                    "different sequences: SAM has one sequence a name; rename one, or use tsv"
                )
        if len(self.references) * NAME > self.memory // 2:
            raise InputError(
                f"SAM of {len(self.references):,} names of references takes more than half of --max-memory: use tsv"
            )
        return new

    def finish(self) -> None:
        """Write the header and the pending records."""
        if self.header is None or self.waiting is None:
            return
        self.to.write(b"@HD\tVN:1.6\tSO:unknown\n")
        for file in (self.header, self.waiting):
            file.seek(0)
            shutil.copyfileobj(file, self.to)


def write(answers: Iterable[tuple[Problem, Alignments]], form: Format, to: IO[bytes]) -> None:
    """Write the results of batches in order. Raises InputError if SAM cannot represent a record."""
    with Writer(form, to) as writer:
        for problem, alignments in answers:
            writer.put(texts(problem, alignments, form))
        writer.finish()


def check_form(form: Format, strategy: Strategy) -> None:
    """Raises SimtbedError if a format cannot represent the results of a strategy."""
    if form == "sam" and strategy is Strategy.IGNORE:
        raise SimtbedError("SAM cannot say that an alignment begins before its reference, as IGNORE does: use tsv")
