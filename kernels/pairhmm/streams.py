"""How the rescaled wavefront's reads and haplotypes are laid out, in time that millions of pairs do not notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from simtbed.emulator import Out

from .layout import CODES, PROBABILITY, Arguments
from .problem import Bytes, Offsets, Problem, offsets, ranges
from .wavefront import BLANK

INSERTION_SPAN = 40
"""Reads whose insertion scores are further apart are left to the plain wavefront."""
MARGIN = 32
"""BLANKs before the first haplotype: as many as lanes may have to wait."""

PROBABILITY32 = PROBABILITY.astype(np.float32)

Flags = npt.NDArray[np.bool_]


class Streams:
    """A problem whose reads are cut into items: a read and a run of haplotypes, of about `at_once` letters.

    plain: reads that the rescaled form has no room for: alpha clamped at 0, insertions far apart. uniform: reads with
    one gap continuation.
    """

    def __init__(self, problem: Problem, at_once: int) -> None:
        self.problem = problem
        clamped = 1 - (PROBABILITY32[:, None] + PROBABILITY32) <= 0
        self.plain, self.uniform = _traits(
            problem.read_offsets, problem.insertion, problem.deletion, problem.continuation, clamped
        )
        n = problem.haplotype_lengths
        self.begins = offsets(n + 1) + MARGIN  # of each haplotype's letters
        length = int(self.begins[-1]) + 64 + at_once + int(n.max(initial=0))
        self.shift = -(-(length + 3) // 4)
        self.arrays: Arguments = {
            "bases": CODES[problem.bases],
            "qualities": _side_by_side(problem.base_quality, problem.insertion, problem.deletion, problem.continuation),
            "letters": _copies(problem.haplotypes, problem.haplotype_offsets, CODES, 4 * self.shift).view(np.uint32),
            "probability": PROBABILITY32,
        }
        # A record's haplotypes are cut the same way for all of its reads.
        record = np.repeat(np.arange(len(problem.record_haplotypes) - 1), np.diff(problem.record_haplotypes))
        start = self.begins[problem.record_haplotypes]
        total = np.diff(start)
        pieces = -(-total // at_once)
        piece = (self.begins[:-1] - start[record]) * pieces[record] // total[record]
        self.first = np.flatnonzero((np.diff(record, prepend=-1) != 0) | (np.diff(piece, prepend=0) != 0))
        self.last = np.append(self.first[1:], len(n))[: len(self.first)]
        self.pieces = np.searchsorted(self.first, problem.record_haplotypes)  # the first of each record
        self.record_of_read = np.repeat(np.arange(len(problem.record_reads) - 1), np.diff(problem.record_reads))

    def launch(self, reads: Offsets, lanes: int, each: int) -> tuple[int, Arguments]:
        """(grid, arguments) of `wavefront_rescaled` with P = `lanes` and K = `each` for all pairs of some reads.

        Items of like length share a block, the last one filled up with items that have no pairs. `sums` are those of
        the pairs, read by read.
        """
        record = self.record_of_read[reads]
        count = np.diff(self.pieces)[record]
        piece = ranges(self.pieces[record], count)
        item_read = np.repeat(np.arange(len(reads)), count)
        first, last = self.first[piece], self.last[piece]
        width = np.diff(self.problem.record_haplotypes)[record]
        pair = (offsets(width)[:-1] - self.problem.record_haplotypes[record])[item_read]
        length = self.begins[last] - self.begins[first]
        blocks = -(-len(piece) * lanes // 32)
        order = np.argsort(length, kind="stable")
        order = np.append(order, np.repeat(order[-1:], blocks * (32 // lanes) - len(order)))
        items = np.empty((len(order), 4), np.int32)
        of = reads[item_read[order]]
        items[:, 0], items[:, 1] = self.problem.read_offsets[of], self.problem.read_lengths[of]
        items[:, 2], items[:, 3] = self.begins[first[order]], (pair + first)[order]
        ends = (pair + last)[order].astype(np.int32)
        ends[len(piece) :] = 0
        longest = length[order].reshape(blocks, -1).max(axis=1)
        return blocks, {
            "items": items,
            "ends": ends,
            "words": (-(-(longest + lanes - 1) // 4)).astype(np.int32),
            **self.arrays,
            "sums": Out(int(width.sum()), "f32"),
            "shift": self.shift,
            "P": lanes,
            "K": each,
        }

    def longest(self, reads: Offsets) -> int:
        """Letters of the longest haplotype of some reads."""
        n, starts = self.problem.haplotype_lengths, self.problem.record_haplotypes
        return int(n[ranges(*_spans(starts, np.unique(self.record_of_read[reads])))].max())

    def collect(
        self, found: npt.NDArray[np.float32], reads: Offsets, scale: float, sums: npt.NDArray[np.float64]
    ) -> None:
        """Put a launch's sums, times scale / n, where they belong among those of all pairs."""
        record = self.record_of_read[reads]
        _spread(
            found, scale, self.problem.first_pairs[reads], self.problem.record_haplotypes[record],
            self.problem.record_haplotypes[record + 1], self.problem.haplotype_lengths, sums,
        )  # fmt: skip


def _spans(starts: Offsets, chosen: Offsets) -> tuple[Offsets, Offsets]:
    return starts[chosen], starts[chosen + 1] - starts[chosen]


@njit(cache=True, nogil=True)
def _traits(
    starts: Offsets, insertion: Bytes, deletion: Bytes, continuation: Bytes, clamped: Flags
) -> tuple[Flags, Flags]:
    plain, uniform = np.zeros(len(starts) - 1, np.bool_), np.ones(len(starts) - 1, np.bool_)
    for read in range(len(starts) - 1):
        least, most = 255, 0
        for at in range(starts[read], starts[read + 1]):
            least, most = min(least, insertion[at]), max(most, insertion[at])
            plain[read] |= clamped[insertion[at], deletion[at]]
            uniform[read] &= continuation[at] == continuation[starts[read]]
        plain[read] |= most - least > INSERTION_SPAN
    return plain, uniform


@njit(cache=True, nogil=True)
def _side_by_side(a: Bytes, b: Bytes, c: Bytes, d: Bytes) -> Bytes:
    made = np.empty((len(a), 4), np.uint8)
    for at in range(len(a)):
        made[at, 0], made[at, 1], made[at, 2], made[at, 3] = a[at], b[at], c[at], d[at]
    return made


@njit(cache=True, nogil=True)
def _copies(haplotypes: Bytes, starts: Offsets, codes: Bytes, length: int) -> Bytes:
    """The stream of letters four times, each delayed by one more."""
    made = np.full(4 * length, BLANK, np.uint8)
    for copy in range(4):
        to = copy * length + copy + MARGIN
        for haplotype in range(len(starts) - 1):
            for at in range(starts[haplotype], starts[haplotype + 1]):
                made[to + haplotype + at] = codes[haplotypes[at]]
    return made


@njit(cache=True, nogil=True)
def _spread(
    found: npt.NDArray[np.float32], scale: float, pair: Offsets, first: Offsets, last: Offsets, n: Offsets, sums: Any
) -> None:
    at = 0
    for read in range(len(pair)):
        for haplotype in range(first[read], last[read]):
            sums[pair[read] + haplotype - first[read]] = found[at] * (scale / n[haplotype])
            at += 1
