"""Approximate functions of the special function unit, to the bit of an H200: uint32 bit patterns in and out.

A function is a quadratic polynomial for each segment of its argument (Oberman and Siu 2005), with exact products and one
truncation: C0 * 2^k + C1 * x + C2 * s(x), for x the lower bits of the mantissa. s is a squarer whose folded partial
products below column 19 are not formed. `mufu.json` has the coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..documents import json_of, text_of
from .traced import look_up

Bits = Any
_SIGN, _INFINITY, _NAN, _UNIT = 0x80000000, 0x7F800000, 0x7FFFFFFF, 0x3F800000
_SQUARER_BITS, _FIRST_COLUMN = 17, 19
_TANH_SEGMENT_BITS = (0, 0, 0, 1, 1, 2, 2, 2, 3, 4, 3)
_TANH_SHIFTS = (6, 6, 6, 5, 5, 4, 4, 4, 3, 2, 3)
_TANH_FIRST_EXPONENT = 119


@cache
def _places() -> tuple[dict[str, tuple[int, int]], Bits]:
    """Return the first element and the columns of each table, and the elements of all tables, int64."""
    tables = {
        name: np.array(rows, np.int64) for name, rows in json_of(text_of(Path(__file__).with_suffix(".json"))).items()
    }
    tables |= {"tanh_bits": np.array(_TANH_SEGMENT_BITS), "tanh_shifts": np.array(_TANH_SHIFTS), "squares": _squares()}
    places, first = {}, 0
    for name, table in tables.items():
        places[name] = (first, table.size // len(table))
        first += table.size
    return places, np.concatenate([table.reshape(-1) for table in tables.values()])


def tables() -> Bits:
    """Return the elements of all tables, int64[n]."""
    return _places()[1]


def _row(name: str, index: Bits) -> list[Bits]:
    """Return the columns of a row of a table."""
    first, columns = _places()[0][name]
    return [look_up(tables, index * columns + (first + column)) for column in range(columns)]


def _squares() -> Bits:
    x = np.arange(1 << _SQUARER_BITS, dtype=np.int64)
    result = np.zeros_like(x)
    for i in range(_SQUARER_BITS):
        bit = x >> i & 1
        if 2 * i >= _FIRST_COLUMN:
            result += bit << 2 * i
        for j in range(i + 1, _SQUARER_BITS):
            if i + j + 1 >= _FIRST_COLUMN:
                result += (bit & (x >> j)) << (i + j + 1)
    return result >> _FIRST_COLUMN


def _polynomial(name: str, mantissa: Bits) -> Bits:
    """Evaluate the polynomial of a 23-bit mantissa in 64 segments."""
    x, (c0, c1, c2) = mantissa & 0x1FFFF, _row(name, mantissa >> _SQUARER_BITS)
    return c0 + c1 * x + c2 * _row("squares", x)[0]


def _fields(bits: Bits) -> tuple[Bits, Bits, Bits]:
    """Return sign, exponent and mantissa as int64."""
    bits = bits.astype(np.int64)
    return bits & _SIGN, bits >> 23 & 255, bits & 0x7FFFFF


def _pack(sign: Bits, exponent: Bits, significand: Bits) -> Bits:
    packed = sign | (np.clip(exponent, 0, 255) << 23) | (significand & 0x7FFFFF)
    return np.where(exponent <= 0, sign, np.where(exponent >= 255, sign | _INFINITY, packed))


def _normalised(value: Bits, fraction_bits: Bits, sign: Bits) -> Bits:
    """Return a nonnegative fixed-point number as float, truncated."""
    exponent: Bits = np.frexp(np.maximum(value, 1).astype(np.float64))[1].astype(np.int64) - 1
    exponent = np.where(value >> exponent == 0, exponent - 1, exponent)  # float64 may have rounded up
    significand = np.where(exponent >= 23, value >> np.maximum(exponent - 23, 0), value << np.maximum(23 - exponent, 0))
    return np.where(value == 0, sign, _pack(sign, exponent - fraction_bits + 127, significand))


def _special(result: Bits, *cases: tuple[Bits, Bits]) -> Bits:
    """Return the result as uint32; later cases (condition, value) override earlier ones."""
    for condition, value in cases:
        result = np.where(condition, value, result)
    return result.astype(np.uint32)


def _reciprocal_significand(mantissa: Bits) -> Bits:
    x, (c0, c1, c2) = mantissa & 0xFFFF, _row("rcp", mantissa >> 16)
    return c0 + c1 * x + c2 * _row("squares", x << 1)[0] >> 15


def _root_significand(name: str, mantissa: Bits, odd: Bits, shift: int) -> Bits:
    significand: Bits = np.where(odd, _polynomial(f"{name}2", mantissa), _polynomial(f"{name}1", mantissa))
    return significand >> shift


def reciprocal(bits: Bits) -> Bits:
    sign, exponent, mantissa = _fields(bits)
    power = mantissa == 0
    result = _pack(sign, np.where(power, 254, 253) - exponent, np.where(power, 0, _reciprocal_significand(mantissa)))
    return _special(result, (exponent == 0, sign | _INFINITY), (exponent == 255, np.where(power, sign, _NAN)))


def reciprocal_root(bits: Bits) -> Bits:
    sign, exponent, mantissa = _fields(bits)
    odd = exponent & 1 == 0
    half = (exponent - 127 - odd) >> 1
    result = _pack(0, 126 - half, _root_significand("rsq", mantissa, odd, 16))
    return _special(
        result, (~odd & (mantissa == 0), (127 - half) << 23), (exponent == 255, 0), (sign != 0, _NAN),
        (exponent == 0, sign | _INFINITY), ((exponent == 255) & (mantissa != 0), _NAN),
    )  # fmt: skip


def root(bits: Bits) -> Bits:
    sign, exponent, mantissa = _fields(bits)
    odd = exponent & 1 == 0
    result = _pack(0, 127 + ((exponent - 127 - odd) >> 1), _root_significand("sqrt", mantissa, odd, 17))
    return _special(
        result, (exponent == 255, _INFINITY), (sign != 0, _NAN), (exponent == 0, sign),
        ((exponent == 255) & (mantissa != 0), _NAN),
    )  # fmt: skip


def logarithm2(bits: Bits) -> Bits:
    sign, exponent, mantissa = _fields(bits)
    value = (_polynomial("lg2", mantissa) >> 2) + ((exponent - 127) << 36)
    result = _normalised(np.where(value >= 0, value, ~value), 36, np.where(value >= 0, 0, _SIGN))
    return _special(
        result, ((exponent == 127) & (mantissa == 0), 0), (exponent == 255, _INFINITY), (sign != 0, _NAN),
        (exponent == 0, _SIGN | _INFINITY), ((exponent == 255) & (mantissa != 0), _NAN),
    )  # fmt: skip


def exponential2(bits: Bits) -> Bits:
    sign, exponent, mantissa = _fields(bits)
    significand, shift = mantissa | 0x800000, 127 - exponent
    fixed = np.where(shift <= 0, significand << np.clip(-shift, 0, 7), significand >> np.clip(shift, 0, 40))
    negative = sign != 0
    fixed = np.where(negative, np.where(fixed & 0x7FFFFF == 0, -fixed, ~fixed), fixed)
    result = _pack(0, 127 + (fixed >> 23), _polynomial("ex2", fixed & 0x7FFFFF) >> 15)
    return _special(
        result, (exponent >= 134, np.where(negative, 0, _INFINITY)), (exponent == 0, _UNIT),
        ((exponent == 255) & (mantissa != 0), _NAN),
    )  # fmt: skip


def _sine(bits: Bits, quadrant: int) -> Bits:
    """Return the sine of periods, with 25 fraction bits, that begin `quadrant` quarters later."""
    sign, exponent, mantissa = _fields(bits)
    significand, shift = mantissa | 0x800000, exponent - 125
    left = np.where(shift >= 25, 0, significand << np.clip(shift, 0, 25))
    periods = np.where(shift >= 0, left, significand >> np.clip(-shift, 0, 40)) & 0x1FFFFFF
    periods = np.where(exponent == 0, 0, periods)
    quarter = (periods >> 23) + quadrant
    argument = np.where(quarter & 1, ~periods, periods) & 0x7FFFFF
    result_sign = (0 if quadrant else sign) ^ np.where(quarter & 2, _SIGN, 0)
    return _special(_normalised(_polynomial("sin", argument), 37, result_sign), (exponent == 255, _NAN))


def sine(bits: Bits) -> Bits:
    return _sine(bits, 0)


def cosine(bits: Bits) -> Bits:
    return _sine(bits, 1)


def hyperbolic_tangent(bits: Bits) -> Bits:
    sign, exponent, mantissa = _fields(bits)
    row = np.clip(exponent - _TANH_FIRST_EXPONENT, 0, len(_TANH_SHIFTS) - 1)
    segment = _row("tanh_first", row)[0] + (mantissa >> (23 - _row("tanh_bits", row)[0]))
    x = (mantissa >> _row("tanh_shifts", row)[0]) & 0x1FFFF
    c0, c1, c2, fraction_bits = _row("tanh", segment)
    result = _normalised((c0 << (fraction_bits - 26)) + c1 * x + c2 * _row("squares", x)[0], fraction_bits, sign)
    return _special(
        result, (exponent < _TANH_FIRST_EXPONENT, bits.astype(np.int64)), (exponent >= 130, sign | _UNIT),
        ((exponent == 255) & (mantissa != 0), _NAN),
    )  # fmt: skip


def _high_fields(bits: Bits) -> tuple[Bits, Bits, Bits]:
    """Return sign, exponent and mantissa of the upper word of float64 numbers."""
    bits = bits.astype(np.int64)
    return bits & _SIGN, bits >> 20 & 0x7FF, bits & 0xFFFFF


def reciprocal_high(bits: Bits) -> Bits:
    sign, exponent, mantissa = _high_fields(bits)
    power = mantissa == 0
    result_exponent = np.where(power, 2046, 2045) - exponent
    fraction = np.where(power, 0, _reciprocal_significand(mantissa << 3) >> 3 & 0xFFFFF)
    result = np.where(result_exponent <= 0, sign, sign | np.maximum(result_exponent, 0) << 20 | fraction)
    return _special(result, (exponent == 0, sign | 0x7FF00000), (exponent == 2047, np.where(power, sign, _NAN)))


def reciprocal_root_high(bits: Bits) -> Bits:
    sign, exponent, mantissa = _high_fields(bits)
    odd = exponent & 1 == 0
    half = (exponent - 1023 - odd) >> 1
    fraction = _root_significand("rsq", mantissa << 3, odd, 16) >> 3 & 0xFFFFF
    result = np.where(~odd & (mantissa == 0), (1023 - half) << 20, (1022 - half) << 20 | fraction)
    return _special(
        result, (exponent == 2047, 0), (sign != 0, _NAN), (exponent == 0, sign | 0x7FF00000),
        ((exponent == 2047) & (mantissa != 0), _NAN),
    )  # fmt: skip


MUFU: dict[str, Callable[[Bits], Bits]] = {
    "RCP": reciprocal, "RSQ": reciprocal_root, "SQRT": root, "EX2": exponential2, "LG2": logarithm2, "SIN": sine,
    "COS": cosine, "TANH": hyperbolic_tangent, "RCP64H": reciprocal_high, "RSQ64H": reciprocal_root_high,
}  # fmt: skip
"""By modifier of MUFU. RCP64H and RSQ64H take and return the upper word of a float64 number."""
