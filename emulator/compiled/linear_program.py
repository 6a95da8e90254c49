"""A linear program with hard and soft equations, solved by HiGHS."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ..errors import LaunchError, UnavailableError

MISSING = 'highspy is not installed: pip install "simtbed[sass]"'


class LinearProgram:
    """Minimize the total cost over variables >= 0 subject to equations."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._upper_bounds: list[float] = []
        self._rows: list[Mapping[int, float]] = []
        self._values: list[float] = []

    def variable(self, cost: float, upper_bound: float | None = None) -> int:
        """Add a variable and return its index."""
        self._costs.append(cost)
        self._upper_bounds.append(math.inf if upper_bound is None else upper_bound)
        return len(self._costs) - 1

    def equal(self, row: Mapping[int, float], value: float) -> None:
        """Add the equation row . x = value."""
        self._rows.append(row)
        self._values.append(value)

    def at_most(self, row: Mapping[int, float], value: float) -> None:
        """Add the inequality row . x <= value."""
        self.equal({**row, self.variable(0.0): 1.0}, value)

    def soft_equal(self, row: Mapping[int, float], value: float, cost_short: float, cost_excess: float) -> None:
        """Add a soft equation; deficit and excess cost so much per unit."""
        self.equal({**row, self.variable(cost_short): 1.0, self.variable(cost_excess): -1.0}, value)

    def solve(self) -> npt.NDArray[np.float64]:
        """Return the solution. Raises UnavailableError without highspy, LaunchError if infeasible."""
        try:
            import highspy
        except ModuleNotFoundError:
            raise UnavailableError(MISSING) from None
        problem = highspy.HighsLp()
        problem.num_col_, problem.num_row_ = len(self._costs), len(self._rows)
        problem.col_cost_, problem.col_lower_, problem.col_upper_ = (
            self._costs,
            [0.0] * len(self._costs),
            self._upper_bounds,
        )
        problem.row_lower_ = problem.row_upper_ = self._values
        matrix = problem.a_matrix_
        matrix.format_ = highspy.MatrixFormat.kRowwise
        matrix.start_ = [0, *accumulate(map(len, self._rows))]
        matrix.index_ = [variable for row in self._rows for variable in row]
        matrix.value_ = [factor for row in self._rows for factor in row.values()]
        solver = highspy.Highs()
        solver.silent()
        solver.passModel(problem)
        solver.run()
        status = solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise LaunchError(
                f"the flow through the compiled kernel has no solution: {solver.modelStatusToString(status)}"
            )
        return np.array(solver.getSolution().col_value, np.float64)
