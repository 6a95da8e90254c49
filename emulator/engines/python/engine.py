"""The python engine: a kernel for a debugger, one Python function a thread, with the values of the other engines to the bit.

A launch ends at its first finding, which is an exception at its line. Known limits: it counts nothing, and finds no races.
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from dataclasses import dataclass
from types import FunctionType, TracebackType
from typing import Any

import numpy as np

from ...errors import Diagnostic, LaunchError
from ...ir import nodes as ir
from ...ir.walk import statements
from ...language.types import Array
from ...passes.grids import is_cooperative
from ...passes.waiting import may_stall, waits
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
from .printer import FunctionPrinter, Rules
from .threads import Block, Fault, Thread, Warp

UNSUPPORTED = frozenset({"races", "benign", "acquire"})
"""Checks that need the compiled happens-before analysis."""


class PythonEngine:
    """Runs each thread as a Python function."""

    name = "python"

    def run(self, request: Request) -> Outcome:
        """Run one launch. Raises LaunchError for a check that this engine does not have."""
        if wrong := UNSUPPORTED & request.checks:
            raise LaunchError(
                f'engine="python" has no check {", ".join(sorted(wrong))}: write '
                'check="bounds,uninitialised,barriers,arithmetic", or engine="jit"'
            )
        launch = Launch(request, _code(request))
        outcome = Outcome({})
        outcome.faults = launch.allowed
        try:
            with np.errstate(all="ignore"):
                launch.run()
        except Fault as fault:
            outcome.faults.append(fault.diagnostic)
            outcome.trace = _kernel_frames(fault.__traceback__)
        outcome.printed = launch.prints.finish()
        outcome.buffers = {name: launch.buffers[name] for name in request.prepared.changed}
        if "uninitialised" in request.checks:
            outcome.written = {name: launch.written[name] for name in request.unwritten if name in launch.written}
        return outcome


def _kernel_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the kernel's frame on."""
    while trace is not None and THREAD not in trace.tb_frame.f_code.co_varnames:
        trace = trace.tb_next
    return trace


@dataclass(frozen=True)
class Code:
    """The Python functions of a program."""

    kernel: FunctionType
    parameters: tuple[ir.Param, ...]


class Launch:
    """One launch: its memory, its output, and the order of its blocks and warps."""

    def __init__(self, request: Request, code: Code) -> None:
        self.request, self.code = request, code
        self.prints = Prints(request)
        self.memory: dict[Any, Any] = {}
        self.origins: dict[int, Origin] = {}
        self.buffers: dict[str, Buffer] = {}
        self.written: dict[str, Buffer] = {}
        self.arguments: list[Any] = []
        self.allowed: list[Diagnostic] = []
        seed = request.schedule
        self.schedule = None if seed is None else Schedule.from_seed(seed, request.grid, request.block)
        self._phases: dict[int, int] = {}
        kernel = request.prepared.program.kernel
        self._declared = {s.span: s.array for s in statements(kernel.body) if isinstance(s, ir.Alloc)}
        for param in code.parameters:
            self._add_argument(param)

    def _add_argument(self, param: ir.Param) -> None:
        request, name = self.request, param.name
        if not isinstance(param.type, Array):
            self.arguments.append(np.asarray(request.arguments[name])[()])
            return
        memory = self.buffers[name] = request.memory(name, name in request.prepared.changed)
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

    def add_origin(self, memory: Any, alloc: ir.Alloc, span: Span) -> None:
        """Record the declaration of an array. span: with the calls through which it was reached."""
        self.origins[id(memory)] = Origin(self._declared.get(span, alloc.array), alloc.type, span)

    def finding(self, diagnostic: Diagnostic) -> Fault | None:
        """Return the exception of a finding; None if a comment of the kernel allows it."""
        kernel, checks = self.request.prepared.program.kernel, self.request.checks
        if suppressions.sort_findings([diagnostic], kernel, checks)[0]:
            return Fault(diagnostic)
        if all((one.kind, one.span) != (diagnostic.kind, diagnostic.span) for one in self.allowed):
            self.allowed.append(diagnostic)
        return None

    def run(self) -> None:
        """Run all blocks: one after another, or from one barrier of the grid to the next."""
        order = range(int(np.prod(self.request.grid)))
        blocks = (Block(self, int(n)) for n in (order if self.schedule is None else self.schedule.blocks[list(order)]))
        if not is_cooperative(self.request.prepared.program.kernel):
            for block in blocks:
                for _ in block.run():
                    pass
            return
        resident = list(blocks)
        steps = {block.linear: block.run() for block in resident}
        passed = 0
        while steps:
            arrived = {number: group for number, run in steps.items() if (group := next(run, None)) is not None}
            if arrived:
                self._check_arrivals(arrived, [b.linear for b in resident if b.linear not in arrived], passed)
            steps = {number: steps[number] for number in arrived}
            passed += 1

    def _check_arrivals(self, arrived: dict[int, list[Thread]], missing: list[int], passed: int) -> None:
        faults, first = Faults(), arrived[min(arrived)][0]
        span = first.operation.span
        grids.check_arrivals(faults, span, 0, passed, sorted(arrived), sorted(missing), self.request.grid)
        for diagnostic in faults.diagnostics():
            first.fail(diagnostic)

    def begin_phase(self, block: Block) -> None:
        """Count a barrier of a block."""
        self._phases[block.linear] = self._phases.get(block.linear, 0) + 1

    def warp_order(self, block: Block) -> list[Warp]:
        """Return the warps of a block in the order in which they run up to the next barrier."""
        if self.schedule is None or len(block.warps) == 1:
            return block.warps
        order = self.schedule.of_phase(block.linear, self._phases.get(block.linear, 0), len(block.warps))
        return [block.warps[warp] for warp in order]


_CODE: weakref.WeakKeyDictionary[ir.Program, dict[Any, Code]] = weakref.WeakKeyDictionary()


def _code(request: Request) -> Code:
    """Return the Python functions of a request's program. Cached while the program lives."""
    limit, lockstep = request.step_limit, request.device.warp_synchronous
    key = request.checks, limit, lockstep
    variants = _CODE.setdefault(request.program, {})
    if key not in variants:
        variants[key] = _printed(request)
    return variants[key]


def _printed(request: Request) -> Code:
    program, prepared = request.program, request.prepared.program.kernel
    waiting: dict[Span, bool] = {}
    progress: set[Span] = set()
    for loop in (s for s in statements(prepared.body) if isinstance(s, ir.While)):
        if waits(loop) or may_stall(loop):
            waiting[loop.span.without_calls] = not waits(loop)
            inside = statements((*loop.setup, *loop.body))
            progress |= {stmt.span.without_calls for stmt in inside if stmt.site in may_stall(loop)}
    limits = request.iteration_limits[0], request.step_limit
    lockstep = request.device.warp_synchronous
    rules = Rules("uninitialised" in request.checks, lockstep, limits, waiting, frozenset(progress))
    functions: dict[str, Any] = {}
    checks = request.checks - {"uninitialised"}
    for function in program.functions:
        own = instrument(function, 0, checks)
        functions[function.name] = FunctionPrinter(own, rules, functions).compiled(False)
    kernel = instrument(program.kernel, 0, checks)
    printer = FunctionPrinter(kernel, rules, functions)
    return Code(printer.compiled(True), program.kernel.params)
