"""Stages of a pair-HMM computation: batches of sorted pairs, launches in float, fallback in double and in logarithms."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed import Kernel, OutOfMemory, Result, current_gpu, on_gpu

from ...family import Launcher, PlannedLaunch, run_planned
from .. import intratask_block, intratask_warp
from ..intertask_naive import WARPS, intertask_naive
from ..intertask_tiled import intertask_tiled
from ..intertask_tiles import intertask_tiles
from ..wavefront import wavefront
from ..wavefront_rescaled import wavefront_rescaled
from .layout import Real, anti_diagonals, interleaved, sub_warps
from .layout_rescaled import RescaledLayout, classify
from .logarithms import LEAST, log10_likelihoods
from .partitioned import KERNELS, plan_partitioned
from .partitioned_lists import plan_listed
from .problem import Offsets, Problem
from .rounding import read_rounding, wide_pairs

Floats = npt.NDArray[np.float64]
PlanOfLists = Callable[
    [
        Problem,
        Floats,
        float,
        Sequence[tuple[int, int]],
        Launcher,
        Callable[[Offsets, Offsets, Offsets], Iterator[PlannedLaunch]],
    ],
    Iterator[PlannedLaunch],
]
"""A plan of `listed` or `partitioned`."""

SCALE: dict[Real, float] = {np.float32: 2.0**120, np.float64: 2.0**1020}
MIN_ACCEPTED = 1e-28
"""GATK's name: a float sum below this has lost its precision; the fallback computes the pair again in double."""

BINS: tuple[tuple[int, int], ...] = (
    (4, 4), (4, 8), (4, 12), (4, 16), (4, 20), (8, 12), (4, 28), (8, 16), (8, 20), (16, 12), (8, 28), (16, 16), (16, 20),
    (16, 24), (16, 28), (32, 16), (32, 20), (32, 24), (32, 28), (32, 32),
)  # fmt: skip
"""(P, K) of the wavefront kernels, by ascending P K: a read is computed by the first with P K >= m."""
TILE = (32, 16)
"""(P, K) for reads longer than all bins."""

RESCALED_BINS: tuple[tuple[int, int], ...] = (
    (4, 4), (4, 8), (4, 12), (4, 16), (4, 20), (8, 12), (4, 28), (8, 16), (8, 20), (16, 12), (8, 28), (16, 16), (16, 20), (32, 12),
    (16, 28), (16, 32), (32, 20), (32, 28), (32, 32),
)  # fmt: skip
"""(P, K) of the rescaled wavefront, likewise. 10^12 cells a second of an H200 for reads that fill the bin: (4, 8) 2.56,
(4, 12) 3.12, (4, 16) 3.24, (8, 12) 3.37, (4, 28) 3.45, (8, 16) 3.54, (16, 12) 3.49, (8, 28) 3.52, (16, 16) 3.62, (16, 28) 3.54,
(16, 32) 3.65, (32, 28) 3.52, (32, 32) 3.59. K = 24 reached 2.6 and is omitted. The other bins were not timed: they fill gaps with
a K in the timed range."""
RESCALED_SCALE = 2.0**100
"""Scale of the rescaled wavefront: its values exceed the unscaled ones by 1 / alpha and a ratio of insertions."""
LETTERS_AT_ONCE = 1 << 10
"""Letters of the haplotypes of one item of the rescaled wavefront."""
CELLS_A_LAUNCH = 100_000_000
"""Cells of 30 microseconds on an H200: a launch that saves fewer does not repay its host time."""
TILES = (2, 4, 6, 8)
"""K of the tiled inter-task variants."""
COLUMN_STEP = 256
"""Haplotypes of the warp-based variants are rounded up to multiples of this, to limit the number of compiled kernels."""
EDGES_IN_SHARED = 40 * 1024
"""Maximum bytes of edges of `intratask-warp` in shared memory, as in the paper."""

PAIRS_AT_ONCE = 1 << 16
BASES_AT_ONCE = 1 << 24  # over all pairs of a launch: bounds the memory of a batch
PAIRS_PER_CHUNK = 1 << 19
"""Pairs of the wavefronts sent to a GPU together: the next ones are transferred during their computation."""


