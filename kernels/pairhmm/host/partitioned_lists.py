"""Host side of gpuPairHMM: the GPU writes lists of reads by length, and each kernel receives its list in the GPU's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from simtbed import DeviceArray, Result, empty

from ...family import Launcher, PlannedLaunch
from ..wavefront_columns import THREADS, partition_reads, wavefront_columns
from .layout import PROBABILITY, Arguments, haplotype_words, read_letters
from .partitioned import by_size, pairs_of
from .problem import Offsets, Problem, owners


class Lists(NamedTuple):
    """Lists of reads by kernel. kernels: (P, K), ascending by P K. entries: on the GPU, `reads` places for each list. totals: (reads,
    alignments) of each list."""

    kernels: list[tuple[int, int]]
    entries: DeviceArray
    totals: list[tuple[int, int]]


def lists_of(
    lengths: npt.NDArray[np.int64], alignments: Offsets, kernels: Sequence[tuple[int, int]], launcher: Launcher
) -> Lists:
    """Return the reads of each kernel, as partitioned by the GPU. Reads too long for all kernels are in no list."""
    ordered = by_size(kernels)
    entries = DeviceArray(empty(len(ordered) * len(lengths), "int2"))
    result = launcher.launch(
        partition_reads,
        grid=len(ordered),
        block=THREADS,
        args={
            "lengths": lengths.astype(np.int32),
            "alignments": alignments.astype(np.int32),
            "sizes": np.array([lanes * each for lanes, each in ordered], np.int32),
            "totals": empty(len(ordered), "int2"),
            "lists": entries,
            "reads": len(lengths),
        },
    )
    return Lists(ordered, entries, list(map(tuple, result["totals"].tolist())))


def plan_listed(
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
    if not problem.first_pairs[-1]:
        return
    lists = lists_of(problem.read_lengths, np.diff(problem.first_pairs), kernels, launcher)
    aligned = [number for number, (_, alignments) in enumerate(lists.totals) if alignments]
    device_sums = DeviceArray(empty(int(problem.first_pairs[-1]), "f32"))
    shared = {**arguments(problem), "lists": lists.entries, "sums": device_sums, "scale": scale}
    for number in aligned:
        (lanes, columns), (listed, alignments) = lists.kernels[number], lists.totals[number]
        own = {"first": number * len(problem.read_lengths), "listed": listed, "alignments": alignments}

        def collect(result: Result, last: bool = number == aligned[-1]) -> None:
            if last:
                sums[:] = device_sums.numpy()

        args = {**shared, **own, "P": lanes, "K": columns}
        yield PlannedLaunch(
            wavefront_columns, {"grid": -(-alignments * lanes // 32), "block": 32, "args": args}, collect
        )
    longest = np.prod(lists.kernels[-1])
    at = pairs_of(problem, np.flatnonzero(problem.read_lengths > longest))
    if len(at):
        reads, haplotypes = problem.pairs
        yield from too_long(reads[at], haplotypes[at], at)


def arguments(problem: Problem) -> Arguments:
    """Return the arguments of `wavefront_columns` that describe a problem, in the order of its input."""
    first_haplotype = problem.record_haplotypes[:-1][owners(problem.record_reads)]
    columns = (problem.read_offsets[:-1], problem.read_lengths, first_haplotype, problem.first_pairs[:-1])
    first_word, words = haplotype_words(problem, np.arange(len(problem.haplotype_lengths)))
    return {
        "reads": np.stack(columns, axis=1).astype(np.int32),
        "haplotypes": np.stack([first_word[:-1], problem.haplotype_lengths], axis=1).astype(np.int32),
        "bases": read_letters(problem),
        "base_quality": problem.base_quality,
        "insertion": problem.insertion,
        "deletion": problem.deletion,
        "continuation": problem.continuation,
        "letters": words,
        "probability": PROBABILITY.astype(np.float32),
        "UNIFORM": bool(problem.uniform.all()),
    }
