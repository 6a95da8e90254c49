"""Launching a kernel: a request made, an engine run, findings judged, the result in one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from ..errors import Diagnostic, LaunchError
from ..language.functions import Kernel
from ..machine import device as devices
from ..machine.device import Device
from .arrays import DeviceArray
from .engine import ConcurrentEngine, Engine, Outcome, Request
from .registry import EngineName, engine_called, row_of
from .request import STEP_LIMIT, prepare_request
from .result import FaultError, Result


def launch(
    kernel: Kernel,
    *,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Mapping[str, Any],
    engine: EngineName = "jit",
    device: Device = devices.H200,
    shared: int = 0,
    counters: bool = True,
    step_limit: int = STEP_LIMIT,
    types: Mapping[str, str] | None = None,
    check: str | Iterable[str] = (),
    schedule: int | None = None,
    faults: Literal["raise", "return"] = "raise",
) -> Result:
    """Run `kernel` on `grid` blocks of `block` threads.

    args: every parameter by name. Global arrays are NumPy arrays of exactly the element's dtype (vectors: shape
    (n, lanes)), which are not modified, `empty(n, type)` or `zeros(n, type)`, or `DeviceArray(...)`, which the next launch
    finds as this one leaves it. Scalars are checked for range. Const parameters take int, float, bool or tuples of them.
    shared: bytes of dynamic shared memory. step_limit: iterations that one execution of a loop may take.
    engine: "jit" (compiled, fast) and "numpy" (readable) emulate, with the same outputs, counters and faults; "cuda"
    runs on a GPU, where nothing is counted or checked.
    check: what an emulator looks for beyond what it always does: "all", or some of "bounds", "uninitialised", "races",
    "barriers", "arithmetic"; with "benign" races that write the same value are faults. Where races or uninitialised
    words are looked for, blocks run one after another. A line with `# simtbed: allow race - reason` is let pass.
    schedule: a seed; the launch is run again with blocks, and warps between barriers, in another order, and a result
    that differs is a fault.
    types: {"Real": "f32"} where no array tells. counters: whether to count.
    faults: "raise" a FaultError when the emulator finds any, or "return" them in the result.

    Raises CompileError (the kernel is not in the language), LaunchError (the arguments do not fit), FaultError.
    """
    row = row_of(engine)
    if row.emulates:
        for given in args.values():
            if isinstance(given, DeviceArray):
                given.fetch()
    request = prepare_request(
        kernel,
        grid=grid,
        block=block,
        args=args,
        device=device,
        shared=shared,
        counters=counters,
        step_limit=step_limit,
        types=types,
        check=check,
        schedule=schedule,
    )
    if not row.emulates and (request.checks or schedule is not None):
        raise LaunchError("a GPU is asked for nothing but results: check and schedule need an emulator, jit or numpy")
    outcome = _outcome(engine_called(engine), request)
    found, remarks = _judged(request, outcome)
    for name in request.device_arrays.keys() & outcome.buffers.keys():
        request.device_arrays[name].replace(outcome.buffers.pop(name))
    result = Result(
        buffers=outcome.buffers,
        faults=found,
        remarks=remarks,
        printed=outcome.printed,
        milliseconds=outcome.milliseconds,
        resources=outcome.resources,
        request=request,
        counts=outcome.counts,
    )
    if result.faults and faults == "raise":
        raise FaultError(result)
    return result


def launch_concurrent(
    launches: Iterable[tuple[Kernel, Mapping[str, Any]]], *, engine: EngineName = "jit", **how: Any
) -> Iterator[Result]:
    """The results, in order, of launches that do not depend on each other: (kernel, its own arguments of `launch`), `how`:
    those that all share. Nothing is launched before the first result is asked for.

    On an engine that can ("cuda") they run side by side: copies and kernels overlap, and an array that is given to several launches is
    copied to the GPU once. A launch begins as soon as `launches` gives it; the first results can be used while the last
    launches run. No single time is measured there, no DeviceArray taken. Raises what `launch` raises, and OutOfMemory.
    """
    running = engine_called(engine)
    if not isinstance(running, ConcurrentEngine):
        for kernel, own in launches:
            yield launch(kernel, engine=engine, **how, **own)
        return
    requests: list[Request] = []

    def prepared() -> Iterator[Request]:
        for kernel, own in launches:
            requests.append(prepare_request(kernel, **how, **own))
            yield requests[-1]

    for number, outcome in enumerate(running.run_concurrently(prepared())):
        yield Result(
            buffers=outcome.buffers,
            faults=outcome.faults,
            remarks=[],
            printed=outcome.printed,
            milliseconds=None,
            resources=outcome.resources,
            request=requests[number],
        )


def _judged(request: Request, outcome: Outcome) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Faults and remarks. Comments of the kernel matter only to what was found or asked for."""
    if not outcome.faults and not request.checks:
        return [], []
    from ..sanitizer import suppressions  # late: it needs the program

    return suppressions.sort_findings(outcome.faults, request.prepared.program.kernel, request.checks)


def _outcome(engine: Engine, request: Request) -> Outcome:
    """Run a launch; with a schedule, in both orders."""
    if request.schedule is None:
        return engine.run(request)
    first, second = engine.run(replace(request, schedule=None)), engine.run(request)
    known = {(fault.kind, fault.span) for fault in first.faults}
    first.faults += [fault for fault in second.faults if (fault.kind, fault.span) not in known]
    from ..sanitizer import schedules

    kernel = request.prepared.program.kernel
    differs = schedules.difference(kernel, first.buffers, second.buffers, request.schedule, request.grid, request.block)
    if differs is not None:
        first.faults.append(differs)
    return first
