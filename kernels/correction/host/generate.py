"""Reads from a seed, as a sequencer makes them, with the truth beside them: where errors are is known, not guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .generate_loops import BEST_QUALITY, DrawColumns, count_errors, make_reads, write_records
from .problem import Bytes, Offsets, Problem, Reads

LETTERS = np.frombuffer(b"ACGT", np.uint8)
PIECE = 1 << 20
"""Bases that are drawn at a time."""
QUALITIES = 10 ** (-(np.arange(BEST_QUALITY + 1) - 0.5) / 10)
"""The largest rate of errors that a quality of so much states."""


@dataclass(frozen=True)
class Simulated:
    """reads: with errors. truth: the same without. quality: Phred + 33 of every base, placed as in the reads' text."""

    reads: Reads
    truth: Reads
    quality: Bytes


def example() -> Problem:
    """700 bases, 15 times over, one base in a hundred wrong."""
    return Problem(simulate(1, genome(1, 700), 250, (30, 50), 0.01, unknown=0.001).reads)


def genome(seed: int, length: int) -> Bytes:
    """Random bases."""
    draw = np.random.default_rng(seed)
    return np.concatenate([draw.choice(LETTERS, min(PIECE, length - at)) for at in range(0, length, PIECE)])


@dataclass(frozen=True)
class ReadDraws:
    """All that is drawn of some reads. lengths, starts, backward: of each its length, its place in the reference, its
    strand. luck: of each, by how much more it errs than others. chances: of each base, in [0, 1); it is wrong where its
    rate is larger. factor: rates are that times luck times the shape of a read. shifts: of each wrong base how much
    further in the alphabet the letter is. unknown: the bases that are N."""

    lengths: Offsets
    starts: Offsets
    backward: npt.NDArray[np.bool_]
    luck: npt.NDArray[np.float64]
    factor: float
    chances: npt.NDArray[np.float64]
    shifts: npt.NDArray[np.int64]
    unknown: Offsets

    def make(self, reference: Bytes) -> Simulated:
        """The reads."""
        offsets: Offsets = np.concatenate([[0], np.cumsum(self.lengths + 1)])
        text, truth, quality = (np.empty(offsets[-1], np.uint8) for _ in range(3))
        draws = DrawColumns._make(
            (
                self.lengths,
                self.starts,
                self.backward,
                self.luck,
                len(self.lengths),
                self.factor,
                self.chances,
                self.shifts,
            )
        )
        make_reads(reference, draws, QUALITIES, text, truth, quality)
        text[self.unknown + np.searchsorted(np.cumsum(self.lengths), self.unknown, "right")] = ord("N")
        return Simulated(Reads(text, offsets), Reads(truth, offsets), quality)


def simulate(
    seed: int | np.random.Generator,
    reference: Bytes,
    reads: int,
    length: tuple[int, int],
    error_rate: float,
    unknown: float = 0.0,
) -> Simulated:
    """Reads of a reference of A, C, G, T, from both strands, their lengths drawn between two (both possible).

    error_rate: substitutions a base. Errors cluster, as Illumina's do: towards the end of a read (a last base is wrong
    five times as often as a first one), and in some reads (their rates are spread log-normally, sigma 1). Qualities
    state each base's rate. unknown: rate of N. Equal arguments give equal reads; a generator goes on where it stands.
    """
    return draw_reads(seed, len(reference), reads, length, error_rate, unknown).make(reference)


def draw_reads(
    seed: int | np.random.Generator,
    reference: int,
    reads: int,
    length: tuple[int, int],
    error_rate: float,
    unknown: float = 0.0,
) -> ReadDraws:
    """What `simulate` draws for a reference of so many bases."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(length[0], np.minimum(length[1], reference) + 1, reads)
    starts = (draw.random(reads) * (reference - lengths + 1)).astype(np.int64)
    backward = draw.random(reads) < 0.5
    luck = draw.lognormal(-0.5, 1.0, reads)  # of mean 1
    bases = int(lengths.sum())
    factor = error_rate / max(float((luck * _shapes(lengths)).sum()) / max(bases, 1), 1e-12)
    chances = draw.random(bases)
    shifts = draw.integers(1, 4, int(count_errors(lengths, luck, reads, factor, chances)))
    letters = np.flatnonzero(draw.random(bases) < unknown) if unknown else np.empty(0, np.int64)
    return ReadDraws(lengths, starts, backward, luck, factor, chances, shifts, letters)


def _shapes(lengths: Offsets) -> npt.NDArray[np.float64]:
    """The sum over the bases of each read of 1 + 4 (place / last place)^2, which is how errors rise towards its end."""
    last = np.maximum(lengths - 1, 1)
    squares = (lengths - 1) * lengths * (2 * lengths - 1) / 6
    shapes: npt.NDArray[np.float64] = lengths + 4 * squares / last**2
    return shapes


def records_of(reads: Reads, quality: Bytes, first: int, fastq: bool) -> Bytes:
    """The text of reads, as FASTQ with their qualities or as FASTA, called `read` and a number from `first` on."""
    digits = len(str(first + len(reads)))
    to = np.empty((2 if fastq else 1) * len(reads.text) + len(reads) * (8 + digits), np.uint8)
    length = write_records(reads.text, quality, reads.offsets, len(reads), first, fastq, to)
    return to[:length]
