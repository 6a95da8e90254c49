"""Thresholds of the compiled view."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerances:
    """Thresholds. Fractions of executions unless noted otherwise.

    executions: equal numbers by path sampling. lanes: equal numbers by the linear program. sample: of 128 warps.
    residual: of a block's features, above which the block is uncertain. estimate: of the mean residual of an estimate.
    sample_residual: of the features of sampled paths. complete_fraction: warps with complete records, below which all
    blocks are uncertain. uncertain_fraction: executions that flow conservation leaves undetermined. excess_convergence:
    of convergence points. thread_deviation: of threads. rounding: executions.
    """

    executions: float = 0.01
    lanes: float = 0.001
    sample: float = 0.05
    residual: float = 0.02
    estimate: float = 1e-3
    sample_residual: float = 0.05
    complete_fraction: float = 0.9
    uncertain_fraction: float = 0.2
    excess_convergence: float = 0.2
    thread_deviation: float = 0.2
    rounding: float = 1e-3


TOLERANCES = Tolerances()
