"""Types of C++: the language's scalars and vectors, pointers, arrays and structs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..language.types import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, VECTORS, Scalar, Vector
from .clang import HEADER, cindex


class Refusal(Exception):
    """Raised for C++ without a counterpart in the IR. The reader of the tree adds the position."""


@dataclass(frozen=True)
class PointerType:
    """to: None for void and for functions."""

    to: CType | None

    def __str__(self) -> str:
        return f"{'void' if self.to is None else self.to} *"


@dataclass(frozen=True)
class ArrayType:
    """count: None for an array in dynamic shared memory."""

    element: CType
    count: int | None

    @property
    def innermost(self) -> CType:
        return self.element.innermost if isinstance(self.element, ArrayType) else self.element

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of an array of arrays, outermost first."""
        inner = self.element.extents if isinstance(self.element, ArrayType) else ()
        return (self.count or 0, *inner)

    def __str__(self) -> str:
        return f"{self.element}[{'' if self.count is None else self.count}]"


@dataclass(frozen=True, eq=False)
class RecordType:
    """A struct. fields: by name, the type and the offset in bytes. One object for each type of a translation unit."""

    name: str
    size: int
    fields: dict[str, tuple[CType, int]] = field(repr=False)

    def leaves(self, offset: int = 0) -> Iterator[tuple[str, CType, int]]:
        """Yield dotted name, type and offset of each field that is no struct."""
        for name, (type, at) in self.fields.items():
            if isinstance(type, RecordType):
                yield from ((f"{name}.{inner}", kind, place) for inner, kind, place in type.leaves(offset + at))
            else:
                yield name, type, offset + at

    def __str__(self) -> str:
        return self.name


CType = Scalar | Vector | PointerType | ArrayType | RecordType


def size_of(type: CType | None) -> int:
    """Return the size of a type in bytes; 1 for void, as arithmetic on `void *` counts."""
    if isinstance(type, ArrayType):
        return size_of(type.element) * (type.count or 0)
    return 8 if isinstance(type, PointerType) else 1 if type is None else max(type.size, 1)


def alignment_of(type: CType | None) -> int:
    """Return the alignment of a type in bytes; 1 for void."""
    if isinstance(type, ArrayType):
        return alignment_of(type.element)
    if isinstance(type, RecordType):
        return max((alignment_of(kind) for _, kind, _ in type.leaves()), default=1)
    return size_of(type)


def scalar_leaves(
    type: CType, path: tuple[str, ...] = (), offset: int = 0
) -> Iterator[tuple[tuple[str, ...], Scalar, int]]:
    """Yield path, type and offset of each scalar of a value that is passed by value: fields of structs, components of vectors."""
    if isinstance(type, RecordType):
        for name, (kind, at) in type.fields.items():
            yield from scalar_leaves(kind, (*path, name), offset + at)
    elif isinstance(type, Vector):
        for number, axis in enumerate("xyzw"[: type.lanes]):
            yield (*path, axis), type.element, offset + number * type.element.size
    elif isinstance(type, Scalar):
        yield path, type, offset


def components(type: CType) -> Iterator[Scalar]:
    """Yield the scalar types that a value of a type is made of."""
    if isinstance(type, Scalar):
        yield type
    elif isinstance(type, Vector):
        yield type.element
    elif isinstance(type, ArrayType):
        yield from components(type.element)
    elif isinstance(type, RecordType):
        for _, kind, _ in type.leaves():
            yield from components(kind)
    else:
        raise Refusal("a pointer in memory")


