"""Files of correction: FASTQ and FASTA in blocks of reads."""

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
from ...files.pieces import Piece, is_blank
from ...files.text_loops import newlines
from ...pipeline import Flow, workers_for
from .files_scan import GOOD, LINES, NOT_ASCII, ReadColumns, RecordColumns, scan_fastq, split_reads
from .generate import example
from .problem import Bytes, Offsets, Parameters, Problem, Reads

PIECE = 1 << 26
"""Bytes of a block if the memory permits. Launches and interpreter calls have a fixed cost per block."""
MEMORY_SHARE = 512
"""A block occupies at most 1 / MEMORY_SHARE of the memory: about twenty exist at a time, in several copies."""
PARSERS = 3
"""Maximum number of parsing threads; each parses several hundred megabytes per second."""
PRINTABLE = bytes(range(33, 127))


@dataclass(frozen=True)
class ReadBlock:
    """Consecutive reads of a file. data: bytes of the file; for FASTA, names and sequences without line ends. names:
    [begin, end) of read
    r in data is names[2 r : 2 r + 2], without its mark. sequences, qualities: start offsets in data; FASTA has no
    qualities. fraction:
    see `Piece`."""

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
    """A file of reads for several passes. start: opens it at its beginning.

    form: "fastq" or "fasta"; an empty file is FASTQ without reads. name: for messages. size: approximate bytes of a block.
    """

    name: str
    form: str
    start: Callable[[], Input]
    size: int = PIECE

    def blocks(self) -> Flow[ReadBlock]:
        """Return a flow of the reads: one thread reads, others parse. Raise InputError with the line of a malformed record."""
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
        data = piece.data[:0] if piece.last and is_blank(piece.data) else piece.data
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
        """Return the error of the record at `at`, after `good` records of the piece, in the words of dnaio."""
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
    """Open a file of reads. Raise InputError if it is neither FASTQ nor FASTA."""
    with open_repeatedly(path, memory) as start:
        with start() as source:
            first, name = source.peek(1)[:1], str(source.path)
        if first not in (b"@", b">", b""):
            raise InputError(f"{name}:1: it begins with {excerpt(first)}, expected '@' (FASTQ) or '>' (FASTA)")
        yield ReadFile(name, "fasta" if first == b">" else "fastq", start, min(PIECE, memory // MEMORY_SHARE))


def example_file() -> ReadFile:
    """Return the shipped example as a FASTA file."""
    sequences = example().reads.strings()
    text = "".join(f">read{r}\n{sequence}\n" for r, sequence in enumerate(sequences, 1)).encode("ascii")
    return ReadFile("the example", "fasta", lambda: Input(BytesIO(text), Path("the example")))


def read(path: Path) -> Problem:
    """Return all reads of a file, with the default parameters. Raise InputError if it is malformed."""
    with read_file(path) as reads:
        return Problem(Reads.concatenate([block.reads for block in reads.blocks()]), Parameters())
