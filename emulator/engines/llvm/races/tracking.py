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
from ....llvm.builder import IOTA, Page, many, scalar_type, splat, vector
from ....llvm.operations import extended
from ....llvm.values import Value, broadcast, chosen, lanes
from ....runtime.engine import Request
from ....sanitizer import uninitialised
from ....sanitizer.races import shadow as past
from ....sanitizer.tracking import Followed
from ..fault_records import Number, note
from ..memory import elements
from ..segments import STATEMENTS, Node
from .fast_path import recall

if TYPE_CHECKING:
    from ..context import Build, Memory

FUNCTIONS = ("begin_block", "barrier", "fence", "join", "access")
"""In the order of their addresses in the table."""
ARRAYS = past.History._fields
V, W = many("i32"), many("i64")


# ------------------------------------------------------------------ what the kernel knows of the history
def enter(build: Build) -> None:
    """At the start of the kernel: where everything is."""
    page = build.page

    def found(number: int, name: str, type: str = "ptr") -> None:
        page.do(f"%.{name}.at = getelementptr i64, ptr %.past, i64 {number}")
        page.do(f"%.{name} = load {type}, ptr %.{name}.at")

    for number, name in enumerate(FUNCTIONS):
        found(number, f"past.{name}.of")
    for number, name in enumerate(ARRAYS):
        if name in ("state", "log", "moment", "stamps", "places", "joined", "full"):
            found(len(FUNCTIONS) + 2 * number, f"past.{name}")
    for follow in build.plan.followed.values():
        for column, what in enumerate(("start", "size")):
            at = page.element("i64", "%.past.places", 4 * follow.number + column)
            page.do(f"%.followed{follow.number}.{what} = load i64, ptr {at}")
        start = f"%.followed{follow.number}.start"
        page.do(f"%.followed{follow.number} = getelementptr i32, ptr %.past.stamps, i64 {start}")


def names(build: Build) -> list[str]:
    """What `enter` defines."""
    found = [f".past.{name}{end}" for name in ARRAYS for end in ("", ".at")]
    found += [f".past.{name}.of{end}" for name in FUNCTIONS for end in ("", ".at")]
    return found + [
        f".followed{f.number}{end}" for f in build.plan.followed.values() for end in ("", ".start", ".size")
    ]


def happens(build: Build, function: str, *arguments: tuple[str, str]) -> None:
    """Tell the history that the block or the warp goes on."""
    if build.plan.followed:
        given = "".join(f", {type} {value}" for type, value in arguments)
        build.page.do(f"call void %.past.{function}.of(ptr %.past{given})")


def turn(build: Build) -> None:
    """`history.begin_turn` of the build's warp."""
    page = build.page

    def number(which: int) -> str:
        return page.load("i64", page.element("i64", "%.past.state", which))

    def put(which: int, value: str) -> None:
        page.store("i64", value, page.element("i64", "%.past.state", which))

    put(past.WARP, page.let(f"zext i32 {build.warp} to i64"))
    put(past.FRESH, number(past.LENGTH))
    joined = page.load("i32", page.element("i32", "%.past.joined", build.warp, width="i32"), "joined")
    joined = page.let(f"zext i32 {joined} to i64", "joined")
    put(past.NOW, page.intrinsic("llvm.smax", "i64", number(past.PHASE), joined, hint="now"))


def concerns(build: Build, nodes: Sequence[Node]) -> bool:
    """Whether statements do what a history is told, if one is kept."""
    if not build.plan.followed:
        return False
    for stmt in statements(tuple(n for n in nodes if isinstance(n, STATEMENTS))):
        done = effect(stmt) or stmt
        if isinstance(stmt, ir.WarpBarrier | ir.Fence) or getattr(done, "array", None) in build.plan.followed:
            return True
    return False


def state(build: Build, which: int, hint: str) -> str:
    """A number of the history's state, as a u32."""
    return build.page.load("i32", build.page.element("i64", "%.past.state", which), hint)


