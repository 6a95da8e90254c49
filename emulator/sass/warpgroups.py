"""Matrix multiply-accumulates of a warpgroup (HGMMA, QGMMA, IGMMA), by its warps.

The operands of nvcc's code: gdesc[URn] has the descriptor of A in URn and of B in URn+2, where A is not in registers; the predicate
states whether C is added. Shared memory is read where the instruction is issued.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..ir.effects import Capability
from ..ir.matrices import (
    GROUP_INSTRUCTIONS,
    INCOMPLETE,
    ROW_BYTES,
    SIGNS,
    WITH_BASE,
    DescribedRows,
    GroupInstruction,
    Instruction,
)
from ..ir.tensor_cores import multiply_add
from .access import read_predicate, read_register, write_register
from .counts import Counts
from .integer import i64, u32, u64
from .matrices import instruction_of as warp_instruction_of
from .matrices import moved, need_all_lanes, reads_of
from .memory import SHARED, Execute, checked_index, read_words, registers_of
from .operands import Decoded, Register, UnsupportedInstruction
from .state import Rows, State
from .traced import Lanes


def instruction_of(op: Decoded) -> GroupInstruction:
    """Return the instruction. Raises UnsupportedInstruction."""
    shape, *types = [name.lower() for name in op.modifiers]
    if op.opcode == "IGMMA":
        types = ["s32", *types]
    elif op.opcode == "HGMMA":
        types = [types[0], *(types[1:] or ["f16"]) * 2]
    row = GROUP_INSTRUCTIONS.get(f"m{'n'.join(shape.split('x', 1)).replace('x', 'k')}.{'.'.join(types)}")
    if row is None:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    return row


_OPERATIONS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "and": np.bitwise_and, "xor": np.bitwise_xor, "shl": np.left_shift,
    "shr": np.right_shift, "eq": np.equal, "select": np.where,
}  # fmt: skip
"""Operations of places in shared memory, of arrays and of traced values."""


def _operation(name: str, *values: Any) -> Any:
    return _OPERATIONS[name](*(i64(value) if isinstance(value, int) else value for value in values))


def _rows(op: Decoded, register: int, transposed: bool) -> Callable[..., list[Any]]:
    """Return the load of the rows of 8x8 matrices by a descriptor in a register."""
    read = read_register(Register(register, True), True)

    def load(s: State, r: Rows, lanes: Any, block: Any, half: Any, count: int) -> list[Any]:
        described = DescribedRows(_operation, lambda field: field, read(s, r).view(i64), transposed)
        s.require(op, described.without_base, WITH_BASE)
        lane = s.threads_of(r) & 31
        address = (described.at(block, half, lane & 7) * ROW_BYTES).astype(u64)
        index = checked_index(op, SHARED, s, r, lanes & (lane < 8 * count), address, ROW_BYTES)
        return read_words(SHARED.contents(s), index, ROW_BYTES, False)

    return load


def multiply(op: Decoded) -> Execute:
    row = instruction_of(op)
    to, *sources = op.operands
    own = [sources.pop(0)] if sources[0].kind == "register" else []
    match = re.fullmatch(r"gdesc\[UR(\d+)\]((?:\.(?:neg|tnsp)[AB])*)", sources[0].text)
    rest = [one for one in sources[1:] if not re.fullmatch(r"gsb\d", one.text)]
    if match is None or [one.kind for one in rest] not in (["register"], ["register", "predicate"]):
        raise UnsupportedInstruction(str(op))
    flags, first, instruction = match[2].split("."), int(match[1]), row.part
    sign = u32(SIGNS.get(instruction.a, 0) if ("negA" in flags) != ("negB" in flags) else 0)
    transposed = ["tnspA" in flags, "tnspB" in flags]
    a_rows, b_rows = (_rows(op, first + 2 * n, transposed[n]) for n in (0, 1))
    a_reads = [read for one in own for read in reads_of(one, 4)]
    c_reads = reads_of(rest[0], row.registers)
    writes = [write_register(n, False) for n in registers_of(to, row.registers)]
    adds = read_predicate(rest[1]) if len(rest) > 1 else None
    product = _Product(op, row, None if own else ("load", transposed[0]), ("load", transposed[1]))

    def execute(s: Any, r: Rows, lanes: Any, counts: Counts) -> None:
        need_all_lanes(op, s, lanes)
        s.require(op, (s.warps_per_block & 3) == 0, INCOMPLETE)
        thread = s.threads_of(r)
        low, high = thread >> 3 & 1, thread >> 4 & 1
        a = [read(s, r) for read in a_reads] or a_rows(s, r, lanes, 2 * (thread >> 5 & 3) + low, high, 4)
        b = [
            b_rows(s, r, lanes, high + column, low, 2 * min(2, row.n // 8 - column))
            for column in range(0, row.n // 8, 2)
        ]
        adding = True if adds is None else adds(s, r)
        c = [np.where(adding, np.broadcast_to(read(s, r), lanes.shape), u32(0)) for read in c_reads]
        a = [value ^ sign for value in a]
        if isinstance(lanes, Lanes):
            d = s.calls.results(lanes, [a, *b, c], partial(product.emit, s.calls), (row.registers, u32))
        else:
            d = product.of_arrays(s, lanes, counts.device.compute_capability, a, b, c)
        for write, value in zip(writes, d, strict=True):
            write(s, r, lanes, value)

    return execute


@dataclass(frozen=True)
class _Product:
    """The products of 8 columns each. a_form, b_form: moves of the rows that were loaded; None for A in registers."""

    op: Decoded
    row: GroupInstruction
    a_form: tuple[str, bool] | None
    b_form: tuple[str, bool]

    @property
    def width(self) -> int:
        return 8 * self.row.registers // self.row.n

    def of_arrays(self, s: State, lanes: Any, capability: Capability, a: Any, b: Any, c: Any) -> list[Any]:
        """Return the registers of D. b: of each 16 columns."""
        if self.a_form is not None:
            a = moved(s, lanes, self.a_form, a)
        a = [np.ascontiguousarray(np.broadcast_to(value, lanes.shape)) for value in a]
        pairs, d = [moved(s, lanes, self.b_form, own) for own in b], list[Any]()
        for column in range(self.row.n // 8):
            own_b, at = pairs[column // 2][2 * (column % 2) :][:2], self.width * column
            d += multiply_add(self.row.part, capability, a, own_b, c[at : at + self.width])
        return d

    def emit(self, calls: Any, buffers: Sequence[str], out: str) -> None:
        """Emit the calls for buffers of A, of B by 16 columns, and of C."""
        a, *pairs, c = buffers
        if self.a_form is not None:
            calls.move_matrices(self.a_form, a, a := calls.buffer(4, u32))
        for column in range(self.row.n // 8):
            if column % 2 == 0:
                calls.move_matrices(self.b_form, pairs[column // 2], b := calls.buffer(4, u32))
            own, at = calls.register(b, 2 * (column % 2)), self.width * column
            calls.multiply(self.op, a, own, calls.register(c, at), calls.register(out, at))


WARPGROUPS = dict.fromkeys(("HGMMA", "QGMMA", "IGMMA"), multiply)
"""By opcode."""
MOST_SUMS = max(row.registers for row in GROUP_INSTRUCTIONS.values())
"""Registers of the largest D."""
PRODUCTS = ("HMMA", "IMMA", "DMMA", *WARPGROUPS)
"""Opcodes of matrix multiply-accumulates."""
PRODUCT = 48
"""Numbers of `ir.tensor_cores.parameters`, at most."""


def product_of(op: Decoded) -> Instruction:
    """Return the instruction of a warp. Raises UnsupportedInstruction."""
    return instruction_of(op).part if op.opcode in WARPGROUPS else warp_instruction_of(op)
