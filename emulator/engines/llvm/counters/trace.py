"""Code generation for the access trace of a launch, in the layout of `profiler.trace`."""

from ....language.types import I64
from ....llvm.builder import FunctionBuilder, many
from ....llvm.casts import extended
from ....llvm.values import Value, chosen, lanes
from ....profiler.block_sampling import FACTORS
from ....profiler.trace import ENTRY
from ..context import CodegenContext
from ..tracing import BLOCKS, END, INTERVAL, REQUEST
from .rules import helper_text

_KEEP, _IS_TRACED = "keep_entry", "is_traced"


def _at(name: str) -> int:
    """Return the offset of a field of an entry, in bytes."""
    assert ENTRY.fields is not None
    return ENTRY.fields[name][1]


def keep_entry(context: CodegenContext, site: int, index: Value) -> None:
    """Append an access of all active lanes to the buffer, if its block is traced."""
    builder = context.builder
    context.helper(_IS_TRACED, lambda: _is_traced(context))
    with builder.when(builder.call("i1", _IS_TRACED, ("ptr", "%.trace"), ("i64", context.block)), "trace"):
        wide = extended(builder, Value(index.type, lanes(builder, index), None), I64).ref
        context.helper(_KEEP, lambda: _keep(context))
        builder.call(
            "void", _KEEP, ("ptr", "%.trace"), ("ptr", "%.host_call"), ("i64", context.block), ("i32", str(site)),
            ("i32", context.phase()), ("i32", context.warp), ("i32", context.active()), (many("i64"), wide),
        )  # fmt: skip


def _is_traced(context: CodegenContext) -> str:
    """Return whether a block is traced: code for `profiler.block_sampling.is_sampled`."""

    def body(builder: FunctionBuilder) -> str:
        builder.reserve("trace", "block")
        blocks, interval = (
            builder.load("i64", builder.element("i64", "%trace", at), name)
            for at, name in ((BLOCKS, "blocks"), (INTERVAL, "interval"))
        )
        number = "%block"
        for step in (
            "add i64 {}, 1", f"mul i64 {{}}, {FACTORS[0]}", "lshr i64 {}, 17", f"and i64 {{}}, {0x7FFFFFFFFFF}",
            f"mul i64 {{}}, {FACTORS[1]}", "lshr i64 {}, 15", f"and i64 {{}}, {0xFFFFFF}", f"mul i64 {{}}, {interval}",
        ):  # fmt: skip
            number = builder.let(step.format(number))
        in_range = builder.let(f"icmp slt i64 %block, {blocks}", "recorded")
        return builder.let(f"and i1 {in_range}, {builder.let(f'icmp slt i64 {number}, {1 << 24}', 'sampled')}")

    return helper_text(context, "i1", _IS_TRACED, "ptr %trace, i64 %block", body)


def _keep(context: CodegenContext) -> str:
    fields = {"block": "i64", "site": "i32", "phase": "i32", "warp": "i32", "mask": "i32", "index": many("i64")}

    def body(builder: FunctionBuilder) -> str:
        builder.reserve("trace", "host_call", *fields)
        entry = builder.load("ptr", "%trace", "entry")
        inside = builder.let(
            f"select {many('i1')} {chosen(builder, '%mask')}, {fields['index']} %index, {fields['index']} zeroinitializer"
        )
        for name, type in fields.items():
            value = inside if name == "index" else f"%{name}"
            builder.store(type, value, builder.element("i8", entry, _at(name)), align=4)
        following = builder.element("i8", entry, ENTRY.itemsize, "next")
        builder.store("ptr", following, "%trace")
        end = builder.load("ptr", builder.element("i64", "%trace", END), "end")
        with builder.when(builder.let(f"icmp eq ptr {following}, {end}", "filled"), "full", rarely=True):
            builder.do(f"call void %host_call(i32 {REQUEST}, i64 0, i32 0, i32 0, ptr %trace)")
        return ""

    arguments = ", ".join(f"{type} %{name}" for name, type in fields.items())
    return helper_text(context, "void", _KEEP, f"ptr %trace, ptr %host_call, {arguments}", body)
