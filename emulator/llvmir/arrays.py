"""Arrays of the program for the memories of a function: their element types, allocations, views and indices.

The element type of a memory follows from its accesses. Accesses of one size share an array, with casts between types of that size.
Global and constant memory that is accessed with several sizes has a view for each size. Shared and local memory has one array, of the
smallest size, and accesses of another type than its element (`ir.wide`).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ..ir import nodes as ir
from ..ir.names import address, component, offset
from ..ir.nodes import UNCOUNTED
from ..ir.wide import alignment_check, null_check
from ..language.forms import AccessOrder, AtomicOp, MemoryOrder, MemoryScope
from ..language.intrinsics import WARP_SIZE
from ..language.types import I32, I64, U8, Array, Scalar, Vector
from ..span import Span
from .allocations import element_of
from .arithmetic import UNSIGNED, bitcast, cast, constant, operation
from .emitting import Emitter
from .module import Position
from .parameters import ArrayView, ScalarSource
from .pointers import Memory, Pointer
from .types import UnsupportedError

Need = Literal["any", "integer", "exact"]
"""The element types that an access accepts: all of its size, all integers of its size, or its own."""
_NEEDS: tuple[Need, ...] = ("any", "integer", "exact")
Ordering = tuple[MemoryOrder, MemoryScope]
RELAXED: Ordering = ("relaxed", "device")


@dataclass(frozen=True)
class Place:
    """The operands of an access: the array, the index in units of the type, and the type. block: as of a `Pointer`."""

    array: str
    index: ir.Expr
    type: Scalar
    block: ir.Expr | None = None


class Arrays:
    """span_of: returns the span of a position of a declaration. views: array parameters of the program by name. sources: of parameters
    with first elements of views and addresses. allocations: of other memory. constants: symbols of variables of the launch in constant
    memory, by array."""

    def __init__(self, emitter: Emitter, span_of: Callable[[Position], Span | None]) -> None:
        self.emitter, self.span_of = emitter, span_of
        self.views: dict[str, ArrayView] = {}
        self.sources: dict[str, ScalarSource] = {}
        self.allocations: list[ir.Stmt] = []
        self.constants: dict[str, str] = {}
        self._accessed: dict[Memory, dict[Scalar, Need]] = {}
        self._names: dict[tuple[Memory, int, int], str] = {}

    # -------------------------------------------------------------- element types
    def note_access(self, memory: Memory, type: Scalar, need: Need = "any") -> None:
        """Record an access before any is translated."""
        types = self._accessed.setdefault(memory, {})
        types[type] = max(types.get(type, need), need, key=_NEEDS.index)

    def element(self, memory: Memory, size: int) -> Scalar:
        """Return the element type for accesses of a size in bytes. Raises UnsupportedError."""
        accessed = {type: need for type, need in self._accessed.get(memory, {}).items() if type.size == size}
        exact = [type for type, need in accessed.items() if need == "exact"]
        if len(exact) > 1 and not memory.single:
            both = " and ".join(map(str, exact))
            raise UnsupportedError(f"atomic operations on {both} in {memory.name} are not supported")
        if exact:
            return exact[0]
        integer = next((type for type, need in accessed.items() if need == "integer"), None)
        declared = memory.declared if memory.declared is not None and memory.declared.size == size else None
        if declared is not None and (integer is None or declared.is_integer):
            return declared
        first = integer or next(iter(accessed))
        return UNSIGNED.get(first, first) if memory.is_unsigned else first

    def element_size(self, memory: Memory, size: int) -> int:
        """Return the size of the elements of the array for an access of `size` bytes."""
        if memory.space in ("global", "constant") and not memory.single:
            return size
        own = [memory.declared] if memory.declared is not None and memory.space == "global" else []
        return min(type.size for type in (*self._accessed[memory], *own))

    def dynamic_bytes(self) -> ir.Expr:
        """Return the bytes of dynamic shared memory, as i32: the extent of an array of all its bytes."""
        span, name = self.emitter.span, "dynamic_bytes@"
        if not any(isinstance(stmt, ir.Alloc) and stmt.array == name for stmt in self.allocations):
            self.allocations.append(ir.Alloc(name, Array(U8, None, "shared"), (), span))
        return ir.Extent(name, I32, span)

    def address(self, memory: Memory) -> ir.Expr:
        """Return the address of an array of the launch, as i64."""
        assert memory.parameter is not None
        name = address(memory.name)
        self.sources[name] = ScalarSource(memory.parameter, 1, "address")
        return ir.Reg(name, I64, self.emitter.span)

    # -------------------------------------------------------------- places
    def place(
        self, pointer: Pointer, size: int, lane: Scalar | None = None, reads: bool = False, lanes: int = WARP_SIZE
    ) -> Place:
        """Return the element for an access of `size` bytes to a pointer into one memory.

        lane: the component of a vector. reads: whether it is a load. lanes: as in `load_vector`.

        Raises UnsupportedError.
        """
        (memory,) = pointer.memories
        if memory.space == "constant" and not reads:
            raise UnsupportedError(f"{memory.name} is in constant memory: kernels only read it")
        own = self.element_size(memory, size)
        if memory.offset and own < size:  # in elements, which need not be a whole number of accesses
            first = self._first(self._view(memory, self.element(memory, own), 0))
            pointer = replace(pointer, terms=(*pointer.terms, (first, own)))
        divisible = [term for term in pointer.terms if term[1] % size == 0]
        phase = pointer.constant % size
        index: ir.Expr
        if memory.addresses:
            index, phase = element_of(self.emitter, self._aligned(pointer, size, lanes, UNCOUNTED), size), 0
        elif len(divisible) < len(pointer.terms) or (phase and memory.single):
            total = self._aligned(pointer, size, lanes)
            index, phase = operation("shr", total, constant(size.bit_length() - 1, I32, self.emitter.span)), 0
        else:
            index = self._sum(divisible, (pointer.constant - phase) // size, size)
        if phase and memory.space in ("shared", "local"):
            raise UnsupportedError(f"a misaligned access to {memory.name} is not supported")
        name = self._view(memory, self.element(memory, own), phase)
        if memory.offset and own == size:
            index = operation("add", cast(index, I64), self._first(name))
        if pointer.within is not None and own == size:
            indices, extents = pointer.within
            assert isinstance(index.type, Scalar)
            index = ir.Within(index, memory.name, indices, extents, index.type, self.emitter.span)
        block = pointer.block if memory.space == "shared" else None
        return Place(name, index, lane or self.element(memory, size), block)

    def own_place(self, pointer: Pointer, size: int, lane: Scalar | None = None, reads: bool = False) -> Place:
        """Return the place of an access that only reaches the block of the thread. Another block is a failed assertion."""
        place, span = self.place(pointer, size, lane, reads), self.emitter.span
        if place.block is not None:
            is_own = operation("eq", place.block, ir.Special("cluster_rank", I32, span))
            self.emitter.emit(ir.Assert(is_own, "a copy to the memory of another block is not supported", span))
        return replace(place, block=None)

    def _first(self, view: str) -> ir.Expr:
        """Return the number of elements before those of a parameter in its memory."""
        return ir.Reg(offset(view), I64, self.emitter.span)

    def _sum(self, terms: list[tuple[ir.Expr, int]], constant_index: int, size: int) -> ir.Expr:
        span = self.emitter.span
        if len(terms) == 1 and terms[0][1] == size and not constant_index and terms[0][0].type is I32:
            return terms[0][0]
        total: ir.Expr | None = None
        for value, scale in terms:
            term = operation("mul", cast(value, I64), constant(scale // size, I64, span))
            total = term if total is None else operation("add", total, term)
        if total is None:
            return constant(constant_index, I64, span)
        return operation("add", total, constant(constant_index, I64, span))

    def _aligned(self, pointer: Pointer, size: int, lanes: int, site: int = -1) -> ir.Expr:
        """Return the offset in bytes where its terms are not all multiples of the size; a misaligned address is a finding."""
        span = self.emitter.span
        total = self.emitter.let(pointer.offset(span), "offset", site)
        rest = operation("and", total, constant(size - 1, I64, span))
        aligned = operation("eq", rest, constant(0, I64, span))
        if lanes < WARP_SIZE:
            others = operation("ge", ir.Special("lane", I32, span), constant(lanes, I32, span))
            aligned = operation("either", others, aligned)
        self.emitter.emit(alignment_check(pointer.memories[0].name, total, 1, size, aligned, span))
        return total

    def _view(self, memory: Memory, element: Scalar, phase: int) -> str:
        """Return the array of the program with the elements of a memory from `phase` bytes on."""
        key = (memory, element.size, phase)
        if key not in self._names:
            first = not any(known is memory for known, _, _ in self._names)
            suffix = f"{element}_{phase}" if phase else str(element)
            name = self._names[key] = memory.name if first else component(memory.name, suffix)
            if memory.space == "global":
                self.views[name] = ArrayView(memory.parameter, memory.address, element, phase, memory.symbol)
                if memory.offset:
                    assert memory.parameter is not None
                    self.sources[offset(name)] = ScalarSource(memory.parameter, element.size, "offset")
            else:
                self._allocate(name, memory, element, phase)
        return self._names[key]

    def _allocate(self, name: str, memory: Memory, element: Scalar, phase: int) -> None:
        assert memory.space in ("shared", "local", "constant")
        length = None if memory.length is None else (memory.length - phase) // element.size
        values: tuple[int | float, ...] = ()
        if memory.space == "constant":
            assert length is not None
            values = tuple(np.frombuffer(memory.content, element.dtype, length, phase).tolist())
            if memory.symbol:
                self.constants[name] = memory.symbol
        type = Array(element, None if length is None else (length,), memory.space)
        span = None if memory.position is None else self.span_of(memory.position)
        self.allocations.append(ir.Alloc(name, type, values, span or self.emitter.span))

    # -------------------------------------------------------------- accesses
    def into_each_memory(self, pointer: Pointer) -> Iterator[Pointer]:
        """Yield the pointer into each of its memories; statements emitted meanwhile run where it points there.

        An access to no memory is a finding.
        """
        emitter = self.emitter
        if pointer.which is None:
            if pointer.is_null:
                emitter.emit(null_check(emitter.span))
            else:
                yield pointer
            return
        which = emitter.let(pointer.which, "which")
        arms: list[tuple[ir.Stmt, ...]] = []
        for number, memory in enumerate(pointer.memories):
            with emitter.block() as body:
                if memory.space == "none":
                    emitter.emit(null_check(emitter.span))
                else:
                    yield pointer.only(number)
            arms.append(tuple(body))
        chain = arms[-1]
        for number in range(len(arms) - 2, -1, -1):
            is_this = operation("eq", which, constant(number, I32, emitter.span))
            chain = (ir.If(is_this, arms[number], chain, emitter.span),)
        for stmt in chain:
            emitter.emit(stmt)

    def _zero(self, type: Scalar) -> ir.Expr:
        """Return the value that an access to a null pointer has."""
        return constant(0, type, self.emitter.span)

    def load(
        self, pointer: Pointer, type: Scalar, order: AccessOrder, stem: str, scope: MemoryScope = "device"
    ) -> ir.Expr:
        """Load a value of a scalar type that memory can have."""
        emitter = self.emitter
        result, value = emitter.register(stem, type), self._zero(type)
        for own in self.into_each_memory(pointer):
            place = self.place(own, type.size, reads=True)
            load = ir.Load(place.array, place.index, place.type, emitter.span, order, scope, block=place.block)
            value = bitcast(emitter.effect(load, stem), type)
            if pointer.which is not None:
                emitter.assign(result, value)
        return result if pointer.which is not None else value

    def load_vector(
        self, pointer: Pointer, type: Vector, order: AccessOrder, stem: str, lanes: int = WARP_SIZE
    ) -> list[ir.Expr]:
        """Load a vector by one access; return its components. lanes: the first lanes of the warp, which access memory."""
        emitter = self.emitter
        results = [emitter.register(stem, type.element) for _ in range(type.lanes)]
        for own in self.into_each_memory(pointer):
            place, whole = self.place(own, type.size, type.element, True, lanes), emitter.vector(stem, type)
            load = ir.Load(place.array, place.index, type, emitter.span, order, lanes=lanes, block=place.block)
            emitter.emit(ir.Let(whole, load, emitter.span))
            for lane, register in enumerate(results):
                number = constant(lane, I32, emitter.span)
                emitter.assign(register, ir.Component(whole, number, type.element, emitter.span))
        return [self._zero(type.element)] * type.lanes if pointer.is_null else list(results)

    def store_vector(
        self, pointer: Pointer, values: Sequence[ir.Expr], type: Vector, order: AccessOrder, lanes: int = WARP_SIZE
    ) -> None:
        """Store the components of a vector by one access. lanes: as in `load_vector`."""
        emitter = self.emitter
        values = [emitter.let(value, "value") for value in values] if pointer.which is not None else values
        packed = ir.Pack(tuple(values), type, emitter.span)
        for own in self.into_each_memory(pointer):
            place = self.place(own, type.size, type.element, lanes=lanes)
            at = place.array, place.index
            emitter.emit(ir.Store(*at, packed, emitter.span, order=order, lanes=lanes, block=place.block))

    def store(self, pointer: Pointer, value: ir.Expr, order: AccessOrder, scope: MemoryScope = "device") -> None:
        """Store a value of a scalar type that memory can have."""
        emitter = self.emitter
        assert isinstance(value.type, Scalar)
        if pointer.which is not None:
            value = emitter.let(value, "value")
        for own in self.into_each_memory(pointer):
            place = self.place(own, value.type.size)
            stored = bitcast(value, place.type)
            at = place.array, place.index
            emitter.emit(ir.Store(*at, stored, emitter.span, order=order, scope=scope, block=place.block))

    def atomic(
        self, op: AtomicOp, pointer: Pointer, value: ir.Expr, used: bool, stem: str, ordering: Ordering = RELAXED
    ) -> ir.Expr:
        """Perform an atomic operation; return the old value, of the type of `value`."""
        emitter = self.emitter
        assert isinstance(value.type, Scalar)
        type = value.type
        value = emitter.let(value, "operand") if pointer.which is not None else value
        result, old = emitter.register(stem, type), self._zero(type)
        for own in self.into_each_memory(pointer):
            (memory,) = own.memories
            place = self.place(own, type.size, type if memory.single else None)
            operand = bitcast(value, place.type)
            if op in ("add", "sub", "min", "max", "inc", "dec") and not _same_kind(op, type, place.type):
                raise UnsupportedError(f"an atomic {op} on {place.type} as {type} is not supported")
            atomic = ir.Atomic(op, place.array, place.index, operand, place.type, emitter.span, *ordering, place.block)
            old = bitcast(emitter.effect(atomic, stem, used), type)
            if pointer.which is not None and used:
                emitter.assign(result, old)
        return result if pointer.which is not None else old

    def atomic_vector(
        self, pointer: Pointer, values: Sequence[ir.Expr], type: Vector, used: bool, ordering: Ordering
    ) -> list[ir.Expr]:
        """Add to each component of a vector; return the old components."""
        emitter = self.emitter
        values = [emitter.let(value, "operand") for value in values]
        old = emitter.vector("old", type)
        for own in self.into_each_memory(pointer):
            place = self.place(own, type.size, type.element)
            packed = ir.Pack(tuple(values), type, emitter.span)
            atomic = ir.Atomic("add", place.array, place.index, packed, type, emitter.span, *ordering, place.block)
            emitter.emit(ir.Let(old if used else None, atomic, emitter.span))
        span = emitter.span
        if pointer.is_null:
            return [self._zero(type.element)] * type.lanes * used
        return [ir.Component(old, constant(n, I32, span), type.element, span) for n in range(type.lanes * used)]

    def compare_swap(
        self, pointer: Pointer, expected: ir.Expr, value: ir.Expr, stem: str, ordering: Ordering = RELAXED
    ) -> ir.Expr:
        """Perform a compare-and-swap of integers; return the old value."""
        emitter = self.emitter
        assert isinstance(value.type, Scalar)
        expected, value = emitter.let(expected, "expected"), emitter.let(value, "value")
        type = value.type
        assert isinstance(type, Scalar)
        result, old = emitter.register(stem, type), self._zero(type)
        for own in self.into_each_memory(pointer):
            place = self.place(own, type.size)
            operands = bitcast(expected, place.type), bitcast(value, place.type)
            swap = ir.CompareSwap(place.array, place.index, *operands, place.type, emitter.span, *ordering, place.block)
            old = bitcast(emitter.effect(swap, stem), type)
            if pointer.which is not None:
                emitter.assign(result, old)
        return result if pointer.which is not None else old


def atomic_need(op: str, type: Scalar | Vector) -> Need:
    """Return the need of an atomic operation; "cas" is a compare-and-swap."""
    if isinstance(type, Vector):
        return "any" if type.element.is_float else "integer"
    if op in ("min", "max", "inc", "dec") or (op == "add" and type.is_float):
        return "exact"
    return "any" if type.is_float else "integer"


def _same_kind(op: str, type: Scalar, element: Scalar) -> bool:
    """Whether an atomic operation on `type` is the one on the elements: the sum of integers has the same bits with any sign."""
    if op in ("add", "sub"):
        return type.is_float == element.is_float
    return type is element
