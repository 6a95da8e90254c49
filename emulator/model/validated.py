"""How far measured times were from the model's, by device and by what bounds a launch: `simtbed hardware errors` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Validated:
    """What was measured on a device. launches, kernels: how many. mean: error of the time, with the kernel left out of the fit.
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
        launches=615,
        kernels=107,
        mean=0.144,
        factors_of={
            "launch": (0.99, 1.3),
            "latency": (0.6, 1.37),
            "blocks": (0.85, 1.19),
            "L1": (0.75, 1.19),
            "L2": (0.85, 1.89),
            "atomics": (0.69, 1.83),
            "issue": (0.79, 1.33),
            "DRAM": (0.89, 1.05),
            "tail": (0.65, 1.26),
        },
        others=(0.75, 1.39),
        dated="2026-11-22",
    ),
}
