"""The files of correction: FASTQ and FASTA in chunks of reads, and files that are written whole or not at all."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import dnaio
from dnaio import SequenceRecord

from ...family import InputError
from ...files import reading, replacing
from .problem import Parameters, Problem, Reads

LETTERS_AT_ONCE = 1 << 23


@dataclass(frozen=True)
class ReadFile:
    """A file of reads, plain or gzip as its first bytes say, that can be read more than once.

    form: "fastq" or "fasta"; an empty file is FASTQ without reads.
    """

    path: Path
    form: str
    gzipped: bool

    @staticmethod
    def find(path: Path) -> ReadFile:
        """Raises InputError where it is no FASTQ or FASTA file."""
        with reading(path):
            if not path.is_file():
                what = "there is no such file" if not path.exists() else "not a file, which is needed: it is read twice"
                raise InputError(f"{path}: {what}")
            with path.open("rb") as file:
                gzipped = file.read(2) == b"\x1f\x8b"
            with _opened(path, gzipped) as text:
                start = text.read(1)
        if start not in (b"@", b">", b""):
            raise InputError(
                f"{path}:1: it begins with {start.decode('latin-1')!r}, expected '@' (FASTQ) or '>' (FASTA)"
            )
        return ReadFile(path, "fasta" if start == b">" else "fastq", gzipped)

    def records(self) -> Iterator[SequenceRecord]:
        """Raises InputError, with the line, where a record is broken."""
        reader = dnaio.FastaReader if self.form == "fasta" else dnaio.FastqReader
        with reading(self.path), _opened(self.path, self.gzipped) as text:
            try:
                with reader(text) as found:
                    yield from found
            except dnaio.FileFormatError as error:
                line = "" if error.line is None else f"{error.line + 1}:"
                what = re.sub(r"\s+", " ", str(error.message)).strip()
                raise InputError(f"{self.path}:{line} {what}") from None

    def chunks(self, letters: int = LETTERS_AT_ONCE) -> Iterator[list[SequenceRecord]]:
        """The records, so many at once that their sequences have about so many letters."""
        chunk: list[SequenceRecord] = []
        total = 0
        for record in self.records():
            chunk.append(record)
            total += len(record) + 1
            if total >= letters:
                yield chunk
                chunk, total = [], 0
        if chunk:
            yield chunk


def _opened(path: Path, gzipped: bool) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb") if gzipped else path.open("rb"))


def reads_of(records: list[SequenceRecord]) -> Reads:
    """Their sequences, in upper case."""
    return Reads.of([record.sequence for record in records])


def read(path: Path) -> Problem:
    """All reads of a file, with the default parameters. Raises InputError."""
    return Problem(reads_of(list(ReadFile.find(path).records())), Parameters())


# ------------------------------------------------------------------ writing
@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write, gzip if its name ends in .gz, that appears under its name only when all is well."""
    with replacing(path) as unfinished, unfinished.open("wb") as plain:
        if path.name.endswith(".gz"):
            with gzip.GzipFile("", "wb", compresslevel=4, fileobj=plain, mtime=0) as file:
                yield cast(BinaryIO, file)
        else:
            yield plain


def text_of(record: SequenceRecord, form: str) -> bytes:
    """A record as it stands in a file."""
    if form == "fastq":
        return record.fastq_bytes()
    return f">{record.name}\n{record.sequence}\n".encode("ascii")
