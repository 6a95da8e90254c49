"""What memory accesses cost the hardware, counted as they happen: constants where the shape of the index decides,
a few instructions for steps, and else the exact rules of `machine` as functions (`rules`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....language.types import I64
from ....llvm.builder import IOTA, many, splat, vector
from ....llvm.operations import extended
from ....llvm.values import Value, broadcast, lanes
from ....machine import banks
from ....profiler import events
from . import rules

if TYPE_CHECKING:
    from ..context import Build

GLOBAL = (events.SECTORS, events.LINES)
SHARED = (events.WAVEFRONTS, events.CONFLICTS)
Cost = tuple[int, int]
"""Sectors and lines of global memory, or wavefronts and conflicts of shared memory."""


class Meter:
    """Counts the accesses of one site.

    kind: "global_load" and so on. size: bytes of an element. index: as the access has it. multiple: a power of
    two that divides lane 0's index.
    """

    def __init__(self, build: Build, kind: str, site: int, size: int, index: Value, multiple: int = 1) -> None:
        self.build, self.kind, self.site, self.size, self.index = build, kind, site, size, index
        self.multiple = multiple
        self.device = build.options.device
        self.columns = GLOBAL if kind.startswith("global") else SHARED
        self.fixed = self._fixed() if self.counted else (0, 0)

    @property
    def counted(self) -> bool:
        return self.build.options.counters and self.kind.partition("_")[0] in ("global", "shared")

    @property
    def sector(self) -> int:
        return self.device.load_sector if self.kind == "global_load" else self.device.sector

    # -------------------------------------------------------------- constants
    def _fixed(self) -> Cost | None:
        """The cost of every access in this text, where the index decides it."""
        return self._fixed_global() if self.kind.startswith("global") else self._fixed_shared()

    def _fixed_global(self) -> Cost | None:
        plain = self.kind in ("global_load", "global_store")
        if self.index.uniform and plain:
            return 1, 1
        if self.index.uniform and self.build.mask is None:
            return 32, 1  # one after the other
        step = self.index.step
        if plain and self.build.mask is None and step and abs(step) * self.size >= self.device.line:
            return 32, 32
        return None

    def _fixed_shared(self) -> Cost | None:
        step = self.index.step
        if step is None:
            return None
        costs = {self._bank_cost(step, first) for first in range(max(1, self.device.bank_width // self.size))}
        if len(costs) > 1:
            return None
        (cost,) = costs
        one_phase = 32 * self.size <= self.device.banks * self.device.bank_width
        if self.build.mask is None or (one_phase and cost == (1, 0)):
            return cost
        return None

    def _bank_cost(self, step: int, first: int) -> Cost:
        start = first + (0 if step >= 0 else -32 * step * self.device.bank_width)
        kind = rules.bank_kind(self.kind, self.device)
        found = banks.of_warp(
            kind, [start + step * lane for lane in range(32)], self.size, self.device.banks, self.device.bank_width
        )
        return found.wavefronts, found.conflicts

    # -------------------------------------------------------------- accesses inside the array
    def inside(self) -> None:
        """All active lanes access the array."""
        if not self.counted:
            return
        self.counters()
        self.build.always(self.site, events.REQUESTS, 1)
        if self.fixed is not None:
            for column, amount in zip(self.columns, self.fixed, strict=True):
                self.build.always(self.site, column, amount)
        elif self.kind in ("global_load", "global_store") and self.build.mask is None and self.index.affine:
            self._spread(events.SECTORS, rules.log2(self.sector // self.size))
            self._spread(events.LINES, rules.log2(self.device.line // self.size))
        elif self.kind.startswith("shared") and self._phases():
            self._each_in_its_bank(self._phases())
        else:
            self._add(self.exact(self.build.active()))

    def _phases(self) -> int:
        """In how many phases lanes that follow each other are served, each by banks of its own; 0 where that is not so,
        or where it hangs on which lanes are active."""
        served = self.device.banks * self.device.bank_width
        if 32 * self.size <= served:
            return int(self.device.banks >= 32)
        return 32 * self.size // served if self.size >= self.device.bank_width and self.build.mask is None else 0

    def _each_in_its_bank(self, phases: int) -> None:
        """Lanes whose banks follow each other, as they mostly do, cost a wavefront a phase; ask the rule only for
        others."""
        build, page = self.build, self.build.page
        element = "i64" if self.index.type.size == 8 else "i32"
        units = lanes(page, self.index)
        shift = rules.log2(max(self.size, self.device.bank_width) // self.size)
        if shift:
            units = page.let(f"lshr {many(element)} {units}, {splat(element, shift)}", "units")
        offset = page.let(f"sub {many(element)} {units}, {vector(element, IOTA)}", "offset")
        groups = self.device.banks if phases == 1 else 32 // phases
        offset = page.let(f"and {many(element)} {offset}, {splat(element, groups - 1)}", "offset")
        first = page.let(f"extractelement {many(element)} {offset}, i64 0", "first")
        differ = page.let(f"icmp ne {many(element)} {offset}, {broadcast(page, element, first)}", "differ")
        odd = page.let(f"bitcast {many('i1')} {differ} to i32", "differ")
        if build.mask is not None:
            odd = page.let(f"and i32 {odd}, {build.active()}", "differ")
        ask, on = page.label("banks"), page.label("on")
        page.branch(page.let(f"icmp eq i32 {odd}, 0", "apart"), on, ask)
        page.place(ask)
        costs = self.exact(build.active())
        build.count(
            build.tally.counter(self.site, events.WAVEFRONTS),
            page.let(f"add i64 {self._half(costs, 0)}, {-phases}", "more"),
        )
        build.count(build.tally.counter(self.site, events.CONFLICTS), self._half(costs, 1))
        page.jump(on)
        page.place(on)
        build.always(self.site, events.WAVEFRONTS, phases)

    def _spread(self, column: int, shift: int) -> None:
        """Units of 2 ** shift elements that a whole warp touches at a step."""
        build, page = self.build, self.build.page
        step = self.index.step
        if step is not None and abs(step) >> shift:
            build.always(self.site, column, 32)
            return
        if step is not None and self.multiple >> shift:
            start = 0 if step > 0 else 31 * step
            build.always(self.site, column, (start + 31 * abs(step) >> shift) - (start >> shift) + 1)
            return
        first = extended(page, Value(self.index.type, self.index.ref), I64).ref
        if step is None:
            stride = extended(page, Value(self.index.type, str(self.index.stride)), I64).ref
            reach = page.let(f"mul i64 {stride}, 31", "reach")
            low = page.intrinsic("llvm.smin", "i64", first, page.let(f"add i64 {first}, {reach}", "last"), hint="low")
            reach = page.call("i64", "llvm.abs.i64", ("i64", reach), ("i1", "false"), hint="reach")
        else:
            low = first if step > 0 else page.let(f"add i64 {first}, {31 * step}", "low")
            reach = str(31 * abs(step))
        # Written so that LLVM, which often knows the low bits of an index, can compute it.
        into = page.let(f"and i64 {low}, {(1 << shift) - 1}", "into")
        between = page.let(f"lshr i64 {page.let(f'add i64 {into}, {reach}', 'end')}, {shift}", "between")
        if step is None:
            far = page.let(f"icmp uge i64 {reach}, {31 << shift}", "far")
            between = page.let(f"select i1 {far}, i64 31, i64 {between}", "between")
        build.always(self.site, column, 1)
        build.count(build.tally.counter(self.site, column), between)

    # -------------------------------------------------------------- exact rules
    def counters(self) -> int:
        """The first of three slots: requests, and the two columns."""
        return self.build.tally.counters(self.site, [events.REQUESTS, *self.columns])

    def promised(self) -> Cost:
        """What every execution adds without being asked."""
        meaning, slot = self.build.tally.meaning, self.build.executions
        a, b = (meaning.get((slot, self.site, column), 0) for column in self.columns)
        return a, b

    def _add(self, costs: str) -> None:
        for half, column in enumerate(self.columns):
            self.build.count(self.build.tally.counter(self.site, column), self._half(costs, half))

    def _half(self, costs: str, half: int) -> str:
        """One of the two numbers that a rule returns."""
        page = self.build.page
        return page.let(f"lshr i64 {costs}, 32" if half else f"and i64 {costs}, {0xFFFFFFFF}", "cost")

    def exact(self, mask: str) -> str:
        """The cost by the rules of `machine`, an i64 of two halves."""
        build, page = self.build, self.build.page
        wide = self.index.type.size == 8
        element = "i64" if wide else "i32"
        index = lanes(page, self.index)
        if self.kind in ("global_load", "global_store"):
            shift = rules.log2(self.sector // self.size)
            units = page.let(f"lshr {many(element)} {index}, splat ({element} {shift})", "sectors") if shift else index
            if wide:
                units = page.let(f"trunc {many('i64')} {units} to {many('i32')}", "sectors")
            name = rules.sectors(build, rules.log2(self.device.line // self.sector))
            return page.call("i64", name, (many("i32"), units), ("i32", mask), hint="traffic")
        if wide:
            index = page.let(f"trunc {many('i64')} {index} to {many('i32')}", "elements")
        if self.kind.startswith("global"):
            exact = self.kind == "global_atomic"
            name = rules.packets(build, self.size, self.sector, self.device.line, exact)
        else:
            name = rules.wavefronts(build, self.kind, self.size)
        return page.call("i64", name, (many("i32"), index), ("i32", mask), hint="traffic")
