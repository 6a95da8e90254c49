"""Pair-HMM problem: reads, haplotypes and records that pair them, as flat arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import Global, i64
from simtbed.native import native

from ...files.letters import folded

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Read = tuple[Bytes, Bytes, Bytes, Bytes, Bytes]
Record = tuple[list[Read], list[Bytes]]


@dataclass(frozen=True)
class Problem:
    """Records of reads and haplotypes. Every read of a record is paired with every haplotype of the record.

    bases, haplotypes: ASCII, one of ACGTN, concatenated; sequence s is [offsets[s], offsets[s+1]).
    base_quality, insertion, deletion, continuation: Phred scores 0 to 93, one per base.
    record_reads, record_haplotypes: record r has the reads [record_reads[r], record_reads[r+1]), likewise haplotypes.
    """

    bases: Bytes
    base_quality: Bytes
    insertion: Bytes
    deletion: Bytes
    continuation: Bytes
    read_offsets: Offsets
    haplotypes: Bytes
    haplotype_offsets: Offsets
    record_reads: Offsets
    record_haplotypes: Offsets

    @property
    def read_columns(self) -> tuple[Bytes, Bytes, Bytes, Bytes, Bytes]:
        """Letters and qualities of the reads."""
        return self.bases, self.base_quality, self.insertion, self.deletion, self.continuation

    @cached_property
    def read_lengths(self) -> Offsets:
        return np.diff(self.read_offsets)

    @cached_property
    def haplotype_lengths(self) -> Offsets:
        return np.diff(self.haplotype_offsets)

    @cached_property
    def uniform(self) -> npt.NDArray[np.bool_]:
        """Whether each read has a single gap continuation."""
        changes = np.flatnonzero(self.continuation[1:] != self.continuation[:-1]) + 1
        reads = np.searchsorted(self.read_offsets, changes, "right") - 1
        is_uniform = np.ones(len(self.read_offsets) - 1, np.bool_)
        is_uniform[reads[self.read_offsets[reads] != changes]] = False
        return is_uniform

    @cached_property
    def pairs(self) -> tuple[Offsets, Offsets]:
        """(read, haplotype) of every pair in output order: by record, read, haplotype."""
        width = np.diff(self.record_haplotypes)  # of each record, then of each read
        record = np.repeat(np.arange(len(width)), np.diff(self.record_reads))
        per_read, first = width[record], self.record_haplotypes[:-1][record]
        reads = np.repeat(np.arange(len(record)), per_read)
        return reads, ranges(first, per_read)

    def pairs_of(self, numbers: Offsets) -> tuple[Offsets, Offsets]:
        """Return (read, haplotype) of pairs given by their index in output order."""
        reads = np.searchsorted(self.first_pairs, numbers, "right") - 1
        record = np.searchsorted(self.record_reads, reads, "right") - 1
        return reads, self.record_haplotypes[record] + numbers - self.first_pairs[reads]

    @cached_property
    def first_pairs(self) -> Offsets:
        """Index of each read's first pair in output order, and the total number of pairs."""
        return offsets(np.diff(self.record_haplotypes)[owners(self.record_reads)])

    def subset(self, first: int, last: int) -> Problem:
        """Return the reads [first, last) with the haplotypes of their records, as views: pairs first_pairs[first] to first_pairs[last]."""
        begin = int(np.searchsorted(self.record_reads, first, "right")) - 1
        end = max(int(np.searchsorted(self.record_reads, last, "left")), begin)
        bases = slice(self.read_offsets[first], self.read_offsets[last])
        haplotypes = self.record_haplotypes[begin : end + 1]
        letters = self.haplotype_offsets[haplotypes[0] : haplotypes[-1] + 1]
        a, b, c, d, e = (column[bases] for column in self.read_columns)
        reads = self.read_offsets[first : last + 1]
        return Problem(
            a, b, c, d, e, reads - reads[0], self.haplotypes[letters[0] : letters[-1]], letters - letters[0],
            np.clip(self.record_reads[begin : end + 1], first, last) - first, haplotypes - haplotypes[0],
        )  # fmt: skip

    def record_subset(self, first: int, last: int) -> Problem:
        """Return the records [first, last), as views."""
        reads, haplotype_range = self.record_reads[first : last + 1], self.record_haplotypes[first : last + 1]
        read_offsets = self.read_offsets[reads[0] : reads[-1] + 1]
        haplotype_offsets = self.haplotype_offsets[haplotype_range[0] : haplotype_range[-1] + 1]
        bases, letters = (slice(offsets[0], offsets[-1]) for offsets in (read_offsets, haplotype_offsets))
        a, b, c, d, e = (column[bases] for column in self.read_columns)
        return Problem(
            a, b, c, d, e, read_offsets - read_offsets[0], self.haplotypes[letters], haplotype_offsets - haplotype_offsets[0],
            reads - reads[0], haplotype_range - haplotype_range[0],
        )  # fmt: skip

    def read_subset(self, chosen: npt.NDArray[np.bool_]) -> Problem:
        """Return the chosen reads, in order, with the haplotypes of their records."""
        bases = np.repeat(chosen, self.read_lengths)
        a, b, c, d, e = (column[bases] for column in self.read_columns)
        return Problem(
            a, b, c, d, e, offsets(self.read_lengths[chosen]), self.haplotypes, self.haplotype_offsets,
            offsets(chosen)[self.record_reads], self.record_haplotypes,
        )  # fmt: skip

    @property
    def cells(self) -> int:
        """Total number of cells of all dynamic-programming matrices."""
        rows, columns = (
            np.diff(positions[records])
            for positions, records in (
                (self.read_offsets, self.record_reads),
                (self.haplotype_offsets, self.record_haplotypes),
            )
        )
        return int(rows @ columns)

    def records(self) -> Iterator[Record]:
        """Yield the records as views."""
        for record in range(len(self.record_reads) - 1):
            reads: list[Read] = []
            for r in range(self.record_reads[record], self.record_reads[record + 1]):
                a, b, c, d, e = (
                    column[self.read_offsets[r] : self.read_offsets[r + 1]] for column in self.read_columns
                )
                reads.append((a, b, c, d, e))
            chosen = range(self.record_haplotypes[record], self.record_haplotypes[record + 1])
            yield reads, [self.haplotypes[self.haplotype_offsets[h] : self.haplotype_offsets[h + 1]] for h in chosen]

    @staticmethod
    def from_records(records: Iterable[tuple[Sequence[Sequence[Any]], Sequence[Any]]]) -> Problem:
        """Create a problem from records of (reads, haplotypes); a read is (bases, base quality, insertion, deletion, continuation).

        Sequences are arrays of uint8 or, for bases, bytes. Letters: see `files.letters`. Raises SimtbedError for another character.
        """
        reads, haplotypes, record_reads, record_haplotypes = [], [], [0], [0]
        for some_reads, some_haplotypes in records:
            reads += [[folded(_bytes(read[0])), *(_bytes(column) for column in read[1:])] for read in some_reads]
            haplotypes += [folded(_bytes(haplotype)) for haplotype in some_haplotypes]
            record_reads.append(len(reads))
            record_haplotypes.append(len(haplotypes))
        nothing = np.empty(0, np.uint8)
        columns = [np.concatenate([nothing, *(read[c] for read in reads)]) for c in range(5)]
        return Problem(
            columns[0], columns[1], columns[2], columns[3], columns[4],
            offsets(np.array([len(read[0]) for read in reads], np.int64)),
            np.concatenate([nothing, *haplotypes]),
            offsets(np.array([len(h) for h in haplotypes], np.int64)),
            np.array(record_reads, np.int64), np.array(record_haplotypes, np.int64),
        )  # fmt: skip


def offsets(lengths: Offsets | npt.NDArray[np.bool_]) -> Offsets:
    """Return the start of each of several consecutive items, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def owners(starts: Offsets) -> Offsets:
    """Return the owner of each item: starts[1] - starts[0] zeros, starts[2] - starts[1] ones, and so on; starts[0] is 0."""
    result = np.empty(starts[-1], np.int64)
    _owners(starts, len(starts) - 1, result)
    return result


@native
def _owners(starts: Global[i64], count: i64, result: Global[i64]) -> None:
    for owner in range(count):
        for at in range(starts[owner], starts[owner + 1]):
            result[at] = owner


def ranges(first: Offsets, lengths: Offsets) -> Offsets:
    """Return the concatenation of the ranges first[i], first[i] + 1, ... of lengths[i] numbers."""
    ends = np.cumsum(lengths)
    return np.repeat(first - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)


def _bytes(sequence: Any) -> Bytes:
    return np.frombuffer(sequence, np.uint8) if isinstance(sequence, bytes) else np.asarray(sequence, np.uint8)
