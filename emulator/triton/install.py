"""Replacement of Triton's driver and of PyTorch's GPU, once in a process."""

from __future__ import annotations

import os
from functools import cache

from ..errors import UnavailableError


@cache
def install() -> None:
    """Have Triton's kernels run on an emulator. Raises UnavailableError for another version of Triton or without PyTorch."""
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "0")  # the emulators do not contract a * b + c
    import triton
    from triton.backends import Backend, backends

    from .driver import EmulatedBackend, EmulatedDriver
    from .tensors import EmulatedDevice

    backends.clear()
    backends["nvidia"] = Backend(EmulatedBackend, EmulatedDriver)
    triton.runtime.driver.set_active(EmulatedDriver())
    EmulatedDevice().__enter__()
