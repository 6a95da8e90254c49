"""The files of correction: FASTQ and FASTA in blocks of reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np

from ...family import InputError
from ...files import MEMORY, Input, excerpt, fasta, open_repeatedly
from ...files.fasta import record_pieces
from ...files.line_records import line_records
from ...files.pieces import Piece
from ...files.text_loops import newlines
from ...pipeline import Flow, workers_for
from .files_scan import GOOD, LINES, NOT_ASCII, ReadColumns, RecordColumns, scan_fastq, split_reads
from .generate import example
from .problem import Bytes, Offsets, Parameters, Problem, Reads

PIECE = 1 << 26
"""Bytes of a file that are one block, where the memory allows it. Each block costs a GPU some launches and the interpreter
some turns, whatever its size."""
MEMORY_SHARE = 512
"""A block has at most this part of the memory: some twenty of them are held at a time, in several forms each."""
PARSERS = 3
"""Threads that parse at most: each reads several hundred megabytes a second."""
PRINTABLE = bytes(range(33, 127))


@dataclass(frozen=True)
class ReadBlock:
    """Reads of a file that follow each other. data: bytes of the file, or, of FASTA, names and sequences without line
    ends. names: [begin, end) of read r in data is names[2 r : 2 r + 2], without the mark before it. sequences,
    qualities: where they begin there; of FASTA there are no qualities. part: as of `Piece`."""

    fastq: bool
    data: Bytes
    names: Offsets
    sequences: Offsets
    qualities: Offsets
    reads: Reads
    fraction: float | None = None

    def __len__(self) -> int:
        return len(self.reads)

    def name(self, read: int) -> str:
        return self.data[self.names[2 * read] : self.names[2 * read + 1]].tobytes().decode("ascii")


@dataclass(frozen=True)
class ReadFile:
    """A file of reads that can be read more than once. start: opens it from its beginning.

    form: "fastq" or "fasta"; an empty file is FASTQ without reads. name: for messages. size: bytes of a block, about.
    """

    name: str
    form: str
    start: Callable[[], Input]
    size: int = PIECE

    def blocks(self) -> Flow[ReadBlock]:
        """The reads: one thread reads, others parse. Raises InputError, with the line, where a record is broken."""
        parse = self._parse_fasta if self.form == "fasta" else self._parse_fastq
        return Flow(self._pieces()).map(parse, workers_for(PARSERS))

    def _pieces(self) -> Iterator[Piece]:
        with self.start() as source:
            if self.form == "fasta":
                yield from record_pieces(source, self.size)
                return
            with closing(iter(line_records(source, self.size, LINES))) as pieces:
                yield from pieces

    def _parse_fastq(self, piece: Piece) -> ReadBlock:
        data = piece.data
        lines = int(newlines(data, len(data))) + int(data[-1:].tobytes() not in b"\n") if piece.last else piece.newlines
        records = -(-lines // LINES)
        text, offsets = np.empty(len(data) + records, np.uint8), np.empty(records + 1, np.int64)
        names, sequences, qualities = (np.empty(n * records, np.int64) for n in (2, 1, 1))
        state, valid = np.zeros(2, np.int64), np.empty(records, np.bool_)
        read_columns = ReadColumns._make((text, offsets, valid))
        columns = RecordColumns._make((names, sequences, qualities))
        status = scan_fastq(data, len(data), records, read_columns, columns, state)
        good, at = state.tolist()
        if status != GOOD:
            raise self._mistake(status, piece, good, at)
        reads = Reads(text[: offsets[good]], offsets[: good + 1], valid[:good])
        return ReadBlock(True, data, names, sequences, qualities, reads, piece.fraction)

    def _mistake(self, status: int, piece: Piece, good: int, at: int) -> InputError:
        """What is wrong with the record that begins at `at`, after `good` records of the piece: dnaio's words."""
        import dnaio

        read, line = piece.lines // LINES + good, piece.lines + LINES * good
        if status == NOT_ASCII:
            return InputError(f"{self.name}: after read {read}: Non-ASCII characters found in record.")
        try:
            rest = piece.data[at:].tobytes()
            with dnaio.FastqReader(BytesIO(rest)) as reader:
                record = next(iter(reader))
        except dnaio.FileFormatError as error:
            place = f" after read {read}:" if error.line is None else f"{line + error.line + 1}:"
            what = re.sub(r"\s+", " ", str(error.message)).strip()[:200]
            return InputError(f"{self.name}:{place} {what}")
        except (EOFError, ValueError, StopIteration) as error:
            return InputError(f"{self.name}: the record after read {read} cannot be read: {error}")
        return self._unprintable(record.sequence.encode("ascii"), f" read {read + 1}")

    def _parse_fasta(self, piece: Piece) -> ReadBlock:
        records = fasta.parse_piece(piece, self.name)
        bounds, count = records.bounds, len(records)
        text, offsets = np.empty(int(bounds[-1]) + count, np.uint8), np.empty(count + 1, np.int64)
        valid = np.empty(count, np.bool_)
        wrong = int(split_reads(records.data, bounds, count, text, offsets, valid))
        if wrong >= 0:
            place = f"{records.lines[wrong]}: the sequence of {excerpt(records.name(wrong).encode())}"
            raise self._unprintable(records.sequence(wrong), place)
        if records.mistake:
            raise records.mistake
        names = np.stack([bounds[:-1:2], bounds[1::2]], axis=1).ravel()
        reads = Reads(text[: offsets[-1]], offsets, valid)
        return ReadBlock(False, records.data, names, bounds[1::2].copy(), np.empty(0, np.int64), reads, piece.fraction)

    def _unprintable(self, sequence: bytes, place: str) -> InputError:
        unprintable = sequence.translate(None, PRINTABLE)
        return InputError(f"{self.name}:{place} holds {excerpt(unprintable[:1])}, expected letters")


@contextmanager
def read_file(path: Path, memory: int = MEMORY) -> Iterator[ReadFile]:
    """Raises InputError where it is no FASTQ or FASTA file."""
    with open_repeatedly(path, memory) as start:
        with start() as source:
            first, name = source.peek(1)[:1], str(source.path)
        if first not in (b"@", b">", b""):
            raise InputError(f"{name}:1: it begins with {excerpt(first)}, expected '@' (FASTQ) or '>' (FASTA)")
        yield ReadFile(name, "fasta" if first == b">" else "fastq", start, min(PIECE, memory // MEMORY_SHARE))


def example_file() -> ReadFile:
    """The shipped example as a FASTA file."""
    sequences = example().reads.strings()
    text = "".join(f">read{r}\n{sequence}\n" for r, sequence in enumerate(sequences, 1)).encode("ascii")
    return ReadFile("the example", "fasta", lambda: Input(BytesIO(text), Path("the example")))


def read(path: Path) -> Problem:
    """All reads of a file, with the default parameters. Raises InputError."""
    with read_file(path) as reads:
        return Problem(Reads.concatenate([block.reads for block in reads.blocks()]), Parameters())
