"""Loops of a launch whose counter may wrap: the intervals of a launch's numbers, sizes and arrays."""

from math import prod

import numpy as np

from ..language.intrinsics import WARP_SIZE
from ..passes.intervals import Interval
from .engine import Request


def wrapping_loops(request: Request) -> tuple[int, ...]:
    """Return the numbers of the loops whose counter may leave the range of its type in this launch."""
    return request.specialisation.summary.counters.wrapping(lambda leaf: _interval(request, leaf))


def _interval(request: Request, leaf: str) -> Interval | None:
    """Return the interval of a leaf of `passes.intervals`; None if it is unknown before the launch."""
    if leaf.startswith("st."):
        return _special(request, *leaf.split(".")[1:])
    if leaf.endswith(")"):
        what, _, array = leaf[:-1].partition("(")
        if what == "values":
            return _values(request, array)
        return (np.shape(request.arguments[array])[0],) * 2
    return (int(request.arguments[leaf]),) * 2


def _special(request: Request, name: str, axis: str = "x") -> Interval:
    """Return the interval of an index or a size."""
    if name == "lane":
        return 0, WARP_SIZE - 1
    if name == "warp":
        return 0, (prod(request.block) - 1) // WARP_SIZE
    extents = request.block if name in ("thread", "block_dim") else request.grid
    extent = extents["xyz".index(axis)]
    return (extent, extent) if name.endswith("_dim") else (0, extent - 1)


def _values(request: Request, array: str) -> Interval | None:
    """Return the interval of the elements of an array; None if this launch, or an earlier one on the device, may write it."""
    if array in request.specialisation.summary.changed or array in request.unwritten:
        return None
    if array in request.device_arrays:
        return request.device_arrays[array].interval()
    values = np.asarray(request.filled.get(array, request.arguments[array]))
    if not values.size:
        return None
    return int(values.min()), int(values.max())
