"""The LLVM engine: compiled kernels with one vector of 32 lanes per variable; blocks run in threads.

`module` generates the code of a kernel: blocks and their phases (`blocks`, `segments`), statements under masks
(`control`, `masks`), expressions (`context`, `operations`, `domains`), registers (`registers`), memory (`memory`), warp
operations (`warp`), counters (`counters`), faults (`faults`, `fault_records`) and race detection (`races`). `compiler` compiles it
and stores the machine code in the disk cache.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ... import disk_cache
from ...errors import Diagnostic, LaunchError
from ...language.intrinsics import WARP_SIZE
from ...language.types import BOOL, HALVES, Array, Scalar, Value
from ...llvm.c_types import C_TYPES
from ...llvm.compiler import OPTIMISED, QUICK, Library, Target, compiled, load_compiled
from ...runtime.arrays import Buffer
from ...runtime.cores import current_cores
from ...runtime.engine import Outcome, Request
from ...runtime.prints import Prints
from ...runtime.specialisation import ProgramSummary, Specialisation
from . import interrupts
from .grid_rounds import GridLaunch
from .layout import ARGUMENTS, ENTRY, HOST_CALL, NO_CALL, OWN_ARGUMENTS, Buffers, Options
from .tracing import REQUEST as TRACE
from .tracing import Buffers as TraceBuffers
from .workers import Worker, WorkerPool, distribute

if TYPE_CHECKING:
    from ...ir import nodes as ir
    from ...llvm.compiler import ModuleText
    from ...runtime.prepared import PreparedProgram
    from ...sanitizer.races.shadow import RaceState
    from ...sanitizer.tracking import Plan
    from .module import Module

# Code generation and descriptions of faults are imported on demand: most launches load their code from the disk cache.


MANY_THREADS = 1 << 14
"""A launch of at least this many threads runs optimised code from the start."""
MANY_CHECKED = 1 << 18
"""The same with checkers: their longer code takes seconds to optimise, more than most checked launches."""
WORTH_OPTIMISING = 0.5
"""Total run time in seconds of an unoptimised kernel, over all launches and processes, before it is optimised. Optimisation takes
about as long, and makes most kernels 2 to 4 times faster."""
WORTH_OPTIMISING_A_SITE = 0.01
"""The same per site: LLVM takes up to this long for divergent kernels of a few hundred sites."""


@dataclass
class _CompiledKernel:
    """A compiled kernel.

    The module is generated only if the disk cache has no code, or to describe faults or prints. A launch owns its specialisation;
    this object must not keep it alive. seconds: run time of all launches. block_seconds: processor time of a block in the latest one.
    """

    kernel: weakref.ref[Specialisation]
    options: Options
    target: Target | None
    buffers: Buffers = field(init=False)
    library: Library = field(init=False)
    optimised: bool = field(init=False)
    seconds: float = 0.0
    block_seconds: float = math.inf

    @staticmethod
    def for_specialisation(
        specialisation: Specialisation, options: Options, target: Target | None, optimise: bool
    ) -> _CompiledKernel:
        """Return the compiled kernel. optimise: whether to optimise; cached optimised code is used in any case."""
        kernel_code = _CompiledKernel(weakref.ref(specialisation), options, target)
        kernel_code.optimised = optimise or disk_cache.load(kernel_code.tier_up_marker, bytes) is not None
        cached = None if kernel_code.optimised else load_compiled(kernel_code.key, ENTRY, Buffers.decode, target)
        kernel_code.optimised |= cached is not None
        kernel_code.buffers, kernel_code.library = cached or compiled(
            kernel_code.key,
            kernel_code.generate,
            ENTRY,
            Buffers.decode,
            target,
            OPTIMISED if kernel_code.optimised else QUICK,
        )
        return kernel_code

    @property
    def specialisation(self) -> Specialisation:
        specialisation = self.kernel()
        assert specialisation is not None  # the calling launch owns it
        return specialisation

    @cached_property
    def key(self) -> tuple[str, ...]:
        program = self.specialisation.key or _fingerprint(self.specialisation)
        return program, repr(self.options), disk_cache.edition()

    @property
    def tier_up_marker(self) -> str:
        """Return the name of the marker of a long run without optimisation."""
        return hashlib.sha256("\0".join(self.key).encode()).hexdigest() + ".slow"

    def generate(self) -> tuple[bytes, ModuleText]:
        return self.module.buffers.encode(), self.module.text

    @property
    def tier_up_after(self) -> float:
        """The seconds of run time before an unoptimised kernel is optimised."""
        return max(WORTH_OPTIMISING, WORTH_OPTIMISING_A_SITE * self.buffers.sites)

    def expected_seconds(self, blocks: int) -> float:
        """Return the processor time of a launch that is like the latest one; blocks that wait for others need all threads."""
        return math.inf if self.specialisation.summary.waits else self.block_seconds * blocks

    def record_runtime(self, seconds: float) -> None:
        """Record the duration of a launch."""
        before, self.seconds = self.seconds, self.seconds + seconds
        if not self.optimised and before <= self.tier_up_after < self.seconds:
            disk_cache.save(self.tier_up_marker, b"")

    @cached_property
    def prepared(self) -> PreparedProgram:
        from ...runtime.prepared import prepare

        return prepare(self.specialisation.program, frozenset(self.options.checks))

    @cached_property
    def converters(self) -> list[tuple[str, Callable[[Any], Any] | None]]:
        """The parameters by name: a function from a number to a value for ctypes, or None for an array."""
        return [(name, _converter(type)) for name, type in self.specialisation.summary.parameters.items()]

    @cached_property
    def function(self) -> Callable[..., int]:
        types = (*_argument_types(self.specialisation.summary), *(a.c for a in ARGUMENTS))
        return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self.library.address)

    @cached_property
    def in_rounds(self) -> bool:
        """Whether blocks wait for others."""
        return bool(self.buffers.sizes["frame"])

    @cached_property
    def pool(self) -> WorkerPool:
        return WorkerPool(self.buffers)

    @cached_property
    def plan(self) -> Plan:
        from ...sanitizer.tracking import Plan

        options = self.options
        return Plan.for_kernel(self.prepared.program.kernel, options.checks, options.unwritten, options.overlap)

    @cached_property
    def module(self) -> Module:
        from .module import kernel_module

        return kernel_module(self.prepared, self.options, self.optimised)


class LlvmEngine:
    """Engine for compiled kernels, with several blocks in parallel if their order is unobservable.

    threads: number of threads; None for `current_cores`. target: a compatible processor to compile for; None for this one. optimise:
    whether LLVM optimises every kernel; None for only those with many threads or a long run time.
    """

    name = "jit"

    def __init__(self, threads: int | None = None, target: Target | None = None, optimise: bool | None = None) -> None:
        self.threads, self.target, self.optimise = threads, target, optimise
        self._kernels: weakref.WeakKeyDictionary[Specialisation, dict[Options, _CompiledKernel]] = (
            weakref.WeakKeyDictionary()
        )

    def run(self, request: Request) -> Outcome:
        options = _options(request)
        threads = self.threads or current_cores() if options.atomic and request.grid != (1, 1, 1) else 1
        prints = Prints(request)
        outcome = self._timed(request, options, threads, prints)
        if outcome is None:
            if request.in_place:
                raise LaunchError(
                    f'{request.specialisation.summary.name}: a loop does not end; with check="bounds" the launch says why; '
                    f"what it has done to {', '.join(sorted(request.in_place))} is not undone"
                )
            prints.begin_again()
            if request.trace is not None:
                request.trace.begin_again()
            outcome = self._timed(request, replace(options, step_limited=True), threads, prints)
            assert outcome is not None
        return outcome

    def compile(self, request: Request) -> None:
        """Compile the kernel of a launch, or load it from the disk cache."""
        self._kernel(request, _options(request))

    def _timed(self, request: Request, options: Options, threads: int, prints: Prints) -> Outcome | None:
        kernel, blocks = self._kernel(request, options), prod(request.grid)
        start, processor_start = time.perf_counter(), time.thread_time() if blocks > 1 else 0.0
        outcome = _launch(request, kernel, threads, prints)
        if blocks > 1:  # others run in one thread
            kernel.block_seconds = (time.thread_time() - processor_start) / blocks
        kernel.record_runtime(time.perf_counter() - start)
        return outcome

    def _kernel(self, request: Request, options: Options) -> _CompiledKernel:
        known: tuple[Options, _CompiledKernel] | None = request.derived.get(self)
        if (
            known is not None
            and known[0] is options
            and (known[1].optimised or known[1].seconds <= known[1].tier_up_after)
        ):
            return known[1]
        programs = self._kernels.setdefault(request.specialisation, {})
        program = programs.get(options)
        optimise = self.optimise
        if optimise is None:
            threads = prod(request.grid) * prod(request.block)
            many = threads >= (MANY_CHECKED if request.checks else MANY_THREADS)
            optimise = many or (program is not None and program.seconds > program.tier_up_after)
        if program is None or (optimise and not program.optimised):
            program = programs[options] = _CompiledKernel.for_specialisation(
                request.specialisation, options, self.target, optimise
            )
        request.derived[self] = options, program
        return program


def _options(request: Request) -> Options:
    """Return the options of a request's code, once for the launches of a plan that all have the same."""
    options: Options | None = request.derived.get("code options")
    varies = request.specialisation.summary.dynamic or (request.checks and request.overlapping)
    if options is not None and not varies:
        return options
    ordered = request.specialisation.summary.ordered or _in_order(request.checks) or request.schedule is not None
    options = request.derived["code options"] = Options(
        request.block, request.device, tuple(request.dynamic_arrays.items()), request.counters, request.detail,
        step_limited=False, atomic=not ordered,
        checks=tuple(sorted(request.checks)), unwritten=tuple(sorted(request.unwritten)) if request.checks else (),
        scheduled=request.schedule is not None, traced=() if request.trace is None else tuple(request.trace.spaces),
        overlapping=request.overlapping, overlap=tuple(memory.overlap for memory in request.overlapping_arrays),
        cluster=request.cluster,
    )  # fmt: skip
    return options


