"""The predicted time of executed kernels: by source line, or by SASS instruction without lines."""

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from math import prod
from typing import Any

import numpy as np
from simtbed import Device
from simtbed.compiled.cubin_launch import execute_cubin, line_of
from simtbed.compiled.executed import Tracer
from simtbed.compiled.kernel import CompiledKernel, ExecutedKernel
from simtbed.compiled.kernel_launches import KernelLaunches
from simtbed.errors import SimtbedError
from simtbed.language.intrinsics import WARP_SIZE
from simtbed.model.observed import ExecutedLaunch, tracer_of
from simtbed.model.time import Estimate, estimate
from simtbed.own_code import CubinCode
from simtbed.runtime.cubin_launch import CubinLaunch
from simtbed.runtime.engine import Dim3

from .. import tables
from .annotate import short

_LEAST = 0.01
"""The smallest fraction of the time with a row."""


def predict(kernel: ExecutedKernel) -> Estimate | str:
    """Return the time of the first launch of a kernel that was executed with a trace, or the reason why there is none."""
    try:
        return estimate(ExecutedLaunch(kernel.first_launch), kernel.device)
    except SimtbedError as error:
        return str(error).splitlines()[0]


def by_line(kernel: CompiledKernel, estimated: Estimate) -> list[tuple[str, str, float]]:
    """Return the lines with most of the time: place, text, fraction of the time."""
    assert estimated.waited is not None
    fractions: dict[int, float] = defaultdict(float)
    for counted, fraction in zip(kernel.instructions, estimated.waited, strict=True):
        fractions[counted.place[0]] += float(fraction)
    result = []
    for line, fraction in sorted(fractions.items(), key=lambda row: -row[1]):
        span = kernel.launched.source_span(line)
        place = (f"{short(span.file)}:{span.line}", span.source.strip()) if span is not None else ("", "no line")
        result += [(*place, fraction)] * (fraction >= _LEAST)
    return result


def _title(kernel: ExecutedKernel, estimated: Estimate | str) -> str:
    if isinstance(estimated, str):
        return f"{kernel.name} on {kernel.device.name}: {estimated}"
    interval = f"{estimated.low_us:,.2f} to {estimated.high_us:,.2f}"
    return f"{kernel.name}: {estimated.time_us:,.2f} us predicted on {kernel.device.name} ({interval}), bound by {estimated.bound}"


def text(kernel: CompiledKernel) -> str:
    """Return the time of the first launch, and the lines at whose instructions warps wait."""
    estimated = predict(kernel)
    if isinstance(estimated, str):
        return _title(kernel, estimated)
    rows = [
        [place, source, f"{fraction:.0%}", f"{fraction * estimated.time_us:,.2f}"]
        for place, source, fraction in by_line(kernel, estimated)
    ]
    return f"{_title(kernel, estimated)}\n\n{tables.table(['line', 'source', 'time', 'us'], rows, left=2)}"


def cubin_text(kernel: ExecutedKernel) -> str:
    """Return the counters of a launch of a cubin, its time, and its executed instructions."""
    estimated = predict(kernel)
    waited = np.zeros(len(kernel.instructions)) if isinstance(estimated, str) else estimated.waited
    assert waited is not None
    counters = [[name.replace("_", " "), count] for name, count in _counters(kernel).items() if count]
    rows = [
        [f"{one.instruction.offset:#06x}", one.instruction.text, line_of(one.instruction), round(one.warps),
         round(one.all_transactions) if one.all_requests else "", f"{fraction:.0%}" if fraction >= _LEAST else ""]
        for one, fraction in zip(kernel.instructions, waited.tolist(), strict=True) if one.warps
    ]  # fmt: skip
    headers = ["address", "instruction", "line", "warps", "transactions", "time"]
    return "\n\n".join(
        [_title(kernel, estimated), tables.table(["counter", ""], counters), tables.table(headers, rows, left=3)]
    )


def _counters(kernel: ExecutedKernel) -> dict[str, int]:
    counts = {"warp_instructions": kernel.warp_instructions, "thread_instructions": kernel.thread_instructions}
    return counts | kernel.memory


def content(kernel: ExecutedKernel) -> dict[str, Any]:
    """Return the JSON content."""
    estimated = predict(kernel)
    result: dict[str, Any] = {
        "kernel": kernel.name,
        "registers": kernel.registers,
        "occupancy": kernel.occupancy.percent,
    }
    result |= {"counters": _counters(kernel)}
    if isinstance(estimated, str):
        return result | {"predicted_us": None, "reason": estimated}
    assert estimated.waited is not None
    result |= {
        "predicted_us": estimated.time_us,
        "low_us": estimated.low_us,
        "high_us": estimated.high_us,
        "bound": estimated.bound,
    }
    if isinstance(kernel, CompiledKernel):
        return result | {"lines": [{"line": p, "source": s, "time": t} for p, s, t in by_line(kernel, estimated)]}
    rows = zip(kernel.instructions, estimated.waited.tolist(), strict=True)
    return result | {
        "instructions": [
            {
                "address": one.instruction.offset, "text": one.instruction.text, "line": line_of(one.instruction),
                "warps": round(one.warps), "transactions": round(one.all_transactions), "time": fraction,
            }
            for one, fraction in rows
        ]
    }  # fmt: skip


def executed_cubins(launches: Iterable[CubinLaunch], pattern: str) -> list[ExecutedKernel]:
    """Execute launches of cubins with a trace, of kernels whose name matches a pattern. Raises SimtbedError."""
    return [
        execute_cubin(one, _tracer(one.device, one.grid, one.block))[0]
        for one in launches
        if fnmatchcase(one.name, pattern)
    ]


def tracer(launched: KernelLaunches) -> Tracer | None:
    """Return the tracer of the kernels whose time is reported: those that their language compiled for the device."""
    request = launched.request
    if not isinstance(request.specialisation.own_code, CubinCode):
        return None
    return _tracer(request.device, request.grid, request.block)


def _tracer(device: Device, grid: Dim3, block: Dim3) -> Tracer:
    return tracer_of(device, prod(grid), -(-prod(block) // WARP_SIZE))