def solve(problem: Problem, variant: str, launcher: Launcher) -> Floats:
    """Return log10 P(read | haplotype) of every pair, in the order of `problem.pairs`.

    If GPU memory is too small, the reads are computed in two halves, with a warning.
    """
    try:
        return _solve_at_once(problem, variant, launcher)
    except OutOfMemory:
        half, pairs = len(problem.read_lengths) // 2, len(problem.pairs[0])
        if not half:
            raise
    logging.getLogger(__name__).warning("simtbed: warning: the GPU's memory is full: %d pairs in two halves", pairs)
    halves = (problem.subset(0, half), problem.subset(half, len(problem.read_lengths)))
    return np.concatenate([solve(part, variant, launcher) for part in halves])


def _solve_at_once(problem: Problem, variant: str, launcher: Launcher) -> Floats:
    method = VARIANTS[variant]
    sums = _sums_in_float(problem, method, launcher)
    rejected = np.flatnonzero(sums < MIN_ACCEPTED)
    with np.errstate(divide="ignore"):  # sums of 0 are computed again
        scores = np.log10(sums, out=sums)
        scores -= np.log10(SCALE[np.float32])
        if len(rejected):
            accurate = method.fallback(problem, *problem.pairs_of(rejected), launcher)
            scores[rejected] = np.log10(accurate) - np.log10(SCALE[np.float64])
    least = rejected[scores[rejected] < LEAST]
    if len(least):
        exact = log10_likelihoods(problem, *problem.pairs_of(least))
        # One in the range of doubles is the kernel's: its wrong result is not corrected.
        scores[least] = np.where(exact < LEAST + 1, exact, scores[least])
    return scores


def _sums_in_float(problem: Problem, method: Method, launcher: Launcher) -> Floats:
    """Return the corrected sums of all pairs in float; 0 for the pairs that need double (`rounding`)."""
    reads, pairs_of_read = len(problem.read_lengths), np.diff(problem.first_pairs)
    factors, errors = read_rounding(problem, method.is_rescaled(problem))
    wide = wide_pairs(problem, errors)
    if not wide.any():
        sums = method.whole(problem, launcher)
    else:
        chosen = np.bincount(np.repeat(np.arange(reads), pairs_of_read), ~wide, reads) > 0
        sums = np.zeros(len(wide))
        if chosen.any():
            sums[np.repeat(chosen, pairs_of_read)] = method.whole(problem.read_subset(chosen), launcher)
        sums[wide] = 0
    if (factors != 1).any():
        sums *= np.repeat(factors, pairs_of_read)
    return sums


def _no_reads(problem: Problem) -> npt.NDArray[np.bool_]:
    return np.zeros(len(problem.read_lengths), np.bool_)


class Method(NamedTuple):
    """Computation of sums by a variant. whole: of all pairs of a problem, in float. fallback: of given pairs, in double.
    is_rescaled: which reads `wavefront_rescaled` computes."""

    whole: Callable[[Problem, Launcher], Floats]
    fallback: Callable[[Problem, Offsets, Offsets, Launcher], Floats]
    is_rescaled: Callable[[Problem], npt.NDArray[np.bool_]] = _no_reads


def _by_sweeps(sweep: Callable[[Problem, Offsets, Offsets, Real, Launcher], Floats]) -> Method:
    """Return the method of a function that computes the sums of pairs in either precision, launch by launch."""

    def whole(problem: Problem, launcher: Launcher) -> Floats:
        return sweep(problem, *problem.pairs, np.float32, launcher)

    def fallback(problem: Problem, reads: Offsets, haplotypes: Offsets, launcher: Launcher) -> Floats:
        return sweep(problem, reads, haplotypes, np.float64, launcher)

    return Method(whole, fallback)


def _by_plan(plan: Callable[[Launcher, Problem, Floats], Iterator[PlannedLaunch]]) -> Method:
    """Return the method of a plan of launches that compute the sums of a problem, with the wavefront's fallback."""

    def whole(problem: Problem, launcher: Launcher) -> Floats:
        sums = np.empty(int(problem.first_pairs[-1]))
        run_planned(_plan_chunks(partial(plan, launcher), problem, sums), launcher)
        return sums

    def fallback(problem: Problem, reads: Offsets, haplotypes: Offsets, launcher: Launcher) -> Floats:
        sums = np.empty(len(reads))
        run_planned(_plan_pairs(problem, reads, haplotypes, np.float64, sums), launcher)
        return sums

    return Method(whole, fallback)


