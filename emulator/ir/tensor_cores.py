"""Arithmetic of the tensor cores on arrays: the reference of every engine.

A sum of products is exact but for one truncation of each term. Products are not normalised: their exponent is the sum of the exponents.
Products and C are aligned to the largest exponent of the terms that are not zero; a term keeps `fraction` bits below it, the rest is cut
by magnitude. The sum is exact. An f32 result is cut, an f16 result is rounded to the nearest even one. An exact zero is +0.
`tensor_cores.toml` has the parameters by compute capability, with their sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..documents import text_of, toml_of
from .fused import fma
from .matrices import BITS, FLOATS, Capability, Format, Instruction, fragment, matrix

Values = npt.NDArray[Any]
NOTHING = -(1 << 20)
"""Exponent of a term that is zero."""
NANS = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


@dataclass(frozen=True)
class Rule:
    """Parameters of sums of floating-point products: a row of `tensor_cores.toml`, which defines the fields."""

    operands: tuple[str, ...]
    fraction: int
    group: int
    source: str
    result: int = 23
    split: tuple[int, ...] = ()
    warpgroup: bool | None = None


def _rows() -> list[tuple[Capability, Rule]]:
    tables: dict[str, list[dict[str, Any]]] = toml_of(text_of(Path(__file__).with_suffix(".toml")))
    rows = []
    for version, table in tables.items():
        major, _, minor = version.partition(".")
        lists: list[dict[str, Any]] = [
            {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()} for row in table
        ]
        rows += [((int(major), int(minor)), Rule(**row)) for row in lists]
    return rows


RULES = _rows()


@cache
def rule(instruction: Instruction, capability: Capability) -> Rule:
    """Return the rule of an instruction on a device: of the highest compute capability up to the device's, else of the lowest."""
    rows = [
        (version, row)
        for version, row in RULES
        if instruction.a in row.operands and row.warpgroup in (None, instruction.warpgroup)
    ]
    return max([one for one in rows if one[0] <= capability] or [min(rows, key=_version)], key=_version)[1]


def _version(row: tuple[Capability, Rule]) -> Capability:
    return row[0]


def groups(instruction: Instruction, own: Rule) -> list[list[int]]:
    """Return the products of each sum, by k."""
    if own.split:
        return [
            [k for k in range(instruction.k) if own.split[k % len(own.split)] == number]
            for number in range(max(own.split) + 1)
        ]
    return [list(range(first, min(first + own.group, instruction.k))) for first in range(0, instruction.k, own.group)]


@dataclass(frozen=True)
class Numbers:
    """Numbers as signed integers and exponents: significand * 2**(exponent - fraction). nan, infinite: where they are none."""

    significand: Values
    exponent: Values
    nan: Values
    infinite: Values


def decoded(bits: Values, name: str) -> Numbers:
    """Return the numbers of a format."""
    form = FLOATS[name]
    whole = bits.astype(np.int64) >> form.unused
    fraction = whole & ((1 << form.fraction) - 1)
    field = whole >> form.fraction & ((1 << form.exponent) - 1)
    negative = whole >> (form.fraction + form.exponent) & 1 == 1
    top = field == (1 << form.exponent) - 1
    last = fraction == (1 << form.fraction) - 1
    nan, infinite = (
        (top & last, np.zeros_like(top)) if name == "e4m3" else (top & (fraction != 0), top & (fraction == 0))
    )
    significand = np.where(field == 0, fraction, fraction | 1 << form.fraction)
    exponent = np.maximum(field, 1) - 1 + form.lowest
    return Numbers(np.where(negative, -significand, significand), exponent, nan, infinite)


