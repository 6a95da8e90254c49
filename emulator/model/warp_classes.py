"""Classes of warps with similar executions, and their branch profiles in the compiled kernel.

A warp is described by its executed instructions of each basic block. Median cut (Heckbert 1982) splits the class with the
largest deviation at its mean, up to CLASSES classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..compiled.control_flow import Graph
from ..sass.counts import Counts
from .branch_profiles import branch_profile, convergence_of, unreachable_convergence

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CLASSES = 16
"""Maximal number of classes."""
_MAX_DEVIATION = 0.01
"""Standard deviation of instructions within a class, relative to the mean warp, that needs no split."""

_TAIL_QUANTILE = 0.9
"""Quantile of the work of a warp above which its distribution is extrapolated."""


@dataclass(frozen=True)
class WarpClasses:
    """Branch profiles by class.

    blocks: int64[class, block, 5]: first instruction, past the last, majority successor, minority successor (-1: exit),
    convergence block of divergent lanes (-1: none). minority_shares, divergent_shares: float64[class, block],
    probabilities of the minority successor and of divergence. exit_counters: int64[class, block], block of the shared
    accumulator of a loop's exits, else -1. unreachable_convergence: bool[block, block + 1], whether no path leads from
    the first to the second, a convergence block (index from 1; 0: none). convergence_blocks: bool[block]. lengths:
    float64[class], instructions of a warp. executions: float64[class, block], of a warp. warps: float64[class], in the
    launch. longest: class of the longest warp, and its instructions relative to the class mean. traced_blocks:
    int64[n], the executed blocks in order; class_of: int64[n, warp].
    """

    blocks: Words
    minority_shares: Floats
    divergent_shares: Floats
    exit_counters: Words
    unreachable_convergence: npt.NDArray[np.bool_]
    convergence_blocks: npt.NDArray[np.bool_]
    lengths: Floats
    executions: Floats
    warps: Floats
    imbalance: tuple[int, float]
    traced_blocks: Words
    class_of: Words

    def classes(self, blocks: npt.NDArray[np.int64]) -> Words:
        """Return the classes of the warps of some blocks; blocks without a trace use their neighbor's."""
        result: Words = self.class_of[
            np.minimum(np.searchsorted(self.traced_blocks, blocks), len(self.traced_blocks) - 1)
        ]
        return result


def classify_warps(graph: Graph, counts: Counts, traced_blocks: Words, grid: int, tickets: bool) -> WarpClasses:
    """Return the warp classes. counts: of the executed blocks, `traced_blocks`. grid: blocks of the launch. tickets:
    whether warps claim work dynamically; then all warps are assumed equal."""
    sizes = np.array([past - first for first, past in graph.blocks], np.float64)
    executions = counts.executions()[[first for first, _ in graph.blocks]].T.astype(np.float64)
    work = executions @ sizes
    class_by_executions = _median_cut(executions * sizes, _MAX_DEVIATION * float(work.mean()))
    class_of = np.zeros_like(class_by_executions) if tickets else class_by_executions
    reachable = [graph.reachable_from(block) for block in range(len(graph.blocks))]
    convergence_blocks = [convergence_of(graph, block, reachable) for block in range(len(graph.blocks))]
    profiles, executions_by_class = [], []
    for number in range(int(class_of.max()) + 1):
        members = np.flatnonzero(class_of == number)
        branches = {n: rows[:, members].sum(axis=1) for n, rows in counts.branches.items()}
        profiles.append(branch_profile(graph, branches, convergence_blocks))
        executions_by_class.append(executions[members].mean(axis=0))
    blocks, minority_shares, divergent_shares, exit_counters = (
        np.array(table) for table in zip(*profiles, strict=True)
    )
    executed = np.array(executions_by_class)
    warps_in_class: Floats = np.bincount(class_of).astype(np.float64) * (grid / len(traced_blocks))
    return WarpClasses(
        blocks, minority_shares, divergent_shares, exit_counters, unreachable_convergence(graph),
        np.array([graph.is_convergence_point(block) for block in range(len(graph.blocks))]), executed @ sizes, executed,
        warps_in_class, (0, 1.0) if tickets else _longest_warp(work, class_of, grid / len(traced_blocks)), traced_blocks,
        class_of.reshape(len(traced_blocks), -1),
    )  # fmt: skip


def _longest_warp(work: Floats, class_of: Words, launched: float) -> tuple[int, float]:
    """Return the class of the warp with most work, and its work relative to the mean of the class.

    launched: warps of the launch for each executed one. The work of the others is assumed to have an exponential tail,
    with the mean excess of the executed warps over their 90 % quantile.
    """
    longest = int(work.argmax())
    mean = max(work[class_of == class_of[longest]].mean(), 1e-300)
    threshold = np.quantile(work, _TAIL_QUANTILE)
    tail = work[work >= threshold].mean() - threshold
    return int(class_of[longest]), max(1.0, float((work[longest] + tail * np.log(launched)) / mean))


def _median_cut(points: Floats, max_deviation: float) -> Words:
    """Return the class of each point."""
    class_of = np.zeros(len(points), np.int64)
    spread_by_class: dict[int, tuple[float, int]] = {}

    def measure(largest: int) -> None:
        members = points[class_of == largest]
        deviations = members.std(axis=0)
        column = int(deviations.argmax())
        deviation = float(deviations[column])
        spread_by_class[largest] = (deviation * deviation * len(members) if deviation > max_deviation else 0.0, column)

    measure(0)
    while len(spread_by_class) < CLASSES:
        largest = max(spread_by_class, key=lambda known: spread_by_class[known][0])
        spread, column = spread_by_class[largest]
        if spread <= 0:
            break
        column_values = points[:, column]
        class_of[(class_of == largest) & (column_values > column_values[class_of == largest].mean())] = len(
            spread_by_class
        )
        measure(len(spread_by_class))
        measure(largest)
    return class_of
