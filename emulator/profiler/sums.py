"""Sums of counters over all kinds of memory operation."""

from collections.abc import Callable

from .counters import Row
from .events import GLOBAL, SHARED

Sum = Callable[[Row], int]


def _sum(*names: str) -> Sum:
    return lambda row: sum(row.get(name, 0) for name in names)


SECTORS = _sum(*(f"{kind}_sectors" for kind in GLOBAL))
REQUESTS = _sum(*(f"{kind}_requests" for kind in GLOBAL))
WAVEFRONTS = _sum(*(f"{kind}_wavefronts" for kind in SHARED))
CONFLICTS = _sum(*(f"{kind}_conflicts" for kind in SHARED))
INSTRUCTIONS = _sum("warp_instructions")
DIVERGENT = _sum("divergent_branches")
THREADS = _sum("thread_instructions")
"""Of warps: global sectors and requests, shared wavefronts, wavefronts added by bank conflicts, instructions, divergent
branches; of threads: instructions."""
