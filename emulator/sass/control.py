"""Control-flow instructions: branches, calls, convergence and barriers, exits."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import groups as kinds
from .access import read_predicate, reader
from .barriers import check_phase
from .groups import BARRIER_REGISTERS
from .operands import Decoded, Operand, UnsupportedInstruction, accept
from .state import ExecutionError, State

Select = Callable[[State, Any, Any], Any]
"""Arguments: state, warps, lanes that the guard selects; returns the lanes that the instruction selects."""


@dataclass(frozen=True)
class Control:
    """A control instruction. kind, target, number, reduction: as in `groups`. values, awaited_threads: its operands by lane.
    error: raised if a lane executes it."""

    kind: int
    target: int = 0
    number: int = 0
    reduction: int = kinds.NO_REDUCTION
    select: Select | None = None
    values: Callable[[State, Any], Any] | None = None
    awaited_threads: Callable[[State, Any], Any] | None = None
    error: Exception | None = None


def _target(op: Decoded) -> int:
    if not op.operands or op.operands[-1].kind != "integer":
        raise UnsupportedInstruction(str(op))
    return op.operands[-1].number >> 4


def _predicates(op: Decoded, operands: tuple[Operand, ...]) -> Callable[[State, Any, Any], Any]:
    """Return the selection of lanes whose predicates among the operands hold."""
    if any(one.kind != "predicate" for one in operands):
        raise UnsupportedInstruction(str(op))
    reads = [read_predicate(one) for one in operands]

    def select(s: State, rows: Any, lanes: Any) -> Any:
        for read in reads:
            lanes = lanes & read(s, rows)
        return lanes

    return select


def _barrier_register(op: Decoded) -> int:
    name = next((one.text for one in op.operands if one.kind == "name" and one.text[:1] == "B"), "")
    if not name[1:].isdigit() or int(name[1:]) >= BARRIER_REGISTERS:
        raise UnsupportedInstruction(str(op))
    return int(name[1:])


def _branch(op: Decoded) -> Control:
    accept(op, "DIV CONV U ANY")
    if {"DIV", "CONV"} & op.flags:
        awaited = reader("i", op.operands[0], 0)
        return Control(kinds.JUMP_IF_CONVERGED, _target(op), int("CONV" in op.flags), values=awaited)
    return Control(kinds.JUMP, _target(op), int({"U", "ANY"} <= op.flags), select=_predicates(op, op.operands[:-1]))


def _call(op: Decoded) -> Control:
    accept(op, "REL NOINC")
    return Control(kinds.JUMP, _target(op))


def _return(op: Decoded) -> Control:
    accept(op, "REL NODEC")
    if op.guard is not None:
        raise UnsupportedInstruction(str(op))
    return Control(kinds.RETURN, values=reader("i", op.operands[0], 0))


def _branch_indirect(op: Decoded) -> Control:
    """A branch to the sum of a register, a number and the address of the next instruction."""
    accept(op, "")
    if op.guard is not None or len(op.operands) != 2 or op.operands[1].kind != "integer":
        raise UnsupportedInstruction(str(op))
    read, base = reader("i", op.operands[0], 0), np.uint32(op.operands[1].number + op.offset + 16 & 0xFFFFFFFF)
    return Control(kinds.RETURN, values=lambda s, rows: read(s, rows) + base)


def _set_barrier(op: Decoded) -> Control:
    accept(op, "RECONVERGENT")
    return Control(kinds.SET_BARRIER, number=_barrier_register(op))


def _synchronise(op: Decoded) -> Control:
    accept(op, "RECONVERGENT")
    return Control(kinds.SYNCHRONISE, number=_barrier_register(op))


def _leave(op: Decoded) -> Control:
    accept(op, "")
    return Control(kinds.LEAVE, number=_barrier_register(op), select=_predicates(op, op.operands[:-1]))


def _exit(op: Decoded) -> Control:
    accept(op, "")
    return Control(kinds.EXIT, select=_predicates(op, op.operands))


def _block_barrier(op: Decoded) -> Control:
    accept(op, "SYNC RED POPC AND OR DEFER_BLOCKING")
    reduces = "RED" in op.flags
    number, *threads = (reader("i", one, op.immediate) for one in (op.operands[:-1] if reduces else op.operands))
    control = Control(
        kinds.BLOCK_BARRIER, number=len(threads), values=number, awaited_threads=threads[0] if threads else None
    )
    if not reduces:
        return control
    reduction = {"POPC": kinds.POPC, "AND": kinds.AND, "OR": kinds.OR}[op.modifiers[1]]
    return replace(control, reduction=reduction, select=_predicates(op, op.operands[-1:]))


def _cluster_arrive(op: Decoded) -> Control:
    return Control(kinds.CLUSTER_ARRIVE)


def _cluster_wait(op: Decoded) -> Control:
    return Control(kinds.CLUSTER_WAIT)


def _gather(op: Decoded) -> Control:
    accept(op, "ALL COLLECTIVE EXCLUSIVE")
    if "ALL" in op.flags:
        return Control(kinds.GATHER, number=1)
    return Control(kinds.GATHER, values=reader("i", op.operands[0], op.immediate))


def _set_aside(op: Decoded) -> Control:
    accept(op, "")
    return Control(kinds.SET_ASIDE)


def await_phase(op: Decoded) -> Control:
    """SYNCS.PHASECHK.TRYWAIT: suspend the warp until the phases of all lanes are complete, for a time."""
    return Control(kinds.AWAIT, select=check_phase(op))


def _continue(op: Decoded) -> Control:
    return Control(kinds.CONTINUE)


def _trap(op: Decoded) -> Control:
    return Control(kinds.CONTINUE, error=ExecutionError(f"the kernel ends in {op}"))


CONTROL: dict[str, Callable[[Decoded], Control]] = {
    "BRA": _branch, "BRX": _branch_indirect, "CALL": _call, "RET": _return, "BSSY": _set_barrier, "BSYNC": _synchronise, "BREAK": _leave,
    "EXIT": _exit, "BAR": _block_barrier, "WARPSYNC": _gather, "ENDCOLLECTIVE": _continue, "NANOSLEEP": _continue,
    "YIELD": _set_aside, "BPT": _trap, "UCGABAR_ARV": _cluster_arrive, "UCGABAR_WAIT": _cluster_wait,
}  # fmt: skip
"""By opcode. Each ends a run of straight-line code."""
