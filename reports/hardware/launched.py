"""What the launches of a case did on one engine, kernel by kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from simtbed import Counters, Device, Kernel, Launch, Result, devices, launch
from simtbed.engines.cuda.printer import Source, cuda_source
from simtbed.engines.cuda.sass import Instruction
from simtbed.ir import nodes as ir
from simtbed.ir.walk import statements
from simtbed.kernels import Launcher
from simtbed.profiler.events import DIVERGENT, LANES, WARPS, Counts
from simtbed.runtime.engine import Request
from simtbed.runtime.prepared import prepare
from simtbed.runtime.registry import EngineName
from simtbed.span import Span

from .estimate import Executed, Place, Placed


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
        """Executions of every statement."""
        assert self.counts is not None, "only an emulator counts"
        prepared = prepare(self.request.program)
        loops = _loops(prepared.program.kernel.body, self.counts)
        found = []
        for number, (site, row) in enumerate(zip(prepared.sites, self.counts, strict=True)):
            loop, iterations = loops.get(number, (None, 0))
            line, *calls = self._place(site.span)
            found.append(
                Executed(
                    line,
                    site.kind,
                    int(row[WARPS]),
                    int(row[LANES]),
                    int(row[DIVERGENT]),
                    site.size,
                    site.costs,
                    self._place(prepared.sites[loop].span) if loop is not None else (),
                    iterations,
                    tuple(calls),
                )
            )
        return found

    def _place(self, span: Span) -> Place:
        """Its line of the printed kernel and those of the calls around it, innermost first; 0 for one that has none."""
        return tuple(self.lines.get((one.file, one.line), 0) for one in (span, *reversed(span.calls)))

    @cached_property
    def lines(self) -> dict[tuple[str, int], int]:
        """Places of the source, and the line of the printed kernel that came from there first. Printed lines count from
        1. They stay the same while the text does, wherever the source is moved to."""
        found: dict[tuple[str, int], int] = {}
        for number, line in enumerate(self.source.lines, 1):
            if line.span is not None:
                found.setdefault((line.span.file, line.span.line), number)
        return found

    def placed(self, sass: Iterable[Instruction]) -> list[Placed]:
        """Instructions with their lines of the printed kernel: the innermost that is known, 0 where there is none, and
        those of the calls around it."""
        found = []
        for one in sass:
            line, *calls = [self.lines[place] for place in one.places if place in self.lines] or [0]
            found.append(Placed(replace(one, places=()), line, tuple(calls)))
        return found


@dataclass
class RecordingLauncher(Launcher):
    """Launches on one engine; keeps what was launched, in order and kernel by kernel."""

    engine: EngineName
    device: Device = devices.H200
    order: list[Launched] = field(default_factory=list)

    def launch(self, kernel: Kernel, **arguments: Any) -> Result:
        result = launch(kernel, engine=self.engine, device=self.device, **arguments)
        self.record(result.request, result.counts)
        return result

    def record(self, request: Request, counts: Counts | None) -> None:
        """Keep a launch that was made, with what it counted."""
        source = cuda_source(request.program, request.block)
        known = next((one for one in self.order if one.source.text == source.text), None)
        launched = known or Launched(request, source)
        self.order.append(launched)
        blocks, threads = int(np.prod(request.grid)), int(np.prod(request.block))
        launched.launches += 1
        launched.threads += blocks * threads
        launched.warps += blocks * -(-threads // 32)
        if counts is not None:
            launched.counts = counts if launched.counts is None else launched.counts + counts

    @property
    def kernels(self) -> list[Launched]:
        """Each printed kernel once, in the order of their first launches."""
        return list({id(launched): launched for launched in self.order}.values())


def printed_kernels(launches: Iterable[Launch]) -> list[Launched]:
    """Each printed kernel of some launches once, in the order of their first ones. Their requests were kept."""
    recording = RecordingLauncher("jit")
    for one in launches:
        recording.record(one.request, one.counts)
    return recording.kernels


def _loops(body: ir.Body, counts: Counts) -> dict[int, tuple[int, int]]:
    """By site: the innermost loop around a statement, and how many iterations it makes each time it is entered; 0 where lanes
    differ or leave it by other ways than its test."""
    found: dict[int, tuple[int, int]] = {}
    for loop in statements(body):
        if isinstance(loop, ir.For | ir.While):
            inside = [stmt.site for stmt in statements(loop.body)]
            once = (stmt for stmt in loop.body if not isinstance(stmt, ir.For | ir.While))  # those count their tests
            starts = max((int(counts[stmt.site, LANES]) for stmt in once), default=0)
            entries = int(counts[loop.site, LANES]) - starts
            leaving = any(isinstance(s, ir.Break | ir.Return) and counts[s.site, WARPS] for s in statements(loop.body))
            uniform = (
                entries > 0 and starts > 0 and not starts % entries and not counts[loop.site, DIVERGENT] and not leaving
            )
            found |= dict.fromkeys(inside, (loop.site, starts // entries if uniform else 0))
    return found


def digest(source: Source) -> str:
    """sha256 of a printed kernel."""
    return hashlib.sha256(source.text.encode()).hexdigest()
