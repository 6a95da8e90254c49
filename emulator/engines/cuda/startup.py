"""A device's primary context brought up on a thread of its own, while the process imports and reads."""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress

from ...errors import UnavailableError
from .library import cuda_driver


def begin_context(number: int = 0) -> threading.Thread:
    """Begin to retain the primary context of a device, by its number. It takes some tenths of a second, in which the
    interpreter's lock is not held; PyCUDA then finds it there. What is wrong is found again by who needs the device."""
    thread = threading.Thread(target=_retain, args=(number,), name="CUDA context")
    thread.start()
    return thread


def _retain(number: int) -> None:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    with suppress(UnavailableError):
        driver = cuda_driver()
        if not driver.cuInit(0) and not driver.cuDeviceGet(ctypes.byref(device), number):
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
