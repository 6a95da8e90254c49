"""A small kernel for each front end and for a GPU: the kernel language, CUDA C++, Numba-CUDA, Numba-CUDA-MLIR."""

import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import SimtbedError
from simtbed.numba.packages import NUMBA_CUDA, NUMBA_CUDA_MLIR, Package

from .launchers import run_smallest

_CUDA_SOURCE = """
__global__ void double_all(float *x) { x[threadIdx.x] *= 2; }
"""


def own_language() -> str:
    """Launch a kernel on the jit engine. Raises its errors, as all functions here."""
    run_smallest("jit")
    return "a kernel runs"


def gpu() -> str:
    """Launch a kernel on a GPU; return the GPU and its driver."""
    from simtbed.engines.cuda.engine import describe

    run_smallest("cuda")
    own = describe()
    return f"{own['device']}, {own['arch']}, driver of CUDA {own['driver']}: a kernel runs"


def cuda_source() -> str:
    """Launch a kernel in CUDA C++ on the emulator."""
    x = np.ones(32, np.float32)
    result = st.launch(st.cuda_source(_CUDA_SOURCE).double_all, grid=1, block=32, args={"x": x}, engine="numpy")
    _require(result["x"])
    return "a kernel runs"


def numba_cuda() -> str:
    """Launch a kernel of Numba-CUDA on the emulator."""
    return _numba(NUMBA_CUDA, "numba.cuda")


def numba_mlir() -> str:
    """Launch a kernel of Numba-CUDA-MLIR on the emulator."""
    return _numba(NUMBA_CUDA_MLIR, "numba_cuda_mlir.cuda")


def _numba(package: Package, module: str) -> str:
    """Launch a kernel in a process of its own, whose driver is replaced."""
    own = package.version()
    command = [sys.executable, "-m", "simtbed.numba", "-m", "simtbed.numba.trial", module]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        lines = process.stderr.split("\n\n")[0].strip().splitlines() or [f"exit code {process.returncode}"]
        raise SimtbedError(f"{own}: {lines[-1].removeprefix('simtbed.errors.UnavailableError: ')}")
    return f"{own}: a kernel runs"


def _require(x: npt.NDArray[Any]) -> None:
    if not (x == 2).all():
        raise SimtbedError("a kernel runs, and its result is wrong")
