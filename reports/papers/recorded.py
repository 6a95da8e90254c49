"""Recorded registers, times and efficiencies of shipped variants, for the papers' tables: `recorded.json`.

`python -m tests.validation.packaged --write`, in a checkout, writes the file from `tests/validation/records`.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from simtbed import devices
from simtbed.kernels.files import contents

from .claims import Origin, Source

FILE = Path(__file__).with_suffix(".json")


DEVICES = ("H100", "H200")
"""Recorded devices; the first one has all variants."""


@cache
def _of_device(device: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(contents(FILE))[devices.find(device).name]
    return values


def origin(device: str = DEVICES[0]) -> Origin:
    """Return the GPU and the date of the record."""
    return Origin(Source.gpu, device, _of_device(device)["dated"])


def registers(variant: str, device: str = DEVICES[0]) -> int | None:
    """Return the maximum of registers a thread over the kernels of a variant, "FAMILY NAME", on its family's example."""
    value: int | None = _value("registers", variant, device)
    return value


def milliseconds(variant: str, data: str, device: str = DEVICES[0]) -> float | None:
    """Return the time of the variant's kernels on a published data set."""
    value: float | None = _value("milliseconds", f"{variant} {data}", device)
    return value


def warp_execution_efficiency(case: str, kernel: str) -> float | None:
    """Return Nsight Compute's efficiency, 0 to 1, of a kernel of a recorded case, a variant with data."""
    value: float | None = _value("warp_execution_efficiency", f"{case} {kernel}", DEVICES[0])
    return value


def _value(kind: str, name: str, device: str) -> Any:
    """Return a recorded value; None if there is none."""
    return _of_device(device)[kind].get(name)
