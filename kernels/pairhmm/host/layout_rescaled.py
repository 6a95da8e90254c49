"""How the rescaled wavefront's reads and haplotypes are laid out, in time that millions of pairs do not notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from numba import njit

from ..wavefront import BLANK
from .layout import LETTERS, PROBABILITY, Arguments
from .problem import Bytes, Offsets, Problem, offsets, owners

INSERTION_SPAN = 40
"""Reads whose insertion scores are further apart are left to the wavefront."""
MARGIN = 32
"""BLANKs before the first haplotype: as many as lanes may have to wait."""
READS_AT_ONCE = 64
"""Reads that are looked at together: most files have nothing in them that needs a closer look."""

PROBABILITY32 = PROBABILITY.astype(np.float32)

Empty = Callable[..., npt.NDArray[Any]]
"""As np.empty: (shape, type)."""
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int32]


class RescaledLayout:
    """A problem whose reads are cut into items: a read and a run of haplotypes, of about `at_once` letters.

    unsupported: reads that the rescaled form has no room for: alpha clamped at 0, insertions far apart. uniform: reads with
    one gap continuation. letters: of all haplotypes of each read. empty: makes the arrays that launches copy from.
    """

    def __init__(self, problem: Problem, at_once: int, empty: Empty) -> None:
        self.problem = problem
        clamped = 1 - (PROBABILITY32[:, None] + PROBABILITY32) <= 0
        self.unsupported, self.uniform = _classify(
            problem.read_offsets, problem.insertion, problem.deletion, problem.continuation, clamped
        )
        n = problem.haplotype_lengths
        self.begins = offsets(n + 1) + MARGIN  # of each haplotype's letters
        length = int(self.begins[-1]) + 64 + at_once + int(n.max(initial=0))
        self.shift = -(-(length + 3) // 4)
        bases, qualities = empty(len(problem.bases), np.uint8), empty((len(problem.bases), 4), np.uint8)
        letters = empty(4 * self.shift, np.uint32)
        _encode(problem.bases, bases)
        _interleave(
            problem.base_quality, problem.insertion, problem.deletion, problem.continuation,
            qualities.reshape(-1).view(np.uint32),
        )  # fmt: skip
        _delay(problem.haplotypes, problem.haplotype_offsets, letters.view(np.uint8))
        self.arrays: Arguments = {
            "bases": bases, "qualities": qualities, "letters": letters, "probability": PROBABILITY32,
        }  # fmt: skip
        self.cuts, self.pieces, self.longest = _cuts(self.begins, problem.record_haplotypes, at_once)
        self.record = owners(problem.record_reads)  # of each read
        self.letters = np.diff(problem.haplotype_offsets[problem.record_haplotypes])[self.record]

    def launch(self, reads: Offsets, lanes: int, each: int) -> tuple[int, int, Arguments]:
        """(grid, letters of the longest haplotype, arguments) of `wavefront_rescaled` with P = `lanes` and K = `each` for
        all pairs of some reads.

        Items of like length share a block, the last one filled up with items that have no pairs. `sums` are those of
        the pairs, read by read.
        """
        items, ends, words, pairs = _items(
            reads, self.record, lanes, self.pieces, self.cuts, self.begins, self.problem.read_offsets
        )
        longest = int(self.longest[self.record[reads]].max())
        return (
            len(words),
            longest,
            {
                "items": items,
                "ends": ends,
                "words": words,
                **self.arrays,
                "sums": st.empty(pairs, "f32"),
                "shift": self.shift,
                "P": lanes,
                "K": each,
            },
        )

    def collect(
        self, found: npt.NDArray[np.float32], reads: Offsets, scale: float, sums: npt.NDArray[np.float64]
    ) -> None:
        """Put a launch's sums, times scale / n, where they belong among those of all pairs."""
        factors = scale / self.problem.haplotype_lengths
        _spread(found, factors, reads, self.record, self.problem.first_pairs, self.problem.record_haplotypes, sums)


@njit(cache=True, nogil=True)
def _classify(
    starts: Offsets, insertion: Bytes, deletion: Bytes, continuation: Bytes, clamped: Flags
) -> tuple[Flags, Flags]:
    count = len(starts) - 1
    unsupported, uniform = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    for begin in range(0, count, READS_AT_ONCE):
        end = min(begin + READS_AT_ONCE, count)
        rows = slice(starts[begin], starts[end])
        if not _needs_classifying(insertion[rows], deletion[rows], continuation[rows], clamped):
            continue
        for read in range(begin, end):
            least, most = 255, 0
            for at in range(starts[read], starts[read + 1]):
                least, most = min(least, insertion[at]), max(most, insertion[at])
                unsupported[read] |= clamped[insertion[at], deletion[at]]
                uniform[read] &= continuation[at] == continuation[starts[read]]
            unsupported[read] |= most - least > INSERTION_SPAN
    return unsupported, uniform


@njit(cache=True, nogil=True)
def _needs_classifying(insertion: Bytes, deletion: Bytes, continuation: Bytes, clamped: Flags) -> bool:
    """Whether one of several reads may not be uniform, or unsupported. What is clamped is so with smaller scores too."""
    least, most, least_deletion, differs = np.uint8(93), np.uint8(0), np.uint8(93), np.uint8(0)
    for at in range(len(insertion)):
        least, most = min(least, insertion[at]), max(most, insertion[at])
        least_deletion = min(least_deletion, deletion[at])
        differs |= continuation[at] ^ continuation[0]
    return bool(differs != 0 or most > least + INSERTION_SPAN or clamped[least, least_deletion])


