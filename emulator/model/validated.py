"""How far measured times were from the model's, by device and by what bounds a launch: `simtbed hardware errors` prints it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Validated:
    """What was measured on a device. launches, kernels: how many. mean: error of the time.
    factors_of: by bound, between which parts of the time nine of ten measured ones lay, and it
    itself; others: of the bounds that few had."""

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
        launches=881,
        kernels=246,
        mean=0.111,
        factors_of={
            "launch": (1.0, 1.2),
            "latency": (0.83, 1.29),
            "blocks": (0.98, 1.12),
            "L1": (0.95, 1.35),
            "L2": (0.75, 1.74),
            "atomics": (0.61, 2.77),
            "slices": (1.0, 1.43),
            "issue": (0.98, 1.32),
            "alu": (0.97, 1.32),
            "DRAM": (0.83, 1.18),
            "tail": (0.85, 1.19),
        },
        others=(0.87, 1.35),
        dated="2026-11-26",
    ),
    "H100": Validated(
        launches=881,
        kernels=246,
        mean=0.098,
        factors_of={
            "launch": (0.95, 1.14),
            "latency": (0.83, 1.26),
            "blocks": (0.94, 1.08),
            "L1": (0.93, 1.31),
            "L2": (0.71, 1.74),
            "atomics": (0.72, 1.45),
            "slices": (1.0, 1.29),
            "issue": (0.95, 1.31),
            "alu": (1.0, 1.31),
            "DRAM": (0.83, 1.2),
            "tail": (0.85, 1.19),
        },
        others=(0.86, 1.32),
        dated="2026-11-26",
    ),
}