def _fingerprint(specialisation: Specialisation) -> str:
    from ...ir.fingerprint import fingerprint

    return fingerprint(specialisation.program)


def _in_order(checks: frozenset[str]) -> bool:
    """Return whether blocks must run sequentially: these checkers compare each block with the previous ones."""
    if not checks:
        return False
    from ...sanitizer import checkers

    return checkers.need_order(checks)


def _launch(request: Request, program: _CompiledKernel, threads: int, prints: Prints) -> Outcome | None:
    """Run all blocks; None if the step limit ended a loop, so that `step_limited` code must run instead."""
    workers = program.pool.take(max(1, min(threads, prod(request.grid))))
    outcome = _launch_on(workers, request, program, prints)
    program.pool.give_back(workers)
    return outcome


def _launch_on(workers: list[Worker], request: Request, program: _CompiledKernel, prints: Prints) -> Outcome | None:
    summary = request.specialisation.summary
    buffers = request.memory(summary.changed)
    launch_values = _arguments(program, request, buffers)
    blocks, function = prod(request.grid), program.function
    traced = TraceBuffers(request.trace)
    race_state, table = _race_state(request, program)
    order = _order(request)
    raised: list[BaseException] = []
    sizes = (*request.grid, *request.iteration_limits)
    common = (
        0 if table is None else table.ctypes.data,
        0 if order is None else order.ctypes.data,
        HOST_CALL(_host_calls(program, prints, traced, raised)) if program.buffers.calls else NO_CALL,
    )
    traces = {id(worker): traced.new() for worker in workers} if request.trace is not None else {}

    def run(worker: Worker, first: int, last: int, of_blocks: Mapping[str, int] | None = None) -> bool:
        own = worker.arguments
        if of_blocks is not None:
            addresses = {**worker.addresses, **of_blocks}
            own = tuple([addresses[name] for name in OWN_ARGUMENTS])
        whole = not function(*launch_values, first, last, *sizes, *own, traces.get(id(worker), 0), *common)
        if raised:
            raise raised[0]
        return whole

    def distributed(workers: Sequence[Worker], run: Callable[[Worker, int, int], bool], ranges: int) -> bool:
        try:
            return distribute(ranges, workers, run, program.expected_seconds(blocks))
        finally:
            traced.transfer()  # before another thread continues a block

    rounds = GridLaunch(request, program.buffers, race_state, program.plan if race_state is not None else None)
    handlers = interrupts.begin_recording(raised) if program.buffers.calls else []
    try:
        whole = (
            run(workers[0], 0, 1)
            if blocks == 1 and request.trace is None and not program.in_rounds
            else rounds.run(distributed, workers, run)
        )
    finally:
        interrupts.end_recording(handlers)
    if raised:
        raise raised[0]
    if not whole:
        return None
    counts: Any = None
    samples = None
    if request.counters:
        counted = [worker.buffers["counts"] for worker in workers]
        summed = counted[0].copy() if len(counted) == 1 else np.sum(counted, axis=0)
        counts = partial(program.buffers.decode_counts, summed)
    if request.detail:
        samples = program.buffers.samples.decode([w.buffers["samples"] for w in workers])
    faults = _faults(request, program, [w.buffers["faults"] for w in workers], race_state, rounds)
    outcome = Outcome({name: buffers[name] for name in summary.changed}, counts, faults, prints.finish())
    outcome.samples = samples
    if race_state is not None:
        outcome.written = program.plan.written(race_state, request.arguments, request.unwritten)
        if "races" in request.checks:
            outcome.accessed = program.plan.accessed(race_state, request.arguments, request.persistent)
    return outcome


