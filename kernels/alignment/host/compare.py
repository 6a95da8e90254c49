"""Comparison of two answers: CIGAR, offset and score of every pair must be equal."""

from __future__ import annotations

import numpy as np

from ...family import Agreement, Answer


def compare(answer: Answer, expected: Answer) -> Agreement:
    """Count the pairs with any difference; the distance is the largest difference of scores.

    Raises ValueError if the numbers of pairs differ.
    """
    if answer.shape != expected.shape:
        raise ValueError(f"an answer of {len(answer)} pairs cannot be compared with one of {len(expected)}")
    differences = np.abs(answer["score"].astype(np.int64) - expected["score"])
    return Agreement(len(answer), int((answer != expected).sum()), float(differences.max(initial=0)), 0.0, "of score")
