"""Independent launches, which overlap on a concurrent engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..checked import shown
from ..errors import LaunchError
from .engine import ConcurrentEngine, Request
from .launching import launch
from .observing import observers
from .registry import EngineName, engine_named
from .request import prepare_request
from .result import LaunchDetails, Result
from .specialisation import AnyKernel


def launch_concurrent(
    launches: Iterable[tuple[AnyKernel, Mapping[str, Any]]], *, engine: EngineName = "jit", **options: Any
) -> Iterator[Result]:
    """Yield the results, in order, of independent launches.

    Parameters
    ----------
    launches : (kernel, arguments of `launch`) pairs. engine : name of the engine. options : arguments of `launch` common to all.

    On a concurrent engine ("cuda") copies and kernels overlap, and an array in several launches is copied to the GPU
    once. A launch starts as soon as `launches` yields it. Single times are not measured. Launches with a common
    DeviceArray access it in an undefined order there, and no other launch may use it before the last result.
    Under an observer, such as `profiling`, launches run one after another. Nothing is launched
    before the first result is requested. Raises the errors of `launch`, and OutOfMemory.
    """
    running = engine_named(engine)
    if observers() or not isinstance(running, ConcurrentEngine):
        for kernel, own in _pairs(launches):
            yield launch(kernel, engine=engine, **options, **own)
        return
    requests: list[Request] = []

    def prepared() -> Iterator[Request]:
        for kernel, own in _pairs(launches):
            requests.append(prepare_request(kernel, **options, **own))
            if requests[-1].overlapping:
                raise LaunchError("concurrent launches do not modify arrays in place: use launch")
            yield requests[-1]

    for number, outcome in enumerate(running.run_concurrently(prepared())):
        details = LaunchDetails(
            buffers=requests[number].shaped(outcome.buffers),
            faults=outcome.faults,
            remarks=[],
            printed=outcome.printed,
            milliseconds=None,
            resources=outcome.resources,
            request=requests[number],
        )
        yield Result(details)


def _pairs(launches: Any) -> Iterator[tuple[AnyKernel, Mapping[str, Any]]]:
    """Yield each kernel with its own arguments. Raises LaunchError."""
    if not isinstance(launches, Iterable):
        raise LaunchError(f"launches is a list of (kernel, arguments of launch), not {shown(launches)}")
    for pair in launches:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[1], Mapping)):
            raise LaunchError(f"each of launches is (kernel, arguments of launch), not {shown(pair)}")
        yield pair[0], pair[1]
