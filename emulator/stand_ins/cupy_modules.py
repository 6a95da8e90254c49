"""The modules of CuPy, and those of `cupyx`: `profiler`, and SciPy's functions for arrays of CuPy."""

import time
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from . import cupy
from .cupy_kernels import ElementwiseKernel, ReductionKernel
from .names import Named, module

_SCIPY = ("fft", "interpolate", "linalg", "ndimage", "signal", "spatial", "special", "stats")


class PerfCaseResult(Named):
    """Seconds of calls on the host. The time of the device is the host's."""

    def __init__(self, name: str, times: list[float]) -> None:
        self.name, self.cpu_times, self.gpu_times = name, np.array(times), np.array([times])

    def to_str(self, show_gpu: bool = False) -> str:
        return f"{self.name}: CPU: {self.cpu_times.mean() * 1e6:.3f} us (of the emulator)"

    __str__ = __repr__ = to_str


def benchmark(
    func: Any, args: Any = (), kwargs: Any = None, n_repeat: int = 10_000, name: str = "", n_warmup: int = 10
) -> Any:
    """Call a function n_warmup + n_repeat times."""
    times: list[float] = []
    for number in range(-n_warmup, n_repeat):
        start = time.perf_counter()
        func(*args, **(kwargs or {}))
        times += [time.perf_counter() - start] * (number >= 0)
    return PerfCaseResult(name or getattr(func, "__name__", "benchmark"), times)


def _scipy(name: str) -> ModuleType:
    """Return the functions of a module of SciPy for arrays of CuPy. SciPy is imported for the first one."""

    def function(attribute: str) -> Any:
        if not callable(own := getattr(import_module(f"scipy.{name}"), attribute, None)) or isinstance(own, type):
            raise AttributeError(f"cupyx.scipy.{name}.{attribute} is not emulated")
        return cupy._function(f"cupyx.scipy.{name}.{attribute}", own)

    result = ModuleType(f"cupyx.scipy.{name}", "Emulated by simtbed.")
    result.__getattr__ = function  # type: ignore[method-assign]
    return result


def modules() -> dict[str, ModuleType]:
    """Return the modules of CuPy by name."""
    result = cupy.modules()
    for kernel in (ElementwiseKernel, ReductionKernel):
        setattr(result["cupy"], kernel.__name__, kernel)
    own = {"profiler": module("cupyx.profiler", {"benchmark": benchmark})}
    scipy = {name: _scipy(name) for name in _SCIPY}
    own["scipy"] = module("cupyx.scipy", {"__path__": [], **scipy, "get_array_module": result["cupy"].get_array_module})
    add = cupy._function("cupyx.scatter_add", np.add.at)
    result["cupyx"] = module("cupyx", {"__path__": [], **own, "scatter_add": add})
    own |= {f"scipy.{key}": value for key, value in scipy.items()}
    return result | {f"cupyx.{key}": value for key, value in own.items()}
