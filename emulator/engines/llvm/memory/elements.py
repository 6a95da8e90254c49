"""Code generation for the array elements of the lanes of a warp: addresses, loads, stores, gathers and scatters."""

from collections.abc import Sequence
from dataclasses import replace

from ....language.types import BOOL, I32, I64
from ....llvm.builder import FULL, IOTA, LANES, many, memory_type, scalar_type, splat, suffix, vector
from ....llvm.casts import extended
from ....llvm.shape import Shape
from ....llvm.values import Value, broadcast, chosen, lanes
from ....machine.device import log2
from ..block_frames import OWN, TABLE
from ..context import ArrayLocation, CodegenContext
from . import atomics


# ------------------------------------------------------------------ addresses
def wide(context: CodegenContext, index: Value) -> Value:
    """Return the index as an i64."""
    return index if index.type is I64 else extended(context.builder, index, I64)


def shifted(context: CodegenContext, index: Value, offset: Value) -> Value:
    """Return the sum of an index and an offset of type i64."""
    builder, whole = context.builder, wide(context, index)
    if offset.uniform and whole.stride is not None:
        return Value(I64, builder.let(f"add i64 {whole.ref}, {offset.ref}", "place"), whole.stride)
    operands = f"{lanes(builder, whole)}, {lanes(builder, offset)}"
    return Value(I64, builder.let(f"add {many('i64')} {operands}", "place"), None)


def scaled(context: CodegenContext, value: Value, factor: str) -> Value:
    """Return the product of a value and one factor, both of type i64."""
    builder = context.builder
    if value.uniform:
        return Value(I64, builder.let(f"mul i64 {value.ref}, {factor}", "offset"))
    product = f"mul {many('i64')} {lanes(builder, value)}, {broadcast(builder, 'i64', factor)}"
    return Value(I64, builder.let(product, "offset"), None)


def offset(context: CodegenContext, array: ArrayLocation) -> Value:
    """Return the elements between the array of the own block and that of another block, an i64: blocks have memory of one size."""
    assert array.blocks is not None
    size = context.builder.load("i64", context.builder.element("i64", TABLE, OWN.index("shared")), "shared.bytes")
    return scaled(context, array.blocks, context.builder.let(f"udiv i64 {size}, {array.type.element.size}", "step"))


def place(context: CodegenContext, array: ArrayLocation, index: Value) -> Value:
    """Return the index of an element from the start of the array of the own block."""
    return index if array.blocks is None else shifted(context, index, offset(context, array))


def own(context: CodegenContext, array: ArrayLocation) -> ArrayLocation:
    """Return the array of the current warp: the layout of local memory is [warp][cell][lane][element of the cell]."""
    if array.type.space != "local":
        return array
    size = f"[{array.warp_bytes} x i8]"
    return replace(array, base=context.builder.element(size, array.base, context.warp, "own", "i32"))


def one_for_all(array: ArrayLocation, index: Value) -> bool:
    """Return whether all lanes access one element."""
    return index.uniform and array.type.space != "local"


def _positions(context: CodegenContext, array: ArrayLocation, index: Value, component: int) -> str:
    """Return <32 x i64>: the positions of a component, in units of the scalar."""
    builder = context.builder
    at = lanes(builder, wide(context, index))
    if array.type.space == "local":
        within = ""
        if array.cell > 1:
            within = builder.let(f"and {many('i64')} {at}, {splat('i64', array.cell - 1)}", "offset")
            at = builder.let(f"lshr {many('i64')} {at}, {splat('i64', log2(array.cell))}", "whole")
        at = builder.let(f"mul {many('i64')} {at}, {splat('i64', LANES)}", "row")
        at = builder.let(f"add {many('i64')} {at}, {vector('i64', IOTA)}", "cell")
        if within:
            at = builder.let(f"mul {many('i64')} {at}, {splat('i64', array.cell)}", "cell")
            at = builder.let(f"add {many('i64')} {at}, {within}", "element")
    if array.components > 1:
        at = builder.let(f"mul {many('i64')} {at}, {splat('i64', array.components)}", "part")
        at = builder.let(f"add {many('i64')} {at}, {splat('i64', component)}", "part") if component else at
    return at


def _pointers(context: CodegenContext, array: ArrayLocation, index: Value, component: int) -> str:
    element = memory_type(array.scalar)
    if array.type.space != "local" and array.components == 1:
        width = scalar_type(index.type)
        return context.builder.let(
            f"getelementptr {element}, ptr {array.base}, {many(width)} {lanes(context.builder, index)}", "address"
        )
    at = _positions(context, array, index, component)
    return context.builder.let(f"getelementptr {element}, ptr {array.base}, {many('i64')} {at}", "address")


def _in_a_row(array: ArrayLocation, index: Value) -> bool:
    """Return whether the lanes access consecutive elements."""
    if array.type.space == "local":
        return index.uniform and array.components == 1 and array.cell == 1
    return index.step == 1


def _row(context: CodegenContext, array: ArrayLocation, index: Value) -> str:
    """Return the address of lane 0's element; the elements of the other lanes follow it."""
    builder = context.builder
    first = extended(builder, Value(index.type, index.ref, "0", index.constant), I64)
    scale = LANES if array.type.space == "local" else array.components
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
    if array.components > 1:
        at = builder.let(f"mul i64 {at}, {array.components}", "part")
    loaded = []
    for component in range(array.components):
        element_pointer = builder.element(
            element, array.base, builder.let(f"add i64 {at}, {component}", "part") if component else at
        )
        loaded.append(
            _read(context, array, builder.load(element, element_pointer, array.name, array.alignment), uniform=True)
        )
    return loaded


