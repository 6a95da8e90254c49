"""Pair-HMM forward algorithm as defined by GATK: cell by cell in double precision, or in logarithms below its range."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Read = tuple[Bytes, Bytes, Bytes, Bytes, Bytes]
"""Bases (ASCII, upper case), then Phred qualities: base, insertion, deletion, gap continuation."""
Record = tuple[Sequence[Read], Sequence[Bytes]]
"""Reads, and the haplotypes of each read."""

SCALE = 2.0**1020
LEAST = -612.0
"""Smallest log10 likelihood with all digits in double; smaller ones are computed in logarithms."""


def log10_likelihoods(records: Iterable[Record]) -> npt.NDArray[np.float64]:
    """Return log10 P(read | haplotype) of every pair in the order record, read, haplotype."""
    return np.array(
        [
            log10_likelihood(*read, haplotype)
            for reads, haplotypes in records
            for read in reads
            for haplotype in haplotypes
        ],
        np.float64,
    )


@njit()
def _log(probability: float) -> float:
    return math.log(probability) if probability > 0.0 else -math.inf


@njit()
def _in_logarithms(
    read: Bytes, base_quality: Bytes, insertion: Bytes, deletion: Bytes, continuation: Bytes, haplotype: Bytes
) -> float:
    """Return the same as `log10_likelihood`, with the natural logarithms of all cells."""
    m, n = len(read), len(haplotype)
    unknown = ord("N")
    M = np.full(n + 1, -math.inf)
    I = np.full(n + 1, -math.inf)  # noqa: E741
    D = np.full(n + 1, -math.log(n))
    for i in range(m):
        error = 10.0 ** (base_quality[i] / -10.0)
        delta, zeta = 10.0 ** (insertion[i] / -10.0), 10.0 ** (deletion[i] / -10.0)
        epsilon = 10.0 ** (continuation[i] / -10.0)
        alpha, beta = _log(1.0 - (delta + zeta)), _log(1.0 - epsilon)
        M_row, I_row, D_row = np.full(n + 1, -math.inf), np.full(n + 1, -math.inf), np.full(n + 1, -math.inf)
        for j in range(1, n + 1):
            a, b = read[i], haplotype[j - 1]
            emission = _log(1.0 - error if a == b or unknown in (a, b) else error / 3.0)
            M_row[j] = emission + np.logaddexp(alpha + M[j - 1], beta + np.logaddexp(I[j - 1], D[j - 1]))
            I_row[j] = np.logaddexp(_log(delta) + M[j], _log(epsilon) + I[j])
            D_row[j] = np.logaddexp(_log(zeta) + M_row[j - 1], _log(epsilon) + D_row[j - 1])
        M, I, D = M_row, I_row, D_row  # noqa: E741
    total = -math.inf
    for j in range(1, n + 1):
        total = np.logaddexp(total, np.logaddexp(M[j], I[j]))
    return total / math.log(10.0)


@njit()
def log10_likelihood(
    read: Bytes, base_quality: Bytes, insertion: Bytes, deletion: Bytes, continuation: Bytes, haplotype: Bytes
) -> float:
    """Return log10 P(read | haplotype) of one pair. M, I, D: match, insertion, deletion; row i: read, column j: haplotype."""
    m, n = len(read), len(haplotype)
    unknown = ord("N")
    # Row 0: the alignment may start at any position of the haplotype at no cost.
    M = np.zeros(n + 1)
    I = np.zeros(n + 1)  # noqa: E741
    D = np.full(n + 1, SCALE / n)
    for i in range(m):
        error = 10.0 ** (base_quality[i] / -10.0)
        delta = 10.0 ** (insertion[i] / -10.0)
        zeta = 10.0 ** (deletion[i] / -10.0)
        epsilon = 10.0 ** (continuation[i] / -10.0)
        alpha = max(0.0, 1.0 - (delta + zeta))
        beta = 1.0 - epsilon
        M_row = np.zeros(n + 1)
        I_row = np.zeros(n + 1)
        D_row = np.zeros(n + 1)
        for j in range(1, n + 1):
            a, b = read[i], haplotype[j - 1]
            emission = 1.0 - error if a == b or unknown in (a, b) else error / 3.0
            M_row[j] = emission * (alpha * M[j - 1] + beta * (I[j - 1] + D[j - 1]))
            I_row[j] = delta * M[j] + epsilon * I[j]
            D_row[j] = zeta * M_row[j - 1] + epsilon * D_row[j - 1]
        M, I, D = M_row, I_row, D_row  # noqa: E741
    total = 0.0
    for j in range(1, n + 1):
        total += M[j] + I[j]
    score = -math.inf if total == 0.0 else math.log10(total) - math.log10(SCALE)
    if score < LEAST:
        return _in_logarithms(read, base_quality, insertion, deletion, continuation, haplotype)
    return score
