"""Which arrays of a kernel have shadow memory, the race state of a launch, and the races found in it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.effects import accesses, is_ordered, row_of
from ..ir.walk import effect, statements
from ..language.types import Array
from ..machine.device import Device
from ..passes.grids import is_cooperative
from ..span import Span
from . import checkers
from .elements import Forms
from .faults import Faults
from .places import Dim3
from .races import report, shadow
from .races.shadow import ATOMICS, BLOCK_ATOMICS, LOADS, STORES, RaceState

RELEASES = ("release", "acq_rel")
"""Orders of accesses that order what their thread did before."""
ACQUIRES = ("acquire", "acq_rel")
"""Orders of accesses that learn by themselves what was done before what they read was released."""
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
    fenced: whether the kernel has fences, or accesses that release. roles: of its sites, see `shadow.ACQUIRES`.
    """

    kernel: ir.Function
    tracked: Mapping[str, TrackedArray]
    types: Mapping[str, Array]
    sites: Mapping[int, Span]
    barriers: tuple[int, ...]
    fenced: bool
    last: int
    roles: Mapping[int, int]

    @staticmethod
    def of(kernel: ir.Function, checks: Iterable[str], unwritten: Container[str]) -> Plan:
        """The arrays that the checkers asked for track; `unwritten` names those given as `empty`."""
        types = {p.name: p.type for p in kernel.params if isinstance(p.type, Array)}
        types |= {s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        found = list(accesses(kernel))
        atomic = {access.array for _, access in found if access.order != "weak"}  # asynchronous copies too
        written = {access.array for _, access in found if not isinstance(access, ir.Load)}
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
        rows = [(s, row) for s in statements(kernel.body) if (row := row_of(s)) is not None]
        barriers = [s.span.line for s, row in rows if row.transition in ("syncwarp", "barrier")]
        fenced = any(isinstance(s, ir.Fence) for s in statements(kernel.body))
        fenced |= any(access.order in RELEASES for _, access in found)
        roles = {
            s.site: shadow.ACQUIRES * (e.order in ACQUIRES) | shadow.LOADS_ONLY * isinstance(e, ir.Load)
            for s, e in found
            if is_ordered(e)
        }
        roles |= {
            s.site: shadow.ASYNCHRONOUS
            for s in statements(kernel.body)
            if isinstance(s, ir.Store) and s.order == "async"
        }
        return Plan(kernel, tracked, types, sites, tuple(barriers), fenced, max(sites, default=0), roles)

    def new_race_state(
        self,
        block: Dim3,
        arguments: Mapping[str, Any],
        carved: Mapping[str, int],
        device: Device,
        rows: int | None = None,
        blocks: int = 1,
        written: Mapping[str, Any] | None = None,
    ) -> RaceState:
        """The race state at the start of a launch. carved: the lengths of arrays in dynamic shared memory. A local array
        has an element for every thread of the block. blocks: how many have shared and local arrays at the same time. written:
        of global arrays, the elements that were written before."""
        warps = -(-block[0] * block[1] * block[2] // 32)
        lengths = {}
        for name in self.tracked:
            type = self.types[name]
            length = len(arguments[name]) if type.space == "global" else type.length
            length = carved[name] if length is None else length
            lengths[name] = length * (32 * warps if type.space == "local" else 1)
        own = [self.types[name].space != "global" for name in self.tracked]
        copies = {name: blocks if mine else 1 for name, mine in zip(self.tracked, own, strict=True)}
        layout = shadow.layout(lengths, {f.name: _planes(f) for f in self.tracked.values()}, copies)
        if is_cooperative(self.kernel):
            own = [False] * len(own)
        attributes = [(mine, f.atomic) for mine, f in zip(own, self.tracked.values(), strict=True)]
        found = shadow.new(
            layout, attributes, 1 + self.last, warps, device.warp_synchronous, self.fenced, rows or LOG_ROWS, self.roles
        )
        for name, elements in (written or {}).items():
            if name in self.tracked:
                self._written(found, name, len(elements))[...] = elements
        return found

    def written(self, found: RaceState, arguments: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Of those of the global arrays in which unwritten elements are looked for: bool by element, which are written."""
        chosen = (name for name in names if name in self.tracked and self.tracked[name].for_unwritten)
        return {name: self._written(found, name, len(arguments[name])) != 0 for name in chosen}

    def _written(self, found: RaceState, name: str, length: int) -> Any:
        """The WRITTEN plane of a global array."""
        start = int(found.planes.reshape(-1, 4)[self.tracked[name].number, 0])
        return found.epochs[start : start + length]

    def select_block(self, found: RaceState, block: int, blocks: int) -> None:
        """Of blocks that take their turns, make the planes of one the ones that its shared and local arrays have."""
        places, start = found.planes.reshape(-1, 4), shadow.PADDING
        for name, tracked in self.tracked.items():
            step = _planes(tracked) * int(places[tracked.number, 1]) + shadow.PADDING
            mine = self.types[name].space != "global"
            places[tracked.number, 0] = start + (block * step if mine else 0)
            start += step * (blocks if mine else 1)

    def report(self, found: RaceState, faults: Faults, grid: Dim3, block: Dim3, forms: Forms) -> None:
        """Add the races found in a launch to its faults."""
        names = list(self.tracked)
        types = [self.types[name] for name in names]
        races = report.findings(found, names, types, self.sites, self.barriers, grid, block, forms)
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
    """A site and what it does to memory: LOADS, STORES, ATOMICS (atomically) or BLOCK_ATOMICS (for its block)."""

    site: int
    effect: int

    @staticmethod
    def of(site: int, operation: Operation, node: ir.Access) -> AccessId:
        if not is_ordered(node):
            return AccessId(site, LOADS if operation is Operation.LOAD else STORES)
        return AccessId(site, BLOCK_ATOMICS if node.scope == "block" else ATOMICS)

    @property
    def number(self) -> int:
        """As the race state has it."""
        return 4 * self.site + self.effect
