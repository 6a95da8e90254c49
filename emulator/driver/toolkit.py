"""The libraries of a CUDA toolkit that packages read at their import, on machines without them."""

from collections.abc import Callable
from typing import Any

from cuda import pathfinder
from cuda.bindings import runtime

from .functions import VERSION

IR_VERSION = (2, 0, 3, 2)
"""Versions of LLVM IR and of its debugging information that NVVM of CUDA 13 reads."""


def or_without_library(function: Callable[..., Any], default: Any) -> Callable[..., Any]:
    """Return a function with a default result if the library of NVIDIA that it calls is not installed."""

    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except pathfinder.DynamicLibNotFoundError:
            return default

    return call


def accept_missing_runtime() -> None:
    """Have `cuda.bindings` report the version of the emulated driver if no CUDA runtime is installed."""
    default = runtime.cudaError_t.cudaSuccess, VERSION
    runtime.getLocalRuntimeVersion = or_without_library(runtime.getLocalRuntimeVersion, default)
