"""Meanings of operations on the bits of integers that NumPy does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]


def _unsigned(x: Values) -> Values:
    return x.view(f"u{x.dtype.itemsize}")


def first_set(x: Values) -> Values:
    """1 + the index of the lowest bit that is set; 0 where none is."""
    bits = _unsigned(np.ascontiguousarray(x))
    lowest = bits & (~bits + bits.dtype.type(1))
    below = np.bitwise_count(lowest - bits.dtype.type(1)).astype(np.int32)
    return np.asarray(np.where(bits == 0, 0, below + 1)).astype(np.int32)


def reversed_bits(x: Values) -> Values:
    """Bit i as bit n - 1 - i."""
    bits = _unsigned(np.ascontiguousarray(x))
    result = np.zeros_like(bits)
    unit, count = bits.dtype.type(1), 8 * bits.dtype.itemsize
    for at in range(count):
        result |= (bits >> bits.dtype.type(at) & unit) << bits.dtype.type(count - 1 - at)
    return result.view(x.dtype)


def high_product(a: Values, b: Values) -> Values:
    """The upper half of the exact product."""
    bits = 8 * a.dtype.itemsize
    if bits == 32:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        return np.asarray((a.astype(wide) * b.astype(wide)) >> wide(32)).astype(a.dtype)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    x, y = _unsigned(np.ascontiguousarray(a)), _unsigned(np.ascontiguousarray(b))
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + (x0 * y0 >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return np.asarray(high).view(a.dtype)


def permuted_bytes(a: Values, b: Values, selector: Values) -> Values:
    """Byte n is byte `selector >> 4 n & 7` of the eight of a, then b."""
    both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
    result = np.zeros(np.broadcast(a, b, selector).shape, np.uint32)
    for at in range(4):
        chosen = (selector >> np.uint32(4 * at) & np.uint32(7)).astype(np.uint64)
        byte = (both >> (chosen << np.uint64(3)) & np.uint64(0xFF)).astype(np.uint32)
        result |= byte << np.uint32(8 * at)
    return result


def dot_of_bytes(a: Values, b: Values, c: Values) -> Values:
    """c + the products of the four bytes of a and b, signed where the type is."""
    byte = np.int8 if a.dtype.kind == "i" else np.uint8
    total = c
    for at in range(4):
        shift = a.dtype.type(8 * at)
        total = total + (a >> shift).astype(byte).astype(a.dtype) * (b >> shift).astype(byte).astype(a.dtype)
    return np.asarray(total)


def funnel(left: bool, clamped: bool) -> Callable[[Values, Values, Values], Values]:
    """The shift of the 64 bits high:low, by the count modulo 32 or at most 32; its upper half to the left, its lower
    half to the right."""

    def meaning(low: Values, high: Values, count: Values) -> Values:
        both = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
        shift = (np.minimum(count, np.uint32(32)) if clamped else count & np.uint32(31)).astype(np.uint64)
        shifted = both << shift >> np.uint64(32) if left else both >> shift
        return np.asarray(shifted).astype(np.uint32)

    return meaning
