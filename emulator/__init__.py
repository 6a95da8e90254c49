"""simtbed: write a GPU kernel once, run it with or without a GPU, and measure its costs.

`import simtbed as st` provides everything for kernels and hosts: the words of the language (`st.kernel`,
`st.thread.x`, `st.shared`), the types (`st.Global[st.f32]`), `st.launch`, and the GPUs (`st.devices.H200`).
"""

from __future__ import annotations as _annotations

from . import interrupts as _interrupts  # noqa: F401  it acts when it is imported

# isort: split
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

# Full names: Pyright evaluates `hints.__all__` for no other form of import.
import simtbed.language.atomics as atomics
import simtbed.language.bits as bits
import simtbed.language.clusters as clusters
import simtbed.language.copies as copies
import simtbed.language.hints as hints
import simtbed.language.intrinsics as intrinsics
import simtbed.language.maths as _maths_words
import simtbed.language.matrices as matrices
import simtbed.language.mbarriers as mbarriers
import simtbed.language.warps as warps

from . import forking as _forking  # noqa: F401  from here on, a fork waits for imports
from . import maths as _maths  # noqa: F401  it says where functions of the table are
from .errors import CompileError, Diagnostic, HostCallError, LaunchError, OutOfMemory, SimtbedError, UnavailableError
from .language.atomics import *  # noqa: F403
from .language.bits import *  # noqa: F403
from .language.clusters import *  # noqa: F403
from .language.copies import *  # noqa: F403
from .language.functions import DeviceFunction, Kernel, device, kernel
from .language.hints import *  # noqa: F403
from .language.intrinsics import *  # noqa: F403
from .language.maths import *  # noqa: F403
from .language.matrices import *  # noqa: F403
from .language.mbarriers import *  # noqa: F403
from .language.warps import *  # noqa: F403

if TYPE_CHECKING:
    from .cluster import map_over_cluster
    from .compiled.cubin_file import cubin
    from .cuda_cpp.kernel import cuda_file, cuda_source
    from .debugger.blocks import debugging
    from .debugger.traces import Trace, trace
    from .machine import device as devices
    from .machine.device import Device
    from .model.sweeps import whatif
    from .profiler.counters import Counters
    from .profiler.launch import Launch
    from .profiler.profile import Profile
    from .profiler.run import Run
    from .runtime.array_views import device_view
    from .runtime.arrays import DeviceArray, empty, full, zeros
    from .runtime.compiled_launch import compile
    from .runtime.concurrent_launches import launch_concurrent
    from .runtime.gpus import current_gpu, map_over_gpus, on_gpu
    from .runtime.graphs import Graph, capture
    from .runtime.launching import launch
    from .runtime.pinned import pinned
    from .runtime.recording import profiling
    from .runtime.result import FaultError, Result
    from .runtime.streams import Event, Stream
    from .runtime.tensor_maps import tensor_map
    from .runtime.textures import Surface, Texture

__version__ = "0.1.0.dev0"
__all__ = [
    "CompileError", "Counters", "Device", "DeviceArray", "DeviceFunction", "Diagnostic", "Event", "FaultError",
    "Graph", "HostCallError", "Kernel", "Launch", "LaunchError", "OutOfMemory", "Profile", "Result", "Run",
    "SimtbedError", "Stream", "Surface", "Texture", "Trace", "UnavailableError", "capture", "compile", "cubin",
    "cuda_file", "cuda_source", "current_gpu", "debugging", "device", "device_view", "devices", "empty", "full", "kernel", "launch",
    "launch_concurrent", "map_over_cluster", "map_over_gpus", "on_gpu", "pinned", "profiling", "tensor_map", "trace",
    "whatif", "zeros",
]  # fmt: skip
__all__ += hints.__all__
__all__ += atomics.__all__
__all__ += bits.__all__
__all__ += clusters.__all__
__all__ += copies.__all__
__all__ += intrinsics.__all__
__all__ += _maths_words.__all__
__all__ += matrices.__all__
__all__ += mbarriers.__all__
__all__ += warps.__all__

# Writing kernels needs only the language; other modules are imported at first use.
_HOMES = {
    "Counters": "profiler.counters",
    "Device": "machine.device",
    "DeviceArray": "runtime.arrays",
    "FaultError": "runtime.result",
    "Graph": "runtime.graphs",
    "Launch": "profiler.launch",
    "Profile": "profiler.profile",
    "Result": "runtime.result",
    "Run": "profiler.run",
    "Trace": "debugger.traces",
    "Event": "runtime.streams",
    "Stream": "runtime.streams",
    "Surface": "runtime.textures",
    "Texture": "runtime.textures",
    "capture": "runtime.graphs",
    "compile": "runtime.compiled_launch",
    "cubin": "compiled.cubin_file",
    "cuda_file": "cuda_cpp.kernel",
    "cuda_source": "cuda_cpp.kernel",
    "current_gpu": "runtime.gpus",
    "debugging": "debugger.blocks",
    "device_view": "runtime.array_views",
    "empty": "runtime.arrays",
    "full": "runtime.arrays",
    "launch": "runtime.launching",
    "launch_concurrent": "runtime.concurrent_launches",
    "map_over_cluster": "cluster",
    "map_over_gpus": "runtime.gpus",
    "on_gpu": "runtime.gpus",
    "pinned": "runtime.pinned",
    "profiling": "runtime.recording",
    "tensor_map": "runtime.tensor_maps",
    "trace": "debugger.traces",
    "whatif": "model.sweeps",
    "zeros": "runtime.arrays",
}


def __getattr__(name: str) -> _Any:
    if name == "devices":
        value: _Any = _import_module(f"{__name__}.machine.device")
    elif name in _HOMES:
        value = getattr(_import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        raise AttributeError(_missing(name), name=name, obj=None)
    globals()[name] = value
    return value


def _missing(name: str) -> str:
    """Return the message for a name that this module has not, with its equivalent if it is a word of another language."""
    message = f"module {__name__!r} has no attribute {name!r}"
    if name.startswith("_"):
        return message
    foreign = _import_module(f"{__name__}.frontend.foreign")
    advice = foreign.advice([name]) or foreign.advice(["cuda", name])
    near = _import_module(f"{__name__}.checked").closest(name, __all__)
    return f"{message}: {advice[1] if advice else f'do you mean st.{near}?' if near else 'docs/language.md lists the names'}"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
