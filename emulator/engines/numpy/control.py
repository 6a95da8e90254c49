"""Control flow of warp groups: lines of plain statements, branches, loops, frames, barriers, phases.

All warps of a block execute a statement with a barrier together, so control statements run a list of groups.
Between barriers each group runs to the end before the next one starts. `grid_phases` has those of blocks that wait for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.effects import CLUSTER_BARRIERS, COUNTING_BARRIERS
from ...language.intrinsics import WARP_SIZE
from ...passes.barriers import holds_barrier
from ...passes.waiting import may_stall, sees_others, waits
from ...profiler import events
from ...profiler.events import Counts
from ...profiler.samples import Table, row_of
from ...runtime.engine import MAX_FAULTS_PER_LOOP
from ...sanitizer import barriers, mbarriers
from ...sanitizer.places import thread_text
from ...sanitizer.races import happens_before
from . import lanes
from .expressions import scalar
from .polls import polled_element
from .warp_group import NO_LANES, Mask, Scheduler, Values, WarpGroup

Condition = Callable[[WarpGroup], Values]


class Step(Protocol):
    """One step of a body."""

    def run(self, groups: Sequence[WarpGroup]) -> None: ...


@dataclass
class Line:
    """Consecutive statements with one mask; their executions are counted together."""

    counts: Counts | None
    sites: list[int] = field(default_factory=list)
    actions: list[Callable[[WarpGroup], None]] = field(default_factory=list)
    warps: int = 0
    lanes: int = 0

    def run(self, groups: Sequence[WarpGroup]) -> None:
        for group in groups:
            warps, lanes_active = group.population()
            if lanes_active:
                self.warps += warps
                self.lanes += lanes_active
                for action in self.actions:
                    action(group)

    def flush(self) -> None:
        """Add the executions to the counts of the sites."""
        if self.counts is not None:
            self.counts[self.sites, events.WARPS] += self.warps
            self.counts[self.sites, events.LANES] += self.lanes


@dataclass
class Phase:
    """Steps without a barrier: each group runs to the end before the next one starts."""

    steps: list[Step]

    def run(self, groups: Sequence[WarpGroup]) -> None:
        for group in scheduled(groups):
            if group.active is not NO_LANES:
                single = (group,) if len(groups) > 1 else groups
                for step in self.steps:
                    step.run(single)


@dataclass
class Body:
    """A statement list."""

    steps: list[Step]

    def run(self, groups: Sequence[WarpGroup]) -> None:
        for step in self.steps:
            step.run(groups)


def split(group: WarpGroup, site: int, holds: Values, counts: Counts | None) -> tuple[Mask, Mask, bool]:
    """Split the active lanes by a condition and count the branch. Return the lanes for which it holds, the others, and
    whether the first
    mask is not empty."""
    active = group.active
    if active is NO_LANES:
        return NO_LANES, NO_LANES, False
    if active.size == 1 and holds.size == 1:
        warps, active_lanes = group.population()
        yes, divergent = bool(holds.flat[0]), 0
        true_lanes, false_lanes = (active, NO_LANES) if yes else (NO_LANES, active)
    else:
        whole = (group.shape[0] * group.shape[1], WARP_SIZE)
        true_lanes, false_lanes = np.empty(whole, np.bool_), np.empty(whole, np.bool_)
        warps, active_lanes, n, divergent = lanes.branch(group.full(active), group.full(holds), true_lanes, false_lanes)
        yes = n > 0
        true_lanes = active if n == active_lanes else true_lanes.reshape(group.shape) if yes else NO_LANES
        false_lanes = active if n == 0 else NO_LANES if n == active_lanes else false_lanes.reshape(group.shape)
    if counts is not None and active_lanes:
        row = counts[site]
        row[events.WARPS] += warps
        row[events.LANES] += active_lanes
        row[events.DIVERGENT] += divergent
    return true_lanes, false_lanes, yes


@dataclass
class Branch:
    """if / else."""

    site: int
    condition: Condition
    then: Body
    orelse: Body | None
    counts: Counts | None

    def run(self, groups: Sequence[WarpGroup]) -> None:
        before = [(group.active, group.left) for group in groups]
        splits = [
            split(group, self.site, self.condition(group), self.counts)
            if group.active is not NO_LANES
            else (NO_LANES, NO_LANES, False)
            for group in groups
        ]
        self._arm(self.then, groups, [true_lanes for true_lanes, _, _ in splits])
        if self.orelse is not None:
            self._arm(self.orelse, groups, [false_lanes for _, false_lanes, _ in splits])
        for group, (active, left) in zip(groups, before, strict=True):
            group.active = active if group.left is left else normalised(active & ~group.left)

    def _arm(self, body: Body, groups: Sequence[WarpGroup], masks: list[Mask]) -> None:
        for group, mask in zip(groups, masks, strict=True):
            group.active = mask
        if any(mask is not NO_LANES for mask in masks):
            body.run(groups)


@dataclass
class _SavedMasks:
    """The masks of a group before a loop or a frame."""

    entry: Mask
    left: Mask
    returned: Mask
    continued: Mask


@dataclass
class _StepLimits:
    """The limits of one execution of a loop, and its progress towards them.

    limit: iterations of the loop or, if it may stall, consecutive ones without progress. waiting: the latter.
    scheduler: of warps that run one at a time, if the loop observes other threads.
    """

    node: ir.While | ir.For
    site: int
    group: WarpGroup
    only_waits: bool
    may_stall: bool
    longest: int
    waiting: int
    scheduler: Scheduler | None
    iterations: int = 0
    stalled: int = 0

    @staticmethod
    def for_loop(loop: Loop, groups: Sequence[WarpGroup]) -> _StepLimits:
        group = groups[0]
        only_waits, waiting = waits(loop.node), group.request.iteration_limits[0]
        longest = waiting if only_waits else group.request.iteration_limits[1]
        scheduler = group.scheduler if sees_others(loop.node) else None
        return _StepLimits(
            loop.node, loop.site, group, only_waits, bool(may_stall(loop.node)), longest, waiting, scheduler
        )

    @property
    def limit(self) -> int:
        """The limit that a diagnostic states."""
        return self.waiting if self.may_stall else self.longest

    def exceeded(self) -> bool:
        """Return whether the loop must end before its next iteration. Other warps of the block may run in this call."""
        if self.may_stall:  # its warps run one by one
            self.stalled = 0 if self.site in self.group.further else self.stalled
            self.group.further.discard(self.site)
        idle = self.only_waits or self.stalled > 0
        stop = self.scheduler.pause(idle, self.awaited) if self.scheduler is not None and self.iterations > 0 else False
        too_many = self.iterations == self.longest or (self.may_stall and self.stalled == self.waiting)
        self.stalled += 1
        return stop or (too_many and not (idle and self.scheduler is not None))

    def awaited(self) -> tuple[str, int] | None:
        """Return the array and the element of global memory that the first lane in the loop polls; None if there is none."""
        assert isinstance(self.node, ir.While)
        lanes_inside = self.group.full(self.group.active).ravel()
        return polled_element(self.group, (*self.node.setup, *self.node.body), lanes_inside)


@dataclass
class Loop:
    """while and for. `begin` initialises the variable of a for loop; `setup` and `condition` run before each iteration,
    `advance` after it."""

    site: int
    begin: Callable[[WarpGroup], None] | None
    setup: Body
    condition: Condition
    body: Body
    advance: Callable[[WarpGroup], None] | None
    counts: Counts | None
    samples: Table | None
    node: ir.While | ir.For

    def run(self, groups: Sequence[WarpGroup]) -> None:
        before = [_SavedMasks(group.active, group.left, group.returned, group.continued) for group in groups]
        for group in groups:
            group.left = NO_LANES
            if self.begin is not None and group.active is not NO_LANES:
                self.begin(group)
        limits = _StepLimits.for_loop(self, groups)
        out_of_bounds = [0 if group.out_of_bounds is None else group.out_of_bounds for group in groups]
        while self._test(groups) and self._end_faulty(groups, out_of_bounds):
            if limits.exceeded():
                self._reach_step_limit(groups, limits.limit, limits.may_stall)
                break
            if self.samples is not None:
                self._sample(self.samples, groups, limits.iterations)
            limits.iterations += 1
            self._iterate(groups)
        for group, saved in zip(groups, before, strict=True):
            group.continued = saved.continued
            if group.returned is saved.returned:
                group.active, group.left = saved.entry, saved.left
            else:
                group.active, group.left = normalised(saved.entry & ~group.returned), saved.left | group.returned

    def _test(self, groups: Sequence[WarpGroup]) -> bool:
        """Evaluate the condition; return whether a lane starts another iteration."""
        self.setup.run(groups)
        running = False
        for group in groups:
            if group.active is not NO_LANES:
                group.active, _, yes = split(group, self.site, self.condition(group), self.counts)
                running |= yes
        return running

    def _iterate(self, groups: Sequence[WarpGroup]) -> None:
        for group in groups:
            group.continued = NO_LANES
        self.body.run(groups)
        for group in groups:
            if group.continued is not NO_LANES:
                group.active = group.active | group.continued
            group.left = NO_LANES
            if self.advance is not None and group.active is not NO_LANES:
                self.advance(group)

    def _sample(self, table: Table, groups: Sequence[WarpGroup], iteration: int) -> None:
        """Count the lanes and warps of an iteration."""
        row = row_of(iteration)
        if row is not None:
            for group in groups:
                warps, active_lanes = group.population()
                table["lanes"][row] += active_lanes
                table["warps"][row] += warps

    def _endless(self, group: WarpGroup, limit: int, stalled: bool) -> Callable[[int, int, str], Diagnostic]:
        def built(row: int, lane: int, place: str) -> Diagnostic:
            fault = barriers.endless(self.node.span, place, limit, stalled)
            for (wait, array), (index, state, word) in zip(waits_for, values, strict=True):
                if word[row, lane] >> 63 == state[row, lane] >> 63:
                    return mbarriers.deadlock(fault, wait, array, int(index[row, lane]), int(word[row, lane]))
            return fault

        polled = list(
            mbarriers.polled((*getattr(self.node, "setup", ()), *self.node.body), group.request.prepared.program.kernel)
        )
        waits_for = [(wait, array) for _, wait, array in polled]
        values = [
            [group.full(scalar(e)(group)).reshape(-1, WARP_SIZE) for e in (wait.index, wait.value, word)]
            for word, wait, _ in polled
        ]
        return built

    def _end_faulty(self, groups: Sequence[WarpGroup], before: Sequence[Values | int]) -> bool:
        """End the warps with too many accesses out of bounds since the loop began; return whether other lanes remain."""
        for group, start in zip(groups, before, strict=True):
            if group.out_of_bounds is None or group.active is NO_LANES or holds_barrier(self.node):
                continue
            over = (group.out_of_bounds - start >= MAX_FAULTS_PER_LOOP).reshape(*group.shape[:2], 1)
            if over.any():
                group.kill(group.active & over)
                group.active = normalised(group.active & ~over)
        return any(group.active is not NO_LANES for group in groups)

    def _reach_step_limit(self, groups: Sequence[WarpGroup], limit: int, stalled: bool) -> None:
        """The lanes still in the loop are at fault and leave the kernel."""
        for group in groups:
            if group.active is NO_LANES:
                continue
            group.fault("step limit", self.site, group.full(group.active), self._endless(group, limit, stalled))
            group.kill(group.active)
            group.active = NO_LANES


@dataclass
class Frame:
    """The body of an inlined call; a return in it leaves the frame."""

    body: Body

    def run(self, groups: Sequence[WarpGroup]) -> None:
        before = [_SavedMasks(group.active, group.left, group.returned, group.continued) for group in groups]
        killed = [group.killed for group in groups]
        for group in groups:
            group.left = group.returned = NO_LANES
        self.body.run(groups)
        for group, saved, dead in zip(groups, before, killed, strict=True):
            group.active, group.left, group.returned, group.continued = (
                saved.entry,
                saved.left,
                saved.returned,
                saved.continued,
            )
            if group.killed is not dead:
                group.active = normalised(saved.entry & ~group.killed)
                group.left, group.returned = saved.left | group.killed, saved.returned | group.killed


class Barrier:
    """A barrier. of_blocks: whether blocks wait for others."""

    of_blocks = False

    def run(self, groups: Sequence[WarpGroup]) -> None:
        """Execute the barrier, or let its warp arrive if it is scheduled."""
        scheduler = groups[0].scheduler
        if scheduler is None:
            self.synchronise(groups)
        else:
            scheduler.arrive(self)

    def synchronise(self, groups: Sequence[WarpGroup]) -> None:
        """Execute the barrier: every warp has arrived, or never will."""
        raise NotImplementedError


@dataclass
class BlockBarrier(Barrier):
    """sync and its counting forms. A block whose threads do not all arrive is a fault."""

    node: ir.Barrier
    site: int
    predicate: Condition
    result: Callable[[WarpGroup, Values], None]
    counts: Counts | None

    def synchronise(self, groups: Sequence[WarpGroup]) -> None:
        """Execute the barrier: every warp of the block has arrived, or never will."""
        arrived: Values | int = 1
        if self.node.mode in COUNTING_BARRIERS or any(group.active is not group.alive for group in groups):
            arrived = self._arrivals(groups)
        if barriers.requires_every_thread(groups[0].request.checks, groups[0].request.device):
            self._check_none_returned(groups)
        for group in groups:
            warps, active_lanes = group.population()
            if self.counts is not None and active_lanes:
                self.counts[self.site, events.WARPS] += warps
                self.counts[self.site, events.LANES] += active_lanes
            group.phase += arrived
        race_state = groups[0].memory.race_state
        if race_state is not None and np.any(arrived) and self.node.mode not in CLUSTER_BARRIERS:
            race_state(happens_before.barrier)

    def _arrivals(self, groups: Sequence[WarpGroup]) -> Values:
        """Return the blocks with arriving threads. Reports missing threads, and assigns the combined predicates."""
        active = np.concatenate([np.broadcast_to(t.active, t.shape) for t in groups], axis=1)
        alive = np.concatenate([np.broadcast_to(t.alive, t.shape) for t in groups], axis=1)
        arrived = active.sum(axis=(1, 2))
        waiting = np.where(arrived > 0, (alive & ~active).sum(axis=(1, 2)), 0)
        for block in np.flatnonzero(waiting):
            self._report(
                "barrier", barriers.divergent, groups, int(block), active[block], alive[block] & ~active[block]
            )
        if self.node.mode in COUNTING_BARRIERS:
            holds = np.concatenate(
                [np.broadcast_to(self.predicate(t) if t.active is not NO_LANES else NO_LANES, t.shape) for t in groups],
                axis=1,
            )
            count = (holds & active).sum(axis=(1, 2)).reshape(-1, 1, 1)
            total = arrived.reshape(-1, 1, 1)
            results = {"count": count.astype(np.int32), "and": count == total, "or": count > 0}
            for group in groups:
                self.result(group, results[self.node.mode])
        return np.asarray(arrived > 0)

    def _check_none_returned(self, groups: Sequence[WarpGroup]) -> None:
        """Report threads of a block that returned before the barrier."""
        everyone = np.concatenate([np.broadcast_to(t.everyone, t.shape) for t in groups], axis=1)
        alive = np.concatenate([np.broadcast_to(t.alive, t.shape) for t in groups], axis=1)
        active = np.concatenate([np.broadcast_to(t.active, t.shape) for t in groups], axis=1)
        returned = everyone & ~alive
        for block in np.flatnonzero(returned.any(axis=(1, 2)) & active.any(axis=(1, 2))):
            self._report("returned", barriers.returned, groups, int(block), active[block], returned[block])

    def _report(
        self,
        kind: str,
        describe: Callable[..., Diagnostic],
        groups: Sequence[WarpGroup],
        block: int,
        active: Mask,
        missing: Mask,
    ) -> None:
        group, request = groups[0], groups[0].request
        linear = int(group.blocks[block])
        threads = np.concatenate([t.warps for t in groups]).repeat(WARP_SIZE) * WARP_SIZE + np.tile(
            np.arange(WARP_SIZE), active.shape[0]
        )
        present, absent_threads = (np.sort(threads[np.flatnonzero(mask)]) for mask in (active, missing))
        place, absent_place = (
            thread_text(linear, int(t[0]), request.grid, request.block, 0) for t in (present, absent_threads)
        )
        order = (linear, int(group.phase[block]), int(present[0]) // WARP_SIZE)
        count = len(absent_threads)
        group.faults.add(
            kind, self.site, order, count, lambda: describe(self.node.span, place, len(present), count, absent_place)
        )


def scheduled(groups: Sequence[WarpGroup]) -> Sequence[WarpGroup]:
    """The warps of a block in the order in which they run a phase."""
    first = groups[0]
    if first.memory.schedule is None or len(groups) == 1:
        return groups
    order = first.memory.schedule.of_phase(int(first.blocks[0]), int(first.phase[0]), len(groups))
    return [groups[warp] for warp in order]


def normalised(mask: Mask) -> Mask:
    """The mask, or NO_LANES where it is empty."""
    return mask if mask.any() else NO_LANES