# ------------------------------------------------------------------ one access
class Follower:
    """Holds one access against its array's history, before it is done."""

    def __init__(
        self, build: Build, node: ir.Load | ir.Store | ir.Atomic | ir.CompareSwap, site: int, act: int, memory: Memory,
        index: Value, given: Sequence[Value],
    ) -> None:  # fmt: skip
        follow = build.plan.followed.get(node.array)
        assert follow is not None
        self.build, self.page, self.node, self.site, self.act = build, build.page, node, site, act
        self.follow: Followed = follow
        self.memory, self.index = memory, index
        self.given = given if act & 3 == past.STORES else ()
        self.reads = act & 3 != past.STORES

    def inside(self) -> None:
        """All active lanes are inside the array."""
        if elements.one_for_all(self.memory, self.index):
            self._one()
        else:
            self._lanes()

    def beside(self, inside: str) -> None:
        """Only the lanes of a mask are inside."""
        outer, self.build.mask = self.build.mask, inside
        if self.follow.raw and self.reads:
            self._unwritten(self._gathered())
        if self.follow.racy:
            self._define(inside)
        elif self.act & 3 != past.LOADS:
            self._write_all()
        self.build.mask = outer

    # -------------------------------------------------------------- one element for all lanes
    def _one(self) -> None:
        page = self.page
        at = extended(page, self.index, I64).ref
        cell = page.element("i32", self._plane(), at, "cell")
        wrote = page.load("i32", cell, "wrote")
        if self.follow.raw and self.reads:
            early = page.let(f"icmp ult i32 {wrote}, {self._threshold()}", "early")
            self._raw(page.let(f"select i1 {early}, i32 {self.build.active()}, i32 0", "raw"))
        if self.follow.racy:
            quick = self.act & 3 == past.LOADS and not self.follow.atomic
            ask = recall(self.build, "one", self.follow, [("i64", at)]) if quick else "true"
            self._unless(ask)
        elif self.act & 3 != past.LOADS:
            page.store("i32", state(self.build, past.FOREIGN, "now"), cell)

    # -------------------------------------------------------------- one element a lane
    def _lanes(self) -> None:
        page, kind = self.page, self.act & 3
        if self.follow.atomic and self.follow.racy:
            if self.follow.raw and self.reads:
                self._unwritten(self._gathered())
            self._define(self.build.active())
            return
        row = self._row()
        wrote = self._loaded(row) if row else self._gathered()
        if not self.follow.racy:
            if self.follow.raw and self.reads:
                self._unwritten(wrote)
            if kind != past.LOADS:
                self._write_all(row)
            return
        threads = page.let(
            f"add {V} {broadcast(page, 'i32', page.let(f'shl i32 {self.build.warp}, 5'))}, {vector('i32', IOTA)}", "own"
        )
        now = state(self.build, past.NOW, "now")
        mine = page.let(f"and {V} {page.let(f'xor {V} {wrote}, {threads}')}, {splat('i32', past.THREAD)}", "other")
        mine = page.let(f"icmp eq {V} {mine}, zeroinitializer", "mine")
        late = page.let(f"icmp uge {V} {wrote}, {broadcast(page, 'i32', now)}", "late")
        owned = page.let(f"and {many('i1')} {mine}, {late}", "owned")
        owned = page.let(f"bitcast {many('i1')} {owned} to i32", "owned")
        rest = page.let(f"and i32 {page.let(f'xor i32 {owned}, -1', 'rest')}, {self.build.active()}", "rest")
        other, done = page.label("foreign"), page.label("followed")
        page.branch(page.let(f"icmp eq i32 {rest}, 0", "own"), done, other)
        page.place(other)
        if self.follow.raw and self.reads:
            self._unwritten(wrote)
        word = "read" if kind == past.LOADS else "write"
        distinct = "row" if row else "each"
        where = ("i64", row) if row else (W, self._positions())
        ask = recall(
            self.build, f"{word}_{distinct}", self.follow, [where, (V, wrote), (V, threads), ("i32", rest)], self.act
        )
        self._unless(ask)
        page.jump(done)
        page.place(done)

    # -------------------------------------------------------------- stamps
    def _plane(self, number: int = 0) -> str:
        base = f"%.followed{self.follow.number}"
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
        """<32 x i64>: where each lane's stamp is in the plane."""
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
        stamp, mask = broadcast(page, "i32", state(self.build, past.FOREIGN, "now")), chosen(page, self.build.active())
        if row:
            cells = page.element("i32", self._plane(), row, "cells")
            page.call("void", "llvm.masked.store.v32i32.p0", (V, stamp), ("ptr", cells), (many("i1"), mask))
            return
        pointers = page.let(f"getelementptr i32, ptr {self._plane()}, {W} {self._positions()}", "cells")
        page.call("void", "llvm.masked.scatter.v32i32.v32p0", (V, stamp), (many("ptr"), pointers), (many("i1"), mask))

    # -------------------------------------------------------------- what nobody wrote
    def _threshold(self) -> str:
        return str(past.ONE) if self.memory.type.space == "global" else state(self.build, past.FOREIGN, "begin")

    def _unwritten(self, wrote: str) -> None:
        page = self.page
        early = page.let(f"icmp ult {V} {wrote}, {broadcast(page, 'i32', self._threshold())}", "early")
        early = page.let(f"bitcast {many('i1')} {early} to i32", "early")
        self._raw(page.let(f"and i32 {early}, {self.build.active()}", "raw"))

    def _raw(self, mask: str) -> None:
        node, memory, follow, page = self.node, self.memory, self.follow, self.page

        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            return uninitialised.read(follow.kernel, node.span, node.array, memory.type, int(found[0]), place)

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
        page, follow = self.page, self.follow
        stored = [(many(scalar_type(v.type)), lanes(page, v)) for v in self.given]
        name = "_".join(
            str(part)
            for part in ("define", self.memory.type.space, self.memory.type.element, *["store"] * bool(stored))
        )
        self.build.rule(name, lambda: self._definition(name))
        at = (W, lanes(page, elements.wide(self.build, self.index)))
        fixed = (("ptr", "%.past"), ("ptr", "%.past.access.of"), ("i64", str(follow.number)), ("i64", str(self.act)))
        page.call("void", name, *fixed, ("ptr", self.memory.base), at, ("i32", mask), *stored)

    def _definition(self, name: str) -> str:
        page, memory = Page(), replace(self.memory, base="%base")
        inner = replace(self.build, page=page, buffers={}, mask="%mask")
        given = [Value(v.type, f"%given{n}", None) for n, v in enumerate(self.given)]
        parameters = [
            "ptr %past", "ptr %access", "i64 %number", "i64 %act", "ptr %base", f"{W} %at", "i32 %mask",
            *(f"{many(scalar_type(v.type))} {v.ref}" for v in given),
        ]  # fmt: skip
        page.reserve(*(p.rsplit("%", 1)[1] for p in parameters))
        buffer = page.slot(f"[{1 + 2 * len(given)} x {W}]", "lanes")
        page.store(W, "%at", buffer)
        found = elements.gather(inner, memory, Value(I64, "%at", None), "%mask") if given else []
        for number, value in enumerate((*given, *found)):
            page.store(W, _as_bits(inner, value), page.element(W, buffer, 1 + number))
        page.do(f"call void %access(ptr %past, i64 %number, i64 %act, i32 %mask, ptr {buffer}, i64 {len(given)})")
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
