"""The numpy engine: whole batches of blocks in lockstep under masks. It is the readable definition of the language."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count, groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from ...ir import counting
from ...ir import nodes as ir
from ...ir.effects import is_ordered, performed, row_of
from ...ir.names import elements
from ...ir.walk import statements
from ...language.intrinsics import WARP_SIZE
from ...language.types import Array, Vector
from ...passes.barriers import holds_barrier
from ...passes.grids import has_clusters, holds_blocks_barrier, is_cooperative
from ...passes.lane_progress import with_lane_progress
from ...passes.sites import Site
from ...passes.waiting import may_stall
from ...profiler import events
from ...profiler.events import Counts
from ...profiler.samples import Samples, Table
from ...runtime.arrays import Buffer
from ...runtime.engine import Outcome, Request
from ...runtime.prepared import PreparedProgram
from ...runtime.prints import Prints
from ...sanitizer import checkers, tracking
from ...sanitizer.faults import Faults
from ...sanitizer.races import happens_before
from ...sanitizer.races.cluster_blocks import ClusterBlocks
from ...sanitizer.races.resident_blocks import ResidentBlocks
from ...sanitizer.schedules import Schedule
from . import memory, warp
from .checks import assertion, check
from .control import BlockBarrier, Body, Branch, Frame, Line, Loop, Phase, Step
from .expressions import scalar, value
from .grid_phases import GridBarrier, GridPhase
from .warp_group import NO_LANES, ArrayStorage, Register, WarpGroup
from .warp_interleaving import Waits, interleave

LANES_AT_ONCE = 1 << 16
"""Threads in a batch of blocks: enough to hide NumPy's calls, few enough for the caches."""


class NumpyEngine:
    """Runs programs on arrays of lanes. Batches of blocks run together, unless the order of warps is observable."""

    name = "numpy"

    def run(self, request: Request) -> Outcome:
        prepared = request.prepared
        counts = np.zeros((len(prepared.sites), events.COLUMNS), np.int64) if request.counters else None
        samples = Samples({}, {}) if request.detail else None
        run = _Run(request, prepared, counts, samples)
        with np.errstate(all="ignore"):
            run.run_blocks()
        diagnostics, printed = run.faults.diagnostics(), run.prints.finish()
        outcome = Outcome(run.written(), counts, diagnostics, printed, samples=samples, waits=run.waits)
        if run.race_state is not None:
            outcome.written = run.plan.written(run.race_state.arrays, request.arguments, request.unwritten)
            if "races" in request.checks:
                outcome.accessed = run.plan.accessed(run.race_state.arrays, request.arguments, request.persistent)
        return outcome


