"""Code that hands on the accesses of a traced launch: `profiler.trace` says what they are."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ....language.types import I64
from ....llvm.builder import FunctionBuilder, many
from ....llvm.casts import extended
from ....llvm.values import Value, chosen, lanes
from ....profiler.trace import ENTRY, Entries, Tracer
from ..context import CodegenContext
from .rules import helper_text

REQUEST = -2
"""The number by which compiled code hands on a full buffer; the data is the address of the buffer's head."""
ENTRIES = 2048
"""Of a thread's buffer."""
_KEEP = "keep_entry"
_NEXT, _END, _BLOCKS = range(3)
"""The head of a buffer, int64 each: the address of the next entry and of the end, and how many blocks are traced."""


def _at(name: str) -> int:
    """Where a field of an entry lies, in bytes."""
    assert ENTRY.fields is not None
    return ENTRY.fields[name][1]


def keep_entry(context: CodegenContext, site: int, index: Value) -> None:
    """Append an access of all active lanes to the buffer, if its block is traced."""
    builder = context.builder
    blocks = builder.load("i64", builder.element("i64", "%.trace", _BLOCKS), "blocks")
    keep, on = builder.label("trace"), builder.label("traced")
    builder.branch(builder.let(f"icmp slt i64 {context.block}, {blocks}", "wanted"), keep, on)
    builder.place(keep)
    wide = extended(builder, Value(index.type, lanes(builder, index), None), I64).ref
    context.helper(_KEEP, lambda: _keep(context))
    builder.call(
        "void", _KEEP, ("ptr", "%.trace"), ("ptr", "%.host_call"), ("i64", context.block), ("i32", str(site)),
        ("i32", context.phase()), ("i32", context.warp), ("i32", context.active()), (many("i64"), wide),
    )  # fmt: skip
    builder.jump(on)
    builder.place(on)


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
        end = builder.load("ptr", builder.element("i64", "%trace", _END), "end")
        full, on = builder.label("full"), builder.label("on")
        builder.branch(builder.let(f"icmp eq ptr {following}, {end}", "filled"), full, on, rarely=True)
        builder.place(full)
        builder.do(f"call void %host_call(i32 {REQUEST}, i64 0, i32 0, i32 0, ptr %trace)")
        builder.jump(on)
        builder.place(on)
        return ""

    arguments = ", ".join(f"{type} %{name}" for name, type in fields.items())
    return helper_text(context, "void", _KEEP, f"ptr %trace, ptr %host_call, {arguments}", body)


@dataclass
class Buffer:
    """A thread's buffer: its head and its entries."""

    head: npt.NDArray[np.int64]
    entries: Entries


@dataclass
class Buffers:
    """Those of the threads of one launch; none where it is not traced."""

    tracer: Tracer | None
    by_address: dict[int, Buffer] = field(default_factory=dict)

    def new(self) -> int:
        """The address of the head of another thread's buffer."""
        if self.tracer is None:
            return 0
        buffer = Buffer(np.zeros(3, np.int64), np.zeros(ENTRIES, ENTRY))
        start = buffer.entries.ctypes.data
        buffer.head[:] = (start, start + buffer.entries.nbytes, self.tracer.blocks)
        self.by_address[buffer.head.ctypes.data] = buffer
        return buffer.head.ctypes.data

    def hand_on(self, addresses: Iterable[int] | None = None) -> None:
        """What is in the buffers at these addresses, or in all."""
        for address in list(self.by_address) if addresses is None else addresses:
            buffer = self.by_address[address]
            start = buffer.entries.ctypes.data
            used = (ctypes.c_int64.from_address(address).value - start) // ENTRY.itemsize
            if used:
                assert self.tracer is not None
                self.tracer.take(buffer.entries[:used])
            buffer.head[_NEXT] = start
