"""Cooperative launches by the CUDA driver itself: PyCUDA has no call for them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import LaunchError
from ...runtime.engine import Dim3
from .library import cuda_driver

MOST_DYNAMIC_SHARED = 8
"""The driver's number of the attribute of a function."""


def _check(status: int, what: str) -> None:
    if status:
        text = ctypes.c_char_p()
        cuda_driver().cuGetErrorString(status, ctypes.byref(text))
        raise LaunchError(f"{what} failed on the GPU: {(text.value or b'?').decode()}")


class CooperativeFunction:
    """A kernel of a cubin in the current context, with the call interface of PyCUDA's functions. Its blocks may wait for the grid."""

    def __init__(self, cubin: bytes, name: str) -> None:
        self.name = name
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        _check(cuda_driver().cuModuleLoadData(ctypes.byref(self.module), cubin), f"loading {name}")
        status = cuda_driver().cuModuleGetFunction(ctypes.byref(self.function), self.module, name.encode())
        _check(status, f"loading {name}")

    def get_global(self, symbol: str) -> tuple[int, int]:
        """Return the address and the bytes of a variable of the module."""
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        status = cuda_driver().cuModuleGetGlobal_v2(
            ctypes.byref(address), ctypes.byref(size), self.module, symbol.encode()
        )
        _check(status, f"{self.name}: the variable {symbol}")
        return address.value or 0, size.value

    def set_attribute(self, attribute: Any, value: int) -> None:
        """Set the limit of dynamic shared memory, the only attribute in use."""
        _check(cuda_driver().cuFuncSetAttribute(self.function, MOST_DYNAMIC_SHARED, value), self.name)

    def __call__(self, *arguments: np.generic, grid: Dim3, block: Dim3, shared: int, stream: Any = None) -> None:
        """Launch. Raises LaunchError where the blocks cannot all be resident."""
        values = [ctypes.create_string_buffer(np.asarray(value).tobytes()) for value in arguments]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream_handle = ctypes.c_void_p(None if stream is None else int(stream.handle))
        launch: Callable[..., int] = cuda_driver().cuLaunchCooperativeKernel
        _check(launch(self.function, *grid, *block, shared, stream_handle, pointers), self.name)
