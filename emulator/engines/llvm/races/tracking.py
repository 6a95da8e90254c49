"""Accesses to arrays whose history is kept, as compiled code holds them against it.

What is common is answered here and quickly: a warp whose threads go on with words they wrote, lanes whose words
nobody else touched since the last barrier. Whatever may be a finding, and whatever is rare, goes to the definition
(`observe.races`), which is called by address. Both leave the history in the same state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ....errors import Diagnostic
from ....ir import nodes as ir
from ....ir.walk import effect, statements
from ....language.types import I64
from ....runtime.engine import Request
from ....sanitizer import uninitialised
from ....sanitizer.races import shadow
from ....sanitizer.tracking import Tracked
from ..builder import IOTA, Page, many, scalar_type, splat, vector
from ..fault_records import Number, note
from ..memory import elements
from ..operations import extended
from ..segments import STATEMENTS, Node
from ..values import Value, broadcast, chosen, lanes
from .fast_path import recall

if TYPE_CHECKING:
    from ..context import Build, Memory

FUNCTIONS = ("begin_block", "barrier", "fence", "join", "access")
"""In the order of their addresses in the table."""
ARRAYS = shadow.RaceState._fields
V, W = many("i32"), many("i64")


# ------------------------------------------------------------------ what the kernel knows of the history
def enter(build: Build) -> None:
    """At the start of the kernel: where everything is."""
    page = build.page

    def found(number: int, name: str, type: str = "ptr") -> None:
        page.do(f"%.{name}.at = getelementptr i64, ptr %.shadow, i64 {number}")
        page.do(f"%.{name} = load {type}, ptr %.{name}.at")

    for number, name in enumerate(FUNCTIONS):
        found(number, f"shadow.{name}.of")
    for number, name in enumerate(ARRAYS):
        if name in ("state", "log", "timestamp", "epochs", "places", "joined", "full"):
            found(len(FUNCTIONS) + 2 * number, f"shadow.{name}")
    for tracked in build.plan.tracked.values():
        for column, what in enumerate(("start", "size")):
            at = page.element("i64", "%.shadow.places", 4 * tracked.number + column)
            page.do(f"%.tracked{tracked.number}.{what} = load i64, ptr {at}")
        start = f"%.tracked{tracked.number}.start"
        page.do(f"%.tracked{tracked.number} = getelementptr i32, ptr %.shadow.epochs, i64 {start}")


def names(build: Build) -> list[str]:
    """What `enter` defines."""
    found = [f".shadow.{name}{end}" for name in ARRAYS for end in ("", ".at")]
    found += [f".shadow.{name}.of{end}" for name in FUNCTIONS for end in ("", ".at")]
    return found + [f".tracked{f.number}{end}" for f in build.plan.tracked.values() for end in ("", ".start", ".size")]


def happens(build: Build, function: str, *arguments: tuple[str, str]) -> None:
    """Tell the history that the block or the warp goes on."""
    if build.plan.tracked:
        given = "".join(f", {type} {value}" for type, value in arguments)
        build.page.do(f"call void %.shadow.{function}.of(ptr %.shadow{given})")


def turn(build: Build) -> None:
    """`history.resume_warp` of the build's warp."""
    page = build.page

    def number(which: int) -> str:
        return page.load("i64", page.element("i64", "%.shadow.state", which))

    def put(which: int, value: str) -> None:
        page.store("i64", value, page.element("i64", "%.shadow.state", which))

    put(shadow.WARP, page.let(f"zext i32 {build.warp} to i64"))
    put(shadow.FRESH, number(shadow.LENGTH))
    joined = page.load("i32", page.element("i32", "%.shadow.joined", build.warp, width="i32"), "joined")
    joined = page.let(f"zext i32 {joined} to i64", "joined")
    put(shadow.NOW, page.intrinsic("llvm.smax", "i64", number(shadow.PHASE), joined, hint="now"))


