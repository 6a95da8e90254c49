"""The pair-HMM forward algorithm as a plain compiled loop in float, what GPUs are compared with on one core or on all.

The recurrences of `pairhmm`, a cell after the other: two rows in memory that is taken once, the probabilities of a read
once for all of its haplotypes. No vector instructions are asked for, and none are forbidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

SCALE = np.float32(2.0**120)
LOG10_OF_SCALE = 120 * np.log10(2.0)
UNKNOWN = ord("N")


def log10_likelihoods(
    bases: Bytes,
    qualities: Sequence[Bytes],
    read_offsets: Offsets,
    haplotypes: Bytes,
    haplotype_offsets: Offsets,
    reads_of_pairs: Offsets,
    haplotypes_of_pairs: Offsets,
    threads: int = 1,
) -> npt.NDArray[np.float64]:
    """log10 P(read | haplotype) of every pair, -inf where a float holds nothing of it.

    qualities: Phred scores of base, insertion, deletion and gap continuation, as long as bases. Read r is
    [read_offsets[r], read_offsets[r + 1]), haplotypes likewise. threads: each takes pairs that follow each other.
    """
    probability = (10.0 ** (np.arange(94) / -10.0)).astype(np.float32)
    error, delta, zeta, epsilon = (probability[one] for one in qualities)
    sums = np.zeros(len(reads_of_pairs), np.float32)
    bounds = np.linspace(0, len(sums), max(threads, 1) + 1).astype(np.int64)

    def some(share: int) -> None:
        first, last = int(bounds[share]), int(bounds[share + 1])
        rows = np.zeros((6, int(np.diff(haplotype_offsets).max(initial=0)) + 1), np.float32)
        _sweep(
            bases, error, delta, zeta, epsilon, read_offsets, haplotypes, haplotype_offsets, reads_of_pairs,
            haplotypes_of_pairs, first, last, rows, sums,
        )  # fmt: skip

    with ThreadPoolExecutor(max(threads, 1)) as pool:
        list(pool.map(some, range(max(threads, 1))))
    with np.errstate(divide="ignore"):
        scores: npt.NDArray[np.float64] = np.log10(sums.astype(np.float64)) - LOG10_OF_SCALE
    return scores


@njit(nogil=True)
def _sweep(
    bases: Bytes,
    error: Floats,
    delta: Floats,
    zeta: Floats,
    epsilon: Floats,
    read_offsets: Offsets,
    haplotypes: Bytes,
    haplotype_offsets: Offsets,
    reads_of_pairs: Offsets,
    haplotypes_of_pairs: Offsets,
    first: int,
    last: int,
    rows: Floats,
    sums: Floats,
) -> None:
    """rows: M, I and D of the row above, and of this one."""
    one, three = np.float32(1), np.float32(3)
    for pair in range(first, last):
        start, end = read_offsets[reads_of_pairs[pair]], read_offsets[reads_of_pairs[pair] + 1]
        begin, stop = haplotype_offsets[haplotypes_of_pairs[pair]], haplotype_offsets[haplotypes_of_pairs[pair] + 1]
        n = stop - begin
        above, here = 0, 3
        for j in range(n + 1):
            rows[0, j] = np.float32(0)
            rows[1, j] = np.float32(0)
            rows[2, j] = SCALE / np.float32(n)
        for i in range(start, end):
            alpha = max(np.float32(0), one - (delta[i] + zeta[i]))
            beta = one - epsilon[i]
            matching, differing = one - error[i], error[i] / three
            for part in range(3):
                rows[here + part, 0] = np.float32(0)
            for j in range(1, n + 1):
                letter = haplotypes[begin + j - 1]
                same = bases[i] == letter or bases[i] == UNKNOWN or letter == UNKNOWN
                emission = matching if same else differing
                rows[here, j] = emission * (
                    alpha * rows[above, j - 1] + beta * (rows[above + 1, j - 1] + rows[above + 2, j - 1])
                )
                rows[here + 1, j] = delta[i] * rows[above, j] + epsilon[i] * rows[above + 1, j]
                rows[here + 2, j] = zeta[i] * rows[here, j - 1] + epsilon[i] * rows[here + 2, j - 1]
            above, here = here, above
        total = np.float32(0)
        for j in range(1, n + 1):
            total += rows[above, j] + rows[above + 1, j]
        sums[pair] = total
