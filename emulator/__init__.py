"""simtbed's emulator: write a GPU kernel once, run it without a GPU or with one, see what it costs.

Kernels are written with `simtbed.emulator.lang`; everything a host needs is here.
"""

from .errors import CompileError, Diagnostic, HostCallError, LaunchError, SimtbedError
from .launch import FaultError, Out, Result, launch, prepare_request
from .machine import device as devices
from .machine.device import Device
from .observe.counters import Counters

__all__ = [
    "CompileError",
    "Counters",
    "Device",
    "Diagnostic",
    "FaultError",
    "HostCallError",
    "LaunchError",
    "Out",
    "Result",
    "SimtbedError",
    "devices",
    "launch",
    "prepare_request",
]
