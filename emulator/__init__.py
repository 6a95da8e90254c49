"""simtbed's emulator: write a GPU kernel once, run it without a GPU or with one, see what it costs.

Kernels are written with `simtbed.emulator.lang`; everything a host needs is here.
"""

from .engines.arrays import Kept, Out
from .engines.cuda_gpus import on_gpu, shared_out
from .errors import CompileError, Diagnostic, HostCallError, LaunchError, OutOfMemory, SimtbedError
from .launch import FaultError, Result, launch, launch_together, prepare_request
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
    "OutOfMemory",
    "Result",
    "SimtbedError",
    "devices",
    "launch",
    "launch_together",
    "on_gpu",
    "prepare_request",
    "shared_out",
]
