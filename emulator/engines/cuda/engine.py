"""The cuda engine: a printed program built by nvcc, run on a GPU through PyCUDA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from ...runtime.engine import CodePlace, Outcome, Request
from ...runtime.streams import Stream
from . import launches
from .direct import DirectLaunch
from .driver import DeviceLaunch, launch_errors, primary_context, pycuda_driver
from .launches import Launcher, StartedLaunch
from .native_streams import GpuStream

if TYPE_CHECKING:
    from ...runtime.graphs import Graph


class CudaEngine:
    """Runs programs on a CUDA device: the first (CUDA_VISIBLE_DEVICES chooses), or that of `on_gpu`.

    It has no counters and no checks.
    """

    name = "cuda"

    def architecture(self) -> str:
        """Return the architecture of the device of launches, such as "sm_90". Raises the errors of `run`."""
        return primary_context().arch

    def run(self, request: Request) -> Outcome:
        """Launch once. The kernel's prints are written to the process's standard output, not into the outcome.

        Raises LaunchError without PyCUDA, a driver, a device or nvcc, and if the kernel fails.
        """
        return launches.run(request, primary_context())

    def compile(self, request: Request) -> None:
        """Load the kernel of a launch; nvcc compiles it unless it is in the disk cache."""
        context = primary_context()
        with context.current(), launch_errors(request, context):
            Launcher.of_request(context, request)

    def start(self, request: Request, stream: Stream, place: CodePlace) -> StartedLaunch:
        """Launch on a stream, without a wait. Raises the errors of `run` that are known before the kernel ends."""
        context = primary_context()
        return launches.start(request, context, partial(GpuStream.handle_of, stream, context), place)

    def direct(self, request: Request, plan: Any) -> DirectLaunch | None:
        """See `direct.DirectLaunch.of_plan`."""
        return DirectLaunch.of_plan(primary_context(), request, plan)

    def replay(self, graph: Graph, stream: Stream | None) -> None:
        """Replay a graph. Raises the errors of `run`."""
        from .native_graphs import replay  # late: few programs use it

        replay(graph, stream)

    def run_concurrently(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """See `streams.run_concurrently`."""
        from .streams import run_concurrently  # late: few programs use it

        return run_concurrently(requests)

    def time(self, request: Request, repeats: int) -> list[float]:
        """Return the milliseconds of each of `repeats` launches, after one that is not timed. The inputs are copied once: each
        launch reads the arrays that the launch before it left."""
        with DeviceLaunch(request) as launch:
            launch.run(1)
            return launch.run(repeats)

    def time_behind(self, before: Request, request: Request, repeats: int) -> list[float]:
        """Return the milliseconds of each of `repeats` launches, each queued behind a launch of `before`, so that the host's time is
        hidden."""
        with DeviceLaunch(before) as busy, DeviceLaunch(request) as launch:
            return launch.run(repeats, busy)


def describe() -> dict[str, str]:
    """Return the name and the architecture of the device of launches, and the CUDA version of its driver."""
    context = primary_context()
    version = pycuda_driver().get_driver_version()
    return {
        "device": context.device.name(),
        "arch": context.arch,
        "driver": f"{version // 1000}.{version % 1000 // 10}",
    }
