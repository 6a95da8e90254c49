"""Launchers that reports solve problems with: they remember what their launches did."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy.typing as npt
import simtbed as st
from simtbed import (
    Device,
    Global,
    Kernel,
    LaunchError,
    Result,
    SimtbedError,
    UnavailableError,
    devices,
    i32,
    launch,
    launch_concurrent,
)
from simtbed.kernels import FunctionLauncher, Launcher
from simtbed.runtime.registry import EngineName

if TYPE_CHECKING:  # most runs count nothing
    from simtbed import Counters
    from simtbed.ir.nodes import Program

ENGINES: tuple[EngineName, ...] = get_args(EngineName)


@dataclass
class Runner(Launcher):
    """A launcher for `Family.solve` that remembers what its launches did; threads may share it.

    uncounted: kernels that are launched without counting.
    counted: each program that was launched, with its counters over all its launches.
    milliseconds: of the kernels alone, on a GPU.
    """

    engine: EngineName
    device: Device = devices.H200
    counting: bool = False
    uncounted: frozenset[Kernel] = frozenset()
    launches: int = 0
    milliseconds: float | None = None
    counted: list[tuple[Program, Counters]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        if self.engine == "cuda":
            from simtbed.engines.cuda.startup import begin_context

            begin_context()

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        counting = self.counting and kernel not in self.uncounted
        result = launch(kernel, engine=self.engine, device=self.device, counters=counting, **arguments)
        with self.lock:
            self.launches += 1
            if result.counts is not None:
                self._count(result.request.program, result.counters)
            if result.milliseconds is not None:
                self.milliseconds = (self.milliseconds or 0) + result.milliseconds
        return result

    def _count(self, program: Program, counters: Counters) -> None:
        for at, (known, before) in enumerate(self.counted):
            if known is program:
                self.counted[at] = (program, before + counters)
                return
        self.counted.append((program, counters))

    @property
    def counters(self) -> Counters | None:
        """Summed over all launches, source place by source place; None where nothing was counted."""
        found = [counters for _, counters in self.counted]
        return sum(found[1:], found[0]) if found else None


class ConcurrentRunner(Runner):
    """A runner on a GPU whose launches that do not depend on each other run concurrently; no single one is timed."""

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array in page-locked memory, which is copied at the speed of the bus."""
        from simtbed.engines.cuda import streams

        return streams.empty(shape, dtype)

    def launch_concurrent(self, launches: Iterable[tuple[Kernel, Mapping[str, Any]]]) -> Iterator[Result]:
        for result in launch_concurrent(launches, engine=self.engine, device=self.device):
            with self.lock:
                self.launches += 1
            yield result


def new_runner(engine: EngineName, counting: bool = False) -> Runner:
    """A runner for whole problems: concurrent where the engine is a GPU."""
    return ConcurrentRunner(engine) if engine == "cuda" else Runner(engine, counting=counting)


def launcher_of_workers(engine: EngineName) -> FunctionLauncher:
    """A launcher that can be pickled: a worker of a cluster launches with it, and nobody counts."""
    return FunctionLauncher(partial(launch, engine=engine, counters=False))


def require_gpus(gpus: int, engine: EngineName) -> None:
    """Raises SimtbedError where so many GPUs cannot share the work. Nothing waits for their contexts."""
    if gpus == 1:
        return
    if engine != "cuda":
        raise SimtbedError(f"--gpus {gpus} needs --engine cuda")
    from simtbed.engines.cuda.driver import device_of

    device_of(gpus - 1)


@st.kernel
def _smallest(out: Global[i32]) -> None:
    """A kernel that any engine that runs at all can run."""
    out[st.lane] = st.lane


def why_unavailable(engine: EngineName) -> str | None:
    """Why an engine cannot run on this machine, found by running a small kernel on it; None if it can."""
    try:
        launch(_smallest, grid=1, block=32, args={"out": st.empty(32, "i32")}, engine=engine)
    except LaunchError as error:
        return str(error)
    return None


def require_engine(engine: EngineName) -> None:
    """Raises UnavailableError where an engine cannot run on this machine."""
    if reason := why_unavailable(engine):
        raise UnavailableError(f"the {engine} engine cannot run here: {reason}")
