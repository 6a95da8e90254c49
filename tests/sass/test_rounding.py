"""Directed rounding of products and sums against exact fractions, in all of the range of double precision."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from simtbed.sass.floating import fused
from simtbed.sass.operands import decode

from tests.sass.programs import instruction

COUNT = 400


def rounded(exact: Fraction, mode: str) -> float:
    """Return the double next to an exact number in a direction."""
    value = float(exact)
    toward = {"RM": -math.inf, "RP": math.inf, "RZ": -math.inf if exact > 0 else math.inf}[mode]
    beyond = exact < Fraction(value) if toward < 0 else exact > Fraction(value)
    return math.nextafter(value, toward) if beyond else value


def operands(random: np.random.Generator, kind: str) -> tuple[Any, Any, Any]:
    """Return factors and an addend. kind: of the exponents."""
    a, b, c = random.uniform(-2, 2, (3, COUNT))
    if kind == "denormal product":
        return a * 2.0**-500, b * 2.0 ** random.integers(-580, -520, COUNT), c * 0
    if kind == "denormal factor":
        return a * 2.0**-1060, b, c * 2.0 ** random.integers(-1070, -1000, COUNT)
    if kind == "tiny product":
        return a * 2.0**-900, b * 2.0**-800, c
    if kind == "vanishing product":
        return a * 2.0**-900, b * 2.0**-900, c * random.integers(0, 2, COUNT)
    if kind == "cancellation":
        return a, b, -a * b
    return a, b, c * 2.0 ** random.integers(-60, 60, COUNT)


@pytest.mark.parametrize("mode", ["RM", "RP", "RZ"])
def test_sums_of_products(mode: str) -> None:
    op = decode(0, instruction(0, f"DFMA.{mode} R0, R2, R4, R6"))
    for kind in (
        "normal", "cancellation", "denormal product", "denormal factor", "tiny product", "vanishing product",
    ):  # fmt: skip
        a, b, c = operands(np.random.default_rng(1), kind)
        values = fused(op, a, b, c)
        for x, y, z, value in zip(a.tolist(), b.tolist(), c.tolist(), values.tolist(), strict=True):
            assert value == rounded(Fraction(x) * Fraction(y) + Fraction(z), mode), (kind, x, y, z)
