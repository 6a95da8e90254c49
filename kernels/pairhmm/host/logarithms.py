"""Pair-HMM in logarithms, for likelihoods below the range of doubles: cells of one row differ by more than that range as well."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Global, f64, i64, u8
from simtbed.native import native
from simtbed.runtime.cores import current_cores

from .layout import PROBABILITY
from .problem import Offsets, Problem
from .rounding import UNKNOWN, ReadColumns

Floats = npt.NDArray[np.float64]
LEAST = -612.0
"""Smallest log10 likelihood with all digits in double: below, the sum times 2^1020 approaches the denormal numbers."""
SCORES = len(PROBABILITY)
"""Number of Phred scores."""
PAIRS = 16
"""Pairs of one call of the compiled loop."""


def log10_likelihoods(problem: Problem, reads: Offsets, haplotypes: Offsets) -> Floats:
    """Return log10 P(read | haplotype) of pairs, -inf for a probability of 0."""
    scores = np.empty(len(reads))
    with np.errstate(divide="ignore"):
        log, complement = np.log(PROBABILITY), np.log(1 - PROBABILITY)
        gaps = np.log(np.maximum(1 - (PROBABILITY[:, None] + PROBABILITY), 0)).ravel()
    width = int(problem.haplotype_lengths[haplotypes].max(initial=0)) + 1

    def compute(first: int) -> None:
        some = slice(first, first + PAIRS)
        _sweep(
            (problem.read_offsets, *problem.read_columns), problem.haplotypes, problem.haplotype_offsets, reads[some],
            haplotypes[some], len(reads[some]), log, complement, gaps, np.empty(3 * width), scores[some],
        )  # fmt: skip

    with ThreadPoolExecutor(current_cores()) as threads:
        list(threads.map(compute, range(0, len(reads), PAIRS)))
    return np.asarray(scores / np.log(10))


@native
def _sum(a: f64, b: f64) -> f64:
    """Return log(e^a + e^b)."""
    most, least = max(a, b), min(a, b)
    return most + st.log1p(st.exp(least - most)) if least > -np.inf else most


@native
def _sweep(
    columns: ReadColumns,
    letters: Global[u8],
    offsets: Global[i64],
    reads: Global[i64],
    haplotypes: Global[i64],
    count: i64,
    log: Global[f64],
    complement: Global[f64],
    gaps: Global[f64],
    rows: Global[f64],
    scores: Global[f64],
) -> None:
    """Compute the logarithms of `count` pairs. log, complement: of a probability p and of 1 - p, by Phred score. gaps: of alpha.
    rows: M, I and D of a row, in turn for each column."""
    for pair in range(count):
        first, last = offsets[haplotypes[pair]], offsets[haplotypes[pair] + 1]
        n = last - first
        for column in range(n + 1):
            rows[3 * column], rows[3 * column + 1] = -np.inf, -np.inf
            rows[3 * column + 2] = -st.log(f64(n))
        for at in range(columns.starts[reads[pair]], columns.starts[reads[pair] + 1]):
            error, base = i64(columns.base_quality[at]), columns.bases[at]
            insertion, deletion = i64(columns.insertion[at]), i64(columns.deletion[at])
            alpha = gaps[insertion * SCORES + deletion]
            delta, zeta = log[insertion], log[deletion]
            epsilon, beta = log[i64(columns.continuation[at])], complement[i64(columns.continuation[at])]
            M_diagonal, I_diagonal, D_diagonal = rows[0], rows[1], rows[2]
            M_left, D_left = f64(-np.inf), f64(-np.inf)
            for part in range(3):
                rows[part] = -np.inf
            for column in range(1, n + 1):
                M_up, I_up, D_up = rows[3 * column], rows[3 * column + 1], rows[3 * column + 2]
                letter = letters[first + column - 1]
                is_match = (base == letter) | (base == UNKNOWN) | (letter == UNKNOWN)
                emission = complement[error] if is_match else log[error] - st.log(f64(3.0))
                M = emission + _sum(alpha + M_diagonal, beta + _sum(I_diagonal, D_diagonal))
                D = _sum(zeta + M_left, epsilon + D_left)
                rows[3 * column] = M
                rows[3 * column + 1] = _sum(delta + M_up, epsilon + I_up)
                rows[3 * column + 2] = D
                M_left, D_left = M, D
                M_diagonal, I_diagonal, D_diagonal = M_up, I_up, D_up
        total = f64(-np.inf)
        for column in range(1, n + 1):
            total = _sum(total, _sum(rows[3 * column], rows[3 * column + 1]))
        scores[pair] = total
