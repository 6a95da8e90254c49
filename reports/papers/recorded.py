"""What the record of a GPU holds of a shipped variant, for the papers' tables."""

from __future__ import annotations

from functools import cache
from typing import Any

from simtbed import devices

from ..hardware.record import Record, load, path_of


@cache
def _record(device: str) -> Record:
    return load(path_of(devices.find(device).name))


def registers(variant: str, device: str = "H200") -> int | None:
    """Registers a thread of the variant's kernels on its family's example, the most of them; None where it waits for
    its run. variant: "FAMILY NAME"."""
    record = _record(device)
    kernels = record.counters.get(variant, ())
    return None if variant in record.waiting or not kernels else max(one.registers for one in kernels)


def milliseconds(variant: str, data: str, device: str = "H200") -> float | None:
    """Of the variant's kernels alone on a published data set; None where it waits for its run."""
    record = _record(device)
    found: Any = record.answers.get(f"{variant} {data}", {}).get("milliseconds")
    return None if variant in record.waiting else found


def warp_execution_efficiency(variant: str, kernel: str, device: str = "H200") -> float:
    """Of a kernel of the variant on its family's example, as Nsight Compute counted it. kernel: its function's name."""
    (one,) = (one for one in _record(device).counters[variant] if one.kernel == kernel)
    return one.figures["warp_execution_efficiency"]
