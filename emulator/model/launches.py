"""Emulation of a launch for the performance model, once for each set of counting rules."""

from __future__ import annotations

from dataclasses import replace

from ..errors import SimtbedError, render
from ..machine.device import Device
from ..profiler.launch_memory import LaunchMemory
from ..profiler.trace import Entries
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


class _LinesAndWrites:
    """A tracer of cache lines and of written elements."""

    interval = 1

    def __init__(self, lines: LineTrace, writes: WriteTrace) -> None:
        self.lines, self.spaces, self.writes = lines, lines.spaces, writes

    @property
    def blocks(self) -> int:
        return self.writes.blocks

    def take(self, entries: Entries) -> None:
        self.lines.take(entries)
        self.writes.take(entries)

    def begin_again(self) -> None:
        self.lines.begin_again()
        self.writes.begin_again()


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
    request = replace(request, counters=True, detail=False, show_prints=False, in_place=frozenset())
    lines = LineTrace(request, max_lines)
    traced = WriteTrace(request) if writes else None
    trace = lines if traced is None else _LinesAndWrites(lines, traced)
    outcome = engine_named(engine).run(replace(request, trace=trace))
    assert outcome.counts is not None
    if faults := request.specialisation.ending(outcome.faults):
        raise SimtbedError(render(faults[0]))
    memory = None if source_only else LaunchMemory(request.memory(()))
    written = {} if traced is None else traced.flags
    return ObservedLaunch(request, outcome.counts, lines, registers, memory, outcome.buffers, written)


def time_of(request: Request, device: Device | None = None, *, registers: int = 0, cold: bool = False) -> Estimate:
    """Return the time of a launch on a device, by default its own."""
    device = device or request.device
    return estimate(observe(replace(request, device=device), registers), device, cold)
