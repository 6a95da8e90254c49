"""Exponential function with the same bits on every processor. NumPy's result depends on the available instructions."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, f64, i64
from simtbed.native import native

from .problem import Floats


def exponentials(values: Floats) -> Floats:
    """Return e to the power of each value, in the same shape; 0 for -inf."""
    result = np.empty(values.shape, np.float64)
    raise_e(np.ascontiguousarray(values, np.float64).reshape(-1), result.reshape(-1), values.size)
    return result


@native
def raise_e(values: Global[f64], result: Global[f64], count: i64) -> None:
    """Compute e to the power of each value."""
    for n in range(count):
        result[n] = st.exp(values[n])
