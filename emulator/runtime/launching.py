"""Launches: arguments arranged by name, the plan of their types and shapes found or made, the plan bound to them, the engine run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..checked import one_of
from ..errors import LaunchError, SimtbedError
from ..machine.device import H200, Device
from ..tracebacks import shortened
from . import observing
from .arrays import DeviceArray
from .engine import CompilingEngine, DirectEngine, Request
from .graphs import current_graph
from .observing import PendingLaunch, overrides
from .plans import LaunchPlan, arranged, find_plan, new_request, plan_key
from .registry import EngineRow, engine_named, row_of
from .request import LaunchOptions, find_device, with_options
from .result import LaunchDetails, Result
from .running import checked, launch_in_place, locked, prepare_arrays, run_locked
from .specialisation import AnyKernel, KernelFacts, known_facts
from .streams import RECORDER

_FAULTS = ("raise", "return")


@with_options(LaunchOptions)
def launch(kernel: AnyKernel, **keywords: Any) -> Result:
    """Run `kernel` on `grid` blocks of `block` threads.

    Raises CompileError (kernel outside the language), LaunchError (wrong arguments), FaultError.
    """
    __tracebackhide__ = True
    try:
        if "args" not in keywords:
            LaunchOptions(**keywords)  # Python's error names all that are missing
        args, engine, device = keywords.pop("args"), keywords.pop("engine", "jit"), keywords.pop("device", H200)
        stream, faults = keywords.pop("stream", None), keywords.pop("faults", "raise")
        if faults not in _FAULTS:
            one_of("faults", faults, _FAULTS)
        if type(device) is not Device:
            device = find_device(device)
        if observing.current != ():
            engine, device = overrides(engine, device)
        kernel, facts, args = arranged(kernel, args)
        key = plan_key(facts, engine, device, keywords, args)
        plan = find_plan(facts, key)
        if plan is not None and plan.direct and not observing.current and RECORDER.get() is None:
            started = plan.direct.run(args, stream)
            if started is not None:
                return Result(started)
        options = LaunchOptions(args=args, engine=engine, device=device, stream=stream, faults=faults, **keywords)
        return Result(_run(kernel, facts, key, plan, options))
    except SimtbedError as error:
        raise (shortened(error) if error.for_the_user else error) from error.__cause__


def _run(
    kernel: AnyKernel,
    facts: KernelFacts,
    key: tuple[Any, ...] | None,
    plan: LaunchPlan | None,
    options: LaunchOptions,
) -> LaunchDetails:
    """Run a launch of arranged arguments through the observers, with its device arrays locked and updated."""
    row, args, stream = row_of(options.engine), cast("Mapping[str, Any]", options.args), options.stream
    if plan is not None and not plan.device_arrays and not observing.current and RECORDER.get() is None:
        return checked(run_locked(plan.bind(args), row, stream), options.faults)
    arrays = [value for value in args.values() if isinstance(value, DeviceArray)]
    with locked(arrays):
        prepare_arrays(arrays, row)
        if options.in_place and current_graph() is not None:
            raise LaunchError("a launch of a graph takes device arrays: leave in_place=False")
        request = _request(kernel, facts, key, plan, options, row)
        if request.overlapping:
            return checked(
                launch_in_place(PendingLaunch(kernel, args, request, options.engine, stream)), options.faults
            )
        call = PendingLaunch(kernel, args, request, options.engine, stream) if observing.current else None
        result = run_locked(request, row, stream, call)
    if plan is not None and row.queues and plan.direct is None:
        plan.direct = cast("DirectEngine", engine_named(row.name)).direct(request, plan) or False
    return checked(result, options.faults)


def _request(
    kernel: AnyKernel,
    facts: KernelFacts,
    key: tuple[Any, ...] | None,
    plan: LaunchPlan | None,
    options: LaunchOptions,
    row: EngineRow,
) -> Request:
    if plan is None:
        return new_request(kernel, options, facts, key, row)
    return plan.bind(cast("Mapping[str, Any]", options.args))


def pending_launch(kernel: AnyKernel, **keywords: Any) -> PendingLaunch:
    """Return a validated launch, by the plan of an earlier one if there is one. Raises the errors of `launch`."""
    options = LaunchOptions(**keywords)
    row, options.device = row_of(options.engine), find_device(options.device)
    kernel, facts, args = arranged(kernel, options.args)
    keywords = {name: value for name, value in keywords.items() if name not in _NOT_PLANNED}
    key, options.args = plan_key(facts, row.name, options.device, keywords, args), args
    with locked([value for value in args.values() if isinstance(value, DeviceArray)]):
        request = _request(kernel, facts, key, find_plan(facts, key), options, row)
    return PendingLaunch(kernel, args, request, options.engine, options.stream)


def compile_launch(kernel: AnyKernel, **keywords: Any) -> Mapping[str, Any]:
    """Validate and compile a launch; return its arguments by name, with defaults. Raises the errors of `launch`."""
    if keywords.get("in_place"):
        raise LaunchError("a compiled launch does not modify arrays in place: leave in_place=False, or use launch")
    call = pending_launch(kernel, **keywords)
    compiling = engine_named(call.engine)
    if isinstance(compiling, CompilingEngine):
        compiling.compile(call.request)
    return {name: call.arguments[name] for name in known_facts(call.kernel).signature.parameters}


_NOT_PLANNED = frozenset({"args", "engine", "device", "stream", "faults"})
"""Options that are not in the key of a plan as they are given."""
