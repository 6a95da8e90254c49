"""Operands of SASS instructions, parsed from nvdisasm's text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from ..engines.cuda.sass import Instruction
from ..errors import SimtbedError

_REGISTER = re.compile(r"(U?)R(\d+|Z)((?:\.\w+)*)$")
_PREDICATE = re.compile(r"(!?)(U?)P(\d|T)$")
_INTEGER = re.compile(r"-?0x[0-9a-f]+$")
_FLOAT = re.compile(r"[-+]?(\d.*|INF|Q?NAN|SNAN)$")
_CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(.*)\]$")
_MEMORY = re.compile(r"(?:desc\[UR\d+\])?\[([^\[\]]*)\]$")
_SCALES = {"X4": 4, "X8": 8, "X16": 16}


class UnsupportedInstruction(SimtbedError):
    """Raised for an instruction without a row in the opcode table."""


@dataclass(frozen=True)
class Register:
    """A general register. number: -1 for the zero register. wide: a pair, 64 bits. scale: of an index in an address."""

    number: int
    uniform: bool
    wide: bool = False
    scale: int = 1


@dataclass(frozen=True)
class Operand:
    """An operand.

    kind: "register", "predicate", "integer", "float", "constant", "memory", or "name" of anything else. number: of a
    register (-1: RZ) or a predicate (-1: PT); the value of an integer; the bank of a constant. selector: such as "H0_H0".
    registers, offset: the address of a constant or of memory. A float's bits are in the encoding of its instruction.
    """

    kind: str
    text: str
    number: int = -1
    uniform: bool = False
    negative: bool = False
    inverted: bool = False
    absolute: bool = False
    selector: str = ""
    registers: tuple[Register, ...] = ()
    offset: int = 0


@cache
def parse_operand(text: str) -> Operand:
    """Parse one operand. An unknown form has the kind "name"."""
    text = text.replace(".reuse", "").strip()
    if match := _PREDICATE.match(text):
        number = -1 if match[3] == "T" else int(match[3])
        return Operand("predicate", text, number, bool(match[2]), inverted=bool(match[1]))
    if _INTEGER.match(text):
        return Operand("integer", text, int(text, 16))
    if _FLOAT.match(text):
        return Operand("float", text)
    if match := _MEMORY.match(text):
        return Operand("memory", text, **_address(match[1], text))
    body = text.lstrip("-~")
    absolute, body = body.startswith("|"), body.replace("|", "")  # a selector follows the second bar
    negative, inverted = text.startswith("-"), text.startswith("~")
    if match := _REGISTER.match(body):
        number, selector = _number(match[2]), match[3].removeprefix(".")
        return Operand("register", text, number, bool(match[1]), negative, inverted, absolute, selector)
    if match := _CONSTANT.match(body):
        address = _address(match[2], text)
        return Operand("constant", text, int(match[1], 16), False, negative, inverted, absolute, "", **address)
    return Operand("name", text)


def _number(digits: str) -> int:
    return -1 if digits == "Z" else int(digits)


def _address(inner: str, text: str) -> dict[str, Any]:
    """Return the registers and the offset of an address such as "R2.64+UR4+0x10"."""
    registers, offset = [], 0
    for item in re.findall(r"[+-]?[^+-]+", inner.replace("+-", "-")):
        term = item.lstrip("+")
        if _INTEGER.match(term):
            offset += int(term, 16)
            continue
        match = _REGISTER.match(term)
        if match is None:
            raise UnsupportedInstruction(f"the address {text}")
        if match[2] != "Z":
            suffix = match[3].removeprefix(".")
            registers.append(Register(int(match[2]), bool(match[1]), suffix == "64", _SCALES.get(suffix, 1)))
    return {"registers": tuple(registers), "offset": offset}


def split_operands(text: str) -> Iterator[str]:
    """Yield the operands of an instruction's text, separated by commas outside of brackets."""
    depth, current = 0, ""
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            yield current.strip()
            current = ""
        else:
            current += letter
    if current.strip():
        yield current.strip()


@dataclass(frozen=True)
class Decoded:
    """An instruction with parsed operands. number: its index. immediate: bits 32 to 63 of its encoding."""

    instruction: Instruction
    number: int
    opcode: str
    modifiers: tuple[str, ...]
    guard: Operand | None
    operands: tuple[Operand, ...]
    immediate: int

    @property
    def offset(self) -> int:
        return self.instruction.offset

    @cached_property
    def flags(self) -> frozenset[str]:
        """Its modifiers as a set."""
        return frozenset(self.modifiers)

    def __str__(self) -> str:
        return f"{self.instruction.text} at {self.offset:#06x}"


def accept(op: Decoded, allowed: str) -> None:
    """Raise UnsupportedInstruction for a modifier other than the allowed ones."""
    if unknown := op.flags - set(allowed.split()):
        raise UnsupportedInstruction(f"the modifier {min(unknown)} of {op}")


def decode(number: int, instruction: Instruction) -> Decoded:
    """Parse an instruction. Raises UnsupportedInstruction for an unknown address form, or without its encoding."""
    text = re.sub(r"\(\*.*?\*\)", "", instruction.text.removeprefix(instruction.predicate)).strip()
    name, _, rest = text.partition(" ")
    opcode, *modifiers = name.split(".")
    if opcode == "BRX":
        rest = rest.replace(" ", ", ", 1)  # the number follows the register without comma
    if opcode == "RET":
        rest = rest.split(" ")[0]  # the register; a target follows without comma
    if instruction.encoding is None:
        raise UnsupportedInstruction(f"{instruction.text}: its encoding is not listed")
    guard = parse_operand(instruction.predicate[1:]) if instruction.predicate else None
    operands = tuple(map(parse_operand, split_operands(rest)))
    immediate = instruction.encoding >> 32 & 0xFFFFFFFF
    return Decoded(instruction, number, opcode, tuple(modifiers), guard, operands, immediate)
