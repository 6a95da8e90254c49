"""Loads of the compiler's own: coefficients of mathematical functions, which lie in tables of the module."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from ..engines.cuda.sass import Instruction
from .alignment import address_of
from .instruction_counts import InstructionCount
from .source_statements import Place
from .uniformity import reads, writes

_MODULE = "c[0x4]"
"""The constants that hold the addresses of a module's variables. Kernels have no variables there: their constant arrays lie elsewhere."""
_REGISTER = re.compile(r"R\d+")
_DEEP = 8
"""Instructions that make an address of such a constant, one after the other, at most."""


def coefficient_loads(instructions: Sequence[Instruction]) -> frozenset[int]:
    """Which instructions, by number, load from tables."""
    written: dict[str, list[int]] = {}
    for n, one in enumerate(instructions):
        for name in writes(one):
            written.setdefault(name, []).append(n)

    def of_module(register: str, before: int, deep: int) -> bool:
        """Whether the address in a register is made of a constant of the module: by what wrote it last, in the order of the code."""
        earlier = [n for n in written.get(register, ()) if n < before]
        if not earlier or not deep:
            return False
        one = instructions[earlier[-1]]
        if one.opcode.startswith(("LD", "ATOM")) and one.opcode != "LDC":
            return False
        return _MODULE in one.text or any(of_module(name, earlier[-1], deep - 1) for name in reads(one))

    loads = ((n, _REGISTER.match(address_of(one.text)[0])) for n, one in enumerate(instructions) if one.opcode == "LDG")
    return frozenset(n for n, found in loads if found is not None and of_module(found[0], n, _DEEP))


def table_traffic(instructions: Sequence[InstructionCount]) -> Mapping[Place, tuple[float, float]]:
    """Requests and sectors of loads from tables, by place. What is loaded lies in one sector of a row, the sine's coefficients or the
    cosine's; each lane needs one of two rows, as likely as the other."""
    found: dict[Place, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for one in instructions:
        if one.table and one.warps:
            requests, sectors = found[one.place]
            found[one.place] = requests + one.warps, sectors + one.warps * (2 - 2 ** (1 - one.threads / one.warps))
    return found
