"""Tracked arrays of a kernel (those with shadow memory), the race state of a launch, and its races."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..ir import nodes as ir
from ..ir.access import Operation
from ..ir.effects import MBARRIER_OPS, accesses, is_ordered
from ..ir.walk import effect, statements
from ..language.intrinsics import WARP_SIZE
from ..language.types import Array
from ..machine.device import Device
from ..passes.grids import has_clusters, is_cooperative
from ..passes.load_uses import load_uses
from ..passes.waiting import changes_nothing
from ..span import Span
from . import checkers
from .elements import Forms
from .faults import Faults
from .places import Dim3
from .races import report, shadow
from .races.detect import ARRAY, INDEX
from .races.racing_launch import RacingArray, RacingLaunch
from .races.shadow import ATOMICS, BLOCK_ATOMICS, LOADS, STORES, OverlappingArrays, RaceState

RELEASES = ("release", "acq_rel")
"""Memory orders that release the earlier accesses of their thread."""
ACQUIRES = ("acquire", "acq_rel")
"""Memory orders that acquire the accesses released to the element."""
ASYNCHRONOUS = {"async": shadow.ASYNCHRONOUS, "bulk": shadow.BULK, "wgmma": shadow.PRODUCT}
"""Bits of `roles` by the order of an asynchronous access."""
LOG_ROWS = shadow.MOST_TIMESTAMPS
"""Rows of the log of a launch."""


@dataclass(frozen=True)
class TrackedArray:
    """An array with shadow memory.

    number: among the tracked arrays. for_races: whether it is checked for races. for_unwritten: whether it is checked for
    uninitialised reads. atomic: whether the kernel has atomic operations on it. units: shadow elements of an element. common:
    whether other arrays share its memory; `atomic` then is of all of them.
    """

    kernel: ir.Function
    name: str
    number: int
    for_races: bool
    for_unwritten: bool
    atomic: bool
    units: int = 1
    common: bool = False

    def block_step(self, race: RaceState) -> int:
        """Return the epochs between the planes of two blocks."""
        return planes_of(self) * int(race.planes[4 * self.number + 1]) + shadow.PADDING


Overlap = tuple[tuple[tuple[str, int], ...], ...]
"""Arrays of a launch with common memory: for each memory, the names of its arrays and the units of their elements."""


@dataclass(frozen=True)
class AccessedElements:
    """Elements of a global array, bool each: stored to, read, and accessed by atomic operations."""

    written: npt.NDArray[np.bool_]
    read: npt.NDArray[np.bool_]
    atomic: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Plan:
    """The tracked arrays of a kernel, and the data that describe its races. It does not depend on the launch.

    sites: the span of each access; arrays: its array; last: the largest site. fenced: whether the kernel has fences, or accesses that
    release. roles: of its sites, see `shadow.ACQUIRES`. failures: for each compare-and-swap, a site beyond those of the kernel for
    the lanes whose swap fails, which only read.
    """

    kernel: ir.Function
    tracked: Mapping[str, TrackedArray]
    types: Mapping[str, Array]
    sites: Mapping[int, Span]
    arrays: Mapping[int, str]
    fenced: bool
    last: int
    roles: Mapping[int, int]
    failures: Mapping[int, int]

    @staticmethod
    def for_kernel(
        kernel: ir.Function, checks: Iterable[str], unwritten: Container[str], overlap: Overlap = ()
    ) -> Plan:
        """Return the plan of the requested checkers. unwritten: names of arrays given as `empty`."""
        types = {p.name: p.type for p in kernel.params if isinstance(p.type, Array)}
        types |= {s.array: s.type for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        operations = list(accesses(kernel))
        atomic = {access.array for _, access in operations if access.order != "weak"}  # asynchronous copies too
        written = {access.array for _, access in operations if not isinstance(access, ir.Load)}
        units = {name: own for memory in overlap for name, own in memory}
        for names in [{name for name, _ in memory} for memory in overlap]:
            atomic |= names if names & atomic else set()
            written |= names if names & written else set()
        rules = [row.on_access for row in checkers.requested(frozenset(checks)) if row.on_access is not None]
        tracked: dict[str, TrackedArray] = {}
        for name, type in types.items():
            finds = {rule.finds for rule in rules if rule.tracks(type, name in written, name in unwritten)}
            if finds:
                number = len(tracked)
                facts = "races" in finds, "unwritten" in finds, name in atomic
                tracked[name] = TrackedArray(kernel, name, number, *facts, units.get(name, 1), name in units)
        sites = {
            s.site: s.value.span if effect(s) else s.span for s in statements(kernel.body) if isinstance(s, ir.Let)
        }
        sites |= {s.site: s.span for s in statements(kernel.body) if isinstance(s, ir.Store)}
        fenced = any(isinstance(s, ir.Fence) for s in statements(kernel.body))
        fenced |= any(access.order in RELEASES for _, access in operations)
        roles = {s.site: _role(s, e, kernel) for s, e in operations if is_ordered(e)}
        roles |= dict.fromkeys(load_uses(kernel).proposals, shadow.PROPOSES)
        roles |= {
            s.site: ASYNCHRONOUS[e.order]
            for s, e in operations
            if e.order in ASYNCHRONOUS and (e.order != "async" or isinstance(e, ir.Store))
        }
        arrays = {stmt.site: access.array for stmt, access in operations}
        swaps = [stmt.site for stmt, access in operations if isinstance(access, ir.CompareSwap)]
        failures = {site: number for number, site in enumerate(swaps, 1 + max(sites, default=0))}
        for site, failure in failures.items():
            sites[failure], arrays[failure], roles[failure] = (
                sites[site],
                arrays[site],
                roles[site] & ~shadow.RELEASES | shadow.LOADS_ONLY,
            )
        return Plan(kernel, tracked, types, sites, arrays, fenced, max(sites, default=0), roles, failures)

    def new_race_state(
        self,
        block: Dim3,
        arguments: Mapping[str, Any],
        carved: Mapping[str, int],
        device: Device,
        blocks: int = 1,
        written: Mapping[str, Any] | None = None,
        common: Sequence[OverlappingArrays] = (),
    ) -> RaceState:
        """Return the race state at the start of a launch.

        carved: lengths of arrays in dynamic shared memory. A local array has an element for every thread of the block. blocks:
        number of blocks with shared and local arrays at the same time. written: of global arrays, the elements written before.
        common: the arrays of the plan's overlap.
        """
        warps = -(-block[0] * block[1] * block[2] // WARP_SIZE)
        lengths = {}
        for name in self.tracked:
            type = self.types[name]
            length = len(arguments[name]) if type.space == "global" else type.length
            length = carved[name] if length is None else length
            lengths[name] = length * (WARP_SIZE * warps if type.space == "local" else 1)
        own = [self.types[name].space != "global" for name in self.tracked]
        copies = {name: blocks if mine else 1 for name, mine in zip(self.tracked, own, strict=True)}
        layout = shadow.layout(lengths, {f.name: planes_of(f) for f in self.tracked.values()}, copies, common)
        if is_cooperative(self.kernel) or has_clusters(self.kernel) or blocks > 1:
            own = [False] * len(own)
        attributes = [(mine, f.atomic) for mine, f in zip(own, self.tracked.values(), strict=True)]
        race = shadow.new(
            layout, attributes, 1 + self.last, warps, device.warp_synchronous, self.fenced, LOG_ROWS, self.roles
        )
        for name, elements in (written or {}).items():
            if name in self.tracked:
                self._written(race, name, len(elements))[...] = elements
        return race

    def written(self, race: RaceState, arguments: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Return which elements of global arrays are written (bool by element), of arrays checked for uninitialised reads."""
        chosen = (name for name in names if name in self.tracked and self.tracked[name].for_unwritten)
        return {name: self._written(race, name, len(arguments[name])) != 0 for name in chosen}

    def accessed(
        self, race: RaceState, arguments: Mapping[str, Any], names: Iterable[str]
    ) -> dict[str, AccessedElements]:
        """Return the elements of global arrays that the launch accessed. An array that is not checked for races is read as a whole."""
        result = {}
        for name in names:
            length, tracked = len(arguments[name]), self.tracked.get(name)
            nothing = np.zeros(length, np.bool_)
            if tracked is None or not tracked.for_races:
                result[name] = AccessedElements(nothing, ~nothing, nothing)
                continue
            planes = [self._plane(race, name, number, length) for number in range(planes_of(tracked))]
            last = planes[shadow.WRITTEN]
            stored = (
                np.asarray(race.log).reshape(-1, 4)[last >> shadow.BITS, shadow.ACCESS_OF] & 3 == STORES
            )  # else it is of an atomic operation
            atomic = np.logical_or.reduce([plane >= shadow.TICK for plane in planes[shadow.ATOMIC :]]) | nothing
            result[name] = AccessedElements((last >= shadow.TICK) & stored, planes[shadow.READ] >= shadow.TICK, atomic)
        return result

    def _written(self, race: RaceState, name: str, length: int) -> Any:
        """Return the WRITTEN plane of a global array."""
        return self._plane(race, name, shadow.WRITTEN, length)

    def _plane(self, race: RaceState, name: str, number: int, length: int) -> Any:
        start, size = np.asarray(race.planes).reshape(-1, 4)[self.tracked[name].number, :2].tolist()
        return race.epochs[start + number * size :][:length]

    def select_block(self, race: RaceState, block: int, blocks: int) -> None:
        """Select the planes of shared and local arrays of one block of a launch whose blocks alternate."""
        places, start = np.asarray(race.planes).reshape(-1, 4), shadow.PADDING
        for name, tracked in self.tracked.items():
            if tracked.common:  # behind the others
                continue
            step = tracked.block_step(race)
            mine = self.types[name].space != "global"
            places[tracked.number, 0] = start + (block * step if mine else 0)
            start += step * (blocks if mine else 1)

    def _reduce_indices(self, race: RaceState) -> None:
        """Replace the index of each finding in the memory of another block by that in its array."""
        rows = np.asarray(race.findings).reshape(-1, shadow.PAIR)
        for name, tracked in self.tracked.items():
            if self.types[name].space != "global":
                rows[rows[:, ARRAY] == tracked.number, INDEX] %= tracked.block_step(race)

    def report(
        self, race: RaceState, faults: Faults, grid: Dim3, block: Dim3, forms: Forms, cluster: Dim3 = (1, 1, 1)
    ) -> None:
        """Add the races of a launch to its faults. cluster: blocks of a cluster by axis."""
        if has_clusters(self.kernel):
            self._reduce_indices(race)
        starts = np.asarray(race.planes).reshape(-1, 4)[:, 0].tolist()
        arrays = [
            RacingArray(name, self.types[name], tracked.units, start if tracked.common else None)
            for (name, tracked), start in zip(self.tracked.items(), starts, strict=True)
        ]
        merged, fenced = bool(race.state[shadow.MERGED]), bool(race.state[shadow.FENCED])
        of_sites = {site: self.tracked[name].number for site, name in self.arrays.items() if name in self.tracked}
        launch = RacingLaunch(
            self.kernel, arrays, of_sites, self.sites, self.roles, grid, block, forms, merged, fenced, cluster
        )
        races = report.findings(race, launch)
        for number, (order, sites, diagnostic) in enumerate(races):
            for racing in sites:  # an unordered read before a write is one mistake, not two
                faults.drop("uninitialised", racing)
            site = min(sites)
            faults.add(f"race {number}", site, order, diagnostic.count, lambda d=diagnostic: d)  # type: ignore[misc]


