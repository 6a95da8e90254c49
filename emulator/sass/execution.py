"""Execution of a launch: runs of straight-line code by all warps at one address, the lowest address first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..engines.cuda.sass import Instruction
from . import collectives, floating, half, integer
from .access import read_predicate, reader, writer
from .barriers import BARRIERS
from .batch import Batch
from .control import CONTROL, Control, await_phase
from .counts import Counts
from .groups import CONTINUE, FINISHED, PAUSED
from .machine_code import MachineCode
from .matrices import MATRICES
from .memory import MEMORY, Execute
from .operands import Decoded, UnsupportedInstruction, decode
from .rows import DESTINATIONS, Row, bind
from .state import ExecutionError, GlobalMemory, State
from .steps import Step
from .warpgroups import MOST_SUMS, PRODUCTS, WARPGROUPS

MAX_RUNS = 4_000_000
"""Runs of straight-line code of a batch, after which an execution ends as a loop without progress."""
_BATCH_BYTES = 1 << 28
"""Memory of the registers, local and shared memory of a batch of blocks."""
COMPILE_AFTER = 25
"""Interpreted instructions, by all warps at an address together, for each instruction of a program after which it is
compiled: these take as long as the compilation."""
_PRODUCT_COST = 200
"""Interpreted instructions that take as long as a product of matrices."""
_FAR = 1 << 60


def _rows_by_opcode() -> dict[str, list[Row]]:
    result: dict[str, list[Row]] = {}
    for row in (*integer.ROWS, *half.ROWS, *floating.ROWS, *collectives.ROWS):
        result.setdefault(row.opcode, []).append(row)
    return result


ROWS = _rows_by_opcode()
"""Rows of the opcode table, by opcode; `MEMORY`, `BARRIERS`, `MATRICES`, `WARPGROUPS` and `CONTROL` have the others."""
_UNIFORM_NAMES = {"VOTEU": "VOTE", "S2UR": "S2R", "UP2UR": "P2UR"}


def rows_of(op: Decoded) -> Sequence[Row]:
    """Return the rows of an opcode; a uniform form (UIADD3) has those of the plain one. Raises UnsupportedInstruction."""
    name = _UNIFORM_NAMES.get(op.opcode, op.opcode)
    rows = ROWS.get(name) or (ROWS.get(name[1:]) if name[:1] == "U" else None)
    if rows is None:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    return rows


def _lane_instruction(op: Decoded) -> tuple[Execute, bool]:
    """Return the execution of an instruction of the table, and whether it exchanges values between lanes."""
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

    return execute, lanes_at >= 0


@dataclass(frozen=True)
class Program:
    """A kernel's instructions, ready to run."""

    steps: tuple[Step, ...]

    @staticmethod
    def from_listing(instructions: Iterable[Instruction]) -> Program:
        """Decode a kernel. An instruction without a row in the table raises UnsupportedInstruction when it is executed."""
        return Program(tuple(_step(number, one) for number, one in enumerate(instructions)))

    @cached_property
    def stored_code(self) -> MachineCode | None:
        """The machine code in the disk cache; None without one."""
        return MachineCode.load(self.steps)

    @cached_property
    def machine_code(self) -> MachineCode:
        """The program, from the disk cache or compiled."""
        return self.stored_code or MachineCode.compile(self.steps)

    @property
    def is_compiled(self) -> bool:
        """Whether its machine code exists, in this process or in the disk cache."""
        return "machine_code" in vars(self) or self.stored_code is not None

    @cached_property
    def registers(self) -> int:
        """Registers of a thread: one more than the highest number that is read or written."""
        operands = [one for step in self.steps for one in step.op.operands]
        numbers = [one.number for one in operands if one.kind == "register" and not one.uniform]
        numbers += [register.number for one in operands for register in one.registers if not register.uniform]
        widest = MOST_SUMS if any(step.op.opcode in WARPGROUPS for step in self.steps) else 4
        return max(numbers, default=0) + 1 + widest  # of an access, and the stack pointer

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
        if "TRYWAIT" in op.flags:
            return Step(op, None, await_phase(op), guard)
        matrices = MATRICES.get(op.opcode) or WARPGROUPS.get(op.opcode)
        if matrices is not None:
            execute, exchanges = matrices(op), True
        else:
            row = MEMORY.get(op.opcode) or BARRIERS.get(op.opcode)
            execute, exchanges = (row(op), False) if row is not None else _lane_instruction(op)
    except UnsupportedInstruction as error:
        refusal = UnsupportedInstruction(f"{op} is not emulated: {error}")
        return Step(op, None, Control(CONTINUE, error=refusal), guard)
    return Step(op, execute, None, guard, exchanges)


