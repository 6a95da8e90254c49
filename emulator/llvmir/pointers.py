"""Pointers as a memory, a constant and terms in bytes; the memories that each SSA pointer may address."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..ir import nodes as ir
from ..ir.names import renamed
from ..language.types import BOOL, I64, U8, Scalar
from ..span import GENERATED, Span
from .arithmetic import SIGNED, UNSIGNED, cast, constant, operation
from .debug import node_number, source_scalars
from .module import (
    Aggregate,
    Assembly,
    Constant,
    Function,
    Global,
    Instruction,
    Local,
    Module,
    Number,
    Operand,
    Position,
    Text,
    Undefined,
    Zero,
)
from .types import (
    IntType,
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
_DYNAMIC, _USUAL = "dynamic shared memory", {"constant": "table"}
_DEVICE_SPACE, _SHARED_SPACE, _CONSTANT_SPACE = 1, 3, 4
COPIES = ("llvm.memcpy.", "llvm.memmove.")
_TO_NUMBER = ("ptrtoint", "ptrtoaddr")
_MAPS = "llvm.nvvm.mapa"
_OF_KERNEL = ("local", "shared")
Space = Literal["global", "shared", "local", "constant", "none"]


@dataclass(eq=False)
class Memory:
    """Memory that pointers start from.

    size: bytes of an element. declared: the element type, if known. length: bytes; None if only the launch knows it. parameter:
    index of the parameter. address: as a number, of captured memory and of parameters that have one. content: of a constant.
    offset: as in `ArrayParameter`. single: as in `Memories`. position: of the declaration; None if unknown. symbol: of a variable of
    the module that the launch gives. addresses: whether an offset is an address of a device (`allocations`).
    """

    name: str
    space: Space
    size: int = 1
    declared: Scalar | None = None
    length: int | None = None
    parameter: int | None = None
    address: int = 0
    content: bytes = b""
    offset: bool = False
    is_unsigned: bool = False
    position: Position | None = None
    single: bool = False
    symbol: str = ""
    addresses: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Whether it is dynamic shared memory."""
        return self.space == "shared" and self.length is None


