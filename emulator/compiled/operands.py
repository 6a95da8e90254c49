"""Operands of SASS instructions: written and read registers."""

from __future__ import annotations

import re

from ..engines.cuda.sass import Instruction

_NUMBERED = re.compile(r"\b(U?R|U?P)(\d+)\b")
_PREDICATE = re.compile(r"!?U?P[T\d]")
_PAIRS = ("CS2R", "DADD", "DMUL", "DFMA")
_NO_RESULT = (
    "ST", "STG", "STS", "STL", "RED", "REDG", "BRA", "EXIT", "BAR", "BSSY", "BSYNC", "RET", "NOP", "WARPSYNC", "BREAK", "YIELD",
    "MEMBAR", "ERRBAR", "CCTL", "DEPBAR", "LDGDEPBAR", "LDGSTS", "KILL", "BPT", "NANOSLEEP",
)  # fmt: skip


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