@njit(cache=True, nogil=True)
def _encode(letters: Bytes, to: Bytes) -> None:
    """Bases as numbers, found by comparing: that is done for many at a time."""
    for at in range(len(letters)):
        letter = letters[at]
        code = np.uint8(BLANK)
        for known in range(len(LETTERS)):
            code = np.uint8(known) if letter == LETTERS[known] else code
        to[at] = code


@njit(cache=True, nogil=True)
def _interleave(a: Bytes, b: Bytes, c: Bytes, d: Bytes, to: npt.NDArray[np.uint32]) -> None:
    """Four bytes a word, the first one lowest."""
    for at in range(len(a)):
        low = np.uint32(a[at]) | np.uint32(b[at]) << np.uint32(8)
        to[at] = low | np.uint32(c[at]) << np.uint32(16) | np.uint32(d[at]) << np.uint32(24)


@njit(cache=True, nogil=True)
def _delay(haplotypes: Bytes, starts: Offsets, to: Bytes) -> None:
    """The stream of letters four times, each delayed by one more."""
    length = len(to) // 4
    to[:MARGIN] = BLANK
    at = MARGIN
    for haplotype in range(len(starts) - 1):
        _encode(haplotypes[starts[haplotype] : starts[haplotype + 1]], to[at + starts[haplotype] :])
        to[at + starts[haplotype + 1]] = BLANK
        at += 1
    to[at + starts[-1] : length] = BLANK
    for delay in range(1, 4):
        to[delay * length : delay * length + delay] = BLANK
        _copy(to[: length - delay], to[delay * length + delay :])


@njit(cache=True, nogil=True)
def _copy(letters: Bytes, to: Bytes) -> None:
    """Many at a time, which an assignment between two slices is not."""
    for at in range(len(letters)):
        to[at] = letters[at]


@njit(cache=True, nogil=True)
def _cuts(begins: Offsets, records: Offsets, at_once: int) -> tuple[Offsets, Offsets, Offsets]:
    """The first haplotype of each piece, and the number of all; the first piece of each record, and the number of all;
    letters of the longest haplotype of each record. All of a record's reads are paired with the same pieces."""
    cuts, pieces = np.empty(len(begins), np.int64), np.zeros(len(records), np.int64)
    longest = np.zeros(len(records), np.int64)
    found = 0
    for record in range(len(records) - 1):
        start, total = begins[records[record]], begins[records[record + 1]] - begins[records[record]]
        count, before = -(-total // at_once), -1
        for haplotype in range(records[record], records[record + 1]):
            piece = (begins[haplotype] - start) * count // total
            if piece != before:
                cuts[found] = haplotype
                found += 1
            before = piece
            longest[record] = max(longest[record], begins[haplotype + 1] - begins[haplotype] - 1)
        pieces[record + 1] = found
    cuts[found] = records[-1]
    return cuts[: found + 1], pieces, longest


@njit(cache=True, nogil=True)
def _items(
    reads: Offsets,
    record: Offsets,
    lanes: int,
    pieces: Offsets,
    cuts: Offsets,
    begins: Offsets,
    read_offsets: Offsets,
) -> tuple[Words, Words, Words, int]:
    """(items, ends, words) of `wavefront_rescaled`, and how many pairs they have."""
    count, most = 0, 0
    lengths = np.empty(len(cuts) - 1, np.int64)
    for piece in range(len(lengths)):
        lengths[piece] = begins[cuts[piece + 1]] - begins[cuts[piece]]
        most = max(most, lengths[piece])
    places = np.zeros(most + 2, np.int64)  # of the next item of each length, found by counting them
    for read in reads:
        for piece in range(pieces[record[read]], pieces[record[read] + 1]):
            places[lengths[piece] + 1] += 1
            count += 1
    places = np.cumsum(places)
    a_block = 32 // lanes
    blocks = -(-count // a_block)
    items, ends = np.empty((blocks * a_block, 4), np.int32), np.zeros(blocks * a_block, np.int32)
    words = np.empty(blocks, np.int32)
    pair = 0
    for read in reads:
        base, end = read_offsets[read], read_offsets[read + 1]
        for piece in range(pieces[record[read]], pieces[record[read] + 1]):
            place = places[lengths[piece]]
            places[lengths[piece]] += 1
            items[place, 0], items[place, 1] = base, end - base
            items[place, 2], items[place, 3] = begins[cuts[piece]], pair
            pair += cuts[piece + 1] - cuts[piece]
            ends[place] = pair
            if place % a_block == a_block - 1 or place == count - 1:  # the longest of its block
                words[place // a_block] = -(-(lengths[piece] + lanes - 1) // 4)
    items[count:] = items[count - 1]
    return items, ends, words, pair


@njit(cache=True, nogil=True)
def _spread(
    found: npt.NDArray[np.float32],
    factors: npt.NDArray[np.float64],
    reads: Offsets,
    record: Offsets,
    first_pairs: Offsets,
    record_haplotypes: Offsets,
    sums: npt.NDArray[np.float64],
) -> None:
    at = 0
    for read in reads:
        to, first = first_pairs[read], record_haplotypes[record[read]]
        for haplotype in range(first, record_haplotypes[record[read] + 1]):
            sums[to + haplotype - first] = found[at] * factors[haplotype]
            at += 1
