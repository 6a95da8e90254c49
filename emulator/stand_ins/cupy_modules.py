"""The modules of CuPy."""

from __future__ import annotations

from types import ModuleType

from . import cupy
from .cupy_kernels import ElementwiseKernel, ReductionKernel


def modules() -> dict[str, ModuleType]:
    """Return the modules of CuPy by name."""
    result = cupy.modules()
    for kernel in (ElementwiseKernel, ReductionKernel):
        setattr(result["cupy"], kernel.__name__, kernel)
    return result