class _Run:
    """One launch."""

    def __init__(
        self,
        request: Request,
        prepared: PreparedProgram,
        counts: Counts | None,
        samples: Samples | None,
    ) -> None:
        self.request, self.prepared = request, prepared
        self.faults = Faults()
        self.waits = Waits(together=1)
        self.prints = Prints(request)
        self.kernel = prepared.program.kernel
        self.arrays: dict[str, Array] = {p.name: p.type for p in self.kernel.params if isinstance(p.type, Array)}
        self.allocations = [s for s in statements(self.kernel.body) if isinstance(s, ir.Alloc)]
        self.arrays |= {s.array: s.type for s in self.allocations}
        self.changed = prepared.changed
        seed = request.schedule
        self.schedule = None if seed is None else Schedule.from_seed(seed, request.grid, request.block)
        common = request.overlapping_arrays
        overlap = tuple(memory.overlap for memory in common)
        self.plan = tracking.Plan.for_kernel(self.kernel, request.checks, request.unwritten, overlap)
        carved = {name: array.length for name, array in request.dynamic_arrays.items()}
        race_arguments = (request.block, request.arguments, carved, request.device)
        self.clusters = has_clusters(self.kernel)
        blocks = int(np.prod(request.grid)) if is_cooperative(self.kernel) or request.interleave else 1
        blocks = int(np.prod(request.cluster)) if self.clusters and not request.interleave else blocks
        self.race_state = (
            happens_before.BoundRaceState(
                self.plan.new_race_state(*race_arguments, blocks=blocks, written=request.written, common=common)
            )
            if self.plan.tracked
            else None
        )
        self.resident: ResidentBlocks | None = None
        if self.race_state is not None and self.clusters:
            order = self._cluster_order()
            self.resident = ClusterBlocks(self.race_state, self.plan, order, len(order) if request.interleave else 1)
        elif self.race_state is not None and request.interleave:
            self.resident = ResidentBlocks(self.race_state, self.plan, blocks)
        self.buffers = request.memory(self.changed)
        lanes_progress = None
        if request.interleave and not request.device.warp_synchronous:
            lanes_progress = with_lane_progress(self.kernel, len(prepared.sites))
        if lanes_progress is not None:
            prepared = replace(prepared, program=ir.Program(lanes_progress, ()))
        self.points = count()
        preempt = self._preempt if request.interleave and self.schedule is not None else None
        self.compiler = _Compiler(prepared, self.arrays, counts, samples, self.prints, self.plan, preempt)
        self.cooperative = is_cooperative(self.kernel)
        in_phases = (self.cooperative or self.clusters) and not request.interleave
        compile_body = self.compiler.grid_phases if in_phases else self.compiler.body
        self.body = compile_body(prepared.program.kernel.body)

    def written(self) -> dict[str, Buffer]:
        return {name: self.buffers[name] for name in self.changed}

    def _preempt(self, group: WarpGroup) -> None:
        """Pass a point at which the schedule may preempt a warp."""
        assert self.schedule is not None
        if next(self.points) in self.schedule.preemptions and group.scheduler is not None:
            group.scheduler.preempt()

    def run_blocks(self) -> None:
        """Run all blocks."""
        if self.cooperative:
            self.body.run([group for groups in self._batches() for group in groups])
        elif self.request.interleave:
            self._interleave_blocks()
        else:
            for groups in self._batches():
                if self.race_state is not None and self.resident is None:
                    self.race_state(happens_before.begin_block, int(groups[0].blocks[0]))
                self.body.run(groups)
        for line in self.compiler.lines:
            line.flush()
        if self.race_state is not None:
            launch = self.request
            self.plan.report(
                self.race_state.arrays, self.faults, launch.grid, launch.block, launch.forms, launch.cluster
            )
        if isinstance(self.resident, ClusterBlocks):
            self.resident.report(self.faults, self.request.grid, self.request.block)

    def _interleave_blocks(self) -> None:
        """Run the blocks; one starts when all warps of the earlier ones wait or have ended."""
        select = (lambda block: None) if self.resident is None else self.resident.select
        self.waits = interleave(self._batches(), self.body.run, select, self.request.resident_blocks)

    def _cluster_order(self) -> npt.NDArray[np.int64]:
        """Return the blocks by cluster and rank, the clusters in the order of their execution."""
        clusters = self.request.clusters
        return clusters if self.schedule is None else self.schedule.of_clusters(clusters)

    def _batches(self) -> Iterator[list[WarpGroup]]:
        blocks = int(np.prod(self.request.grid))
        threads = int(np.prod(self.request.block))
        warps = np.arange(-(-threads // WARP_SIZE))
        request = self.request
        ordered = self.prepared.ordered or checkers.need_order(request.checks) or self.schedule is not None
        ordered |= request.interleave
        batch = 1 if ordered else max(1, LANES_AT_ONCE // (WARP_SIZE * len(warps)))
        groups = [warps[w : w + 1] for w in range(len(warps))] if ordered else [warps]
        order = self._cluster_order()
        size = order.shape[1] if self.clusters else 1
        batch = max(size, batch // size * size)
        for first in range(0, blocks, batch):
            chosen = order.ravel()[first : first + batch]
            storage = self._storage(len(chosen), WARP_SIZE * len(warps))
            teams = [chosen[n : n + 1] for n in range(len(chosen))] if ordered else [chosen]
            yield [self._warp_group(team, n, group, storage) for n, team in enumerate(teams) for group in groups]

    def _warp_group(
        self, blocks: npt.NDArray[np.int64], first: int, warps: npt.NDArray[np.int64], storage: ArrayStorage
    ) -> WarpGroup:
        """Return warps of blocks. first: place of the first block in the memory."""
        group = WarpGroup(self.request, blocks, warps, storage, self.faults, first)
        for param in self.kernel.params:
            if not isinstance(param.type, Array):
                group.registers[param.name] = np.asarray(self.request.arguments[param.name]).reshape(1, 1, 1)
        return group

    def _storage(self, blocks: int, threads: int) -> ArrayStorage:
        """New shared, local and constant arrays for a batch, and the global buffers."""
        storage = ArrayStorage(
            race_state=self.race_state, schedule=self.schedule, blocks=blocks, resident=self.resident
        )
        for param in self.kernel.params:
            if param.name in self.buffers:
                storage.arrays[param.name] = self.buffers[param.name]
                storage.lengths[param.name] = len(self.buffers[param.name])
                storage.allocated[param.name] = param.span
        for alloc in self.allocations:
            element, length = alloc.type.element, alloc.type.length
            if length is None:
                carved = self.request.dynamic_arrays[alloc.array]
                length = carved.length
                storage.shifts[alloc.array] = carved.shift(element.size, self.request.device.bank_width)
            copies = {"shared": blocks, "local": blocks * threads, "constant": 1}.get(alloc.type.space)
            if copies is None:
                continue
            shape = (copies * length, element.lanes) if isinstance(element, Vector) else (copies * length,)
            dtype = (element.element if isinstance(element, Vector) else element).dtype
            storage.arrays[alloc.array] = np.array(alloc.values, dtype) if alloc.values else np.zeros(shape, dtype)
            storage.lengths[alloc.array] = length
            storage.allocated[alloc.array] = alloc.span
        return storage


def _take_further(loops: list[int], group: WarpGroup) -> None:
    """Record progress of loops."""
    group.further.update(loops)


def _communicates(stmt: ir.Stmt) -> bool:
    """Return whether a statement is a fence, or an access that is atomic or volatile."""
    node = performed(stmt)
    return isinstance(node, ir.Fence) or (isinstance(node, ir.Access) and is_ordered(node))


class _Compiler:
    """Compiles statements to steps."""

    def __init__(
        self,
        prepared: PreparedProgram,
        arrays: dict[str, Array],
        counts: Counts | None,
        samples: Samples | None,
        prints: Prints,
        plan: tracking.Plan,
        preempt: Callable[[WarpGroup], None] | None,
    ) -> None:
        self.prepared, self.plan, self.preempt = prepared, plan, preempt
        self.sites: tuple[Site, ...] = prepared.sites
        self.private = prepared.private
        self.arrays, self.counts, self.samples, self.prints = arrays, counts, samples, prints
        self.lines: list[Line] = []
        self.frames = 0
        loops = (stmt for stmt in statements(prepared.program.kernel.body) if isinstance(stmt, ir.While))
        self.stalling = {loop.site: sites for loop in loops if (sites := may_stall(loop))}  # sites of progress, by loop

    def body(self, stmts: ir.Body) -> Body:
        """A statement list: plain statements become lines, and steps between barriers become phases."""
        steps: list[tuple[bool, Step]] = []
        line: Line | None = None
        for stmt in stmts:
            control = self.control(stmt)
            if control is not None:
                steps.append((holds_barrier(stmt), control))
                line = None
                continue
            if line is None:
                line = Line(self.counts)
                self.lines.append(line)
                steps.append((False, line))
            if self.prepared.counts(stmt):
                line.sites.append(stmt.site)
            action = self.action(stmt)
            if action is not None:
                line.actions.append(action)
            if self.preempt is not None and _communicates(stmt):
                line.actions.append(self.preempt)
            if further := [loop for loop, sites in self.stalling.items() if getattr(stmt, "site", None) in sites]:
                line.actions.append(partial(_take_further, further))
        grouped: list[Step] = []
        phase: Phase | None = None
        for barrier, step in steps:
            if barrier:
                grouped.append(step)
                phase = None
            elif phase is None:
                phase = Phase([step])
                grouped.append(phase)
            else:
                phase.steps.append(step)
        return Body(grouped)

    def grid_phases(self, stmts: ir.Body) -> Body:
        """Compile a statement list of a kernel whose blocks wait for others: between their barriers, blocks run one after another."""
        steps: list[Step] = []
        for together, run in groupby(stmts, key=holds_blocks_barrier):
            if together:
                steps += [step for stmt in run if (step := self.control(stmt, self.grid_phases)) is not None]
            else:
                steps.append(GridPhase(self.body(tuple(run)), self.plan))
        return Body(steps)

    # -------------------------------------------------------------- control
    def control(self, stmt: ir.Stmt, inside: Callable[[ir.Body], Body] | None = None) -> Step | None:
        """Return the step of a statement that changes masks or needs the whole block; None for a plain statement.

        inside: the compiler of its statement lists.
        """
        body = inside or self.body
        counts = self.counts if self.prepared.counts(stmt) else None
        match stmt:
            case ir.If():
                orelse = body(stmt.orelse) if stmt.orelse else None
                return Branch(stmt.site, scalar(stmt.cond), body(stmt.then), orelse, counts)
            case ir.While():
                return Loop(
                    stmt.site,
                    None,
                    body(stmt.setup),
                    scalar(stmt.cond),
                    body(stmt.body),
                    None,
                    counts,
                    self._samples_of_loop(stmt.site),
                    stmt,
                )
            case ir.For():
                return self.counted_loop(stmt, body)
            case ir.Frame():
                self.frames += 1
                framed = body(stmt.body)
                self.frames -= 1
                return Frame(framed)
            case ir.Let(value=ir.Barrier() as barrier):
                assign = self.assign(stmt.target)
                step = BlockBarrier(barrier, stmt.site, scalar(barrier.value), assign, self.counts)
                return GridBarrier(step, stmt) if holds_blocks_barrier(stmt) else step
            case ir.Break() | ir.Continue() | ir.Return():
                line = Line(self.counts, [stmt.site], [_leaving(stmt, self.frames == 0)])
                self.lines.append(line)
                return line
        return None

    def counted_loop(self, stmt: ir.For, body: Callable[[ir.Body], Body]) -> Loop:
        name, start, moved = stmt.var.name, scalar(stmt.start), scalar(counting.moved(stmt))

        def begin(group: WarpGroup) -> None:
            group.registers[name] = start(group)

        def advance(group: WarpGroup) -> None:
            group.registers[name] = moved(group)

        return Loop(
            stmt.site,
            begin,
            Body([]),
            scalar(counting.test(stmt)),
            body(stmt.body),
            advance,
            self.counts,
            self._samples_of_loop(stmt.site),
            stmt,
        )

    def _samples_of_loop(self, site: int) -> Table | None:
        return None if self.samples is None or site >= len(self.sites) else self.samples.of_loop(site)

    # -------------------------------------------------------------- plain statements
    def assign(self, target: ir.Reg | ir.Item | None) -> Callable[[WarpGroup, Any], None]:
        """A closure that assigns a register in the active lanes."""
        if target is None:
            return lambda group, new: None
        assert isinstance(target, ir.Reg)
        name = target.name
        if name in self.private:

            def overwrite(group: WarpGroup, new: Register) -> None:
                group.registers[name] = new

            return overwrite

        def merge(group: WarpGroup, new: Register) -> None:
            old = group.registers.get(name)
            active = group.active
            if old is None or (active.size == 1 and active is not NO_LANES):
                group.registers[name] = new
            elif isinstance(new, tuple):
                group.registers[name] = tuple(np.where(active, n, o) for n, o in zip(new, old, strict=True))
            else:
                group.registers[name] = np.where(active, new, old)

        return merge

    def action(self, stmt: ir.Stmt) -> Callable[[WarpGroup], None] | None:
        """A closure that runs a plain statement; None where there is nothing to do."""
        match stmt:
            case ir.Let():
                compute = self.right_side(stmt)
                if stmt.target is None:
                    return compute
                assign = self.assign(stmt.target)
                return lambda group: assign(group, compute(group))
            case ir.Store():
                return memory.store(self.access(stmt, stmt.site), stmt)
            case ir.Alloc(type=Array(space="register")):
                return _clear(stmt)
            case ir.WarpBarrier():
                return warp.syncwarp(stmt, stmt.site)
            case ir.Fence():
                return warp.fence(stmt)
            case ir.AsyncCommit() | ir.AsyncWait() | ir.AsyncOrder():
                return warp.copies(stmt)
            case ir.Assert():
                return assertion(stmt)
            case ir.Check():
                return check(stmt, self.prepared.program.kernel)
            case ir.Print():
                return self.printing(stmt)
        return None  # allocations are made before the kernel starts

    def right_side(self, stmt: ir.Let) -> Callable[[WarpGroup], Any]:
        node, site = stmt.value, stmt.site
        match node:
            case ir.Load():
                return memory.load(self.access(node, site))
            case ir.Atomic():
                return memory.atomic(self.access(node, site), node, stmt.target is not None)
            case ir.CompareSwap():
                return memory.compare_swap(self.access(node, site), node, self.plan.failures)
        row = row_of(stmt)
        if row is not None:
            assert row.scope == "warp"
            return warp.COLLECTIVES.get(row.node, warp.collective)(node, site)
        assert not isinstance(node, ir.Effect)
        return value(node)

    def access(self, node: ir.Access, site: int) -> memory.Access:
        tracked = self.plan.tracked.get(node.array)
        kind = self.sites[site].access
        is_sampled = kind.space in ("global", "shared") and not kind.uncounted
        samples = self.samples.of_access(site) if self.samples and is_sampled else None
        return memory.Access(node, kind, site, self.arrays[node.array], self.counts, tracked, samples)

    def printing(self, stmt: ir.Print) -> Callable[[WarpGroup], None]:
        items = [p if isinstance(p, str) else scalar(p) for p in stmt.items]

        def run(group: WarpGroup) -> None:
            columns = [p if isinstance(p, str) else group.full(p(group)) for p in items]
            for row, lane in np.argwhere(group.full(group.active)):
                block, warp = divmod(int(row), group.shape[1])
                thread = int(group.warps[warp]) * WARP_SIZE + int(lane)
                values = [c if isinstance(c, str) else c[row, lane] for c in columns]
                self.prints.add(int(group.blocks[block]), thread, values)

        return run


def _leaving(stmt: ir.Break | ir.Continue | ir.Return, kernel: bool) -> Callable[[WarpGroup], None]:
    """Leave the iteration or the frame. kernel: whether a return here ends the thread."""

    def run(group: WarpGroup) -> None:
        if isinstance(stmt, ir.Continue):
            group.continued = group.continued | group.active
        elif isinstance(stmt, ir.Return) and kernel:
            group.alive = group.alive & ~group.active
        group.leave(frame=isinstance(stmt, ir.Return))

    return run


def _clear(stmt: ir.Alloc) -> Callable[[WarpGroup], None]:
    """The registers of an array start as zeros; CUDA leaves them undefined."""
    element = stmt.type.element
    scalar_type = element.element if isinstance(element, Vector) else element
    zero = np.zeros((1, 1, 1), scalar_type.dtype)
    blank: Register = (zero,) * element.lanes if isinstance(element, Vector) else zero
    names = elements(stmt.array, stmt.type.length)

    def run(group: WarpGroup) -> None:
        for name in names:
            group.registers.setdefault(name, blank)

    return run
