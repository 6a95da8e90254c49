"""The python engine: a kernel for a debugger, one Python function a thread, with the values of the other engines to the bit.

A launch ends at its first finding, which is an exception at its line. Known limits: it counts nothing, and finds races only in
kernels without asynchronous copies.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, TracebackType
from typing import Any

import numpy as np

from ...errors import Diagnostic
from ...ir import nodes as ir
from ...ir.walk import statements
from ...language.types import Array
from ...passes.bulk_copies import lower_bulk_copies
from ...passes.flushed_sums import flush_sums
from ...passes.grids import has_clusters, waits_for_blocks
from ...passes.textures import lower_fetches
from ...passes.waiting import may_stall, waits
from ...passes.warpgroups import lower_products
from ...runtime.arrays import Buffer
from ...runtime.engine import Outcome, Request
from ...runtime.prints import Prints
from ...sanitizer import grids, suppressions
from ...sanitizer.faults import Faults
from ...sanitizer.instrument import instrument
from ...sanitizer.schedules import Schedule
from ...span import Span
from .access import Origin
from .expressions import THREAD
from .printer import FunctionPrinter
from .release_order import ReleaseOrder
from .rules import Rules
from .threads import Block, Fault, Observer, Thread, Warp


class PythonEngine:
    """Runs each thread as a Python function."""

    name = "python"

    def run(self, request: Request) -> Outcome:
        """Run one launch. Raises LaunchError for races in a kernel that `races.require_exact` refuses."""
        launch, fault = run_to_fault(request)
        outcome = Outcome({})
        outcome.faults = launch.allowed
        if fault is not None:
            outcome.faults.append(fault.diagnostic)
            outcome.trace = kernel_frames(fault.__traceback__)
        outcome.printed = launch.prints.finish()
        outcome.buffers = {name: launch.buffers[name] for name in request.prepared.changed}
        if "uninitialised" in launch.request.checks:
            outcome.written = {name: launch.written[name] for name in request.unwritten if name in launch.written}
        return outcome


def run_to_fault(
    request: Request, blocks: Sequence[int] = (), started: Callable[[int], object] = lambda block: None
) -> tuple[Launch, Fault | None]:
    """Run a launch to its end or to its first finding.

    blocks: those that run, in this order; empty for all. started: called with each block of a launch without barriers of the grid.

    A thread may read an element before another thread, which runs later, writes it without a barrier between them. That read of an
    unwritten element is a race: the launch runs again without the check for unwritten elements. The returned launch is that one then.
    """
    launch, fault = _run(request, blocks, started)
    if fault is not None and fault.diagnostic.kind == "uninitialised" and "races" in request.checks:
        ordered = replace(request, checks=request.checks - {"uninitialised"}, show_prints=False)
        race_launch, race = _run(ordered, blocks, started)
        if race is not None and fault.diagnostic.span in (race.diagnostic.span, race.diagnostic.related):
            return race_launch, race
    return launch, fault


def _run(request: Request, blocks: Sequence[int], started: Callable[[int], object]) -> tuple[Launch, Fault | None]:
    launch = Launch(request)
    launch.order, launch.started = blocks, started
    try:
        with np.errstate(all="ignore"):
            launch.run()
    except Fault as fault:
        return launch, fault
    return launch, None


def kernel_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the kernel's frame on."""
    while trace is not None and THREAD not in trace.tb_frame.f_code.co_varnames:
        trace = trace.tb_next
    return trace


@dataclass(frozen=True)
class Code:
    """The Python functions of a program. objects: the code objects of the kernel and its device functions."""

    kernel: FunctionType
    parameters: tuple[ir.Param, ...]
    objects: frozenset[CodeType]


