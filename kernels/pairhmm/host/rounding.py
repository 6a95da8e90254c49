"""Rounding errors of the pair-HMM in f32: a correction of each read, and the pairs computed in f64.

The f32 kernels multiply M by 1 - e and by alpha in every row. Both factors are rounded once for each read base, so that their errors
have a sign of their own and add up along a read: 2e-8 per base in log10. The product of the exact factors, divided by that of
the rounded ones, corrects the sum of a read: nearly all of it is of paths of matches.

Two kinds of errors have no such correction:

- M changes by few units in the last place for hundreds of rows, so that the roundings of the products have one direction: with
  factors within 1e-5 of 1, and in repeats of a few bases, where gaps return the probability that they take. Gaps use other factors.
  `WIDE_ERRORS` and `WIDE_UNKNOWN` limit their number.
- The sum over the columns of a haplotype with repeats adds equal terms. `WIDE_COLUMNS` limits their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, f32, f64, i64, u8
from simtbed.native import native

from .layout import PROBABILITY
from .problem import Problem

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

UNKNOWN = ord("N")
SHORT = 128
"""Reads of at most this number of bases need neither: two products and two factors a row, each within 6e-8, are 1e-5 in log10."""
WIDE_ERRORS = 128.0
"""Largest sum of `ErrorTables` along a read in f32: 128 roundings of 6e-8 in one direction are 3.3e-6 in log10."""
WIDE_COLUMNS = 1024
"""Largest number of columns in f32 above the bases of the read: homopolymers of this length had errors of 5e-6 in log10."""
NEAR_ONE = 9e-6
"""A factor closer to 1 is counted; from Phred 51 on."""
BASES_PER_ERROR = 512
"""Bases with roundings of both signs that count as one: errors up to 32,000 bases were 3e-6 in log10."""
MAX_PERIOD, RUN, ERRORS_OF_REPEAT = 8, 16, 0.5
"""Largest period of a repeat of a read in bases, its smallest number of repeated bases, and the errors of each further one. Repeats
by chance are shorter."""
LEAST_CONTINUATION = 10
"""With cheaper gaps, repeats of any period are repeats to `wavefront_rescaled`, which adds small terms to M before its only rounding."""
WIDE_UNKNOWN = 256
"""Largest number of N of a haplotype in f32: they match as a repeat does."""
SCORES = len(PROBABILITY)


class ErrorTables(NamedTuple):
    """Tables by base quality, and by insertion quality times SCORES plus deletion quality.

    match, alpha: 1 - e and alpha. match32, alpha32: the same, rounded as in the kernels. match_errors, alpha_errors: number of
    roundings in one direction.
    """

    match: Global[f64]
    alpha: Global[f64]
    match32: Global[f32]
    alpha32: Global[f32]
    match_errors: Global[f64]
    alpha_errors: Global[f64]


class ReadColumns(NamedTuple):
    """Letters and Phred scores of all read bases, and the start of each read."""

    starts: Global[i64]
    bases: Global[u8]
    base_quality: Global[u8]
    insertion: Global[u8]
    deletion: Global[u8]
    continuation: Global[u8]


def _tables() -> ErrorTables:
    rounded = PROBABILITY.astype(np.float32)
    gaps = (PROBABILITY[:, None] + PROBABILITY).ravel()
    match32 = 1 - rounded
    alpha32 = np.maximum(1 - (rounded[:, None] + rounded), np.float32(0)).ravel()
    near_match, near_alpha = (PROBABILITY < NEAR_ONE) & (match32 < 1), (gaps < NEAR_ONE) & (alpha32 < 1)
    return ErrorTables._make(
        (
            1 - PROBABILITY, np.maximum(1 - gaps, 0), match32, alpha32,
            near_match + 1 / BASES_PER_ERROR, near_alpha + 2 * gaps,
        )
    )  # fmt: skip


_TABLES = _tables()


def read_rounding(problem: Problem, is_product: Flags) -> tuple[Floats, Floats]:
    """Return the factor that corrects the sums of each read in f32, and its number of uncorrected errors (`WIDE_ERRORS`).

    is_product: reads with the product of 1 - e and alpha rounded to f32, as in `wavefront_rescaled`.
    """
    count = len(problem.read_lengths)
    excess, errors = np.zeros(count), np.zeros(count)
    if problem.read_lengths.max(initial=0) > SHORT:
        _read_rounding((problem.read_offsets, *problem.read_columns), count, _TABLES, is_product, excess, errors)
    return np.exp(excess, out=excess), errors


@native
def _read_rounding(
    reads: ReadColumns,
    count: i64,
    tables: ErrorTables,
    is_product: Global[bool],
    excess: Global[f64],
    errors: Global[f64],
) -> None:
    """Add up (exact / rounded - 1) and the errors over the bases of each read longer than SHORT."""
    for read in range(count):
        if reads.starts[read + 1] - reads.starts[read] <= SHORT:
            continue
        total = 0.0
        uncorrected = 0.0
        runs = st.local(i64, MAX_PERIOD)
        for period in range(MAX_PERIOD):
            runs[period] = 0
        for at in range(reads.starts[read], reads.starts[read + 1]):
            quality = i64(reads.base_quality[at])
            gaps = i64(reads.insertion[at]) * SCORES + i64(reads.deletion[at])
            match, alpha = tables.match32[quality], tables.alpha32[gaps]
            rounded = f64(match * alpha) if is_product[read] else f64(match) * f64(alpha)
            total += tables.match[quality] * tables.alpha[gaps] / rounded - 1.0 if rounded > 0.0 else 0.0
            uncorrected += tables.match_errors[quality] + tables.alpha_errors[gaps]
            longest = i64(0)
            for period in range(MAX_PERIOD):
                before = max(at - i64(period) - 1, reads.starts[read])
                runs[period] = runs[period] + 1 if before < at and reads.bases[at] == reads.bases[before] else i64(0)
                longest = max(longest, runs[period])
            is_repeat = longest >= RUN or (is_product[read] and reads.continuation[at] < LEAST_CONTINUATION)
            uncorrected += ERRORS_OF_REPEAT if is_repeat else 0.0
        excess[read] = total
        errors[read] = uncorrected


def wide_pairs(problem: Problem, errors: Floats) -> Flags:
    """Return the pairs to compute in f64, in output order. errors: of each read, from `read_rounding`."""
    read_lengths, haplotype_lengths = problem.read_lengths, problem.haplotype_lengths
    wide = np.repeat(errors > WIDE_ERRORS, np.diff(problem.first_pairs))
    has_columns = haplotype_lengths.max(initial=0) - read_lengths.min(initial=0) > WIDE_COLUMNS
    has_unknown = (
        haplotype_lengths.max(initial=0) > WIDE_UNKNOWN
        and np.count_nonzero(problem.haplotypes == UNKNOWN) > WIDE_UNKNOWN
    )
    if len(wide) and (has_columns or has_unknown):
        reads, haplotypes = problem.pairs
        unknown = np.diff(np.concatenate([[0], np.cumsum(problem.haplotypes == UNKNOWN)])[problem.haplotype_offsets])
        wide |= haplotype_lengths[haplotypes] - read_lengths[reads] > WIDE_COLUMNS
        wide |= (unknown[haplotypes] > WIDE_UNKNOWN) & (read_lengths[reads] > SHORT)
    return wide
