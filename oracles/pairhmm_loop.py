"""Pair-HMM forward algorithm as a compiled scalar loop in float: the CPU reference of speed comparisons.

The recurrences of `pairhmm`, with two rows and one allocation. The probabilities of a read are computed once for all haplotypes.
The compiler may vectorise.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class Reads(NamedTuple):
    """Bases and probabilities of all reads; read r is [offsets[r], offsets[r + 1])."""

    bases: Bytes
    error: Floats
    delta: Floats
    zeta: Floats
    epsilon: Floats
    offsets: Offsets


class Haplotypes(NamedTuple):
    """Letters of all haplotypes; haplotype h is [offsets[h], offsets[h + 1])."""

    letters: Bytes
    offsets: Offsets


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
    """Return log10 P(read | haplotype) of every pair, -inf on underflow.

    qualities: Phred scores of base, insertion, deletion and gap continuation, as long as bases. Read r is
    [read_offsets[r], read_offsets[r + 1]), haplotypes likewise. threads: each processes consecutive pairs.
    """
    probability = (10.0 ** (np.arange(94) / -10.0)).astype(np.float32)
    error, delta, zeta, epsilon = (probability[scores] for scores in qualities)
    reads = Reads(bases, error, delta, zeta, epsilon, read_offsets)
    letters = Haplotypes(haplotypes, haplotype_offsets)
    sums = np.zeros(len(reads_of_pairs), np.float32)
    bounds = np.linspace(0, len(sums), max(threads, 1) + 1).astype(np.int64)

    def some(share: int) -> None:
        first, last = int(bounds[share]), int(bounds[share + 1])
        rows = np.zeros((6, int(np.diff(haplotype_offsets).max(initial=0)) + 1), np.float32)
        _sweep(reads, letters, (reads_of_pairs, haplotypes_of_pairs), first, last, rows, sums)

    with ThreadPoolExecutor(max(threads, 1)) as pool:
        list(pool.map(some, range(max(threads, 1))))
    with np.errstate(divide="ignore"):
        scores: npt.NDArray[np.float64] = np.log10(sums.astype(np.float64)) - LOG10_OF_SCALE
    return scores


@njit(nogil=True)
def _sweep(
    reads: Reads,
    haplotypes: Haplotypes,
    pairs: tuple[Offsets, Offsets],
    first: int,
    last: int,
    rows: Floats,
    sums: Floats,
) -> None:
    """Compute the sums of the pairs [first, last). rows: M, I and D of the previous and the current row."""
    unit, three = np.float32(1), np.float32(3)
    bases, error, delta, zeta, epsilon = reads.bases, reads.error, reads.delta, reads.zeta, reads.epsilon
    reads_of_pairs, haplotypes_of_pairs = pairs
    for pair in range(first, last):
        start, end = reads.offsets[reads_of_pairs[pair]], reads.offsets[reads_of_pairs[pair] + 1]
        begin = haplotypes.offsets[haplotypes_of_pairs[pair]]
        stop = haplotypes.offsets[haplotypes_of_pairs[pair] + 1]
        n = stop - begin
        previous, current = 0, 3
        for j in range(n + 1):
            rows[0, j] = np.float32(0)
            rows[1, j] = np.float32(0)
            rows[2, j] = SCALE / np.float32(n)
        for i in range(start, end):
            alpha = max(np.float32(0), unit - (delta[i] + zeta[i]))
            beta = unit - epsilon[i]
            matching, differing = unit - error[i], error[i] / three
            for state in range(3):
                rows[current + state, 0] = np.float32(0)
            for j in range(1, n + 1):
                letter = haplotypes.letters[begin + j - 1]
                same = bases[i] == letter or bases[i] == UNKNOWN or letter == UNKNOWN
                emission = matching if same else differing
                rows[current, j] = emission * (
                    alpha * rows[previous, j - 1] + beta * (rows[previous + 1, j - 1] + rows[previous + 2, j - 1])
                )
                rows[current + 1, j] = delta[i] * rows[previous, j] + epsilon[i] * rows[previous + 1, j]
                rows[current + 2, j] = zeta[i] * rows[current, j - 1] + epsilon[i] * rows[current + 2, j - 1]
            previous, current = current, previous
        total = np.float32(0)
        for j in range(1, n + 1):
            total += rows[previous, j] + rows[previous + 1, j]
        sums[pair] = total