# ------------------------------------------------------------------ Ren 2018
def _in_batches(
    problem: Problem,
    reads: Offsets,
    haplotypes: Offsets,
    launch: Callable[[Offsets, Offsets], Result],
    by_length: bool = True,
) -> Floats:
    """Return the sums of pairs, computed in batches by `launch`.

    by_length: sort pairs by the lengths of read and haplotype; otherwise retain their order.
    """
    m, n = problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]
    sums = np.empty(len(reads))
    for chosen in _batches(np.lexsort((n, m)) if by_length else np.arange(len(reads)), m + n):
        sums[chosen] = launch(reads[chosen], haplotypes[chosen])["sums"][: len(chosen)]
    return sums


def _intertask(
    kernel: Kernel,
    tile: int,
    by_length: bool,
    problem: Problem,
    reads: Offsets,
    haplotypes: Offsets,
    real: Real,
    launcher: Launcher,
) -> Floats:
    def launch(some_reads: Offsets, some_haplotypes: Offsets) -> Result:
        grid, args = interleaved(problem, some_reads, some_haplotypes, real, tile)
        args["scale"] = SCALE[real]
        if tile > 1:
            args["K"] = tile
        return launcher.launch(kernel, grid=grid, block=32 * WARPS, args=args)

    return _in_batches(problem, reads, haplotypes, launch, by_length)


