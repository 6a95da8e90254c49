"""Types of LLVM IR: sizes, alignment and fields, with the data layout of NVPTX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..language.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, Scalar

POINTER_SIZE = 8  # bytes

_INTEGERS = {1: BOOL, 8: I8, 16: I16, 32: I32, 64: I64}
_FLOATS = {"half": F16, "bfloat": BF16, "float": F32, "double": F64}


class UnsupportedError(Exception):
    """Raised for a construct that the translator refuses, named in the message."""


class PointersInMemoryError(UnsupportedError):
    """Raised for a pointer in global memory where no memory of all allocations is given."""


@dataclass(frozen=True)
class IntType:
    bits: int

    def __str__(self) -> str:
        return f"i{self.bits}"


@dataclass(frozen=True)
class FloatType:
    """name: LLVM's, such as "double"."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class PointerType:
    """space: LLVM's address space; 3 is shared memory."""

    space: int = 0

    def __str__(self) -> str:
        return "ptr"


@dataclass(frozen=True)
class StructType:
    items: tuple[Type, ...]
    packed: bool = False

    def __str__(self) -> str:
        return f"{{{', '.join(map(str, self.items))}}}"


@dataclass(frozen=True)
class SequenceType:
    """An array or a vector."""

    item: Type
    count: int
    vector: bool = False

    def __str__(self) -> str:
        return f"<{self.count} x {self.item}>" if self.vector else f"[{self.count} x {self.item}]"


@dataclass(frozen=True)
class OtherType:
    """void, label, metadata or token."""

    name: str

    def __str__(self) -> str:
        return self.name


Type = IntType | FloatType | PointerType | StructType | SequenceType | OtherType

I1 = IntType(1)
VOID = OtherType("void")
LABEL = OtherType("label")


def scalar_of(type: Type | None) -> Scalar:
    """Return the scalar type of a register with an LLVM type; integers are signed. Raises UnsupportedError."""
    if isinstance(type, IntType) and type.bits in _INTEGERS:
        return _INTEGERS[type.bits]
    if isinstance(type, FloatType) and type.name in _FLOATS:
        return _FLOATS[type.name]
    if isinstance(type, IntType):
        raise UnsupportedError(f"integers of {type.bits} bits are not supported")
    raise UnsupportedError(f"the type {type} is not supported here")


def memory_scalar(type: Type | None) -> Scalar:
    """Return the scalar type of an element of memory: that of a register, a byte for i1."""
    scalar = scalar_of(type)
    return I8 if scalar is BOOL else scalar


def alignment(type: Type) -> int:
    """Bytes."""
    match type:
        case StructType():
            return 1 if type.packed else max(map(alignment, type.items), default=1)
        case SequenceType():
            return size_of(type) if type.vector else alignment(type.item)
    return size_of(type)


def size_of(type: Type) -> int:
    """Return the bytes of a value in memory, with the padding of its type. Raises UnsupportedError."""
    match type:
        case IntType():
            size = 1
            while 8 * size < type.bits:
                size *= 2
            return size
        case FloatType():
            return _FLOATS[type.name].size if type.name in _FLOATS else _unsized(type)
        case PointerType():
            return POINTER_SIZE
        case SequenceType():
            if type.vector and type.item == IntType(1):
                return -(-type.count // 8)
            return size_of(type.item) * type.count
        case StructType():
            end = field_offset(type, len(type.items))
            return -(-end // alignment(type)) * alignment(type)
    return _unsized(type)


def _unsized(type: Type) -> int:
    raise UnsupportedError(f"the type {type} has no size here")


def field_offset(type: StructType, index: int) -> int:
    """Return the bytes before a field. `len(type.items)` gives the end of the last field."""
    end = 0
    for number, item in enumerate(type.items):
        if not type.packed:
            end = -(-end // alignment(item)) * alignment(item)
        if number == index:
            break
        end += size_of(item)
    return end


def component(type: Type, index: int) -> tuple[Type, int]:
    """Return the type of a field or an item, and its offset in bytes."""
    if isinstance(type, StructType):
        return type.items[index], field_offset(type, index)
    if isinstance(type, SequenceType):
        return type.item, index * size_of(type.item)
    raise UnsupportedError(f"the type {type} has no components")


def leaves(type: Type, start: int = 0) -> Iterator[tuple[int, Type]]:
    """Yield the offset and the type of each scalar of a value in memory."""
    match type:
        case StructType():
            for number, item in enumerate(type.items):
                yield from leaves(item, start + field_offset(type, number))
        case SequenceType():
            for number in range(type.count):
                yield from leaves(type.item, start + number * size_of(type.item))
        case _:
            yield start, type
