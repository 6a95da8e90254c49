"""Execution of a validated launch on its engine: observers, graphs, device arrays, findings, the details of the result."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any, cast

from ..checked import STACK_ENDED
from ..errors import Diagnostic, LaunchError
from ..language.intrinsics import WARP_SIZE
from ..language.types import Array
from ..profiler.launch_memory import digest
from . import stream_races
from .arrays import DeviceArray
from .engine import CodePlace, Engine, Outcome, Request, StreamEngine, user_place
from .graphs import Graph, RecordedResult, current_graph
from .observing import PendingLaunch, observers, run_through_observers
from .registry import EngineRow, engine_named, row_of
from .request import applied_checks
from .result import FaultError, LaunchDetails, in_words
from .specialisation import Specialisation
from .streams import Stream, begin_launch


def checked(result: LaunchDetails, faults: str) -> LaunchDetails:
    """Return a result. Raises FaultError if faults are raised."""
    if faults == "raise" and "_launch" not in vars(result) and result.faults:  # one in progress has none
        raise FaultError(result)
    return result


def prepare_arrays(arrays: Sequence[DeviceArray], row: EngineRow) -> None:
    """Move device arrays to the host for an emulator. The code of a launch of a graph does not depend on their contents."""
    recorded = current_graph() is not None
    for array in arrays:
        if row.emulates:
            array.fetch()
        if recorded:
            array.rewritten = True


def launch_in_place(call: PendingLaunch) -> LaunchDetails:
    """Run a launch that modifies the arrays of `call.arguments`. Those of its request are the same memory.

    Observers, a GPU, and an emulator that may have to repeat the launch, work on copies.
    """
    begin_launch(call.stream)
    request = call.request
    if row_of(call.engine).emulates and not observers() and not _may_run_again(request):
        return _run(call)
    call = replace(call, request=replace(request, in_place=frozenset()))
    result = run_through_observers(call, _run) if observers() else _run(call)
    for name, buffer in result.buffers.items():
        call.arguments[name][...] = buffer
    return result


def _may_run_again(request: Request) -> bool:
    """Return whether an emulator may have to repeat a launch: for a schedule, checkers, or a waiting loop at its limit."""
    repeated = (
        request.schedule is not None or request.schedules > 0 or bool(request.checks) or request.step_limit is not None
    )
    summary = request.specialisation.summary
    return repeated or summary.waits or summary.lanes_wait


def run_locked(
    request: Request, row: EngineRow, stream: Stream | None, call: PendingLaunch | None = None
) -> LaunchDetails:
    """Run a launch whose device arrays are locked, and update them. call: the launch for the observers."""
    if (graph := current_graph()) is not None:
        graph.add(request, stream, CodePlace(*user_place(sys._getframe(1))), _replay_of(row))
        for name in request.specialisation.summary.changed if row.queues else ():
            request.device_arrays[name].record_written(None)
        return LaunchDetails.pending(request, RecordedResult())
    begin_launch(stream)
    if call is not None:
        result = run_through_observers(call, _run)
    elif not row.emulates:
        if stream is not None and row.queues:
            for name in request.specialisation.summary.changed:
                if name in request.device_arrays and not request.device_arrays[name].remains:
                    raise LaunchError(
                        f"{name} is in the memory of the host: a launch on a stream of a GPU takes a DeviceArray"
                    )
            queue: StreamEngine = cast("StreamEngine", engine_named(row.name))
            return LaunchDetails.pending(
                request, queue.start(request, stream, CodePlace(*user_place(sys._getframe(1))))
            )
        result = _run_on(engine_named(row.name), request, stream)
    elif request.device_arrays:
        request = _in_place(request)
        with _changing(request):
            result = _run_on(engine_named(row.name), request, stream)
    else:
        result = _run_on(engine_named(row.name), request, stream)
    if stream is not None:
        vars(result)["_clock"] = dict(stream.clock)  # of `wait`
    if not (arrays := request.device_arrays):
        return result
    for name in arrays.keys() & result.buffers.keys() if result.buffers else ():
        arrays[name].replace(result.buffers.pop(name))
    for name in request.specialisation.summary.changed:
        if name in arrays:
            arrays[name].record_written(result.written.get(name))
    return result


@cache
def _replay_of(row: EngineRow) -> Callable[[Graph, Stream | None], None]:
    """Return the function that replays a graph on an engine."""
    if row.queues:
        return lambda graph, stream: cast("StreamEngine", engine_named(row.name)).replay(graph, stream)
    return lambda graph, stream: _replay_one_by_one(graph, stream, row)


def _replay_one_by_one(graph: Graph, stream: Stream | None, row: EngineRow) -> None:
    for launch in graph.launches:
        arrays = list(launch.request.device_arrays.values())
        with locked(arrays):
            for array in arrays:
                if row.emulates:
                    array.fetch()
            result = run_locked(launch.request.with_contents(), row, stream if launch.stream is None else launch.stream)
        checked(result, "raise")


def _in_place(request: Request) -> Request:
    """Return the launch with permission to modify device arrays in place.

    Not with a schedule, and not if a waiting loop may reach its limit: the launch may have to run again. An
    interrupted launch leaves them partially modified.
    """
    summary = request.specialisation.summary
    if _may_run_again(request):
        return request
    changed = frozenset(summary.changed) & request.device_arrays.keys()
    if not changed:
        return request
    for name in changed:
        array = request.device_arrays[name]
        array.replace(array.host)  # it is no longer all zero after any end of the launch
    return request.with_changes_in_place(changed)


@contextmanager
def _changing(request: Request) -> Iterator[None]:
    """Mark arrays that a launch modifies in place."""
    arrays = [request.device_arrays[name] for name in request.in_place]
    for array in arrays:
        array.changing = True
    try:
        yield
    finally:
        for array in arrays:
            array.changing = False


class locked:
    """Holds the locks of device arrays, acquired in an order common to all launches: they cannot deadlock."""

    def __init__(self, arrays: list[DeviceArray]) -> None:
        self.arrays = arrays if len(arrays) < 2 else sorted(arrays, key=id)

    def __enter__(self) -> None:
        for array in self.arrays:
            array.lock.acquire()

    def __exit__(self, *error: object) -> None:
        for array in self.arrays:
            array.lock.release()


def _run(call: PendingLaunch) -> LaunchDetails:
    """Run a launch; device arrays are not changed."""
    request = call.request
    checks = applied_checks(call.kernel, request.checks)
    if checks != request.checks:
        request = replace(request, checks=checks)
    return _run_on(engine_named(call.engine), request, call.stream)


def _run_on(engine: Engine, request: Request, stream: Stream | None = None) -> LaunchDetails:
    memory = request.copied_memory() if request.compiled else None
    outcome = _with_accesses(engine, request) if request.detail else _outcome(engine, request)
    faults: list[Diagnostic] = []
    remarks: list[Diagnostic] = []
    if outcome.faults or request.checks:
        findings = _classified(engine, request, outcome)
        findings[0].extend(stream_races.unordered_accesses(request, outcome.accessed, stream))
        faults, remarks = (in_words(chosen, request.specialisation.words) for chosen in findings)
    if memory is not None:
        memory.after.update({name: digest(buffer) for name, buffer in outcome.buffers.items()})
    return LaunchDetails(
        buffers=request.shaped(outcome.buffers),
        faults=faults,
        remarks=remarks,
        printed=outcome.printed,
        milliseconds=outcome.milliseconds,
        resources=outcome.resources,
        request=request,
        counts=vars(outcome)["_counts"],  # which may be deferred
        samples=outcome.samples,
        memory=memory,
        written=outcome.written,
        trace=outcome.trace,
    )


def _with_accesses(engine: Engine, request: Request) -> Outcome:
    """Run a launch, and sample its accesses for its details."""
    from ..profiler.access_sampling import AccessSampler, sampling_interval  # late: few launches need them
    from .access_remedies import add_remedies

    sampler = AccessSampler(sampling_interval(request.warps))
    outcome = _outcome(engine, replace(request, trace=sampler))
    if outcome.samples is not None:
        outcome.samples = add_remedies(request, outcome, sampler)
    return outcome


def _classified(engine: Engine, request: Request, outcome: Outcome) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Return faults and remarks. Suppression comments apply only to findings and requested checks."""
    from ..sanitizer import suppressions  # late: it needs the program
    from ..sanitizer.races.causes import list_consequences

    findings = request.specialisation.judged(outcome.faults)
    findings = findings if request.checks else request.specialisation.ending(findings)
    faults, remarks = suppressions.sort_findings(findings, request.prepared.program.kernel, request.checks)
    remarks = request.specialisation.ending(remarks)
    if any(fault.kind == "race" for fault in faults):
        faults = list_consequences(_with_remedies(engine, request, faults), request.prepared.program.kernel)
    if "uninitialised" in request.checks and not faults:  # a fault may end threads before they write
        from .unwritten import tracked_elements, unwritten_elements

        remarks += unwritten_elements(request, tracked_elements(request, outcome.written))
    return faults, remarks


