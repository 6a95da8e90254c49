"""Elements of arrays for the lanes of a warp: where they lie, how they are read and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....language.types import BOOL, I32, I64
from ....llvm.builder import FULL, IOTA, LANES, many, memory_type, scalar_type, splat, suffix, vector
from ....llvm.operations import Shape, extended
from ....llvm.values import Value, chosen, lanes
from ..context import Build, Memory
from . import atomics


# ------------------------------------------------------------------ where elements lie
def wide(build: Build, index: Value) -> Value:
    """The index as an i64."""
    return index if index.type is I64 else extended(build.page, index, I64)


def own(build: Build, memory: Memory) -> Memory:
    """The array as the current warp sees it: local memory is [element][lane] for each warp."""
    if memory.type.space != "local":
        return memory
    size = int(memory.length) * memory.type.element.size * LANES
    return replace(memory, base=build.page.element(f"[{size} x i8]", memory.base, build.warp, "own", "i32"))


def one_for_all(memory: Memory, index: Value) -> bool:
    """Whether all lanes mean the same element."""
    return index.uniform and memory.type.space != "local"


def _positions(build: Build, memory: Memory, index: Value, part: int) -> str:
    """<32 x i64>, in units of the scalar."""
    page = build.page
    at = lanes(page, wide(build, index))
    if memory.type.space == "local":
        at = page.let(f"mul {many('i64')} {at}, {splat('i64', LANES)}", "row")
        at = page.let(f"add {many('i64')} {at}, {vector('i64', IOTA)}", "cell")
    if memory.parts > 1:
        at = page.let(f"mul {many('i64')} {at}, {splat('i64', memory.parts)}", "part")
        at = page.let(f"add {many('i64')} {at}, {splat('i64', part)}", "part") if part else at
    return at


def _pointers(build: Build, memory: Memory, index: Value, part: int) -> str:
    element = memory_type(memory.scalar)
    if memory.type.space != "local" and memory.parts == 1:
        width = scalar_type(index.type)
        return build.page.let(
            f"getelementptr {element}, ptr {memory.base}, {many(width)} {lanes(build.page, index)}", "at"
        )
    at = _positions(build, memory, index, part)
    return build.page.let(f"getelementptr {element}, ptr {memory.base}, {many('i64')} {at}", "at")


def _in_a_row(memory: Memory, index: Value) -> bool:
    """Whether the lanes' elements lie one after the other."""
    if memory.type.space == "local":
        return index.uniform and memory.parts == 1
    return index.step == 1


def _row(build: Build, memory: Memory, index: Value) -> str:
    """The address of lane 0's element, the others following."""
    page = build.page
    first = extended(page, Value(index.type, index.ref, "0", index.constant), I64).ref
    if memory.type.space == "local":
        first = page.let(f"mul i64 {first}, {LANES}", "row") if first.startswith("%") else str(int(first) * LANES)
    elif memory.parts > 1:
        first = (
            page.let(f"mul i64 {first}, {memory.parts}", "row")
            if first.startswith("%")
            else str(int(first) * memory.parts)
        )
    return page.element(memory_type(memory.scalar), memory.base, first)


# ------------------------------------------------------------------ reading
def _read(build: Build, memory: Memory, ref: str, uniform: bool = False) -> Value:
    """What was loaded, as a value: a bool is a byte in memory."""
    if memory.scalar is BOOL:
        shape = Shape(I32, uniform)
        type = "i8" if uniform else many("i8")
        ref = build.page.let(f"icmp ne {type} {ref}, {'0' if uniform else splat('i8', 0)}", "truth")
        return shape.value(BOOL, ref)
    return Value(memory.scalar, ref, "0" if uniform else None)


def load_one(build: Build, memory: Memory, index: Value) -> list[Value]:
    """One element for the whole warp."""
    page, element = build.page, memory_type(memory.scalar)
    at = extended(page, index, I64).ref
    if memory.parts > 1:
        at = page.let(f"mul i64 {at}, {memory.parts}", "part")
    found = []
    for part in range(memory.parts):
        where = page.element(element, memory.base, page.let(f"add i64 {at}, {part}", "part") if part else at)
        found.append(_read(build, memory, page.load(element, where, memory.name, memory.scalar.size), uniform=True))
    return found


