"""Code generation for the array elements of the lanes of a warp: addresses, loads, stores, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....language.types import BOOL, I32, I64
from ....llvm.builder import FULL, IOTA, LANES, many, memory_type, scalar_type, splat, suffix, vector
from ....llvm.casts import extended
from ....llvm.shape import Shape
from ....llvm.values import Value, chosen, lanes
from ..context import ArrayLocation, CodegenContext
from . import atomics


# ------------------------------------------------------------------ addresses
def wide(context: CodegenContext, index: Value) -> Value:
    """Return the index as an i64."""
    return index if index.type is I64 else extended(context.builder, index, I64)


def own(context: CodegenContext, array: ArrayLocation) -> ArrayLocation:
    """Return the array of the current warp: the layout of local memory is [warp][element][lane]."""
    if array.type.space != "local":
        return array
    assert array.elements is not None
    size = array.elements * array.type.element.size * LANES
    return replace(array, base=context.builder.element(f"[{size} x i8]", array.base, context.warp, "own", "i32"))


def one_for_all(array: ArrayLocation, index: Value) -> bool:
    """Return whether all lanes access one element."""
    return index.uniform and array.type.space != "local"


def _positions(context: CodegenContext, array: ArrayLocation, index: Value, part: int) -> str:
    """Return <32 x i64>: the positions of a component, in units of the scalar."""
    builder = context.builder
    at = lanes(builder, wide(context, index))
    if array.type.space == "local":
        at = builder.let(f"mul {many('i64')} {at}, {splat('i64', LANES)}", "row")
        at = builder.let(f"add {many('i64')} {at}, {vector('i64', IOTA)}", "cell")
    if array.parts > 1:
        at = builder.let(f"mul {many('i64')} {at}, {splat('i64', array.parts)}", "part")
        at = builder.let(f"add {many('i64')} {at}, {splat('i64', part)}", "part") if part else at
    return at


def _pointers(context: CodegenContext, array: ArrayLocation, index: Value, part: int) -> str:
    element = memory_type(array.scalar)
    if array.type.space != "local" and array.parts == 1:
        width = scalar_type(index.type)
        return context.builder.let(
            f"getelementptr {element}, ptr {array.base}, {many(width)} {lanes(context.builder, index)}", "at"
        )
    at = _positions(context, array, index, part)
    return context.builder.let(f"getelementptr {element}, ptr {array.base}, {many('i64')} {at}", "at")


def _in_a_row(array: ArrayLocation, index: Value) -> bool:
    """Return whether the lanes access consecutive elements."""
    if array.type.space == "local":
        return index.uniform and array.parts == 1
    return index.step == 1


def _row(context: CodegenContext, array: ArrayLocation, index: Value) -> str:
    """Return the address of lane 0's element; the elements of the other lanes follow it."""
    builder = context.builder
    first = extended(builder, Value(index.type, index.ref, "0", index.constant), I64)
    scale = LANES if array.type.space == "local" else array.parts
    ref = first.ref
    if scale > 1 and first.constant is not None:
        ref = str(int(first.constant) * scale)
    elif scale > 1:
        ref = builder.let(f"mul i64 {ref}, {scale}", "row")
    return builder.element(memory_type(array.scalar), array.base, ref)


# ------------------------------------------------------------------ reading
def _read(context: CodegenContext, array: ArrayLocation, ref: str, uniform: bool = False) -> Value:
    """Return a loaded word as a value. A bool is a byte in memory."""
    if array.scalar is BOOL:
        shape = Shape(I32, uniform)
        type = "i8" if uniform else many("i8")
        ref = context.builder.let(f"icmp ne {type} {ref}, {'0' if uniform else splat('i8', 0)}", "truth")
        return shape.value(BOOL, ref)
    return Value(array.scalar, ref, "0" if uniform else None)


def load_one(context: CodegenContext, array: ArrayLocation, index: Value) -> list[Value]:
    """Load one element for the whole warp."""
    builder, element = context.builder, memory_type(array.scalar)
    at = extended(builder, index, I64).ref
    if array.parts > 1:
        at = builder.let(f"mul i64 {at}, {array.parts}", "part")
    found = []
    for part in range(array.parts):
        where = builder.element(element, array.base, builder.let(f"add i64 {at}, {part}", "part") if part else at)
        found.append(_read(context, array, builder.load(element, where, array.name, array.scalar.size), uniform=True))
    return found


