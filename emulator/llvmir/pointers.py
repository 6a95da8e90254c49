"""Pointers as a memory, a constant and terms in bytes; the memories that each SSA pointer may address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..ir import nodes as ir
from ..ir.names import renamed
from ..language.types import I64, Scalar
from ..span import GENERATED, Span
from .arithmetic import UNSIGNED, cast, constant, operation
from .module import Aggregate, Constant, Global, Instruction, Local, Module, Number, Operand, Text, Undefined, Zero
from .types import (
    PointerType,
    SequenceType,
    StructType,
    Type,
    UnsupportedError,
    component,
    leaves,
    memory_scalar,
    size_of,
)

ELEMENT = "simtbed.element"
"""The beginning of the name of the opaque function of an element's address; dimensions and bytes follow."""
ELEMENT_CALL = re.compile(rf"{re.escape(ELEMENT)}\.(\d+)\.(\d+)")
"""The name of the opaque call that computes the address of an element: dimensions, bytes of an element."""
_SYMBOL = re.compile(r"simtbed\.(\w+)\.([su])\.(\d+)")


@dataclass(eq=False)
class Memory:
    """Memory that pointers start from.

    size: bytes of an element. declared: the element type, if known. length: bytes; None if only the launch knows it. parameter:
    index of the parameter. address: of captured memory. content: of a constant. offset: as in `ArrayParameter`. line: of the
    declaration, as in positions of the module; 0 if unknown.
    """

    name: str
    space: Literal["global", "shared", "local", "constant", "none"]
    size: int = 1
    declared: Scalar | None = None
    length: int | None = None
    parameter: int | None = None
    address: int = 0
    content: bytes = b""
    offset: bool = False
    is_unsigned: bool = False
    line: int = 0

    @property
    def is_dynamic(self) -> bool:
        """Whether it is dynamic shared memory."""
        return self.space == "shared" and self.length is None


@dataclass(frozen=True)
class Pointer:
    """The address of `constant + sum(value * scale)` bytes in a memory.

    memories: of which `which` (i32) selects one; it is None for a single memory. within: index and extents of the element, for
    messages.
    """

    memories: tuple[Memory, ...]
    constant: int = 0
    terms: tuple[tuple[ir.Expr, int], ...] = ()
    which: ir.Expr | None = None
    within: tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]] | None = None

    def only(self, number: int) -> Pointer:
        """Return the pointer into one of its memories."""
        return replace(self, memories=(self.memories[number],), which=None)

    def moved(self, bytes: int) -> Pointer:
        return replace(self, constant=self.constant + bytes)

    def offset(self, span: Span) -> ir.Expr:
        """The bytes before the address, as i64."""
        total: ir.Expr = constant(self.constant, I64, span)
        for value, scale in self.terms:
            term = operation("mul", cast(value, I64), constant(scale, I64, span))
            total = operation("add", term, total)
        return total


_WINDOW = 1 << 32
"""Bytes between the addresses of memories that are not global."""
_FIRST_ADDRESS = 1 << 40

NULL_MEMORY = Memory("null", "none")
NULL = Pointer((NULL_MEMORY,))


def indexed(base: Pointer, source: Type, indices: Iterable[ir.Expr]) -> Pointer:
    """Return the result of a getelementptr."""
    const, terms, type = base.constant, list(base.terms), source
    for number, index in enumerate(indices):
        if number and isinstance(type, StructType):
            if not isinstance(index, ir.Const):
                raise UnsupportedError("a field of a struct with a computed index is not supported")
            type, offset = component(type, int(index.value))
            const += offset
            continue
        if number:
            type = component(type, 0)[0]
        size = size_of(type)
        if isinstance(index, ir.Const):
            const += int(index.value) * size
        else:
            terms.append(_factored(index, size))
    within = base.within if len(terms) == len(base.terms) else None
    return replace(base, constant=const, terms=tuple(terms), within=within)


