"""Initialises a device's primary context on a thread of its own, while the process imports modules."""

import ctypes
import threading
from contextlib import suppress

from ...errors import UnavailableError
from .library import cuda_driver


def begin_context(number: int = 0) -> threading.Thread:
    """Start to retain the primary context of a device, by its number. It takes some tenths of a second without the interpreter's lock;
    PyCUDA then reuses the context. An error is raised again by the first use of the device."""
    thread = threading.Thread(target=_retain, args=(number,), name="CUDA context")
    thread.start()
    return thread


def _retain(number: int) -> None:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    with suppress(UnavailableError):
        driver = cuda_driver()
        if not driver.cuInit(0) and not driver.cuDeviceGet(ctypes.byref(device), number):
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
