"""A linear program, built row by row, with soft equations that may be missed at a cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import LaunchError, UnavailableError

MISSING = 'SciPy is not installed: pip install "simtbed[sass]"'


class LinearProgram:
    """The cheapest variables, none below 0, that fulfil every equation."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._bounds: list[tuple[float, float | None]] = []
        self._entries: list[tuple[int, int, float]] = []
        self._values: list[float] = []

    def variable(self, cost: float, most: float | None = None) -> int:
        """A new variable's number."""
        self._costs.append(cost)
        self._bounds.append((0.0, most))
        return len(self._costs) - 1

    def equal(self, row: Mapping[int, float], value: float) -> None:
        """A sum of variables, each times its factor, is the value."""
        self._entries += [(len(self._values), variable, factor) for variable, factor in row.items()]
        self._values.append(value)

    def most(self, row: Mapping[int, float], value: float) -> None:
        """The sum is at most the value."""
        self.equal({**row, self.variable(0.0): 1.0}, value)

    def near(self, row: Mapping[int, float], value: float, short: float, excess: float) -> None:
        """The sum shall be the value; what it is short of, or in excess, costs so much each."""
        self.equal({**row, self.variable(short): 1.0, self.variable(excess): -1.0}, value)

    def solve(self) -> npt.NDArray[np.float64]:
        """The variables. Raises LaunchError without SciPy, or where the equations have no solution."""
        try:
            from scipy.optimize import linprog
            from scipy.sparse import csr_array
        except ModuleNotFoundError:
            raise UnavailableError(MISSING) from None
        rows, columns, factors = (np.array(each) for each in zip(*self._entries, strict=True))
        matrix = csr_array((factors, (rows, columns)), shape=(len(self._values), len(self._costs)))
        found: Any = linprog(self._costs, A_eq=matrix, b_eq=self._values, bounds=self._bounds, method="highs")
        if found.status != 0:
            raise LaunchError(f"the flow through the compiled kernel has no solution: {found.message}")
        solution: npt.NDArray[np.float64] = found.x
        return solution
