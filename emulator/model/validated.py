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
        launches=624,
        kernels=107,
        mean=0.103,
        factors_of={
            "launch": (1.0, 1.26),
            "latency": (0.78, 1.38),
            "blocks": (0.9, 1.2),
            "L1": (0.91, 1.25),
            "L2": (0.82, 1.52),
            "atomics": (0.92, 1.56),
            "issue": (0.96, 1.36),
            "DRAM": (0.94, 1.09),
            "tail": (0.8, 1.29),
        },
        others=(0.88, 1.38),
        dated="2026-11-24",
    ),
}
