"""Memory layout of reads and haplotypes for the rescaled wavefront, by compiled loops for millions of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, f32, f64, i32, i64, u8, u32
from simtbed.native import native

from ..wavefront import BLANK
from .layout import LETTERS, PROBABILITY, Arguments
from .problem import Bytes, Offsets, Problem, offsets, owners

INSERTION_SPAN = 40
"""Reads with a larger range of insertion scores are computed by `wavefront`."""
MARGIN = 32
"""BLANKs before the first haplotype: the largest delay of a lane."""
READS_AT_ONCE = 64
"""Reads tested together: in most files no read needs the test for single reads."""

CODES = tuple(LETTERS)
PROBABILITY32 = PROBABILITY.astype(np.float32)

Empty = Callable[..., npt.NDArray[Any]]
"""Allocator like np.empty: (shape, type)."""
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int32]


class RescaledLayout:
    """Layout of a problem as items: a read and consecutive haplotypes of about `at_once` letters.

    unsupported: reads with alpha clamped at 0 or a large range of insertion scores. uniform: reads with one gap continuation.
    letters: total of all haplotypes of each read. empty: allocator of the arrays for launches.
    """

    def __init__(self, problem: Problem, at_once: int, empty: Empty) -> None:
        self.problem = problem
        self.unsupported, self.uniform = classify(problem)
        n = problem.haplotype_lengths
        self.begins = offsets(n + 1) + MARGIN  # first letter of each haplotype
        length = int(self.begins[-1]) + 64 + at_once + int(n.max(initial=0))
        self.shift = -(-(length + 3) // 4)
        bases, qualities = empty(len(problem.bases), np.uint8), empty((len(problem.bases), 4), np.uint8)
        letters = empty(4 * self.shift, np.uint32)
        _encode_all(problem.bases, len(bases), bases)
        _interleave(
            problem.base_quality, problem.insertion, problem.deletion, problem.continuation, len(bases),
            qualities.reshape(-1).view(np.uint32),
        )  # fmt: skip
        _delay(problem.haplotypes, problem.haplotype_offsets, letters.view(np.uint8))
        self.arrays: Arguments = {
            "bases": bases, "qualities": qualities, "letters": letters, "probability": PROBABILITY32,
        }  # fmt: skip
        self.cuts, self.pieces, self.longest = _cuts(self.begins, problem.record_haplotypes, at_once)
        self.record = owners(problem.record_reads)  # record of each read
        self.letters = np.diff(problem.haplotype_offsets[problem.record_haplotypes])[self.record]

    def launch(self, reads: Offsets, lanes: int, rows_per_lane: int) -> tuple[int, int, Arguments]:
        """Return (grid, letters of the longest haplotype, arguments) of `wavefront_rescaled` for all pairs of the given reads.

        P = `lanes`, K = `rows_per_lane`. Items of similar length share a block; the last block is padded with items without
        pairs. `sums` are those
        of the pairs, read by read.
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
                "K": rows_per_lane,
            },
        )

    def collect(
        self, sums_of_launch: npt.NDArray[np.float32], reads: Offsets, scale: float, sums: npt.NDArray[np.float64]
    ) -> None:
        """Copy the sums of a launch, times scale / n, to their places among the sums of all pairs."""
        factors = scale / self.problem.haplotype_lengths
        _spread(
            sums_of_launch,
            factors,
            reads,
            len(reads),
            self.record,
            self.problem.first_pairs,
            self.problem.record_haplotypes,
            sums,
        )


def classify(problem: Problem) -> tuple[Flags, Flags]:
    """Return (unsupported, uniform) of each read, as in `RescaledLayout`."""
    clamped = 1 - (PROBABILITY32[:, None] + PROBABILITY32) <= 0
    count = len(problem.read_lengths)
    unsupported, uniform = np.zeros(count, np.bool_), np.ones(count, np.bool_)
    scores = problem.insertion, problem.deletion, problem.continuation
    _classify_each(problem.read_offsets, count, scores, clamped.reshape(-1), len(clamped), unsupported, uniform)
    return unsupported, uniform


class ReadScores(NamedTuple):
    """Phred scores of all read bases."""

    insertion: Global[u8]
    deletion: Global[u8]
    continuation: Global[u8]


