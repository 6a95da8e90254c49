"""Code generation for the samples of a detailed launch, in the layout of `profiler.samples`."""

from ....language.types import I64
from ....llvm.builder import FunctionBuilder, many
from ....llvm.casts import extended
from ....llvm.values import Value, chosen, lanes
from ....profiler.samples import ACCESS, COSTS, EXACT, LOOP
from ..context import CodegenContext
from .rules import helper_text

_KEEP = "keep_sample"
_V = many("i32")


def _at(name: str) -> int:
    """Return the offset of a field of a sample, in bytes."""
    assert ACCESS.fields is not None
    return ACCESS.fields[name][1]


def keep_access(context: CodegenContext, site: int, index: Value, cost: str) -> None:
    """Count an access by its cost, an i64, and record the first access of each cost."""
    builder = context.builder
    row = builder.intrinsic("llvm.umin", "i64", cost, str(COSTS - 1), hint="cost")
    row = builder.let(f"mul i64 {row}, {ACCESS.itemsize}", "row")
    table = builder.element("i8", "%.samples", context.sample_slots.access(site), "table")
    sample = builder.element("i8", table, row, "sample")
    count = builder.load("i64", sample, "count")
    builder.store("i64", builder.let(f"add i64 {count}, 1", "count"), sample)
    with builder.when(builder.let(f"icmp eq i64 {count}, 0", "new"), "first", rarely=True):
        wide = extended(builder, Value(index.type, lanes(builder, index), None), I64).ref
        context.helper(_KEEP, lambda: _keep(context))
        builder.call(
            "void", _KEEP, ("ptr", sample), ("i64", context.block), ("i32", context.phase()), ("i32", context.warp),
            ("i32", context.active()), (many("i64"), wide),
        )  # fmt: skip


def _keep(context: CodegenContext) -> str:
    fields = {"block": "i64", "phase": "i32", "warp": "i32", "mask": "i32", "index": many("i64")}

    def body(builder: FunctionBuilder) -> str:
        builder.reserve("sample", *fields)
        inside = builder.let(
            f"select {many('i1')} {chosen(builder, '%mask')}, {fields['index']} %index, {fields['index']} zeroinitializer"
        )
        for name, type in fields.items():
            value = inside if name == "index" else f"%{name}"
            builder.store(type, value, builder.element("i8", "%sample", _at(name)), align=4)
        return ""

    arguments = ", ".join(f"{type} %{name}" for name, type in fields.items())
    return helper_text(context, "void", _KEEP, f"ptr %sample, {arguments}", body)


def count_iteration(context: CodegenContext, site: int, iteration: str, lanes_started: str, warps_started: str) -> None:
    """Count the lanes and warps at the start of an iteration, i64 each, if the table has a row for it. iteration: an i64."""
    builder = context.builder
    ones = builder.call("i64", "llvm.ctpop.i64", ("i64", iteration), hint="ones")
    few = builder.let(f"icmp ult i64 {iteration}, {EXACT}", "exact")
    single = builder.let(f"icmp eq i64 {ones}, 1", "single")
    with builder.when(builder.let(f"or i1 {few}, {single}", "stored"), "store"):
        exponent = builder.call("i64", "llvm.cttz.i64", ("i64", iteration), ("i1", "false"), hint="exponent")
        later = builder.let(f"add i64 {exponent}, {EXACT - EXACT.bit_length() + 1}", "later")
        row = builder.let(f"select i1 {few}, i64 {iteration}, i64 {later}", "row")
        table = builder.element("i8", "%.samples", context.sample_slots.loop(site), "table")
        pair = builder.element("i8", table, builder.let(f"mul i64 {row}, {LOOP.itemsize}", "row"), "pair")
        builder.add_to(pair, lanes_started)
        builder.add_to(builder.element("i64", pair, 1), warps_started)


def count_iteration_of_block(context: CodegenContext, site: int, iteration: str, masks: str) -> None:
    """Count an iteration of a loop executed by all warps of a block together. masks: the lanes of each warp."""
    builder = context.builder
    populations = builder.intrinsic("llvm.ctpop", _V, masks, hint="populations")
    started = builder.let(f"icmp ne {_V} {masks}, zeroinitializer", "started")
    bits = builder.let(f"bitcast {many('i1')} {started} to i32", "started")
    lanes_started = builder.call("i32", "llvm.vector.reduce.add.v32i32", (_V, populations), hint="lanes")
    wide = builder.let(f"zext i32 {lanes_started} to i64", "lanes")
    count_iteration(context, site, iteration, wide, context.population(bits, "warps"))
