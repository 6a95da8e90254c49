"""Tolerances of the compiled view."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerances:
    """Relative differences up to which counts are equal, and limits of samples.

    executions: of a path sample. lanes: of counts without a sample. residual: of a feature, above which its blocks are uncertain.
    sample: of an attribution to sampled warps. rounding: of
    computed integers. complete_fraction: of sampled warps, with complete records, from which on the sample needs no reservation.
    """

    executions: float = 0.01
    lanes: float = 0.001
    residual: float = 0.02
    sample: float = 0.05
    rounding: float = 1e-3
    complete_fraction: float = 0.9


TOLERANCES = Tolerances()


def is_close(value: float, reference: float, tolerance: float = TOLERANCES.executions) -> bool:
    """Return whether a value differs from a reference by at most a fraction of it."""
    return abs(value - reference) <= tolerance * reference
