"""Races between threads: the accesses to each element since its last ordered write, in Python objects.

Barriers of the block and the grid, `syncwarp`, and releases with their acquires (`release_order`) order accesses. The findings have the
messages of the compiled detector. Kernels with asynchronous copies are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import Diagnostic, LaunchError
from ...ir import nodes as ir
from ...ir.access import Operation
from ...ir.effects import accesses
from ...language.intrinsics import WARP_SIZE
from ...passes.grids import has_clusters
from ...runtime.engine import Request
from ...sanitizer.elements import element
from ...sanitizer.places import coordinates, in_one_cluster
from ...sanitizer.races import detect, release_acquire, report, shadow
from ...sanitizer.races.cluster_blocks import misuse
from ...sanitizer.races.racing_launch import RacingArray, RacingLaunch
from ...sanitizer.tracking import AccessId, Plan
from ...span import Span
from .release_order import Release, ReleaseOrder
from .threads import Access, Block, Fault, Launch


def require_exact(request: Request) -> None:
    """Raise LaunchError for a kernel whose races this engine does not find exactly."""
    kernel = request.prepared.program.kernel
    roles = Plan.for_kernel(kernel, {"races"}, ()).roles
    reads = (roles.get(stmt.site, 0) for stmt, access in accesses(kernel) if isinstance(access, ir.Load))
    asynchronous = any(role & shadow.ASYNCHRONOUS for role in roles.values())
    if asynchronous or any(role & (shadow.BULK | shadow.PRODUCT) for role in reads):
        raise LaunchError(
            'engine="python" finds no races in a kernel with asynchronous copies or products: write '
            'check="bounds,alignment,uninitialised,barriers,arithmetic", or engine="jit"'
        )


@dataclass
class Element:
    """The last write of an element, and by thread the reads and atomic operations since then. block_scope: whether one of those is
    atomic for its block only. head: the releases that a read of the element acquires."""

    write: Access | None = None
    reads: dict[tuple[int, int], Access] = field(default_factory=dict)
    atomics: dict[tuple[int, int], Access] = field(default_factory=dict)
    block_scope: bool = False
    head: list[Release] = field(default_factory=list)

    def copy(self) -> Element:
        return Element(self.write, dict(self.reads), dict(self.atomics), self.block_scope, list(self.head))

    def earlier(self, kind: int) -> Iterator[Access]:
        """Yield the accesses with which one of a kind may race, atomic operations from the last one on."""
        if self.write is not None:
            yield self.write
        if kind != shadow.LOADS:
            yield from self.reads.values()
        yield from reversed(self.atomics.values())

    def add(self, access: Access, kind: int) -> None:
        """Record an access of a kind."""
        if kind == shadow.STORES:
            self.write, self.block_scope = access, False
            self.reads.clear()
            self.atomics.clear()
            return
        others = self.reads if kind == shadow.LOADS else self.atomics
        others.pop((access.block, access.thread), None)  # the last one is behind the others
        others[access.block, access.thread] = access


class Races:
    """The shadow memory of a launch: an `Element` for each accessed element of a tracked array."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.elements: dict[Any, Element] = {}
        kernel = launch.request.prepared.program.kernel
        common = launch.request.overlapping_arrays
        plan = Plan.for_kernel(kernel, {"races"}, (), tuple(memory.overlap for memory in common))
        self.tracked, self.types, self.kernel = plan.tracked, plan.types, kernel
        self.has_clusters = has_clusters(kernel)
        self.order = ReleaseOrder(launch.request.device.warp_synchronous) if plan.fenced else None
        self.roles = {_place(node, node.span): plan.roles.get(stmt.site, 0) for stmt, node in accesses(kernel)}
        self.places = {
            name: (number, start) for number, memory in enumerate(common) for name, start in memory.starts.items()
        }

    def load(self, elements: Mapping[Any, Element]) -> None:
        """Copy the shadow memory of another run."""
        self.elements = {key: element.copy() for key, element in elements.items()}

    def access(self, access: Access) -> Fault | None:
        """Compare an access with the earlier ones of its element. Return the finding of an unordered one."""
        if access.array not in self.tracked:
            return None
        kind = _kind(access)
        finding: Fault | None = None
        for key, index in self._shadow_elements(access):
            element = self.elements.setdefault(key, Element())
            element.block_scope |= kind == shadow.BLOCK_ATOMICS
            if self.order is not None and kind >= shadow.ATOMICS and self.role(access) & shadow.ACQUIRES:
                element.head = self.order.access(access, self.role(access), element.head, key)
            for earlier in element.earlier(kind):
                relation = self.relation(earlier, access)
                status = release_acquire.NOT_RELEASED
                if relation != detect.ORDERED and self.order is not None:
                    status = self.order.status(earlier, access)
                relation = detect.ORDERED if status == release_acquire.ACQUIRED else relation
                if finding is None and relation != detect.ORDERED and self.conflict(earlier, access, relation):
                    finding = self.finding(earlier, access, (relation, status), index)
                    break
                if relation == detect.ORDERED and kind < shadow.ATOMICS and self.role(earlier) & shadow.RETURNS:
                    break  # it is ordered after the atomic operations before it
            if self.order is not None and kind >= shadow.ATOMICS and not self.role(access) & shadow.ACQUIRES:
                element.head = self.order.access(access, self.role(access), element.head, key)
            element.add(access, kind)
        return finding

    def _shadow_elements(self, access: Access) -> Iterator[tuple[Any, int]]:
        """Yield the key of each shadow element of an access, and its index in the array."""
        units, place = self.tracked[access.array].units, self.places.get(access.array)
        for index in range(access.index * units, (access.index + 1) * units):
            yield (access.memory, index) if place is None else (place[0], place[1] + index), index

    def _racing_array(self, name: str) -> RacingArray:
        start = self.places[name][1] if name in self.places else None
        return RacingArray(name, self.types[name], self.tracked[name].units, start)

    def role(self, access: Access) -> int:
        """Return the bits of an access, see `shadow.ACQUIRES`."""
        return self.roles[_place(access.node, access.span)] | shadow.LOADS_ONLY * access.failed

    def conflict(self, earlier: Access, access: Access, relation: int) -> bool:
        """Return whether two accesses of threads of a group need an order."""
        first, second = _kind(earlier), _kind(access)
        roles = self.role(earlier), self.role(access)
        if all(
            kind == shadow.LOADS or role & shadow.LOADS_ONLY for kind, role in zip((first, second), roles, strict=True)
        ):
            return False
        if min(first, second) >= shadow.ATOMICS:
            if relation == detect.WITHIN_WARP and roles[0] & roles[1] & shadow.EXCHANGES:
                return bool((roles[0] ^ roles[1]) & shadow.LOADS_ONLY)
            return relation == detect.WITHIN_GRID and max(first, second) == shadow.BLOCK_ATOMICS
        return True

    def relation(self, earlier: Access, access: Access) -> int:
        """Return the smallest group with the threads of two accesses; ORDERED if a barrier or their order in a thread orders them."""
        blocks, request = (earlier.block, access.block), self.launch.request
        if earlier.arrived < access.awaited and (
            not self.has_clusters or in_one_cluster(blocks, request.grid, request.cluster)
        ):
            return detect.ORDERED
        if earlier.block != access.block:
            return detect.WITHIN_GRID
        if earlier.thread == access.thread or earlier.phase < access.phase:
            return detect.ORDERED
        if earlier.thread // WARP_SIZE != access.thread // WARP_SIZE:
            return detect.WITHIN_BLOCK
        if earlier.epoch < access.lane_epochs.get(earlier.thread, 0):
            return detect.ORDERED
        same = self.is_same_instruction(earlier, access)
        return detect.ORDERED if self.launch.request.device.warp_synchronous and not same else detect.WITHIN_WARP

    def misuse(self, blocks: Mapping[int, Block]) -> Fault | None:
        """Return the finding of an access to the shared memory of a block of a cluster before it has started, or after it has ended."""
        request = self.launch.request
        for (memory, index), element_ in self.elements.items():
            if not isinstance(memory, tuple) or len(memory) != 2 or memory[1] not in blocks:
                continue
            owner = blocks[memory[1]]
            for access in element_.earlier(shadow.STORES):
                early, late = access.awaited == 0, access.arrived >= owner.awaited
                if access.block == owner.linear or not (early or late):
                    continue
                places = owner.index, coordinates(access.block, request.grid)
                shown = element(access.array, self.types[access.array], index, {})
                reads, thread = isinstance(access.node, ir.Load), coordinates(access.thread, request.block)
                fault = self.launch.finding(misuse(shown, access.span, reads, late and not early, places, thread))
                if fault is not None:
                    return fault
        return None

    def is_same_instruction(self, earlier: Access, access: Access) -> bool:
        return earlier.node is access.node and earlier.executions == access.executions

    def finding(self, earlier: Access, access: Access, order: tuple[int, int], index: int) -> Fault | None:
        """Return the exception of a race with the text of the compiled detector; None if a comment or its kind allows it.

        order: the relation and the release status. index: of the shadow element in the array of `access`.
        """
        relation, status = order
        request = self.launch.request
        stores = _kind(earlier) == _kind(access) == shadow.STORES
        row = np.zeros(shadow.PAIR, np.int64)
        row[detect.USED], row[detect.COUNT], row[detect.RELATION], row[detect.INDEX] = 1, 1, relation, index
        row[detect.ARRAY] = 1
        row[detect.FIRST], row[detect.SECOND] = _kind(earlier), 4 + _kind(access)
        row[detect.BLOCK_1], row[detect.THREAD_1] = earlier.block, earlier.thread
        row[detect.BLOCK_2], row[detect.THREAD_2] = access.block, access.thread
        row[detect.PHASE_2] = access.phase
        row[detect.REMARK] = detect.SAME_VALUE if stores and _equal(earlier.value, access.value) else detect.HARMFUL
        roles = {0: self.role(earlier), 1: self.role(access)}
        if max(_kind(earlier), _kind(access)) >= shadow.ATOMICS and (roles[0] | roles[1]) & shadow.PROPOSES:
            row[detect.REMARK] = detect.PROPOSAL
        if status == release_acquire.READ_NOT_ACQUIRED:
            row[detect.REMARK] = detect.UNACQUIRED
        overlaps = stores and relation == detect.WITHIN_WARP and self.is_same_instruction(earlier, access)
        row[detect.OVERLAP] = detect.SAME_INSTRUCTION if overlaps else detect.SEPARATE
        sites: dict[int, Span] = {0: earlier.span, 1: access.span}
        arrays = [self._racing_array(one.array) for one in (earlier, access)]
        racing = RacingLaunch(
            self.kernel,
            arrays,
            {0: 0, 1: 1},
            sites,
            roles,
            request.grid,
            request.block,
            request.forms,
            False,
            self.order is not None,
            request.cluster,
        )
        diagnostic: Diagnostic = report.findings(_Findings(row), racing)[0][2]  # type: ignore[arg-type]
        fault = self.launch.finding(diagnostic)
        if fault is not None:
            fault.other = earlier
        return fault


@dataclass(frozen=True)
class _Findings:
    """The findings of a race state."""

    findings: Any


def _place(node: Any, span: Span) -> tuple[Span, bool]:
    """Return the span of an access, and whether it loads: a line of CUDA C++ that updates an element has two accesses of one span."""
    return span, isinstance(node, ir.Load)


def _kind(access: Access) -> int:
    operation = Operation.LOAD if isinstance(access.node, ir.Load) else Operation.STORE
    return AccessId.for_access(0, operation, access.node).effect


def _equal(first: Any, second: Any) -> bool:
    return bool(np.asarray(first).tobytes() == np.asarray(second).tobytes())
