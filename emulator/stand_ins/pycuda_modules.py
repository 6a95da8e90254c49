"""The modules of PyCUDA by name."""

from functools import cache
from types import ModuleType
from typing import Any

from . import gpuarray, pycuda, pycuda_kernels
from .names import Constants, module


def _kernels(words: str) -> dict[str, Any]:
    return {name: getattr(pycuda_kernels, name) for name in words.split()}


def modules() -> dict[str, ModuleType]:
    """Return the modules of PyCUDA by name."""
    current = {"context": pycuda.Context(), "device": pycuda.Device(0)}
    contents: dict[str, dict[str, Any]] = {
        "pycuda": {"VERSION": (2025, 1), "VERSION_TEXT": "2025.1", "__path__": []},
        "pycuda.driver": pycuda.driver(),
        "pycuda.autoinit": current,
        "pycuda.autoprimaryctx": current,
        "pycuda.compiler": {"SourceModule": pycuda.SourceModule, "DynamicSourceModule": pycuda.SourceModule},
        "pycuda.gpuarray": {**gpuarray.contents(), "vec": Constants("vec", **pycuda_kernels.vectors())},
        "pycuda.tools": {
            "DeviceMemoryPool": pycuda.Pool,
            "PageLockedMemoryPool": pycuda.HostPool,
            "dtype_to_ctype": pycuda_kernels.ctype,
            "make_default_context": pycuda.Context,
            "clear_context_caches": lambda: None,
            "context_dependent_memoize": cache,
            **_kernels("ScalarArg VectorArg"),
        },
        "pycuda.elementwise": _kernels("ElementwiseKernel ScalarArg VectorArg"),
        "pycuda.reduction": _kernels("ReductionKernel"),
        "pycuda.cumath": gpuarray.CUMATH,
        "pycuda.scan": _kernels("InclusiveScanKernel ExclusiveScanKernel"),
        "pycuda.curandom": _kernels("rand"),
    }
    result = {name: module(name, names) for name, names in contents.items()}
    for name, submodule in result.items():
        if "." in name:
            setattr(result["pycuda"], name.partition(".")[2], submodule)
    return result
