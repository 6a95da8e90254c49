"""The arrays of a launch as they were before it, and digests of the written ones, for the compiled view."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


def digest(array: npt.NDArray[Any]) -> str:
    """Return the sha256 of an array's bytes. All NaNs are one: their bits depend on the instruction that made them."""
    if array.dtype.kind == "f" and np.isnan(array).any():
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    return hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data).hexdigest() if array.size else ""


@dataclass(frozen=True)
class LaunchMemory:
    """before: copies of the global arrays by parameter name, flat as in the request. after: `digest` of the written ones."""

    before: Mapping[str, npt.NDArray[Any]]
    after: dict[str, str] = field(default_factory=dict)
