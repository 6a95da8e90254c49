"""The executed warps of a compiled kernel: their paths through its SASS, and classes of warps with similar executions.

Median cut (Heckbert 1982) splits the class with the largest deviation at its mean, up to CLASSES classes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..sass.counts import Counts
from ..sass.phases import PhaseEvents

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CLASSES = 16
"""Maximal number of classes."""
_MAX_DEVIATION = 0.01
"""Standard deviation of instructions within a class, relative to the mean warp, that needs no split."""

_TAIL_QUANTILE = 0.9
"""Quantile of the work of a warp above which its distribution is extrapolated."""


@dataclass(frozen=True)
class ExecutedWarps:
    """The executed warps of a launch, by number.

    path: int64[m], the first instruction of each run of straight-line code, by warp and in order. first: int64[warps + 1], the
    start of each warp's. ends_run: bool[instruction]. lengths: float64[warps], instructions. class_of: int64[warps].
    executions: float64[class, instruction], in the launch. longest: the longest warp, and the longest of the launch relative
    to it. blocks: int64[n], the executed blocks whose paths are kept, in order; replayed: int64[n, warp], the warps whose
    paths theirs take. events: what warps do with barriers in shared memory. claims_work: whether warps claim work dynamically.
    launched: warps of the launch for each executed one.
    """

    path: Words
    first: Words
    ends_run: npt.NDArray[np.bool_]
    lengths: Floats
    class_of: Words
    executions: Floats
    longest: tuple[int, float]
    blocks: Words
    replayed: Words
    events: PhaseEvents
    claims_work: bool
    launched: float

    def acting(self, instruction: int) -> Floats:
        """Return the executions of an instruction in `events`, float64[class], in the launch."""
        warp = np.repeat(np.arange(len(self.class_of)), np.diff(self.events.first))[
            self.events.instruction == instruction
        ]
        return np.bincount(self.class_of[warp], minlength=len(self.executions)) * np.float64(self.launched)

    def of_blocks(self, blocks: Words) -> Words:
        """Return the warps of some blocks, int64[..., warp]; blocks that were not executed have those of a neighbor."""
        result: Words = self.replayed[np.searchsorted(self.blocks, blocks) % len(self.blocks)]
        return result


def executed_warps(counts: Counts, blocks: Words, grid: int, tickets: bool) -> ExecutedWarps:
    """Return the warps of the executed blocks. grid: blocks of the launch. tickets: whether warps claim work dynamically; then
    all take the path of the most typical one, with the mean length."""
    executions, block_of = counts.executions(), counts.basic_blocks()
    instructions = executions * np.bincount(block_of)[:, None]
    work = instructions.sum(axis=0).astype(np.float64)
    mean, launched = float(work.mean()), grid / len(blocks)
    numbers, (path, first) = np.arange(len(work)), counts.paths()
    is_kept = np.diff(first) > 0
    if tickets:
        typical = int(abs(work - mean).argmin())
        lengths, class_of, longest = np.full(len(work), mean), np.zeros_like(numbers), (typical, mean / work[typical])
        numbers = np.full_like(numbers, typical)
    else:
        lengths, class_of = work, _median_cut(instructions.T, _MAX_DEVIATION * mean)
        longest = _longest_warp(np.where(is_kept, work, 0), launched)
    by_class = [executions[:, class_of == number].sum(axis=1)[block_of] for number in range(int(class_of.max()) + 1)]
    replayed = numbers.reshape(len(blocks), -1)
    complete = is_kept[replayed].all(axis=1)
    return ExecutedWarps(
        path, first, counts.ends_run, lengths, class_of, launched * np.array(by_class), longest, blocks[complete], replayed[complete],
        counts.phase_events(len(work) // len(blocks)), tickets, launched,
    )  # fmt: skip


def _longest_warp(work: Floats, launched: float) -> tuple[int, float]:
    """Return the warp with most work, and the most work of the launch relative to its own.

    launched: warps of the launch for each executed one. The work of the others is assumed to have an exponential tail,
    with the mean excess of the executed warps over their 90 % quantile.
    """
    longest = int(work.argmax())
    threshold = np.quantile(work, _TAIL_QUANTILE)
    tail = work[work >= threshold].mean() - threshold
    return longest, float(1 + tail * np.log(launched) / work[longest])


def _median_cut(points: Words, max_deviation: float) -> Words:
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
