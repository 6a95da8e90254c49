"""From a pair-HMM problem to its scores: pairs sorted and batched, launched in float, the faint ones again in double."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from ..family import Launcher
from .intertask_naive import WARPS, intertask_naive
from .layout import Real, interleaved, sub_warps
from .problem import Offsets, Problem
from .wavefront import wavefront

Floats = npt.NDArray[np.float64]

SCALE: dict[Real, float] = {np.float32: 2.0**120, np.float64: 2.0**1020}
FAINT = 1e-28
"""A sum in float below this has lost its precision, and the pair is computed again in double."""

BINS: tuple[tuple[int, int], ...] = (
    (4, 4), (4, 8), (4, 12), (4, 16), (8, 12), (8, 16), (8, 20), (8, 24), (16, 16), (16, 20), (16, 24), (32, 16), (32, 24),
    (32, 32),
)  # fmt: skip
"""(P, K) of the wavefront kernels, by ascending P K: a read is computed by the first that holds it."""
TILE = (32, 16)
"""(P, K) for reads that no bin holds."""

PAIRS_AT_ONCE = 1 << 16
BASES_AT_ONCE = 1 << 24  # over all pairs of a launch: bounds the memory a batch takes


def solve(problem: Problem, variant: str, launcher: Launcher) -> Floats:
    """log10 P(read | haplotype) of every pair, in the order of `problem.pairs`."""
    reads, haplotypes = problem.pairs
    run = {"intertask-naive": _intertask_naive, "wavefront": _wavefront}[variant]
    sums = run(problem, reads, haplotypes, np.float32, launcher)
    with np.errstate(divide="ignore"):  # what even double cannot hold is log10 0 = -inf
        scores: Floats = np.log10(sums) - np.log10(SCALE[np.float32])
        faint = np.flatnonzero(sums < FAINT)
        again = run(problem, reads[faint], haplotypes[faint], np.float64, launcher)
        scores[faint] = np.log10(again) - np.log10(SCALE[np.float64])
    return scores


def _intertask_naive(problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, launcher: Launcher) -> Floats:
    m, n = problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]
    sums = np.empty(len(reads))
    for chosen in _batches(np.lexsort((n, m)), m + n):
        grid, args = interleaved(problem, reads[chosen], haplotypes[chosen], real)
        args["scale"] = SCALE[real]
        result = launcher(intertask_naive, grid=grid, block=32 * WARPS, args=args)
        sums[chosen] = result["sums"][: len(chosen)]
    return sums


def _wavefront(problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, launcher: Launcher) -> Floats:
    m, n = problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]
    bins = np.searchsorted([lanes * each for lanes, each in BINS], m)
    sums = np.empty(len(reads))
    for number in np.unique(bins):
        tiled = number == len(BINS)
        lanes, each = TILE if tiled else BINS[number]
        members = np.flatnonzero(bins == number)
        for chosen in _batches(members[np.argsort(n[members], kind="stable")], m + n):
            grid, args = sub_warps(problem, reads[chosen], haplotypes[chosen], real, lanes, each, bool(tiled))
            args["scale"] = SCALE[real]
            result = launcher(wavefront, grid=grid, block=32, args=args)
            sums[chosen] = result["sums"][: len(chosen)]
    return sums


def _batches(order: Offsets, sizes: Offsets) -> Iterator[Offsets]:
    """`order` cut into launches of at most PAIRS_AT_ONCE pairs and, beyond one pair, BASES_AT_ONCE bases."""
    at = 0
    while at < len(order):
        window = order[at : at + PAIRS_AT_ONCE]
        largest = np.maximum.accumulate(sizes[window])
        fitting = np.searchsorted(largest * np.arange(1, len(window) + 1), BASES_AT_ONCE, "right")
        yield window[: max(int(fitting), 1)]
        at += max(int(fitting), 1)
