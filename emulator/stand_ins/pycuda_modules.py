"""The modules of PyCUDA by name."""

from __future__ import annotations

from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from ..errors import LaunchError
from . import pycuda, pycuda_kernels
from .pycuda import (
    ATTRIBUTES,
    ArgumentHandler,
    Context,
    Device,
    DeviceAllocation,
    Error,
    Event,
    Function,
    GPUArray,
    HostPool,
    In,
    Inert,
    InOut,
    Out,
    Pool,
    SourceModule,
    filled,
    from_device,
    from_device_like,
    memcpy_dtod,
    memcpy_dtoh,
    memcpy_htod,
    memset,
    to_device,
    to_gpu,
)


def modules() -> dict[str, ModuleType]:
    """Return the modules of PyCUDA by name."""
    driver: dict[str, Any] = {
        "In": In, "Out": Out, "InOut": InOut, "ArgumentHandler": ArgumentHandler, "DeviceAllocation": DeviceAllocation,
        "mem_alloc": DeviceAllocation, "mem_alloc_like": lambda array: DeviceAllocation(array.nbytes),
        "to_device": to_device, "from_device": from_device, "from_device_like": from_device_like,
        "memcpy_htod": memcpy_htod, "memcpy_dtoh": memcpy_dtoh, "memcpy_dtod": memcpy_dtod,
        "memcpy_htod_async": lambda target, source, stream=None: memcpy_htod(target, source),
        "memcpy_dtoh_async": lambda target, source, stream=None: memcpy_dtoh(target, source),
        "memset_d8": memset(np.uint8), "memset_d16": memset(np.uint16), "memset_d32": memset(np.uint32),
        "pagelocked_empty": lambda shape, dtype, *args, **options: np.empty(shape, dtype),
        "pagelocked_zeros": lambda shape, dtype, *args, **options: np.zeros(shape, dtype),
        "Stream": Inert, "Event": Event, "Context": Context, "Device": Device, "init": lambda flags=0: None,
        "get_version": lambda: (12, 8, 0), "Error": Error, "LogicError": Error, "LaunchError": LaunchError,
        "device_attribute": SimpleNamespace(**{name: name for name in ATTRIBUTES}), "func_cache": Inert(), "ctx_flags": Inert(),
        "Function": Function, "mem_get_info": lambda: (1 << 34, 1 << 34),
    }  # fmt: skip
    gpuarray: dict[str, Any] = {
        "GPUArray": GPUArray, "to_gpu": to_gpu, "to_gpu_async": to_gpu, "empty": GPUArray,
        "zeros": filled(np.zeros), "ones": filled(np.ones), "arange": filled(np.arange),
        "empty_like": lambda other: GPUArray(other.shape, other.dtype), "zeros_like": filled(np.zeros_like),
    }  # fmt: skip
    gpuarray["vec"] = SimpleNamespace(**pycuda_kernels.vectors())
    contents: dict[str, dict[str, Any]] = {
        "pycuda": {"VERSION": (2025, 1), "VERSION_TEXT": "2025.1"},
        "pycuda.driver": driver,
        "pycuda.autoinit": {"context": Context(), "device": Device(0)},
        "pycuda.autoprimaryctx": {"context": Context(), "device": Device(0)},
        "pycuda.compiler": {"SourceModule": SourceModule},
        "pycuda.gpuarray": gpuarray,
        "pycuda.tools": {
            "DeviceData": Inert,
            "DeviceMemoryPool": Pool,
            "PageLockedMemoryPool": HostPool,
            "dtype_to_ctype": pycuda_kernels.ctype,
            "make_default_context": lambda: Inert(),
            "clear_context_caches": lambda: None,
            "context_dependent_memoize": cache,
        },
        **pycuda_kernels.modules(),
    }
    result = {}
    for name, values in contents.items():
        module = result[name] = ModuleType(name, pycuda.__doc__)
        vars(module).update(values)
        if "." in name:
            setattr(result["pycuda"], name.partition(".")[2], module)
    result["pycuda"].__path__ = []
    return result
