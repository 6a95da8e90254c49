"""Replacement of the driver and of the kernel class under Numba-CUDA, once in a process.

`numba-cuda-mlir` is a successor of `numba-cuda` with its own copy of the host code: both run over one driver.
"""

from functools import cache
from typing import Any

from ..driver.core import CoreDevice, CoreStream
from ..driver.functions import Driver
from ..driver.toolkit import IR_VERSION, or_without_library
from ..errors import LaunchError, UnavailableError
from ..forking import call_in_child
from ..machine import device as devices
from .packages import NUMBA_CUDA, Package


@cache
def emulated_driver() -> Driver:
    """Return the driver of this process."""
    CoreDevice.driver = driver = Driver(devices.H200)
    return driver


@cache
def install() -> Driver:
    """Have all launches of `numba.cuda` run on an emulator. Raises UnavailableError for other versions of Numba, and under CUDASIM."""
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        raise UnavailableError("NUMBA_ENABLE_CUDASIM and SIMTBED_NUMBA exclude each other: unset one of them")
    from .dispatch import replace_kernels
    from .host_arrays import replace_copies
    from .reference_counts import replace_runtime

    driver = emulated_driver()
    replace_driver(NUMBA_CUDA)
    _accept_missing_libraries()
    replace_copies()
    replace_runtime()
    replace_kernels(driver)
    return driver


def _accept_missing_libraries() -> None:
    """Have Numba report the libraries of a missing toolkit by their file names, as it does for those that the driver needs."""
    from numba.cuda import cuda_paths

    for name in ("nvrtc", "nvvm"):
        file = cuda_paths._env_path_tuple("<unknown>", f"lib{name}.so")
        path = getattr(cuda_paths, f"_get_{name}_path")
        setattr(cuda_paths, f"_get_{name}_path", or_without_library(path, file))


def _refuse_module(*args: Any, **options: Any) -> Any:
    raise LaunchError(
        "PTX, cubins and linked libraries are not loaded: the emulator executes the LLVM IR of Numba's kernels"
    )


def replace_driver(package: Package) -> None:
    """Replace the CUDA driver under the host code of a package."""
    seam, nvvm, runtime = (package.submodule(f"cudadrv.{name}") for name in ("driver", "nvvm", "runtime"))
    seam.binding, seam.ExperimentalDevice, seam.ExperimentalStream = emulated_driver(), CoreDevice, CoreStream
    seam.find_driver = lambda: None
    seam.load_module_image = _refuse_module
    initialised: Any = seam.driver
    if package.submodule("core.config").DISABLE_CUDA:  # the user's request
        return
    initialised.lib, initialised.is_initialized, initialised.initialization_error = None, False, None
    nvvm.is_available = lambda: True  # `cuda.is_available` requires it; kernels need no NVVM here
    nvvm.NVVM.get_ir_version = or_without_library(nvvm.NVVM.get_ir_version, IR_VERSION)
    runtime.Runtime.get_version = lambda self: (13, 0)
    runtime.Runtime.is_supported_version = lambda self: True

    @call_in_child
    def renew() -> None:
        """Allow launches in a forked process: the memory is the host's."""
        initialised.pid = seam._getpid()