@native
def _classify_each(
    starts: Global[i64],
    count: i64,
    scores: ReadScores,
    clamped: Global[bool],
    size: i64,
    unsupported: Global[bool],
    uniform: Global[bool],
) -> None:
    """Classify each read as unsupported and uniform. clamped: bool[size, size]."""
    for begin in range(i64(0), count, READS_AT_ONCE):
        end = min(begin + READS_AT_ONCE, count)
        if not _needs_classifying(scores, starts[begin], starts[end], clamped, size):
            continue
        for read in range(begin, end):
            least = u8(255)
            most = u8(0)
            is_clamped = False
            same = True
            for at in range(starts[read], starts[read + 1]):
                least = min(least, scores.insertion[at])
                most = max(most, scores.insertion[at])
                is_clamped = is_clamped | clamped[i64(scores.insertion[at]) * size + i64(scores.deletion[at])]
                same = same & (scores.continuation[at] == scores.continuation[starts[read]])
            unsupported[read] = is_clamped | (i64(most) - i64(least) > INSERTION_SPAN)
            uniform[read] = same


@st.device
def _needs_classifying(
    scores: ReadScores,
    first: i64,
    last: i64,
    clamped: Global[bool],
    size: i64,
) -> bool:
    """Return whether any of several reads may be non-uniform or unsupported. Clamping is monotonic in the scores."""
    least = u8(93)
    most = u8(0)
    least_deletion = u8(93)
    differs = u8(0)
    for at in range(first, last):
        least = min(least, scores.insertion[at])
        most = max(most, scores.insertion[at])
        least_deletion = min(least_deletion, scores.deletion[at])
        differs |= scores.continuation[at] ^ scores.continuation[first]
    if differs != 0 or i64(most) > i64(least) + INSERTION_SPAN:
        return True
    return clamped[i64(least) * size + i64(least_deletion)]


@st.device
def _encode(letters: Global[u8], first: i64, length: i64, to: Global[u8], begin: i64) -> None:
    """Convert bases to numbers by comparisons, which can be vectorised."""
    codes = st.constant(u8, CODES)
    for at in range(length):
        letter = letters[first + at]
        code = u8(BLANK)
        for known in st.unroll(range(len(CODES))):
            code = u8(known) if letter == codes[known] else code
        to[begin + at] = code


@native
def _encode_all(letters: Global[u8], length: i64, to: Global[u8]) -> None:
    _encode(letters, i64(0), length, to, i64(0))


@native
def _interleave(a: Global[u8], b: Global[u8], c: Global[u8], d: Global[u8], count: i64, to: Global[u32]) -> None:
    """Pack four bytes per word, the first one lowest."""
    for at in range(count):
        low = u32(a[at]) | u32(b[at]) << 8
        to[at] = low | u32(c[at]) << 16 | u32(d[at]) << 24


def _delay(haplotypes: Bytes, starts: Offsets, to: Bytes) -> None:
    """Write four copies of the stream of letters, each delayed by one more letter."""
    length = len(to) // 4
    end = MARGIN + int(starts[-1]) + len(starts) - 1
    to[:MARGIN] = BLANK
    _stream(haplotypes, starts, len(starts) - 1, to)
    to[end:length] = BLANK
    for delay in range(1, 4):
        later = to[delay * length : (delay + 1) * length]
        later[:delay] = BLANK
        later[delay:] = to[: length - delay]


@native
def _stream(haplotypes: Global[u8], starts: Global[i64], count: i64, to: Global[u8]) -> None:
    """Write the letters of each haplotype and a BLANK, from MARGIN on."""
    for haplotype in range(count):
        first = starts[haplotype]
        length = starts[haplotype + 1] - first
        begin = MARGIN + haplotype + first
        _encode(haplotypes, first, length, to, begin)
        to[begin + length] = u8(BLANK)


def _cuts(begins: Offsets, records: Offsets, at_once: int) -> tuple[Offsets, Offsets, Offsets]:
    """Return the first haplotype of each piece and the total number; the first piece of each record and the total
    number; the letters of
    the longest haplotype of each record. All reads of a record are paired with the same pieces."""
    cuts, pieces = np.empty(len(begins), np.int64), np.zeros(len(records), np.int64)
    longest = np.zeros(len(records), np.int64)
    piece_count = _find_cuts(begins, records, len(records) - 1, at_once, cuts, pieces, longest)
    cuts[piece_count] = records[-1]
    return cuts[: piece_count + 1], pieces, longest


