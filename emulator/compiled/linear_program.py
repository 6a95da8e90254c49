"""A linear program, built row by row, with soft equations that may be missed at a cost. HiGHS solves it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from ..errors import LaunchError, UnavailableError

MISSING = 'highspy is not installed: pip install "simtbed[sass]"'


class LinearProgram:
    """The cheapest variables, none below 0, that fulfil every equation."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._most: list[float] = []
        self._rows: list[Mapping[int, float]] = []
        self._values: list[float] = []

    def variable(self, cost: float, most: float | None = None) -> int:
        """A new variable's number."""
        self._costs.append(cost)
        self._most.append(math.inf if most is None else most)
        return len(self._costs) - 1

    def equal(self, row: Mapping[int, float], value: float) -> None:
        """A sum of variables, each times its factor, is the value."""
        self._rows.append(row)
        self._values.append(value)

    def most(self, row: Mapping[int, float], value: float) -> None:
        """The sum is at most the value."""
        self.equal({**row, self.variable(0.0): 1.0}, value)

    def near(self, row: Mapping[int, float], value: float, short: float, excess: float) -> None:
        """The sum shall be the value; what it is short of, or in excess, costs so much each."""
        self.equal({**row, self.variable(short): 1.0, self.variable(excess): -1.0}, value)

    def solve(self) -> npt.NDArray[np.float64]:
        """The variables. Raises LaunchError without highspy, or where the equations have no solution."""
        try:
            import highspy
        except ModuleNotFoundError:
            raise UnavailableError(MISSING) from None
        problem = highspy.HighsLp()
        problem.num_col_, problem.num_row_ = len(self._costs), len(self._rows)
        problem.col_cost_, problem.col_lower_, problem.col_upper_ = self._costs, [0.0] * len(self._costs), self._most
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
