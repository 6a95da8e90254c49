"""Recording launches: the observer that makes a Run of what a program launches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, is_dataclass, replace
from enum import Enum
from typing import Any, Literal

import numpy as np

from ..errors import Diagnostic, LaunchError
from ..frontend.signature import Record, RecordArray
from ..language.types import Array
from ..machine.device import Device
from ..profiler.launch import Argument, Launch
from ..profiler.run import Run
from ..profiler.samples import Packed
from .described import described
from .engine import Request
from .observing import Call, Proceed, observing
from .registry import EngineName, row_of
from .result import Result
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
    """Inside, every launch of this process is counted and recorded, in all threads; it gives the run they make up.

    engine, device: for all launches, whatever they ask for themselves. check: looked for in all launches, as `launch`
    has it; schedules: in how many other orders each one is run too. What is found stands in the run. The program gets
    of each launch what it would get without: a launch in which something is found is made again as the program asked.
    A launch on a GPU cannot be checked: it raises LaunchError, unless `engine` says otherwise.
    counters: whether to count. detail: whether launches keep samples too. keep_arguments: whether they keep their
    arguments' values, to be made again.
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
    """The checks asked for by name."""
    if not check:
        return frozenset()
    from ..sanitizer import checkers  # late: a launch that is not checked does without

    return checkers.parse(check)


@dataclass(frozen=True)
class Recorder:
    """An observer that hands on a Launch for each launch. The fields are as in `profiling`; seeds: of schedules. keep: how
    much of its request."""

    add: Callable[[Launch], object]
    engine: EngineName | None = None
    device: Device | None = None
    check: frozenset[str] = frozenset()
    seeds: tuple[int, ...] = ()
    counters: bool = True
    detail: bool = False
    decisions: bool = False
    keep: Literal["nothing", "program", "arguments"] = "nothing"

    def observe(self, call: Call, proceed: Proceed) -> Result:
        start = time.perf_counter()
        asked = call
        if (self.check or self.seeds) and not row_of(call.engine).emulates:
            raise LaunchError(f"nothing is checked on {call.engine}: have launches observed with engine='jit'")
        if row_of(call.engine).emulates:
            own = call.request
            request = replace(
                own,
                counters=self.counters or own.counters,
                detail=self.detail or own.detail,
                decisions=self.decisions or own.decisions,
            )
            asked = replace(call, request=request)
        faults: list[Diagnostic] = []
        remarks: list[Diagnostic] = []
        if self.check or self.seeds:
            result = self._checked(asked, proceed, faults, remarks)
        else:
            result = proceed(asked)
            faults, remarks = result.faults, result.remarks
        self.add(self.launch(call, result, faults, remarks, time.perf_counter() - start))
        return result

    def _checked(self, call: Call, proceed: Proceed, faults: list[Diagnostic], remarks: list[Diagnostic]) -> Result:
        """Run under the checkers, adding to what is found; where nothing is, that is what the program gets. The first of
        the runs shows what the kernel prints."""
        quiet = replace(call, request=replace(call.request, show_prints=False))
        results: list[Result] = []
        for seed in self.seeds or (call.request.schedule,):
            asked = quiet if results else call
            checks = self.check | call.request.checks
            results.append(proceed(replace(asked, request=replace(asked.request, checks=checks, schedule=seed))))
            faults += results[-1].faults
            remarks += results[-1].remarks
        return replace(proceed(quiet), written=results[0].written) if faults else results[0]

    def launch(
        self, call: Call, result: Result, faults: Iterable[Diagnostic], remarks: Iterable[Diagnostic], seconds: float
    ) -> Launch:
        """What there is to say of a launch that was made."""
        request = call.request
        return Launch(
            kernel=described(request),
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
            packed=Packed.of(result.samples) if result.samples else None,
            decisions=result.decisions,
            faults=tuple(faults),
            remarks=tuple(remarks),
            request=self._kept(request),
        )

    def _kept(self, request: Request) -> Request | None:
        """The request as far as it is kept; its arrays are in `arguments` alone. Numbers decide what a compiled kernel does."""
        if self.keep == "nothing":
            return None
        numbers = {name: one for name, one in request.arguments.items() if isinstance(one, np.generic)}
        return replace(request, device_arrays={}, arguments=request.arguments if self.keep == "arguments" else numbers)


def _arguments(call: Call) -> tuple[Argument, ...]:
    request, found = call.request, []
    given = {**call.kernel.defaults, **call.arguments}
    types = request.specialisation.summary.parameters
    for name, parameter in signature_of(call.kernel).parameters.items():
        if parameter.type is None:
            found.append(Argument(name, "Const", value=_plain(given[name])))
        elif isinstance(parameter.type, RecordArray):
            found.append(Argument(name, f"Global[{parameter.type}]", shape=given[name].shape))
        elif isinstance(parameter.type, Array) and parameter.type.space == "constant":
            found.append(Argument(name, f"Constant[{parameter.type.element}]", shape=given[name].shape))
        elif isinstance(parameter.type, Record):
            found.append(Argument(name, str(parameter.type), value=_plain(given[name])))
        elif isinstance(type := types[name], Array):
            text = f"{type.space.capitalize()}[{type.element}]"
            found.append(Argument(name, text, shape=request.forms[name].whole_shape))
        else:
            found.append(Argument(name, str(type), value=request.arguments[name].item()))
    return tuple(found)


def _plain(value: Any) -> Any:
    """A constant or a struct as numbers and tuples."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        value = astuple(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value.item() if hasattr(value, "item") else value
