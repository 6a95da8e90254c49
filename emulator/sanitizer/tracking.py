"""The history of one launch, for both emulators: which arrays it follows, and the findings in the end."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.walk import effect, statements
from ..language.types import Array
from ..machine.device import Device
from ..span import Span
from .faults import Faults
from .places import Dim3
from .races import report, shadow
from .races.shadow import ACTS, LOADS, STORES, History

MOMENTS = shadow.MOST_MOMENTS
"""Rows of the log of a launch."""
VOLTA = (7, 0)
"""The compute capability from which on lanes of a warp are not in step."""


@dataclass(frozen=True)
class TrackedArray:
    """What is looked for in an array. racy: whether for races; raw: whether for reads of what nobody wrote; atomic:
    whether the kernel acts atomically on it. number: in the history."""

    kernel: ir.Function
    name: str
    number: int
    racy: bool
    raw: bool
    atomic: bool


@dataclass(frozen=True)
class Plan:
    """What of a kernel is followed, by array; the same for all its launches but for the lengths of arrays.

    sites: where each access is; last: the largest. barriers: lines of barriers, of blocks and of warps. fenced:
    whether the kernel has fences.
    """

    kernel: ir.Function
    tracked: Mapping[str, TrackedArray]
    types: Mapping[str, Array]
    sites: Mapping[int, Span]
    barriers: tuple[int, ...]
    fenced: bool
    last: int

    @staticmethod
    def of(kernel: ir.Function, checks: Container[str], unwritten: Container[str]) -> Plan:
        """For races arrays that are shared, or global and written, are followed: what the kernel only reads cannot
        race. For reads of what nobody wrote, those that begin without contents; `unwritten` names the global ones."""
        types = {p.name: p.type for p in kernel.params if isinstance(p.type, Array)}
        types |= {s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        acted = {e.array for s in statements(kernel.body) if isinstance(e := effect(s), ir.Atomic | ir.CompareSwap)}
        written = acted | {s.array for s in statements(kernel.body) if isinstance(s, ir.Store)}
        tracked: dict[str, TrackedArray] = {}
        for name, type in types.items():
            racy = "races" in checks and (type.space == "shared" or (type.space == "global" and name in written))
            raw = "uninitialised" in checks and (type.space in ("shared", "local") or name in unwritten)
            if racy or raw:
                tracked[name] = TrackedArray(kernel, name, len(tracked), racy, raw, name in acted)
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

    def launched(
        self, block: Dim3, arguments: Mapping[str, Any], dynamic_shared: int, device: Device, moments: int | None = None
    ) -> History:
        """A history for a launch. A local array has a place for every thread of the block."""
        warps = -(-block[0] * block[1] * block[2] // 32)
        lengths = {}
        for name in self.tracked:
            type = self.types[name]
            length = len(arguments[name]) if type.space == "global" else type.length
            length = dynamic_shared // type.element.size if length is None else length
            lengths[name] = length * (32 * warps if type.space == "local" else 1)
        own = [self.types[name].space != "global" for name in self.tracked]
        sites = 1 + self.last
        in_step = lockstep(device.compute_capability)
        atomic = [f.atomic for f in self.tracked.values()]
        where = shadow.layout(lengths, {f.name: _planes(f) for f in self.tracked.values()})
        return shadow.new(where, own, atomic, sites, warps, in_step, self.fenced, moments or MOMENTS)

    def tell(self, found: History, faults: Faults, grid: Dim3, block: Dim3) -> None:
        """Add the races that a history holds to a launch's faults."""
        names = list(self.tracked)
        types = [self.types[name] for name in names]
        told = report.findings(found, names, types, self.sites, self.barriers, grid, block)
        for number, (order, sites, diagnostic) in enumerate(told):
            for one in sites:  # who is read before it is written, because nothing orders the two, is one mistake
                faults.drop("uninitialised", one)
            site = min(sites)
            faults.add(f"race {number}", site, order, diagnostic.count, lambda d=diagnostic: d)  # type: ignore[misc]


def _planes(follow: TrackedArray) -> int:
    """Stamps an element: where races are not looked for, who wrote it."""
    return (4 if follow.atomic else 3) if follow.racy else 1


@dataclass(frozen=True)
class AccessId:
    """A site and what it does to memory: LOADS, STORES or ACTS (atomically)."""

    site: int
    effect: int

    @staticmethod
    def of(site: int, operation: Operation) -> AccessId:
        return AccessId(site, {Operation.LOAD: LOADS, Operation.STORE: STORES}.get(operation, ACTS))

    @property
    def number(self) -> int:
        """As the race state has it."""
        return 4 * self.site + self.effect


def lockstep(capability: tuple[int, int]) -> bool:
    """Whether the lanes of a warp run in step on a device."""
    return capability < VOLTA
