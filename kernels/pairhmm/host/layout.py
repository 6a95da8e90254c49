"""Memory layout of pairs for each pair-HMM kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed import Global, empty, i64, u8, u32
from simtbed.native import native

from ..intertask_naive import WARPS
from ..wavefront import BLANK
from .problem import Offsets, Problem, offsets, ranges

Arguments = dict[str, Any]
Real = type[np.float32] | type[np.float64]

LETTERS = b"ACGTN"
"""Letters of bases in the order of the kernels' numbers."""
_SETS = np.zeros(256, np.uint8)  # bases as bit sets: matching bases have a common bit
_CODES = np.full(256, BLANK, np.uint8)  # bases as numbers
for _code, _letter in enumerate(LETTERS):
    _CODES[_letter] = _code
    _SETS[_letter] = 15 if _letter == ord("N") else 1 << _code

PROBABILITY = 10.0 ** (np.arange(94) / -10.0)
"""Probability of each Phred score."""


def interleaved(
    problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, tile: int = 1
) -> tuple[int, Arguments]:
    """Return (grid, arguments) of `intertask_naive`, and of `intertask_tiled` without K, with 32 consecutive pairs per group.

    The last block is padded with pairs without cells. `sums` starts with the sums of the pairs, in order. tile: divisor of the rows
    of a group.
    """
    blocks = -(-len(reads) // (32 * WARPS))
    m, n = np.zeros((2, blocks * WARPS, 32), np.int64)
    m.flat[: len(reads)], n.flat[: len(reads)] = problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]
    rows, columns = -(-m.max(axis=1) // tile) * tile, _quads(n.max(axis=1))
    first_row, first_column = offsets(_quads(rows)), offsets(columns)
    groups = np.stack([first_row[:-1], rows, first_column[:-1], columns], axis=1).astype(np.int32)
    lengths = np.stack([m.ravel(), np.maximum(n.ravel(), 1)], axis=1).astype(np.int32)

    group, lane = np.divmod(np.arange(len(reads)), 32)
    width = problem.read_lengths[reads]
    source, row = ranges(problem.read_offsets[reads], width), ranges(np.zeros_like(reads), width)
    to = np.repeat(first_row[group] * 32 + lane, width) + row * 32
    of_rows: Arguments = {}
    for name, values in _probabilities(problem, source, real).items():
        of_rows[name] = np.zeros(first_row[-1] * 32, real)
        of_rows[name][to] = values
    return blocks, {
        "groups": groups,
        "lengths": lengths,
        "reads": _words(_SETS[problem.bases[source]], first_row, group, lane, row, width).view(np.uint32),
        "haplotypes": _haplotype_words(problem, haplotypes, first_column, group, lane).reshape(-1, 4),
        **of_rows,
        **{f"{name}_row": np.zeros(first_column[-1] * 32, real) for name in ("match", "insertion", "deletion")},
        "sums": empty(blocks * WARPS * 32, np.dtype(real).name.replace("float", "f")),
        "WARPS": WARPS,
    }


def _haplotype_words(problem: Problem, haplotypes: Offsets, first: Offsets, group: Offsets, lane: Offsets) -> Any:
    width = problem.haplotype_lengths[haplotypes]
    source, column = ranges(problem.haplotype_offsets[haplotypes], width), ranges(np.zeros_like(haplotypes), width)
    return _words(_SETS[problem.haplotypes[source]], first, group, lane, column, width)


def _words(
    letters: npt.NDArray[np.uint8], first: Offsets, group: Offsets, lane: Offsets, at: Offsets, width: Offsets
) -> npt.NDArray[np.uint8]:
    """Fig. 5: words of 4 letters, interleaved by the 32 pairs of a group; `first` is a multiple of 4."""
    words = np.zeros(first[-1] * 32, np.uint8)
    words[np.repeat(first[group] * 32 + lane * 4, width) + at // 4 * 128 + at % 4] = letters
    return words


def sub_warps(
    problem: Problem,
    reads: Offsets,
    haplotypes: Offsets,
    real: Real,
    lanes: int,
    rows_per_lane: int,
    tiled: bool = False,
    uniform: bool = False,
) -> tuple[int, Arguments]:
    """Return (grid, arguments) of `wavefront` with P = `lanes` and K = `rows_per_lane` for pairs of a read and a haplotype.

    uniform: each read has P K bases and one gap continuation. The last block is padded with repetitions of the last pair. `sums`
    starts with the sums of the pairs, in order.
    """
    blocks = -(-len(reads) * lanes // 32)
    filled = np.minimum(np.arange(blocks * 32 // lanes), len(reads) - 1)
    used_reads, read = np.unique(reads[filled], return_inverse=True)
    used_haplotypes, haplotype = np.unique(haplotypes[filled], return_inverse=True)
    m, n = problem.read_lengths[used_reads], problem.haplotype_lengths[used_haplotypes]
    bases, qualities = np.empty(m.sum(), np.uint8), np.empty((m.sum(), 4), np.uint8)
    columns = (problem.read_offsets, *problem.read_columns)
    _gather_reads(used_reads, len(used_reads), _CODES, columns, bases, qualities.reshape(-1).view(np.uint32))
    first_word, words = haplotype_words(problem, used_haplotypes)
    pairs = np.stack([offsets(m)[read], m[read], first_word[haplotype], n[haplotype]], axis=1).astype(np.int32)
    stride = int(n.max()) if tiled else 0
    return blocks, {
        "pairs": pairs,
        "columns": pairs[:, 3].reshape(blocks, -1).max(axis=1),
        "bases": bases,
        "qualities": qualities,
        "haplotypes": words,
        "probability": PROBABILITY.astype(real),
        **{f"{name}_edge": np.zeros(max(blocks * stride, 1), real) for name in ("match", "insertion", "deletion")},
        "sums": empty(len(pairs), np.dtype(real).name.replace("float", "f")),
        "stride": stride,
        "P": lanes,
        "K": rows_per_lane,
        "TILED": tiled,
        "WIDE": real is np.float32,
        "UNIFORM": uniform,
    }


def haplotype_words(problem: Problem, chosen: Offsets) -> tuple[Offsets, npt.NDArray[np.uint32]]:
    """Return the first word of each chosen haplotype, and the words: letters as numbers, 4 per word, padded with BLANK, with a word of
    BLANK before each haplotype and after the last."""
    first_word = 1 + offsets(_quads(problem.haplotype_lengths[chosen]) // 4 + 1)
    words = np.full(first_word[-1] * 4, BLANK, np.uint8)
    _gather_haplotypes(chosen, len(chosen), problem.haplotype_offsets, _CODES, problem.haplotypes, first_word, words)
    return first_word, words.view(np.uint32)


def read_letters(problem: Problem) -> npt.NDArray[np.uint8]:
    """Return the bases of the reads as numbers."""
    return _CODES[problem.bases]


class ReadColumns(NamedTuple):
    """Columns of the reads of a `Problem`."""

    offsets: Global[i64]
    bases: Global[u8]
    base_quality: Global[u8]
    insertion: Global[u8]
    deletion: Global[u8]
    continuation: Global[u8]


@native
def _gather_reads(
    chosen: Global[i64], count: i64, codes: Global[u8], reads: ReadColumns, bases: Global[u8], qualities: Global[u32]
) -> None:
    """Concatenate the chosen reads: bases as numbers, and four scores per word, the first one lowest."""
    to = i64(0)
    for number in range(count):
        read = chosen[number]
        shift = to - reads.offsets[read]
        for at in range(reads.offsets[read], reads.offsets[read + 1]):
            bases[shift + at] = codes[reads.bases[at]]
            low = u32(reads.base_quality[at]) | u32(reads.insertion[at]) << 8
            qualities[shift + at] = low | u32(reads.deletion[at]) << 16 | u32(reads.continuation[at]) << 24
        to = shift + reads.offsets[read + 1]


@native
def _gather_haplotypes(
    chosen: Global[i64],
    count: i64,
    offsets: Global[i64],
    codes: Global[u8],
    letters: Global[u8],
    first_word: Global[i64],
    words: Global[u8],
) -> None:
    """Write the letters of the chosen haplotypes as numbers, each from its first word of four on."""
    for number in range(count):
        shift = 4 * first_word[number] - offsets[chosen[number]]
        for at in range(offsets[chosen[number]], offsets[chosen[number] + 1]):
            words[shift + at] = codes[letters[at]]


def anti_diagonals(
    problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, at_once: int, rows: int, copies: int = 1
) -> Arguments:
    """Return arguments of `intratask_block` and `intratask_warp` without their Const parameters.

    at_once: pairs per block. rows: rows per pass. copies: of the last row of a pass. The last block is padded with
    repetitions of the last pair. `sums` starts with the sums of the pairs, in order.
    """
    filled = np.minimum(np.arange(-(-len(reads) // at_once) * at_once), len(reads) - 1)
    used_reads, read = np.unique(reads[filled], return_inverse=True)
    used_haplotypes, haplotype = np.unique(haplotypes[filled], return_inverse=True)
    m, n = problem.read_lengths[used_reads], problem.haplotype_lengths[used_haplotypes]
    bases = ranges(problem.read_offsets[used_reads], m)
    first_word = offsets(_quads(n) // 4)
    words = np.zeros(first_word[-1] * 4, np.uint8)
    letters = problem.haplotypes[ranges(problem.haplotype_offsets[used_haplotypes], n)]
    words[ranges(first_word[:-1] * 4, n)] = _SETS[letters]
    pairs = np.stack([offsets(m)[read], m[read], first_word[haplotype], n[haplotype]], axis=1).astype(np.int32)
    stride = int(n.max()) if m.max() > rows else 0
    return {
        "pairs": pairs,
        "bases": _SETS[problem.bases[bases]],
        **_probabilities(problem, bases, real),
        "haplotypes": words.view(np.uint32),
        **{
            f"{name}_edge": np.zeros(max(len(pairs) * copies * stride, 1), real)
            for name in ("match", "insertion", "deletion")
        },
        "sums": empty(len(pairs), np.dtype(real).name.replace("float", "f")),
        "stride": stride,
    }


def _probabilities(problem: Problem, bases: Offsets, real: Real) -> Arguments:
    """Return error, alpha, delta, zeta, epsilon of read bases as `real` arrays of the shape of `bases`."""
    probability: npt.NDArray[Any] = PROBABILITY.astype(real)
    delta, zeta = probability[problem.insertion[bases]], probability[problem.deletion[bases]]
    return {
        "error": probability[problem.base_quality[bases]],
        "alpha": np.maximum(1 - (delta + zeta), 0),
        "delta": delta,
        "zeta": zeta,
        "epsilon": probability[problem.continuation[bases]],
    }


def _quads(lengths: Offsets) -> Offsets:
    """Round up to multiples of 4."""
    return -(-lengths // 4) * 4
