"""Accesses of SASS opcodes: kind, width, phases."""

import math
import re
from functools import cache
from typing import NamedTuple

from ..engines.cuda.sass import Instruction
from ..sass.bulk_copy import UNIT

EFFECTS = {
    "LDG": "global_load", "LDGSTS": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store",
    "ATOMG": "global_atomic", "ATOM": "global_atomic", "RED": "global_reduction", "REDG": "global_reduction",
    "LDS": "shared_load", "LDSM": "shared_load", "STS": "shared_store", "STSM": "shared_store", "ATOMS": "shared_atomic",
    "LDL": "local_load", "STL": "local_store",
    "SHFL": "shuffle", "VOTE": "vote", "MATCH": "vote", "REDUX": "vote", "BAR": "barrier", "MEMBAR": "fence",
}  # fmt: skip
"""Site kind (`profiler.events`) by opcode."""

BULK_COPIES = ("UBLKCP", "UTMALDG", "UTMASTG")
"""Copies between global and shared memory by one thread."""
_TYPE = re.compile(r"[USF]?(16|32|64|128)|[US](8)|B?F(16|32)x(\d)")
"""Type suffix of a memory instruction: bits of an integer or a float, or of several packed floats."""

_FLOATS = {"F32", "F64", "F16x2", "BF16x2"}


def is_indexed_constant_load(instruction: Instruction) -> bool:
    """Return whether an instruction loads constant memory at an address in a register."""
    return instruction.opcode == "LDC" and bool(re.search(r"\[R\d", instruction.text))


class Access(NamedTuple):
    """An access of an instruction. kind: as in EFFECTS, or "constant_load" at an address in a register, "bulk_load", "bulk_store"; empty
    for other instructions. size: bytes of a lane, or of a unit of a bulk copy. adds_floats: whether it is an atomic addition of floats."""

    kind: str
    size: int
    adds_floats: bool


def access_of(instruction: Instruction) -> Access:
    """Return the access of an instruction."""
    kind = "constant_load" if is_indexed_constant_load(instruction) else EFFECTS.get(instruction.opcode, "")
    if instruction.opcode in BULK_COPIES:
        loads = instruction.opcode == "UTMALDG" or instruction.operation == "UBLKCP.S.G"
        return Access("bulk_load" if loads else "bulk_store", UNIT, False)
    modifiers = instruction.operation.split(".")
    adds_floats = kind in ("global_atomic", "global_reduction") and "ADD" in modifiers and bool(_FLOATS & {*modifiers})
    return Access(kind, access_width(instruction), adds_floats)


def access_width(instruction: Instruction) -> int:
    """Return the bytes per lane of a memory instruction: the size of its type suffix, 4 without one or of each matrix."""
    return _operation_bytes(instruction.operation)


@cache
def _operation_bytes(operation: str) -> int:
    if matrices := re.fullmatch(r"(?:LD|ST)SM\.16\.MT?88(?:\.([24]))?", operation):
        return 4 * int(matrices[1] or 1)
    match = next(filter(None, map(_TYPE.fullmatch, operation.split(".")[1:])), None)
    if match is None:
        return 4
    bits, bits_8, lane_bits, packed = match.groups()
    return int(bits or bits_8 or lane_bits) * int(packed or 1) // 8


def phases_of(kind: str, width: int, lanes: float) -> int:
    """Return the least wavefronts of a shared-memory access of `width` bytes per lane."""
    return min(max(width // (8 if kind == "shared_load" else 4), 1), math.ceil(lanes))
