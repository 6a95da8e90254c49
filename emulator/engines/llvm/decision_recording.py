"""Code generation for the recording of decisions, in the buffers of `decision_buffers`."""

from __future__ import annotations

from ...ir import nodes as ir
from ...llvm.builder import FunctionBuilder, many
from ...llvm.values import chosen, lanes
from ...profiler.decisions import NOTE
from .context import CodegenContext
from .counters.rules import helper_text
from .decision_buffers import HEAD, LASTS, NOTES, REQUEST

_TAKE = "take_note"
_V = many("i32")


def record_decision(context: CodegenContext, stmt: ir.RecordDecision) -> None:
    """Record the values of the active lanes."""
    builder = context.builder
    value = lanes(builder, context.expression(stmt.value))
    slot = context.decision_slots.setdefault(stmt.about, len(context.decision_slots))
    last = "null" if stmt.alone else builder.element("i8", "%.notes", LASTS + 8 * slot, "last")
    context.helper(_TAKE, lambda: _take(context))
    builder.call(
        "void", _TAKE, ("ptr", "%.notes"), ("ptr", last), ("i32", str(stmt.about if stmt.whole else -1 - stmt.about)),
        ("i64", context.block), ("i32", context.warp), ("i32", context.active()),
        ("i32", context.phase()), (_V, value), ("ptr", "%.host_call"),
    )  # fmt: skip


def _take(context: CodegenContext) -> str:
    fields = {"block": "i64", "site": "i32", "warp": "i32", "mask": "i32", "phase": "i32", "value": _V}

    def at(name: str) -> int:
        assert NOTE.fields is not None
        return NOTE.fields[name][1]

    def body(builder: FunctionBuilder) -> str:
        builder.reserve("notes", "last", "call", *fields)
        inside = builder.let(f"select {many('i1')} {chosen(builder, '%mask')}, {_V} %value, {_V} zeroinitializer")
        some, check, values, again, new, full, end = (
            builder.label(hint) for hint in ("compare", "check", "values", "repeat", "new", "full", "done")
        )
        builder.branch(builder.let("icmp eq ptr %last, null", "alone"), new, some)
        builder.place(some)
        number = builder.load("i64", "%last", "number")
        builder.branch(builder.let(f"icmp eq i64 {number}, 0", "none"), new, check)
        builder.place(check)
        before = _note(builder, builder.let(f"sub i64 {number}, 1", "address"))
        same = "true"
        for name in ("block", "warp", "mask", "phase"):
            old = builder.load(fields[name], builder.element("i8", before, at(name)), "old")
            same = builder.let(
                f"and i1 {same}, {builder.let(f'icmp eq {fields[name]} {old}, %{name}', 'equal')}", "same"
            )
        builder.branch(same, values, new)
        builder.place(values)
        old = builder.load(_V, builder.element("i8", before, at("value")), "old", align=4)
        differ = builder.let(
            f"bitcast {many('i1')} {builder.let(f'icmp ne {_V} {old}, {inside}', 'differs')} to i32", "differ"
        )
        builder.branch(builder.let(f"icmp eq i32 {differ}, 0", "equal"), again, new)
        builder.place(again)
        builder.add_to(before, "1")
        builder.jump(end)
        builder.place(new)
        index = builder.load("i64", "%notes", "index")
        note = _note(builder, index)
        builder.store("i64", "1", note)
        for name, type in fields.items():
            value = inside if name == "value" else f"%{name}"
            builder.store(type, value, builder.element("i8", note, at(name)), align=4)
        after = builder.let(f"add i64 {index}, 1", "after")
        builder.store("i64", after, "%notes")
        keep, recorded = builder.label("store"), builder.label("stored")
        builder.branch(builder.let("icmp eq ptr %last, null", "alone"), recorded, keep)
        builder.place(keep)
        builder.store("i64", after, "%last")
        builder.jump(recorded)
        builder.place(recorded)
        builder.branch(builder.let(f"icmp ne i64 {after}, {NOTES}", "room"), end, full, rarely=True)
        builder.place(full)
        builder.do(f"call void %call(i32 {REQUEST}, i64 %block, i32 %warp, i32 %mask, ptr %notes)")
        builder.jump(end)
        builder.place(end)
        return ""

    arguments = ", ".join(f"{type} %{name}" for name, type in fields.items() if name not in ("block", "site"))
    first = "ptr %notes, ptr %last, i32 %site, i64 %block"
    return helper_text(context, "void", _TAKE, f"{first}, {arguments}, ptr %call", body)


def _note(builder: FunctionBuilder, index: str) -> str:
    """Return the address of a record."""
    offset = builder.let(f"mul i64 {index}, {NOTE.itemsize}", "offset")
    return builder.element("i8", builder.element("i8", "%notes", HEAD, "first"), offset, "note")
