"""Records of the flow estimate: located instructions, counts of statements, known counts, and executions of instructions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..engines.cuda.sass import Instruction

Floats = npt.NDArray[np.float64]
Place = tuple[int, ...]
"""Source location: a line, then the lines of inlined calls, innermost first."""


@dataclass(frozen=True)
class LocatedInstruction:
    """An instruction and its line, 0 for none. calls: lines of the inlined calls, innermost first."""

    instruction: Instruction
    line: int
    calls: tuple[int, ...] = ()

    @property
    def place(self) -> Place:
        """Its source location."""
        return (self.line, *self.calls)


@dataclass(frozen=True)
class StatementCounts:
    """Executions of a statement: line, kind (`profiler.events`), executions by warps and lanes, divergent executions,
    bytes per lane, and operations by issue class. loop: location of the innermost loop; iterations: per entry if
    constant, else 0. calls: lines of inlined calls, innermost first."""

    line: int
    kind: str
    warps: int
    lanes: int
    divergent: int
    size: int
    costs: dict[str, int]
    loop: Place = ()
    iterations: int = 0
    calls: tuple[int, ...] = ()


class Totals:
    """The instructions of a kernel that warps and threads execute. warps, threads: executions of each instruction."""

    warps: Floats
    threads: Floats

    @property
    def warp_instructions(self) -> int:
        return round(float(self.warps.sum()))

    @property
    def thread_instructions(self) -> int:
        return round(float(self.threads.sum()))


@dataclass(frozen=True)
class FlowEstimate(Totals):
    """Executions of each instruction, by warps and by threads."""

    instructions: tuple[Instruction, ...]
    warps: Floats
    threads: Floats


@dataclass(frozen=True)
class ArmShare:
    """An arm of a branch behind the testing block `head`: its fraction of the arriving lanes and warps, over all copies."""

    head: int
    lanes: float
    warps: float


@dataclass
class KnownCounts:
    """Known executions. blocks: by threads and warps. entries: of loops from outside, by header. divergences: by latch.
    arms: by first block. special_edges: edges for special operands only. unused_slow_calls: blocks with a call that no
    lane executed."""

    blocks: dict[int, tuple[float, float]] = field(default_factory=dict)
    entries: dict[int, float] = field(default_factory=dict)
    divergences: dict[int, float] = field(default_factory=dict)
    arms: dict[int, ArmShare] = field(default_factory=dict)
    special_edges: frozenset[tuple[int, int]] = frozenset()
    unused_slow_calls: frozenset[int] = frozenset()
