"""How the command line runs a family's variant: the launcher it hands over, and what the launches did."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy.typing as npt
import simtbed as st
from simtbed import (
    Counters,
    Device,
    Global,
    Kernel,
    LaunchError,
    Result,
    SimtbedError,
    devices,
    i32,
    launch,
    launch_concurrent,
    on_gpu,
)
from simtbed.engines.cuda.engine import describe
from simtbed.ir.nodes import Program
from simtbed.kernels import FAMILIES
from simtbed.kernels.family import Family
from simtbed.runtime.engine import Request
from simtbed.runtime.registry import EngineName
from simtbed.runtime.request import prepare_request

Item = TypeVar("Item")
ENGINES: tuple[EngineName, ...] = get_args(EngineName)


@dataclass
class Runner:
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

    def __call__(self, kernel: Kernel, **how: Any) -> Result:
        counting = self.counting and kernel not in self.uncounted
        result = launch(kernel, engine=self.engine, device=self.device, counters=counting, **how)
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


class SideBySide(Runner):
    """A runner on a GPU that has launches which do not depend on each other run at the same time; no single one is
    timed."""

    def empty(self, shape: int | tuple[int, ...], type: Any) -> npt.NDArray[Any]:
        """An array that launches copy from at the speed of the bus."""
        from simtbed.engines.cuda import streams

        return streams.empty(shape, type)

    def together(self, launches: Iterable[tuple[Kernel, Mapping[str, Any]]]) -> Iterator[Result]:
        for result in launch_concurrent(launches, engine=self.engine, device=self.device):
            with self.lock:
                self.launches += 1
            yield result


def ask_for_gpus(gpus: int, engine: EngineName) -> None:
    """Raises SimtbedError where so many GPUs cannot share the work."""
    if gpus == 1:
        return
    if engine != "cuda":
        raise SimtbedError(f"--gpus {gpus} needs --engine cuda")
    with on_gpu(gpus - 1):
        describe()


def first_launch(family: Family[Any], variant: str, problem: Any) -> Request:
    """The first launch of the variant's kernel that solving `problem` would make; what comes before it is emulated."""

    class Reached(Exception):
        pass

    found: list[Request] = []

    def stop(kernel: Kernel, **how: Any) -> Result:
        if kernel is not family.variants[variant].kernel:
            return launch(kernel, counters=False, **how)
        found.append(prepare_request(kernel, **how))
        raise Reached

    try:
        family.solve(problem, variant, stop)
    except Reached:
        return found[0]
    raise SimtbedError(f"{variant} launches no kernel on this input")


def find_variant(name: str) -> tuple[Family[Any], str]:
    """The family and the name of a variant, given as VARIANT or, where several families have one, FAMILY/VARIANT."""
    family, _, variant = name.rpartition("/")
    found = [f for f in FAMILIES.values() if variant in f.variants and family in ("", f.name)]
    if len(found) == 1:
        return found[0], variant
    if found:
        raise SimtbedError(f"{name} is ambiguous: say {' or '.join(f'{f.name}/{variant}' for f in found)}")
    names = [v for f in FAMILIES.values() for v in f.variants]
    known = (v if names.count(v) == 1 else f"{f.name}/{v}" for f in FAMILIES.values() for v in f.variants)
    raise SimtbedError(f"no variant is called {name!r}; there are {', '.join(known)}")


def find_family(name: str) -> Family[Any]:
    """The family of that name."""
    if name not in FAMILIES:
        raise SimtbedError(f"no family is called {name!r}; there are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def find_variants(family: str | None, variant: str | None, source: Path | None) -> list[tuple[Family[Any], list[str]]]:
    """The families chosen by name, or by the name of a variant, or all; with their variants. source: an input, which
    only one family can read."""
    if variant is not None:
        if family is None:
            one, variant = find_variant(variant)
            return [(one, [variant])]
        if variant not in find_family(family).variants:
            raise SimtbedError(f"{family} has no variant {variant!r}; it has {', '.join(find_family(family).variants)}")
    chosen = [find_family(family)] if family else list(FAMILIES.values())
    if source is not None and len(chosen) > 1:
        raise SimtbedError("--input belongs to one family: name it with --family or --variant")
    return [(one, [variant] if variant else list(one.variants)) for one in chosen]


@st.kernel
def _nothing(out: Global[i32]) -> None:
    """The least a kernel can do."""
    out[st.lane] = st.lane


def obstacle(engine: EngineName) -> str | None:
    """Why an engine cannot run on this machine, found by running a small kernel on it; None if it can."""
    try:
        launch(_nothing, grid=1, block=32, args={"out": st.empty(32, "i32")}, engine=engine)
    except LaunchError as error:
        return str(error)
    return None


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, and each one is made while the one before it is used. Errors come where they would have come."""
    ended = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, ended)
        while (item := coming.result()) is not ended:
            coming = thread.submit(next, items, ended)
            yield item  # type: ignore[misc]


@contextmanager
def progress(what: str) -> Iterator[Callable[[str], None]]:
    """A spinner on stderr while long work runs, if stderr is a terminal; it takes how far the work is."""
    if not sys.stderr.isatty():
        yield lambda far: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda far: status.update(f"{what}: {far}")
