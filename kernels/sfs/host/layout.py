"""Layout of the vectors of many sites in GPU memory, for each algorithm."""

from __future__ import annotations

import numpy as np

from ..tiled import GROUP
from .problem import Floats
from .problem_loops import tiled_vectors


def interleaved(vectors: Floats) -> Floats:
    """Return the layout of `iterative`: by individual, then by power, with adjacent sites."""
    return np.ascontiguousarray(vectors.transpose(1, 2, 0)).ravel()


def tiles(individuals: int) -> int:
    """Return the number of tiles of the whole product in `tiled`: the smallest power of two that is at least individuals / GROUP."""
    return 1 << max(-(-individuals // GROUP) - 1, 0).bit_length()


def by_tiles(vectors: Floats, leaves: int) -> Floats:
    """Return the layout of `tiled`: in each section of `leaves` tiles, the first individuals of all tiles, then the
    second ones, and so on; padded with 1 0 0."""
    sites, individuals = vectors.shape[:2]
    whole = tiles(individuals)
    to = np.empty(sites * whole * GROUP * 3)
    tiled_vectors(np.ascontiguousarray(vectors).reshape(-1), individuals, sites, whole // leaves, leaves, GROUP, to)
    return to