def load_lanes(context: CodegenContext, array: ArrayLocation, index: Value, mask: str | None) -> list[Value]:
    builder, element = context.builder, memory_type(array.scalar)
    if not _in_a_row(array, index) or (array.components > 1 and mask is not None):
        return gather(context, array, index, str(FULL) if mask is None else mask)
    element_pointer = _row(context, array, index)
    if array.components > 1:
        wide = builder.load(f"<{LANES * array.components} x {element}>", element_pointer, array.name, array.alignment)
        return [_component_of_each(context, array, wide, component) for component in range(array.components)]
    if mask is None:
        return [_read(context, array, builder.load(many(element), element_pointer, array.name, array.alignment))]
    active = (many("i1"), chosen(builder, mask))
    function = f"llvm.masked.load.{suffix(many(element))}.p0"
    pointer = ("ptr", element_pointer)
    ref = builder.call(many(element), function, pointer, active, (many(element), "zeroinitializer"), hint="loaded")
    return [_read(context, array, ref)]


def _component_of_each(context: CodegenContext, array: ArrayLocation, wide: str, component: int) -> Value:
    """Return one component of each of 32 consecutive vectors."""
    element, count = memory_type(array.scalar), LANES * array.components
    order = vector("i32", (lane * array.components + component for lane in IOTA))
    ref = context.builder.let(
        f"shufflevector <{count} x {element}> {wide}, <{count} x {element}> poison, <32 x i32> {order}", "part"
    )
    return _read(context, array, ref)


def gather(context: CodegenContext, array: ArrayLocation, index: Value, mask: str) -> list[Value]:
    """Load arbitrary elements; 0 for the lanes outside the mask."""
    builder, element = context.builder, memory_type(array.scalar)
    active = (many("i1"), chosen(builder, mask))
    loaded = []
    for component in range(array.components):
        if array.scalar.size < 4:
            at = _positions(context, array, index, component)
            function = atomics.gather_small(context, array.scalar.size)
            words = builder.call(
                many("i32"), function, ("ptr", array.base), (many("i64"), at), ("i32", mask), hint="words"
            )
            ref = builder.let(f"trunc {many('i32')} {words} to {many(element)}", "loaded")
        else:
            function = f"llvm.masked.gather.{suffix(many(element))}.v32p0"
            pointers = (many("ptr"), _pointers(context, array, index, component))
            ref = builder.call(
                many(element), function, pointers, active, (many(element), "zeroinitializer"), hint="loaded"
            )
        loaded.append(_read(context, array, ref))
    return loaded


# ------------------------------------------------------------------ writing
def _stored(context: CodegenContext, value: Value, uniform: bool = False) -> str:
    """Return a value in its representation in memory."""
    ref = value.ref if uniform else lanes(context.builder, value)
    if value.type is BOOL:
        type = "i1" if uniform else many("i1")
        return context.builder.let(f"zext {type} {ref} to {'i8' if uniform else many('i8')}", "byte")
    return ref


def store_one(context: CodegenContext, array: ArrayLocation, index: Value, values: Sequence[Value]) -> None:
    """Store one element from all active lanes: the last lane's value is the result."""
    builder, element = context.builder, memory_type(array.scalar)
    at = extended(builder, index, I64).ref
    if array.components > 1:
        at = builder.let(f"mul i64 {at}, {array.components}", "part")
    for component, value in enumerate(values):
        if value.uniform:
            ref = _stored(context, value, uniform=True)
        else:
            lane = "31"
            if context.mask is not None:
                zeros = builder.call("i32", "llvm.ctlz.i32", ("i32", context.mask), ("i1", "true"), hint="zeros")
                lane = builder.let(f"sub i32 31, {zeros}", "lane")
            ref = builder.let(f"extractelement {many(element)} {_stored(context, value)}, i32 {lane}", "last.value")
        element_pointer = builder.element(
            element, array.base, builder.let(f"add i64 {at}, {component}", "part") if component else at
        )
        builder.store(element, ref, element_pointer, array.alignment)


def store_lanes(
    context: CodegenContext, array: ArrayLocation, index: Value, values: Sequence[Value], mask: str | None
) -> None:
    builder, element = context.builder, memory_type(array.scalar)
    if not _in_a_row(array, index) or array.components > 1:
        scatter(context, array, index, values, str(FULL) if mask is None else mask)
        return
    element_pointer, ref = _row(context, array, index), _stored(context, values[0])
    if mask is None:
        builder.store(many(element), ref, element_pointer, array.alignment)
    else:
        function = f"llvm.masked.store.{suffix(many(element))}.p0"
        builder.call(
            "void", function, (many(element), ref), ("ptr", element_pointer), (many("i1"), chosen(builder, mask))
        )


def scatter(context: CodegenContext, array: ArrayLocation, index: Value, values: Sequence[Value], mask: str) -> None:
    """Store arbitrary elements, in ascending order of lanes."""
    builder, element = context.builder, memory_type(array.scalar)
    function = f"llvm.masked.scatter.{suffix(many(element))}.v32p0"
    for component, value in enumerate(values):
        pointers = (many("ptr"), _pointers(context, array, index, component))
        stored = (many(element), _stored(context, value))
        builder.call("void", function, stored, pointers, (many("i1"), chosen(builder, mask)))
