"""Values in memory: loads and stores of several elements, and pointers that local and shared memory have."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir import nodes as ir
from ..language.forms import AccessOrder
from ..language.types import BOOL, I8, I16, I32, I64, VECTORS, Scalar, Vector
from .arithmetic import bitcast, cast, constant, operation, selected, unsigned
from .arrays import Arrays
from .emitting import Emitter
from .handles import Textures
from .module import Instruction
from .pointers import NULL, Memories, Pointer
from .types import (
    IntType,
    PointersInMemoryError,
    PointerType,
    SequenceType,
    StructType,
    Type,
    UnsupportedError,
    component,
    memory_scalar,
    scalar_of,
    size_of,
)
from .values import Item, Values, truth


@dataclass
class Scope:
    """What the translation of an instruction reads and writes."""

    emitter: Emitter
    values: Values
    arrays: Arrays
    memories: Memories
    textures: Textures


def order_of(instruction: Instruction) -> AccessOrder:
    """Return the memory order of a load or a store."""
    match instruction.word:
        case "":
            return "weak"
        case "acquire" | "seq_cst" if instruction.op == "load":
            return "acquire"
        case "release" | "seq_cst" if instruction.op == "store":
            return "release"
    return "volatile"


def loaded(scope: Scope, pointer: Pointer, type: Type, order: AccessOrder, stem: str, alignment: int = 16) -> Item:
    """Return a value in memory. alignment: of the address in bytes, of which a wider access becomes several."""
    if isinstance(type, PointerType):
        return _loaded_pointer(scope, pointer, order, stem)
    if bits := _truths_as_bytes(type):
        words = loaded(scope, pointer, bits, order, stem, alignment)
        assert isinstance(words, list) and isinstance(type, SequenceType)
        return regrouped(words, BOOL)[: type.count]
    if unit := access_unit(scope, type, alignment):
        words = [
            word
            for o in range(0, size_of(type), unit.size)
            for word in _loaded_unit(scope, pointer.moved(o), unit, order, stem)
        ]
        elements = regrouped([scope.emitter.let(word, stem) for word in words], memory_scalar(lane_type(type)))
        return elements if isinstance(type, SequenceType) else elements[0]
    if isinstance(type, StructType | SequenceType):
        count = len(type.items) if isinstance(type, StructType) else type.count
        components = [component(type, number) for number in range(count)]
        return [loaded(scope, pointer.moved(offset), own, order, stem, alignment) for own, offset in components]
    value = scope.arrays.load(pointer, memory_scalar(type), order, stem)
    return truth(value) if scalar_of(type) is BOOL else value


def _loaded_unit(scope: Scope, pointer: Pointer, unit: Scalar | Vector, order: AccessOrder, stem: str) -> list[ir.Expr]:
    if isinstance(unit, Vector):
        return scope.arrays.load_vector(pointer, unit, order, stem)
    return [scope.arrays.load(pointer, unit, order, stem)]


def _loaded_pointer(scope: Scope, pointer: Pointer, order: AccessOrder, stem: str) -> Pointer:
    """Return a pointer in memory, a number: that of its memory times 2**48, and the offset."""
    allocations = scope.memories.allocations
    memories = tuple(scope.memories.pointed_by(pointer.memories))
    from_host = any(
        own.space == "global" or (own.symbol and memories in ((), NULL.memories)) for own in pointer.memories
    )
    if allocations is None and from_host:
        raise PointersInMemoryError("a pointer in global memory is not supported")
    if not memories:
        return NULL
    value = scope.emitter.let(scope.arrays.load(pointer, I64, order, stem), stem)
    if memories == (allocations,):
        return Pointer(memories, 0, ((value, 1),))
    span = scope.emitter.span
    half, bits = constant(1 << 47, I64, span), constant(48, I32, span)
    number = scope.emitter.let(operation("shr", operation("add", value, half), bits), "number")
    offset = operation("sub", value, operation("shl", number, bits))
    which: ir.Expr | None = None
    for position, memory in enumerate(memories):
        own = constant(position, I32, span)
        is_this = operation("eq", number, constant(scope.memories.number_of(memory), I64, span))
        which = own if which is None else selected(is_this, own, which)
    which = scope.emitter.let(which, "which") if which is not None and len(memories) > 1 else None
    return Pointer(memories, 0, ((scope.emitter.let(offset, "offset"), 1),), which)


def _pointer_bits(scope: Scope, pointer: Pointer) -> ir.Expr:
    """Return a pointer as `_loaded_pointer` reads it."""
    if pointer.block is not None:
        raise UnsupportedError("a pointer to the memory of another block of the cluster in memory is not supported")
    span, number = scope.emitter.span, None
    for position, memory in enumerate(pointer.memories):
        own: ir.Expr = constant(scope.memories.number_of(memory) << 48, I64, span)
        if number is None or pointer.which is None:
            number = own
        else:
            number = selected(operation("eq", pointer.which, constant(position, I32, span)), own, number)
    assert number is not None
    return operation("add", pointer.offset(span), number)


# ------------------------------------------------------------------ accesses of several elements
_WORDS = {1: I8, 2: I16, 4: I32, 8: I64}


def _truths_as_bytes(type: Type) -> SequenceType | None:
    """Return the bytes of a vector of i1, whose elements are bits; None for another type."""
    if isinstance(type, SequenceType) and type.vector and type.item == IntType(1):
        return SequenceType(IntType(8), size_of(type), True)
    return None


def lane_type(type: Type) -> Type:
    return type.item if isinstance(type, SequenceType) else type


def access_unit(scope: Scope, type: Type, alignment: int) -> Scalar | Vector | None:
    """Return the value of each access to a vector, or to a number with an address that is not a multiple of its size.

    None for a type whose components are accessed, each by itself.
    """
    if (
        not scope.memories.single
        or isinstance(type, StructType)
        or (isinstance(type, SequenceType) and not type.vector)
    ):
        return None
    lane, size = memory_scalar(lane_type(type)), size_of(type)
    count = size // lane.size
    unit = min(size & -size, alignment, 16)
    if count == 1:
        return None if unit >= lane.size else _WORDS[unit]
    if unit <= lane.size:
        return lane if unit == lane.size else _WORDS[unit]
    vector = next((v for v in VECTORS.values() if v.element is lane and v.size == unit), None)
    words: dict[int, Scalar | Vector] = {16: VECTORS["int4"], 8: VECTORS["int2"], 4: I32, 2: I16}
    return vector if vector is not None and vector.name[0] != "c" else words[unit]


def regrouped(values: Sequence[ir.Expr], type: Scalar) -> list[ir.Expr]:
    """Return the bits of numbers of one type as numbers of another one, the low bits first. A truth value is a bit."""
    own = values[0].type
    assert isinstance(own, Scalar)
    if BOOL in (own, type):
        return list(values) if own is type else _bits(values) if type is BOOL else _from_bits(values, type)
    if own.size == type.size:
        return [bitcast(value, type) for value in values]
    words = [bitcast(value, _WORDS[own.size]) for value in values]
    word = _WORDS[type.size]
    span = values[0].span
    if own.size > type.size:
        steps = range(own.size // type.size)
        return [
            bitcast(cast(operation("shr", unsigned(value), constant(8 * type.size * step, I32, span)), word), type)
            for value in words
            for step in steps
        ]
    count = type.size // own.size
    results = []
    for first in range(0, len(words), count):
        total = cast(unsigned(words[first]), word)
        for step in range(1, count):
            shifted = operation(
                "shl", cast(unsigned(words[first + step]), word), constant(8 * own.size * step, I32, span)
            )
            total = operation("or", total, shifted)
        results.append(bitcast(total, type))
    return results


def _bits(values: Sequence[ir.Expr]) -> list[ir.Expr]:
    """Return the bits of numbers as truth values."""
    results = []
    for value in values:
        assert isinstance(value.type, Scalar)
        word = bitcast(value, _WORDS[value.type.size])
        for bit in range(8 * value.type.size):
            own = cast(operation("shr", unsigned(word), constant(bit, I32, value.span)), I8)
            results.append(truth(operation("and", own, constant(1, I8, value.span))))
    return results


def _from_bits(values: Sequence[ir.Expr], type: Scalar) -> list[ir.Expr]:
    """Return numbers whose bits are truth values; missing bits of the last one are 0."""
    word, bits, results = _WORDS[type.size], 8 * type.size, []
    for first in range(0, len(values), bits):
        total: ir.Expr = constant(0, word, values[0].span)
        for bit, value in enumerate(values[first : first + bits]):
            own = operation("shl", cast(value, word), constant(bit, I32, value.span))
            total = operation("or", total, own)
        results.append(bitcast(total, type))
    return results


def stored(scope: Scope, pointer: Pointer, value: Item, type: Type, order: AccessOrder, alignment: int = 16) -> None:
    """Store a value. alignment: as for `loaded`."""
    if isinstance(value, Pointer):
        allocations = scope.memories.allocations
        if any(memory.space not in ("local", "shared") for memory in pointer.memories):
            if allocations is None:
                raise PointersInMemoryError("a pointer in global memory is not supported")
            if {*value.memories} != {allocations}:
                raise UnsupportedError("an address of a variable in global memory is not supported")
        scope.arrays.store(pointer, _pointer_bits(scope, value), order)
    elif bits := _truths_as_bytes(type):
        assert isinstance(value, list)
        stored(scope, pointer, regrouped(value, I8), bits, order, alignment)
    elif unit := access_unit(scope, type, alignment):
        lane = unit.element if isinstance(unit, Vector) else unit
        own = value if isinstance(value, list) else [value]
        elements = regrouped(
            [scope.emitter.let(cast(word, memory_scalar(lane_type(type))), "value") for word in own], lane
        )
        count = unit.size // lane.size
        for number in range(len(elements) // count):
            moved, words = pointer.moved(number * unit.size), elements[number * count : (number + 1) * count]
            if isinstance(unit, Vector):
                scope.arrays.store_vector(moved, words, unit, order)
            else:
                scope.arrays.store(moved, words[0], order)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            component_type, offset = component(type, number)
            stored(scope, pointer.moved(offset), item, component_type, order, alignment)
    else:
        scope.arrays.store(pointer, cast(value, memory_scalar(type)), order)
