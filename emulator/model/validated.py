"""How far measured times were from the model's, by device and by what bounds a launch: `simtbed hardware errors` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Validated:
    """What was measured on a device. launches, kernels: how many. mean: error of the time.
    factors_of: by bound, between which parts of the time nine of ten measured ones lay; others: of the bounds that few had."""

    launches: int
    kernels: int
    mean: float
    factors_of: Mapping[str, tuple[float, float]]
    others: tuple[float, float]
    dated: str

    def factors(self, bound: str) -> tuple[float, float]:
        """The interval's, of a launch with that bound."""
        return self.factors_of.get(bound, self.others)

    def __str__(self) -> str:
        return f"validated on {self.launches} launches of {self.kernels} textbook kernels: {100 * self.mean:.0f} % off on average"


VALIDATED: Mapping[str, Validated] = {
    "H200": Validated(
        launches=916,
        kernels=157,
        mean=0.098,
        factors_of={
            "launch": (0.99, 1.18),
            "latency": (0.81, 1.27),
            "blocks": (0.93, 1.12),
            "L1": (0.89, 1.23),
            "L2": (0.82, 1.52),
            "atomics": (0.92, 4.37),
            "issue": (0.97, 1.35),
            "DRAM": (0.92, 1.16),
            "tail": (0.81, 1.24),
        },
        others=(0.88, 1.34),
        dated="2026-11-25",
    ),
    "H100": Validated(
        launches=916,
        kernels=157,
        mean=0.089,
        factors_of={
            "launch": (0.95, 1.15),
            "latency": (0.8, 1.25),
            "blocks": (0.88, 1.08),
            "L1": (0.89, 1.19),
            "L2": (0.82, 1.48),
            "atomics": (0.92, 3.76),
            "issue": (0.96, 1.35),
            "DRAM": (0.86, 1.11),
            "tail": (0.81, 1.25),
        },
        others=(0.87, 1.32),
        dated="2026-11-25",
    ),
}
