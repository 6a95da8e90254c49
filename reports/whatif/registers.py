"""Registers of a kernel as nvcc gives them, where it is installed and takes the device's architecture."""

from __future__ import annotations

from simtbed import Device
from simtbed.engines.cuda import nvcc
from simtbed.engines.cuda.printer import cuda_source
from simtbed.errors import LaunchError
from simtbed.runtime.engine import Request

OLDEST = (7, 5)
"""The oldest compute capability that today's nvcc compiles for."""


def registers_of(request: Request, device: Device) -> int:
    """A thread's; 0 where nvcc is not there, or refuses."""
    if device.compute_capability < OLDEST:
        return 0
    source = cuda_source(request.program, request.block)
    try:
        built = nvcc.build(source.text, source.kernel, "sm_{}{}".format(*device.compute_capability))
    except LaunchError:
        return 0
    return max(built.resources.registers, device.register_least)
