"""The device of a process with emulated Triton programs."""

from ..errors import LaunchError
from ..machine import device as devices
from ..machine.device import Device
from ..runtime.observing import overrides

OLDEST, NEWEST = (8, 0), (9, 0)
"""Compute capabilities of the devices that kernels are compiled for."""


def current_device() -> Device:
    """Return the device of the launches. Raises LaunchError for one with another architecture than the supported ones."""
    _, device = overrides("jit", devices.H200)
    if not OLDEST <= device.compute_capability <= NEWEST:
        raise LaunchError(f"Triton kernels run on devices from the A100 to the H200, not on the {device.name}")
    return device
