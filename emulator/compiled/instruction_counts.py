"""One instruction of a compiled kernel as it ran."""

from __future__ import annotations

from dataclasses import dataclass

from ..engines.cuda.sass import Instruction


@dataclass(frozen=True)
class InstructionCount:
    """One SASS instruction over all launches of a kernel.

    instruction: its text, opcode, predicate, targets, and what it tells the scheduler (`control`). place: its line of the
    printed kernel, then those of the calls inlined to reach it; 0 for none. block: the basic block, by number. pipes: of
    an SM that execute it; none for branches. warps, threads: executions by warps, and by their active lanes; lanes that a
    predicate switches off count as active, as the hardware counts them. least, most: between which `warps` lies for
    certain, where it could not be counted; `why` then says so. table: whether it loads coefficients of the compiler's own (`tables`).
    """

    instruction: Instruction
    place: tuple[int, ...]
    block: int
    pipes: tuple[str, ...]
    warps: float
    threads: float
    least: float
    most: float
    why: str = ""
    table: bool = False
