"""From a launch to its time on a device: it is emulated once for each set of counting rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import SimtbedError, render
from ..ir.access import AccessKind
from ..machine.device import Device
from ..profiler.accesses import AccessRecorder, WarpAccesses
from ..profiler.decisions import sampling_interval
from ..profiler.trace import Entries
from ..runtime.engine import Request
from ..runtime.registry import EngineName, engine_named
from .line_trace import MAX_LINES, LineTrace
from .time import Estimate, ObservedLaunch, estimate

_COUNTING = (
    "compute_capability", "sector", "line", "load_sector", "loads_cached", "banks", "bank_width", "shared_load_merges",
)  # fmt: skip
"""Fields of a device that decide what is counted."""


def counting_rules(device: Device) -> tuple[object, ...]:
    """What of a device decides the counts and the accesses of a launch: devices that agree in it share an emulation."""
    return tuple(getattr(device, name) for name in _COUNTING)


class _LinesAndAccesses:
    """A tracer of lines that keeps accesses to global memory too, for what the compiled kernel makes of them."""

    interval = 1

    def __init__(self, request: Request, lines: LineTrace) -> None:
        self.lines, self.spaces = lines, lines.spaces
        self.recorder = AccessRecorder(sampling_interval(request.warps), ("global",))
        sites = request.prepared.sites
        self._is_global = np.array(
            [isinstance(one.action, AccessKind) and one.action.space == "global" for one in sites], np.bool_
        )

    @property
    def blocks(self) -> int:
        return self.lines.blocks

    def take(self, entries: Entries) -> None:
        self.lines.take(entries)
        self.recorder.take(entries[self._is_global[entries["site"]]])

    def begin_again(self) -> None:
        self.lines.begin_again()
        self.recorder.begin_again()

    def finish(self) -> WarpAccesses:
        self.recorder.blocks = self.lines.blocks
        return self.recorder.finish()


def observe(
    request: Request,
    registers: int = 0,
    engine: EngineName = "jit",
    source_only: bool = False,
    max_lines: int = MAX_LINES,
) -> ObservedLaunch:
    """Emulate a launch, counted and traced. Its request is as `runtime.request.prepare_request` gives it, its device one
    with the counting rules of all devices that `estimate` is asked about. registers: a thread's, 0 where unknown.
    source_only: leave the compiler out. most: lines of memory that are looked at. Raises SimtbedError where the kernel has faults."""
    request = replace(request, counters=True, detail=False, show_prints=False, decisions=not source_only)
    lines = LineTrace(request, max_lines)
    tracer = _LinesAndAccesses(request, lines)
    outcome = engine_named(engine).run(replace(request, trace=lines if source_only else tracer))
    assert outcome.counts is not None
    if outcome.faults:
        raise SimtbedError(render(outcome.faults[0]))
    if outcome.decisions is not None:
        outcome.decisions.accesses = [tracer.finish()]
    return ObservedLaunch(request, outcome.counts, lines, registers, outcome.decisions)


def time_of(request: Request, device: Device | None = None, *, registers: int = 0, cold: bool = False) -> Estimate:
    """The time of a launch on a device, or on its own: `estimate` of `observe`."""
    device = device or request.device
    return estimate(observe(replace(request, device=device), registers), device, cold)
