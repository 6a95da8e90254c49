"""Rates of tensor cores, by architecture and instruction."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from ..documents import text_of, toml_of
from ..errors import LaunchError
from .device import Device


@cache
def _rates() -> dict[str, dict[str, list[int]]]:
    return toml_of(text_of(Path(__file__).with_name("tensor_rates.toml")))


def tensor_rate(device: Device, instruction: str) -> tuple[int, int]:
    """Return the cycles between starts of a matrix instruction on one scheduler, and its latency. instruction: by its name in
    `ir.matrices.INSTRUCTIONS`. Raises LaunchError if it was not measured on the architecture of the device."""
    architecture = "sm_{}{}".format(*device.compute_capability)
    cycles = _rates().get(architecture, {}).get(instruction)
    if cycles is None:
        raise LaunchError(f"the time of {instruction} is not predicted: it was not measured on {architecture}")
    interval, latency = cycles
    return interval, latency
