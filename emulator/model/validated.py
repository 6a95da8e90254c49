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
            "launch": (1.0, 1.19),
            "latency": (0.82, 1.3),
            "blocks": (0.94, 1.18),
            "L1": (0.89, 1.21),
            "L2": (0.83, 1.41),
            "atomics": (0.92, 4.38),
            "issue": (0.97, 1.35),
            "DRAM": (0.92, 1.16),
            "tail": (0.78, 1.22),
        },
        others=(0.89, 1.34),
        dated="2026-11-25",
    ),
    "H100": Validated(
        launches=916,
        kernels=157,
        mean=0.091,
        factors_of={
            "launch": (0.95, 1.15),
            "latency": (0.81, 1.26),
            "blocks": (0.88, 1.34),
            "L1": (0.88, 1.2),
            "L2": (0.8, 1.35),
            "atomics": (0.92, 3.82),
            "issue": (0.97, 1.35),
            "DRAM": (0.86, 1.16),
            "tail": (0.78, 1.24),
        },
        others=(0.86, 1.33),
        dated="2026-11-25",
    ),
}
