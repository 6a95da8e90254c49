"""Kernels with a mistake each, by the kind of mistake; importing the folder fills `pair.PAIRS`."""

from . import (
    of_arithmetic,
    of_barriers,
    of_bounds,
    of_clusters,
    of_grids,
    of_mbarriers,
    of_products,
    of_protocols,
    of_races,
    of_releases,
    of_uninitialised,
    of_waits,
    of_warps,
)
from .pair import PAIRS, Pair

__all__ = [
    "PAIRS", "Pair", "of_arithmetic", "of_barriers", "of_bounds", "of_clusters", "of_grids", "of_mbarriers", "of_products",
    "of_protocols", "of_races", "of_releases", "of_uninitialised", "of_waits", "of_warps",
]  # fmt: skip
