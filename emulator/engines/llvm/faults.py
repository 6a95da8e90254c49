"""Code generation for the recording of faults, in the layout of `fault_records`."""

from collections.abc import Callable, Sequence

import numpy as np

from ...llvm.builder import FunctionBuilder, many, scalar_type
from ...llvm.values import Value, one_lane
from .context import CodegenContext
from .fault_records import BARRIER, HEADER, FaultRecord, length, position

V = many("i32")
LANES_FUNCTION, BARRIER_FUNCTION = "record_lanes", "record_missing"


def record_fault(context: CodegenContext, record: FaultRecord, lanes: str, values: Sequence[Value]) -> None:
    """Record the lanes at fault (an i32, not 0), and for the first fault of the record the values."""
    builder = context.builder
    pointer = builder.element("i64", "%.faults", record.start, "record")
    first = record_lanes(context, pointer, lanes)
    if not values:
        return
    with builder.when(first, "store"):
        record_values(builder, pointer, length(HEADER), lanes, values)


def record_lanes(context: CodegenContext, pointer: str, lanes: str) -> str:
    """Call the function that counts lanes at fault. Return an i1: they are the first of the record."""
    place = (("i64", context.block), ("i32", context.phase()), ("i32", context.warp), ("i32", lanes))
    return context.builder.call("i1", LANES_FUNCTION, ("ptr", pointer), *place, hint="first")


def record_missing(context: CodegenContext, record: FaultRecord, active: str, expected: str) -> None:
    """Record the threads missing at a barrier. active, expected: addresses of 32 masks, one per warp."""
    builder = context.builder
    pointer = builder.element("i64", "%.faults", record.start, "record")
    place = (("i64", context.block), ("i32", context.phase()), ("ptr", active), ("ptr", expected))
    builder.call("void", BARRIER_FUNCTION, ("ptr", pointer), *place)


def record_values(builder: FunctionBuilder, pointer: str, start: int, lanes: str, values: Sequence[Value]) -> None:
    """Store the values of the first of the lanes, from an offset of the record on."""
    lane = builder.call("i32", "llvm.cttz.i32", ("i32", lanes), ("i1", "false"), hint="lane")
    lane = builder.let(f"and i32 {lane}, 31", "lane")
    for number, value in enumerate(values, start):
        builder.store("i64", _as_i64(builder, value, lane), builder.element("i64", pointer, number))


def _as_i64(builder: FunctionBuilder, value: Value, lane: str) -> str:
    """Return the bits of the value of one lane."""
    type = value.type
    ref = one_lane(builder, value, lane)
    if type.is_float:
        ref = builder.let(f"bitcast {scalar_type(type)} {ref} to i{8 * type.size}", "bits")
    return ref if type.bits == 64 else builder.let(f"zext i{type.bits} {ref} to i64", "bits")


# ------------------------------------------------------------------ functions of the module
def functions(declared: set[str]) -> dict[str, str]:
    """Return the texts of the functions called above, by name, and add their declarations."""
    return {
        LANES_FUNCTION: _text(LANES_FUNCTION, "i1", ("i32 %warp", "i32 %lanes"), _lanes_function, declared),
        BARRIER_FUNCTION: _text(
            BARRIER_FUNCTION, "void", ("ptr %active", "ptr %expected"), _barrier_function, declared
        ),
    }


def _text(
    name: str, result: str, parameters: Sequence[str], body: Callable[[FunctionBuilder], str], declared: set[str]
) -> str:
    builder = FunctionBuilder()
    arguments = ["ptr %record", "i64 %block", "i32 %phase", *parameters]
    builder.reserve(*(parameter.rpartition("%")[2] for parameter in arguments))
    returned = body(builder)
    declared |= builder.declared
    lines = "\n".join([*builder.lines, f"  ret {returned}"])
    return f"define internal {result} @{name}({', '.join(arguments)}) #2 {{\n.entry:\n{lines}\n}}"


def _count(builder: FunctionBuilder, lanes: str) -> str:
    """Add an i32 to the lanes at fault of the record. Return an i1: there were none."""
    counted = builder.element("i64", "%record", position(HEADER, "lanes"), "counted")
    before = builder.load("i64", counted, "before")
    more = builder.let(f"zext i32 {lanes} to i64", "more")
    builder.store("i64", builder.let(f"add i64 {before}, {more}", "sum"), counted)
    return builder.let(f"icmp eq i64 {before}, 0", "first")


def _store(builder: FunctionBuilder, layout: np.dtype[np.void], **fields: str) -> None:
    """Store fields of the record; values are i32, except for blocks."""
    for name, value in fields.items():
        wide = value if value == "%block" else builder.let(f"zext i32 {value} to i64", name)
        builder.store("i64", wide, builder.element("i64", "%record", position(layout, name), name))


def _lanes_function(builder: FunctionBuilder) -> str:
    first = _count(builder, builder.call("i32", "llvm.ctpop.i32", ("i32", "%lanes"), hint="n"))
    with builder.when(first, "store"):
        _store(builder, HEADER, block="%block", phase="%phase", warp="%warp", mask="%lanes")
    return f"i1 {first}"


def _barrier_function(builder: FunctionBuilder) -> str:
    arrived_masks, expected = builder.load(V, "%active", "present"), builder.load(V, "%expected", "expected")
    missing_masks = builder.let(f"xor {V} {arrived_masks}, splat (i32 -1)", "others")
    away = builder.let(f"and {V} {expected}, {missing_masks}", "absent")
    arrived, missing = _population(builder, arrived_masks), _population(builder, away)
    count, keep, end = builder.label("count"), builder.label("store"), builder.label("done")
    builder.branch(builder.let(f"icmp ne i32 {arrived}, 0", "some"), count, end)
    builder.place(count)
    builder.branch(_count(builder, missing), keep, end)
    builder.place(keep)
    thread, absent = _first_thread(builder, arrived_masks), _first_thread(builder, away)
    warp = builder.let(f"lshr i32 {thread}, 5", "warp")
    mask = builder.let(f"shl i32 1, {builder.let(f'and i32 {thread}, 31', 'lane')}", "mask")
    _store(builder, HEADER, block="%block", phase="%phase", warp=warp, mask=mask)
    _store(builder, BARRIER, arrived=arrived, missing=missing, first_missing=absent, missing_block="%block")
    builder.jump(end)
    builder.place(end)
    return "void"


def _population(builder: FunctionBuilder, masks: str) -> str:
    """Return the number of threads in 32 masks."""
    populations = builder.intrinsic("llvm.ctpop", V, masks, hint="lanes")
    return builder.call("i32", "llvm.vector.reduce.add.v32i32", (V, populations), hint="threads")


def _first_thread(builder: FunctionBuilder, masks: str) -> str:
    """Return the lowest thread of 32 masks, at least one of them non-empty."""
    some = builder.let(f"icmp ne {V} {masks}, zeroinitializer", "some")
    warps = builder.let(f"bitcast {many('i1')} {some} to i32", "warps")
    warp = builder.call("i32", "llvm.cttz.i32", ("i32", warps), ("i1", "false"), hint="warp")
    warp = builder.let(f"and i32 {warp}, 31", "warp")
    mask = builder.let(f"extractelement {V} {masks}, i32 {warp}", "mask")
    lane = builder.call("i32", "llvm.cttz.i32", ("i32", mask), ("i1", "false"), hint="lane")
    return builder.let(f"add i32 {builder.let(f'shl i32 {warp}, 5', 'start')}, {lane}", "thread")
