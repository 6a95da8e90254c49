"""Control-flow instructions: branches, calls, convergence and barriers, exits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .access import read_predicate, reader
from .convergence import BARRIER_REGISTERS, Convergence
from .counts import Counts
from .integer import u32
from .operands import Decoded, Operand, UnsupportedInstruction
from .state import ExecutionError, State

Control = Callable[[State, Convergence, Counts, Any, Any, Any], None]
"""Arguments: state, groups, counts, warps (int64[n]), active lanes, those of them that the guard selects."""
_BYTES = 16


def _accept(op: Decoded, allowed: str) -> None:
    if unknown := op.flags - set(allowed.split()):
        raise UnsupportedInstruction(f"the modifier {min(unknown)} of {op}")


def _target(op: Decoded) -> int:
    if not op.operands or op.operands[-1].kind != "integer":
        raise UnsupportedInstruction(str(op))
    return op.operands[-1].number


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
    _accept(op, "DIV CONV U ANY")
    target, after = _target(op), op.offset + _BYTES
    tests_convergence = bool({"DIV", "CONV"} & op.flags)
    select = _predicates(op, () if tests_convergence else op.operands[:-1])
    awaited = reader("i", op.operands[0], 0) if tests_convergence else None
    count_mask = 1 << np.arange(32, dtype=np.int64)

    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        if awaited is None:
            jumps = select(s, rows, lanes)
        else:
            converged = (active * count_mask).sum(1) == (awaited(s, rows)[:, 0] & c.alive[rows])
            jumps = lanes & (converged == ("CONV" in op.flags))[:, None]
        counts.add_branch(op.number, rows, *c.branch(rows, active, jumps, target, after))

    return execute


def _call(op: Decoded) -> Control:
    _accept(op, "REL NOINC")
    target, after = _target(op), op.offset + _BYTES

    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        counts.add_branch(op.number, rows, *c.branch(rows, active, lanes, target, after))

    return execute


def _return(op: Decoded) -> Control:
    _accept(op, "REL NODEC")
    address = reader("i", op.operands[0], 0)
    if op.guard is not None:
        raise UnsupportedInstruction(str(op))

    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        c.branch_to(rows, lanes, address(s, rows))

    return execute


def _set_barrier(op: Decoded) -> Control:
    _accept(op, "RECONVERGENT")
    number, after = _barrier_register(op), op.offset + _BYTES
    return lambda s, c, counts, rows, active, lanes: c.set_barrier(rows, number, lanes, after)


def _synchronise(op: Decoded) -> Control:
    _accept(op, "RECONVERGENT")
    number, after = _barrier_register(op), op.offset + _BYTES
    return lambda s, c, counts, rows, active, lanes: c.synchronise(rows, number, active, lanes, after)


def _leave(op: Decoded) -> Control:
    _accept(op, "")
    number, after = _barrier_register(op), op.offset + _BYTES
    select = _predicates(op, op.operands[:-1])
    return lambda s, c, counts, rows, active, lanes: c.leave(rows, number, select(s, rows, lanes), after)


def _exit(op: Decoded) -> Control:
    _accept(op, "")
    select = _predicates(op, op.operands)

    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        ended = select(s, rows, lanes)
        counts.add_branch(op.number, rows, ended.any(1), (ended == active).all(1))
        c.exit(rows, active, ended, op.offset + _BYTES)

    return execute


def _block_barrier(op: Decoded) -> Control:
    _accept(op, "SYNC RED POPC AND OR DEFER_BLOCKING")
    after = op.offset + _BYTES
    reduces = "RED" in op.flags
    holds = read_predicate(op.operands[-1]) if reduces else None
    numbers = [reader("i", one, op.immediate) for one in (op.operands[:-1] if reduces else op.operands)]

    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        if holds is not None:
            c.reduce(rows, active, holds(s, rows), op.modifiers[1])
        values = [np.broadcast_to(read(s, rows), active.shape)[0] for read in numbers]
        first = int(active[0].argmax())
        barrier = int(values[0][first])
        threads = int(values[1][first]) if len(values) > 1 else None
        c.wait_for_block(rows, active, barrier, after, threads)

    return execute


def _gather(op: Decoded) -> Control:
    _accept(op, "ALL COLLECTIVE EXCLUSIVE")
    after = op.offset + _BYTES
    everyone = "ALL" in op.flags
    mask = None if everyone else reader("i", op.operands[0], op.immediate)

    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        needed = c.alive[rows]
        if mask is not None:
            named = np.broadcast_to(mask(s, rows), active.shape).max(1, where=active, initial=0)
            needed = named.astype(u32) & needed
        c.gather(rows, active, needed, after)

    return execute


def _set_aside(op: Decoded) -> Control:
    _accept(op, "")
    return lambda s, c, counts, rows, active, lanes: c.set_aside(rows, active, op.offset + _BYTES)


def _continue(op: Decoded) -> Control:
    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        c.address[rows] = op.offset + _BYTES

    return execute


def _trap(op: Decoded) -> Control:
    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        if lanes.any():
            raise ExecutionError(f"the kernel ends in {op}")
        c.address[rows] = op.offset + _BYTES

    return execute


CONTROL: dict[str, Callable[[Decoded], Control]] = {
    "BRA": _branch, "CALL": _call, "RET": _return, "BSSY": _set_barrier, "BSYNC": _synchronise, "BREAK": _leave,
    "EXIT": _exit, "BAR": _block_barrier, "WARPSYNC": _gather, "ENDCOLLECTIVE": _continue, "NANOSLEEP": _continue,
    "YIELD": _set_aside, "BPT": _trap,
}  # fmt: skip
"""By opcode. Each ends a run of straight-line code."""
