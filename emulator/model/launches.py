"""Emulation of a launch for the performance model, once for each set of counting rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import SimtbedError, render
from ..ir.access import AccessKind
from ..machine.device import Device
from ..profiler.accesses import AccessRecorder
from ..profiler.decisions import sampling_interval
from ..profiler.trace import Entries, Tracer
from ..runtime.engine import Request
from ..runtime.registry import EngineName, engine_named
from .line_trace import MAX_LINES, LineTrace
from .time import Estimate, ObservedLaunch, estimate
from .writes import WriteTrace

_COUNTING = (
    "compute_capability", "sector", "line", "load_sector", "loads_cached", "banks", "bank_width", "shared_load_merges",
)  # fmt: skip
"""Device fields that affect counts."""


def counting_rules(device: Device) -> tuple[object, ...]:
    """Return the device fields that affect counts and accesses; devices with equal rules share an emulation."""
    return tuple(getattr(device, name) for name in _COUNTING)


class _Tracers:
    """A tracer of cache lines, of global accesses, which are attributed to SASS instructions, and of written elements."""

    interval = 1

    def __init__(
        self, request: Request, lines: LineTrace, recorder: AccessRecorder | None, writes: WriteTrace | None
    ) -> None:
        self.lines, self.spaces, self.recorder, self.writes = lines, lines.spaces, recorder, writes
        sites = request.prepared.sites
        self._is_global = np.array(
            [isinstance(one.action, AccessKind) and one.action.space == "global" for one in sites], np.bool_
        )

    @property
    def blocks(self) -> int:
        return self.lines.blocks if self.writes is None else self.writes.blocks

    def take(self, entries: Entries) -> None:
        self.lines.take(entries)
        if self.recorder is not None:
            self.recorder.take(entries[self._is_global[entries["site"]]])
        if self.writes is not None:
            self.writes.take(entries)

    def begin_again(self) -> None:
        tracers: tuple[Tracer | None, ...] = (self.lines, self.recorder, self.writes)
        for tracer in filter(None, tracers):
            tracer.begin_again()


def observe(
    request: Request,
    registers: int = 0,
    engine: EngineName = "jit",
    source_only: bool = False,
    max_lines: int = MAX_LINES,
    writes: bool = False,
) -> ObservedLaunch:
    """Emulate a launch with counts and traces.

    request: from `prepare_request`, with a device of the same counting rules as later estimates. registers: per thread,
    0 if unknown. source_only: without the compiler. max_lines: of memory, in the trace. writes: whether to trace the written
    elements of all blocks. Raises SimtbedError for a kernel with faults.
    """
    request = replace(request, counters=True, detail=False, show_prints=False, decisions=not source_only)
    lines = LineTrace(request, max_lines)
    recorder = None if source_only else AccessRecorder(sampling_interval(request.warps), ("global",))
    traced = WriteTrace(request) if writes else None
    outcome = engine_named(engine).run(replace(request, trace=_Tracers(request, lines, recorder, traced)))
    assert outcome.counts is not None
    if faults := request.specialisation.ending(outcome.faults):
        raise SimtbedError(render(faults[0]))
    if outcome.decisions is not None and recorder is not None:
        recorder.blocks = lines.blocks
        outcome.decisions.accesses = [recorder.finish()]
    written = {} if traced is None else traced.flags
    return ObservedLaunch(request, outcome.counts, lines, registers, outcome.decisions, outcome.buffers, written)


def time_of(request: Request, device: Device | None = None, *, registers: int = 0, cold: bool = False) -> Estimate:
    """Return the time of a launch on a device, by default its own."""
    device = device or request.device
    return estimate(observe(replace(request, device=device), registers), device, cold)
