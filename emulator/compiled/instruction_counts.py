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
    extra: of its accesses: warps with an access; sectors or wavefronts; lines or bank conflicts.
    """

    instruction: Instruction
    place: Place
    warps: float
    threads: float
    requests: float
    transactions: float
    extra: float

    @property
    def pipes(self) -> tuple[str, ...]:
        """Its execution pipes; none for branches."""
        return pipes_of(self.instruction)


def counted(
    placed: Iterable[LocatedInstruction], warps: Any, threads: Any, traffic: Any
) -> tuple[InstructionCount, ...]:
    """Return instructions with their counts. warps, threads: numbers by instruction. traffic: [n, 3], as `sass.counts.Counts`."""
    return tuple(
        InstructionCount(one.instruction, one.place, float(warps[n]), float(threads[n]), *map(float, traffic[n]))
        for n, one in enumerate(placed)
    )
