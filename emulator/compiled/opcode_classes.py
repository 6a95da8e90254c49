"""Tables from SASS opcodes to the effects and operations of the source."""

from __future__ import annotations

import math
import re
from functools import cache

from ..engines.cuda.sass import Instruction

EFFECTS = {
    "LDG": "global_load", "LDGSTS": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store",
    "ATOMG": "global_atomic", "ATOM": "global_atomic", "RED": "global_reduction", "REDG": "global_reduction",
    "LDS": "shared_load", "STS": "shared_store", "ATOMS": "shared_atomic", "LDL": "local_load", "STL": "local_store",
    "SHFL": "shuffle", "VOTE": "vote", "MATCH": "vote", "REDUX": "vote", "BAR": "barrier", "MEMBAR": "fence",
}  # fmt: skip
"""Site kind (`profiler.events`) by opcode."""
CONVERGENT_KINDS = frozenset({"shuffle", "vote", "barrier"})
"""Site kinds that the lanes of a warp execute together."""
OPERATIONS = {
    "FADD": "fp32", "FMUL": "fp32", "FFMA": "fp32", "DADD": "fp64", "DMUL": "fp64", "DFMA": "fp64", "FCHK": "fdiv",
    "MUFU": "sfu",
}  # fmt: skip
"""Issue class by opcode. Only opcodes with one operation each; at lines with a division the compiler emits more of them."""
EXPANDED = frozenset({"fdiv", "idiv", "sfu", "convert"})
"""Issue classes of operations that the compiler may expand into several instructions."""

CONTROL = ("BRA", "BSSY", "BSYNC", "EXIT", "CALL", "RET", "NOP", "PLOP3", "WARPSYNC", "BREAK", "YIELD")
"""Control-flow instructions without a statement of their own."""


_TYPE = re.compile(r"[USF]?(16|32|64|128)|[US](8)|B?F(16|32)x(\d)")
"""Type suffix of a memory instruction: bits of an integer or a float, or of several packed floats."""


def is_indexed_constant_load(instruction: Instruction) -> bool:
    """Return whether an instruction loads constant memory at an address in a register."""
    return instruction.opcode == "LDC" and bool(re.search(r"\[R\d", instruction.text))


def access_width(instruction: Instruction) -> int:
    """Return the bytes per lane of a memory instruction: the size of its type suffix, 4 without one."""
    return _operation_bytes(instruction.operation)


@cache
def _operation_bytes(operation: str) -> int:
    match = next(filter(None, map(_TYPE.fullmatch, operation.split(".")[1:])), None)
    if match is None:
        return 4
    bits, bits_8, lane_bits, packed = match.groups()
    return int(bits or bits_8 or lane_bits) * int(packed or 1) // 8


def is_elidable(kind: str) -> bool:
    """Return whether the compiler may drop effects of a kind: loads of known values, and accesses to local arrays in
    registers."""
    return kind.endswith("load") or kind.startswith("local")


def phases_of(kind: str, width: int, lanes: float) -> int:
    """Return the least wavefronts of a shared-memory access of `width` bytes per lane."""
    return min(max(width // (8 if kind == "shared_load" else 4), 1), math.ceil(lanes))
