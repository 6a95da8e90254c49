"""From file to file: a first pass counts the k-mers, a second one corrects, so memory holds a chunk and the spectrum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import BinaryIO

from dnaio import SequenceRecord

from ...family import InputError, Launcher
from ...files import MEMORY, printable
from .compare import Accuracy
from .files import ReadFile, reads_of, text_of
from .pipeline import Counter, Filter, correct
from .problem import Corrected, Parameters, Reads

LOG_COLUMNS = ("name", "flag", "length", "sequence", "edits")
BYTES_OF_A_SLOT = 24
"""Of the table: key and count in it, in the one it grew from, and in the filter made of it."""
SPARSE = 0.5
"""If fewer of the k-mers counted, each as often as it was, belong to solid ones, coverage is too low to correct by."""


@dataclass
class Summary:
    """What was done. Reads: in all, kept whole and unchanged or changed, kept in part, discarded, too short for k.
    solid: solid k-mers of both strands. solid_share: their part of all that was counted. accuracy: if truth was given."""

    reads: int = 0
    unchanged: int = 0
    changed: int = 0
    trimmed: int = 0
    discarded: int = 0
    short: int = 0
    edits: int = 0
    solid: int = 0
    solid_share: float = 0.0
    accuracy: Accuracy | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Writers:
    """Where results go: corrected reads, discarded reads as they came, a line a read."""

    output: BinaryIO
    discarded: BinaryIO | None = None
    log: BinaryIO | None = None

    def write(self, records: list[SequenceRecord], corrected: Corrected, form: str, summary: Summary) -> None:
        edits = corrected.edits()
        for r, (record, flag, (start, end)) in enumerate(
            zip(records, map(chr, corrected.flags.tolist()), corrected.spans.tolist(), strict=True)
        ):
            changes = edits.get(r, [])
            summary.edits += len(changes)
            if self.log:
                listed = ",".join(f"{at + 1}:{old}>{new}" for at, old, new in changes)
                sequence = corrected.sequence(r)
                self.log.write(f"{printable(record.name)}\t{flag}\t{len(sequence)}\t{sequence}\t{listed}\n".encode())
            if flag == "D":
                summary.discarded += 1
                if self.discarded:
                    self.discarded.write(text_of(record, form))
                continue
            if flag == "S":
                summary.short += 1
            elif end - start < len(record):
                summary.trimmed += 1
                record = record[start:end]
                record.sequence = corrected.sequence(r)
            elif changes:
                summary.changed += 1
                record.sequence = corrected.sequence(r)
            else:
                summary.unchanged += 1
                if not record.sequence.isupper():
                    record.sequence = record.sequence.upper()
            self.output.write(text_of(record, form))


def correct_file(
    reads: ReadFile,
    writers: Writers,
    parameters: Parameters,
    variant: str,
    launcher: Launcher,
    truth: ReadFile | None = None,
    memory: int = MEMORY,
) -> Summary:
    """Correct the reads of a file by their own spectrum, in their order.

    truth: the same reads without errors, for an accuracy. memory: what the table of k-mers may take. Raises InputError.
    """
    summary = Summary()
    filter = _spectrum(reads, parameters, variant, launcher, summary, memory)
    if writers.log:
        writers.log.write(("\t".join(LOG_COLUMNS) + "\n").encode())
    for records, true_part in _beside(reads, truth):
        corrected = correct(reads_of(records), filter, parameters, variant, launcher)
        if true_part is not None:
            summary.accuracy = (summary.accuracy or Accuracy()) + Accuracy.of(corrected, true_part)
        writers.write(records, corrected, reads.form, summary)
    return summary


def _spectrum(
    reads: ReadFile, parameters: Parameters, variant: str, launcher: Launcher, summary: Summary, memory: int
) -> Filter:
    """The first pass; what the summary says of the spectrum."""
    counter = Counter(parameters.k, launcher, memory // BYTES_OF_A_SLOT)
    for records in reads.chunks():
        summary.reads += len(records)
        counter.add(reads_of(records))
    solid = counter.solid(parameters.min_multiplicity)
    occurrences = solid.occurrences(parameters.min_multiplicity)
    summary.solid, summary.solid_share = solid.total, occurrences
    least = parameters.min_multiplicity
    if summary.reads == 0:
        summary.warnings.append(f"{reads.name} holds no reads")
    elif solid.total == 0:
        summary.warnings.append(
            f"no k-mer was seen {least} times: every read of {parameters.k} bases or more is discarded"
        )
    elif occurrences < SPARSE:
        summary.warnings.append(
            f"only {100 * occurrences:.0f} % of the k-mers counted were seen {least} times or more: coverage is too low for "
            f"--min-multiplicity {least}, or k too long"
        )
    return Filter.of(solid, parameters, launcher, words=variant == "packed")


def _beside(reads: ReadFile, truth: ReadFile | None) -> Iterator[tuple[list[SequenceRecord], Reads | None]]:
    """Chunks of reads, with the same reads of the truth."""
    if truth is None:
        for records in reads.chunks():
            yield records, None
        return
    true_records = truth.records()
    read = 0
    for records in reads.chunks():
        found = [true for _, true in zip(records, true_records, strict=False)]  # this way round: none too many is read
        for record, true in zip_longest(records, found):
            read += 1
            if true is None:
                raise InputError(f"{truth.name}: it ends before read {read} of {reads.name}")
            if len(true) != len(record):
                raise InputError(
                    f"{truth.name}: read {read} has {len(true)} bases, expected {len(record)} as in {reads.name}"
                )
        yield records, reads_of(found)
    if next(true_records, None) is not None:
        raise InputError(f"{truth.name}: it goes on after read {read}, the last of {reads.name}")
