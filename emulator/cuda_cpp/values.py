"""Values and objects of C++ while a kernel is lowered: pointers into memory, structs, lambdas, and objects in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir import nodes as ir
from ..language.types import U32, Scalar, Space, Vector
from ..span import Span
from .tree import Function, Variable
from .types import CType, RecordType, Refusal, components


@dataclass(frozen=True)
class Atomic:
    """An access by an atomic operation, which needs memory of its type. signed: whether the other sign does as well."""

    type: Scalar | Vector
    any_sign: bool


@dataclass(eq=False)
class Memory:
    """An array of the IR: the memory of a pointer parameter or of a variable.

    declared: the declared type of its elements. count: declared elements; None if the launch determines them. accesses: the types of
    all accesses. runtime: whether an index is known only at run time. loops: the loops whose counters are in its indices.
    element: of the IR's array. fields: for structs with fields of several sizes, array and type by offset.
    """

    name: str
    space: Space
    declared: CType
    span: Span
    count: int | None = None
    extents: tuple[int, ...] = ()
    variable: Variable | None = None
    volatile: bool = False
    accesses: set[CType | Atomic] = field(default_factory=set)
    runtime: bool = False
    loops: set[Any] = field(default_factory=set)
    element: Scalar | Vector = U32
    fields: dict[int, tuple[str, Scalar]] | None = None
    values: tuple[int | float, ...] = ()

    def decide(self) -> None:
        """Choose the element type: one vector type if every access has it, else a scalar type of the common size.

        Raises Refusal for accesses of several sizes.
        """
        exact = {entry.type for entry in self.accesses if isinstance(entry, Atomic)}
        plain = {entry for entry in self.accesses if not isinstance(entry, Atomic)}
        types = plain | exact or {self.declared}
        if len(types) == 1 and isinstance(only := next(iter(types)), Vector):
            self.element = only
            return
        scalars = {scalar for entry in types for scalar in components(entry)}
        if len({scalar.size for scalar in scalars}) > 1:
            if isinstance(self.declared, RecordType) and self.space == "global" and not exact:
                self._split(self.declared)
                return
            sizes = ", ".join(sorted(map(str, scalars)))
            raise Refusal(f"{self.name} is accessed with elements of several sizes ({sizes}): not supported")
        declared = set(components(self.declared))
        needed = {entry.type for entry in self.accesses if isinstance(entry, Atomic) and not entry.any_sign}
        needs_value = [t for t in needed if isinstance(t, Scalar)] or [
            t for t in exact if isinstance(t, Scalar) and t not in declared
        ]
        if len(set(needs_value)) > 1 and needed:
            raise Refusal(f"{self.name} has atomic operations of several types: not supported")
        if needs_value and not (exact <= declared):
            self.element = needs_value[0]
            return
        # min: f before i before u, so that floats are not accessed through casts of their bits
        self.element = min(declared & scalars or scalars, key=str)

    def _split(self, record: RecordType) -> None:
        self.fields = {}
        for name, type, offset in record.leaves():
            if not isinstance(type, Scalar):
                raise Refusal(f"{record}.{name} is {type}: not supported in structs with fields of several sizes")
            self.fields[offset] = (f"{self.name}@:{name}", type)


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
    """A pointer variable that is assigned: a register with its offset in elements, and one that selects among several memories."""

    name: str
    to: CType | None
    memories: Sequence[Memory | None]
    wide: bool


Place = RegisterPlace | ComponentPlace | StructPlace | MemoryPlace | ValuePlace | PointerPlace