def _faults(
    request: Request,
    program: _CompiledKernel,
    recorded: Sequence[npt.NDArray[Any]],
    race_state: RaceState | None,
    rounds: GridLaunch,
) -> list[Diagnostic]:
    """Return the recorded faults, and the races in the shadow memory of a checked launch."""
    any_recorded = any(records.tobytes().strip(b"\0") for records in recorded)
    if race_state is None and not any_recorded and not rounds.missing:
        return []
    from ...sanitizer.faults import Faults

    faults = program.module.records.collect(recorded, request) if any_recorded else Faults()
    rounds.report(faults, program)
    if race_state is not None:
        program.plan.report(race_state, faults, request.grid, request.block, request.forms, request.cluster)
    return faults.diagnostics()


def _race_state(request: Request, program: _CompiledKernel) -> tuple[RaceState | None, npt.NDArray[np.int64] | None]:
    """Return the race state of a launch, if any array is tracked, and its table for compiled code."""
    if not request.checks or not (plan := program.plan).tracked:
        return None, None
    from .races.runtime import table

    carved = {name: array.length for name, array in request.dynamic_arrays.items()}
    summary = request.specialisation.summary
    blocks = prod(request.grid) if summary.cooperative else prod(request.cluster) if summary.clusters else 1
    race_state = plan.new_race_state(
        request.block,
        request.arguments,
        carved,
        request.device,
        blocks=blocks,
        written=request.written,
        common=request.overlapping_arrays,
    )
    return race_state, table(race_state, plan)


