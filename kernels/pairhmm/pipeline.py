"""From a pair-HMM problem to its scores: pairs sorted and batched, launched in float, the faint ones again in double."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
from simtbed.emulator import Result

from ..family import Launcher
from . import intratask_block, intratask_warp
from .intertask_naive import WARPS, intertask_naive
from .intertask_tiled import intertask_tiled
from .layout import PROBABILITY, Real, anti_diagonals, interleaved, streams, sub_warps
from .problem import Offsets, Problem
from .wavefront import wavefront
from .wavefront_rescaled import wavefront_rescaled

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

RESCALED_BINS: tuple[tuple[int, int], ...] = (
    (4, 4), (4, 8), (4, 12), (4, 16), (4, 20), (8, 12), (4, 28), (8, 16), (8, 20), (16, 12), (8, 28), (16, 16), (16, 20), (32, 12),
    (16, 28), (16, 32), (32, 20), (32, 28), (32, 32),
)  # fmt: skip
"""(P, K) of the rescaled wavefront, likewise: of those that an H200 computed a length with, the fastest. K = 24 is left
out, which it computes a quarter slower than the K beside it (96 bases: 2.6 TCUPS with (4, 24), 3.5 with (8, 12))."""
RESCALED_SCALE = 2.0**100
"""Of the rescaled wavefront: what it keeps is larger than what it stands for, by 1 / alpha and a ratio of insertions."""
INSERTION_SPAN = 40
"""Reads whose insertion scores are further apart are left to the plain wavefront."""
LETTERS_AT_ONCE = 1 << 10
"""Letters of the haplotypes that one item of the rescaled wavefront lets pass."""
TILES = (2, 4, 6, 8)
"""K of the tiled inter-task variants."""
COLUMN_STEP = 256
"""Haplotypes of the warp-based variants are rounded up to multiples of this, so that few kernels are compiled."""
EDGES_IN_SHARED = 40 * 1024
"""Bytes of edges up to which `intratask-warp` keeps them in shared memory, as the paper does."""

PAIRS_AT_ONCE = 1 << 16
BASES_AT_ONCE = 1 << 24  # over all pairs of a launch: bounds the memory a batch takes


def solve(problem: Problem, variant: str, launcher: Launcher) -> Floats:
    """log10 P(read | haplotype) of every pair, in the order of `problem.pairs`."""
    reads, haplotypes = problem.pairs
    run = _SWEEPS[variant]
    sums = run(problem, reads, haplotypes, np.float32, launcher)
    with np.errstate(divide="ignore"):  # what even double cannot hold is log10 0 = -inf
        scores: Floats = np.log10(sums) - np.log10(SCALE[np.float32])
        faint = np.flatnonzero(sums < FAINT)
        again = run(problem, reads[faint], haplotypes[faint], np.float64, launcher)
        scores[faint] = np.log10(again) - np.log10(SCALE[np.float64])
    return scores


def _by_length(
    problem: Problem, reads: Offsets, haplotypes: Offsets, launch: Callable[[Offsets, Offsets], Result]
) -> Floats:
    """Sums of pairs sorted by the lengths of read and haplotype, batch by batch; `launch` computes a batch."""
    m, n = problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]
    sums = np.empty(len(reads))
    for chosen in _batches(np.lexsort((n, m)), m + n):
        sums[chosen] = launch(reads[chosen], haplotypes[chosen])["sums"][: len(chosen)]
    return sums


def _intertask(
    tile: int, problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, launcher: Launcher
) -> Floats:
    def launch(some_reads: Offsets, some_haplotypes: Offsets) -> Result:
        grid, args = interleaved(problem, some_reads, some_haplotypes, real, tile)
        args["scale"] = SCALE[real]
        if tile > 1:
            return launcher(intertask_tiled, grid=grid, block=32 * WARPS, args={**args, "K": tile})
        return launcher(intertask_naive, grid=grid, block=32 * WARPS, args=args)

    return _by_length(problem, reads, haplotypes, launch)


def _intratask_block(
    tile: int, problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, launcher: Launcher
) -> Floats:
    def launch(some_reads: Offsets, some_haplotypes: Offsets) -> Result:
        args = anti_diagonals(problem, some_reads, some_haplotypes, real, at_once=1, rows=intratask_block.THREADS)
        args |= {"scale": SCALE[real], "THREADS": intratask_block.THREADS, "TILE": tile}
        longest = int(args["pairs"][:, 3].max())
        return launcher(
            intratask_block.intratask_block,
            grid=len(some_reads),
            block=intratask_block.THREADS,
            shared=-(-longest // 4) * 4,
            args=args,
        )

    return _by_length(problem, reads, haplotypes, launch)


def _intratask_warp(
    warps: int, problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, launcher: Launcher
) -> Floats:
    def launch(some_reads: Offsets, some_haplotypes: Offsets) -> Result:
        args = anti_diagonals(problem, some_reads, some_haplotypes, real, at_once=warps, rows=32)
        columns = -(-int(args["pairs"][:, 3].max()) // COLUMN_STEP) * COLUMN_STEP
        shared = warps == 1 and 3 * columns * np.dtype(real).itemsize <= EDGES_IN_SHARED
        args |= {"scale": SCALE[real], "WARPS": warps, "COLUMNS": columns, "SHARED": shared}
        return launcher(intratask_warp.intratask_warp, grid=len(args["pairs"]) // warps, block=32 * warps, args=args)

    return _by_length(problem, reads, haplotypes, launch)


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


def _wavefront_rescaled(
    problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, launcher: Launcher
) -> Floats:
    """In float, what its form can hold; the rest, and all in double, as `wavefront` computes it."""
    m, n = problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]
    bins = np.searchsorted([lanes * each for lanes, each in RESCALED_BINS], m)
    plain = (bins == len(RESCALED_BINS)) | _extreme(problem)[reads] | (real is np.float64)
    sums = np.empty(len(reads))
    sums[plain] = _wavefront(problem, reads[plain], haplotypes[plain], real, launcher)
    uniform = _uniform(problem)[reads]
    for number in np.unique(bins[~plain]):
        lanes, each = RESCALED_BINS[number]
        full = uniform & (m == lanes * each)
        for alike in (True, False):
            members = np.flatnonzero(~plain & (bins == number) & (full == alike))
            for chosen in _batches(members, m + n):
                initial = RESCALED_SCALE / 2.0 ** np.ceil(np.log2(n[chosen].max()))
                grid, args = streams(problem, reads[chosen], haplotypes[chosen], lanes, each, LETTERS_AT_ONCE)
                args |= {"initial": initial, "UNIFORM": alike}
                result = launcher(wavefront_rescaled, grid=grid, block=32, args=args)
                sums[chosen] = result["sums"] * (SCALE[real] / (initial * n[chosen]))
    return sums


def _extreme(problem: Problem) -> npt.NDArray[np.bool_]:
    """Reads whose coefficients the rescaled form has no room for: alpha clamped at 0, insertions far apart."""
    probability = PROBABILITY.astype(np.float32)
    starts = problem.read_offsets[:-1]
    alpha = 1 - (probability[problem.insertion] + probability[problem.deletion])
    least, most = (f.reduceat(problem.insertion.astype(np.int64), starts) for f in (np.minimum, np.maximum))
    return np.asarray((np.minimum.reduceat(alpha, starts) <= 0) | (most - least > INSERTION_SPAN))


def _uniform(problem: Problem) -> npt.NDArray[np.bool_]:
    """Reads with one gap continuation."""
    starts = problem.read_offsets[:-1]
    least, most = (f.reduceat(problem.continuation, starts) for f in (np.minimum, np.maximum))
    return np.asarray(least == most)


_SWEEPS: dict[str, Callable[[Problem, Offsets, Offsets, Real, Launcher], Floats]] = {
    "intertask-naive": partial(_intertask, 1),
    **{f"intertask-tile{k}": partial(_intertask, k) for k in TILES},
    "intratask-naive": partial(_intratask_block, 1),
    "intratask-tile2": partial(_intratask_block, 2),
    "intratask-warp": partial(_intratask_warp, 1),
    "intratask-warps": partial(_intratask_warp, intratask_warp.WARPS),
    "wavefront": _wavefront,
    "wavefront-rescaled": _wavefront_rescaled,
}


def _batches(order: Offsets, sizes: Offsets) -> Iterator[Offsets]:
    """`order` cut into launches of at most PAIRS_AT_ONCE pairs and, beyond one pair, BASES_AT_ONCE bases."""
    at = 0
    while at < len(order):
        window = order[at : at + PAIRS_AT_ONCE]
        largest = np.maximum.accumulate(sizes[window])
        fitting = np.searchsorted(largest * np.arange(1, len(window) + 1), BASES_AT_ONCE, "right")
        yield window[: max(int(fitting), 1)]
        at += max(int(fitting), 1)
