"""When two answers of the pair-HMM agree: pair by pair, in log10."""

from __future__ import annotations

from ...family import Agreement, Answer, agreement

TOLERANCE = 1e-5
"""Of a log10 likelihood; what GATK asks of its own implementations."""


def compare(answer: Answer, expected: Answer) -> Agreement:
    """Compare log10 likelihoods. Raises ValueError where the shapes differ."""
    return agreement(answer, expected, TOLERANCE, "log10")
