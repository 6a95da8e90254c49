"""Errors of the model against measured times, by device and bound, as printed by `simtbed hardware errors`.

They are of launches drawn at random from those of the validation kernels. Bounds with fewer than ten have the default.
The intervals of atomics are of 1,197 launches of 298 kernels, 2026-11-26, with the counts of the source: the samples have 13 such launches.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ValidationErrors:
    """Errors on a device. launches, kernels: measured. mean: relative error. factors_of: interval of nine of ten times
    by bound; default_factors: for rare bounds."""

    launches: int
    kernels: int
    mean: float
    factors_of: Mapping[str, tuple[float, float]]
    default_factors: tuple[float, float]
    dated: str

    def factors(self, bound: str) -> tuple[float, float]:
        """Return the interval factors for a bound."""
        return self.factors_of.get(bound, self.default_factors)

    def __str__(self) -> str:
        return f"validated on {self.launches} launches of {self.kernels} validation kernels: {100 * self.mean:.0f} % off on average"


VALIDATED: Mapping[str, ValidationErrors] = {
    "H200": ValidationErrors(
        launches=164,
        kernels=98,
        mean=0.113,
        factors_of={
            "launch": (1.0, 1.32),
            "latency": (0.87, 1.41),
            "L2": (0.94, 1.35),
            "issue": (0.99, 3.28),
            "atomics": (0.66, 6.03),
        },
        default_factors=(0.91, 1.4),
        dated="2026-11-29",
    ),
    "H100": ValidationErrors(
        launches=151,
        kernels=98,
        mean=0.107,
        factors_of={
            "launch": (0.94, 1.11),
            "latency": (0.85, 1.23),
            "L1": (0.96, 1.13),
            "L2": (0.86, 1.26),
            "issue": (0.9, 2.05),
            "DRAM": (0.86, 1.21),
            "atomics": (0.7, 5.44),
        },
        default_factors=(0.83, 1.33),
        dated="2026-11-29",
    ),
}
