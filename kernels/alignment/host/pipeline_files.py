"""Pipeline from file to file: read, align and write batches of pairs, each stage in its own thread."""

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
from .pipeline import ReusedMemory, align
from .problem import Parameters, Problem, Strategy

FORMATTERS = 2
"""Maximum number of formatting threads."""
BYTES_OF_A_WORD = 8
"""Moves may use half of the memory limit: a word has four bytes."""
CELLS_DIVISOR, CELLS_DIVISOR_OF_GPU = 4, 2
"""Divisors of the memory limit for the cells of a batch of more than one pair. Large launches amortise their preparation and fill a
GPU. Moves use half a byte per cell."""
LAUNCH_DIVISOR = 64
"""Divisor of the memory limit for the moves of an emulated launch of more than one pair: small buffers are reused from the cache.
"""


@dataclass(frozen=True)
class How:
    """Options of an alignment run.

    gpus: number of GPUs; 0 on an emulator. memory: limit of the arrays in bytes. cluster: address of a Dask cluster for the batches;
    empty for this process.
    """

    variant: str
    parameters: Parameters
    strategy: Strategy
    form: Format
    gpus: int = 0
    memory: int = MEMORY
    cluster: str = ""

    @property
    def words(self) -> int:
        """Limit of the words of moves of a pair."""
        return self.memory // BYTES_OF_A_WORD

    @property
    def words_at_once(self) -> int:
        """Limit of the words of moves of a launch of more than one pair."""
        return self.words if self.gpus else min(self.memory, MEMORY_OF_BATCHES) // LAUNCH_DIVISOR // 4

    @property
    def cells(self) -> int:
        """Limit of the cells of a batch."""
        return min(self.memory, MEMORY_OF_BATCHES) // (CELLS_DIVISOR_OF_GPU if self.gpus else CELLS_DIVISOR)


class _Written(NamedTuple):
    problem: Problem
    alignments: Alignments
    texts: Texts


def align_file(
    problems: Iterable[Problem],
    to: BinaryIO,
    how: How,
    launcher: Launcher,
    take: Callable[[Problem, Alignments], None] = lambda problem, alignments: None,
    show: Show = lambda step, records, part: None,
) -> int:
    """Align the pairs of all problems in order. Return their number.

    take: called with each written batch. launcher: picklable if a cluster is used. Raises SimtbedError if a pair exceeds a limit,
    InputError if SAM cannot represent a record.
    """
    pairs, moves_memory = 0, ReusedMemory(0 if how.gpus else how.words_at_once)

    def solve(problem: Problem) -> Alignments:
        problem = with_options(problem)
        limits.check_memory(problem, how.variant, how.words)
        return align(problem, how.variant, launcher, how.words_at_once, moves_memory)

    def with_options(problem: Problem) -> Problem:
        return replace(problem, parameters=how.parameters, strategy=how.strategy)

    def formatted(solved: tuple[Problem, Alignments]) -> _Written:
        problem, alignments = with_options(solved[0]), solved[1]
        return _Written(problem, alignments, texts(problem, alignments, how.form))

    with Writer(how.form, to, how.memory) as writer:

        def sink(some: _Written) -> None:
            nonlocal pairs
            writer.put(some.texts)
            take(some.problem, some.alignments)
            pairs += len(some.problem)
            show("", pairs, None)

        flow = Flow(problems).map_pairs(solve, how.cluster, how.gpus)
        flow.map(formatted, workers=workers_for(FORMATTERS)).into(sink)
        writer.finish()
    return pairs
