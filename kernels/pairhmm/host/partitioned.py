"""Host side of `wavefront-row-end`: the GPU distributes reads over lists by length; the host sorts and packs the pairs of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
from simtbed import Result, empty

from ...family import Launcher, PlannedLaunch
from ..wavefront_shuffled import THREADS, partition, wavefront_shuffled
from .layout import sub_warps
from .problem import Offsets, Problem, ranges

LANES = (2, 4, 8, 16, 32)
ROWS = (4, 8, 12, 16, 20, 24, 28, 32)
SELECTABLE = tuple(product(LANES, ROWS))
"""(P, K) of every kernel."""
KERNELS = tuple(product(LANES[1:], ROWS))
"""The paper's typical partitioning: 32 kernels, reads of up to 1,024 bases."""
_USUAL_ROWS = 16
_LEFT_OUT = ("match_edge", "insertion_edge", "deletion_edge", "stride", "TILED", "WIDE")
"""Arguments of `wavefront` for tiles or double precision."""


def by_size(kernels: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return one kernel for each maximum read length P K; of several, the one with K nearest to 16."""
    ordered = sorted(kernels, key=lambda kernel: (kernel[0] * kernel[1], abs(kernel[1] - _USUAL_ROWS)))
    return list({lanes * each: (lanes, each) for lanes, each in reversed(ordered)}.values())[::-1]


def partitioned(
    lengths: npt.NDArray[np.int64], kernels: Sequence[tuple[int, int]], launcher: Launcher
) -> tuple[list[Offsets], Offsets]:
    """Return the reads of each kernel, as partitioned by the GPU, and the reads too long for all kernels, in order.

    kernels: by size.
    """
    sizes = np.array([lanes * each for lanes, each in kernels], np.int32)
    result = launcher.launch(
        partition,
        grid=len(kernels),
        block=THREADS,
        args={
            "lengths": lengths.astype(np.int32),
            "sizes": sizes,
            "counts": empty(len(kernels), "i32"),
            "lists": empty(len(kernels) * len(lengths), "i32"),
            "reads": len(lengths),
        },
    )
    lists = np.asarray(result["lists"]).reshape(len(kernels), -1)
    read_lists = [
        one[:count].astype(np.int64) for one, count in zip(lists, np.asarray(result["counts"]).tolist(), strict=True)
    ]
    return read_lists, np.flatnonzero(lengths > sizes[-1])


def plan_partitioned(
    problem: Problem,
    sums: npt.NDArray[np.float64],
    scale: float,
    kernels: Sequence[tuple[int, int]],
    launcher: Launcher,
    too_long: Callable[[Offsets, Offsets, Offsets], Iterator[PlannedLaunch]],
) -> Iterator[PlannedLaunch]:
    """Yield launches that compute the sums of all pairs of a problem.

    too_long: (reads, haplotypes, places of their sums) to launches, for pairs too long for all kernels.
    """
    paired = np.flatnonzero(np.diff(problem.first_pairs))
    if not len(paired):
        return
    ordered = by_size(kernels)
    lists, rest = partitioned(problem.read_lengths[paired], ordered, launcher)
    all_reads, all_haplotypes = problem.pairs
    for (lanes, rows_per_lane), members in zip(ordered, lists, strict=True):
        if not len(members):
            continue
        at = pairs_of(problem, paired[members])
        at = at[np.argsort(problem.haplotype_lengths[all_haplotypes[at]], kind="stable")]
        full = problem.uniform[paired[members]] & (problem.read_lengths[paired[members]] == lanes * rows_per_lane)
        grid, args = sub_warps(
            problem, all_reads[at], all_haplotypes[at], np.float32, lanes, rows_per_lane, uniform=bool(full.all())
        )
        launch_args = {name: value for name, value in args.items() if name not in _LEFT_OUT} | {"scale": scale}

        def collect(result: Result, targets: Offsets = at) -> None:
            sums[targets] = result["sums"][: len(targets)]

        yield PlannedLaunch(wavefront_shuffled, {"grid": grid, "block": 32, "args": launch_args}, collect)
    if len(rest):
        at = pairs_of(problem, paired[rest])
        yield from too_long(all_reads[at], all_haplotypes[at], at)


def pairs_of(problem: Problem, reads: Offsets) -> Offsets:
    """Return the pair numbers of the given reads, in their order."""
    return ranges(problem.first_pairs[reads], np.diff(problem.first_pairs)[reads])
