"""Errors of the model against measured times, by device and bound, as printed by `simtbed hardware errors`."""

from __future__ import annotations

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
        launches=1197,
        kernels=298,
        mean=0.110,
        factors_of={
            "launch": (1.0, 1.26),
            "latency": (0.82, 1.31),
            "blocks": (0.97, 1.1),
            "L1": (0.96, 1.31),
            "L2": (0.82, 1.36),
            "atomics": (0.66, 6.03),
            "slices": (0.92, 1.5),
            "issue": (0.99, 1.34),
            "alu": (0.98, 1.3),
            "DRAM": (0.82, 1.2),
            "tail": (0.83, 1.16),
        },
        default_factors=(0.86, 1.35),
        dated="2026-11-26",
    ),
    "H100": ValidationErrors(
        launches=1197,
        kernels=298,
        mean=0.100,
        factors_of={
            "launch": (0.95, 1.18),
            "latency": (0.81, 1.3),
            "blocks": (0.95, 1.07),
            "L1": (0.93, 1.28),
            "L2": (0.77, 1.36),
            "atomics": (0.7, 5.44),
            "slices": (0.88, 1.39),
            "issue": (0.97, 1.31),
            "alu": (1.0, 1.3),
            "DRAM": (0.82, 1.22),
            "tail": (0.82, 1.16),
        },
        default_factors=(0.84, 1.34),
        dated="2026-11-26",
    ),
}