def _role(stmt: ir.Stmt, access: ir.Access, kernel: ir.Function) -> int:
    """Return the bits of `roles` of an ordered access."""
    reads = isinstance(access, ir.Load) or (isinstance(access, ir.Atomic) and changes_nothing(access))
    role = shadow.ACQUIRES * (access.order in ACQUIRES) | shadow.LOADS_ONLY * reads
    role |= shadow.RELEASES * (access.order in RELEASES and not reads)
    role |= shadow.OVERWRITES * isinstance(access, ir.Store)
    if access.order == "volatile":
        return role | shadow.EXCHANGES * (stmt.site not in load_uses(kernel).polls)
    return role | shadow.RETURNS * (isinstance(stmt, ir.Let) and stmt.target is not None)


def planes_of(tracked: TrackedArray) -> int:
    """Return the epochs per element: without a check for races only the last write."""
    return shadow.ATOMIC + 2 * tracked.atomic if tracked.for_races else 1


def is_of_block(node: ir.Access) -> bool:
    """Return whether an access is atomic for its block only; an operation on a barrier is so for all threads that have its address."""
    return node.scope == "block" and not (isinstance(node, ir.Atomic) and node.op in MBARRIER_OPS)


@dataclass(frozen=True)
class AccessId:
    """A site and its operation: LOADS, STORES, ATOMICS, or BLOCK_ATOMICS (atomic for its block)."""

    site: int
    effect: int

    @staticmethod
    def for_access(site: int, operation: Operation, node: ir.Access) -> AccessId:
        if not is_ordered(node):
            return AccessId(site, LOADS if operation is Operation.LOAD else STORES)
        return AccessId(site, BLOCK_ATOMICS if is_of_block(node) else ATOMICS)

    @property
    def number(self) -> int:
        """The access id in the race state."""
        return 4 * self.site + self.effect
