"""The files of correction: FASTQ and FASTA in chunks of reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

import dnaio
from dnaio import SequenceRecord

from ...family import InputError
from ...files import MEMORY, Input, Metered, opened_again, shown
from ...files.fasta import records as fasta_records
from .generate import example
from .problem import Parameters, Problem, Reads

LETTERS_AT_ONCE = 1 << 23
BYTES_OF_A_LETTER = 128
"""That a chunk may take for each of its letters, and what stands beside it."""
PRINTABLE = bytes(range(33, 127))


@dataclass(frozen=True)
class ReadFile:
    """A file of reads that can be read more than once. start: opens it from its beginning.

    form: "fastq" or "fasta"; an empty file is FASTQ without reads. name: for messages. letters: of a chunk, about.
    """

    name: str
    form: str
    start: Callable[[], Input]
    letters: int = LETTERS_AT_ONCE

    def records(self) -> Iterator[SequenceRecord]:
        """Raises InputError, with the line, where a record is broken."""
        with self.start() as source:
            if self.form == "fasta":
                for line, name, sequence in fasta_records(source):
                    self._check(sequence, f"{line}: the sequence of {shown(name.encode())}")
                    yield SequenceRecord(name, sequence.decode("ascii"))
                return
            number = 0
            try:
                metered = Metered(source)
                with dnaio.FastqReader(cast(BinaryIO, metered)) as found:
                    for record in found:
                        number += 1
                        metered.record_is_whole()
                        if not record.sequence.isalpha():
                            self._check(record.sequence.encode("ascii"), f" read {number}")
                        yield record
            except dnaio.FileFormatError as error:
                where = f" after read {number}:" if error.line is None else f"{error.line + 1}:"
                what = re.sub(r"\s+", " ", str(error.message)).strip()[:200]
                raise InputError(f"{self.name}:{where} {what}") from None
            except (EOFError, ValueError) as error:
                raise InputError(f"{self.name}: the record after read {number} cannot be read: {error}") from None

    def _check(self, sequence: bytes, where: str) -> None:
        if strange := sequence.translate(None, PRINTABLE):
            raise InputError(f"{self.name}:{where} holds {shown(strange[:1])}, expected letters")

    def chunks(self) -> Iterator[list[SequenceRecord]]:
        """The records, so many at once that they have about `letters`."""
        chunk: list[SequenceRecord] = []
        total = 0
        for record in self.records():
            chunk.append(record)
            total += len(record) + len(record.name) + 1
            if total >= self.letters:
                yield chunk
                chunk, total = [], 0
        if chunk:
            yield chunk


@contextmanager
def read_file(path: Path, memory: int = MEMORY) -> Iterator[ReadFile]:
    """Raises InputError where it is no FASTQ or FASTA file."""
    with opened_again(path, memory) as start:
        with start() as source:
            first, name = source.peek(1)[:1], str(source.path)
        if first not in (b"@", b">", b""):
            raise InputError(f"{name}:1: it begins with {shown(first)}, expected '@' (FASTQ) or '>' (FASTA)")
        yield ReadFile(
            name, "fasta" if first == b">" else "fastq", start, min(LETTERS_AT_ONCE, memory // BYTES_OF_A_LETTER)
        )


def example_file() -> ReadFile:
    """The shipped example as a FASTA file."""
    sequences = example().reads.strings()
    text = "".join(f">read{r}\n{sequence}\n" for r, sequence in enumerate(sequences, 1)).encode("ascii")
    return ReadFile("the example", "fasta", lambda: Input(BytesIO(text), Path("the example")))


def reads_of(records: list[SequenceRecord]) -> Reads:
    """Their sequences, in upper case."""
    return Reads.of([record.sequence for record in records])


def read(path: Path) -> Problem:
    """All reads of a file, with the default parameters. Raises InputError."""
    with read_file(path) as reads:
        return Problem(reads_of(list(reads.records())), Parameters())


def text_of(record: SequenceRecord, form: str) -> bytes:
    """A record as it stands in a file."""
    if form == "fastq":
        return record.fastq_bytes()
    return f">{record.name}\n{record.sequence}\n".encode("ascii")
