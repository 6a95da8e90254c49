"""Launchers that record the counters, number and times of their launches."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import simtbed as st
from simtbed import launch, launch_concurrent
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.runtime.registry import EngineName
from simtbed.runtime.result import details_of

if TYPE_CHECKING:  # most runs have no counters
    from simtbed import Counters
    from simtbed.ir.nodes import Program

ENGINES: tuple[EngineName, ...] = ("jit", "numpy", "cuda")
"""Engines that are fast enough for files."""


@dataclass
class Runner(Launcher):
    """A thread-safe launcher for `Family.solve` that accumulates counters and times.

    uncounted: kernels to launch without counters.
    counted: launched programs with their counters, summed over launches.
    milliseconds: time of the kernels on a GPU, without copies.
    """

    engine: EngineName
    device: st.Device = st.devices.H200
    counting: bool = False
    uncounted: frozenset[st.Kernel] = frozenset()
    launches: int = 0
    milliseconds: float | None = None
    counted: list[tuple[Program, Counters]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        if self.engine == "cuda":
            from simtbed.engines.cuda.startup import begin_context

            begin_context()

    def launch(self, kernel: st.Kernel, **arguments: Any) -> st.Result:
        counting = self.counting and kernel not in self.uncounted
        result = launch(kernel, engine=self.engine, device=self.device, counters=counting, **arguments)
        with self.lock:
            self.launches += 1
            details = details_of(result)
            if details.counts is not None:
                self._count(details.request.program, details.counters)
            if details.milliseconds is not None:
                self.milliseconds = (self.milliseconds or 0) + details.milliseconds
        return result

    def _count(self, program: Program, counters: Counters) -> None:
        for index, (counted_program, total) in enumerate(self.counted):
            if counted_program is program:
                self.counted[index] = (program, total + counters)
                return
        self.counted.append((program, counters))

    @property
    def counters(self) -> Counters | None:
        """Counters by source place, summed over all launches; None without counters."""
        counters = [total for _, total in self.counted]
        return sum(counters[1:], counters[0]) if counters else None

    def counters_of(self, kernel: str) -> Counters:
        """Return the counters of the launches of a kernel, at least one."""
        counters = [total for program, total in self.counted if program.kernel.name == kernel]
        return sum(counters[1:], counters[0])


class ConcurrentRunner(Runner):
    """A runner for a GPU; independent launches run concurrently and are not timed."""

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array in page-locked memory, for fast copies."""
        from simtbed.engines.cuda import streams

        return streams.empty(shape, dtype)

    def launch_concurrent(self, launches: Iterable[tuple[st.Kernel, Mapping[str, Any]]]) -> Iterator[st.Result]:
        for result in launch_concurrent(launches, engine=self.engine, device=self.device):
            with self.lock:
                self.launches += 1
            yield result


def new_runner(engine: EngineName, counting: bool = False) -> Runner:
    """Return a runner for complete problems, concurrent on a GPU."""
    return ConcurrentRunner(engine) if engine == "cuda" else Runner(engine, counting=counting)


def wall_times(work: Callable[[], object], repeat: int, clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Return the milliseconds of each run, after a warm-up run."""
    times = []
    for _ in range(repeat + 1):
        start = clock()
        work()
        times.append(1e3 * (clock() - start))
    return times[1:]


def kernel_times(work: Callable[[Runner], object], repeat: int) -> list[float]:
    """Return the milliseconds of the kernels of each run on a GPU, after a run that compiles."""
    times = []
    for _ in range(repeat + 1):
        runner = Runner("cuda")
        work(runner)
        times.append(runner.milliseconds or math.nan)
    return times[1:]


def launcher_of_workers(engine: EngineName) -> FunctionLauncher:
    """Return a picklable launcher without counters, for workers of a cluster."""
    return FunctionLauncher(partial(launch, engine=engine, counters=False))


def require_gpus(gpus: int, engine: EngineName) -> None:
    """Raise SimtbedError if the number of GPUs is not available. Does not wait for their contexts."""
    if gpus == 1:
        return
    if engine != "cuda":
        raise st.SimtbedError(f"--gpus {gpus} needs --engine cuda")
    from simtbed.engines.cuda.driver import device_of

    device_of(gpus - 1)


@st.kernel
def _smallest(out: st.Global[st.i32]) -> None:
    """A minimal kernel."""
    out[st.lane] = st.lane


def run_smallest(engine: EngineName) -> None:
    """Run a small kernel on an engine. Raises LaunchError, and the engine's own errors."""
    launch(_smallest, grid=1, block=32, args={"out": st.empty(32, "i32")}, engine=engine)


def why_unavailable(engine: EngineName) -> str | None:
    """Run a small kernel; return the reason why an engine cannot run on this machine, or None."""
    try:
        run_smallest(engine)
    except st.LaunchError as error:
        return str(error)
    return None


def require_engine(engine: EngineName) -> None:
    """Raise UnavailableError if an engine cannot run on this machine."""
    if reason := why_unavailable(engine):
        raise st.UnavailableError(f"the {engine} engine cannot run here: {reason}")


def require_gpu(engine: EngineName, subject: str, paper: str) -> None:
    """Raise UnavailableError unless a benchmark of times uses the cuda engine and a GPU. paper: with the counters of its kernels."""
    if engine != "cuda":
        raise st.UnavailableError(
            f"bench {subject} measures times on a GPU: write --engine cuda; `simtbed report {paper}` counts the kernels"
        )
    require_engine(engine)