def _with_remedies(engine: Engine, request: Request, faults: list[Diagnostic]) -> list[Diagnostic]:
    """Return the faults with races of one cause merged, and with remedies that runs of the corrected kernel confirm."""
    from ..sanitizer import repairs, suppressions
    from ..sanitizer.races.causes import merge_races

    quiet = replace(
        request,
        schedule=None,
        trace=None,
        counters=False,
        compiled=False,
        detail=False,
        show_prints=False,
        checks=frozenset({"races"}),
    )

    def run(program: Any) -> list[Diagnostic]:
        changed = replace(quiet, specialisation=Specialisation.of_program(program))
        remaining = run_once(engine, changed).faults
        return suppressions.sort_findings(remaining, changed.prepared.program.kernel, changed.checks)[0]

    return merge_races(repairs.settle(faults, request.program, run), request.prepared.program.kernel)


def _outcome(engine: Engine, request: Request) -> Outcome:
    """Run a launch; with schedules, also in their orders up to the first that differs."""
    numbers = range(1, request.schedules + 1) if request.schedule is None else [request.schedule]
    try:
        first = run_once(engine, request if request.schedule is None else replace(request, schedule=None))
        for number in numbers:
            if _runs_differently(engine, replace(request, schedule=number), first):
                break
        return first
    except RecursionError:  # as `within_stack`, which takes longer
        raise LaunchError(STACK_ENDED) from None