def concerns(build: Build, nodes: Sequence[Node]) -> bool:
    """Whether statements do what a history is told, if one is kept."""
    if not build.plan.tracked:
        return False
    for stmt in statements(tuple(n for n in nodes if isinstance(n, STATEMENTS))):
        done = effect(stmt) or stmt
        if isinstance(stmt, ir.WarpBarrier | ir.Fence) or getattr(done, "array", None) in build.plan.tracked:
            return True
    return False


def state(build: Build, which: int, hint: str) -> str:
    """A number of the history's state, as a u32."""
    return build.page.load("i32", build.page.element("i64", "%.shadow.state", which), hint)


# ------------------------------------------------------------------ one access
class AccessTracker:
    """Holds one access against its array's history, before it is done."""

    def __init__(
        self, build: Build, node: ir.Load | ir.Store | ir.Atomic | ir.CompareSwap, site: int, access_id: int, memory: Memory,
        index: Value, given: Sequence[Value],
    ) -> None:  # fmt: skip
        tracked = build.plan.tracked.get(node.array)
        assert tracked is not None
        self.build, self.page, self.node, self.site, self.access_id = build, build.page, node, site, access_id
        self.tracked: Tracked = tracked
        self.memory, self.index = memory, index
        self.given = given if access_id & 3 == shadow.STORES else ()
        self.reads = access_id & 3 == shadow.LOADS or (
            access_id & 3 == shadow.ATOMICS and memory.type.space == "shared"
        )

    def inside(self) -> None:
        """All active lanes are inside the array."""
        if elements.one_for_all(self.memory, self.index):
            self._one()
        else:
            self._lanes()

    def beside(self, inside: str) -> None:
        """Only the lanes of a mask are inside."""
        outer, self.build.mask = self.build.mask, inside
        if self.tracked.for_unwritten and self.reads:
            self._unwritten(self._gathered())
        if self.tracked.for_races:
            self._define(inside)
        elif self.access_id & 3 != shadow.LOADS:
            self._write_all()
        self.build.mask = outer

    # -------------------------------------------------------------- one element for all lanes
    def _one(self) -> None:
        page = self.page
        at = extended(page, self.index, I64).ref
        cell = page.element("i32", self._plane(), at, "cell")
        wrote = page.load("i32", cell, "wrote")
        if self.tracked.for_unwritten and self.reads:
            early = page.let(f"icmp ult i32 {wrote}, {self._threshold()}", "early")
            self._raw(page.let(f"select i1 {early}, i32 {self.build.active()}, i32 0", "raw"))
        if self.tracked.for_races:
            quick = self.access_id & 3 == shadow.LOADS and not self.tracked.atomic
            ask = recall(self.build, "one", self.tracked, [("i64", at)]) if quick else "true"
            self._unless(ask)
        elif self.access_id & 3 != shadow.LOADS:
            page.store("i32", state(self.build, shadow.FOREIGN, "now"), cell)

    # -------------------------------------------------------------- one element a lane
    def _lanes(self) -> None:
        page, kind = self.page, self.access_id & 3
        if self.tracked.atomic and self.tracked.for_races:
            if self.tracked.for_unwritten and self.reads:
                self._unwritten(self._gathered())
            self._define(self.build.active())
            return
        row = self._row()
        wrote = self._loaded(row) if row else self._gathered()
        if not self.tracked.for_races:
            if self.tracked.for_unwritten and self.reads:
                self._unwritten(wrote)
            if kind != shadow.LOADS:
                self._write_all(row)
            return
        threads = page.let(
            f"add {V} {broadcast(page, 'i32', page.let(f'shl i32 {self.build.warp}, 5'))}, {vector('i32', IOTA)}", "own"
        )
        now = state(self.build, shadow.NOW, "now")
        mine = page.let(f"and {V} {page.let(f'xor {V} {wrote}, {threads}')}, {splat('i32', shadow.THREAD)}", "other")
        mine = page.let(f"icmp eq {V} {mine}, zeroinitializer", "mine")
        late = page.let(f"icmp uge {V} {wrote}, {broadcast(page, 'i32', now)}", "late")
        owned = page.let(f"and {many('i1')} {mine}, {late}", "owned")
        owned = page.let(f"bitcast {many('i1')} {owned} to i32", "owned")
        rest = page.let(f"and i32 {page.let(f'xor i32 {owned}, -1', 'rest')}, {self.build.active()}", "rest")
        other, done = page.label("foreign"), page.label("tracked")
        page.branch(page.let(f"icmp eq i32 {rest}, 0", "own"), done, other)
        page.place(other)
        if self.tracked.for_unwritten and self.reads:
            self._unwritten(wrote)
        word = "read" if kind == shadow.LOADS else "write"
        distinct = "row" if row else "each"
        where = ("i64", row) if row else (W, self._positions())
        ask = recall(
            self.build,
            f"{word}_{distinct}",
            self.tracked,
            [where, (V, wrote), (V, threads), ("i32", rest)],
            self.access_id,
        )
        self._unless(ask)
        page.jump(done)
        page.place(done)

    # -------------------------------------------------------------- epochs
    def _plane(self, number: int = 0) -> str:
        base = f"%.tracked{self.tracked.number}"
        if number == 0:
            return base
        size = self.page.let(f"mul i64 {base}.size, {number}", "plane")
        return self.page.element("i32", base, size, "plane")

    def _row(self) -> str:
        """The first element where the lanes' elements follow each other, else empty."""
        page, memory = self.page, self.memory
        if memory.type.space == "local":
            if not self.index.uniform:
                return ""
            first = extended(page, Value(self.index.type, self.index.ref, "0", self.index.constant), I64).ref
            own = page.let(f"mul i64 {page.let(f'zext i32 {self.build.warp} to i64')}, {memory.length}", "own")
            return page.let(f"shl i64 {page.let(f'add i64 {first}, {own}')}, 5", "row")
        if self.index.step != 1:
            return ""
        return extended(page, Value(self.index.type, self.index.ref), I64).ref

    def _positions(self) -> str:
        """<32 x i64>: where each lane's epoch is in the plane."""
        page = self.page
        at = lanes(page, elements.wide(self.build, self.index))
        if self.memory.type.space != "local":
            return at
        own = page.let(f"mul i64 {page.let(f'zext i32 {self.build.warp} to i64')}, {self.memory.length}", "own")
        at = page.let(f"add {W} {at}, {broadcast(page, 'i64', own)}", "row")
        at = page.let(f"shl {W} {at}, {splat('i64', 5)}", "row")
        return page.let(f"add {W} {at}, {vector('i64', IOTA)}", "cell")

    def _loaded(self, row: str) -> str:
        return self.page.load(V, self.page.element("i32", self._plane(), row, "cells"), "wrote", 4)

    def _gathered(self) -> str:
        page = self.page
        pointers = page.let(f"getelementptr i32, ptr {self._plane()}, {W} {self._positions()}", "cells")
        mask = chosen(page, self.build.active())
        arguments = ((many("ptr"), pointers), (many("i1"), mask), (V, "zeroinitializer"))
        return page.call(V, "llvm.masked.gather.v32i32.v32p0", *arguments, hint="wrote")

    def _write_all(self, row: str = "") -> None:
        """Note that the active lanes write; by whom does not matter."""
        page = self.page
        epoch, mask = (
            broadcast(page, "i32", state(self.build, shadow.FOREIGN, "now")),
            chosen(page, self.build.active()),
        )
        if row:
            cells = page.element("i32", self._plane(), row, "cells")
            page.call("void", "llvm.masked.store.v32i32.p0", (V, epoch), ("ptr", cells), (many("i1"), mask))
            return
        pointers = page.let(f"getelementptr i32, ptr {self._plane()}, {W} {self._positions()}", "cells")
        page.call("void", "llvm.masked.scatter.v32i32.v32p0", (V, epoch), (many("ptr"), pointers), (many("i1"), mask))

    # -------------------------------------------------------------- what nobody wrote
    def _threshold(self) -> str:
        return str(shadow.ONE) if self.memory.type.space == "global" else state(self.build, shadow.FOREIGN, "begin")

    def _unwritten(self, wrote: str) -> None:
        page = self.page
        early = page.let(f"icmp ult {V} {wrote}, {broadcast(page, 'i32', self._threshold())}", "early")
        early = page.let(f"bitcast {many('i1')} {early} to i32", "early")
        self._raw(page.let(f"and i32 {early}, {self.build.active()}", "raw"))

    def _raw(self, mask: str) -> None:
        node, memory, tracked, page = self.node, self.memory, self.tracked, self.page

        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            return uninitialised.read(tracked.kernel, node.span, node.array, memory.type, int(found[0]), place)

        bad, good = page.label("unwritten"), page.label("written")
        page.branch(page.let(f"icmp eq i32 {mask}, 0", "fine"), good, bad, rarely=True)
        page.place(bad)
        record = self.build.records.record("uninitialised", self.site, [self.index.type], tell)
        note(self.build, record, mask, [self.index])
        page.jump(good)
        page.place(good)

    # -------------------------------------------------------------- the definition
    def _unless(self, ask: str) -> None:
        """Go to the definition if the quick answer was no."""
        page = self.page
        slow, on = page.label("exactly"), page.label("on")
        page.branch(ask, slow, on)
        page.place(slow)
        self._define(self.build.active())
        page.jump(on)
        page.place(on)

    def _define(self, mask: str) -> None:
        """Call `races.access`, aside."""
        page, tracked = self.page, self.tracked
        stored = [(many(scalar_type(v.type)), lanes(page, v)) for v in self.given]
        name = "_".join(
            str(part)
            for part in ("define", self.memory.type.space, self.memory.type.element, *["store"] * bool(stored))
        )
        self.build.rule(name, lambda: self._definition(name))
        at = (W, lanes(page, elements.wide(self.build, self.index)))
        fixed = (
            ("ptr", "%.shadow"),
            ("ptr", "%.shadow.access.of"),
            ("i64", str(tracked.number)),
            ("i64", str(self.access_id)),
        )
        page.call("void", name, *fixed, ("ptr", self.memory.base), at, ("i32", mask), *stored)

    def _definition(self, name: str) -> str:
        page, memory = Page(), replace(self.memory, base="%base")
        inner = replace(self.build, page=page, buffers={}, mask="%mask")
        given = [Value(v.type, f"%given{n}", None) for n, v in enumerate(self.given)]
        parameters = [
            "ptr %race_state", "ptr %access", "i64 %number", "i64 %access_id", "ptr %base", f"{W} %at", "i32 %mask",
            *(f"{many(scalar_type(v.type))} {v.ref}" for v in given),
        ]  # fmt: skip
        page.reserve(*(p.rsplit("%", 1)[1] for p in parameters))
        buffer = page.slot(f"[{1 + 2 * len(given)} x {W}]", "lanes")
        page.store(W, "%at", buffer)
        found = elements.gather(inner, memory, Value(I64, "%at", None), "%mask") if given else []
        for number, value in enumerate((*given, *found)):
            page.store(W, _as_bits(inner, value), page.element(W, buffer, 1 + number))
        page.do(
            f"call void %access(ptr %race_state, i64 %number, i64 %access_id, i32 %mask, ptr {buffer}, i64 {len(given)})"
        )
        self.build.page.declared |= page.declared
        lines = "\n".join([*page.slots, *page.lines, "  ret void"])
        return f"define internal void @{name}({', '.join(parameters)}) #2 {{\n.entry:\n{lines}\n}}"


def _as_bits(build: Build, value: Value) -> str:
    """The bits of a value as <32 x i64>."""
    page, element = build.page, scalar_type(value.type)
    ref = lanes(page, value)
    if value.type.is_float:
        ref = page.let(f"bitcast {many(element)} {ref} to {many(f'i{value.type.bits}')}", "bits")
    return ref if value.type.bits == 64 else page.let(f"zext {many(f'i{value.type.bits}')} {ref} to {W}", "bits")
