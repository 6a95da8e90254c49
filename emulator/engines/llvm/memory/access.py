"""Loads, stores and atomics: the index checked, the access counted, memory read or written.

The instructions on the page are for lanes that are all inside the array. The rest happens aside (`outside`): a lane
outside never touches memory, it loads 0 and stores nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import Diagnostic
from ....ir import nodes as ir
from ....ir.walk import expressions
from ....language.types import I32, I64, Scalar, Vector
from ....runtime.engine import Request
from ....sanitizer import bounds
from ....sanitizer.tracking import access_id
from ..builder import FULL, many, scalar_type
from ..context import Build, Memory
from ..counters.transactions import Meter
from ..fault_records import HEADER, LANES_FIELD, Number, Record, as_i64
from ..operations import extended
from ..races.tracking import AccessTracker
from ..values import Value, Values, lanes, number
from . import atomics, elements
from .out_of_bounds import outside

Access = ir.Load | ir.Store | ir.Atomic | ir.CompareSwap


def load(build: Build, node: ir.Load, kind: str, site: int) -> Values:
    """The value each lane loads."""
    access = _Access(build, node, kind, site)
    memory = access.memory
    access.check()
    if elements.one_for_all(memory, access.index):
        found = elements.load_one(build, memory, access.index)
    else:
        found = elements.load_lanes(build, memory, access.index, build.mask)
    found = access.otherwise(found)
    return tuple(found) if isinstance(memory.type.element, Vector) else found[0]


def store(build: Build, stmt: ir.Store, kind: str) -> None:
    """Lanes write in ascending order."""
    given = build.values(stmt.value)
    access = _Access(build, stmt, kind, stmt.site, given)
    access.check()
    if elements.one_for_all(access.memory, access.index):
        elements.store_one(build, access.memory, access.index, given)
    else:
        elements.store_lanes(build, access.memory, access.index, given, build.mask)
    access.otherwise([], given)


def atomic(build: Build, node: ir.Atomic | ir.CompareSwap, kind: str, site: int) -> Value:
    """Lanes act one after the other in ascending order; the result is what each found."""
    operands = [build.expression(node.value)]
    if isinstance(node, ir.CompareSwap):
        operands.insert(0, build.expression(node.expected))
    access = _Access(build, node, kind, site)
    access.check()
    word = node.op if isinstance(node, ir.Atomic) else "compare_swap"
    found = [atomics.act(build, word, access.memory, access.index, operands, build.active())]
    return access.otherwise(found, operands, word)[0]


class _Access:
    """One access being printed: `check`, then what happens inside the array, then `otherwise`."""

    def __init__(self, build: Build, node: Access, kind: str, site: int, given: Sequence[Value] = ()) -> None:
        self.build, self.node, self.kind, self.site = build, node, kind, site
        self.given = build.expression(node.index)
        self.index = _index(build, self.given)
        self.memory = elements.own(build, build.arrays[node.array])
        multiple = build.divergence.multiple(node.index)
        self.meter = Meter(build, kind, site, self.memory.type.element.size, self.index, multiple)
        tracked = node.array in build.plan.tracked
        self.tracker = (
            AccessTracker(build, node, site, access_id(site, kind), self.memory, self.index, given) if tracked else None
        )

    def check(self) -> None:
        """Go on where all active lanes are inside the array, and count the access."""
        page = self.build.page
        inside, self.beyond, self.done = page.label("inside"), page.label("outside"), page.label("accessed")
        page.branch(_all_inside(self.build, self.memory, self.index), inside, self.beyond, rarely=True)
        page.place(inside)
        self.meter.inside()
        if self.tracker:
            self.tracker.inside()

    def otherwise(self, found: Sequence[Value], given: Sequence[Value] = (), word: str = "") -> list[Value]:
        """What happens to lanes that are not all inside, aside; what was found, either way."""
        build, page = self.build, self.build.page
        good = page.block
        page.jump(self.done)
        page.place(self.beyond)
        if self.tracker:
            self._track_others(self.tracker)
        record = self._record()
        pointer = page.element("i64", "%.faults", record.start, "record")
        seen = page.load("i64", pointer, "seen")
        other = outside(build, self.kind, self.memory, self.index, self.meter, pointer, given, word)
        self._keep_registers(record, pointer, seen)
        if not other and found:
            other = [number(0, self.memory.scalar)] * len(found)
        bad = page.block
        page.jump(self.done)
        page.place(self.done)
        return [_either(build, a, good, b, bad) for a, b in zip(found, other, strict=False)]

    def _track_others(self, tracker: AccessTracker) -> None:
        """The lanes that are inside all the same."""
        page, element = self.build.page, scalar_type(self.index.type)
        beyond = atomics.beyond(page, lanes(page, self.index), element, limit(self.memory, self.index.type))
        right = page.let(f"and i32 {page.let(f'xor i32 {beyond}, -1', 'within')}, {self.build.active()}", "within")
        some, on = page.label("some"), page.label("on")
        page.branch(page.let(f"icmp eq i32 {right}, 0", "nobody"), on, some)
        page.place(some)
        tracker.beside(right)
        page.jump(on)
        page.place(on)

    # -------------------------------------------------------------- the fault
    def _registers(self) -> list[ir.Reg]:
        """The scalar registers that the index is made of."""
        names = bounds.index_registers(self.node.index)
        index = self.node.index
        every = {e.name: e for e in (index, *expressions(index)) if isinstance(e, ir.Reg)}
        return [every[name] for name in names if isinstance(every[name].type, Scalar)]

    def _record(self) -> Record:
        """After the header: the index, the length, the registers of the index."""
        node, memory = self.node, self.memory
        registers = self._registers()
        names = [bounds.user_name(r.name) for r in registers]
        kind = self.kind

        def tell(place: str, request: Request, found: Sequence[Number]) -> Diagnostic:
            at, length, *rest = found
            shown: dict[str, object] = dict(zip(names, rest, strict=True))
            return bounds.out_of_bounds(
                kind, node.span, node.array, memory.type, int(length), int(at), place, shown, memory.allocated
            )

        types = [r.type for r in registers if isinstance(r.type, Scalar)]
        index = self.given.type if self.given.type.size == 8 else self.index.type
        return self.build.records.record("bounds", self.site, [index, I64, *types], tell)

    def _keep_registers(self, record: Record, pointer: str, seen: str) -> None:
        """Of the first fault, write down the registers."""
        build, page, registers = self.build, self.build.page, self._registers()
        if not registers:
            return
        keep, kept = page.label("keep"), page.label("kept")
        page.branch(page.let(f"icmp eq i64 {seen}, 0", "first"), keep, kept)
        page.place(keep)
        wrong = page.let(f"trunc i64 {page.load('i64', page.element('i64', pointer, LANES_FIELD))} to i32", "wrong")
        lane = page.call("i32", "llvm.cttz.i32", ("i32", wrong), ("i1", "false"), hint="lane")
        lane = page.let(f"and i32 {lane}, 31", "lane")
        for number_, register in enumerate(registers):
            value = build.read(register)
            assert isinstance(value, Value)
            page.store("i64", as_i64(build, value, lane), page.element("i64", pointer, HEADER + 2 + number_))
        page.jump(kept)
        page.place(kept)


def _either(build: Build, first: Value, good: str, second: Value, bad: str) -> Value:
    element = scalar_type(first.type)
    type = element if first.uniform else many(element)
    ref = second.ref if first.uniform else lanes(build.page, second)
    return Value(first.type, build.page.phi(type, (first.ref, good), (ref, bad), hint="loaded"), first.stride)


# ------------------------------------------------------------------ bounds
def _index(build: Build, given: Value) -> Value:
    """The index as i32 or i64. One of 2 ** 63 and more becomes negative, and is outside all the same."""
    if given.type is I32:
        return given
    if given.type.size == 4:
        return extended(build.page, given, I64)
    return Value(I64, given.ref, given.stride, given.constant)


def limit(memory: Memory, type: Scalar) -> str:
    """The array's length as an unsigned number of the index's type."""
    return f"{memory.base}.limit" if memory.length.startswith("%") and type.size == 4 else memory.length


def _all_inside(build: Build, memory: Memory, index: Value) -> str:
    """An i1: every active lane's index is in the array."""
    page, element = build.page, scalar_type(index.type)
    if index.uniform:
        return page.let(f"icmp ult {element} {index.ref}, {limit(memory, index.type)}", "in")
    if index.affine and build.mask is None:
        # Computed in 64 bits: if both ends are inside, no lane in between wrapped around.
        first = extended(page, Value(index.type, index.ref), I64).ref
        step = extended(page, Value(index.type, str(index.stride)), I64).ref if index.step is None else str(index.step)
        reach = page.let(f"mul i64 {step}, 31", "reach") if index.step is None else str(31 * index.step)
        ends = (first, page.let(f"add i64 {first}, {reach}", "last"))
        most = memory.length if not memory.length.startswith("%") or index.type.size == 8 else f"{memory.base}.reach"
        tests = [page.let(f"icmp ult i64 {end}, {most}", "in") for end in ends]
        return page.let(f"and i1 {tests[0]}, {tests[1]}", "in")
    beyond = atomics.beyond(page, lanes(page, index), element, limit(memory, index.type))
    wrong = beyond if build.active() == str(FULL) else page.let(f"and i32 {beyond}, {build.active()}", "wrong")
    return page.let(f"icmp eq i32 {wrong}, 0", "in")