class Launch:
    """One launch: its memory, its output, and the order of its blocks and warps.

    recorded: whether observers receive its accesses; the check for races has one. traced: whether `assigned` receives assignments.
    order: of the blocks that run, empty for all. started: called with each block.
    """

    def __init__(self, request: Request, recorded: bool = False, traced: bool = False) -> None:
        self.request = request
        self.code = code_of(request, recorded or "races" in request.checks, traced)
        self.prints = Prints(request)
        self.memory: dict[Any, Any] = {}
        self.origins: dict[int, Origin] = {}
        self.buffers = request.memory(request.prepared.changed)
        self.written: dict[str, Buffer] = {}
        self.arguments: list[Any] = []
        self.allowed: list[Diagnostic] = []
        seed = request.schedule
        self.schedule = None if seed is None else Schedule.from_seed(seed, request.grid, request.block)
        self.order: Sequence[int] = ()
        self.started: Callable[[int], object] = lambda block: None
        self._phases: dict[int, int] = {}
        self.grid_phase = self.running = 0
        self.observers: list[Observer] = []
        self.release_order: ReleaseOrder | None = None
        self.races: Any = None
        if "races" in request.checks:
            from .races import Races, require_exact  # late: it needs the messages of the compiled detector

            require_exact(request)
            self.races = Races(self)
            self.observers.append(self.races)
            self.release_order = self.races.order
        kernel = request.prepared.program.kernel
        self._declared = {s.span: s.array for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        for param in self.code.parameters:
            self._add_argument(param)

    def _add_argument(self, param: ir.Param) -> None:
        request, name = self.request, param.name
        if not isinstance(param.type, Array):
            self.arguments.append(np.asarray(request.arguments[name])[()])
            return
        memory = self.buffers[name]
        self.origins[id(memory)] = Origin(name, param.type, param.span)
        flags = None
        if "uninitialised" in request.checks and name in request.unwritten:
            before = request.written.get(name)
            flags = self.written[name] = np.zeros(len(memory), np.bool_) if before is None else before.copy()
        self.arguments += [memory, flags]
        if "@" not in name:
            self.arguments.append(request.forms[name].shaped(memory) if name in request.forms else memory)

    def start(self, thread: Thread) -> Generator[Any, Any, None] | None:
        """Start the kernel in a thread; None if it has run to its end."""
        steps: Generator[Any, Any, None] | None = self.code.kernel(thread, *self.arguments)
        return steps

    def add_origin(self, memory: Any, alloc: ir.Alloc, span: Span, block: int) -> None:
        """Record the declaration of an array. span: with the calls through which it was reached. block: that has it."""
        self.origins[id(memory)] = Origin(self._declared.get(span, alloc.array), alloc.type, span, block)

    def finding(self, diagnostic: Diagnostic) -> Fault | None:
        """Return the exception of a finding; None if a comment of the kernel allows it."""
        kernel, checks = self.request.prepared.program.kernel, self.request.checks
        if suppressions.sort_findings([diagnostic], kernel, checks)[0]:
            return Fault(diagnostic)
        if all((one.kind, one.span) != (diagnostic.kind, diagnostic.span) for one in self.allowed):
            self.allowed.append(diagnostic)
        return None

    def blocks(self) -> list[int]:
        """Return the blocks that run, in the order of their execution."""
        if self.order:
            return list(self.order)
        numbers = list(range(int(np.prod(self.request.grid))))
        return numbers if self.schedule is None else [int(n) for n in self.schedule.blocks[numbers]]

    @property
    def is_cooperative(self) -> bool:
        """Whether blocks run from one barrier of the grid, or of their cluster, to the next."""
        return waits_for_blocks(self.request.prepared.program.kernel)

    def groups(self) -> list[list[int]]:
        """Return the blocks that wait for each other: the grid, or each cluster by rank."""
        blocks = self.blocks()
        if not has_clusters(self.request.prepared.program.kernel):
            return [blocks]
        places = {block: place for place, block in enumerate(blocks)}
        return sorted(self.request.clusters.tolist(), key=lambda cluster: places.get(cluster[0], -1))

    def run(self) -> None:
        """Run all blocks: one after another, or from one barrier of the grid or their cluster to the next."""
        if not self.is_cooperative:
            for number in self.blocks():
                self.run_block(number)
            return
        for group in self.groups():
            self._run_together(group)

    def _run_together(self, numbers: list[int]) -> None:
        """Run blocks from one barrier of theirs to the next."""
        blocks = [Block(self, number) for number in numbers]
        if math.prod(self.request.cluster) > 1:
            for block in blocks:
                block.cluster = blocks
        steps = {block: block.run() for block in blocks}
        while steps:
            arrived: dict[Block, list[Thread]] = {}
            running = list(steps)
            while running:
                yielded = {block: next(steps[block], None) for block in running}
                arrived |= {block: threads for block, threads in yielded.items() if threads}
                running = [block for block, threads in yielded.items() if threads == []]  # they wait in a loop
            if arrived:
                self._check_arrivals(arrived, blocks)
            steps = {block: steps[block] for block in arrived}
            self.grid_phase += 1
        if self.races is not None and len(blocks[0].cluster) > 1:
            fault = self.races.misuse({block.linear: block for block in blocks})
            if fault is not None:
                raise fault

    def run_block(self, number: int) -> None:
        """Run one block of a kernel without barriers of the grid. `running` is its number from then on."""
        self.running = number
        self.started(number)
        for _ in Block(self, number).run():
            pass

    def ends(self, thread: Thread, fault: Fault) -> bool:
        """Return whether a finding ends the launch, and not its thread alone."""
        return True

    def assigned(self, thread: Thread, span: Span, name: str, value: Any) -> None:
        """Receive the value of a user's variable. span: without the calls of the thread."""

    def _check_arrivals(self, arrived: dict[Block, list[Thread]], blocks: list[Block]) -> None:
        faults, first = Faults(), arrived[min(arrived, key=lambda block: block.linear)][0]
        stmt = ir.Let(None, first.operation.node, first.operation.span)
        of_grid = first.operation.node.mode == "grid"
        at = min(threads[0].position for threads in arrived.values() if threads[0].position is not None)
        present = [block for block, threads in arrived.items() if of_grid or threads[0].position == at]
        missing = [block for block in blocks if block not in present and (of_grid or block.is_alive(at))]
        present_blocks, missing_blocks = (sorted(block.linear for block in some) for some in (present, missing))
        grids.check_arrivals(faults, stmt, self.grid_phase, present_blocks, missing_blocks, self.request.grid)
        for diagnostic in faults.diagnostics():
            first.fail(diagnostic)

    def begin_phase(self, block: Block) -> None:
        """Count a barrier of a block."""
        if self.release_order is not None:
            self.release_order.synchronise([thread for warp in block.warps for thread in warp.threads])
            self.release_order.publish(block.linear, self.phase(block.linear), len(block.warps))
        self._phases[block.linear] = self._phases.get(block.linear, 0) + 1

    def phase(self, block: int) -> int:
        """Return the number of barriers of a block."""
        return self._phases.get(block, 0)

    def warp_order(self, block: Block) -> list[Warp]:
        """Return the warps of a block in the order in which they run up to the next barrier."""
        if self.schedule is None or len(block.warps) == 1:
            return block.warps
        order = self.schedule.of_phase(block.linear, self._phases.get(block.linear, 0), len(block.warps))
        return [block.warps[warp] for warp in order]


_CODE: weakref.WeakKeyDictionary[ir.Program, dict[Any, Code]] = weakref.WeakKeyDictionary()


def code_of(request: Request, recorded: bool, traced: bool) -> Code:
    """Return the Python functions of a request's program. Cached while the program lives."""
    key = request.checks, request.step_limit, request.device.warp_synchronous, recorded, traced
    variants = _CODE.setdefault(request.program, {})
    if key not in variants:
        variants[key] = _printed(request, recorded, traced)
    return variants[key]


def _printed(request: Request, recorded: bool, traced: bool) -> Code:
    program = lower_bulk_copies(flush_sums(lower_products(lower_fetches(request.program))))
    prepared = request.prepared.program.kernel
    waiting: dict[Span, bool] = {}
    progress: set[Span] = set()
    for loop in (s for s in statements(prepared.body) if isinstance(s, ir.While)):
        if waits(loop) or may_stall(loop):
            waiting[loop.span.without_calls] = not waits(loop)
            inside = statements((*loop.setup, *loop.body))
            progress |= {stmt.span.without_calls for stmt in inside if stmt.site in may_stall(loop)}
    limits = request.iteration_limits[0], request.step_limit
    lockstep = request.device.warp_synchronous
    rules = Rules("uninitialised" in request.checks, recorded, traced, lockstep, limits, waiting, frozenset(progress))
    functions: dict[str, Any] = {}
    checks = request.checks - {"uninitialised", "wgmma"}
    for function in program.functions:
        own = instrument(function, 0, checks)
        functions[function.name] = FunctionPrinter(own, rules, functions).compiled(False)
    kernel = instrument(program.kernel, 0, checks)
    printer = FunctionPrinter(kernel, rules, functions)
    main = printer.compiled(True)
    objects = frozenset(one.__code__ for one in (main, *functions.values()))
    return Code(main, program.kernel.params, objects)
