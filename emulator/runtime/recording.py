"""Recorder: the observer that collects the launches of a program in a Run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Literal

import numpy as np

from ..checked import shown
from ..errors import Diagnostic, LaunchError
from ..frontend.signature import RecordArrayParameter, RecordParameter
from ..language.types import Array
from ..machine.device import Device
from ..profiler.launch import Argument, Launch
from ..profiler.run import Run
from ..profiler.samples import Packed
from .engine import Request
from .kernel_description import describe_kernel
from .observing import NextLaunch, PendingLaunch, observing
from .registry import EngineName, row_of
from .result import LaunchDetails
from .specialisation import signature_of


@contextmanager
def profiling(
    *,
    engine: EngineName | None = None,
    device: Device | None = None,
    check: str | Iterable[str] = (),
    schedules: int = 0,
    counters: bool = True,
    detail: bool = False,
    keep_arguments: bool = False,
) -> Iterator[Run]:
    """Record every launch of this process, in all threads; yields the run.

    Parameters
    ----------
    engine, device : override those of the launches.
    check : checks of all launches, as in `launch`. schedules : number of additional orders of each launch. Findings
    are recorded in the run; the program gets unchanged results: a launch with findings runs again as the program
    requested it.
    counters : whether to count. detail : whether launches record samples.
    keep_arguments : whether launches record their argument values, for repetition.

    Raises LaunchError if a launch on a GPU would be checked, unless `engine` overrides it.
    """
    run = Run()
    seeds = tuple(range(1, schedules + 1))
    recorder = Recorder(
        run.launches.append,
        engine,
        device,
        parsed(check),
        seeds,
        counters or detail,
        detail,
        False,
        "arguments" if keep_arguments else "nothing",
    )
    with observing(recorder):
        yield run


def parsed(check: str | Iterable[str]) -> frozenset[str]:
    """Return the named checks."""
    if not check:
        return frozenset()
    from ..sanitizer import checkers  # late: only for checked launches

    return checkers.parse(check)


@dataclass(frozen=True)
class Recorder:
    """An observer that passes a Launch for each launch to `add`. Fields as in `profiling`; seeds: of schedules. keep:
    recorded amount of the request."""

    add: Callable[[Launch], object]
    engine: EngineName | None = None
    device: Device | None = None
    check: frozenset[str] = frozenset()
    seeds: tuple[int, ...] = ()
    counters: bool = True
    detail: bool = False
    compiled: bool = False
    keep: Literal["nothing", "program", "arguments"] = "nothing"

    def observe(self, call: PendingLaunch, proceed: NextLaunch) -> LaunchDetails:
        start = time.perf_counter()
        requested = call
        if (self.check or self.seeds) and not row_of(call.engine).complete:
            raise LaunchError(f"nothing is checked on {call.engine}: have launches observed with engine='jit'")
        if row_of(call.engine).emulates:
            own = call.request
            request = replace(
                own,
                counters=self.counters or own.counters,
                detail=self.detail or own.detail,
                compiled=self.compiled or own.compiled,
            )
            requested = replace(call, request=request)
        faults: list[Diagnostic] = []
        remarks: list[Diagnostic] = []
        if self.check or self.seeds:
            result = self._checked(requested, proceed, faults, remarks)
        else:
            result = proceed(requested)
            faults, remarks = result.faults, result.remarks
        self.add(self.launch(call, result, faults, remarks, time.perf_counter() - start))
        return result

    def _checked(
        self, call: PendingLaunch, proceed: NextLaunch, faults: list[Diagnostic], remarks: list[Diagnostic]
    ) -> LaunchDetails:
        """Run under the checkers and append the findings. Without findings, the checked result is the program's. The
        first run shows the kernel's prints."""
        quiet = replace(call, request=replace(call.request, show_prints=False))
        results: list[LaunchDetails] = []
        for seed in self.seeds or (call.request.schedule,):
            request_call = quiet if results else call
            checks = self.check | call.request.checks
            results.append(
                proceed(replace(request_call, request=replace(request_call.request, checks=checks, schedule=seed)))
            )
            faults += results[-1].faults
            remarks += results[-1].remarks
        return replace(proceed(quiet), written=results[0].written) if faults else results[0]

    def launch(
        self,
        call: PendingLaunch,
        result: LaunchDetails,
        faults: Iterable[Diagnostic],
        remarks: Iterable[Diagnostic],
        seconds: float,
    ) -> Launch:
        """Return the record of a completed launch."""
        request = call.request
        return Launch(
            kernel=describe_kernel(request),
            grid=request.grid,
            block=request.block,
            arguments=_arguments(call),
            shared_bytes=request.dynamic_shared + request.specialisation.summary.shared,
            device=request.device,
            engine=call.engine,
            seconds=seconds,
            milliseconds=result.milliseconds,
            registers=result.resources.registers if result.resources else None,
            counts=result.counts,
            packed=Packed.pack(result.samples) if result.samples else None,
            memory=result.memory,
            faults=tuple(faults),
            remarks=tuple(remarks),
            request=self._recorded_request(request),
        )

    def _recorded_request(self, request: Request) -> Request | None:
        """Return the recorded request, without device arrays. Numbers are included: they determine the control flow of
        the compiled kernel."""
        if self.keep == "nothing":
            return None
        numbers = {name: value for name, value in request.arguments.items() if isinstance(value, np.generic)}
        return replace(request, device_arrays={}, arguments=request.arguments if self.keep == "arguments" else numbers)


def _arguments(call: PendingLaunch) -> tuple[Argument, ...]:
    request, result = call.request, []
    values = {**call.kernel.defaults, **call.arguments}
    types = request.specialisation.summary.parameters
    for name, parameter in signature_of(call.kernel).parameters.items():
        if parameter.type is None:
            result.append(Argument(name, "Const", value=plain_value(values[name])))
        elif isinstance(parameter.type, RecordArrayParameter):
            result.append(Argument(name, f"Global[{parameter.type}]", shape=values[name].shape))
        elif isinstance(parameter.type, Array) and parameter.type.space == "constant":
            result.append(Argument(name, f"Constant[{parameter.type.element}]", shape=values[name].shape))
        elif isinstance(parameter.type, RecordParameter):
            result.append(Argument(name, str(parameter.type), value=plain_value(values[name])))
        elif isinstance(type := types[name], Array):
            text = f"{type.space.capitalize()}[{type.element}]"
            result.append(Argument(name, text, shape=request.forms[name].whole_shape))
        else:
            result.append(Argument(name, str(type), value=request.arguments[name].item()))
    return tuple(result)


def plain_value(value: Any) -> Any:
    """Return a constant or a struct as numbers, texts and tuples, and a text for other values, such as complex numbers."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        value = tuple(getattr(value, member.name) for member in fields(value))
    if isinstance(value, tuple):
        return tuple(plain_value(item) for item in value)
    value = value.item() if isinstance(value, np.generic | np.ndarray) and value.size == 1 else value
    kind = next((kind for kind in (bool, int, float, str) if isinstance(value, kind)), None)
    return value if value is None else shown(value) if kind is None else kind(value)
