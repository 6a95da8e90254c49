"""Has the system begin to write a file to the disk while more of it comes, so that its end waits for little."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

_WRITE = 2
"""SYNC_FILE_RANGE_WRITE of Linux: begin to write what is not being written, and wait for nothing."""


def begin_to_write(descriptor: int, first: int, length: int) -> None:
    """Begin with some bytes of a file. Nothing happens where the system cannot, and nothing is promised: `fsync` tells."""
    function = _function()
    if function is not None:
        function(descriptor, first, length, _WRITE)


@cache
def _function() -> Any:
    """sync_file_range of the C library, None where it has none."""
    if sys.platform != "linux":
        return None
    found = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if found is not None:
        found.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return found
