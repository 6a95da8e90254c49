"""Comparison of two pair-HMM answers, pair by pair, in log10."""

from __future__ import annotations

import numpy as np

from ...family import Agreement, Answer

TOLERANCE = 1e-5
"""Tolerance of a log10 likelihood; GATK's own tolerance for its implementations."""


def compare(answer: Answer, expected: Answer) -> Agreement:
    """Compare log10 likelihoods, pair by pair; a NaN agrees with nothing.

    Raises ValueError if the shapes differ.
    """
    if answer.shape != expected.shape:
        raise ValueError(f"an answer of shape {answer.shape} cannot be compared with one of {expected.shape}")
    with np.errstate(invalid="ignore"):
        difference = np.where(answer == expected, 0.0, np.abs(answer - expected))
    difference = np.where(np.isnan(difference), np.inf, difference)
    worst = float(difference.max()) if difference.size else 0.0
    return Agreement(difference.size, int((difference > TOLERANCE).sum()), worst, TOLERANCE, "log10")