class Types:
    """The types of one translation unit, converted once."""

    def __init__(self) -> None:
        kinds = cindex().TypeKind
        self.kinds = kinds
        self.scalars = {
            kinds.BOOL: BOOL, kinds.CHAR_S: I8, kinds.SCHAR: I8, kinds.UCHAR: U8, kinds.CHAR_U: U8, kinds.SHORT: I16,
            kinds.USHORT: U16, kinds.INT: I32, kinds.UINT: U32, kinds.LONG: I64, kinds.ULONG: U64, kinds.LONGLONG: I64,
            kinds.ULONGLONG: U64, kinds.FLOAT: F32, kinds.DOUBLE: F64, kinds.HALF: F16, kinds.FLOAT16: F16,
        }  # fmt: skip
        self.references = (kinds.LVALUEREFERENCE, kinds.RVALUEREFERENCE)
        self.arrays = (kinds.CONSTANTARRAY, kinds.INCOMPLETEARRAY)
        self._records: dict[str, CType] = {}

    def is_base(self, base: Any, derived: Any) -> bool:
        """Return whether a class, or the class that a pointer points to, is a base of another one."""
        base, derived = base.get_canonical(), derived.get_canonical()
        if base.kind == derived.kind == self.kinds.POINTER:
            return self.is_base(base.get_pointee(), derived.get_pointee())
        if base.kind != self.kinds.RECORD or derived.kind != self.kinds.RECORD:
            return False
        bases = [entry.type.get_canonical() for entry in derived.get_bases()]
        return any(entry.get_declaration() == base.get_declaration() or self.is_base(base, entry) for entry in bases)

    def is_reference(self, type: Any) -> bool:
        return type.get_canonical().kind in self.references

    def of(self, type: Any) -> CType | None:
        """Return a type of libclang; a reference as its object, void as None. Raises Refusal."""
        type = type.get_canonical()
        kinds = self.kinds
        if type.kind in self.scalars:
            return self.scalars[type.kind]
        if type.kind in self.references:
            return self.of(type.get_pointee())
        if type.kind == kinds.POINTER:
            pointee = type.get_pointee().get_canonical()
            function = pointee.kind in (kinds.FUNCTIONPROTO, kinds.FUNCTIONNOPROTO)
            return PointerType(None if function else self.of(pointee))
        if type.kind in self.arrays:
            element = self.of(type.element_type)
            assert element is not None
            return ArrayType(element, type.element_count if type.kind == kinds.CONSTANTARRAY else None)
        if type.kind == kinds.ENUM:
            return self.of(type.get_declaration().enum_type)
        if type.kind == kinds.RECORD:
            return self._record(type)
        if type.kind in (kinds.VOID, kinds.NULLPTR):
            return PointerType(None) if type.kind == kinds.NULLPTR else None
        if type.spelling.removeprefix("const ").removeprefix("volatile ") in ("_Float16", "__bf16"):
            return BF16 if "bf16" in type.spelling else F16
        raise Refusal(f"the type {type.spelling or type.kind.name.lower()} is not supported")

    def _record(self, type: Any) -> CType:
        declared = type.get_declaration()
        name = declared.spelling
        if name in VECTORS and declared.location.file is not None and declared.location.file.name == HEADER:
            return VECTORS[name]
        plain = type.spelling.replace("const ", "").replace("volatile ", "")
        key = f"{declared.get_usr()} {plain}"
        if key not in self._records:
            self._records[key] = self._fields(type, declared, plain)
        return self._records[key]

    def _fields(self, type: Any, declared: Any, name: str) -> RecordType:
        kinds = cindex().CursorKind
        if "(lambda at" in name:  # its captures are the variables themselves
            return RecordType("lambda", 1, {})
        if declared.kind == kinds.UNION_DECL:
            raise Refusal(f"{name} is a union: unions are not supported")
        if any(method.is_virtual_method() for method in type.get_methods()):
            raise Refusal(f"{name} has virtual functions: not supported")
        fields: dict[str, tuple[CType, int]] = {}
        for base in type.get_bases():
            if base.is_virtual_base():
                raise Refusal(f"{name} has a virtual base class: not supported")
            owner, start = self.of(base.type), base.get_base_offsetof(declared) // 8
            assert isinstance(owner, RecordType)
            if start and owner.fields:  # a pointer to this base would need an offset
                raise Refusal(f"{name} has a second base class with fields: not supported")
            inherited = {field: (kind, start + at) for field, (kind, at) in owner.fields.items()}
            if set(fields) & set(inherited):
                raise Refusal(f"{name} has base classes with fields of one name: not supported")
            fields |= inherited
        for entry in type.get_fields():
            if entry.is_bitfield() or not entry.spelling:
                raise Refusal(
                    f"{name} has {'a bit field' if entry.is_bitfield() else 'an anonymous member'}: not supported"
                )
            kind = self.of(entry.type)
            if entry.spelling in fields:
                raise Refusal(f"{name}.{entry.spelling} hides a field of a base class: not supported")
            if kind is None or self.is_reference(entry.type):
                raise Refusal(f"{name}.{entry.spelling} is a reference: not supported in a struct")
            fields[entry.spelling] = (kind, entry.get_field_offsetof() // 8)
        return RecordType(name, type.get_size(), fields)
