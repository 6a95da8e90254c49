"""Execution of a launch: runs of straight-line code by all warps at one address, the lowest address first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..engines.cuda.sass import Instruction
from . import collectives, floating, integer
from .access import read_predicate, reader, writer
from .control import CONTROL, Control
from .convergence import RUNNING, Convergence
from .counts import Counts
from .memory import MEMORY, Execute
from .operands import Decoded, UnsupportedInstruction, decode
from .rows import DESTINATIONS, Row, bind
from .state import ExecutionError, GlobalMemory, State

_FAIR_INTERVAL = 16
"""Runs after which the warps that waited longest run: warps that wait for others must not starve these."""
MAX_RUNS = 4_000_000
"""Runs of straight-line code of a batch, after which an execution ends as a loop without progress."""
_BATCH_BYTES = 1 << 28
"""Memory of the registers, local and shared memory of a batch of blocks."""
_FAR = 1 << 60


def _rows_by_opcode() -> dict[str, list[Row]]:
    result: dict[str, list[Row]] = {}
    for row in (*integer.ROWS, *floating.ROWS, *collectives.ROWS):
        result.setdefault(row.opcode, []).append(row)
    return result


ROWS = _rows_by_opcode()
"""Rows of the opcode table, by opcode; `memory.MEMORY` and `control.CONTROL` have the others."""
_UNIFORM_NAMES = {"VOTEU": "VOTE", "S2UR": "S2R", "UP2UR": "P2UR"}


def rows_of(op: Decoded) -> Sequence[Row]:
    """Return the rows of an opcode; a uniform form (UIADD3) has those of the plain one. Raises UnsupportedInstruction."""
    name = _UNIFORM_NAMES.get(op.opcode, op.opcode)
    rows = ROWS.get(name) or (ROWS.get(name[1:]) if name[:1] == "U" else None)
    if rows is None:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    return rows


def _lane_instruction(op: Decoded) -> Execute:
    """Return the execution of an instruction of the table."""
    bound = bind(op, rows_of(op))
    letters = [letter for letter, _ in bound.operands]
    destinations = [one for one in bound.operands if one[0] in DESTINATIONS]
    writes = [(n, writer(letter, operand)) for n, (letter, operand) in enumerate(destinations) if operand is not None]
    reads: list[Callable[[State, Any], Any] | None] = [
        reader(letter, operand, op.immediate) if operand is not None else None
        for letter, operand in bound.operands
        if letter not in DESTINATIONS
    ]
    lanes_at = letters.index("m") - len(destinations) if "m" in letters else -1
    meaning, single = bound.row.meaning, len(destinations) == 1

    def execute(s: State, r: Any, lanes: Any, counts: Counts) -> None:
        values = [read(s, r) if read is not None else None for read in reads]
        if lanes_at >= 0:
            values[lanes_at] = lanes
        results = meaning(op, *values)
        if single:
            results = (results,)
        for n, write in writes:
            write(s, r, lanes, results[n])

    return execute


class Step(NamedTuple):
    """An instruction ready to run. control: of one that ends a run. guard: its predicate."""

    op: Decoded
    execute: Execute | None
    control: Control | None
    guard: Callable[[State, Any], Any] | None


@dataclass(frozen=True)
class Program:
    """A kernel's instructions, ready to run."""

    steps: tuple[Step, ...]

    @staticmethod
    def from_listing(instructions: Iterable[Instruction]) -> Program:
        """Decode a kernel. An instruction without a row in the table raises UnsupportedInstruction when it is executed."""
        return Program(tuple(_step(number, one) for number, one in enumerate(instructions)))

    @cached_property
    def registers(self) -> int:
        """Registers of a thread: one more than the highest number that is read or written."""
        operands = [one for step in self.steps for one in step.op.operands]
        numbers = [one.number for one in operands if one.kind == "register" and not one.uniform]
        numbers += [register.number for one in operands for register in one.registers if not register.uniform]
        return max(numbers, default=0) + 5  # of the widest access, and the stack pointer

    @cached_property
    def yields(self) -> bool:
        """Whether groups of lanes yield."""
        return any(step.op.opcode == "YIELD" for step in self.steps)

    @cached_property
    def ends_run(self) -> npt.NDArray[np.bool_]:
        """bool[n], whether an instruction ends a run of straight-line code."""
        return np.array([step.control is not None for step in self.steps], np.bool_)


