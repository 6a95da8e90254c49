"""How the vectors of many sites are laid out in a GPU's memory, for each way of computing their products."""

from __future__ import annotations

import numpy as np

from ..tiled import GROUP
from .problem import Floats
from .problem_loops import tiled_vectors


def interleaved(vectors: Floats) -> Floats:
    """For `iterative`: individual by individual, power by power, the sites side by side."""
    return np.ascontiguousarray(vectors.transpose(1, 2, 0)).ravel()


def tiles(individuals: int) -> int:
    """Tiles of the whole product in `tiled`: a power of two, so that GROUP times as many are at least the individuals."""
    return 1 << max(-(-individuals // GROUP) - 1, 0).bit_length()


def by_tiles(vectors: Floats, leaves: int) -> Floats:
    """For `tiled`: in each part of so many tiles, the first individuals of all tiles side by side, then the second
    ones, and so on; filled up with 1 0 0."""
    sites, individuals = vectors.shape[:2]
    whole = tiles(individuals)
    to = np.empty(sites * whole * GROUP * 3)
    tiled_vectors(np.ascontiguousarray(vectors).reshape(-1), individuals, sites, whole // leaves, leaves, GROUP, to)
    return to