def _order(request: Request) -> npt.NDArray[np.int64] | None:
    """Return the orders of warps, then that of blocks; None without a schedule and clusters."""
    if request.schedule is None and prod(request.cluster) == 1:
        return None
    from ...sanitizer.schedules import ROWS, Schedule

    if request.schedule is None:
        return np.concatenate([np.zeros(ROWS * WARP_SIZE, np.int64), request.clusters.ravel()])
    schedule = Schedule.from_seed(request.schedule, request.grid, request.block)
    return np.concatenate([schedule.warps.ravel(), schedule.of_clusters(request.clusters).ravel()])


def _argument_types(summary: ProgramSummary) -> list[Any]:
    """Return the C types of the kernel's parameters."""
    types: list[Any] = []
    for type in summary.parameters.values():
        types += [ctypes.c_void_p, ctypes.c_int64] if isinstance(type, Array) else [C_TYPES[type.name]]
    return types


def _converter(type: Value | Array) -> Callable[[Any], Any] | None:
    """Return a function from a number of a parameter's type to a value for ctypes; None for an array."""
    if isinstance(type, Array):
        return None
    assert isinstance(type, Scalar)
    if type in HALVES:
        return lambda number: int(number.view(np.uint16))
    return int if type is BOOL else np.generic.item


def _arguments(program: _CompiledKernel, request: Request, buffers: dict[str, Buffer]) -> list[Any]:
    """Return the values of the kernel's parameters."""
    values: list[Any] = []
    for name, convert in program.converters:
        if convert is None:
            buffer = buffers[name]
            values += (_address(buffer), len(buffer))
        else:
            values.append(convert(request.arguments[name]))
    return values


def _address(buffer: Any) -> int:
    """Return the address of an array."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(buffer))  # a quarter of the time
    except (TypeError, ValueError, BufferError):  # read only, or without elements
        return int(buffer.ctypes.data)


# ------------------------------------------------------------------ calls from compiled code
def _host_calls(
    program: _CompiledKernel,
    prints: Prints,
    traced: TraceBuffers,
    raised: list[BaseException],
) -> Callable[[int, int, int, int, int], None]:
    def answer(request: int, block: int, warp: int, mask: int, data: int) -> None:
        # ctypes would discard an exception, including an interrupt.
        try:
            if request == interrupts.REQUEST:
                interrupts.answer(data, raised)
            elif request == TRACE:
                traced.transfer([data])
            else:
                _print(prints, program.module.host_calls.requests[request], (block, warp), mask, data)
        except BaseException as error:
            raised.append(error)

    return answer


def _lanes_at(data: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the 32 lanes stored at an address."""
    raw = (ctypes.c_uint8 * (WARP_SIZE * dtype.itemsize)).from_address(data)
    return np.ctypeslib.as_array(raw).view(dtype)


def _print(prints: Prints, stmt: ir.Print, at: tuple[int, int], mask: int, data: int) -> None:
    """Print the output of a print statement, one line for each lane of the mask. at: block and warp."""
    types = [p.type for p in stmt.items if not isinstance(p, str)]
    columns = iter([_lanes_at(data + 256 * n, t.dtype) for n, t in enumerate(types) if isinstance(t, Scalar)])
    items: list[Any] = [p if isinstance(p, str) else next(columns) for p in stmt.items]
    block, warp = at
    for lane in range(WARP_SIZE):
        if mask >> lane & 1:
            prints.add(block, WARP_SIZE * warp + lane, [p if isinstance(p, str) else p[lane] for p in items])
