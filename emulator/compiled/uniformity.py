"""Branches of a compiled kernel that all threads of a launch take alike: what they test follows from constants alone.

The kernel's parameters and the size of its blocks lie in constant memory. A value is uniform where the one instruction that
can have written it works on constants, literals and uniform values.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property

from ..engines.cuda.sass import Instruction
from .control_flow import Graph, is_conditional

_REGISTER = re.compile(r"\b(U?R\d+|U?P\d)\b")
_NUMBERED = re.compile(r"\b(U?R|U?P)(\d+)\b")
_PREDICATE = re.compile(r"!?U?P[T\d]")
_PAIRS = ("CS2R", "DADD", "DMUL", "DFMA")
_NO_RESULT = (
    "ST", "STG", "STS", "STL", "RED", "REDG", "BRA", "EXIT", "BAR", "BSSY", "BSYNC", "RET", "NOP", "WARPSYNC", "BREAK", "YIELD",
    "MEMBAR", "ERRBAR", "CCTL", "DEPBAR", "LDGDEPBAR", "LDGSTS", "KILL", "BPT", "NANOSLEEP",
)  # fmt: skip
_OF_CONSTANTS = (
    "LDC", "ULDC", "LDCU", "MOV", "UMOV", "IMAD", "UIMAD", "IADD3", "UIADD3", "VIADD", "ISETP", "UISETP", "LOP3", "ULOP3", "PLOP3",
    "UPLOP3", "SHF", "USHF", "LEA", "ULEA", "SEL", "USEL", "IABS", "VIMNMX", "VIADDMNMX", "CS2R", "HFMA2", "R2UR", "PRMT", "FSETP", "FADD",
    "FMUL", "FFMA",
)  # fmt: skip
"""Instructions whose result follows from their operands, if they are constants."""


class Uniformity:
    """branches: blocks that end in such a branch."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._known: dict[int, bool] = {}
        self._before: dict[int, set[int]] = defaultdict(set)
        for edge in graph.edges:  # a caller is not followed: nothing is known at the beginning of a callee
            self._before[edge.target].add(-1 if edge.kind == "call" else edge.source)
        self._before[0].add(-1)
        self._writes = [writes(one) for one in graph.instructions]
        for edge in graph.edges:
            if edge.kind == "call":
                last = graph.blocks[edge.source][1] - 1
                self._writes[last] = self._writes[last] | self._callee(edge.target)

    @cached_property
    def branches(self) -> frozenset[int]:
        found = set()
        for block, (_, past) in enumerate(self.graph.blocks):
            last = self.graph.instructions[past - 1]
            if last.opcode == "BRA" and len(self.graph.successors[block]) == 2 and is_conditional(last):
                names = _REGISTER.findall(last.predicate + " " + " ".join(last.text.split()[1:]))
                if names and all(self._same(past - 1, name) for name in names):
                    found.add(block)
        return frozenset(found)

    def _callee(self, start: int) -> frozenset[str]:
        """What a callee writes."""
        reached, waiting = {start}, [start]
        while waiting:
            further = set(self.graph.successors[waiting.pop()]) - reached
            reached |= further
            waiting += further
        return frozenset().union(*(self._writes[n] for block in reached for n in range(*self.graph.blocks[block])))

    def _same(self, at: int, name: str) -> bool:
        """Whether a register that an instruction reads is uniform there."""
        writers = self.writers(at, name)
        return len(writers) == 1 and -1 not in writers and self._result(writers.pop())

    def _result(self, n: int) -> bool:
        """Whether an instruction writes what is uniform; not so for one that is not known."""
        if n not in self._known:
            self._known[n] = False  # what hangs on itself is not known to be
            one = self.graph.instructions[n]
            if one.opcode in _OF_CONSTANTS and not one.predicate and "SR_" not in one.text:
                self._known[n] = all(self._same(n, name) for name in reads(one))
        return self._known[n]

    def writers(self, at: int, name: str) -> set[int]:
        """The instructions that may have written a register before an instruction; -1 for none that is known."""
        found, seen = set[int](), set[int]()
        block = next(b for b, (first, past) in enumerate(self.graph.blocks) if first <= at < past)
        waiting = [(block, at)]
        while waiting:
            block, stop = waiting.pop()
            first, _ = self.graph.blocks[block]
            written = next((n for n in range(stop - 1, first - 1, -1) if name in self._writes[n]), None)
            if written is not None:
                found.add(written)
                continue
            if -1 in self._before[block]:
                return {-1}
            for one in self._before[block]:
                if one not in seen:
                    seen.add(one)
                    waiting.append((one, self.graph.blocks[one][1]))
        return found


def operands_of(one: Instruction) -> tuple[list[str], int]:
    """Operands, in order, and how many of the first ones are written: a register, and predicates before or behind it."""
    text = one.text.removeprefix(one.predicate).strip().partition(" ")[2]
    operands = [
        each.strip() for each in re.sub(r"\[[^\]]*\]", lambda found: found[0].replace(",", ";"), text).split(",")
    ]
    if one.opcode in _NO_RESULT or not operands[0]:
        return operands, 0
    written = 1
    while written < len(operands) and _PREDICATE.fullmatch(operands[written]):
        written += 1
    if (_PREDICATE.fullmatch(operands[0]) and "SETP" in one.opcode) or (
        _PREDICATE.fullmatch(operands[0]) and one.opcode in ("PLOP3", "UPLOP3")
    ):
        written = 2
    elif _PREDICATE.fullmatch(operands[0]):
        written += 1
    return operands, written


def writes(one: Instruction) -> frozenset[str]:
    """The registers that an instruction writes."""
    operands, written = operands_of(one)
    parts = one.operation.split(".")
    wide = 4 if "128" in parts else 2 if {"64", "WIDE"} & set(parts) or one.opcode in _PAIRS else 1
    found = set[str]()
    for kind, number in (_NUMBERED.findall(operand)[0] for operand in operands[:written] if _NUMBERED.search(operand)):
        found |= {f"{kind}{int(number) + n}" for n in range(wide if "R" in kind else 1)}
    return frozenset(found)


def reads(one: Instruction) -> list[str]:
    """The registers that an instruction reads."""
    operands, written = operands_of(one)
    return [name for operand in operands[written:] for name in _REGISTER.findall(operand)]
