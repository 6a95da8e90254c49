"""The CUDA driver's own library, for what PyCUDA has no call for; a start imports no more than this."""

from __future__ import annotations

import ctypes
from functools import cache

from ...errors import UnavailableError


@cache
def cuda_driver() -> ctypes.CDLL:
    """The library. Raises UnavailableError."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise UnavailableError(f"the CUDA driver does not load: {error}") from None
