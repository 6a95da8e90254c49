"""Replacement of the driver and of the kernel class under Numba-CUDA, once in a process.

`numba-cuda-mlir` is a successor of `numba-cuda` with its own copy of the host code: both run over one driver.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from ..driver.core import CoreDevice, CoreStream
from ..driver.functions import Driver
from ..errors import UnavailableError
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
    NUMBA_CUDA.require_versions()
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        raise UnavailableError("NUMBA_ENABLE_CUDASIM and SIMTBED_NUMBA exclude each other: unset one of them")
    from .dispatch import replace_kernels
    from .host_arrays import replace_copies

    driver = emulated_driver()
    replace_driver(NUMBA_CUDA)
    replace_copies()
    replace_kernels(driver)
    return driver


def replace_driver(package: Package) -> None:
    """Replace the CUDA driver under the host code of a package."""
    seam, nvvm, runtime = (package.submodule(f"cudadrv.{name}") for name in ("driver", "nvvm", "runtime"))
    seam.binding, seam.ExperimentalDevice, seam.ExperimentalStream = emulated_driver(), CoreDevice, CoreStream
    seam.find_driver = lambda: None
    initialised: Any = seam.driver
    if package.submodule("core.config").DISABLE_CUDA:  # the user's request
        return
    initialised.lib, initialised.is_initialized, initialised.initialization_error = None, False, None
    nvvm.is_available = lambda: True  # `cuda.is_available` requires it; kernels need no NVVM here
    runtime.Runtime.get_version = lambda self: (13, 0)
    runtime.Runtime.is_supported_version = lambda self: True

    @call_in_child
    def renew() -> None:
        """Allow launches in a forked process: the memory is the host's."""
        initialised.pid = seam._getpid()
