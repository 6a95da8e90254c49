"""Which SASS instructions stand for one effect or operation of the source each."""

from __future__ import annotations

import re
from functools import cache

from ..engines.cuda.sass import Instruction

EFFECTS = {
    "LDG": "global_load", "LDGSTS": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store",
    "ATOMG": "global_atomic", "ATOM": "global_atomic", "RED": "global_reduction", "REDG": "global_reduction",
    "LDS": "shared_load", "STS": "shared_store", "ATOMS": "shared_atomic", "LDL": "local_load", "STL": "local_store",
    "SHFL": "shuffle", "VOTE": "vote", "MATCH": "vote", "REDUX": "vote", "BAR": "barrier", "MEMBAR": "fence",
}  # fmt: skip
"""The kind of site (`profiler.events`) by opcode."""
MEETING = frozenset({"shuffle", "vote", "barrier"})
"""Kinds of sites that lanes of a warp execute together."""
OPERATIONS = {
    "FADD": "fp32", "FMUL": "fp32", "FFMA": "fp32", "DADD": "fp64", "DMUL": "fp64", "DFMA": "fp64", "FCHK": "fdiv",
    "MUFU": "sfu",
}  # fmt: skip
"""The issue class by opcode, of those that stand for one operation on lines where no division brings others of the name."""
EXPANDED = frozenset({"fdiv", "idiv", "sfu", "convert"})
"""Issue classes of operations for which a compiler may write several others."""

CONTROL = ("BRA", "BSSY", "BSYNC", "EXIT", "CALL", "RET", "NOP", "PLOP3", "WARPSYNC", "BREAK", "YIELD")
"""Instructions that no statement asked for."""


_TYPE = re.compile(r"[USF]?(16|32|64|128)|[US](8)|B?F(16|32)x(\d)")
"""How nvdisasm writes the type of what an access moves: bits of integers or floats, or of several of these side by side."""


def indexed(instruction: Instruction) -> bool:
    """Whether an instruction loads from constant memory at an address that a register holds."""
    return instruction.opcode == "LDC" and bool(re.search(r"\[R\d", instruction.text))


def width_of(instruction: Instruction) -> int:
    """Bytes a lane that an access moves: those of the type that is written, else 4."""
    return _bytes(instruction.operation)


@cache
def _bytes(operation: str) -> int:
    found = next(filter(None, map(_TYPE.fullmatch, operation.split(".")[1:])), None)
    if found is None:
        return 4
    alone, small, each, times = found.groups()
    return int(alone or small or each) * int(times or 1) // 8


def may_be_missing(kind: str) -> bool:
    """Whether a compiler may do without some effects of a kind: loads of what it has, and accesses of local arrays, parts of which it
    keeps in registers."""
    return kind.endswith("load") or kind.startswith("local")
