"""Values and objects of C++ while a kernel is lowered: pointers into memory, structs, lambdas, and objects in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir import nodes as ir
from ..language.types import BOOL, U8, U32, Scalar, Space, Vector
from ..span import Span
from .tree import Function, Variable
from .types import CType, RecordType, components


@dataclass(eq=False)
class Memory:
    """An array of the IR: the memory of a pointer parameter or of a variable.

    declared: the declared type of its elements. count: declared elements; None if the launch determines them. accesses: the types of
    all accesses. runtime: whether an index is known only at run time. loops: the loops whose counters are in its indices.
    element: of the IR's array; accesses of other types are wide (`ir.wide`).
    """

    name: str
    space: Space
    declared: CType
    span: Span
    count: int | None = None
    extents: tuple[int, ...] = ()
    variable: Variable | None = None
    volatile: bool = False
    accesses: set[CType] = field(default_factory=set)
    runtime: bool = False
    loops: set[Any] = field(default_factory=set)
    element: Scalar | Vector = U32
    values: tuple[int | float, ...] = ()

    def decide(self) -> None:
        """Choose the element type: the type of all accesses, else the smallest of them. A scalar that a pointer declares counts as one
        of them."""
        types = {entry for entry in self.accesses if isinstance(entry, Scalar | Vector)}
        if self.space == "global" and isinstance(self.declared, Scalar) and self.declared.size > 1:
            types.add(self.declared)
        types = types or set(components(self.declared))
        least = min(entry.size for entry in types)
        smallest = {entry for entry in types if entry.size == least}
        scalars = {entry for entry in smallest if isinstance(entry, Scalar)}
        declared = set(components(self.declared)) & scalars
        # min: f before i before u, so that floats keep their type
        self.element = min(declared or scalars or smallest, key=str)
        if self.element is BOOL and len(types) > 1:
            self.element = U8

    @property
    def fits_registers(self) -> bool:
        """Whether all accesses are made of elements of one size."""
        return len({entry.size for type in self.accesses for entry in components(type)}) <= 1


@dataclass(frozen=True, eq=False)
class Pointer:
    """memory + sum(index * bytes) + constant bytes.

    memory: None for null; an object in registers for its address. Every term is kept until an access, so that the indices of
    declared dimensions are checked one by one.
    """

    memory: Memory | Place | None
    terms: tuple[tuple[ir.Expr, int], ...] = ()
    constant: int = 0
    to: CType | None = None

    def moved(self, index: ir.Expr, size: int) -> Pointer:
        """Return the pointer `index` elements of `size` bytes further on. A constant is an index of its own in an array of arrays."""
        nested = isinstance(self.memory, Memory) and len(self.memory.extents) > 1
        if isinstance(index, ir.Const) and not nested:
            return replace(self, constant=self.constant + int(index.value) * size)
        return replace(self, terms=(*self.terms, (index, size)))


@dataclass(frozen=True, eq=False)
class Choice:
    """One of two pointers into different memory: `yes` if the condition holds."""

    condition: ir.Expr
    yes: AnyPointer
    no: AnyPointer


AnyPointer = Pointer | Choice


@dataclass(frozen=True, eq=False)
class StructValue:
    record: RecordType
    fields: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class LambdaValue:
    function: Function


Value = ir.Expr | Pointer | Choice | StructValue | LambdaValue | Sequence[Any] | None
"""A sequence is the value of an array that is a field; None is void."""


# ------------------------------------------------------------------ objects
@dataclass(frozen=True, eq=False)
class RegisterPlace:
    register: ir.Reg


@dataclass(frozen=True, eq=False)
class ComponentPlace:
    """A component of a vector in registers. index: 0 ... 3 for x ... w."""

    owner: Place
    index: int


@dataclass(frozen=True, eq=False)
class StructPlace:
    """A struct in registers."""

    record: RecordType
    fields: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class MemoryPlace:
    pointer: AnyPointer
    type: CType
    volatile: bool = False


@dataclass(frozen=True, eq=False)
class ValuePlace:
    """A value under a name that is never assigned."""

    value: Any


@dataclass(frozen=True, eq=False)
class PointerPlace:
    """A pointer variable that is assigned: a register with its offset in units of the type's alignment, and one that selects among
    several memories."""

    name: str
    to: CType | None
    memories: Sequence[Memory | None]
    wide: bool


Place = RegisterPlace | ComponentPlace | StructPlace | MemoryPlace | ValuePlace | PointerPlace


def pointee(pointer: AnyPointer) -> CType | None:
    """Return the type that a pointer points to."""
    return pointee(pointer.yes) if isinstance(pointer, Choice) else pointer.to


def is_null(pointer: Any) -> bool:
    """Return whether a value is the null pointer."""
    return isinstance(pointer, Pointer) and pointer.memory is None