@dataclass(frozen=True)
class Pointer:
    """The address of `constant + sum(value * scale)` bytes in a memory.

    memories: of which `which` (i32) selects one; it is None for a single memory. within: index and extents of the element, for
    messages. block: the rank of the block of the cluster that has the shared memory, an i32; None for the block of the thread.
    """

    memories: tuple[Memory, ...]
    constant: int = 0
    terms: tuple[tuple[ir.Expr, int], ...] = ()
    which: ir.Expr | None = None
    within: tuple[tuple[ir.Expr, ...], tuple[ir.Expr, ...]] | None = None
    block: ir.Expr | None = None

    @property
    def is_null(self) -> bool:
        """Whether it points into no memory."""
        return all(memory.space == "none" for memory in self.memories)

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

    def folded(self, let: Callable[[ir.Expr, str], ir.Expr], span: Span) -> Pointer:
        """Return the pointer with the sum of its terms in a register where it has more than MAX_TERMS."""
        if len(self.terms) <= MAX_TERMS:
            return self
        common = math.gcd(*(scale for _, scale in self.terms))
        terms = tuple((value, scale // common) for value, scale in self.terms)
        return replace(self, terms=((let(Pointer(self.memories, 0, terms).offset(span), "offset"), common),))


MAX_TERMS = 16
"""Terms of an address in one expression: a pointer that an unrolled loop moves has one for each move."""
_WINDOW = 1 << 32
"""Bytes between the addresses of memories that are not global."""
_FIRST_ADDRESS = 1 << 40
_MAPPED = range(1 << 16, 1 << 48)
"""Addresses that an allocation of the host can have."""

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

    def __init__(
        self,
        module: Module,
        function: Function,
        parameters: Mapping[str, Memory],
        single: bool,
        allocations: Memory | None = None,
    ) -> None:
        """single: whether each memory is one array of the program, with accesses of several sizes. allocations: the memory of all
        pointers that global memory has, of which an offset is an address."""
        self.module, self.function, self.single = module, function, single
        self.allocations = allocations
        self.maps_blocks = False  # whether pointers may be to the shared memory of other blocks of the cluster
        self.null = NULL if allocations is None else Pointer((allocations,))
        self.by_key: dict[str, Memory] = {}
        self.pointed: dict[Memory, dict[Memory, None]] = {}  # by the pointers that a memory has
        self._numbers: dict[Memory, int] = {}
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
            described = self.function.variables.get(instruction.name, -1)
            self._declare(
                key, "local", instruction.name, instruction.source, described, size_of(instruction.source) * count
            )
        return self.by_key[key]

    def _declare(self, key: str, space: Space, symbol: str, type: Type, described: int, length: int | None) -> Memory:
        """Add the memory of a variable of the source. described: the number of its node of debug information."""
        debug = self.module.debug
        fields, own = debug.variable(described), source_scalars(debug.type_of_variable(described))
        usual = symbol if key == _DYNAMIC and symbol.isidentifier() and symbol[:2] != "_Z" else _USUAL.get(space, space)
        name, is_unsigned, position = _symbol(symbol, usual)
        if "name" in fields:
            name, is_unsigned = fields["name"], any(t in SIGNED for t in own)
            position = Position(int(fields.get("line", 0)), -1, 1, node_number(fields.get("scope", "")))
        declared = own.pop() if len(own) == 1 else _uniform(type, is_unsigned)
        declared = U8 if declared is BOOL else declared
        self.by_key[key] = memory = Memory(
            self.fresh(name), space, 1, declared, length, is_unsigned=is_unsigned, position=position, single=self.single
        )
        return memory

    def of_global(self, name: str) -> Memory:
        """Return the memory of a global variable. All of dynamic shared memory is one memory. Raises UnsupportedError."""
        variable = self.module.variables.get(name)
        if variable is None:
            raise UnsupportedError(f"the address of the function {name} is not supported")
        dynamic = variable.space == 3 and not size_of(variable.type)
        key = _DYNAMIC if dynamic else f"@{name}"
        if key in self.by_key:
            return self.by_key[key]
        from_host = self.single and variable.space in (_DEVICE_SPACE, _CONSTANT_SPACE) and variable.described >= 0
        if variable.space == _SHARED_SPACE:
            length = None if dynamic else size_of(variable.type)
            memory = self._declare(key, "shared", name, variable.type, variable.described, length)
        elif variable.constant and variable.initial is not None:
            content = initial_bytes(variable.initial, variable.type, self.number_of_operand)
            memory = self._declare(key, "constant", name, variable.type, variable.described, len(content))
            memory.content = content
            self.pointed[memory] = self._pointers_in(variable.initial, variable.type)
        elif from_host:
            memory = self._declare(key, "global", name, variable.type, variable.described, None)
        else:
            raise UnsupportedError(f"the variable {name} of the module is not supported")
        memory.symbol = name if from_host else ""
        return memory

    def _pointers_in(self, initial: Operand, type: Type) -> dict[Memory, None]:
        """Return the memories of the pointers in a constant."""
        if isinstance(initial, Aggregate):
            return {own: None for item in initial.items for own in self._pointers_in(item, type)}
        if isinstance(initial, Zero):
            return dict.fromkeys(self.null.memories) if _may_point(initial.type) else {}
        return self.addressed_by(initial) if isinstance(initial, Global | Constant) else {}

    def number_of_operand(self, operand: Operand) -> int:
        """Return a constant pointer as memory has it. Raises UnsupportedError."""
        if isinstance(operand, Constant) and operand.op in ("addrspacecast", "bitcast"):
            return self.number_of_operand(operand.operands[0])
        if not isinstance(operand, Global):
            raise UnsupportedError("a constant address with an offset is not supported")
        return self.number_of(self.of_global(operand.name)) << 48

    def at_address(self, address: int) -> Memory:
        """Return the memory at an address that the kernel contains: none near zero, where a null pointer with an offset points."""
        if address not in _MAPPED:
            return self.null.memories[0]
        key = f"={address}"
        if key not in self.by_key:
            name = self.fresh(f"captured_{address:x}")
            self.by_key[key] = Memory(name, "global", address=address)
        return self.by_key[key]

    def address(self, memory: Memory) -> int | None:
        """Return the address of a memory as a number: of shared and local memory one with any alignment, unlike all others; None for
        an array of the launch."""
        if memory in (NULL_MEMORY, self.allocations):
            return 0
        if memory.space in ("global", "none") and not memory.symbol:
            return memory.address or None
        return _FIRST_ADDRESS + _WINDOW * list(self.by_key.values()).index(memory)

    # -------------------------------------------------------------- pointers
    def addressed_by(self, operand: Operand) -> dict[Memory, None]:
        """Return the memories that an operand may address, or whose addresses it is computed from as a number."""
        match operand:
            case Local(name):
                return self.of_value.get(name, {})
            case Zero(PointerType()) if self.single:
                return dict.fromkeys(self.null.memories)
            case Global(name, PointerType()):
                return {self.of_global(name): None}
            case Constant("inttoptr", (Number(value),)):
                return {self.at_address(int(value)): None}
            case Aggregate(operands) | Constant(_, operands):
                return {memory: None for item in operands for memory in self.addressed_by(item)}
        return {}

    def trace(self, instructions: Iterable[Instruction]) -> None:
        """Compute the memories of every pointer, and of every aggregate with pointers, to a fixed point."""
        sequence = list(instructions)
        texts = [own.callee.text for own in sequence if isinstance(own.callee, Assembly)]
        self.maps_blocks = any("mapa." in text for text in texts) or any(
            own.function.startswith(_MAPS) for own in sequence
        )
        numbers = any(own.op in _TO_NUMBER or _converts(own) or any(map(_is_address, own.operands)) for own in sequence)
        pointing = [
            own
            for own in sequence
            if own.name and (_may_point(own.type) or (numbers and isinstance(_lane(own.type), IntType)))
        ]
        numbers = numbers and self.single and self.allocations is None
        storing = [
            own
            for own in sequence
            if own.op == "store"
            and (_may_point(own.operands[0].type) or (numbers and _lane(own.operands[0].type) == IntType(64)))
        ]
        storing += [own for own in sequence if own.function.startswith(COPIES)]
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
                if instruction.op == "load":
                    by_key.update(self._loaded_pointers(instruction))
                if instruction.op == "inttoptr" and not by_key and not changed and self.allocations:
                    by_key[self.allocations] = None
                changed = changed or len(by_key) != before
            for instruction in storing:
                changed = self._store_pointers(instruction) or changed

    def _loaded_pointers(self, instruction: Instruction) -> dict[Memory, None]:
        """Return the memories of the pointers that a load reads, of addresses as numbers in memory of the kernel too."""
        memories = self.addressed_by(instruction.operands[0])
        if _may_point(instruction.type):
            return self.pointed_by(memories)
        if not self.single or self.allocations is not None or _lane(instruction.type) != IntType(64):
            return {}
        return self.pointed_by(memory for memory in memories if memory.space in _OF_KERNEL)

    def _store_pointers(self, instruction: Instruction) -> bool:
        """Record the pointers that a store or a copy writes; return whether one is new."""
        source, target = instruction.operands[:2] if instruction.op == "store" else instruction.operands[1::-1]
        pointed = self.addressed_by(source)
        if instruction.op != "store":
            pointed = self.pointed_by(pointed)
        changed = False
        of_kernel = instruction.op == "store" and not _may_point(source.type)
        for memory in self.addressed_by(target):
            if of_kernel and memory.space not in _OF_KERNEL:
                continue
            targets = self.pointed.setdefault(memory, {})
            before = len(targets)
            targets.update(pointed)
            changed = changed or len(targets) != before
        return changed

    def pointed_by(self, memories: Iterable[Memory]) -> dict[Memory, None]:
        """Return the memories of the pointers that memories have."""
        pointed: dict[Memory, None] = {}
        for memory in memories:
            pointed.update(self.pointed.get(memory, {}))
            if self.allocations is not None and (memory.space == "global" or memory.symbol):
                pointed[self.allocations] = None
        return pointed

    def number_of(self, memory: Memory) -> int:
        """Return the number of a memory in the pointers that memory has: 0 for null and addresses of a device."""
        if memory in (NULL_MEMORY, self.allocations):
            return 0
        return 1 + self._numbers.setdefault(memory, len(self._numbers))


def _lane(type: Type) -> Type:
    """Return the type of the elements of a vector; another type as it is."""
    return type.item if isinstance(type, SequenceType) else type


def _may_point(type: Type) -> bool:
    if isinstance(type, StructType):
        return any(map(_may_point, type.items))
    return isinstance(type, PointerType) or (isinstance(type, SequenceType) and _may_point(type.item))


def _is_address(operand: Operand) -> bool:
    """Whether a constant is computed from an address as a number."""
    return isinstance(operand, Constant) and (operand.op in _TO_NUMBER or any(map(_is_address, operand.operands)))


def _converts(instruction: Instruction) -> bool:
    """Whether inline assembly may return an address of its operands as a number."""
    assembly = instruction.callee
    return isinstance(assembly, Assembly) and ("cvta" in assembly.text or "mapa." in assembly.text)


def _sources(instruction: Instruction) -> Iterable[Operand]:
    """The operands whose memories the result may address."""
    match instruction.op:
        case "phi":
            return [value for _, value in instruction.incoming]
        case "select":
            return instruction.operands[1:]
        case "getelementptr" | "extractvalue" | "extractelement":
            return instruction.operands[:1]
        case "inttoptr" if isinstance(instruction.operands[0], Number):
            return [Constant("inttoptr", instruction.operands, instruction.type)]
        case "insertvalue" | "insertelement" | "add" | "sub" | "mul" | "and" | "or" | "xor" | "shl" | "lshr" | "ashr":
            return instruction.operands
        case "addrspacecast" | "bitcast" | "freeze" | "ptrtoint" | "ptrtoaddr" | "inttoptr" | "trunc" | "zext" | "sext":
            return instruction.operands
        case "call" if instruction.function.startswith("llvm.nvvm.shfl."):
            return instruction.operands
        case "call" if ELEMENT_CALL.match(instruction.function):
            return instruction.operands[:1]
        case "call" if isinstance(instruction.callee, Assembly):
            return instruction.operands if _may_point(instruction.type) or _converts(instruction) else ()
        case "call" if instruction.function.startswith(_MAPS):
            return instruction.operands[:1]
    return ()


def _symbol(name: str, usual: str) -> tuple[str, bool, Position | None]:
    """Return the source's name of an array in the name of a symbol, whether its elements are unsigned, and its position."""
    match = _SYMBOL.search(name)
    return (match[1], match[2] == "u", Position(int(match[3]), -1)) if match else (usual, False, None)


def initial_bytes(initial: Operand, type: Type, address: Callable[[Operand], int] | None = None) -> bytes:
    """Return the bytes of a constant. address: returns the number of an address. Raises UnsupportedError for one without it."""
    match initial:
        case Text(content):
            return content
        case Zero() | Undefined():
            return bytes(size_of(type))
        case Aggregate(items):
            whole = bytearray(size_of(type))
            for number, item in enumerate(items):
                own, offset = component(type, number)
                whole[offset : offset + size_of(own)] = initial_bytes(item, own, address)
            return bytes(whole)
        case Number(value):
            return _number_bytes(value, type)
        case Global() | Constant() if address is not None and isinstance(type, PointerType):
            return address(initial).to_bytes(size_of(type), "little")
    raise UnsupportedError(f"a constant {type} with addresses is not supported")


def _number_bytes(value: int | float, type: Type) -> bytes:
    scalar = memory_scalar(type)
    number = constant(value, scalar, GENERATED)
    return np.array(number.value, scalar.dtype).tobytes()


def _uniform(type: Type, is_unsigned: bool) -> Scalar | None:
    """Return the type of all scalars of a value in memory; None for several types."""
    if isinstance(type, SequenceType) and not type.count:
        return _uniform(type.item, is_unsigned)
    scalars = {None if isinstance(own, PointerType) else memory_scalar(own) for _, own in leaves(type)}
    scalar = scalars.pop() if len(scalars) == 1 else None
    return UNSIGNED.get(scalar, scalar) if scalar is not None and is_unsigned else scalar
