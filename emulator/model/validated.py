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
        launches=868,
        kernels=157,
        mean=0.113,
        factors_of={
            "launch": (1.0, 1.24),
            "latency": (0.79, 1.37),
            "blocks": (0.89, 1.26),
            "L1": (0.91, 1.27),
            "L2": (0.84, 1.45),
            "atomics": (0.92, 3.08),
            "issue": (0.92, 1.35),
            "DRAM": (0.91, 1.15),
            "tail": (0.64, 1.21),
        },
        others=(0.86, 1.38),
        dated="2026-11-25",
    ),
    "H100": Validated(
        launches=916,
        kernels=157,
        mean=0.108,
        factors_of={
            "launch": (0.95, 1.22),
            "latency": (0.78, 1.35),
            "blocks": (0.88, 1.45),
            "L1": (0.9, 1.3),
            "L2": (0.86, 1.69),
            "atomics": (0.97, 2.95),
            "issue": (0.92, 1.35),
            "DRAM": (0.84, 1.13),
            "tail": (0.65, 1.22),
            "slices": (0.98, 1.22),
        },
        others=(0.87, 1.39),
        dated="2026-11-25",
    ),
}