def run_batch(program: Program, state: State, counts: Counts, first_warp: int, compile_after: int | None) -> None:
    """Run the blocks of a state to their end. first_warp: the first one of the batch among those counted. Raises
    ExecutionError."""
    steps, batch = program.steps, Batch(program.steps, state, program.yields)
    code, interpreted = None, 0
    if counts.trace is not None:
        counts.trace.begin_batch(first_warp, batch.groups.phases)
    limit = (0 if program.is_compiled else COMPILE_AFTER * len(steps)) if compile_after is None else compile_after
    while True:
        if interpreted >= limit and code is None:
            code, limit = program.machine_code.bind(batch, counts), _FAR
        n = code.run() if code is not None else batch.begin()
        if batch.runs > MAX_RUNS:
            raise ExecutionError("a loop of the kernel makes no progress")
        if n == FINISHED:
            break
        if n != PAUSED:
            interpreted += _interpret(steps, n, batch, counts)
    batch.finish()
    counts.add_batch(batch.groups, batch.paths, state.phases, first_warp)


def _interpret(steps: Sequence[Step], n: int, batch: Batch, counts: Counts) -> int:
    """Execute the started run. Return the number of its instructions, as `COMPILE_AFTER` counts them."""
    state, step = batch.state, steps[n]
    rows, active = batch.running
    counts.running, cost = rows, 1
    selected: Any = slice(None) if len(rows) == state.warps else rows
    while step.control is None:
        assert step.execute is not None
        step.execute(state, selected, active if step.guard is None else active & step.guard(state, selected), counts)
        cost += _PRODUCT_COST if step.op.opcode in PRODUCTS else 1
        n += 1
        step = steps[n]
    lanes = active if step.guard is None else active & step.guard(state, rows)
    if step.control.error is not None and lanes.any():
        raise step.control.error
    batch.end(n, step.control, rows, lanes)
    return cost


@dataclass(frozen=True)
class Launch:
    """A launch. blocks: int64[n], those that are executed, by cluster and rank. shared_bytes: of a block. together: whether blocks of
    other clusters wait for each other. cluster: blocks by axis."""

    grid: Sequence[int]
    block: Sequence[int]
    blocks: npt.NDArray[np.int64]
    shared_bytes: int
    memory: GlobalMemory
    banks: dict[int, bytes]
    together: bool = False
    cluster: Sequence[int] = (1, 1, 1)


def execute(program: Program, launch: Launch, counts: Counts, compile_after: int | None = None) -> None:
    """Run a launch in batches of blocks; memory changes in place. counts: with the warps of `launch.blocks`.
    compile_after: interpreted instructions of a batch after which compiled code continues; by default COMPILE_AFTER for each
    instruction of the program, or none if its machine code is in the disk cache.

    Raises ExecutionError.
    """
    threads = int(np.prod(launch.block))
    warps = -(-threads // 32)
    block_bytes = warps * 32 * (4 * program.registers + State.local_stride * program_uses_local(program))
    of_cluster = int(np.prod(launch.cluster))
    size = max(1, _BATCH_BYTES // (of_cluster * (block_bytes + launch.shared_bytes + 1))) * of_cluster
    if launch.together:
        size = len(launch.blocks)
    for first in range(0, len(launch.blocks), size):
        blocks = launch.blocks[first : first + size]
        state = State(
            launch.grid, launch.block, blocks, program.registers, launch.shared_bytes, launch.memory, launch.banks,
            counts.trace is not None, launch.cluster,
        )  # fmt: skip
        with np.errstate(all="ignore"):
            run_batch(program, state, counts, first * warps, compile_after)


def program_uses_local(program: Program) -> bool:
    """Return whether a kernel accesses local memory."""
    return any(step.op.opcode in ("LDL", "STL") for step in program.steps)
