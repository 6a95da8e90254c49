"""Execution counts of one SASS instruction."""

from __future__ import annotations

from dataclasses import dataclass

from ..engines.cuda.sass import Instruction


@dataclass(frozen=True)
class InstructionCount:
    """Executions of a SASS instruction over all launches of a kernel.

    instruction: text, opcode, predicate, targets, scheduling control. place: its line of the printed kernel and the
    lines of the inlined calls around it; 0 for none. block: its basic block. pipes: its execution pipes; none for
    branches. warps, threads: executions by warps and by active lanes; predicated-off lanes count as active, as on the
    hardware. least, most: certain bounds of `warps`; why: reason of the uncertainty, empty if there is none. table:
    whether it loads a coefficient table (`coefficient_tables`).
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
    table: bool = False
