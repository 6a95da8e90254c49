"""SASS instructions with their source locations, and with their execution counts."""

from __future__ import annotations

from dataclasses import dataclass

from ..engines.cuda.sass import Instruction
from .source_statements import Place


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
    """Executions of a statement: line, kind (`profiler.events`), executions by warps and lanes, divergent executions, bytes per
    lane, and operations by issue class. calls: lines of inlined calls, innermost first."""

    line: int
    kind: str
    warps: int
    lanes: int
    divergent: int
    size: int
    costs: dict[str, int]
    calls: tuple[int, ...] = ()


@dataclass(frozen=True)
class InstructionCount:
    """Executions of a SASS instruction over all launches of a kernel.

    instruction: text, opcode, predicate, targets, scheduling control. place: its line of the printed kernel and the
    lines of the inlined calls around it; 0 for none. block: its basic block. pipes: its execution pipes; none for
    branches. warps, threads: executions by warps and by active lanes; predicated-off lanes count as active, as on the
    hardware. least, most: certain bounds of `warps`; uncertainty: its reason, empty if there is none.
    """

    instruction: Instruction
    place: tuple[int, ...]
    block: int
    pipes: tuple[str, ...]
    warps: float
    threads: float
    least: float
    most: float
    uncertainty: str = ""
