"""Ways that no lane of a launch goes: branches on what its constants say, the size of its blocks, its grid and its numbers.

A loop whose step is such a number is compiled twice, for steps that rise and for others: the launch decides which of them turns.
Constants lie in bank 0 of constant memory. Where is told by the instruction that takes the stack's address from there.
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
_NOT_WHOLE = {"HI", "WIDE", "X", "EX", "U64"}
"""Modifiers of instructions that work on parts of longer numbers."""


@dataclass(frozen=True)
class BankLayout:
    """Offsets in the bank: of the block's size, of the grid's, of the kernel's parameters."""

    block: int
    grid: int
    parameters: int

    @staticmethod
    def of(instructions: Sequence[Instruction]) -> BankLayout | None:
        """By where a kernel finds its stack, and by which instruction: from compute capability 7.0 on, 9.0 on, 10.0 on."""
        for one in instructions:
            if re.search(r" R1, (?:RZ, RZ, )?c\[0x0\]\[0x28\]$", one.text):
                return BankLayout(0x0, 0xC, 0x210 if one.opcode == "LDC" else 0x160)
            if one.text.endswith(" R1, c[0x0][0x37c]"):
                return BankLayout(0x360, 0x370, 0x380)
        return None

    def bank(
        self, block: Sequence[int], grid: Sequence[int], parameters: Iterable[np.generic | None]
    ) -> dict[int, int]:
        """By offset the bytes that are known. parameters: None for a pointer."""
        found = dict[int, int]()
        for at, sizes in ((self.block, block), (self.grid, grid)):
            found |= enumerate(np.array(sizes, "<i4").tobytes(), at)
        at = self.parameters
        for value in parameters:
            size = 8 if value is None else value.dtype.itemsize
            aligned = 8 if value is None else value.dtype.alignment
            at += -at % aligned
            if value is not None:
                found |= enumerate(value.tobytes(), at)
            at += size
        return found


class ConstantPropagation:
    """Registers and predicates of a kernel whose values follow from its constants. bank: their bytes, by offset."""

    def __init__(self, graph: Graph, bank: Mapping[int, int]) -> None:
        self.graph, self._bank = graph, bank
        self._uniform = Uniformity(graph)
        self._known: dict[tuple[int, str], int | None] = {}

    @property
    def never(self) -> frozenset[tuple[int, int]]:
        """Ways from a block to another that are not gone."""
        found = set()
        for block in self._uniform.branches:
            past = self.graph.blocks[block][1]
            last = self.graph.instructions[past - 1]
            names = [last.predicate.lstrip("@"), *(one for one in operands_of(last)[0] if "P" in one)]
            held = [self._value(past - 1, name) for name in names if name]
            if None in held:
                continue
            jump = next(edge.target for edge in self.graph.edges if edge.source == block and edge.kind == "jump")
            found |= {(block, to) for to in self.graph.successors[block] if (to == jump) != all(held)}
        return frozenset(found)

    def _value(self, at: int, operand: str) -> int | None:
        """Of an operand that an instruction reads, in 32 bits; of a predicate 0 or 1."""
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
        """A number of the bank."""
        first = 0 if offset == "RZ" else int(offset, 16)
        each = [self._bank.get(at) for at in range(first, first + size)]
        known = [one for one in each if one is not None]
        return int.from_bytes(bytes(known), "little") if len(known) == size else None

    def _result(self, n: int, name: str) -> int | None:
        """What an instruction writes to a register or predicate; None where that is not known."""
        if (n, name) not in self._known:
            self._known[n, name] = None  # what hangs on itself is not known
            one = self.graph.instructions[n] if n >= 0 else None
            if one is not None and not one.predicate:
                self._known[n, name] = self._computed(n, one, name)
        return self._known[n, name]

    def _computed(self, n: int, one: Instruction, name: str) -> int | None:
        operands, written = operands_of(one)
        parts = set(one.operation.split(".")[1:])
        if one.opcode in _LOADS:
            return self._loaded(operands, parts, name)
        if _NOT_WHOLE & parts or (one.opcode not in _COMPARISONS and name != operands[0]):
            return None
        values = [self._value(n, each) for each in operands[written:]]
        known = [value for value in values if value is not None]
        return _made(one, known, name == operands[0]) if len(known) == len(values) else None

    def _loaded(self, operands: Sequence[str], parts: set[str], name: str) -> int | None:
        """A number that an instruction takes from the bank, or its higher half."""
        bank = _BANK.match(operands[1])
        size = next((_SIZES[part] for part in parts if part in _SIZES), 4)
        value = self._read(bank[2], size) if bank is not None else None
        if value is None:
            return None
        if size < 4 and parts & {"S8", "S16"} and value >> (8 * size - 1):
            value -= 1 << 8 * size
        return (value >> (32 if name != operands[0] else 0)) & _MASK


def _made(one: Instruction, values: Sequence[int], first: bool) -> int | None:
    """What an instruction makes of known numbers. first: of the two predicates of a comparison which."""
    parts = one.operation.split(".")
    if one.opcode in _MOVES:
        return values[0]
    if one.opcode in _SUMS:
        return sum(values[:3]) & _MASK
    if one.opcode in _PRODUCTS and len(values) == 3:
        return (values[0] * values[1] + values[2]) & _MASK
    if one.opcode in _COMPARISONS:
        a, b = values[:2] if "U32" in parts else map(_signed, values[:2])
        held = _COMPARED[parts[1]](a, b) == first
        other = bool(values[2])
        return int(held or other if "OR" in parts else held != other if "XOR" in parts else held and other)
    if one.opcode in _TABLES:
        row = 4 * values[0] + 2 * values[1] + values[2]
        return values[3] >> row & 1
    return None


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
