"""LLVM fast paths of the race detector: functions of the module for accesses without findings.

Each returns true if the slow path (`sanitizer.races.detect.access`) must run; shadow memory is then unchanged. Otherwise it has
updated shadow memory as the slow path does. An epoch is a timestamp and a thread, defined in `sanitizer.races.shadow`.

The race rule is stated twice, here and in `sanitizer.races.detect`. The property test `tests/checkers/test_fast_path.py` compares
both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from ....llvm.builder import FunctionBuilder, many, splat
from ....llvm.values import broadcast, chosen
from ....sanitizer.races import shadow
from ....sanitizer.tracking import TrackedArray
from ..context import CodegenContext
from ..counters.rules import helper_text

V, B = many("i32"), many("i1")
COMMON = (
    ("ptr", "state"), ("ptr", "full"), ("ptr", "timestamps"), ("ptr", "log"), ("ptr", "cells"),
    ("i64", "size"), ("i32", "warp"), ("i64", "access_id"),
)  # fmt: skip
OF_WARP = shadow.THREAD & ~31
"""Bits of an epoch that identify the warp."""


class Elements(Enum):
    """Elements accessed by the lanes of a warp: consecutive, arbitrary, or a single one."""

    ROW = "row"
    ANY = "each"
    SINGLE = "one"


PARAMETERS = {
    Elements.ROW: (("i64", "where"), (V, "wrote"), (V, "own"), ("i32", "rest")),
    Elements.ANY: ((many("i64"), "where"), (V, "wrote"), (V, "own"), ("i32", "rest")),
    Elements.SINGLE: (("i64", "at"),),
}
"""Arguments after COMMON. where: the first element, or the element of each lane. wrote: epochs of the last writes. own: threads of
the lanes. rest: an i32 of the lanes to handle."""


def call_fast_path(
    context: CodegenContext,
    elements: Elements,
    writes: bool,
    tracked: TrackedArray,
    call_arguments: Sequence[str],
    access: int = 0,
) -> str:
    """Call one of the functions with the arguments in `PARAMETERS`. Return an i1: the slow path must run."""
    builder, shared = context.builder, context.plan.types[tracked.name].space == "shared"
    warp_synchronous = context.options.device.warp_synchronous
    name = f"fast_path_{'write' if writes else 'read'}_{elements.value}{'_shared' if shared else ''}"
    parameters = [*COMMON, *PARAMETERS[elements]]

    def body(inner: FunctionBuilder) -> str:
        inner.reserve(*(label for _, label in parameters))
        path = _FastPath(inner, elements, shared, warp_synchronous)
        if elements is Elements.SINGLE:
            return path.read_one()
        return path.write() if writes else path.read()

    text = ", ".join(f"{type} %{label}" for type, label in parameters)
    context.helper(name, lambda: helper_text(context, "i1", name, text, body))
    base = f"%.tracked{tracked.number}"
    fixed = [
        "%.shadow.state", "%.shadow.full_warp_syncs", "%.shadow.timestamps", "%.shadow.log", base, f"{base}.size",
        context.warp, str(access),
    ]  # fmt: skip
    arguments = [(type, value) for (type, _), value in zip(parameters, [*fixed, *call_arguments], strict=True)]
    return builder.call("i1", name, *arguments, hint="slow")


@dataclass
class _FastPath:
    """The body of one function. Conditions are <32 x i1>."""

    builder: FunctionBuilder
    elements: Elements
    shared: bool
    warp_synchronous: bool

    def let(self, text: str, hint: str = "v") -> str:
        return self.builder.let(text, hint)

    def state(self, which: int, hint: str) -> str:
        return self.builder.load("i32", self.builder.element("i64", "%state", which), hint)

    def wide(self, ref: str) -> str:
        return broadcast(self.builder, "i32", ref)

    def both(self, *terms: str) -> str:
        result = terms[0]
        for term in terms[1:]:
            result = self.let(f"and {B} {result}, {term}", "both")
        return result

    def either(self, *terms: str) -> str:
        result = terms[0]
        for term in terms[1:]:
            result = self.let(f"or {B} {result}, {term}", "selected")
        return result

    def no(self, term: str) -> str:
        return self.let(f"xor {B} {term}, {splat('i1', 'true')}", "not")

    def bits(self, term: str) -> str:
        return self.let(f"bitcast {B} {term} to i32", "bits")

    # -------------------------------------------------------------- epochs, one a lane
    @cached_property
    def phase(self) -> str:
        return self.wide(self.state(shadow.PHASE, "phase"))

    @cached_property
    def now(self) -> str:
        return self.wide(self.state(shadow.NOW, "epoch"))

    @cached_property
    def synchronised(self) -> str:
        return self.wide(self.builder.load("i32", self.builder.element("i32", "%full", "%warp", width="i32"), "full"))

    @cached_property
    def last_foreign(self) -> str:
        return self.wide(self.let(f"sub i32 {self.state(shadow.FOREIGN, 'foreign')}, {shadow.TICK}", "foreign"))

    def at_least(self, epoch: str, least: str) -> str:
        return self.let(f"icmp uge {V} {epoch}, {least}", "later")

    def foreign(self, epoch: str) -> str:
        """Return whether the epoch belongs to another block; never true in shared memory."""
        if self.shared:
            return splat("i1", "false")
        less = self.let(f"sub {V} {epoch}, {splat('i32', shadow.TICK)}", "less")  # an empty epoch becomes the largest
        return self.let(f"icmp ult {V} {less}, {self.last_foreign}", "foreign")

    def same(self, epoch: str, other: str, bits: int) -> str:
        differ = self.let(f"and {V} {self.let(f'xor {V} {epoch}, {other}')}, {splat('i32', bits)}", "differ")
        return self.let(f"icmp eq {V} {differ}, zeroinitializer", "same")

    def same_thread(self, epoch: str) -> str:
        return self.same(epoch, "%own", shadow.THREAD)

    def same_warp(self, epoch: str) -> str:
        return self.same(epoch, "%own", OF_WARP)

    def synchronised_since(self, epoch: str) -> str:
        """Return whether an access of this warp is ordered before this one."""
        return (
            splat("i1", "true")
            if self.warp_synchronous
            else self.let(f"icmp ult {V} {epoch}, {self.synchronised}", "passed")
        )

    def ordered(self, epoch: str) -> str:
        """Return whether an access with this epoch is ordered before this one."""
        late = self.at_least(epoch, self.phase)
        ours = self.either(self.same_thread(epoch), self.both(self.same_warp(epoch), self.synchronised_since(epoch)))
        early = self.both(self.no(late), self.no(self.foreign(epoch)))
        return self.either(early, self.both(late, ours))

    def distances(self, epoch: str) -> tuple[str, str, str]:
        """Return whether the epoch is an unordered reader's: of another block or warp, of another lane."""
        late, ours = self.at_least(epoch, self.phase), self.same_warp(epoch)
        near = self.both(late, ours, self.no(self.same_thread(epoch)), self.no(self.synchronised_since(epoch)))
        return self.foreign(epoch), self.both(late, self.no(ours)), near

    def covered(self, read: str, other: str) -> str:
        """Return whether the two readers in shadow memory already represent this thread."""
        recent, recently = (self.at_least(epoch, self.now) for epoch in (read, other))
        covers_lane = self.both(recent, self.same_warp(read))
        warps = self.both(self.at_least(other, self.phase), self.no(self.same(read, other, OF_WARP)))
        lanes = self.both(covers_lane, recently, self.no(self.same(read, other, shadow.THREAD)), self.no(warps))
        again = self.both(recent, self.same_thread(read))
        enough = self.either(again, warps, lanes, self.foreign(other))
        return self.both(self.at_least(read, self.phase), enough)

    # -------------------------------------------------------------- shadow memory
    def pointer(self, plane: int) -> str:
        """Return the address of the lanes' epochs in a plane: the first of a row, or all."""
        base = "%cells"
        if plane:
            base = self.builder.element("i32", base, self.let(f"mul i64 %size, {plane}"), "plane")
        if self.elements is Elements.ROW:
            return self.builder.element("i32", base, "%where", "row")
        return self.let(f"getelementptr i32, ptr {base}, {many('i64')} %where", "lanes")

    def load(self, pointer: str, mask: str = "%rest") -> str:
        if self.elements is Elements.ROW:
            return self.builder.load(V, pointer, "epochs", 4)
        arguments = ((many("ptr"), pointer), (B, chosen(self.builder, mask)), (V, "zeroinitializer"))
        return self.builder.call(V, "llvm.masked.gather.v32i32.v32p0", *arguments, hint="epochs")

    def store(self, pointer: str, epochs: str, mask: str) -> None:
        row = self.elements is Elements.ROW
        to = ("ptr" if row else many("ptr"), pointer)
        word = "llvm.masked.store.v32i32.p0" if row else "llvm.masked.scatter.v32i32.v32p0"
        self.builder.call("void", word, (V, epochs), to, (B, chosen(self.builder, mask)))

    def require(self, holds: str) -> None:
        """Take the slow path unless the condition is true for all lanes of `rest`."""
        missing = self.let(f"and i32 {self.let(f'xor i32 {self.bits(holds)}, -1')}, %rest", "missing")
        self._return_if(self.let(f"icmp ne i32 {missing}, 0", "some"), "true")

    def _return_if(self, condition: str, value: str) -> None:
        yes, no = self.builder.label("leave"), self.builder.label("proceed")
        self.builder.branch(condition, yes, no)
        self.builder.place(yes)
        self.builder.do(f"ret i1 {value}")
        self.builder.place(no)

    def current(self) -> str:
        """Return the lanes' epochs of this access, with a new timestamp if it has none. Take the slow path if the log is full."""
        builder = self.builder
        covered_lanes = builder.load(
            "i32", builder.element("i32", "%timestamps", self.let("lshr i64 %access_id, 2", "site")), "recorded"
        )
        stale, fresh = builder.label("stale"), builder.label("fresh")
        first = builder.block
        builder.branch(
            self.let(f"icmp ult i32 {covered_lanes}, {self.state(shadow.FRESH, 'fresh')}", "old"), stale, fresh
        )
        builder.place(stale)
        new = self.state(shadow.LENGTH, "length")
        self._return_if(self.let(f"icmp eq i32 {new}, {self.state(shadow.CAPACITY, 'capacity')}"), "true")
        row = builder.element("[4 x i32]", "%log", new, "row", "i32")
        access_id = self.let("trunc i64 %access_id to i32", "access_id")
        call_arguments = (
            self.state(shadow.BLOCK, "block"),
            self.state(shadow.BARRIERS, "barriers"),
            self.state(shadow.WARP, "warp"),
            access_id,
        )
        for column, value in enumerate(call_arguments):
            builder.store("i32", value, builder.element("i32", row, column))
        builder.store("i32", new, builder.element("i32", "%timestamps", self.let("lshr i64 %access_id, 2", "site")))
        builder.store("i32", self.let(f"add i32 {new}, 1"), builder.element("i64", "%state", shadow.LENGTH))
        second = builder.block
        builder.jump(fresh)
        builder.place(fresh)
        timestamp = builder.phi("i32", (covered_lanes, first), (new, second), hint="timestamp")
        return self.let(f"or {V} {self.wide(self.let(f'shl i32 {timestamp}, {shadow.BITS}'))}, %own", "current")

    def put(self, pointer: str, old: str, new: str, mask: str) -> None:
        """Write the epochs of different elements. If two lanes access one element, undo the write and take the slow path."""
        self.store(pointer, new, mask)
        if self.elements is Elements.ROW:
            return
        clash = self.bits(self.let(f"icmp ne {V} {self.load(pointer, mask)}, {new}", "clash"))
        clash = self.let(f"icmp ne i32 {self.let(f'and i32 {clash}, {mask}')}, 0", "several")
        undo, on = self.builder.label("undo"), self.builder.label("distinct")
        self.builder.branch(clash, undo, on)
        self.builder.place(undo)
        self.store(pointer, old, mask)
        self.builder.do("ret i1 true")
        self.builder.place(on)

    # -------------------------------------------------------------- the functions
    def write(self) -> str:
        """Write: the last write and both readers must be ordered before it."""
        self.require(self.ordered("%wrote"))
        written, read, other = (self.pointer(plane) for plane in (shadow.WRITTEN, shadow.READ, shadow.OTHER))
        readers = self.load(read), self.load(other)
        for reader in readers:
            self.require(self.ordered(reader))
        self.put(written, "%wrote", self.current(), "%rest")
        return "false"

    def read(self) -> str:
        """Read: the last write must be ordered before it. The thread becomes a reader if it is not covered."""
        self.require(self.ordered("%wrote"))
        places = self.pointer(shadow.READ), self.pointer(shadow.OTHER)
        read, other = (self.load(place) for place in places)
        new = self.let(f"and i32 {self.bits(self.no(self.covered(read, other)))}, %rest", "new")
        self._return_if(self.let(f"icmp eq i32 {new}, 0", "recorded"), "false")
        self.put(places[0], read, self.current(), new)
        far, next_, near = self.distances(read)
        other_far, other_next, _ = self.distances(other)
        nearer = self.both(near, self.no(other_far), self.no(other_next))
        take = self.either(far, self.both(next_, self.no(other_far)), nearer)
        self.store(places[1], read, self.let(f"and i32 {self.bits(take)}, {new}", "moved"))
        return "false"

    def read_one(self) -> str:
        """Read of one element by all lanes, written before the last barrier, with two readers that cover the lanes."""
        builder = self.builder
        sizes = ["%at", self.let("add i64 %at, %size"), self.let(f"add i64 %at, {self.let('mul i64 %size, 2')}")]
        wrote, read, other = (builder.load("i32", builder.element("i32", "%cells", at), "epoch") for at in sizes)
        phase, now, foreign = (self.state(n, "later") for n in (shadow.PHASE, shadow.NOW, shadow.FOREIGN))
        ours = self.let("shl i32 %warp, 5")

        def test(*conditions: str) -> str:
            result = "true"
            for condition in conditions:
                result = self.let(f"and i1 {result}, {self.let(condition)}")
            return result

        def of_warp(epoch: str, word: str) -> str:
            bits = self.let(f"and i32 {self.let(f'xor i32 {epoch}, {ours}')}, {OF_WARP}")
            return f"icmp {word} i32 {bits}, 0"

        early = test(f"icmp ult i32 {wrote}, {phase}")
        if not self.shared:
            before, less = (self.let(f"sub i32 {n}, {shadow.TICK}") for n in (foreign, wrote))
            early = self.let(f"and i1 {early}, {test(f'icmp uge i32 {less}, {before}')}")
        covers_lane = test(f"icmp uge i32 {read}, {phase}")
        differ = self.let(f"xor i32 {read}, {other}")
        warps, lanes = (self.let(f"and i32 {differ}, {bits}") for bits in (OF_WARP, shadow.THREAD))
        other_warp = test(f"icmp uge i32 {other}, {phase}", f"icmp ne i32 {warps}, 0")
        both_now = (f"icmp uge i32 {read}, {now}", f"icmp uge i32 {other}, {now}")
        partly_inside = test(*both_now, of_warp(read, "eq"), f"icmp eq i32 {warps}, 0", f"icmp ne i32 {lanes}, 0")
        second = self.let(f"or i1 {other_warp}, {partly_inside}")
        if not self.shared:
            less = self.let(f"sub i32 {other}, {shadow.TICK}")
            second = self.let(f"or i1 {second}, {test(f'icmp ult i32 {less}, {before}')}")
        covered_lanes = self.let(f"and i1 {early}, {self.let(f'and i1 {covers_lane}, {second}')}")
        return self.let(f"xor i1 {covered_lanes}, true")
