"""Registers per thread of a compiled kernel, if nvcc is installed and supports the architecture."""

from dataclasses import replace

from simtbed import Device
from simtbed.engines.cuda.binary import binary
from simtbed.errors import LaunchError
from simtbed.machine.device import MIN_NVCC_CAPABILITY
from simtbed.runtime.engine import Request


def registers_of(request: Request, device: Device) -> int:
    """Return the registers per thread; 0 if nvcc is missing or rejects the kernel."""
    if device.compute_capability < MIN_NVCC_CAPABILITY:
        return 0
    try:
        built = binary(replace(request, maths="native"), "sm_{}{}".format(*device.compute_capability)).built
    except LaunchError:
        return 0
    return max(built.resources.registers, device.register_least)
