"""Emulation of a launch for the performance model, once for each set of counting rules."""

from dataclasses import replace

from ..cubin_sections import Sections
from ..errors import SimtbedError, render
from ..machine.device import Device
from ..own_code import CubinCode
from ..profiler.launch_memory import LaunchMemory
from ..runtime.engine import Request
from ..runtime.registry import EngineName, engine_named
from ..runtime.running import run_once
from .line_trace import MAX_LINES
from .observed import ObservedLaunch
from .time import Estimate, estimate
from .writes import WriteTrace

_COUNTING = (
    "compute_capability", "sector", "line", "load_sector", "loads_cached", "banks", "bank_width", "shared_load_merges",
)  # fmt: skip
"""Device fields that affect counts."""


def counting_rules(device: Device) -> tuple[object, ...]:
    """Return the device fields that affect counts and accesses; devices with equal rules share an emulation."""
    return tuple(getattr(device, name) for name in _COUNTING)


def observe(
    request: Request,
    registers: int = 0,
    engine: EngineName = "jit",
    source_only: bool = False,
    max_lines: int = MAX_LINES,
    writes: bool = False,
) -> ObservedLaunch:
    """Emulate a launch with counts.

    request: from `prepare_request`, with a device of the same counting rules as later estimates. registers: per thread,
    0 if unknown. source_only: without the compiler. max_lines: of memory, in the trace. writes: whether to trace the written
    elements of all blocks. Raises SimtbedError for a kernel with faults.
    """
    if not registers and isinstance(own := request.specialisation.own_code, CubinCode):
        registers = Sections.read(own.cubin).registers(own.kernel)
    request = replace(request, counters=True, detail=False, show_prints=False, in_place=frozenset())
    traced = WriteTrace(request) if writes else None
    outcome = run_once(engine_named(engine), replace(request, trace=traced))
    assert outcome.counts is not None
    if faults := request.specialisation.ending(outcome.faults):
        raise SimtbedError(render(faults[0]))
    memory = None if source_only else LaunchMemory(request.memory(()))
    written = {} if traced is None else traced.flags
    return ObservedLaunch(request, outcome.counts, max_lines, registers, memory, outcome.buffers, written)


def time_of(request: Request, device: Device | None = None, *, registers: int = 0, cold: bool = False) -> Estimate:
    """Return the time of a launch on a device, by default its own."""
    device = device or request.device
    return estimate(observe(replace(request, device=device), registers), device, cold)