def multiply_add(
    instruction: Instruction, capability: Capability, a: Sequence[Values], b: Sequence[Values], c: Sequence[Values]
) -> tuple[Values, ...]:
    """Return the registers of D. a, b, c: registers of the fragments, [..., 32]."""
    m, n, k = instruction.m, instruction.n, instruction.k
    bits, sums = BITS[instruction.a], BITS[instruction.total]
    width = max(32 // bits, 1)
    own_a, own_b, own_c = matrix(a, m, k, bits, width), matrix(b, n, k, bits, width), matrix(c, m, n, sums, 2)
    if instruction.total == "s32":
        x, y = (
            v.astype(np.int64) if t == "u8" else v.view(np.int8).astype(np.int64)
            for v, t in ((own_a, instruction.a), (own_b, instruction.b))
        )
        total = np.einsum("...mk,...nk->...mn", x, y) + own_c.view(np.int32)
        return fragment(total.astype(np.uint32), c, 2)
    if instruction.total == "f64":
        total = own_c.view(np.float64)
        for at in range(k):
            left, right = own_a.view(np.float64)[..., :, None, at], own_b.view(np.float64)[..., None, :, at]
            total = fma(left, right, total)
        return fragment(total, c, 2)
    return fragment(product_sums(instruction, rule(instruction, capability), own_a, own_b, own_c), c, 2)


def product_sums(instruction: Instruction, own: Rule, a: Values, b: Values, c: Values) -> Values:
    """Return the bits of D [..., m, n] from those of A [..., m, k], B [..., n, k] and C."""
    name = instruction.total
    x, y = decoded(a, instruction.a), decoded(b, instruction.b)
    fraction = FLOATS[instruction.a].fraction + FLOATS[instruction.b].fraction
    total = np.zeros_like(c) if own.split else c
    for group in groups(instruction, own):
        total = _sum(own, name, fraction, _operands(x, group, 2), _operands(y, group, 3), decoded(total, name))
    if own.split:
        with np.errstate(all="ignore"):
            added = (total.view(np.float32) + c.view(np.float32)).astype(np.float32)
        total = np.where(np.isnan(added), np.uint32(NANS[name]), added.view(np.uint32))
    return total


def _operands(numbers: Numbers, group: Sequence[int], axis: int) -> Numbers:
    """Return the operands of a group of products, [..., m, n, k], with 1 for n or m."""
    fields = (numbers.significand, numbers.exponent, numbers.nan, numbers.infinite)
    return Numbers(*(np.expand_dims(v[..., list(group)], -axis) for v in fields))


def _sum(own: Rule, name: str, fraction: int, x: Numbers, y: Numbers, c: Numbers) -> Values:
    """Return the bits of sums of products [..., m, n, k] and C."""
    form = FLOATS[name]
    product = x.significand * y.significand
    exponent = np.where(product == 0, NOTHING, x.exponent + y.exponent)
    top = np.maximum(exponent.max(axis=-1), np.where(c.significand == 0, NOTHING, c.exponent))
    shifted = np.abs(product) << (own.fraction - fraction)
    terms = np.sign(product) * (shifted >> np.minimum(top[..., None] - exponent, 63))
    cut = np.minimum(top - c.exponent + form.fraction, 63)
    total = terms.sum(axis=-1) + np.sign(c.significand) * ((np.abs(c.significand) << own.fraction) >> cut)
    bits = _encoded(total, top - own.fraction, form, min(own.result, form.fraction), nearest=name == "f16")
    infinite = x.infinite | y.infinite
    negative = infinite & ((np.sign(x.significand) * np.sign(y.significand)) < 0)
    below = negative.any(axis=-1) | (c.infinite & (c.significand < 0))
    above = (infinite & ~negative).any(axis=-1) | (c.infinite & (c.significand > 0))
    zero = (x.infinite & (y.significand == 0)) | (y.infinite & (x.significand == 0))
    nan = (x.nan | y.nan | zero).any(axis=-1) | c.nan | (above & below)
    full = ((1 << form.exponent) - 1) << form.fraction
    bits = np.where(above, full, np.where(below, full | 1 << (form.bits - 1), bits))
    return np.where(nan, NANS[name], bits).astype(f"u{form.bits // 8}")


def _encoded(total: Values, unit: Values, form: Format, fraction: int, nearest: bool) -> Values:
    """Return the bits of total * 2**unit with `fraction` bits, cut or rounded to the nearest even number."""
    magnitude = np.abs(total)
    position = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64) - 1  # exact below 2**53
    exponent = np.maximum(unit + position, form.lowest)
    shift = np.clip(exponent - fraction - unit, -63, 63)
    significand = np.where(shift > 0, magnitude >> np.maximum(shift, 0), magnitude << np.maximum(-shift, 0))
    if nearest:
        rest = magnitude - (significand << np.maximum(shift, 0))
        half = np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 1)
        significand = significand + ((shift > 0) & ((rest > half) | ((rest == half) & (significand & 1 == 1))))
    bits = (significand + ((exponent - form.lowest) << fraction)) << (form.fraction - fraction)
    bits = np.where(magnitude == 0, 0, np.minimum(bits, ((1 << form.exponent) - 1) << form.fraction))
    return np.where((bits != 0) & (total < 0), bits | 1 << (form.bits - 1), bits)


def function_of(instruction: Instruction) -> str:
    """Return the name of the function of `maths.tensor_cores` for an instruction."""
    return {"f64": "mma_doubles", "s32": "mma_integers"}.get(instruction.total, "mma_floats")


def parameters(instruction: Instruction, capability: Capability) -> tuple[str, tuple[int, ...]]:
    """Return the function of `maths.tensor_cores` for an instruction, and its numbers."""
    name = function_of(instruction)
    if instruction.total == "f64":
        return name, (instruction.m, instruction.k)
    if instruction.total == "s32":
        return name, (instruction.m, instruction.k, instruction.a == "s8", instruction.b == "s8")
    own, form, other = rule(instruction, capability), FLOATS[instruction.a], FLOATS[instruction.b]
    total = FLOATS[instruction.total]
    sums = groups(instruction, own)
    order = [at for group in sums for at in group]
    return name, (
        instruction.m, instruction.k, (32 // form.bits).bit_length() - 1, form.unused, form.fraction, form.exponent,
        instruction.a != "e4m3", own.fraction, len(sums[0]), min(own.result, total.fraction), total.bits, bool(own.split),
        other.fraction, other.exponent, instruction.b != "e4m3",
        *(order.index(at) for at in range(instruction.k)),
    )  # fmt: skip
