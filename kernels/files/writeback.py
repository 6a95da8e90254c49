"""Early writeback of output files, so that the final fsync takes little time."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

_WRITE = 2
"""SYNC_FILE_RANGE_WRITE of Linux: start writeback of dirty pages without waiting."""


def start_writeback(descriptor: int, first: int, length: int) -> None:
    """Start writeback of a range of bytes. Does nothing on other systems; errors are reported by `fsync`."""
    function = _function()
    if function is not None:
        function(descriptor, first, length, _WRITE)


@cache
def _function() -> Any:
    """Return sync_file_range of the C library, None if it does not exist."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function
