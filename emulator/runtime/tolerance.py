"""Tolerances of comparisons, and the elements outside them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LaunchError
from ..ir.ops import BITS
from ..ir.ops import ulp as within
from ..language.types import holds_floats

Values = npt.NDArray[Any]


@dataclass(frozen=True)
class Tolerance:
    """Floats agree within `atol + rtol * |expected|`, or within `ulp` units in the last place; by default to the bit.
    Integers agree if they are equal, and any NaN agrees with any NaN.

    Raises LaunchError for both kinds at once.
    """

    rtol: float = 0.0
    atol: float = 0.0
    ulp: int = 0

    def __post_init__(self) -> None:
        if self.ulp and (self.rtol or self.atol):
            raise LaunchError("a tolerance is rtol and atol, or ulp, not both")
        if min(self.rtol, self.atol, self.ulp) < 0:
            raise LaunchError("a tolerance is not negative")

    def __str__(self) -> str:
        if self.ulp:
            return f"within {self.ulp} ulp"
        if self.rtol or self.atol:
            return f"within rtol {self.rtol:g}, atol {self.atol:g}"
        return "to the bit"

    def differing(self, actual: Values, expected: Values) -> npt.NDArray[np.int64]:
        """Return the indices, in order, of elements that do not agree: int64[k, dimensions]."""
        unequal = np.argwhere(~BITS.agree(actual, expected))
        inexact = actual.dtype.kind == "c" or holds_floats(actual.dtype)
        if not len(unequal) or not inexact or not (self.ulp or self.rtol or self.atol):
            return unequal
        a, b = actual[tuple(unequal.T)], expected[tuple(unequal.T)]
        widest = np.result_type(actual.dtype, np.float64)
        wide = (a.astype(widest), b.astype(widest))
        near = within(self.ulp).agree(a, b) if self.ulp else np.isclose(*wide, self.rtol, self.atol, equal_nan=True)
        return np.asarray(unequal[~near])