@native
def _find_cuts(
    begins: Global[i64],
    records: Global[i64],
    count: i64,
    at_once: i64,
    cuts: Global[i64],
    pieces: Global[i64],
    longest: Global[i64],
) -> i64:
    """Return the number of pieces. count: number of records."""
    piece_count = i64(0)
    for record in range(count):
        start = begins[records[record]]
        total = begins[records[record + 1]] - start
        pieces_of_record = -(-total // at_once)
        before = i64(-1)
        most = i64(0)
        for haplotype in range(records[record], records[record + 1]):
            piece = st.div((begins[haplotype] - start) * pieces_of_record, total)
            if piece != before:
                cuts[piece_count] = haplotype
                piece_count += 1
            before = piece
            most = max(most, begins[haplotype + 1] - begins[haplotype] - 1)
        pieces[record + 1] = piece_count
        longest[record] = most
    return piece_count


def _items(
    reads: Offsets,
    record: Offsets,
    lanes: int,
    pieces: Offsets,
    cuts: Offsets,
    begins: Offsets,
    read_offsets: Offsets,
) -> tuple[Words, Words, Words, int]:
    """Return (items, ends, words) of `wavefront_rescaled`, and their number of pairs."""
    lengths = np.diff(begins[cuts])
    # place of the next item of each length, for a counting sort
    places = np.zeros(int(lengths.max(initial=0)) + 2, np.int64)
    haplotypes = pieces, cuts, begins, lengths
    count = int(_count_items(reads, len(reads), record, haplotypes, places))
    places = np.cumsum(places)
    a_block = 32 // lanes
    blocks = -(-count // a_block)
    items, ends = np.empty((blocks * a_block, 4), np.int32), np.zeros(blocks * a_block, np.int32)
    words = np.empty(blocks, np.int32)
    columns = items.reshape(-1), ends, words, count, lanes
    pairs = _place_items(reads, len(reads), record, read_offsets, haplotypes, places, columns)
    items[count:] = items[count - 1]
    return items, ends, words, int(pairs)


class HaplotypePieces(NamedTuple):
    """Pieces of haplotypes. pieces: first piece of each record. cuts: first haplotype of each piece. begins: first letter of each
    haplotype. lengths: letters of each piece."""

    pieces: Global[i64]
    cuts: Global[i64]
    begins: Global[i64]
    lengths: Global[i64]


class ItemColumns(NamedTuple):
    """Arguments of `wavefront_rescaled` for `total` items with `lanes` lanes each."""

    items: Global[i32]
    ends: Global[i32]
    words: Global[i32]
    total: i64
    lanes: i64


@native
def _count_items(
    reads: Global[i64], count: i64, record: Global[i64], haplotypes: HaplotypePieces, places: Global[i64]
) -> i64:
    """Return the number of items. places[n + 1]: number of items with n letters."""
    item_count = i64(0)
    for number in range(count):
        own = record[reads[number]]
        for piece in range(haplotypes.pieces[own], haplotypes.pieces[own + 1]):
            places[haplotypes.lengths[piece] + 1] += 1
        item_count += haplotypes.pieces[own + 1] - haplotypes.pieces[own]
    return item_count


@native
def _place_items(
    reads: Global[i64],
    count: i64,
    record: Global[i64],
    read_offsets: Global[i64],
    haplotypes: HaplotypePieces,
    places: Global[i64],
    columns: ItemColumns,
) -> i64:
    """Place the items. Return the total number of pairs."""
    a_block = 32 // columns.lanes
    pair = i64(0)
    for number in range(count):
        read = reads[number]
        base = read_offsets[read]
        length = read_offsets[read + 1] - base
        own = record[read]
        for piece in range(haplotypes.pieces[own], haplotypes.pieces[own + 1]):
            letters = haplotypes.lengths[piece]
            place = places[letters]
            places[letters] += 1
            columns.items[4 * place] = i32(base)
            columns.items[4 * place + 1] = i32(length)
            columns.items[4 * place + 2] = i32(haplotypes.begins[haplotypes.cuts[piece]])
            columns.items[4 * place + 3] = i32(pair)
            pair += haplotypes.cuts[piece + 1] - haplotypes.cuts[piece]
            columns.ends[place] = i32(pair)
            if st.rem(place, a_block) == a_block - 1 or place == columns.total - 1:  # the longest of its block
                columns.words[st.div(place, a_block)] = i32(-(-(letters + columns.lanes - 1) // 4))
    return pair


@native
def _spread(
    sums_of_launch: Global[f32],
    factors: Global[f64],
    reads: Global[i64],
    count: i64,
    record: Global[i64],
    first_pairs: Global[i64],
    record_haplotypes: Global[i64],
    sums: Global[f64],
) -> None:
    at = i64(0)
    for number in range(count):
        read = reads[number]
        first = record_haplotypes[record[read]]
        to = first_pairs[read] - first
        for haplotype in range(first, record_haplotypes[record[read] + 1]):
            sums[to + haplotype] = f64(sums_of_launch[at]) * factors[haplotype]
            at += 1
