"""Code generation for shadow memory checks of accesses to tracked arrays.

An access by the last writer of its elements needs no call. Other common cases take a fast path (`fast_path`). Possible findings
take the slow path, a function of `sanitizer.races`. All of them leave shadow memory in the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ....errors import Diagnostic
from ....ir import nodes as ir
from ....ir.effects import performed, row_of
from ....ir.walk import statements
from ....ir.wide import width
from ....language.types import I64
from ....llvm.builder import IOTA, FunctionBuilder, many, scalar_type, splat, vector
from ....llvm.casts import extended
from ....llvm.values import Value, broadcast, chosen, lanes, moved
from ....passes.grids import has_clusters
from ....runtime.engine import Request
from ....sanitizer import uninitialised
from ....sanitizer.races import shadow
from ....sanitizer.tracking import AccessId, TrackedArray, planes_of
from ..context import ArrayLocation, CodegenContext
from ..fault_records import Number
from ..faults import record_fault
from ..memory import elements
from ..segments import Node
from .fast_path import Elements, call_fast_path
from .runtime import FUNCTIONS

ARRAYS = shadow.RaceState._fields
V, W = many("i32"), many("i64")


# ------------------------------------------------------------------ the race state
def load_table(context: CodegenContext) -> None:
    """At the start of the kernel: load the addresses in the table of the race state."""
    builder = context.builder

    _look_up(builder, [f"{name}.of" for name in FUNCTIONS], 0)
    _look_up(builder, ARRAYS, len(FUNCTIONS))
    for tracked in context.plan.tracked.values():
        for column, what in enumerate(("start", "size")):
            at = builder.element("i64", "%.shadow.planes", 4 * tracked.number + column)
            builder.do(f"%.tracked{tracked.number}.{what} = load i64, ptr {at}")
        start = f"%.tracked{tracked.number}.start"
        builder.do(f"%.tracked{tracked.number} = getelementptr i32, ptr %.shadow.epochs, i64 {start}")


def _look_up(builder: FunctionBuilder, names: Sequence[str], first: int) -> None:
    """Load the pointers of the table %.shadow from index `first` on as %.shadow.name."""
    for number, name in enumerate(names, first):
        builder.do(f"%.shadow.{name}.at = getelementptr i64, ptr %.shadow, i64 {number}")
        builder.do(f"%.shadow.{name} = load ptr, ptr %.shadow.{name}.at")


def _call(builder: FunctionBuilder, function: str, *arguments: tuple[str, str]) -> None:
    """Call a function of the table with its arrays."""
    call_arguments = [*(("ptr", f"%.shadow.{name}") for name in ARRAYS), *arguments]
    builder.do(f"call void %.shadow.{function}.of({', '.join(f'{type} {value}' for type, value in call_arguments)})")


def table_names(context: CodegenContext) -> list[str]:
    """Return the names defined by `load_table`."""
    names_in_table = [f".shadow.{name}{end}" for name in ARRAYS for end in ("", ".at")]
    names_in_table += [f".shadow.{name}.of{end}" for name in FUNCTIONS for end in ("", ".at")]
    return names_in_table + [
        f".tracked{f.number}{end}" for f in context.plan.tracked.values() for end in ("", ".start", ".size")
    ]


def notify(context: CodegenContext, function: str, *arguments: tuple[str, str]) -> None:
    """Call an ordering function of the race state, if any array is tracked."""
    if context.plan.tracked:
        _call(context.builder, function, *arguments)


def resume(context: CodegenContext) -> None:
    """`happens_before.resume_warp` for the current warp, inlined."""
    builder = context.builder

    def number(which: int) -> str:
        return builder.load("i64", builder.element("i64", "%.shadow.state", which))

    def put(which: int, value: str) -> None:
        builder.store("i64", value, builder.element("i64", "%.shadow.state", which))

    put(shadow.WARP, builder.let(f"zext i32 {context.warp} to i64"))
    put(shadow.FRESH, number(shadow.LENGTH))
    joined = builder.load("i32", builder.element("i32", "%.shadow.warp_syncs", context.warp, width="i32"), "joined")
    joined = builder.let(f"zext i32 {joined} to i64", "joined")
    put(shadow.NOW, builder.intrinsic("llvm.smax", "i64", number(shadow.PHASE), joined, hint="epoch"))


def has_tracked_effects(context: CodegenContext, nodes: Sequence[Node]) -> bool:
    """Return whether statements access tracked arrays or order such accesses."""
    if not context.plan.tracked:
        return False
    for stmt in statements(tuple(n for n in nodes if isinstance(n, ir.Stmt))):
        row = row_of(stmt)
        if row is not None and row.transition and row.is_statement:
            return True
        if getattr(performed(stmt), "array", None) in context.plan.tracked:
            return True
    return False


def state(context: CodegenContext, which: int, hint: str) -> str:
    """Return a field of the race state, as an i32."""
    return context.builder.load("i32", context.builder.element("i64", "%.shadow.state", which), hint)


# ------------------------------------------------------------------ one access
def _element_index(context: CodegenContext, index: Value, ratio: int, element: int) -> Value:
    """Return the index of one of the `ratio` shadow elements that an access with this index reads or writes."""
    if ratio == 1:
        return index
    builder, whole = context.builder, elements.wide(context, index)
    if whole.uniform:
        return moved(builder, Value(I64, builder.let(f"mul i64 {whole.ref}, {ratio}", "first")), element)
    first = builder.let(f"mul {W} {lanes(builder, whole)}, {splat('i64', ratio)}", "first")
    return moved(builder, Value(I64, first, None), element)


class TrackedAccess:
    """An access to an element of a tracked array in each lane: generates the check before the access.

    array, index: in units of the access; element: of its shadow elements. stored_values: of a store. ratio: shadow elements of an
    access. own_index: without the offset of another block of the cluster;
    unit_index: in units of the access. alternate: whether blocks alternate without an order.
    """

    def __init__(
        self,
        context: CodegenContext,
        node: ir.Access,
        site: int,
        access: AccessId,
        array: ArrayLocation,
        index: Value,
        stored_values: Sequence[Value],
        element: int = 0,
    ) -> None:
        tracked = context.plan.tracked.get(node.array)
        assert tracked is not None
        self.context, self.builder, self.node = context, context.builder, node
        self.site, self.access = site, access
        self.tracked: TrackedArray = tracked
        self.array, self.unit = context.arrays[node.array], array
        self.ratio = width(node, self.array.type) * tracked.units
        self.unit_index = index
        self.own_index = self.index = _element_index(context, index, self.ratio, element)
        if array.blocks is not None:
            size = self.builder.let(f"mul i64 %.tracked{tracked.number}.size, {planes_of(tracked)}", "planes")
            step = self.builder.let(f"add i64 {size}, {shadow.PADDING}", "step")
            self.index = elements.shifted(context, self.index, elements.scaled(context, array.blocks, step))
        self.alternate = has_clusters(context.kernel)
        self.stored_values = stored_values if access.effect == shadow.STORES else ()
        self.reads = not isinstance(node, ir.Store)

    @staticmethod
    def of_elements(
        context: CodegenContext,
        node: ir.Access,
        site: int,
        access: AccessId,
        array: ArrayLocation,
        index: Value,
        stored_values: Sequence[Value],
    ) -> list[TrackedAccess]:
        """Return the accesses to each shadow element of an access."""
        count = width(node, context.arrays[node.array].type) * context.plan.tracked[node.array].units
        return [TrackedAccess(context, node, site, access, array, index, stored_values, n) for n in range(count)]

    def inside(self) -> None:
        """Check an access with all active lanes in bounds."""
        if elements.one_for_all(self.array, self.index):
            self._single_element()
        else:
            self._lanes()

    def partly_inside(self, inside: str) -> None:
        """Check an access with only the lanes of a mask in bounds."""
        outer, self.context.mask = self.context.mask, inside
        if self.tracked.for_unwritten and self.reads:
            self._check_uninitialised(self._gathered())
        if self.tracked.for_races:
            self._call_slow_path(inside)
        elif self.access.effect != shadow.LOADS:
            self._write_all()
        self.context.mask = outer

    # -------------------------------------------------------------- one element for all lanes
    def _single_element(self) -> None:
        builder = self.builder
        at = extended(builder, self.index, I64).ref
        cell = builder.element("i32", self._plane(), at, "cell")
        wrote = builder.load("i32", cell, "write.epoch")
        if self.tracked.for_unwritten and self.reads:
            early = builder.let(f"icmp ult i32 {wrote}, {self._threshold()}", "early")
            self._report_uninitialised(builder.let(f"select i1 {early}, i32 {self.context.active()}, i32 0", "raw"))
        if self.tracked.for_races:
            slow = "true"
            if self.access.effect == shadow.LOADS and not self.tracked.atomic and not self.alternate:
                slow = call_fast_path(self.context, Elements.SINGLE, False, self.tracked, [at])
            self._slow_path_if(slow)
        elif self.access.effect != shadow.LOADS:
            builder.store("i32", state(self.context, shadow.FOREIGN, "now"), cell)

    # -------------------------------------------------------------- one element per lane
    def _lanes(self) -> None:
        builder, writes = self.builder, self.access.effect != shadow.LOADS
        if (self.tracked.atomic or self.alternate) and self.tracked.for_races:
            if self.tracked.for_unwritten and self.reads:
                self._check_uninitialised(self._gathered())
            self._slow_path_if("true")
            return
        row = self._row()
        wrote = self._loaded(row) if row else self._gathered()
        if not self.tracked.for_races:
            if self.tracked.for_unwritten and self.reads:
                self._check_uninitialised(wrote)
            if writes:
                self._write_all(row)
            return
        threads = builder.let(
            f"add {V} {broadcast(builder, 'i32', builder.let(f'shl i32 {self.context.warp}, 5'))}, {vector('i32', IOTA)}",
            "own",
        )
        now = state(self.context, shadow.NOW, "now")
        mine = builder.let(
            f"and {V} {builder.let(f'xor {V} {wrote}, {threads}')}, {splat('i32', shadow.THREAD)}", "other"
        )
        mine = builder.let(f"icmp eq {V} {mine}, zeroinitializer", "same.thread")
        late = builder.let(f"icmp uge {V} {wrote}, {broadcast(builder, 'i32', now)}", "late")
        owned = builder.let(f"and {many('i1')} {mine}, {late}", "owned")
        owned = builder.let(f"bitcast {many('i1')} {owned} to i32", "owned")
        rest = builder.let(f"and i32 {builder.let(f'xor i32 {owned}, -1', 'rest')}, {self.context.active()}", "rest")
        with builder.when_any(rest, "foreign"):
            if self.tracked.for_unwritten and self.reads:
                self._check_uninitialised(wrote)
            call_arguments = [row or self._positions(), wrote, threads, rest]
            which = Elements.ROW if row else Elements.ANY
            slow = call_fast_path(self.context, which, writes, self.tracked, call_arguments, self.access.number)
            self._slow_path_if(slow)

    # -------------------------------------------------------------- epochs in shadow memory
    def _plane(self, number: int = 0) -> str:
        base = f"%.tracked{self.tracked.number}"
        if number == 0:
            return base
        size = self.builder.let(f"mul i64 {base}.size, {number}", "plane")
        return self.builder.element("i32", base, size, "plane")

    def _row(self) -> str:
        """Return the first element if the lanes access consecutive ones, else an empty string."""
        builder, array = self.builder, self.array
        if array.type.space == "local":
            if not self.index.uniform:
                return ""
            first = extended(builder, Value(self.index.type, self.index.ref, "0", self.index.constant), I64).ref
            own = builder.let(f"mul i64 {builder.let(f'zext i32 {self.context.warp} to i64')}, {array.length}", "own")
            return builder.let(f"shl i64 {builder.let(f'add i64 {first}, {own}')}, 5", "row")
        if self.index.step != 1:
            return ""
        return extended(builder, Value(self.index.type, self.index.ref), I64).ref

    def _positions(self) -> str:
        """Return <32 x i64>: the index of each lane's epoch in the plane."""
        builder = self.builder
        at = lanes(builder, elements.wide(self.context, self.index))
        if self.array.type.space != "local":
            return at
        own = builder.let(f"mul i64 {builder.let(f'zext i32 {self.context.warp} to i64')}, {self.array.length}", "own")
        at = builder.let(f"add {W} {at}, {broadcast(builder, 'i64', own)}", "row")
        at = builder.let(f"shl {W} {at}, {splat('i64', 5)}", "row")
        return builder.let(f"add {W} {at}, {vector('i64', IOTA)}", "cell")

    def _loaded(self, row: str) -> str:
        return self.builder.load(V, self.builder.element("i32", self._plane(), row, "cells"), "write.epoch", 4)

    def _gathered(self) -> str:
        builder = self.builder
        pointers = builder.let(f"getelementptr i32, ptr {self._plane()}, {W} {self._positions()}", "cells")
        mask = chosen(builder, self.context.active())
        arguments = ((many("ptr"), pointers), (many("i1"), mask), (V, "zeroinitializer"))
        return builder.call(V, "llvm.masked.gather.v32i32.v32p0", *arguments, hint="write.epoch")

    def _write_all(self, row: str = "") -> None:
        """Record a write by the active lanes; without the race checker the thread is irrelevant."""
        builder = self.builder
        epoch = broadcast(builder, "i32", state(self.context, shadow.FOREIGN, "now"))
        mask = chosen(builder, self.context.active())
        if row:
            cells = builder.element("i32", self._plane(), row, "cells")
            builder.call("void", "llvm.masked.store.v32i32.p0", (V, epoch), ("ptr", cells), (many("i1"), mask))
            return
        pointers = builder.let(f"getelementptr i32, ptr {self._plane()}, {W} {self._positions()}", "cells")
        builder.call(
            "void", "llvm.masked.scatter.v32i32.v32p0", (V, epoch), (many("ptr"), pointers), (many("i1"), mask)
        )

    # -------------------------------------------------------------- uninitialised reads
    def _threshold(self) -> str:
        lasting = self.array.type.space == "global" or self.context.frame is not None
        return "1" if lasting else state(self.context, shadow.FOREIGN, "begin")

    def _check_uninitialised(self, wrote: str) -> None:
        builder = self.builder
        early = builder.let(f"icmp ult {V} {wrote}, {broadcast(builder, 'i32', self._threshold())}", "early")
        early = builder.let(f"bitcast {many('i1')} {early} to i32", "early")
        self._report_uninitialised(builder.let(f"and i32 {early}, {self.context.active()}", "raw"))

    def _report_uninitialised(self, mask: str) -> None:
        node, array, tracked, builder = self.node, self.array, self.tracked, self.builder

        def describe(place: str, request: Request, message_values: Sequence[Number]) -> Diagnostic:
            at, forms, persistent = int(message_values[0]), request.forms, request.is_persistent(node.array)
            return uninitialised.read(tracked.kernel, node.span, node.array, array.type, at, place, forms, persistent)

        with builder.when_any(mask, "unwritten", rarely=True):
            record = self.context.records.record("uninitialised", self.site, [self.own_index.type], describe)
            record_fault(self.context, record, mask, [self.own_index])

    # -------------------------------------------------------------- the slow path
    def _slow_path_if(self, needed: str) -> None:
        """Take the slow path if an i1 is true. That of a compare-and-swap depends on its result: see `swapped`."""
        builder = self.builder
        if isinstance(self.node, ir.CompareSwap):
            return
        with builder.when(needed, "exactly"):
            self._call_slow_path(self.context.active())

    def swapped(self, expected: Value, old: Value) -> None:
        """Check a compare-and-swap, given its operand and its result: the lanes whose swap fails only read."""
        if not self.tracked.for_races:
            return
        builder, element = self.builder, many(scalar_type(old.type))
        same = builder.let(f"icmp eq {element} {lanes(builder, old)}, {lanes(builder, expected)}", "same")
        same = builder.let(f"bitcast {many('i1')} {same} to i32", "same")
        swapped_lanes = builder.let(f"and i32 {same}, {self.context.active()}", "done")
        failed = builder.let(f"xor i32 {swapped_lanes}, {self.context.active()}", "failed")
        failure = AccessId(self.context.plan.failures[self.site], self.access.effect)
        for mask, access in ((swapped_lanes, self.access), (failed, failure)):
            with builder.when_any(mask, "some"):
                self._call_slow_path(mask, access)

    def _call_slow_path(self, mask: str, access: AccessId | None = None) -> None:
        """Call the function of the module for the slow path. access: of a compare-and-swap, that of its result."""
        access = access or self.access
        builder, tracked = self.builder, self.tracked
        stored = [(many(scalar_type(v.type)), lanes(builder, v)) for v in self.stored_values]
        name = "_".join(
            str(part) for part in ("define", self.array.type.space, self.array.type.element, *["store"] * bool(stored))
        )
        if self.unit.type.element != self.array.type.element:
            name += f"_by_{self.unit.type.element}"
        if self.unit.cell > 1:
            name += f"_cells_of_{self.unit.cell}"
        if self.unit.blocks is not None:
            name += "_of_block"
            stored.insert(0, (W, lanes(builder, elements.place(self.context, self.unit, self.unit_index))))
        if self.tracked.units > 1:
            name += f"_in_{self.tracked.units}"
        self.context.helper(name, lambda: self._slow_path(name))
        at = (W, lanes(builder, elements.wide(self.context, self.index)))
        fixed = (("ptr", "%.shadow"), ("i64", str(tracked.number)), ("i64", str(access.number)))
        builder.call("void", name, *fixed, ("ptr", self.unit.base), at, ("i32", mask), *stored)

    def _slow_path(self, name: str) -> str:
        """Return the text of the function: it stores elements and values in a buffer and calls `detect.access`."""
        builder, array = FunctionBuilder(), replace(self.unit, base="%base")
        inner = replace(self.context, builder=builder, buffers={}, mask="%mask")
        lanes_stored = [Value(v.type, f"%given{n}", None) for n, v in enumerate(self.stored_values)]
        parameters = [
            "ptr %.shadow", "i64 %number", "i64 %access_id", "ptr %base", f"{W} %at", "i32 %mask",
            *([f"{W} %place"] if self.unit.blocks is not None else []),
            *(f"{many(scalar_type(v.type))} {v.ref}" for v in lanes_stored),
        ]  # fmt: skip
        builder.reserve(*(p.rsplit("%", 1)[1] for p in parameters))
        _look_up(builder, ["access.of"], list(FUNCTIONS).index("access"))
        _look_up(builder, ARRAYS, len(FUNCTIONS))
        buffer = builder.slot(f"[{1 + 2 * len(lanes_stored)} x {W}]", "lanes")
        builder.store(W, "%at", buffer)
        shift = splat("i64", self.ratio.bit_length() - 1)
        at = "%at" if self.ratio == 1 else builder.let(f"lshr {W} %at, {shift}", "unit")
        at = at if self.unit.blocks is None else "%place"
        old_values = elements.gather(inner, array, Value(I64, at, None), "%mask") if lanes_stored else []
        for number, value in enumerate((*lanes_stored, *old_values)):
            builder.store(W, _as_bits(inner, value), builder.element(W, buffer, 1 + number))
        rest = (
            ("i64", "%number"),
            ("i64", "%access_id"),
            ("i32", "%mask"),
            ("ptr", buffer),
            ("i64", str(len(lanes_stored))),
        )
        _call(builder, "access", *rest)
        self.context.builder.declared |= builder.declared
        lines = "\n".join([*builder.slots, *builder.lines, "  ret void"])
        return f"define internal void @{name}({', '.join(parameters)}) #2 {{\n.entry:\n{lines}\n}}"


def _as_bits(context: CodegenContext, value: Value) -> str:
    """Return the bits of a value as <32 x i64>."""
    builder, element = context.builder, scalar_type(value.type)
    ref = lanes(builder, value)
    if value.type.is_float:
        ref = builder.let(f"bitcast {many(element)} {ref} to {many(f'i{value.type.bits}')}", "bits")
    return ref if value.type.bits == 64 else builder.let(f"zext {many(f'i{value.type.bits}')} {ref} to {W}", "bits")
