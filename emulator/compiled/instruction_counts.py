"""SASS instructions with their source locations and execution counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..engines.cuda.sass import Instruction
from .pipes import pipes_of

Place = tuple[int, ...]
"""Source location: a line of the printed kernel, then the lines of inlined calls, innermost first."""


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
class InstructionCount:
    """Executions of a SASS instruction over all launches of a kernel.

    instruction: text, opcode, predicate, scheduling control. place: its source location, (0,) for none. warps, threads:
    executions by warps and by active lanes; predicated-off lanes count as active, as on the hardware. requests, transactions,
    extra: of its accesses: warps with an access; sectors or wavefronts; lines or bank conflicts. window_requests, window_transactions,
    window_extra: of its generic accesses of shared memory.
    """

    instruction: Instruction
    place: Place
    warps: float
    threads: float
    requests: float
    transactions: float
    extra: float
    window_requests: float
    window_transactions: float
    window_extra: float

    @property
    def all_requests(self) -> float:
        """Warps with an access of a memory, for each memory."""
        return self.requests + self.window_requests

    @property
    def all_transactions(self) -> float:
        """Sectors and wavefronts."""
        return self.transactions + self.window_transactions

    @property
    def pipes(self) -> tuple[str, ...]:
        """Its execution pipes; none for branches."""
        return pipes_of(self.instruction)


def counted(
    placed: Iterable[LocatedInstruction], warps: Any, threads: Any, traffic: Any
) -> tuple[InstructionCount, ...]:
    """Return instructions with their counts. warps, threads: numbers by instruction. traffic: [n, COLUMNS], as `sass.counts.Counts`."""
    return tuple(
        InstructionCount(one.instruction, one.place, float(warps[n]), float(threads[n]), *map(float, traffic[n]))
        for n, one in enumerate(placed)
    )
