"""Matrix multiply-accumulates of a warpgroup (HGMMA, QGMMA, IGMMA), by its warps.

The operands of nvcc's code: gdesc[URn] has the descriptor of A in URn and of B in URn+2, where A is not in registers; the predicate
states whether C is added. Shared memory is read where the instruction is issued.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.matrices import GROUP_INSTRUCTIONS, INCOMPLETE, ROW_BYTES, SIGNS, WITH_BASE, DescribedRows, GroupInstruction
from ..ir.matrices import moved as moved_matrices
from ..ir.ops import TABLE
from ..ir.tensor_cores import multiply_add
from ..language.types import Vector
from .access import read_predicate, read_register, write_register
from .counts import Counts
from .integer import i64, u32, u64
from .matrices import all_lanes, reads_of
from .memory import SHARED, Execute, checked_index, read_words, registers_of
from .operands import Decoded, Register, UnsupportedInstruction
from .state import ExecutionError, Rows, State

_LANE = np.arange(32)
_ROW, _LOW, _HIGH = _LANE & 7, _LANE >> 3 & 1, _LANE >> 4
"""The row of an 8x8 matrix that a lane loads, and the bits of the number of its matrix."""


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


def _operate(name: str, *values: Any) -> Any:
    return TABLE[name].meaning(*map(np.asarray, values))


def _rows(op: Decoded, register: int, transposed: bool) -> Callable[..., Any]:
    """Return the load of 8x8 matrices by a descriptor in a register."""
    read = read_register(Register(register, True), True)

    def load(s: State, r: Rows, lanes: Any, block: Any, half: Any, count: int) -> Any:
        places = DescribedRows(_operate, lambda field: field, read(s, r).view(i64), transposed)
        if not places.without_base.all():
            raise ExecutionError(f"{WITH_BASE}: {op}")
        address = (places.at(block, half, _ROW) * ROW_BYTES).astype(u64)
        index = checked_index(op, SHARED, s, r, lanes & (8 * count > _LANE), address, ROW_BYTES)
        return moved_matrices("load", transposed, read_words(SHARED.contents(s), index, ROW_BYTES, False))[:count]

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
    a_rows, b_rows = (_rows(op, first + 2 * n, f"tnsp{name}" in flags) for n, name in enumerate("AB"))
    a_reads = [read for one in own for read in reads_of(one, 4)]
    c_type, c_reads = instruction.types[2], reads_of(rest[0], row.registers)
    width = c_type.lanes if isinstance(c_type, Vector) else 1
    writes = [write_register(n, False) for n in registers_of(to, row.registers)]
    adds = read_predicate(rest[1]) if len(rest) > 1 else None

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        all_lanes(op, lanes)
        if s.warps_per_block % 4:
            raise ExecutionError(f"{INCOMPLETE}: {op}")
        block = 2 * (np.arange(s.warps)[r] % s.warps_per_block % 4)[:, None] + _LOW
        a = [read(s, r) for read in a_reads] or a_rows(s, r, lanes, block, _HIGH, 4)
        a = [np.ascontiguousarray(value ^ sign) for value in a]
        adding = True if adds is None else adds(s, r)
        for column in range(row.n // 8):
            if column % 2 == 0:
                b = b_rows(s, r, lanes, _HIGH + column, _LOW, 2 * min(2, row.n // 8 - column))
            at = slice(width * column, width * (column + 1))
            c = [np.where(adding, np.broadcast_to(read(s, r), lanes.shape), u32(0)) for read in c_reads[at]]
            d = multiply_add(instruction, counts.device.compute_capability, a, b[2 * (column % 2) :][:2], c)
            for write, value in zip(writes[at], d, strict=True):
                write(s, r, lanes, value)

    return execute


WARPGROUPS = dict.fromkeys(("HGMMA", "QGMMA", "IGMMA"), multiply)
"""By opcode."""
MOST_SUMS = max(row.registers for row in GROUP_INSTRUCTIONS.values())
"""Registers of the largest D."""
