"""The cuda engine: a printed program built by nvcc, run on a GPU through PyCUDA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...runtime.engine import Outcome, Request
from .driver import DeviceLaunch, primary_context, pycuda_driver
from .streams import run_concurrently


class CudaEngine:
    """Runs programs on a CUDA device: the first (CUDA_VISIBLE_DEVICES chooses), or that of `on_gpu`.

    Nothing is counted or checked.
    """

    name = "cuda"

    def run(self, request: Request) -> Outcome:
        """Launch once. What the kernel prints goes to the process's standard output, not into the outcome.

        Raises LaunchError without PyCUDA, a driver, a device or nvcc, and where the kernel fails.
        """
        with DeviceLaunch(request) as launch:
            (milliseconds,) = launch.run(1)
            return Outcome(launch.written(), milliseconds=milliseconds, resources=launch.loaded.resources)

    def run_concurrently(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """See `streams.run_concurrently`."""
        return run_concurrently(requests)

    def time(self, request: Request, repeats: int) -> list[float]:
        """Milliseconds of each of `repeats` launches, after one that is not timed. The inputs are copied once: each
        launch finds the arrays as the one before it left them."""
        with DeviceLaunch(request) as launch:
            launch.run(1)
            return launch.run(repeats)

    def time_behind(self, before: Request, request: Request, repeats: int) -> list[float]:
        """Milliseconds of each of `repeats` launches, all of them timed, each behind a launch of `before`. While the GPU works
        on that one the host sends the next, so that what the host takes for it is not in the time."""
        with DeviceLaunch(before) as busy, DeviceLaunch(request) as launch:
            return launch.run(repeats, busy)


def describe() -> dict[str, str]:
    """The device that launches go to: its name, its architecture, and the CUDA version of its driver."""
    context = primary_context()
    version = pycuda_driver().get_driver_version()
    return {
        "device": context.device.name(),
        "arch": context.arch,
        "driver": f"{version // 1000}.{version % 1000 // 10}",
    }
