"""Replacement of the driver and of the kernel class under Numba-CUDA, once in a process."""

from __future__ import annotations

from typing import Any

from ..driver.core import CoreDevice, CoreStream
from ..driver.functions import Driver
from ..errors import UnavailableError
from ..forking import call_in_child
from ..machine import device as devices
from .versions import require_versions

_INSTALLED: list[Driver] = []


def install() -> Driver:
    """Have all launches of `numba.cuda` run on an emulator. Raises UnavailableError for other versions of Numba, and under CUDASIM."""
    if _INSTALLED:
        return _INSTALLED[0]
    require_versions()
    from numba.cuda.core import config

    if config.ENABLE_CUDASIM:
        raise UnavailableError("NUMBA_ENABLE_CUDASIM and SIMTBED_NUMBA exclude each other: unset one of them")
    from .dispatch import replace_kernels
    from .host_arrays import replace_copies

    driver = Driver(devices.H200)
    _INSTALLED.append(driver)
    _replace_driver(driver)
    replace_copies()
    replace_kernels(driver)
    return driver


def _replace_driver(driver: Driver) -> None:
    from numba.cuda.core import config
    from numba.cuda.cudadrv import driver as seam
    from numba.cuda.cudadrv import nvvm, runtime

    CoreDevice.driver = driver
    seam.binding, seam.ExperimentalDevice, seam.ExperimentalStream = driver, CoreDevice, CoreStream
    seam.find_driver = lambda: None
    initialised: Any = seam.driver
    if config.DISABLE_CUDA:  # the user's request
        return
    initialised.lib, initialised.is_initialized, initialised.initialization_error = None, False, None
    nvvm.is_available = lambda: True  # `cuda.is_available` requires it; kernels need no NVVM here
    runtime.Runtime.get_version = lambda self: (13, 0)
    runtime.Runtime.is_supported_version = lambda self: True

    @call_in_child
    def renew() -> None:
        """Allow launches in a forked process: the memory is the host's."""
        initialised.pid = seam._getpid()
