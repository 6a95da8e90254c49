"""Comparison of site frequency spectra: by coefficient, in logarithms, without negligible ones."""

from __future__ import annotations

import numpy as np

from ...family import Agreement, Answer

TOLERANCE = 1e-5
NEGLIGIBLE = -80.0
"""Natural logarithms this far below a site's maximum are not compared; ANGSD's floats underflow there as well."""


def compare(answer: Answer, expected: Answer) -> Agreement:
    """Compare arrays of sites x coefficients: logarithms directly, distributions (rows with sum 1, as in gama mode) by
    their logarithms.

    An entry is compared if the expected value is above e^-80 of its site's maximum, or if the answer is and the expected value is
    not. Raise ValueError if the shapes differ.
    """
    if answer.shape != expected.shape:
        raise ValueError(f"an answer of shape {answer.shape} cannot be compared with one of {expected.shape}")
    if not answer.size:
        return Agreement(0, 0, 0.0, TOLERANCE, "log")
    with np.errstate(divide="ignore", invalid="ignore"):
        if _distributions(expected):
            answer, expected = np.log(answer), np.log(expected)
        floor = expected.max(axis=1, keepdims=True) + NEGLIGIBLE
        compared = ~((expected < floor) & (answer < floor)) & ~((expected == answer) & np.isneginf(expected))
        distance = np.where(answer == expected, 0.0, np.abs(answer - expected))[compared]
    distance = np.where(np.isnan(distance), np.inf, distance)
    worst = float(distance.max()) if distance.size else 0.0
    return Agreement(distance.size, int((distance > TOLERANCE).sum()), worst, TOLERANCE, "log")


def _distributions(rows: Answer) -> bool:
    """Return whether the rows are probabilities. The row of an impossible site is 0."""
    if (rows < 0).any():
        return False
    total = rows.sum(axis=1)
    sums_to_one = np.abs(total - 1) < 1e-6
    return bool(sums_to_one.any() and (sums_to_one | (total == 0)).all())