def _runs_differently(engine: Engine, request: Request, first: Outcome) -> bool:
    """Run a launch in the order of its schedule, and add what differs to the faults of the first run. Return whether anything does.

    If threads communicate in the kernel, its warps are interleaved, with the preemptions of the schedule.
    """
    from ..sanitizer import schedules

    number = request.schedule
    assert number is not None
    request = replace(request, show_prints=False, trace=None)
    summary = request.specialisation.summary
    if summary.ordered and not summary.cooperative and request.warps <= schedules.MAX_INTERLEAVED_WARPS:
        second = engine_named("numpy").run(replace(request, interleave=True))
    else:
        second = run_once(engine, request)
    kernel = request.prepared.program.kernel
    reported = {(fault.kind, frozenset((fault.span, fault.related))) for fault in first.faults}
    other = [one for one in second.faults if (one.kind, frozenset((one.span, one.related))) not in reported]
    note = f"with schedule={number}"
    faults = [replace(fault, notes=(*fault.notes[:-1], note, *fault.notes[-1:])) for fault in other]
    sizes = (request.grid, request.block, request.forms)
    differs = schedules.difference(kernel, first.buffers, second.buffers, number, *sizes)
    first.faults += [*faults, *([] if differs is None else [differs])]
    return bool(faults) or differs is not None


def run_once(engine: Engine, request: Request) -> Outcome:
    """Run a launch; if a lane or a warp waits for another one forever in lockstep, run it again with lanes and warps that progress."""
    outcome = engine.run(request)
    if not _waits(outcome) or outcome.trace is not None or not _may_progress(request):
        return outcome
    if request.trace is not None:
        request.trace.begin_again()
    shown = request.show_prints and not outcome.printed
    again = engine_named("numpy").run(replace(request, interleave=True, show_prints=shown))
    if _waits(again):
        named = [one for one in again.faults if one.message.startswith("deadlock: ")]
        outcome.faults = [next((own for own in named if _is_of(own, one)), one) for one in outcome.faults]
        return outcome
    again.faults += _deadlocks(request, outcome.faults, again.waits)
    return again


def _is_of(deadlock: Diagnostic, endless: Diagnostic) -> bool:
    """Return whether a wait is in an endless loop."""
    wait, loop = deadlock.span, endless.span
    return endless.kind == "step limit" and wait.file == loop.file and loop.line <= wait.line <= loop.end_line


def _deadlocks(request: Request, lockstep: Sequence[Diagnostic], waits: Any) -> list[Diagnostic]:
    """Return a fault for blocks that wait for blocks that the device cannot hold at the same time. lockstep: the faults in lockstep."""
    from ..sanitizer.elements import element

    resident, device, most = request.resident_blocks, request.device, request.occupancy
    if waits.together <= resident:
        return []
    message = f"deadlock: {waits.together:,} blocks wait for each other, and {device.name} holds {resident:,} at once"
    setter: tuple[str, ...] = ()
    if waits.setter is not None:
        array, index = waits.element
        type = next(param.type for param in request.prepared.program.kernel.params if param.name == array)
        assert isinstance(type, Array)
        setter = (
            f"waits for {element(array, type, index, request.forms)}, which block {waits.setter} sets; {resident:,} blocks fit",
        )
    notes = (
        *lockstep[0].notes[:1],
        *setter,
        f"{most.active_blocks} blocks on each of {device.sms} SMs, limited by {most.limiter}; a block starts when an earlier "
        "one ends: launch fewer blocks that do more each, or end the launch between the two",
    )
    return [replace(lockstep[0], message=message, notes=notes)]


def _may_progress(request: Request) -> bool:
    """Return whether another order of lanes or warps may end a wait in a launch."""
    from ..passes.lane_progress import with_lane_progress

    summary, prepared = request.specialisation.summary, request.prepared
    if summary.cooperative or not (summary.waits or summary.lanes_wait):
        return False
    several = summary.ordered and math.prod(request.block) * math.prod(request.grid) > WARP_SIZE
    return several or with_lane_progress(prepared.program.kernel, len(prepared.sites)) is not None


def _waits(outcome: Outcome) -> bool:
    """Return whether a lane waited for another one when the launch ended."""
    return any(fault.kind in ("step limit", "convergence") for fault in outcome.faults)
