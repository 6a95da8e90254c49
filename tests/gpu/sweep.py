"""Operands for the rows of mathematical functions: every exponent, special values, and the domain of each function.

They are computed, and so the same on every machine.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from simtbed.ir.op import Op
from simtbed.language.types import I32, Scalar
from simtbed.testing.conformance.edge_values import edges

Values = npt.NDArray[Any]
RANGES = (1.0, 6.5, 30.0, 110.0, 800.0)
"""Bounds of ranges of plain numbers: each range is symmetric about 0."""


def stratified(type: Scalar, count: int, shift: int = 0) -> Values:
    """Return bit patterns at even distances with scrambled low bits: all signs and exponents are equally frequent."""
    bits = np.dtype(f"u{type.size}")
    step = (1 << type.bits) // count
    low = np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
        0xD1B54A32D192ED03 * (shift + 1) % 2**64
    )
    low ^= low >> np.uint64(29)
    low *= np.uint64(0xBF58476D1CE4E5B9)
    low ^= low >> np.uint64(32)
    patterns = np.arange(count, dtype=np.uint64) * np.uint64(step) + low % np.uint64(step)
    return patterns.astype(bits).view(type.dtype)


def plain(type: Scalar, count: int, most: float) -> Values:
    """Return numbers from -most to most, at nearly even distances."""
    places = (np.arange(count) + 0.5) / count * 2 - 1
    golden = np.arange(count) * 0.6180339887498949 % 1.0 / count
    return ((places + golden) * most).astype(type.dtype)


def near(type: Scalar) -> Values:
    """Return neighbours of integers, halves, powers of two and multiples of pi / 4."""
    whole = np.arange(-200, 201)
    powers = np.ldexp(1.0, np.arange(-60, 61))
    centres = np.concatenate([whole, whole + 0.5, whole * (np.pi / 4), whole * (np.pi * 2.0**20), powers, -powers])
    centres = centres.astype(type.dtype)
    bits = centres.view(f"i{type.size}")
    steps = np.arange(-3, 4, dtype=bits.dtype)
    return np.concatenate([(bits[:, None] + steps).ravel().view(type.dtype), edges(type)])


def numbers(type: Scalar, count: int) -> Values:
    """Return about `count` operands of a function of one number."""
    half = count // 2
    return np.concatenate(
        [stratified(type, half), *(plain(type, half // len(RANGES), most) for most in RANGES), near(type)]
    )


def sweep(row: Op, type: Scalar, count: int) -> tuple[Values, ...]:
    """Return about `count` operands of a row, one array per operand."""
    if row.operands == 1:
        return (numbers(type, count),)
    side = int(count**0.5) // 2
    grids = []
    first = np.arange(-side, side, dtype=np.int32) if row.first is I32 else stratified(type, 2 * side)
    last = stratified(type, 2 * side, 1)
    grids.append([a.ravel() for a in np.meshgrid(first, last, indexing="ij")])
    if row.first is I32:
        grids.append([a.ravel() for a in np.meshgrid(edges(I32), edges(type), indexing="ij")])
        return _joined(grids)
    for most, other in ((1.5, 200.0), (30.0, 30.0), (2000.0, 7.0)):
        pair = [plain(type, side, most), plain(type, side, other)]
        grids.append([a.ravel() for a in np.meshgrid(*pair, indexing="ij")])
    grids.append([a.ravel() for a in np.meshgrid(edges(type), edges(type), indexing="ij")])
    whole = np.arange(-40, 41).astype(type.dtype)
    grids.append([a.ravel() for a in np.meshgrid(np.concatenate([whole, whole / 4]), whole, indexing="ij")])
    return _joined(grids)


def _joined(grids: list[list[Values]]) -> tuple[Values, ...]:
    return tuple(np.concatenate([grid[n] for grid in grids]) for n in range(2))
