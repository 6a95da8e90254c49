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
        launches=1069,
        kernels=278,
        mean=0.108,
        factors_of={
            "launch": (1.0, 1.23),
            "latency": (0.81, 1.29),
            "blocks": (0.98, 1.11),
            "L1": (0.95, 1.32),
            "L2": (0.8, 1.36),
            "atomics": (0.66, 2.68),
            "slices": (0.92, 1.54),
            "issue": (0.97, 1.34),
            "alu": (0.97, 1.31),
            "DRAM": (0.84, 1.18),
            "tail": (0.82, 1.26),
        },
        others=(0.85, 1.33),
        dated="2026-11-26",
    ),
    "H100": Validated(
        launches=1069,
        kernels=278,
        mean=0.097,
        factors_of={
            "launch": (0.95, 1.18),
            "latency": (0.81, 1.29),
            "blocks": (0.95, 1.08),
            "L1": (0.93, 1.29),
            "L2": (0.77, 1.37),
            "atomics": (0.69, 1.46),
            "slices": (0.88, 1.39),
            "issue": (0.96, 1.31),
            "alu": (1.0, 1.31),
            "DRAM": (0.83, 1.29),
            "tail": (0.82, 1.26),
        },
        others=(0.84, 1.31),
        dated="2026-11-26",
    ),
}
