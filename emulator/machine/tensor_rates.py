"""Rates of tensor cores, by architecture and instruction."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np

from ..documents import text_of, toml_of
from ..errors import LaunchError
from .device import Device

_COLUMNS = (8, 64, 256)
"""Columns of the products whose latencies were measured."""


@cache
def _rates() -> dict[str, dict[str, list[int]]]:
    return toml_of(text_of(Path(__file__).with_name("tensor_rates.toml")))


def tensor_rate(device: Device, instruction: str) -> tuple[int, int]:
    """Return the cycles between starts of a matrix instruction on one scheduler, and its latency. instruction: by its name in
    `ir.matrices.INSTRUCTIONS`. Raises LaunchError if it was not measured on the architecture of the device."""
    interval, latency = _measured(device, "", instruction, instruction)
    return interval, latency


def group_rate(
    device: Device, instruction: str, sums: str, columns: int, place: Literal["shared", "registers"]
) -> tuple[int, int, bool]:
    """Return the cycles between starts of a product of a warpgroup on one scheduler, its latency, and whether it waits for the one
    before it into the same registers. sums: their type. place: of A. Raises LaunchError as `tensor_rate`."""
    least, *latencies, chained = _measured(device, "wgmma_", f"{sums} {place}", instruction)
    latency = round(float(np.interp(columns, _COLUMNS, latencies)))
    return max(least, columns // 2), latency, 0 < chained <= columns


def _measured(device: Device, table: str, key: str, instruction: str) -> list[int]:
    architecture = "sm_{}{}".format(*device.compute_capability)
    cycles = _rates().get(table + architecture, {}).get(key)
    if cycles is None:
        raise LaunchError(f"the time of {instruction} is not predicted: it was not measured on {architecture}")
    return cycles