def _factored(value: ir.Expr, scale: int) -> tuple[ir.Expr, int]:
    """Return a term with the constant factors of its value in its scale."""
    if isinstance(value, ir.Op) and value.type is I64 and isinstance(value.args[-1], ir.Const):
        factor = int(value.args[-1].value)
        if value.name == "shl" and 0 <= factor < 32:
            return _factored(_without_high_bits(value.args[0], 64 - factor), scale << factor)
        if value.name == "mul" and factor > 0:
            return _factored(value.args[0], scale * factor)
    return value, scale


def _without_high_bits(value: ir.Expr, bits: int) -> ir.Expr:
    """Return a sum of which only the low bits have an effect, with the constant that these bits have as a signed number.

    LLVM clears high bits of the constant: (x - 1) << 3 becomes (x + (2**61 - 1)) << 3.
    """
    if not (isinstance(value, ir.Op) and value.name == "add" and isinstance(addend := value.args[-1], ir.Const)):
        return value
    half = 1 << (bits - 1)
    signed = (int(addend.value) + half) % (2 * half) - half
    return replace(value, args=(value.args[0], replace(addend, value=signed)))


class Memories:
    """The memories of a module and of one function, and those that each SSA pointer may address."""

    def __init__(self, module: Module, parameters: Mapping[str, Memory]) -> None:
        self.module = module
        self.by_key: dict[str, Memory] = {}
        self.names: set[str] = {memory.name for memory in parameters.values()}
        self.of_value: dict[str, dict[Memory, None]] = {name: {memory: None} for name, memory in parameters.items()}

    # -------------------------------------------------------------- memories
    def fresh(self, name: str) -> str:
        """Return an unused name."""
        own, number = name, 2
        while own in self.names:
            own, number = renamed(name, number), number + 1
        self.names.add(own)
        return own

    def of_alloca(self, instruction: Instruction) -> Memory:
        key = f"%{instruction.name}"
        if key not in self.by_key:
            assert instruction.source is not None
            count = 1
            for operand in instruction.operands:
                if not isinstance(operand, Number):
                    raise UnsupportedError("local memory of a computed size is not supported")
                count = int(operand.value)
            name, is_unsigned, line = _symbol(instruction.name, "local")
            length = size_of(instruction.source) * count
            declared = _uniform(instruction.source, is_unsigned)
            self.by_key[key] = Memory(
                self.fresh(name), "local", 1, declared, length, is_unsigned=is_unsigned, line=line
            )
        return self.by_key[key]

    def of_global(self, name: str) -> Memory:
        """Return the memory of a global variable. All of dynamic shared memory is one memory. Raises UnsupportedError."""
        variable = self.module.variables.get(name)
        if variable is None:
            raise UnsupportedError(f"the address of the function {name} is not supported")
        dynamic = variable.space == 3 and not size_of(variable.type)
        key = "dynamic shared memory" if dynamic else f"@{name}"
        if key not in self.by_key:
            if variable.space == 3:
                own, is_unsigned, line = _symbol(name, "shared")
                length = None if dynamic else size_of(variable.type)
                declared = None if dynamic else _uniform(variable.type, is_unsigned)
                self.by_key[key] = Memory(
                    self.fresh(own), "shared", 1, declared, length, is_unsigned=is_unsigned, line=line
                )
            elif variable.constant and variable.initial is not None:
                own, is_unsigned, line = _symbol(name, "table")
                content = _content(variable.initial, variable.type)
                declared = _uniform(variable.type, is_unsigned)
                self.by_key[key] = Memory(
                    self.fresh(own), "constant", 1, declared, len(content), content=content, line=line
                )
            else:
                raise UnsupportedError(f"the variable {name} of the module is not supported")
        return self.by_key[key]

    def at_address(self, address: int) -> Memory:
        """Return the memory at an address that the kernel contains."""
        key = f"={address}"
        if key not in self.by_key:
            name = self.fresh(f"captured_{address:x}")
            self.by_key[key] = Memory(name, "global", address=address)
        return self.by_key[key]

    def address(self, memory: Memory) -> int | None:
        """Return the address of a memory as a number: of shared and local memory one with any alignment, unlike all others; None for
        an array of the launch."""
        if memory is NULL_MEMORY:
            return 0
        if memory.space == "global":
            return memory.address or None
        return _FIRST_ADDRESS + _WINDOW * list(self.by_key.values()).index(memory)

    # -------------------------------------------------------------- pointers
    def addressed_by(self, operand: Operand) -> dict[Memory, None]:
        """Return the memories that an operand may address, without null."""
        match operand:
            case Local(name):
                return self.of_value.get(name, {})
            case Global(name, PointerType()):
                return {self.of_global(name): None}
            case Aggregate(items):
                return {memory: None for item in items for memory in self.addressed_by(item)}
            case Constant("inttoptr", (Number(value),)):
                return {self.at_address(int(value)): None}
            case Constant("getelementptr" | "addrspacecast" | "bitcast", operands):
                return self.addressed_by(operands[0])
        return {}

    def trace(self, instructions: Iterable[Instruction]) -> None:
        """Compute the memories of every pointer, and of every aggregate with pointers, to a fixed point."""
        pointing = [instruction for instruction in instructions if instruction.name and _may_point(instruction.type)]
        changed = True
        while changed:
            changed = False
            for instruction in pointing:
                by_key = self.of_value.setdefault(instruction.name, {})
                before = len(by_key)
                for operand in _sources(instruction):
                    by_key.update(self.addressed_by(operand))
                if instruction.op == "alloca":
                    by_key[self.of_alloca(instruction)] = None
                changed = changed or len(by_key) != before


