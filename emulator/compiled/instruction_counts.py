"""SASS instructions with their source locations and execution counts."""

from __future__ import annotations

from dataclasses import dataclass

from ..engines.cuda.sass import Instruction

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

    instruction: text, opcode, predicate, targets, scheduling control. place: its source location, (0,) for none. pipes:
    its execution pipes; none for branches. warps, threads: executions by warps and by active lanes; predicated-off lanes
    count as active, as on the hardware. requests, transactions, extra: of its accesses: warps with an access; sectors or
    wavefronts; lines or bank conflicts.
    """

    instruction: Instruction
    place: Place
    pipes: tuple[str, ...]
    warps: float
    threads: float
    requests: float = 0.0
    transactions: float = 0.0
    extra: float = 0.0