def load_lanes(build: Build, memory: Memory, index: Value, mask: str | None) -> list[Value]:
    page, element = build.page, memory_type(memory.scalar)
    if not _in_a_row(memory, index) or (memory.parts > 1 and mask is not None):
        return gather(build, memory, index, str(FULL) if mask is None else mask)
    where = _row(build, memory, index)
    if memory.parts > 1:
        wide = page.load(f"<{LANES * memory.parts} x {element}>", where, memory.name, memory.scalar.size)
        return [_every(build, memory, wide, part) for part in range(memory.parts)]
    if mask is None:
        return [_read(build, memory, page.load(many(element), where, memory.name, memory.scalar.size))]
    active = (many("i1"), chosen(page, mask))
    function = f"llvm.masked.load.{suffix(many(element))}.p0"
    pointer = ("ptr", where)
    ref = page.call(many(element), function, pointer, active, (many(element), "zeroinitializer"), hint="loaded")
    return [_read(build, memory, ref)]


def _every(build: Build, memory: Memory, wide: str, part: int) -> Value:
    """One part of each vector in a row of them."""
    element, count = memory_type(memory.scalar), LANES * memory.parts
    order = vector("i32", (lane * memory.parts + part for lane in IOTA))
    ref = build.page.let(
        f"shufflevector <{count} x {element}> {wide}, <{count} x {element}> poison, <32 x i32> {order}", "part"
    )
    return _read(build, memory, ref)


def gather(build: Build, memory: Memory, index: Value, mask: str) -> list[Value]:
    """Any elements; 0 for the lanes not in the mask."""
    page, element = build.page, memory_type(memory.scalar)
    active = (many("i1"), chosen(page, mask))
    found = []
    for part in range(memory.parts):
        if memory.scalar.size < 4:
            at = _positions(build, memory, index, part)
            function = atomics.gather_small(build, memory.scalar.size)
            words = page.call(
                many("i32"), function, ("ptr", memory.base), (many("i64"), at), ("i32", mask), hint="words"
            )
            ref = page.let(f"trunc {many('i32')} {words} to {many(element)}", "loaded")
        else:
            function = f"llvm.masked.gather.{suffix(many(element))}.v32p0"
            pointers = (many("ptr"), _pointers(build, memory, index, part))
            ref = page.call(
                many(element), function, pointers, active, (many(element), "zeroinitializer"), hint="loaded"
            )
        found.append(_read(build, memory, ref))
    return found


# ------------------------------------------------------------------ writing
def _stored(build: Build, value: Value, uniform: bool = False) -> str:
    """A value as it lies in memory."""
    ref = value.ref if uniform else lanes(build.page, value)
    if value.type is BOOL:
        type = "i1" if uniform else many("i1")
        return build.page.let(f"zext {type} {ref} to {'i8' if uniform else many('i8')}", "byte")
    return ref


def store_one(build: Build, memory: Memory, index: Value, given: Sequence[Value]) -> None:
    """All active lanes write one element: the last one's value stays."""
    page, element = build.page, memory_type(memory.scalar)
    at = extended(page, index, I64).ref
    if memory.parts > 1:
        at = page.let(f"mul i64 {at}, {memory.parts}", "part")
    for part, value in enumerate(given):
        if value.uniform:
            ref = _stored(build, value, uniform=True)
        else:
            lane = "31"
            if build.mask is not None:
                zeros = page.call("i32", "llvm.ctlz.i32", ("i32", build.mask), ("i1", "true"), hint="zeros")
                lane = page.let(f"sub i32 31, {zeros}", "lane")
            ref = page.let(f"extractelement {many(element)} {_stored(build, value)}, i32 {lane}", "of.last")
        where = page.element(element, memory.base, page.let(f"add i64 {at}, {part}", "part") if part else at)
        page.store(element, ref, where, memory.scalar.size)


def store_lanes(build: Build, memory: Memory, index: Value, given: Sequence[Value], mask: str | None) -> None:
    page, element = build.page, memory_type(memory.scalar)
    if not _in_a_row(memory, index) or memory.parts > 1:
        scatter(build, memory, index, given, str(FULL) if mask is None else mask)
        return
    where, ref = _row(build, memory, index), _stored(build, given[0])
    if mask is None:
        page.store(many(element), ref, where, memory.scalar.size)
    else:
        function = f"llvm.masked.store.{suffix(many(element))}.p0"
        page.call("void", function, (many(element), ref), ("ptr", where), (many("i1"), chosen(page, mask)))


def scatter(build: Build, memory: Memory, index: Value, given: Sequence[Value], mask: str) -> None:
    """Any elements, in ascending order of lanes."""
    page, element = build.page, memory_type(memory.scalar)
    function = f"llvm.masked.scatter.{suffix(many(element))}.v32p0"
    for part, value in enumerate(given):
        pointers = (many("ptr"), _pointers(build, memory, index, part))
        stored = (many(element), _stored(build, value))
        page.call("void", function, stored, pointers, (many("i1"), chosen(page, mask)))
