"""simtbed: write a GPU kernel once, run it without a GPU or with one, and see what it costs.

`import simtbed as st` is all that a kernel and its host need: the words of the language (`st.kernel`, `st.thread.x`,
`st.shared`), the types (`st.Global[st.f32]`), `st.launch`, and the GPUs (`st.devices.H200`).
"""

from __future__ import annotations as _annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from .errors import CompileError, Diagnostic, HostCallError, LaunchError, OutOfMemory, SimtbedError, UnavailableError
from .language import hints, intrinsics
from .language.functions import DeviceFunction, Kernel, device, kernel
from .language.hints import *  # noqa: F403
from .language.intrinsics import *  # noqa: F403

if TYPE_CHECKING:
    from .machine import device as devices
    from .machine.device import Device
    from .profiler.counters import Counters
    from .runtime.arrays import DeviceArray, empty, zeros
    from .runtime.gpus import current_gpu, map_over_gpus, on_gpu
    from .runtime.launching import launch, launch_concurrent
    from .runtime.result import FaultError, Result

__version__ = "0.1.0"
__all__ = [
    "CompileError",
    "Counters",
    "Device",
    "DeviceArray",
    "DeviceFunction",
    "Diagnostic",
    "FaultError",
    "HostCallError",
    "Kernel",
    "LaunchError",
    "OutOfMemory",
    "Result",
    "SimtbedError",
    "UnavailableError",
    "current_gpu",
    "device",
    "devices",
    "empty",
    "kernel",
    "launch",
    "launch_concurrent",
    "map_over_gpus",
    "on_gpu",
    "zeros",
]
__all__ += hints.__all__
__all__ += intrinsics.__all__

# Writing kernels needs the language alone; what runs them is imported when it is first named.
_HOMES = {
    "Counters": "profiler.counters",
    "Device": "machine.device",
    "DeviceArray": "runtime.arrays",
    "FaultError": "runtime.result",
    "Result": "runtime.result",
    "current_gpu": "runtime.gpus",
    "empty": "runtime.arrays",
    "launch": "runtime.launching",
    "launch_concurrent": "runtime.launching",
    "map_over_gpus": "runtime.gpus",
    "on_gpu": "runtime.gpus",
    "zeros": "runtime.arrays",
}


def __getattr__(name: str) -> _Any:
    if name == "devices":
        found: _Any = _import_module(f"{__name__}.machine.device")
    elif name in _HOMES:
        found = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
