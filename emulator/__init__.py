"""simtbed's emulator: write a GPU kernel once, run it without a GPU or with one, see what it costs.

Kernels are written with `simtbed.emulator.lang`; everything a host needs is here.
"""

from .engines.arrays import Kept, Out
from .errors import CompileError, Diagnostic, HostCallError, LaunchError, SimtbedError
from .launch import FaultError, Result, launch, prepare_request
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
    "Kept",
    "LaunchError",
    "Out",
    "Result",
    "SimtbedError",
    "devices",
    "launch",
    "prepare_request",
]
