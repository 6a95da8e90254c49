"""Loads, stores and addresses: objects of C++ as arrays and registers of the IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import gcd
from typing import Any, cast

from ..ir import names
from ..ir import nodes as ir
from ..ir.walk import expressions
from ..ir.wide import aligned_index, alignment_check
from ..language.types import BOOL, I32, I64, U8, U16, U32, U64, Scalar, Vector
from .emitting import Emitter
from .types import ArrayType, CType, PointerType, RecordType, Refusal, alignment_of, size_of
from .values import (
    AnyPointer,
    Choice,
    ComponentPlace,
    Memory,
    MemoryPlace,
    Place,
    Pointer,
    PointerPlace,
    RegisterPlace,
    StructPlace,
    StructValue,
    Value,
    ValuePlace,
)

_WORDS = {type.size: type for type in (U8, U16, U32, U64)}
"""Unsigned numbers by their bytes."""
MAX_COPIED = 64
"""Elements of an array that is copied inside a struct."""


class Accesses(Emitter):
    # -------------------------------------------------------------- indices
    def index(self, pointer: Pointer, size: int) -> ir.Expr:
        """Return the index of an access of `size` bytes, a power of two. A misaligned one is a fault."""
        unit = unit_of(size, pointer)
        offset = self.offset(pointer, unit)
        index, aligned = aligned_index(offset, unit, size)
        if aligned is None:
            return index
        if not isinstance(pointer.memory, Memory) or pointer.memory.space == "register":
            raise Refusal(
                f"an access of {size} bytes at an offset in steps of {unit} bytes in registers: not supported"
            )
        offset = self.as_register(offset)
        index, aligned = aligned_index(offset, unit, size)
        if aligned is not None:
            self.emit(alignment_check(pointer.memory.name, offset, unit, size, aligned, self.position))
        return index

    def offset(self, pointer: Pointer, unit: int) -> ir.Expr:
        """Return the offset of an address in units that divide all its steps."""
        whole = pointer.constant // unit
        total: ir.Expr = self.constant(whole, I32 if abs(whole) < 1 << 31 else I64)
        for index, step in pointer.terms:
            index = self.converted(index, I64 if cast(Scalar, index.type).size > 4 else I32)
            total = self.added(self._times(index, step // unit), total) if step else total
        return total

    def _times(self, index: ir.Expr, factor: int) -> ir.Expr:
        return index if factor == 1 else self.operation("mul", index, self.constant(factor, cast(Scalar, index.type)))

    def element(self, pointer: Pointer, type: Scalar | Vector) -> tuple[Memory, ir.Expr]:
        """Return the memory and the index of an access."""
        memory = pointer.memory
        if memory is None:
            raise Refusal("an access through a null pointer")
        if not isinstance(memory, Memory):
            raise Refusal("an access beyond a variable in registers: not supported")
        return memory, self._checked(memory, pointer, memory.element.size if memory.space == "register" else type.size)

    def _checked(self, memory: Memory, pointer: Pointer, size: int) -> ir.Expr:
        """Return the index of an access; for an array of arrays with the index of each dimension, checked one by one."""
        flat = self.index(pointer, size)
        extents = memory.extents
        if len(extents) < 2 or pointer.constant or memory.space == "register" or memory.element.size != size:
            return flat
        strides = [size]
        for extent in reversed(extents[1:]):
            strides.insert(0, strides[0] * extent)
        if [step for _, step in pointer.terms] != strides or flat.type is not I32:
            return flat
        indices = tuple(self.converted(index, I32) for index, _ in pointer.terms)
        bounds = tuple(self.constant(extent, I32) for extent in extents)
        return ir.Within(flat, names.Name.parse(memory.name).user, indices, bounds, I32, self.position)

    # -------------------------------------------------------------- loads
    def load(self, place: Place) -> Value:
        """Return the value of an object."""
        match place:
            case RegisterPlace(register):
                return self.read(register)
            case ValuePlace(value):
                return cast(Value, value)
            case ComponentPlace(owner, index):
                whole = cast(ir.Expr, self.load(owner))
                return ir.Component(whole, self.constant(index, I32), cast(Vector, whole.type).element, self.position)
            case StructPlace(record, fields):
                return StructValue(record, {name: self.load(entry) for name, entry in fields.items()})
            case PointerPlace():
                return self._pointer(place)
            case MemoryPlace():
                return self._load_memory(place)

    def _load_memory(self, place: MemoryPlace) -> Value:
        pointer, type = place.pointer, place.type
        if isinstance(type, PointerType):
            raise Refusal("a pointer in memory is not supported")
        if isinstance(type, RecordType):
            return StructValue(type, {name: self.load(self.member(place, name)) for name in type.fields})
        if isinstance(type, ArrayType):
            return [self.load(item) for item in self.items(place, type)]
        if isinstance(pointer, Choice):
            return self._chosen(pointer, lambda entry: self.load(replace(place, pointer=entry)), type)
        if not isinstance(pointer.memory, Memory | None):
            return self._viewed(cast(ir.Expr, self.load(self.variable_at(pointer))), type)
        memory, index = self.element(pointer, type)
        if memory.space == "register":
            return self._load_items(memory, index, type)
        if type is BOOL and memory.element is not BOOL:
            return self.truth(cast(ir.Expr, self._load_memory(replace(place, type=U8))))
        ordered = (place.volatile or memory.volatile) and memory.space in ("global", "shared")
        load = ir.Load(memory.name, index, type, self.position, "volatile" if ordered else "weak")
        return self.let(load, names.Name.parse(memory.name).user)

    def _load_items(self, memory: Memory, index: ir.Expr, type: Scalar | Vector) -> ir.Expr:
        """Return a value from an array in registers."""
        element = memory.element
        if element == type:
            return ir.Item(memory.name, index, type, self.position)
        items = [
            ir.Item(memory.name, self.added(index, self.constant(lane, I32)), element, self.position)
            for lane in range(type.size // element.size)
        ]
        if isinstance(type, Scalar):
            return self.bits(items[0], type)
        return ir.Pack(tuple(self.bits(item, type.element) for item in items), type, self.position)

    def _viewed(self, value: ir.Expr, type: CType) -> ir.Expr:
        """Return the bits of a variable in registers as another type."""
        if value.type == type:
            return value
        source = value.type
        if not isinstance(type, Scalar | Vector) or not isinstance(source, Scalar | Vector) or type.size != source.size:
            raise Refusal(f"a variable of {source} accessed as {type}: not supported")
        if isinstance(type, Scalar) and isinstance(source, Scalar):
            return self.bits(value, type)
        if max(source.size, type.size) > U64.size:
            raise Refusal(f"a variable of {source} accessed as {type}: not supported")
        return self._from_word(self._as_word(self.as_register(value)), type)

    def _as_word(self, value: ir.Expr) -> ir.Expr:
        """Return the bits of a value of 2 to 8 bytes as an unsigned number."""
        source = value.type
        assert isinstance(source, Scalar | Vector)
        word = _WORDS[source.size]
        if isinstance(source, Scalar):
            return self.bits(value, word)
        result: ir.Expr = self.constant(0, word)
        for lane in range(source.lanes):
            piece = ir.Component(value, self.constant(lane, I32), source.element, self.position)
            bits = self.converted(self.bits(piece, _WORDS[source.element.size]), word)
            shift = self.constant(8 * source.element.size * lane, I32)
            result = self.operation("or", result, self.operation("shl", bits, shift))
        return result

    def _from_word(self, word: ir.Expr, type: Scalar | Vector) -> ir.Expr:
        """Return an unsigned number as a value with its bits."""
        if isinstance(type, Scalar):
            return self.bits(word, type)
        size, word = type.element.size, self.as_register(word)
        shifted = (self.operation("shr", word, self.constant(8 * size * lane, I32)) for lane in range(type.lanes))
        pieces = (self.bits(self.converted(piece, _WORDS[size]), type.element) for piece in shifted)
        return ir.Pack(tuple(pieces), type, self.position)

    def variable_at(self, pointer: Pointer) -> Place:
        """Return the object that the address of a variable in registers refers to."""
        if isinstance(pointer.memory, ComponentPlace) and (pointer.terms or pointer.constant):
            return self._component(pointer, pointer.memory)
        if pointer.terms or pointer.constant:
            raise Refusal("arithmetic on the address of a variable in registers: not supported")
        return cast(Place, pointer.memory)

    def _component(self, pointer: Pointer, first: ComponentPlace) -> Place:
        """Return the component of a vector that is counted from another one, such as `(&v.x)[k]`."""
        whole = cast(ir.Expr, self.load(first.owner))
        element = cast(Vector, whole.type).element
        index = self.added(self.index(pointer, element.size), self.constant(first.index, I32))
        if isinstance(index, ir.Const):
            return ComponentPlace(first.owner, int(index.value))
        if any(isinstance(entry, ir.Reg) and entry.name not in self.unrolled for entry in (index, *expressions(index))):
            raise Refusal("a component of a vector by an index that is known at run time only is not supported")
        return ValuePlace(ir.Component(whole, index, element, self.position))

    def items(self, place: MemoryPlace, type: ArrayType) -> list[MemoryPlace]:
        """Return the elements of an array that is copied."""
        if type.count is None or type.count > MAX_COPIED:
            raise Refusal(f"a copy of an array of {type.count} elements: not supported")
        step = size_of(type.element)
        offsets = [self.constant(number, I32) for number in range(type.count)]
        return [MemoryPlace(self.moved(place.pointer, n, step), type.element, place.volatile) for n in offsets]

    def _chosen(self, choice: Choice, access: Callable[[AnyPointer], Value], type: Scalar | Vector | None) -> ir.Reg:
        """Access one of two memories."""
        result = None if type is None else self.register("chosen", type)
        arms = []
        for pointer in (choice.yes, choice.no):
            with self.block() as arm:
                value = access(pointer)
                if result is not None:
                    self.assign(result, cast(ir.Expr, value))
            arms.append(tuple(arm))
        self.emit(ir.If(choice.condition, arms[0], arms[1], self.position))
        return cast(ir.Reg, result)

    # -------------------------------------------------------------- stores
    def store(self, place: Place, value: Any) -> None:
        """Assign an object."""
        match place:
            case RegisterPlace(register):
                self.assign(register, value)
            case ComponentPlace(owner, index):
                whole = cast(ir.Expr, self.load(owner))
                vector = cast(Vector, whole.type)
                pieces: list[ir.Expr] = [
                    ir.Component(whole, self.constant(n, I32), vector.element, self.position)
                    for n in range(vector.lanes)
                ]
                pieces[index] = value
                self.store(owner, ir.Pack(tuple(pieces), vector, self.position))
            case StructPlace(fields=fields):
                values = {name: self.as_register(entry) for name, entry in value.fields.items()}
                for name, entry in fields.items():
                    self.store(entry, values[name])
            case PointerPlace():
                self.point(place, value)
            case MemoryPlace():
                self._store_memory(place, value)
            case ValuePlace():
                raise Refusal("an assignment to a value that is not an object")

    def _store_memory(self, place: MemoryPlace, value: Any) -> None:
        pointer, type = place.pointer, place.type
        if isinstance(type, PointerType):
            raise Refusal("a pointer in memory is not supported")
        if isinstance(type, RecordType):
            values = {name: self.as_register(entry) for name, entry in value.fields.items()}
            for name in type.fields:
                self.store(self.member(place, name), values[name])
        elif isinstance(type, ArrayType):
            for item, entry in zip(self.items(place, type), value, strict=True):
                self.store(item, entry)
        elif isinstance(pointer, Choice):
            stable = self.as_register(value)
            self._chosen(pointer, lambda entry: self.store(replace(place, pointer=entry), stable), None)
        elif not isinstance(pointer.memory, Memory | None):
            variable = self.variable_at(pointer)
            before: Any = self.load(variable) if isinstance(variable, RegisterPlace | ComponentPlace) else value
            self.store(variable, self._viewed(value, cast(CType, before.type)))
        else:
            self._store_element(place, pointer, type, value)

    def _store_element(self, place: MemoryPlace, pointer: Pointer, type: Scalar | Vector, value: ir.Expr) -> None:
        memory, index = self.element(pointer, type)
        if memory.space == "constant":
            raise Refusal(f"{memory.name} is in constant memory: kernels only read it")
        if memory.space == "register":
            self._store_items(memory, index, type, value)
            return
        if type is BOOL and memory.element is not BOOL:
            value = self.converted(value, U8)
        ordered = (place.volatile or memory.volatile) and memory.space in ("global", "shared")
        self.emit(ir.Store(memory.name, index, value, self.position, order="volatile" if ordered else "weak"))

    def _store_items(self, memory: Memory, index: ir.Expr, type: Scalar | Vector, value: ir.Expr) -> None:
        """Assign elements of an array in registers."""
        element = memory.element
        pieces = [value]
        if isinstance(type, Vector) and element != type:
            whole = value if isinstance(value, ir.Reg | ir.Pack) else self.let(value, "vector")
            pieces = [
                whole.args[lane]
                if isinstance(whole, ir.Pack)
                else ir.Component(whole, self.constant(lane, I32), type.element, self.position)
                for lane in range(type.lanes)
            ]
        for number, piece in enumerate(pieces):
            item = ir.Item(memory.name, self.added(index, self.constant(number, I32)), element, self.position)
            stored = piece if piece.type == element else self.bits(piece, cast(Scalar, element))
            self.emit(ir.Let(item, stored, self.position))

    # -------------------------------------------------------------- components of objects
    def member(self, place: Place, name: str) -> Place:
        """Return a field of a struct, or a component of a vector."""
        match place:
            case StructPlace(fields=fields):
                return cast(Place, fields[name])
            case ValuePlace(value=StructValue(fields=values)):
                return ValuePlace(values[name])
            case ValuePlace(value=ir.Pack(args=args)):
                return ValuePlace(args["xyzw".index(name)])
            case MemoryPlace(pointer=pointer, type=RecordType() as record):
                if isinstance(pointer, Pointer) and not isinstance(pointer.memory, Memory | None):
                    return self.member(self.variable_at(pointer), name)
                type, offset = record.fields[name]
                return MemoryPlace(_offset(pointer, offset, type), type, place.volatile)
            case MemoryPlace(pointer=pointer, type=Vector() as vector):
                if isinstance(pointer, Pointer) and not isinstance(pointer.memory, Memory | None):
                    return self.member(self.variable_at(pointer), name)
                offset = "xyzw".index(name) * vector.element.size
                return MemoryPlace(_offset(pointer, offset, vector.element), vector.element, place.volatile)
            case _:
                return ComponentPlace(place, "xyzw".index(name))

    def address(self, place: Place, to: CType | None) -> AnyPointer:
        """Return the address of an object."""
        if isinstance(place, MemoryPlace):
            return typed(place.pointer, to)
        if isinstance(place, PointerPlace):
            raise Refusal("the address of a pointer is not supported")
        return Pointer(place, to=to)

    def moved(self, pointer: AnyPointer, index: ir.Expr, size: int) -> AnyPointer:
        """Return a pointer `index` elements of `size` bytes further on."""
        if isinstance(pointer, Choice):
            index = self.as_register(index)
            return Choice(pointer.condition, self.moved(pointer.yes, index, size), self.moved(pointer.no, index, size))
        return pointer if pointer.memory is None else pointer.moved(index, size)

    # -------------------------------------------------------------- pointer variables
    def _pointer(self, place: PointerPlace) -> AnyPointer:
        """Return the value of an assigned pointer variable."""
        if not place.memories:
            raise Refusal(f"{names.Name.parse(place.name).user} points nowhere")
        offset = ir.Reg(place.name, I64 if place.wide else I32, self.position)
        size = alignment_of(place.to)
        pointers: list[AnyPointer] = [
            Pointer(memory, () if memory is None else ((offset, size),), 0, place.to) for memory in place.memories
        ]
        result = pointers[-1]
        for number in reversed(range(len(pointers) - 1)):
            which = ir.Reg(names.which_array(place.name), I32, self.position)
            result = Choice(self.operation("eq", which, self.constant(number, I32)), pointers[number], result)
        return result

    def point(self, place: PointerPlace, value: AnyPointer) -> None:
        """Assign a pointer variable."""
        if isinstance(value, Choice):
            value = cast(Choice, self.as_register(value))
            arms = []
            for entry in (value.yes, value.no):
                with self.block() as arm:
                    self.point(place, entry)
                arms.append(tuple(arm))
            self.emit(ir.If(value.condition, arms[0], arms[1], self.position))
            return
        type = I64 if place.wide else I32
        size = alignment_of(place.to)
        offset = self.constant(0, type) if value.memory is None else self.converted(self.index(value, size), type)
        self.assign(ir.Reg(place.name, type, self.position), offset)
        if len(place.memories) > 1:
            number = place.memories.index(cast(Memory | None, value.memory))
            self.assign(ir.Reg(names.which_array(place.name), I32, self.position), self.constant(number, I32))

    def is_null(self, pointer: Value) -> ir.Expr:
        """Return whether a pointer is null."""
        if isinstance(pointer, Choice):
            yes, no = self.is_null(pointer.yes), self.is_null(pointer.no)
            return self.operation("select", pointer.condition, yes, no)
        return self.constant(cast(Pointer, pointer).memory is None, BOOL)


def unit_of(size: int, *pointers: Pointer) -> int:
    """Return the largest number of bytes that divides a size and all steps of addresses."""
    return gcd(size, *(step for p in pointers for step in (p.constant, *(step for _, step in p.terms))))


def _offset(pointer: AnyPointer, offset: int, to: CType) -> AnyPointer:
    if isinstance(pointer, Choice):
        return Choice(pointer.condition, _offset(pointer.yes, offset, to), _offset(pointer.no, offset, to))
    return replace(pointer, constant=pointer.constant + offset, to=to)


def typed(pointer: AnyPointer, to: CType | None) -> AnyPointer:
    """Return a pointer as one to another type."""
    if isinstance(pointer, Choice):
        return Choice(pointer.condition, typed(pointer.yes, to), typed(pointer.no, to))
    return replace(pointer, to=to)