def load_lanes(context: CodegenContext, array: ArrayLocation, index: Value, mask: str | None) -> list[Value]:
    builder, element = context.builder, memory_type(array.scalar)
    if not _in_a_row(array, index) or (array.parts > 1 and mask is not None):
        return gather(context, array, index, str(FULL) if mask is None else mask)
    where = _row(context, array, index)
    if array.parts > 1:
        wide = builder.load(f"<{LANES * array.parts} x {element}>", where, array.name, array.scalar.size)
        return [_every(context, array, wide, part) for part in range(array.parts)]
    if mask is None:
        return [_read(context, array, builder.load(many(element), where, array.name, array.scalar.size))]
    active = (many("i1"), chosen(builder, mask))
    function = f"llvm.masked.load.{suffix(many(element))}.p0"
    pointer = ("ptr", where)
    ref = builder.call(many(element), function, pointer, active, (many(element), "zeroinitializer"), hint="loaded")
    return [_read(context, array, ref)]


def _every(context: CodegenContext, array: ArrayLocation, wide: str, part: int) -> Value:
    """Return one component of each of 32 consecutive vectors."""
    element, count = memory_type(array.scalar), LANES * array.parts
    order = vector("i32", (lane * array.parts + part for lane in IOTA))
    ref = context.builder.let(
        f"shufflevector <{count} x {element}> {wide}, <{count} x {element}> poison, <32 x i32> {order}", "part"
    )
    return _read(context, array, ref)


def gather(context: CodegenContext, array: ArrayLocation, index: Value, mask: str) -> list[Value]:
    """Load arbitrary elements; 0 for the lanes outside the mask."""
    builder, element = context.builder, memory_type(array.scalar)
    active = (many("i1"), chosen(builder, mask))
    found = []
    for part in range(array.parts):
        if array.scalar.size < 4:
            at = _positions(context, array, index, part)
            function = atomics.gather_small(context, array.scalar.size)
            words = builder.call(
                many("i32"), function, ("ptr", array.base), (many("i64"), at), ("i32", mask), hint="words"
            )
            ref = builder.let(f"trunc {many('i32')} {words} to {many(element)}", "loaded")
        else:
            function = f"llvm.masked.gather.{suffix(many(element))}.v32p0"
            pointers = (many("ptr"), _pointers(context, array, index, part))
            ref = builder.call(
                many(element), function, pointers, active, (many(element), "zeroinitializer"), hint="loaded"
            )
        found.append(_read(context, array, ref))
    return found


# ------------------------------------------------------------------ writing
def _stored(context: CodegenContext, value: Value, uniform: bool = False) -> str:
    """Return a value in its representation in memory."""
    ref = value.ref if uniform else lanes(context.builder, value)
    if value.type is BOOL:
        type = "i1" if uniform else many("i1")
        return context.builder.let(f"zext {type} {ref} to {'i8' if uniform else many('i8')}", "byte")
    return ref


def store_one(context: CodegenContext, array: ArrayLocation, index: Value, given: Sequence[Value]) -> None:
    """Store one element from all active lanes: the last lane's value is the result."""
    builder, element = context.builder, memory_type(array.scalar)
    at = extended(builder, index, I64).ref
    if array.parts > 1:
        at = builder.let(f"mul i64 {at}, {array.parts}", "part")
    for part, value in enumerate(given):
        if value.uniform:
            ref = _stored(context, value, uniform=True)
        else:
            lane = "31"
            if context.mask is not None:
                zeros = builder.call("i32", "llvm.ctlz.i32", ("i32", context.mask), ("i1", "true"), hint="zeros")
                lane = builder.let(f"sub i32 31, {zeros}", "lane")
            ref = builder.let(f"extractelement {many(element)} {_stored(context, value)}, i32 {lane}", "of.last")
        where = builder.element(element, array.base, builder.let(f"add i64 {at}, {part}", "part") if part else at)
        builder.store(element, ref, where, array.scalar.size)


def store_lanes(
    context: CodegenContext, array: ArrayLocation, index: Value, given: Sequence[Value], mask: str | None
) -> None:
    builder, element = context.builder, memory_type(array.scalar)
    if not _in_a_row(array, index) or array.parts > 1:
        scatter(context, array, index, given, str(FULL) if mask is None else mask)
        return
    where, ref = _row(context, array, index), _stored(context, given[0])
    if mask is None:
        builder.store(many(element), ref, where, array.scalar.size)
    else:
        function = f"llvm.masked.store.{suffix(many(element))}.p0"
        builder.call("void", function, (many(element), ref), ("ptr", where), (many("i1"), chosen(builder, mask)))


def scatter(context: CodegenContext, array: ArrayLocation, index: Value, given: Sequence[Value], mask: str) -> None:
    """Store arbitrary elements, in ascending order of lanes."""
    builder, element = context.builder, memory_type(array.scalar)
    function = f"llvm.masked.scatter.{suffix(many(element))}.v32p0"
    for part, value in enumerate(given):
        pointers = (many("ptr"), _pointers(context, array, index, part))
        stored = (many(element), _stored(context, value))
        builder.call("void", function, stored, pointers, (many("i1"), chosen(builder, mask)))
