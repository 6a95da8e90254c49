"""How reads are laid out for the kernels, and how many threads a launch has."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed import empty

from .problem import Bytes, Offsets, Reads

Places = npt.NDArray[np.int32]

SHARED = 48 * 1024
"""Bytes of shared memory that a block may have without asking for more."""


def eligible(reads: Reads, k: int) -> Offsets:
    """The reads that can be corrected: of A, C, G, T, and not shorter than k."""
    return np.flatnonzero(reads.known & (reads.lengths >= k))


def read_table(reads: Reads, chosen: Offsets) -> Places:
    """(first letter, length) of each chosen read."""
    return np.stack([reads.offsets[chosen], reads.lengths[chosen]], axis=1).astype(np.int32)


def longest_read(places: Places) -> int:
    """The length of the longest read, rounded up so that few kernels are compiled: at most an eighth, to a multiple of 4."""
    length = int(places[:, 1].max())
    step = max(4, 1 << max(length.bit_length() - 4, 0))
    return -(-length // step) * step


def read_arguments(text: Bytes, places: Places) -> dict[str, Any]:
    """The arguments that every kernel takes for reads. `text` and `spans` are what it makes."""
    return {"text": text, "places": places, "spans": empty(len(places), "int2")}
