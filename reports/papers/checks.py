"""What times of the papers are taken of, beside the families' oracles."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from simtbed.kernels import Agreement, Family

from ..launchers import Runner
from .measured import Check

Problem = TypeVar("Problem")
CLOSE = 1e-9
"""Relative difference of two ways to the same doubles."""


def on_gpu(family: Family[Problem], variant: str, problem: Callable[[], Problem], of: str = "") -> Check:
    """That a variant on the GPU answers a problem as the oracle does. of: which problem, where there are several."""

    def run() -> Agreement:
        given = problem()
        return family.compare(family.solve(given, variant, Runner("cuda")), family.oracle(given))

    return Check(f"{family.name} {variant}{of and f', {of}'}", run)


def equal(found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> Agreement:
    """Doubles beside those of another way to compute them."""
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.where(found == expected, 0.0, np.abs(found / expected - 1))
    differing = int((~(apart <= CLOSE)).sum())
    return Agreement(apart.size, differing, float(np.nanmax(apart, initial=0.0)), CLOSE, "relative")
