"""Correctness checks of timed work: answers compared with the families' oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from simtbed.kernels import Agreement, Family

from ..launchers import Runner
from .measured import Check

Problem = TypeVar("Problem")
TOLERANCE = 1e-9
"""Relative difference of two computations in double precision."""


def on_gpu(family: Family[Problem], variant: str, make_problem: Callable[[], Problem], label: str = "") -> Check:
    """Return the check of a variant on the GPU against the oracle. label: the problem, if there are several."""

    def run() -> Agreement:
        problem = make_problem()
        return family.compare(family.solve(problem, variant, Runner("cuda")), family.oracle(problem))

    return Check(f"{family.name} {variant}{label and f', {label}'}", run)


def equal(actual: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> Agreement:
    """Compare doubles within TOLERANCE."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.where(actual == expected, 0.0, np.abs(actual / expected - 1))
    differing = int((~(error <= TOLERANCE)).sum())
    return Agreement(error.size, differing, float(np.nanmax(error, initial=0.0)), TOLERANCE, "relative")
