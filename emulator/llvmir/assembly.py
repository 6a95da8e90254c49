"""Statements, registers and addresses of inline PTX. `ptx_table` has one row for each instruction."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..ir import nodes as ir
from ..language.types import BOOL, I8, I16, I32, I64, Scalar
from .accesses import Scope, regrouped
from .arithmetic import bitcast, cast, constant, operation, signed, unsigned
from .module import Instruction, Operand
from .pointers import Pointer
from .types import UnsupportedError
from .values import Item, truth

_STATEMENT = re.compile(r"(?:@(!?)([%$\w]+)\s+)?([a-z][\w.:]*(?:\s*\.\s*\w+)*)\s*(.*)", re.DOTALL)
_OPERAND = re.compile(r"\[[^\]]*\]|\{[^}]*\}|[^,\[\]{}]+")
_WAIT_LOOP = re.compile(
    r"(\S+):\s*mbarrier\.(t\w+_wait[^;]*;)\s*@(?:!\w+\s+bra(?:\.uni)?\s+\1\s*;"
    r"|\w+\s+bra(?:\.uni)?\s+(\S+)\s*;\s*bra(?:\.uni)?\s+\1\s*;\s*\3:)"
)
_SKIPPED = re.compile(r"@(!?)(\S+)\s+bra(?:\.uni)?\s+(\S+)\s*;\s*(mbarrier\.loop\.[^;]*;)\s*\3:")
"""The loops that repeat a wait for a barrier until it succeeds: `again: wait p; @!p bra again;`, or with a jump behind the loop. A jump
over such a loop."""
_WORDS = {1: I8, 2: I16, 4: I32, 8: I64}
_FLOAT = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})")


@dataclass(frozen=True)
class Statement:
    """An instruction. predicate: the register of its condition, "" without one. holds: the value for which it is executed."""

    name: str
    operands: tuple[str, ...]
    predicate: str = ""
    holds: bool = True


@dataclass
class Registers:
    """The values of an assembly text. carry: of the last instruction that sets it."""

    scope: Scope
    call: Instruction
    values: dict[str, Item] = field(default_factory=dict)
    sources: dict[str, Operand] = field(default_factory=dict)
    carry: ir.Expr | None = None

    @property
    def span(self) -> Any:
        return self.scope.emitter.span

    def number(self, value: int, type: Scalar = I32) -> ir.Const:
        return constant(value, type, self.span)

    def let(self, value: ir.Expr) -> ir.Expr:
        return self.scope.emitter.let(value, "ptx")

    def read(self, operand: str, type: Scalar) -> ir.Expr:
        """Return an operand as a number of a type."""
        operand = operand.strip()
        if match := _FLOAT.fullmatch(operand):
            bits = self.number(int(match[1] or match[2], 16), I32 if match[1] else I64)
            return as_type(bits, type)
        if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?", operand):
            return constant(int(operand.rstrip("U"), 0), type, self.span)
        if operand[:1] == "!":
            return operation("not", self.read(operand[1:], BOOL))
        value = self.values.get(operand)
        if isinstance(value, Pointer):
            value = self.scope.values.address_of(value)
        if isinstance(value, list):  # a vector in one register
            size = sum(item.type.size for item in value)
            value = regrouped(value, _WORDS[size])[0] if size in _WORDS else None
        if value is None:
            raise UnsupportedError(f"the operand {operand!r} of inline assembly is not supported")
        return as_type(value, type)

    def write(self, operand: str, value: Item) -> None:
        """Assign a register; `_` is none."""
        if operand != "_":
            self.values[operand] = self.let(value) if not isinstance(value, Pointer | list) else value

    def address(self, operand: str) -> Pointer:
        """Return the pointer of an operand such as [%r+4]."""
        name, _, offset = operand.strip("[] ").partition("+")
        name, value = name.strip(), self.values.get(name.strip())
        if not isinstance(value, Pointer):
            source = self.sources.get(name)
            if source is None or value is None or isinstance(value, list):
                raise UnsupportedError(f"the address {operand} of inline assembly is not supported")
            value = self.scope.values.pointer_of_number(source, value)
        return value.moved(int(offset, 0) if offset.strip() else 0)


def as_type(value: ir.Expr, type: Scalar) -> ir.Expr:
    """Return the low bits of a number as another type."""
    if type is BOOL or value.type is BOOL:
        return truth(value) if type is BOOL else cast(value, type)
    assert isinstance(value.type, Scalar)
    if value.type.size == type.size:
        return bitcast(value, type)
    bits = bitcast(value, _WORDS[value.type.size])
    return bitcast(cast(unsigned(bits), _WORDS[type.size]), type)


@lru_cache(maxsize=512)
def statements(text: str) -> tuple[Statement, ...]:
    """Return the instructions of a text. Raises UnsupportedError for labels and jumps other than waits for barriers (`mbarrier.loop`)."""
    results = []
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).replace("$$", "%%")
    text = _WAIT_LOOP.sub(r"mbarrier.loop.\2", text)
    text = _SKIPPED.sub(lambda match: f"@{'' if match[1] else '!'}{match[2]} {match[4]}", text)
    for source in re.sub(r"(^|;)\s*[{}]+(?=\s|$)|[{}]\s*$|^\s*\{", r"\1 ", text.strip()).split(";"):
        source = source.strip().strip("{}").strip() if not re.search(r"\{[^}]*\}", source) else source.strip()
        if not source or source.startswith(".reg"):
            continue
        match = _STATEMENT.fullmatch(source)
        if match is None or match[3] in ("bra", "call", "ret"):
            raise UnsupportedError(f"the inline assembly {source!r} is not supported")
        operands = tuple(own for item in _OPERAND.findall(match[4]) if (own := item.strip()))
        results.append(Statement(re.sub(r"\s", "", match[3]), operands, match[2] or "", not match[1]))
    return tuple(results)


def pairs(value: ir.Expr, lane: Scalar, registers: Registers) -> list[ir.Expr]:
    """Return the halves of a register of 32 bits."""
    bits = registers.let(unsigned(as_type(value, I32)))
    high = operation("shr", bits, registers.number(16))
    return [as_type(cast(own, I32), lane) for own in (bits, high)]


def packed(values: Sequence[ir.Expr], registers: Registers) -> ir.Expr:
    """Return a register of 32 bits with two halves."""
    low, high = (cast(unsigned(bitcast(value, I16)), I32) for value in values)
    return signed(operation("or", low, operation("shl", high, registers.number(16))))
