"""Page-locked arrays of the host, from and to which a GPU transfers without another copy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from ..errors import UnavailableError
from ..tracebacks import without_own_frames
from .arrays import Buffer, NewArray, checked_array


@without_own_frames
def pinned(contents: Any) -> Buffer:
    """Return a NumPy array in page-locked memory, with the contents of an array, or of `empty`, `zeros` or `full`.

    A launch transfers it to the GPU without a copy on the host. A launch on a stream reads it while the program continues:
    change it after the launch has ended. On a machine without a GPU it is an ordinary array. Raises LaunchError.
    """
    values = contents.initial() if isinstance(contents, NewArray) else checked_array("contents", contents)
    try:
        result: Buffer = import_module("simtbed.engines.cuda.streams").page_locked(values)
    except UnavailableError:
        return np.array(values, order="C")
    return result