def _step(number: int, instruction: Instruction) -> Step:
    op = decode(number, instruction)
    guard = read_predicate(op.guard) if op.guard is not None else None
    try:
        if op.opcode in CONTROL:
            return Step(op, None, CONTROL[op.opcode](op), guard)
        execute = MEMORY[op.opcode](op) if op.opcode in MEMORY else _lane_instruction(op)
    except UnsupportedInstruction as error:
        return Step(op, None, _refusal(op, error), guard)
    return Step(op, execute, None, guard)


def _refusal(op: Decoded, error: UnsupportedInstruction) -> Control:
    """Return the execution of an instruction without a row: it raises the error if a lane executes it."""

    def execute(s: State, c: Convergence, counts: Counts, rows: Any, active: Any, lanes: Any) -> None:
        if lanes.any():
            raise UnsupportedInstruction(f"{op} is not emulated: {error}")
        c.address[rows] = op.offset + 16

    return execute


def run_batch(program: Program, state: State, counts: Counts) -> None:
    """Run the blocks of a state to their end. Raises ExecutionError."""
    steps, groups = program.steps, Convergence(state, program.yields)
    index = {step.op.offset: n for n, step in enumerate(steps)}
    latest, step_number = np.zeros(state.warps, np.int64), 0
    while (ready := groups.status == RUNNING).any():
        step_number += 1
        if step_number > MAX_RUNS:
            raise ExecutionError("a loop of the kernel makes no progress")
        chosen = groups.address[np.where(ready, latest, _FAR).argmin()] if step_number % _FAIR_INTERVAL == 0 else _FAR
        address = min(int(np.where(ready, groups.address, _FAR).min()), _FAR) if chosen == _FAR else int(chosen)
        rows = np.flatnonzero(ready & (groups.address == address))
        latest[rows] = step_number
        if groups.merges:
            groups.take_up(rows, address)
        _run(steps, index[address], rows, state, groups, counts)
    if (groups.status != 2).any():
        raise ExecutionError("warps of a block wait at different barriers")


def _run(steps: Sequence[Step], n: int, rows: Any, state: State, groups: Convergence, counts: Counts) -> None:
    """Run straight-line code up to its control instruction."""
    selected: Any = slice(None) if len(rows) == state.warps else rows
    active = groups.lanes[selected]
    counts.add_run(n, rows, int(np.count_nonzero(active)))
    step = steps[n]
    while step.control is None:
        assert step.execute is not None
        step.execute(state, selected, active if step.guard is None else active & step.guard(state, selected), counts)
        n += 1
        step = steps[n]
    active = active.copy()
    step.control(
        state, groups, counts, rows, active, active if step.guard is None else active & step.guard(state, rows)
    )


@dataclass(frozen=True)
class Launch:
    """A launch. blocks: int64[n], those that are executed. shared_bytes: of a block. together: whether blocks wait for
    each other."""

    grid: Sequence[int]
    block: Sequence[int]
    blocks: npt.NDArray[np.int64]
    shared_bytes: int
    memory: GlobalMemory
    banks: dict[int, bytes]
    together: bool = False


def execute(program: Program, launch: Launch, counts: Counts) -> None:
    """Run a launch in batches of blocks; memory changes in place. counts: with the warps of `launch.blocks`.

    Raises ExecutionError.
    """
    threads = int(np.prod(launch.block))
    warps = -(-threads // 32)
    block_bytes = warps * 32 * (4 * program.registers + State.local_stride * program_uses_local(program))
    size = max(1, _BATCH_BYTES // (block_bytes + launch.shared_bytes + 1))
    if launch.together:
        size = len(launch.blocks)
    for first in range(0, len(launch.blocks), size):
        blocks = launch.blocks[first : first + size]
        state = State(
            launch.grid, launch.block, blocks, program.registers, launch.shared_bytes, launch.memory, launch.banks
        )
        counts.first_warp = first * warps
        with np.errstate(all="ignore"):
            run_batch(program, state, counts)


def program_uses_local(program: Program) -> bool:
    """Return whether a kernel accesses local memory."""
    return any(step.op.opcode in ("LDL", "STL") for step in program.steps)
