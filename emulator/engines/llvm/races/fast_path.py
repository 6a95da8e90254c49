"""The common cases of `observe.races.access` as functions of the module: nothing clashes, and the history is kept up.

Each returns whether the definition must be asked, which then finds everything as it was. `row`: the lanes' elements
follow each other; `each`: they are anywhere; `one`: all lanes read one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ....sanitizer.races import shadow
from ....sanitizer.tracking import Tracked
from ..builder import Page, many, splat
from ..counters.rules import function
from ..values import broadcast, chosen

if TYPE_CHECKING:
    from ..context import Build

V, B = many("i32"), many("i1")
COMMON = (
    ("ptr", "state"), ("ptr", "full"), ("ptr", "timestamps"), ("ptr", "log"), ("ptr", "cells"),
    ("i64", "size"), ("i32", "warp"), ("i64", "access_id"),
)  # fmt: skip
OF_WARP = shadow.THREAD & ~31


def recall(build: Build, word: str, tracked: Tracked, given: Sequence[tuple[str, str]], access_id: int = 0) -> str:
    """Call one of the functions; whether to ask the definition, an i1."""
    page, shared = build.page, build.plan.types[tracked.name].space == "shared"
    warp_synchronous = build.options.device.warp_synchronous
    name = f"recall_{word}{'_shared' if shared else ''}"
    own = [("at",)] if word == "one" else [("where",), ("wrote",), ("own",), ("rest",)]
    parameters = [*COMMON, *((type, label) for (type, _), (label,) in zip(given, own, strict=True))]

    def body(inner: Page) -> str:
        inner.reserve(*(label for _, label in parameters))
        found = _Recall(inner, shared, warp_synchronous)
        return found.one() if word == "one" else found.answer(word)

    text = ", ".join(f"{type} %{label}" for type, label in parameters)
    build.rule(name, lambda: function(build, "i1", name, text, body))
    base = f"%.tracked{tracked.number}"
    fixed = [
        "%.shadow.state", "%.shadow.full", "%.shadow.timestamp", "%.shadow.log", base, f"{base}.size", build.warp, str(access_id),
    ]  # fmt: skip
    arguments = [*((type, value) for (type, _), value in zip(COMMON, fixed, strict=True)), *given]
    return page.call("i1", name, *arguments, hint="ask")


@dataclass
class _Recall:
    """One function being printed."""

    page: Page
    shared: bool
    warp_synchronous: bool
    row: bool = False

    def let(self, text: str, hint: str = "v") -> str:
        return self.page.let(text, hint)

    def state(self, which: int, hint: str) -> str:
        return self.page.load("i32", self.page.element("i64", "%state", which), hint)

    def wide(self, ref: str) -> str:
        return broadcast(self.page, "i32", ref)

    def both(self, *parts: str) -> str:
        found = parts[0]
        for part in parts[1:]:
            found = self.let(f"and {B} {found}, {part}", "both")
        return found

    def either(self, *parts: str) -> str:
        found = parts[0]
        for part in parts[1:]:
            found = self.let(f"or {B} {found}, {part}", "either")
        return found

    def no(self, part: str) -> str:
        return self.let(f"xor {B} {part}, {splat('i1', 'true')}", "not")

    def bits(self, part: str) -> str:
        return self.let(f"bitcast {B} {part} to i32", "bits")

    # -------------------------------------------------------------- what an epoch says, lane by lane
    @cached_property
    def phase(self) -> str:
        return self.wide(self.state(shadow.PHASE, "phase"))

    @cached_property
    def now(self) -> str:
        return self.wide(self.state(shadow.NOW, "now"))

    @cached_property
    def full(self) -> str:
        return self.wide(self.page.load("i32", self.page.element("i32", "%full", "%warp", width="i32"), "full"))

    @cached_property
    def before(self) -> str:
        return self.wide(self.let(f"sub i32 {self.state(shadow.FOREIGN, 'foreign')}, 1", "foreign"))

    def at_least(self, epoch: str, least: str) -> str:
        return self.let(f"icmp uge {V} {epoch}, {least}", "since")

    def foreign(self, epoch: str) -> str:
        """Of another block; never of shared memory."""
        if self.shared:
            return splat("i1", "false")
        less = self.let(f"sub {V} {epoch}, {splat('i32', 1)}", "less")  # nobody's, 0, becomes the largest
        return self.let(f"icmp ult {V} {less}, {self.before}", "foreign")

    def same(self, epoch: str, other: str, bits: int) -> str:
        differ = self.let(f"and {V} {self.let(f'xor {V} {epoch}, {other}')}, {splat('i32', bits)}", "differ")
        return self.let(f"icmp eq {V} {differ}, zeroinitializer", "same")

    def thread(self, epoch: str) -> str:
        return self.same(epoch, "%own", shadow.THREAD)

    def warp(self, epoch: str) -> str:
        return self.same(epoch, "%own", OF_WARP)

    def passed(self, epoch: str) -> str:
        """Ordered, if it is of this warp."""
        return (
            splat("i1", "true") if self.warp_synchronous else self.let(f"icmp ult {V} {epoch}, {self.full}", "passed")
        )

    def harmless(self, epoch: str) -> str:
        late = self.at_least(epoch, self.phase)
        ours = self.either(self.thread(epoch), self.both(self.warp(epoch), self.passed(epoch)))
        early = self.both(self.no(late), self.no(self.foreign(epoch)))
        return self.either(early, self.both(late, ours))

    def distances(self, epoch: str) -> tuple[str, str, str]:
        """Whether an unordered reader of another block, of another warp, of another lane."""
        late, ours = self.at_least(epoch, self.phase), self.warp(epoch)
        near = self.both(late, ours, self.no(self.thread(epoch)), self.no(self.passed(epoch)))
        return self.foreign(epoch), self.both(late, self.no(ours)), near

    def covered(self, read: str, other: str) -> str:
        recent, recently = (self.at_least(epoch, self.now) for epoch in (read, other))
        here = self.both(recent, self.warp(read))
        warps = self.both(self.at_least(other, self.phase), self.no(self.same(read, other, OF_WARP)))
        lanes = self.both(here, recently, self.no(self.same(read, other, shadow.THREAD)), self.no(warps))
        again = self.both(recent, self.thread(read))
        enough = self.either(again, warps, lanes, self.foreign(other))
        return self.both(self.at_least(read, self.phase), enough)

    # -------------------------------------------------------------- epochs in memory
    def pointer(self, plane: int) -> str:
        """Where the lanes' epochs of a plane are: the first, or all."""
        base = "%cells"
        if plane:
            base = self.page.element("i32", base, self.let(f"mul i64 %size, {plane}"), "plane")
        if self.row:
            return self.page.element("i32", base, "%where", "row")
        return self.let(f"getelementptr i32, ptr {base}, {many('i64')} %where", "each")

    def load(self, pointer: str, mask: str = "%rest") -> str:
        if self.row:
            return self.page.load(V, pointer, "epochs", 4)
        arguments = ((many("ptr"), pointer), (B, chosen(self.page, mask)), (V, "zeroinitializer"))
        return self.page.call(V, "llvm.masked.gather.v32i32.v32p0", *arguments, hint="epochs")

    def store(self, pointer: str, epochs: str, mask: str) -> None:
        to = ("ptr" if self.row else many("ptr"), pointer)
        word = "llvm.masked.store.v32i32.p0" if self.row else "llvm.masked.scatter.v32i32.v32p0"
        self.page.call("void", word, (V, epochs), to, (B, chosen(self.page, mask)))

    def require(self, holds: str) -> None:
        """Go on if it holds for all lanes that matter; else ask."""
        missing = self.let(f"and i32 {self.let(f'xor i32 {self.bits(holds)}, -1')}, %rest", "missing")
        self._return_if(self.let(f"icmp ne i32 {missing}, 0", "some"), "true")

    def _return_if(self, condition: str, value: str) -> None:
        yes, no = self.page.label("leave"), self.page.label("go.on")
        self.page.branch(condition, yes, no)
        self.page.place(yes)
        self.page.do(f"ret i1 {value}")
        self.page.place(no)

    def me(self) -> str:
        """The lanes' epochs now. Where the log of timestamps is full, asks."""
        page = self.page
        known = page.load(
            "i32", page.element("i32", "%timestamps", self.let("lshr i64 %access_id, 2", "site")), "known"
        )
        stale, fresh = page.label("stale"), page.label("fresh")
        first = page.block
        page.branch(self.let(f"icmp ult i32 {known}, {self.state(shadow.FRESH, 'fresh')}", "old"), stale, fresh)
        page.place(stale)
        new = self.state(shadow.LENGTH, "length")
        self._return_if(self.let(f"icmp eq i32 {new}, {self.state(shadow.CAPACITY, 'capacity')}"), "true")
        row = page.element("[4 x i32]", "%log", new, "row", "i32")
        access_id = self.let("trunc i64 %access_id to i32", "access_id")
        given = (
            self.state(shadow.BLOCK, "block"),
            self.state(shadow.BARRIERS, "barriers"),
            self.state(shadow.WARP, "warp"),
            access_id,
        )
        for column, value in enumerate(given):
            page.store("i32", value, page.element("i32", row, column))
        page.store("i32", new, page.element("i32", "%timestamps", self.let("lshr i64 %access_id, 2", "site")))
        page.store("i32", self.let(f"add i32 {new}, 1"), page.element("i64", "%state", shadow.LENGTH))
        second = page.block
        page.jump(fresh)
        page.place(fresh)
        timestamp = page.phi("i32", (known, first), (new, second), hint="timestamp")
        return self.let(f"or {V} {self.wide(self.let(f'shl i32 {timestamp}, {shadow.BITS}'))}, %own", "me")

    def put(self, pointer: str, old: str, new: str, mask: str) -> None:
        """Write epochs of different elements; where two lanes mean one, undo it and ask."""
        self.store(pointer, new, mask)
        if self.row:
            return
        clash = self.bits(self.let(f"icmp ne {V} {self.load(pointer, mask)}, {new}", "clash"))
        clash = self.let(f"icmp ne i32 {self.let(f'and i32 {clash}, {mask}')}, 0", "several")
        undo, on = self.page.label("undo"), self.page.label("distinct")
        self.page.branch(clash, undo, on)
        self.page.place(undo)
        self.store(pointer, old, mask)
        self.page.do("ret i1 true")
        self.page.place(on)

    # -------------------------------------------------------------- the functions
    def answer(self, word: str) -> str:
        self.row = word.endswith("row")
        self.require(self.harmless("%wrote"))
        places = [self.pointer(plane) for plane in (shadow.WRITTEN, shadow.READ, shadow.OTHER)]
        read, other = self.load(places[shadow.READ]), self.load(places[shadow.OTHER])
        if word.startswith("write"):
            self.require(self.harmless(read))
            self.require(self.harmless(other))
            self.put(places[shadow.WRITTEN], "%wrote", self.me(), "%rest")
            return "false"
        new = self.let(f"and i32 {self.bits(self.no(self.covered(read, other)))}, %rest", "new")
        self._return_if(self.let(f"icmp eq i32 {new}, 0", "known"), "false")
        self.put(places[shadow.READ], read, self.me(), new)
        far, next_, near = self.distances(read)
        other_far, other_next, _ = self.distances(other)
        nearer = self.both(near, self.no(other_far), self.no(other_next))
        take = self.either(far, self.both(next_, self.no(other_far)), nearer)
        self.store(places[shadow.OTHER], read, self.let(f"and i32 {self.bits(take)}, {new}", "moved"))
        return "false"

    def one(self) -> str:
        """All lanes read an element that was written before the last barrier and that two of them have read already."""
        page = self.page
        sizes = ["%at", self.let("add i64 %at, %size"), self.let(f"add i64 %at, {self.let('mul i64 %size, 2')}")]
        wrote, read, other = (page.load("i32", page.element("i32", "%cells", at), "epoch") for at in sizes)
        phase, now, foreign = (self.state(n, "since") for n in (shadow.PHASE, shadow.NOW, shadow.FOREIGN))
        ours = self.let("shl i32 %warp, 5")

        def test(*conditions: str) -> str:
            found = "true"
            for condition in conditions:
                found = self.let(f"and i1 {found}, {self.let(condition)}")
            return found

        def of_warp(epoch: str, word: str) -> str:
            bits = self.let(f"and i32 {self.let(f'xor i32 {epoch}, {ours}')}, {OF_WARP}")
            return f"icmp {word} i32 {bits}, 0"

        early = test(f"icmp ult i32 {wrote}, {phase}")
        if not self.shared:
            before, less = (self.let(f"sub i32 {n}, 1") for n in (foreign, wrote))
            early = self.let(f"and i1 {early}, {test(f'icmp uge i32 {less}, {before}')}")
        here = test(f"icmp uge i32 {read}, {phase}")
        differ = self.let(f"xor i32 {read}, {other}")
        warps, lanes = (self.let(f"and i32 {differ}, {bits}") for bits in (OF_WARP, shadow.THREAD))
        apart = test(f"icmp uge i32 {other}, {phase}", f"icmp ne i32 {warps}, 0")
        both_now = (f"icmp uge i32 {read}, {now}", f"icmp uge i32 {other}, {now}")
        beside = test(*both_now, of_warp(read, "eq"), f"icmp eq i32 {warps}, 0", f"icmp ne i32 {lanes}, 0")
        second = self.let(f"or i1 {apart}, {beside}")
        if not self.shared:
            less = self.let(f"sub i32 {other}, 1")
            second = self.let(f"or i1 {second}, {test(f'icmp ult i32 {less}, {before}')}")
        known = self.let(f"and i1 {early}, {self.let(f'and i1 {here}, {second}')}")
        return self.let(f"xor i1 {known}, true")