def _intratask_block(
    tile: int, problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, launcher: Launcher
) -> Floats:
    def launch(some_reads: Offsets, some_haplotypes: Offsets) -> Result:
        args = anti_diagonals(problem, some_reads, some_haplotypes, real, at_once=1, rows=intratask_block.THREADS)
        args |= {"scale": SCALE[real], "THREADS": intratask_block.THREADS, "TILE": tile}
        longest = int(args["pairs"][:, 3].max())
        return launcher.launch(
            intratask_block.intratask_block,
            grid=len(some_reads),
            block=intratask_block.THREADS,
            shared=-(-longest // 4) * 4,
            args=args,
        )

    return _in_batches(problem, reads, haplotypes, launch)


def _intratask_warp(
    warps: int,
    copies: int,
    problem: Problem,
    reads: Offsets,
    haplotypes: Offsets,
    real: Real,
    launcher: Launcher,
) -> Floats:
    def launch(some_reads: Offsets, some_haplotypes: Offsets) -> Result:
        args = anti_diagonals(problem, some_reads, some_haplotypes, real, warps, 32, copies)
        columns = -(-int(args["pairs"][:, 3].max()) // COLUMN_STEP) * COLUMN_STEP
        shared = warps == 1 and 3 * copies * columns * np.dtype(real).itemsize <= EDGES_IN_SHARED
        args |= {"scale": SCALE[real], "WARPS": warps, "COLUMNS": columns, "SHARED": shared, "COPIES": copies}
        return launcher.launch(
            intratask_warp.intratask_warp, grid=len(args["pairs"]) // warps, block=32 * warps, args=args
        )

    return _in_batches(problem, reads, haplotypes, launch)


# ------------------------------------------------------------------ the wavefronts
def _plan_chunks(
    plan: Callable[[Problem, Floats], Iterator[PlannedLaunch]], problem: Problem, sums: Floats
) -> Iterator[PlannedLaunch]:
    """Yield the launches of consecutive chunks of a problem: reads with at most PAIRS_PER_CHUNK pairs in total, or one read.

    Threads plan the chunks: the compiled loops release the interpreter lock.
    """
    first, firsts, chunks = 0, problem.first_pairs, []
    while first < len(firsts) - 1:
        last = max(int(np.searchsorted(firsts, firsts[first] + PAIRS_PER_CHUNK, "right")) - 1, first + 1)
        chunks.append((problem.subset(first, last), sums[firsts[first] : firsts[last]]))
        first = last
    if len(chunks) == 1:
        yield from plan(*chunks[0])
        return
    gpu = current_gpu()

    def planned(chunk: tuple[Problem, Floats]) -> list[PlannedLaunch]:
        with on_gpu(gpu):
            return list(plan(*chunk))

    with ThreadPoolExecutor() as threads:
        for launches in threads.map(planned, chunks):
            yield from launches


def _plan_lists(
    plan: PlanOfLists, kernels: Sequence[tuple[int, int]], launcher: Launcher, problem: Problem, sums: Floats
) -> Iterator[PlannedLaunch]:
    """Yield the launches of a plan for kernels (P, K); reads too long for all of them are computed in tiles."""

    def too_long(reads: Offsets, haplotypes: Offsets, at: Offsets) -> Iterator[PlannedLaunch]:
        return _plan_pairs(problem, reads, haplotypes, np.float32, sums, at)

    return plan(problem, sums, SCALE[np.float32], kernels, launcher, too_long)


def wavefront_sums(problem: Problem, kernels: Sequence[tuple[int, int]], launcher: Launcher) -> Floats:
    """Return the sums of all pairs of a problem by gpuPairHMM's kernels (P, K) of `SELECTABLE`, in float."""
    return _by_plan(partial(_plan_lists, plan_listed, kernels)).whole(problem, launcher)


def _plan_loaded(launcher: Launcher, problem: Problem, sums: Floats) -> Iterator[PlannedLaunch]:
    """Yield launches that compute the sums of all pairs of a problem."""
    return _plan_pairs(problem, *problem.pairs, np.float32, sums)


def _plan_pairs(
    problem: Problem, reads: Offsets, haplotypes: Offsets, real: Real, sums: Floats, at: Offsets | None = None
) -> Iterator[PlannedLaunch]:
    """Yield launches that compute sums[at[p]] for pair p of a read and a haplotype."""
    m, n = problem.read_lengths[reads], problem.haplotype_lengths[haplotypes]
    sizes = np.array([lanes * rows_per_lane for lanes, rows_per_lane in BINS])
    bins = np.searchsorted(sizes, m)
    full = problem.uniform[reads] & (m == np.append(sizes, 0)[bins])
    for number, uniform, members in _by_bin(bins, full, m * n):
        tiled = number == len(BINS)
        lanes, rows_per_lane = TILE if tiled else BINS[number]
        order = members[np.argsort(n[members], kind="stable")]
        # Only the edges of tiles could exceed the memory of a batch.
        for chosen in (
            _batches(order, m + n) if tiled else np.split(order, range(PAIRS_PER_CHUNK, len(order), PAIRS_PER_CHUNK))
        ):
            grid, args = sub_warps(
                problem, reads[chosen], haplotypes[chosen], real, lanes, rows_per_lane, tiled, uniform
            )
            args["scale"] = SCALE[real]

            def collect(result: Result, targets: Offsets = chosen if at is None else at[chosen]) -> None:
                sums[targets] = result["sums"][: len(targets)]

            yield PlannedLaunch(wavefront, {"grid": grid, "block": 32, "args": args}, collect)


def _by_bin(bins: Offsets, full: npt.NDArray[np.bool_], cells: Offsets) -> Iterator[tuple[int, bool, Offsets]]:
    """Yield (bin, whether its reads are all full, pairs) of each launch, by ascending bin.

    full: reads as long as their bin and uniform. Their pairs join the others of their bin, unless they have CELLS_A_LAUNCH cells.
    """
    for number in np.unique(bins).tolist():
        members = np.flatnonzero(bins == number)
        whole = full[members]
        if 0 < whole.sum() < len(whole) and cells[members[whole]].sum() >= CELLS_A_LAUNCH:
            yield number, False, members[~whole]
            yield number, True, members[whole]
        else:
            yield number, bool(whole.all()), members


def _plan_rescaled(launcher: Launcher, problem: Problem, sums: Floats) -> Iterator[PlannedLaunch]:
    """Yield launches as `_plan_loaded` does; `wavefront` computes the reads unsupported by the rescaled form."""
    layout, m = RescaledLayout(problem, LETTERS_AT_ONCE, launcher.empty), problem.read_lengths
    sizes = np.array([lanes * rows_per_lane for lanes, rows_per_lane in RESCALED_BINS])
    bins = np.searchsorted(sizes, m)
    paired = np.diff(problem.first_pairs) > 0
    unsupported = (bins == len(RESCALED_BINS)) | layout.unsupported
    rescaled = np.flatnonzero(~unsupported & paired)
    full = layout.uniform & (m == np.append(sizes, 0)[bins])
    for number, uniform, members in _merge_small_bins(bins[rescaled], full[rescaled], layout.letters[rescaled], sizes):
        lanes, rows_per_lane = RESCALED_BINS[number]
        reads = rescaled[members]
        grid, longest, args = layout.launch(reads, lanes, rows_per_lane)
        initial = RESCALED_SCALE / 2.0 ** np.ceil(np.log2(longest))
        args |= {"initial": initial, "UNIFORM": uniform}

        def collect(result: Result, reads: Offsets = reads, scale: float = SCALE[np.float32] / initial) -> None:
            layout.collect(result["sums"], reads, scale, sums)

        yield PlannedLaunch(wavefront_rescaled, {"grid": grid, "block": 32, "args": args}, collect)
    if (unsupported & paired).any():
        reads, haplotypes = problem.pairs
        at = np.flatnonzero(unsupported[reads])
        yield from _plan_pairs(problem, reads[at], haplotypes[at], np.float32, sums, at)


def _is_rescaled(problem: Problem) -> npt.NDArray[np.bool_]:
    lanes, rows_per_lane = RESCALED_BINS[-1]
    return (problem.read_lengths <= lanes * rows_per_lane) & ~classify(problem)[0]


def _merge_small_bins(
    bins: Offsets, full: npt.NDArray[np.bool_], letters: Offsets, sizes: Offsets
) -> Iterator[tuple[int, bool, Offsets]]:
    """Yield (bin, whether its reads are all full, reads) of each launch, the largest bin first.

    full: reads as long as their bin and uniform. letters: total of the haplotypes of each read. Reads with a launch that saves fewer
    than CELLS_A_LAUNCH cells join those of the next non-empty bin; full ones join the others of their bin.
    """
    kinds = 2 * bins + full
    work = np.bincount(kinds, letters, 2 * len(sizes))
    group = np.zeros(len(work), np.int8)
    launches: list[tuple[int, bool]] = []
    waiting: list[int] = []
    occupied = np.flatnonzero(work.reshape(-1, 2).any(axis=1)).tolist()
    for number, larger in zip(occupied, [*occupied[1:], None], strict=False):
        partial, whole = 2 * number, 2 * number + 1
        waiting += [kind for kind in (partial, whole) if work[kind]]
        if waiting[-1] == whole != waiting[0] and work[whole] * sizes[number] >= CELLS_A_LAUNCH:
            group[waiting.pop()] = len(launches)
            launches.append((number, True))
        if larger is None or work[waiting].sum() * (sizes[larger] - sizes[number]) >= CELLS_A_LAUNCH:
            group[waiting] = len(launches)
            launches.append((number, waiting == [whole]))
            waiting = []
    of_each = group[kinds]
    order = np.argsort(of_each, kind="stable")
    ends = np.cumsum(np.bincount(of_each, minlength=len(launches)))
    for at in reversed(range(len(launches))):
        yield *launches[at], order[ends[at - 1] if at else 0 : ends[at]]


def _batches(order: Offsets, sizes: Offsets) -> Iterator[Offsets]:
    """Split `order` into launches of at most PAIRS_AT_ONCE pairs and, for more than one pair, BASES_AT_ONCE bases."""
    at = 0
    while at < len(order):
        window = order[at : at + PAIRS_AT_ONCE]
        largest = np.maximum.accumulate(sizes[window])
        fitting = np.searchsorted(largest * np.arange(1, len(window) + 1), BASES_AT_ONCE, "right")
        yield window[: max(int(fitting), 1)]
        at += max(int(fitting), 1)


VARIANTS: dict[str, Method] = {
    "intertask-naive": _by_sweeps(partial(_intertask, intertask_naive, 1, True)),
    "intertask-naive-unsorted": _by_sweeps(partial(_intertask, intertask_naive, 1, False)),
    **{f"intertask-tile{k}": _by_sweeps(partial(_intertask, intertask_tiles, k, True)) for k in TILES},
    **{f"intertask-tile{k}-registers": _by_sweeps(partial(_intertask, intertask_tiled, k, True)) for k in TILES},
    "intratask-naive": _by_sweeps(partial(_intratask_block, 1)),
    "intratask-tile2": _by_sweeps(partial(_intratask_block, 2)),
    "intratask-warp": _by_sweeps(partial(_intratask_warp, 1, 1)),
    "intratask-warp-two-copies": _by_sweeps(partial(_intratask_warp, 1, 2)),
    "intratask-warps": _by_sweeps(partial(_intratask_warp, intratask_warp.WARPS, 1)),
    "intratask-warps-two-copies": _by_sweeps(partial(_intratask_warp, intratask_warp.WARPS, 2)),
    "wavefront": _by_plan(partial(_plan_lists, plan_listed, KERNELS)),
    "wavefront-row-end": _by_plan(partial(_plan_lists, plan_partitioned, KERNELS)),
    "wavefront-loaded": _by_plan(_plan_loaded),
    "wavefront-rescaled": _by_plan(_plan_rescaled)._replace(is_rescaled=_is_rescaled),
}
