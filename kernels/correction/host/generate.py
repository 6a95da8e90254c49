"""Read simulator with a seed: sequencing errors with known truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .generate_loops import BEST_QUALITY, SampleColumns, count_errors, make_reads, write_records
from .problem import Bytes, Offsets, Problem, Reads

LETTERS = np.frombuffer(b"ACGT", np.uint8)
PIECE = 1 << 20
"""Bases generated at a time."""
QUALITIES = 10 ** (-(np.arange(BEST_QUALITY + 1) - 0.5) / 10)
"""Maximum error rate of each quality."""


@dataclass(frozen=True)
class Simulated:
    """Simulated reads and their true sequences.

    reads: with errors. truth: without errors. quality: Phred + 33 of every base, aligned with the reads' text.
    """

    reads: Reads
    truth: Reads
    quality: Bytes


def example() -> Problem:
    """Return reads of 700 bases with coverage 15 and an error rate of 1 %."""
    return Problem(simulate(1, genome(1, 700), 250, (30, 50), 0.01, unknown=0.001).reads)


def genome(seed: int, length: int) -> Bytes:
    """Return random bases."""
    draw = np.random.default_rng(seed)
    return np.concatenate([draw.choice(LETTERS, min(PIECE, length - at)) for at in range(0, length, PIECE)])


@dataclass(frozen=True)
class Reference:
    """Reference of simulated reads: runs of bases, each consecutive in one sequence. A read is within a run.

    bases: of all runs, A, C, G and T. starts, lengths: of each run in `bases`, the longest run first.
    """

    bases: Bytes
    starts: Offsets
    lengths: Offsets

    @staticmethod
    def of_runs(bases: Bytes, lengths: Offsets) -> Reference:
        """Return the reference with at least one run, of consecutive bases. lengths: of each run."""
        order = np.argsort(-lengths, kind="stable")
        return Reference(bases, (np.cumsum(lengths) - lengths)[order], lengths[order])

    def places(self, fractions: npt.NDArray[np.float64], lengths: Offsets) -> Offsets:
        """Return the first base of each read: the position at `fractions`, in [0, 1), of all positions of reads of its length."""
        ends = np.concatenate([[0], np.cumsum(self.lengths)])

        def positions_before(run: Offsets) -> Offsets:
            before: Offsets = ends[run] - run * (lengths - 1)
            return before

        usable = np.searchsorted(-self.lengths, -lengths, "right").astype(np.int64)
        positions = positions_before(usable)
        rank = np.minimum((fractions * positions).astype(np.int64), positions - 1)
        run, end = np.zeros(len(lengths), np.int64), usable  # bisection of the runs [run, end)
        while (end - run > 1).any():
            middle = (run + end) // 2
            is_later = positions_before(middle) <= rank
            run, end = np.where(is_later, middle, run), np.where(is_later, end, np.maximum(middle, run + 1))
        places: Offsets = self.starts[run] + rank - positions_before(run)
        return places


@dataclass(frozen=True)
class ReadSamples:
    """Random numbers of some reads. lengths, starts, backward: length, position in the reference, strand of each read.
    luck: factor of the
    error rate of each read. chances: of each base, in [0, 1); a base is wrong if its rate is larger. factor: a rate
    is factor times luck
    times the shape of a read. shifts: of each wrong base, the offset of its letter in the alphabet. unknown: indices of the bases N.
    """

    lengths: Offsets
    starts: Offsets
    backward: npt.NDArray[np.bool_]
    luck: npt.NDArray[np.float64]
    factor: float
    chances: npt.NDArray[np.float64]
    shifts: npt.NDArray[np.int64]
    unknown: Offsets

    def make(self, reference: Bytes) -> Simulated:
        """Return the reads."""
        offsets: Offsets = np.concatenate([[0], np.cumsum(self.lengths + 1)])
        text, truth, quality = (np.empty(offsets[-1], np.uint8) for _ in range(3))
        samples = SampleColumns._make(
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
        make_reads(reference, samples, QUALITIES, text, truth, quality)
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
    """Simulate reads of both strands of a reference of A, C, G, T. length: range of lengths, inclusive.

    error_rate: substitutions per base. Errors cluster as in Illumina reads: towards the end of a read (a last base
    is wrong five times as
    often as a first one), and in some reads (log-normal rates, sigma 1). Qualities state each base's rate. unknown: rate of N. Equal
    arguments give equal reads; a generator continues from its state.
    """
    whole = Reference.of_runs(reference, np.array([len(reference)]))
    return sample_reads(seed, whole, reads, length, error_rate, unknown).make(reference)


def sample_reads(
    seed: int | np.random.Generator,
    reference: Reference,
    reads: int,
    length: tuple[int, int],
    error_rate: float,
    unknown: float = 0.0,
) -> ReadSamples:
    """Return the random numbers of `simulate`. length: the first is at most that of the longest run."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(length[0], np.minimum(length[1], reference.lengths[0]) + 1, reads)
    starts = reference.places(draw.random(reads), lengths)
    backward = draw.random(reads) < 0.5
    luck = draw.lognormal(-0.5, 1.0, reads)  # mean 1
    bases = int(lengths.sum())
    factor = error_rate / max(float((luck * _shapes(lengths)).sum()) / max(bases, 1), 1e-12)
    chances = draw.random(bases)
    shifts = draw.integers(1, 4, int(count_errors(lengths, luck, reads, factor, chances)))
    letters = np.flatnonzero(draw.random(bases) < unknown) if unknown else np.empty(0, np.int64)
    return ReadSamples(lengths, starts, backward, luck, factor, chances, shifts, letters)


def _shapes(lengths: Offsets) -> npt.NDArray[np.float64]:
    """Return the sum over the bases of each read of 1 + 4 (position / last position)^2, the increase of errors towards its end."""
    last = np.maximum(lengths - 1, 1)
    squares = (lengths - 1) * lengths * (2 * lengths - 1) / 6
    shapes: npt.NDArray[np.float64] = lengths + 4 * squares / last**2
    return shapes


def records_of(reads: Reads, quality: Bytes, first: int, fastq: bool) -> Bytes:
    """Return reads as FASTQ with their qualities or as FASTA, named `read` and a number from `first` on."""
    digits = len(str(first + len(reads)))
    to = np.empty((2 if fastq else 1) * len(reads.text) + len(reads) * (8 + digits), np.uint8)
    length = write_records(reads.text, quality, reads.offsets, len(reads), first, fastq, to)
    return to[:length]
