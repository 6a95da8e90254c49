"""From file to file: pairs are read, aligned and written, a batch at a time, each stage in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

from ...family import Launcher
from ...files import MEMORY, MEMORY_OF_BATCHES
from ...pipeline import Flow, Show, workers_for
from . import limits
from .answer import Alignments
from .files import Format, Texts, Writer, texts
from .pipeline import Kept, align
from .problem import Parameters, Problem, Strategy

FORMATTERS = 2
"""Threads that write text at most."""
BYTES_OF_A_WORD = 8
"""Moves may take half of the memory: a word has four bytes."""
PART_OF_CELLS, PART_OF_CELLS_OF_GPU = 4, 2
"""A batch has as many cells as this part of the memory has bytes, beyond one pair: a launch takes a while to prepare, and
large ones fill a GPU. Moves take half a byte a cell."""
PART_OF_LAUNCH = 64
"""The moves of a launch on an emulator take this part of the memory, beyond one pair: what it touches is reused soon."""


@dataclass(frozen=True)
class How:
    """How pairs are aligned. gpus: that share the batches; 0 on an emulator. memory: what arrays may take. cluster:
    the address of a Dask cluster whose workers share the batches; empty for this process."""

    variant: str
    parameters: Parameters
    strategy: Strategy
    form: Format
    gpus: int = 0
    memory: int = MEMORY
    cluster: str = ""

    @property
    def words(self) -> int:
        """Of moves that a pair may fill."""
        return self.memory // BYTES_OF_A_WORD

    @property
    def words_at_once(self) -> int:
        """Of moves that a launch may fill, beyond one pair."""
        return self.words if self.gpus else min(self.memory, MEMORY_OF_BATCHES) // PART_OF_LAUNCH // 4

    @property
    def cells(self) -> int:
        """Of a batch."""
        return min(self.memory, MEMORY_OF_BATCHES) // (PART_OF_CELLS_OF_GPU if self.gpus else PART_OF_CELLS)


class _Written(NamedTuple):
    problem: Problem
    found: Alignments
    texts: Texts


def align_file(
    problems: Iterable[Problem],
    to: BinaryIO,
    how: How,
    launcher: Launcher,
    take: Callable[[Problem, Alignments], None] = lambda problem, found: None,
    show: Show = lambda step, records, part: None,
) -> int:
    """Align the pairs of all problems, in their order; how many. take: is given each batch when it is written.
    launcher: one that can be pickled, where a cluster is to have it.

    Raises SimtbedError where a pair cannot be held, InputError for what SAM cannot say.
    """
    pairs, kept = 0, Kept(0 if how.gpus else how.words_at_once)

    def solve(problem: Problem) -> Alignments:
        problem = asked(problem)
        limits.check_memory(problem, how.variant, how.words)
        return align(problem, how.variant, launcher, how.words_at_once, kept)

    def asked(problem: Problem) -> Problem:
        return replace(problem, parameters=how.parameters, strategy=how.strategy)

    def formatted(solved: tuple[Problem, Alignments]) -> _Written:
        problem, found = asked(solved[0]), solved[1]
        return _Written(problem, found, texts(problem, found, how.form))

    with Writer(how.form, to, how.memory) as writer:

        def sink(some: _Written) -> None:
            nonlocal pairs
            writer.put(some.texts)
            take(some.problem, some.found)
            pairs += len(some.problem)
            show("", pairs, None)

        flow = Flow(problems).map_pairs(solve, how.cluster, how.gpus)
        flow.map(formatted, workers=workers_for(FORMATTERS)).into(sink)
        writer.finish()
    return pairs
