"""The cuda engine: a printed program built by nvcc, run on a GPU through PyCUDA."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...runtime.engine import Outcome, Request
from .driver import DeviceLaunch, primary_context, pycuda_driver
from .streams import run_concurrently


class CudaEngine:
    """Runs programs on a CUDA device: the first (CUDA_VISIBLE_DEVICES chooses), or that of `on_gpu`.

    It has no counters and no checks.
    """

    name = "cuda"

    def run(self, request: Request) -> Outcome:
        """Launch once. The kernel's prints are written to the process's standard output, not into the outcome.

        Raises LaunchError without PyCUDA, a driver, a device or nvcc, and if the kernel fails.
        """
        with DeviceLaunch(request) as launch:
            (milliseconds,) = launch.run(1)
            return Outcome(launch.written(), milliseconds=milliseconds, resources=launch.loaded.resources)

    def run_concurrently(self, requests: Iterable[Request]) -> Iterator[Outcome]:
        """See `streams.run_concurrently`."""
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
