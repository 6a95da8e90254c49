"""Which arrays of a kernel have shadow memory, the race state of a launch, and the races found in it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.walk import effect, statements
from ..language.types import Array
from ..machine.device import Device
from ..span import Span
from . import checkers
from .faults import Faults
from .places import Dim3
from .races import report, shadow
from .races.shadow import ATOMICS, LOADS, STORES, RaceState

LOG_ROWS = shadow.MOST_TIMESTAMPS
"""Rows of the log of a launch."""


@dataclass(frozen=True)
class TrackedArray:
    """An array with shadow memory.

    number: among the tracked arrays. for_races: whether races are looked for. for_unwritten: whether reads of elements
    that were never written are. atomic: whether the kernel has atomic operations on it.
    """

    kernel: ir.Function
    name: str
    number: int
    for_races: bool
    for_unwritten: bool
    atomic: bool


@dataclass(frozen=True)
class Plan:
    """The tracked arrays of a kernel, and what is needed to describe its races. It does not depend on the launch.

    sites: the span of each access; last: the largest site. barriers: lines of barriers, of blocks and of warps.
    fenced: whether the kernel has fences.
    """

    kernel: ir.Function
    tracked: Mapping[str, TrackedArray]
    types: Mapping[str, Array]
    sites: Mapping[int, Span]
    barriers: tuple[int, ...]
    fenced: bool
    last: int

    @staticmethod
    def of(kernel: ir.Function, checks: Iterable[str], unwritten: Container[str]) -> Plan:
        """The arrays that the checkers asked for track; `unwritten` names those given as `empty`."""
        types = {p.name: p.type for p in kernel.params if isinstance(p.type, Array)}
        types |= {s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        atomic = {e.array for s in statements(kernel.body) if isinstance(e := effect(s), ir.Atomic | ir.CompareSwap)}
        written = atomic | {s.array for s in statements(kernel.body) if isinstance(s, ir.Store)}
        rules = [row.on_access for row in checkers.asked(frozenset(checks)) if row.on_access is not None]
        tracked: dict[str, TrackedArray] = {}
        for name, type in types.items():
            finds = {rule.finds for rule in rules if rule.tracks(type, name in written, name in unwritten)}
            if finds:
                number = len(tracked)
                tracked[name] = TrackedArray(
                    kernel, name, number, "races" in finds, "unwritten" in finds, name in atomic
                )
        sites = {
            s.site: s.value.span if effect(s) else s.span for s in statements(kernel.body) if isinstance(s, ir.Let)
        }
        sites |= {s.site: s.span for s in statements(kernel.body) if isinstance(s, ir.Store)}
        barriers = [
            s.span.line
            for s in statements(kernel.body)
            if isinstance(s, ir.WarpBarrier) or isinstance(effect(s), ir.Barrier)
        ]
        fenced = any(isinstance(s, ir.Fence) for s in statements(kernel.body))
        return Plan(kernel, tracked, types, sites, tuple(barriers), fenced, max(sites, default=0))

    def new_race_state(
        self, block: Dim3, arguments: Mapping[str, Any], dynamic_shared: int, device: Device, rows: int | None = None
    ) -> RaceState:
        """The race state at the start of a launch. A local array has an element for every thread of the block."""
        warps = -(-block[0] * block[1] * block[2] // 32)
        lengths = {}
        for name in self.tracked:
            type = self.types[name]
            length = len(arguments[name]) if type.space == "global" else type.length
            length = dynamic_shared // type.element.size if length is None else length
            lengths[name] = length * (32 * warps if type.space == "local" else 1)
        own = [self.types[name].space != "global" for name in self.tracked]
        sites = 1 + self.last
        has_atomics = [f.atomic for f in self.tracked.values()]
        where = shadow.layout(lengths, {f.name: _planes(f) for f in self.tracked.values()})
        return shadow.new(where, own, has_atomics, sites, warps, device.warp_synchronous, self.fenced, rows or LOG_ROWS)

    def report(self, found: RaceState, faults: Faults, grid: Dim3, block: Dim3) -> None:
        """Add the races found in a launch to its faults."""
        names = list(self.tracked)
        types = [self.types[name] for name in names]
        races = report.findings(found, names, types, self.sites, self.barriers, grid, block)
        for number, (order, sites, diagnostic) in enumerate(races):
            for one in sites:  # a read before a write that nothing orders with it is one mistake, not two
                faults.drop("uninitialised", one)
            site = min(sites)
            faults.add(f"race {number}", site, order, diagnostic.count, lambda d=diagnostic: d)  # type: ignore[misc]


def _planes(tracked: TrackedArray) -> int:
    """Epochs an element: where races are not looked for, only the last write's."""
    return (4 if tracked.atomic else 3) if tracked.for_races else 1


@dataclass(frozen=True)
class AccessId:
    """A site and what it does to memory: LOADS, STORES or ATOMICS (atomically)."""

    site: int
    effect: int

    @staticmethod
    def of(site: int, operation: Operation) -> AccessId:
        return AccessId(site, {Operation.LOAD: LOADS, Operation.STORE: STORES}.get(operation, ATOMICS))

    @property
    def number(self) -> int:
        """As the race state has it."""
        return 4 * self.site + self.effect
