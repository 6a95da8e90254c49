"""Which SASS instructions stand for one effect or operation of the source each."""

from __future__ import annotations

from ..engines.cuda.sass import Instruction

EFFECTS = {
    "LDG": "global_load", "LDGSTS": "global_load", "LD": "global_load", "STG": "global_store", "ST": "global_store",
    "ATOMG": "global_atomic", "ATOM": "global_atomic", "RED": "global_reduction", "REDG": "global_reduction",
    "LDS": "shared_load", "STS": "shared_store", "ATOMS": "shared_atomic", "LDL": "local_load", "STL": "local_store",
    "SHFL": "shuffle", "VOTE": "vote", "MATCH": "vote", "REDUX": "vote", "BAR": "barrier", "MEMBAR": "fence",
}  # fmt: skip
"""The kind of site (`profiler.events`) by opcode."""
OPERATIONS = {
    "FADD": "fp32", "FMUL": "fp32", "FFMA": "fp32", "DADD": "fp64", "DMUL": "fp64", "DFMA": "fp64", "FCHK": "fdiv",
    "MUFU": "sfu",
}  # fmt: skip
"""The issue class by opcode, of those that stand for one operation on lines where no division brings others of the name."""
EXPANDED = frozenset({"fdiv", "idiv", "sfu", "convert"})
"""Issue classes of operations for which a compiler may write several others."""

CONTROL = ("BRA", "BSSY", "BSYNC", "EXIT", "CALL", "RET", "NOP", "PLOP3", "WARPSYNC", "BREAK", "YIELD")
"""Instructions that no statement asked for."""


def width_of(instruction: Instruction) -> int:
    """Bytes a lane that an access moves."""
    sizes = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
    return next((size for name, size in sizes.items() if name in instruction.operation.split(".")), 4)
