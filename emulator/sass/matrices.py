"""Instructions of the tensor cores: matrix multiply-accumulates, and moves of 8x8 matrices of 16-bit elements.

A function of this module returns the execution of one instruction. It needs all lanes of a warp. Arrays are computed by `ir.tensor_cores`,
compiled code calls `maths.tensor_cores`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.matrices import INSTRUCTIONS, ROW_BYTES, Instruction
from ..ir.matrices import moved as moved_arrays
from ..ir.tensor_cores import multiply_add
from ..language.intrinsics import WARP_SIZE
from .access import write_register
from .counts import Counts
from .integer import u32, u64
from .memory import SHARED, Execute, addresses, checked_index, read_words, registers_of, write_source, write_words
from .operands import Decoded, Operand, UnsupportedInstruction
from .state import MISSING_LANES, Rows, State
from .traced import Lanes, Untranslatable

_SHAPES = {
    "16816": "m16n8k16", "1688": "m16n8k8", "1684": "m16n8k4", "884": "m8n8k4", "8x8x4": "m8n8k4", "8816": "m8n8k16", "16832": "m16n8k32",
}  # fmt: skip


def instruction_of(op: Decoded) -> Instruction:
    """Return the instruction of an HMMA, IMMA or DMMA. Raises UnsupportedInstruction."""
    shape, *types = op.modifiers
    if op.opcode == "DMMA":
        words = ["f64"] * 4
    elif op.opcode == "IMMA":
        words = ["s32", *(type.lower() for type in types), "s32"]
    else:
        total, operand = types[0].lower(), (types[1:] or ["F16"])[0].lower()
        words = [total, operand, operand, total]
    instruction = INSTRUCTIONS.get(".".join([_SHAPES.get(shape, shape), *words]))
    if instruction is None or len(types) > 2:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    return instruction


def need_all_lanes(op: Decoded, s: State, lanes: Any) -> None:
    """Raise ExecutionError for missing lanes; Untranslatable where a predicate may hold in none."""
    if isinstance(lanes, Lanes) and op.instruction.predicate:
        raise Untranslatable("a matrix instruction with a predicate")
    s.require(op, lanes, MISSING_LANES)


def moved(s: Any, lanes: Any, form: tuple[str, bool], values: Sequence[Any]) -> Sequence[Any]:
    """Return the registers after a move of 8x8 matrices, see `ir.matrices.moved`."""
    if isinstance(lanes, Lanes):
        return s.calls.results(lanes, [values], lambda own, out: s.calls.move_matrices(form, own[0], out), (4, u32))  # type: ignore[no-any-return]
    return moved_arrays(*form, [np.ascontiguousarray(np.broadcast_to(value, lanes.shape)) for value in values])


def reads_of(operand: Operand, count: int) -> list[Callable[[State, Rows], Any]]:
    return [write_source(operand, n) for n in range(count)]


def _fragment(instruction: Instruction, values: Sequence[Any], shape: tuple[int, ...]) -> list[Any]:
    """Return registers of 32 bits as those of a fragment: pairs for f64."""
    full = [np.broadcast_to(value, shape) for value in values]
    if instruction.total != "f64":
        return full
    return [low.astype(u64) | high.astype(u64) << u64(32) for low, high in zip(full[::2], full[1::2], strict=True)]


def multiply(op: Decoded) -> Execute:
    instruction = instruction_of(op)
    if len(op.operands) != 4 or any(one.negative for one in op.operands):
        raise UnsupportedInstruction(str(op))
    words = 2 if instruction.total == "f64" else 1
    counts_of = [words * getattr(type, "lanes", 1) for type in instruction.types]
    to, *sources = op.operands
    reads = [reads_of(operand, count) for operand, count in zip(sources, counts_of, strict=True)]
    writes = [write_register(n, False) for n in registers_of(to, counts_of[2])]

    def execute(s: Any, r: Rows, lanes: Any, counts: Counts) -> None:
        need_all_lanes(op, s, lanes)
        fragments = [_fragment(instruction, [read(s, r) for read in own], lanes.shape) for own in reads]
        if isinstance(lanes, Lanes):
            results = len(fragments[2]), u64 if instruction.total == "f64" else u32
            d = s.calls.results(lanes, fragments, lambda own, out: s.calls.multiply(op, *own, out), results)
        else:
            d = multiply_add(instruction, counts.device.compute_capability, *fragments)
        if instruction.total == "f64":
            d = tuple(half for word in d for half in (word.astype(u32), (word >> u64(32)).astype(u32)))
        for write, value in zip(writes, d, strict=True):
            write(s, r, lanes, value)

    return execute


def _form(op: Decoded) -> tuple[bool, int]:
    """Return whether the matrices are transposed, and their number."""
    match = re.fullmatch(r"16\.M(T?)88(?:\.([124]))?", ".".join(op.modifiers))
    if match is None:
        raise UnsupportedInstruction(f"no row of the opcode table is for {op}")
    return bool(match[1]), int(match[2] or 1)


def _rows(s: State, r: Rows, op: Decoded, address: Any, lanes: Any, count: int, counts: Counts, kind: str) -> Any:
    """Return the bytes of shared memory of the rows, and the lanes that give rows; count their access."""
    giving = lanes & ((s.threads_of(r) & (WARP_SIZE - 1)) < 8 * count)
    index = checked_index(op, SHARED, s, r, giving, address, ROW_BYTES)
    counts.add_access(op, "shared", kind, address, giving, ROW_BYTES)
    return index, giving


def load(op: Decoded) -> Execute:
    """LDSM: lane 8 i + j gives the address of row j of matrix i."""
    transposed, count = _form(op)
    to, operand = op.operands
    writes = [write_register(n, False) for n in registers_of(to, count)]
    address = addresses(operand, SHARED)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        need_all_lanes(op, s, lanes)
        index, _ = _rows(s, r, op, address(s, r, lanes), lanes, count, counts, "load")
        words = read_words(SHARED.contents(s), index, ROW_BYTES, False)
        for write, value in zip(writes, moved(s, lanes, ("load", transposed), words), strict=False):
            write(s, r, lanes, value)

    return execute


def store(op: Decoded) -> Execute:
    """STSM: the inverse of LDSM."""
    transposed, count = _form(op)
    operand, source = op.operands
    reads, address = reads_of(source, count), addresses(operand, SHARED)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        need_all_lanes(op, s, lanes)
        words = moved(s, lanes, ("store", transposed), [read(s, r) for read in reads])
        index, giving = _rows(s, r, op, address(s, r, lanes), lanes, count, counts, "store")
        write_words(SHARED.contents(s), index, giving, ROW_BYTES, words)

    return execute


def move(op: Decoded) -> Execute:
    """MOVM: transpose a matrix in registers."""
    transposed, _ = _form(op)
    to, source = op.operands
    (read,), write = reads_of(source, 1), write_register(to.number, False)

    def execute(s: State, r: Rows, lanes: Any, counts: Counts) -> None:
        need_all_lanes(op, s, lanes)
        write(s, r, lanes, moved(s, lanes, ("move", transposed), [read(s, r)])[0])

    return execute


MATRICES: Mapping[str, Callable[[Decoded], Execute]] = {
    **dict.fromkeys(("HMMA", "IMMA", "DMMA"), multiply), "LDSM": load, "STSM": store, "MOVM": move,
}  # fmt: skip
"""By opcode."""
