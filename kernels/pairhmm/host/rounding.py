"""Rounding errors of the pair-HMM in f32: a correction of each read, and the pairs computed in f64.

The f32 kernels multiply M by 1 - e and by alpha in every row. Both factors are rounded once for each read base, so that their errors
have a sign of their own and add up along a read: 2e-8 per base in log10. The product of the exact factors, divided by that of
the rounded ones, corrects the sum of a read: nearly all of it is of paths of matches.

Two kinds of errors have no such correction:

- A factor within 1e-5 of 1 changes M by a few units in the last place, and M stays in the same place between two numbers for
  hundreds of rows: the roundings of the products have one direction. Gaps use other factors. `WIDE_ERRORS` limits both.
- The sum over the columns of a haplotype with repeats adds equal terms. `WIDE_COLUMNS` limits their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed import Global, f32, f64, i64, u8
from simtbed.native import native

from .layout import PROBABILITY
from .problem import Problem

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

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
SCORES = len(PROBABILITY)


class ErrorTables(NamedTuple):
    """Tables by base quality, and by insertion quality times SCORES plus deletion quality.

    match, stay: 1 - e and alpha. match32, stay32: the same, rounded as in the kernels. match_errors, stay_errors: number of
    roundings in one direction.
    """

    match: Global[f64]
    stay: Global[f64]
    match32: Global[f32]
    stay32: Global[f32]
    match_errors: Global[f64]
    stay_errors: Global[f64]


class ReadScores(NamedTuple):
    """Phred scores of all read bases, and the start of each read."""

    starts: Global[i64]
    base_quality: Global[u8]
    insertion: Global[u8]
    deletion: Global[u8]


def _tables() -> ErrorTables:
    rounded = PROBABILITY.astype(np.float32)
    gaps = (PROBABILITY[:, None] + PROBABILITY).ravel()
    match32 = 1 - rounded
    stay32 = np.maximum(1 - (rounded[:, None] + rounded), np.float32(0)).ravel()
    near_match, near_stay = (PROBABILITY < NEAR_ONE) & (match32 < 1), (gaps < NEAR_ONE) & (stay32 < 1)
    return ErrorTables._make(
        (
            1 - PROBABILITY, np.maximum(1 - gaps, 0), match32, stay32,
            near_match + 1 / BASES_PER_ERROR, near_stay + 2 * gaps,
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
        scores = problem.read_offsets, problem.base_quality, problem.insertion, problem.deletion
        _read_rounding(scores, count, _TABLES, is_product, excess, errors)
    return np.exp(excess, out=excess), errors


@native
def _read_rounding(
    reads: ReadScores,
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
        for at in range(reads.starts[read], reads.starts[read + 1]):
            quality = i64(reads.base_quality[at])
            gaps = i64(reads.insertion[at]) * SCORES + i64(reads.deletion[at])
            match, stay = tables.match32[quality], tables.stay32[gaps]
            rounded = f64(match * stay) if is_product[read] else f64(match) * f64(stay)
            total += tables.match[quality] * tables.stay[gaps] / rounded - 1.0 if rounded > 0.0 else 0.0
            uncorrected += tables.match_errors[quality] + tables.stay_errors[gaps]
        excess[read] = total
        errors[read] = uncorrected


def wide_pairs(problem: Problem, errors: Floats) -> Flags:
    """Return the pairs to compute in f64, in output order. errors: of each read, from `read_rounding`."""
    read_lengths, haplotype_lengths = problem.read_lengths, problem.haplotype_lengths
    wide = np.repeat(errors > WIDE_ERRORS, np.diff(problem.first_pairs))
    if len(wide) and haplotype_lengths.max() - read_lengths.min() > WIDE_COLUMNS:
        reads, haplotypes = problem.pairs
        wide |= haplotype_lengths[haplotypes] - read_lengths[reads] > WIDE_COLUMNS
    return wide
