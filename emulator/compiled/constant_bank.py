"""Constant propagation from a launch's constants: edges that no lane follows, given block size, grid and kernel arguments.

nvcc compiles a loop with a variable step twice, for positive and other steps; the arguments select one. Constants are
in bank 0 of constant memory; the instruction that loads the stack pointer reveals the layout.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..engines.cuda.sass import Instruction
from .control_flow import Graph
from .uniformity import Uniformity, operands_of

_MASK = 0xFFFFFFFF
_BANK = re.compile(r"(-?)c\[0x0\]\[(RZ|0x[0-9a-f]+)\]$")
_NUMBER = re.compile(r"-?0x[0-9a-f]+$")
_SIZES = {"64": 8, "U8": 1, "S8": 1, "U16": 2, "S16": 2}
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
}
_LOADS, _MOVES = ("LDC", "ULDC", "LDCU"), ("MOV", "UMOV", "R2UR")
_SUMS, _PRODUCTS = ("IADD3", "UIADD3", "VIADD"), ("IMAD", "UIMAD")
_TABLES, _COMPARISONS = ("PLOP3", "UPLOP3"), ("ISETP", "UISETP")
_PARTIAL_MODIFIERS = {"HI", "WIDE", "X", "EX", "U64"}
"""Modifiers of instructions on halves of wider numbers."""


@dataclass(frozen=True)
class BankLayout:
    """Offsets in bank 0: block size, grid size, kernel parameters."""

    block: int
    grid: int
    parameters: int

    @staticmethod
    def detect(instructions: Sequence[Instruction]) -> BankLayout | None:
        """Return the layout by the load of the stack pointer: compute capability 7.0, 9.0 or 10.0 and higher."""
        for instruction in instructions:
            if re.search(r" R1, (?:RZ, RZ, )?c\[0x0\]\[0x28\]$", instruction.text):
                return BankLayout(0x0, 0xC, 0x210 if instruction.opcode == "LDC" else 0x160)
            if instruction.text.endswith(" R1, c[0x0][0x37c]"):
                return BankLayout(0x360, 0x370, 0x380)
        return None

    def bank(
        self, block: Sequence[int], grid: Sequence[int], parameters: Iterable[np.generic | None]
    ) -> dict[int, int]:
        """Return known bytes by offset. parameters: None for a pointer."""
        bank_bytes = dict[int, int]()
        for offset, sizes in ((self.block, block), (self.grid, grid)):
            bank_bytes |= enumerate(np.array(sizes, "<i4").tobytes(), offset)
        offset = self.parameters
        for value in parameters:
            size = 8 if value is None else value.dtype.itemsize
            alignment = 8 if value is None else value.dtype.alignment
            offset += -offset % alignment
            if value is not None:
                bank_bytes |= enumerate(value.tobytes(), offset)
            offset += size
        return bank_bytes


class ConstantPropagation:
    """Registers and predicates with constant values. bank: bytes by offset."""

    def __init__(self, graph: Graph, bank: Mapping[int, int]) -> None:
        self.graph, self._bank = graph, bank
        self._uniform = Uniformity(graph)
        self._values: dict[tuple[int, str], int | None] = {}

    @property
    def unreachable_edges(self) -> frozenset[tuple[int, int]]:
        """Edges (source, target) that no lane follows."""
        result = set()
        for block in self._uniform.branches:
            past = self.graph.blocks[block][1]
            last = self.graph.instructions[past - 1]
            names = [last.predicate.lstrip("@"), *(one for one in operands_of(last)[0] if "P" in one)]
            values = [self._value(past - 1, name) for name in names if name]
            if None in values:
                continue
            jump = next(edge.target for edge in self.graph.edges if edge.source == block and edge.kind == "jump")
            result |= {(block, to) for to in self.graph.successors[block] if (to == jump) != all(values)}
        return frozenset(result)

    def _value(self, at: int, operand: str) -> int | None:
        """Return the 32-bit value of an operand (0 or 1 for a predicate), or None."""
        name = operand.removesuffix(".reuse").strip("-~!")
        if name in ("RZ", "URZ"):
            value: int | None = 0
        elif name in ("PT", "UPT"):
            value = 1
        elif _NUMBER.match(name):
            value = int(name, 16)
        elif bank := _BANK.match(name):
            value = self._read(bank[2], 4)
        else:
            writers = self._uniform.writers(at, name) if re.fullmatch(r"U?[RP]\d+", name) else set()
            value = self._result(writers.pop(), name) if len(writers) == 1 else None
        if value is None:
            return None
        if operand.startswith("!"):
            return int(not value)
        return (-value if operand.startswith("-") else ~value if operand.startswith("~") else value) & _MASK

    def _read(self, offset: str, size: int) -> int | None:
        """Return a number of the bank, or None."""
        first = 0 if offset == "RZ" else int(offset, 16)
        bank_bytes = [self._bank.get(at) for at in range(first, first + size)]
        available = [one for one in bank_bytes if one is not None]
        return int.from_bytes(bytes(available), "little") if len(available) == size else None

    def _result(self, n: int, name: str) -> int | None:
        """Return the value written to a register by an instruction, or None."""
        if (n, name) not in self._values:
            self._values[n, name] = None  # cyclic definitions have no value
            instruction = self.graph.instructions[n] if n >= 0 else None
            if instruction is not None and not instruction.predicate:
                self._values[n, name] = self._computed(n, instruction, name)
        return self._values[n, name]

    def _computed(self, n: int, instruction: Instruction, name: str) -> int | None:
        operands, written = operands_of(instruction)
        modifiers = set(instruction.operation.split(".")[1:])
        if instruction.opcode in _LOADS:
            return self._loaded(operands, modifiers, name)
        if _PARTIAL_MODIFIERS & modifiers or (instruction.opcode not in _COMPARISONS and name != operands[0]):
            return None
        values = [self._value(n, each) for each in operands[written:]]
        available = [value for value in values if value is not None]
        return _evaluate(instruction, available, name == operands[0]) if len(available) == len(values) else None

    def _loaded(self, operands: Sequence[str], modifiers: set[str], name: str) -> int | None:
        """Return a number loaded from the bank, or its high half."""
        bank = _BANK.match(operands[1])
        size = next((_SIZES[part] for part in modifiers if part in _SIZES), 4)
        value = self._read(bank[2], size) if bank is not None else None
        if value is None:
            return None
        if size < 4 and modifiers & {"S8", "S16"} and value >> (8 * size - 1):
            value -= 1 << 8 * size
        return (value >> (32 if name != operands[0] else 0)) & _MASK


def _evaluate(instruction: Instruction, values: Sequence[int], first: bool) -> int | None:
    """Return the result of an instruction on known operands. first: which of a comparison's two predicates."""
    modifiers = instruction.operation.split(".")
    if instruction.opcode in _MOVES:
        return values[0]
    if instruction.opcode in _SUMS:
        return sum(values[:3]) & _MASK
    if instruction.opcode in _PRODUCTS and len(values) == 3:
        return (values[0] * values[1] + values[2]) & _MASK
    if instruction.opcode in _COMPARISONS:
        a, b = values[:2] if "U32" in modifiers else map(_signed, values[:2])
        holds = _COMPARED[modifiers[1]](a, b) == first
        other = bool(values[2])
        return int(holds or other if "OR" in modifiers else holds != other if "XOR" in modifiers else holds and other)
    if instruction.opcode in _TABLES:
        row = 4 * values[0] + 2 * values[1] + values[2]
        return values[3] >> row & 1
    return None


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
