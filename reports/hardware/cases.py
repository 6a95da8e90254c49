"""What is run on the GPU and on the emulator to compare them: cases, and what their launches did."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from simtbed.emulator import Counters, Device, Result, SimtbedError, devices, launch
from simtbed.emulator.engines.cuda_source import Source, cuda_source
from simtbed.emulator.engines.engine import Request
from simtbed.emulator.lang import Kernel
from simtbed.emulator.launch import EngineName
from simtbed.emulator.observe.events import DIVERGENT, LANES, WARPS, Counts
from simtbed.emulator.passes import prepare
from simtbed.kernels import FAMILIES

from .weigh import Executed


@dataclass(frozen=True)
class Case:
    """Something that launches kernels: `run(launcher)`, where the launcher is called as `simtbed.emulator.launch` is."""

    name: str
    run: Callable[[Callable[..., Result]], object]


VARIANTS = "simtbed.reports.hardware.cases:variants"
"""Every shipped variant on its family's example."""


def variants() -> Iterator[Case]:
    """One case a variant."""
    for family in FAMILIES.values():
        for variant in family.variants:
            yield Case(f"{family.name} {variant}", partial(family.solve, family.example(), variant))


def find(names: Iterable[str]) -> list[Case]:
    """The cases that functions named "module:function" give. Raises SimtbedError where there is none, or two of a name."""
    found: list[Case] = []
    for name in names:
        module, _, function = name.partition(":")
        if str(Path.cwd()) not in sys.path:
            sys.path.append(str(Path.cwd()))
        try:
            found += getattr(importlib.import_module(module), function or "cases")()
        except (ImportError, AttributeError) as error:
            raise SimtbedError(f"{name}: expected module:function, a function that gives cases: {error}") from None
    known = [case.name for case in found]
    if twice := {name for name in known if known.count(name) > 1}:
        raise SimtbedError(f"two cases are called {', '.join(sorted(twice))}")
    return found


@dataclass
class Launched:
    """All launches of one printed kernel by one case.

    request: of the first. threads, warps: launched together. counts: summed, on an emulator.
    """

    request: Request
    source: Source
    launches: int = 0
    threads: int = 0
    warps: int = 0
    counts: Counts | None = None

    @property
    def digest(self) -> str:
        """sha256 of the printed kernel."""
        return digest(self.source)

    @property
    def counters(self) -> Counters:
        """What the emulator counted."""
        assert self.counts is not None, "only an emulator counts"
        sites = ((s.kind, s.span, s.size, s.costs) for s in prepare(self.request.program).sites)
        return Counters.of(sites, self.counts, self.request.device.sector)

    @property
    def executed(self) -> list[Executed]:
        """Executions of every statement. Files are known by their last part, as records know them."""
        assert self.counts is not None, "only an emulator counts"
        return [
            Executed(
                file_name(site.span.file),
                site.span.line,
                site.kind,
                int(row[WARPS]),
                int(row[LANES]),
                int(row[DIVERGENT]),
                site.size,
                site.costs,
            )
            for site, row in zip(prepare(self.request.program).sites, self.counts, strict=True)
        ]

    @property
    def files(self) -> set[str]:
        """Last parts of the names of the source files."""
        return {file_name(site.span.file) for site in prepare(self.request.program).sites}


@dataclass
class Launcher:
    """Launches on one engine; keeps what was launched, in order and kernel by kernel."""

    engine: EngineName
    device: Device = devices.H200
    order: list[Launched] = field(default_factory=list)

    def __call__(self, kernel: Kernel, **how: Any) -> Result:
        result = launch(kernel, engine=self.engine, device=self.device, **how)
        request = result.request
        source = cuda_source(request.program, request.block)
        known = next((one for one in self.order if one.source.text == source.text), None)
        launched = known or Launched(request, source)
        self.order.append(launched)
        blocks, threads = int(np.prod(request.grid)), int(np.prod(request.block))
        launched.launches += 1
        launched.threads += blocks * threads
        launched.warps += blocks * -(-threads // 32)
        if result.counts is not None:
            launched.counts = result.counts if launched.counts is None else launched.counts + result.counts
        return result

    @property
    def kernels(self) -> list[Launched]:
        """Each printed kernel once, in the order of their first launches."""
        return list({id(launched): launched for launched in self.order}.values())


def digest(source: Source) -> str:
    """sha256 of a printed kernel."""
    return hashlib.sha256(source.text.encode()).hexdigest()


def file_name(path: str) -> str:
    """The last part of a path."""
    return Path(path).name
