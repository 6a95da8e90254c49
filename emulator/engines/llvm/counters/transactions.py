"""Counters of memory transactions.

The count is a constant if the stride of the index determines it, a few instructions for an affine index, and otherwise a call of
the emitted rules (`rules`). The emitted code restates the rules of `machine.coalescing` and `machine.banks`;
tests/machine/test_emitted_rules.py compares both for random addresses, lane masks, strides and devices.
"""

from __future__ import annotations

from ....ir.access import AccessKind, Operation
from ....language.intrinsics import WARP_SIZE
from ....language.types import I64
from ....llvm.builder import IOTA, many, splat, vector
from ....llvm.casts import extended
from ....llvm.values import Value, broadcast, lanes, moved
from ....machine import banks
from ....machine.device import log2
from ....profiler import events
from ..context import ArrayLocation, CodegenContext
from . import rules, samples, trace

GLOBAL = (events.SECTORS, events.LINES)
SHARED = (events.WAVEFRONTS, events.CONFLICTS)
Cost = tuple[int, int]
"""Sectors and lines of global memory, or wavefronts and conflicts of shared memory."""


class TransactionCounter:
    """Counter of the accesses of one site.

    size: bytes of an element. index: index of the access. multiple: a power of two that divides lane 0's index.
    """

    def __init__(
        self, context: CodegenContext, kind: AccessKind, site: int, size: int, index: Value, multiple: int = 1
    ) -> None:
        self.context, self.kind, self.site, self.size, self.index = context, kind, site, size, index
        self.multiple = multiple
        self.device = context.options.device
        self.columns = GLOBAL if kind.space == "global" else SHARED
        self.fixed = self._fixed() if self.counted else (0, 0)

    @staticmethod
    def of_array(
        context: CodegenContext, kind: AccessKind, site: int, array: ArrayLocation, index: Value, multiple: int = 1
    ) -> TransactionCounter:
        """Return a counter of accesses to an array that may start inside a bank word."""
        if array.shift:
            index, multiple = moved(context.builder, index, array.shift), 1
        return TransactionCounter(context, kind, site, array.type.element.size, index, multiple)

    @property
    def counted(self) -> bool:
        return self.context.options.counters and self.kind.space in ("global", "shared") and not self.kind.uncounted

    @property
    def _plain(self) -> bool:
        """Whether the access is a global load or store."""
        return self.kind.space == "global" and not self.kind.atomic

    @property
    def sector(self) -> int:
        return self.device.load_sector if self.kind.operation is Operation.LOAD else self.device.sector

    # -------------------------------------------------------------- constants
    def _fixed(self) -> Cost | None:
        """Return the cost of each access if the stride of the index determines it."""
        return self._fixed_global() if self.kind.space == "global" else self._fixed_shared()

    def _fixed_global(self) -> Cost | None:
        plain = not self.kind.atomic
        if self.index.uniform and plain:
            return 1, 1
        if self.index.uniform and self.context.mask is None:
            return WARP_SIZE, 1  # serialised
        step = self.index.step
        if plain and self.context.mask is None and step and abs(step) * self.size >= self.device.line:
            return WARP_SIZE, WARP_SIZE
        return None

    def _fixed_shared(self) -> Cost | None:
        step = self.index.step
        if step is None:
            return None
        costs = {self._bank_cost(step, first) for first in range(max(1, self.device.bank_width // self.size))}
        if len(costs) > 1:
            return None
        (cost,) = costs
        one_phase = WARP_SIZE * self.size <= self.device.banks * self.device.bank_width
        if self.context.mask is None or (one_phase and cost == (1, 0)):
            return cost
        return None

    def _bank_cost(self, step: int, first: int) -> Cost:
        start = first + (0 if step >= 0 else -WARP_SIZE * step * self.device.bank_width)
        kind = banks.kind_of(self.kind.operation, self.device)
        total = banks.of_warp(
            kind,
            [start + step * lane for lane in range(WARP_SIZE)],
            self.size,
            self.device.banks,
            self.device.bank_width,
        )
        return total.wavefronts, total.conflicts

    # -------------------------------------------------------------- accesses inside the array
    def inside(self) -> None:
        """Count an access with all active lanes in bounds."""
        if self.kind.space in self.context.options.traced:
            trace.keep_entry(self.context, self.site, self.index)
        if not self.counted:
            return
        self.counters()
        self.context.count_constant(self.site, events.REQUESTS, 1)
        cost = self._count()
        if self.context.options.detail:
            samples.keep_access(self.context, self.site, self.index, cost)

    def _count(self) -> str:
        """Add the cost of the access to the two columns. Return the amount added to the first column, an i64."""
        if self.fixed is not None:
            for column, amount in zip(self.columns, self.fixed, strict=True):
                self.context.count_constant(self.site, column, amount)
            return str(self.fixed[0])
        if self._plain and self.context.mask is None and self.index.affine:
            self._count_units(events.LINES, log2(self.device.line // self.size))
            return self._count_units(events.SECTORS, log2(self.sector // self.size))
        if self.kind.space == "shared" and self._phases():
            return self._count_banks(self._phases())
        costs = self.exact(self.context.active())
        self._add(costs)
        return self._half(costs, 0)

    def _phases(self) -> int:
        """Return the number of phases of a conflict-free access to consecutive elements.

        0: they conflict, or the number depends on the active lanes.
        """
        served = self.device.banks * self.device.bank_width
        if WARP_SIZE * self.size <= served:
            return int(self.device.banks >= 32)
        return (
            WARP_SIZE * self.size // served if self.size >= self.device.bank_width and self.context.mask is None else 0
        )

    def _count_banks(self, phases: int) -> str:
        """Count a shared access. Return the wavefronts, an i64.

        The common case of consecutive banks costs one wavefront per phase, and two for a compare-and-swap. Other
        cases call the rule.
        """
        least = 2 * phases if self.kind.operation is Operation.SWAP else phases
        context, builder = self.context, self.context.builder
        element = "i64" if self.index.type.size == 8 else "i32"
        units = lanes(builder, self.index)
        shift = log2(max(self.size, self.device.bank_width) // self.size)
        if shift:
            units = builder.let(f"lshr {many(element)} {units}, {splat(element, shift)}", "units")
        offset = builder.let(f"sub {many(element)} {units}, {vector(element, IOTA)}", "offset")
        groups = self.device.banks if phases == 1 else WARP_SIZE // phases
        offset = builder.let(f"and {many(element)} {offset}, {splat(element, groups - 1)}", "offset")
        first = builder.let(f"extractelement {many(element)} {offset}, i64 0", "first")
        differ = builder.let(f"icmp ne {many(element)} {offset}, {broadcast(builder, element, first)}", "differ")
        odd = builder.let(f"bitcast {many('i1')} {differ} to i32", "differ")
        if context.mask is not None:
            odd = builder.let(f"and i32 {odd}, {context.active()}", "differ")
        rule_label, on, before = builder.label("banks"), builder.label("continue"), builder.block
        builder.branch(builder.let(f"icmp eq i32 {odd}, 0", "distinct"), on, rule_label)
        builder.place(rule_label)
        costs = self.exact(context.active())
        total = self._half(costs, 0)
        context.count(
            context.counter_slots.counter(self.site, events.WAVEFRONTS),
            builder.let(f"add i64 {total}, {-least}", "more"),
        )
        context.count(context.counter_slots.counter(self.site, events.CONFLICTS), self._half(costs, 1))
        rule_block = builder.block
        builder.jump(on)
        builder.place(on)
        context.count_constant(self.site, events.WAVEFRONTS, least)
        return builder.phi("i64", (str(least), before), (total, rule_block), hint="wavefronts")

    def _count_units(self, column: int, shift: int) -> str:
        """Count the units of 2 ** shift elements of a full warp with an affine index. Return their number, an i64."""
        context, builder = self.context, self.context.builder
        step = self.index.step
        if step is not None and abs(step) >> shift:
            context.count_constant(self.site, column, WARP_SIZE)
            return "32"
        if step is not None and self.multiple >> shift:
            start = 0 if step > 0 else (WARP_SIZE - 1) * step
            units = (start + (WARP_SIZE - 1) * abs(step) >> shift) - (start >> shift) + 1
            context.count_constant(self.site, column, units)
            return str(units)
        first = extended(builder, Value(self.index.type, self.index.ref), I64).ref
        if step is None:
            stride = extended(builder, Value(self.index.type, str(self.index.stride)), I64).ref
            reach = builder.let(f"mul i64 {stride}, 31", "reach")
            low = builder.intrinsic(
                "llvm.smin", "i64", first, builder.let(f"add i64 {first}, {reach}", "last"), hint="low"
            )
            reach = builder.call("i64", "llvm.abs.i64", ("i64", reach), ("i1", "false"), hint="reach")
        else:
            low = first if step > 0 else builder.let(f"add i64 {first}, {31 * step}", "low")
            reach = str((WARP_SIZE - 1) * abs(step))
        # This form allows LLVM to fold known low bits of the index.
        into = builder.let(f"and i64 {low}, {(1 << shift) - 1}", "offset")
        span = builder.let(f"lshr i64 {builder.let(f'add i64 {into}, {reach}', 'end')}, {shift}", "span")
        if step is None:
            far = builder.let(f"icmp uge i64 {reach}, {31 << shift}", "far")
            span = builder.let(f"select i1 {far}, i64 31, i64 {span}", "span")
        context.count_constant(self.site, column, 1)
        context.count(context.counter_slots.counter(self.site, column), span)
        return builder.let(f"add i64 {span}, 1", "units")

    # -------------------------------------------------------------- exact rules
    def counters(self) -> int:
        """Return the first of three slots: requests, and the two columns."""
        return self.context.counter_slots.counters(self.site, [events.REQUESTS, *self.columns])

    def constant_cost(self) -> Cost:
        """Return the amounts that each execution of the current run of statements adds to the two columns."""
        meaning, slot = self.context.counter_slots.contributions, self.context.executions
        a, b = (meaning.get((slot, self.site, column), 0) for column in self.columns)
        return a, b

    def _add(self, costs: str) -> None:
        for half, column in enumerate(self.columns):
            self.context.count(self.context.counter_slots.counter(self.site, column), self._half(costs, half))

    def _half(self, costs: str, half: int) -> str:
        """Return one half of the result of a rule."""
        builder = self.context.builder
        return builder.let(f"lshr i64 {costs}, 32" if half else f"and i64 {costs}, {0xFFFFFFFF}", "cost")

    def exact(self, mask: str) -> str:
        """Return the cost by the rules of `machine`, an i64 of two halves."""
        context, builder = self.context, self.context.builder
        wide = self.index.type.size == 8
        element = "i64" if wide else "i32"
        index = lanes(builder, self.index)
        if self._plain:
            shift = log2(self.sector // self.size)
            units = (
                builder.let(f"lshr {many(element)} {index}, splat ({element} {shift})", "sectors") if shift else index
            )
            if wide:
                units = builder.let(f"trunc {many('i64')} {units} to {many('i32')}", "sectors")
            name = rules.sectors(context, log2(self.device.line // self.sector))
            return builder.call("i64", name, (many("i32"), units), ("i32", mask), hint="traffic")
        if wide:
            index = builder.let(f"trunc {many('i64')} {index} to {many('i32')}", "elements")
        if self.kind.space == "global":
            name = rules.packets(context, self.size, self.sector, self.device.line)
        else:
            name = rules.wavefronts(context, self.kind, self.size)
        return builder.call("i64", name, (many("i32"), index), ("i32", mask), hint="traffic")
