"""Uniform branches: branches whose conditions depend on constants only, equal for all threads of a launch.

Kernel parameters and block size are in constant memory. A register is uniform if its only reaching definition computes
it from constants, literals and uniform registers.
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
_FOLDABLE = (
    "LDC", "ULDC", "LDCU", "MOV", "UMOV", "IMAD", "UIMAD", "IADD3", "UIADD3", "VIADD", "ISETP", "UISETP", "LOP3", "ULOP3", "PLOP3",
    "UPLOP3", "SHF", "USHF", "LEA", "ULEA", "SEL", "USEL", "IABS", "VIMNMX", "VIADDMNMX", "CS2R", "HFMA2", "R2UR", "PRMT", "FSETP", "FADD",
    "FMUL", "FFMA",
)  # fmt: skip
"""Opcodes with results that depend on their operands only."""


class Uniformity:
    """Uniform branches of a graph. branches: blocks with a uniform branch at their end."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._uniform_results: dict[int, bool] = {}
        self._predecessors: dict[int, set[int]] = defaultdict(set)
        for edge in graph.edges:  # callees start without known definitions
            self._predecessors[edge.target].add(-1 if edge.kind == "call" else edge.source)
        self._predecessors[0].add(-1)
        self._writes = [writes(one) for one in graph.instructions]
        for edge in graph.edges:
            if edge.kind == "call":
                last = graph.blocks[edge.source][1] - 1
                self._writes[last] = self._writes[last] | self._callee(edge.target)

    @cached_property
    def branches(self) -> frozenset[int]:
        result = set()
        for block, (_, past) in enumerate(self.graph.blocks):
            last = self.graph.instructions[past - 1]
            if last.opcode == "BRA" and len(self.graph.successors[block]) == 2 and is_conditional(last):
                names = _REGISTER.findall(last.predicate + " " + " ".join(last.text.split()[1:]))
                if names and all(self._is_uniform(past - 1, name) for name in names):
                    result.add(block)
        return frozenset(result)

    def _callee(self, start: int) -> frozenset[str]:
        """Return the registers written by a callee."""
        visited, worklist = {start}, [start]
        while worklist:
            successors = set(self.graph.successors[worklist.pop()]) - visited
            visited |= successors
            worklist += successors
        return frozenset().union(*(self._writes[n] for block in visited for n in range(*self.graph.blocks[block])))

    def _is_uniform(self, at: int, name: str) -> bool:
        """Return whether a register is uniform at an instruction."""
        writers = self.writers(at, name)
        return len(writers) == 1 and -1 not in writers and self._has_uniform_result(writers.pop())

    def _has_uniform_result(self, n: int) -> bool:
        """Return whether an instruction's result is uniform."""
        if n not in self._uniform_results:
            self._uniform_results[n] = False  # cyclic definitions are not uniform
            instruction = self.graph.instructions[n]
            if instruction.opcode in _FOLDABLE and not instruction.predicate and "SR_" not in instruction.text:
                self._uniform_results[n] = all(self._is_uniform(n, name) for name in reads(instruction))
        return self._uniform_results[n]

    def writers(self, at: int, name: str) -> set[int]:
        """Return the reaching definitions of a register before an instruction; -1 for an unknown one."""
        result, visited = set[int](), set[int]()
        block = next(b for b, (first, past) in enumerate(self.graph.blocks) if first <= at < past)
        worklist = [(block, at)]
        while worklist:
            block, stop = worklist.pop()
            first, _ = self.graph.blocks[block]
            writer = next((n for n in range(stop - 1, first - 1, -1) if name in self._writes[n]), None)
            if writer is not None:
                result.add(writer)
                continue
            if -1 in self._predecessors[block]:
                return {-1}
            for predecessor in self._predecessors[block]:
                if predecessor not in visited:
                    visited.add(predecessor)
                    worklist.append((predecessor, self.graph.blocks[predecessor][1]))
        return result


def operands_of(instruction: Instruction) -> tuple[list[str], int]:
    """Return the operands of an instruction, and the number of leading result operands."""
    text = instruction.text.removeprefix(instruction.predicate).strip().partition(" ")[2]
    operands = [
        operand.strip() for operand in re.sub(r"\[[^\]]*\]", lambda match: match[0].replace(",", ";"), text).split(",")
    ]
    if instruction.opcode in _NO_RESULT or not operands[0]:
        return operands, 0
    written = 1
    while written < len(operands) and _PREDICATE.fullmatch(operands[written]):
        written += 1
    if (_PREDICATE.fullmatch(operands[0]) and "SETP" in instruction.opcode) or (
        _PREDICATE.fullmatch(operands[0]) and instruction.opcode in ("PLOP3", "UPLOP3")
    ):
        written = 2
    elif _PREDICATE.fullmatch(operands[0]):
        written += 1
    return operands, written


def writes(instruction: Instruction) -> frozenset[str]:
    """Return the registers written by an instruction."""
    operands, written = operands_of(instruction)
    modifiers = instruction.operation.split(".")
    wide = 4 if "128" in modifiers else 2 if {"64", "WIDE"} & set(modifiers) or instruction.opcode in _PAIRS else 1
    registers = set[str]()
    for kind, number in (_NUMBERED.findall(operand)[0] for operand in operands[:written] if _NUMBERED.search(operand)):
        registers |= {f"{kind}{int(number) + n}" for n in range(wide if "R" in kind else 1)}
    return frozenset(registers)


def reads(instruction: Instruction) -> list[str]:
    """Return the registers read by an instruction."""
    operands, written = operands_of(instruction)
    return [name for operand in operands[written:] for name in _REGISTER.findall(operand)]