def _may_point(type: Type) -> bool:
    if isinstance(type, StructType):
        return any(map(_may_point, type.items))
    return isinstance(type, PointerType) or (isinstance(type, SequenceType) and _may_point(type.item))


def _sources(instruction: Instruction) -> Iterable[Operand]:
    """The operands whose memories the result may address."""
    match instruction.op:
        case "phi":
            return [value for _, value in instruction.incoming]
        case "select":
            return instruction.operands[1:]
        case "getelementptr" | "addrspacecast" | "bitcast" | "freeze" | "extractvalue":
            return instruction.operands[:1]
        case "inttoptr":
            return [Constant("inttoptr", instruction.operands, instruction.type)]
        case "insertvalue":
            return instruction.operands
        case "call" if ELEMENT_CALL.match(instruction.function):
            return instruction.operands[:1]
    return ()


def _symbol(name: str, usual: str) -> tuple[str, bool, int]:
    """Return the source's name of an array in the name of a symbol, whether its elements are unsigned, and its line."""
    match = _SYMBOL.search(name)
    return (match[1], match[2] == "u", int(match[3])) if match else (usual, False, 0)


def _content(initial: Operand, type: Type) -> bytes:
    """Return the bytes of a constant."""
    match initial:
        case Text(content):
            return content
        case Zero() | Undefined():
            return bytes(size_of(type))
        case Aggregate(items):
            whole = bytearray(size_of(type))
            for number, item in enumerate(items):
                own, offset = component(type, number)
                whole[offset : offset + size_of(own)] = _content(item, own)
            return bytes(whole)
        case Number(value):
            return _number_bytes(value, type)
    raise UnsupportedError(f"a constant {type} with addresses is not supported")


def _number_bytes(value: int | float, type: Type) -> bytes:
    scalar = memory_scalar(type)
    number = constant(value, scalar, GENERATED)
    return np.array(number.value, scalar.dtype).tobytes()


def _uniform(type: Type, is_unsigned: bool) -> Scalar | None:
    """Return the type of all scalars of a value in memory; None for several types."""
    scalars = {None if isinstance(own, PointerType) else memory_scalar(own) for _, own in leaves(type)}
    scalar = scalars.pop() if len(scalars) == 1 else None
    return UNSIGNED.get(scalar, scalar) if scalar is not None and is_unsigned else scalar
