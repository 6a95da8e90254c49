"""Opcode rows of half precision: float16 and bfloat16, two in a register.

A result is rounded once from the exact one: a float64 that is rounded to odd keeps the bits that the last rounding needs.
NaN is 0x7fff.
"""

import numpy as np

from .floating import ORDERED, bits32, extreme, holds, int_error, integer_operand, sum_error
from .integer import COMPARISONS, Values, combine, i64, u32, u64
from .operands import Decoded
from .rows import Row
from .traced import contiguous

f32, f64 = np.float32, np.float64
_BRAIN = ("BF16", "BF16_V2", "BF16x2")


def _is_brain(op: Decoded) -> bool:
    return not op.flags.isdisjoint(_BRAIN)


def _halves(op: Decoded, value: Values) -> list[Values]:
    """Return float64 of the two numbers of a register, the lower one first."""
    if _is_brain(op):
        return [contiguous(bits).view(f32).astype(f64) for bits in (value << u32(16), value & u32(0xFFFF0000))]
    return [(value >> u32(at)).astype(np.uint16).view(np.float16).astype(f64) for at in (0, 16)]


def _to_odd(value: Values, error: Values) -> Values:
    """Round to odd. value: rounded to nearest. error: of the sign of the exact value less `value`."""
    kind = u64 if value.dtype == f64 else u32
    bits = contiguous(value).view(kind)
    away = (error < 0) != np.signbit(value)
    return contiguous(np.where(error != 0, bits - away.astype(kind) | kind(1), bits)).view(value.dtype)


def _sum(a: Values, b: Values) -> Values:
    """Return a + b, rounded to odd."""
    with np.errstate(all="ignore"):
        total = a + b
        error = sum_error(a, b, total)
        return _to_odd(total, np.where(np.isfinite(error), error, 0.0))


def _rounded(op: Decoded, value: Values) -> Values:
    """Return the bits of a float64 in half precision, uint32."""
    with np.errstate(all="ignore"):
        if "SAT" in op.flags:
            value = np.where(np.isnan(value), 0.0, np.clip(value, 0.0, 1.0))
        if "RELU" in op.flags:
            value = np.where(value < 0, 0.0, value)
        if _is_brain(op):
            single = value.astype(f32)
            error = np.where(np.isfinite(value), value - single.astype(f64), 0.0)
            bits = contiguous(_to_odd(single, error)).view(u32)
            bits = bits + u32(0x7FFF) + (bits >> u32(16) & u32(1)) >> u32(16)
        else:
            bits = contiguous(value.astype(np.float16)).view(np.uint16).astype(u32)
    return np.where(np.isnan(value), u32(0x7FFF), bits)


def _packed(op: Decoded, *values: Values) -> Values:
    """Return two numbers in a register, the lower one first."""
    lower, upper = (_rounded(op, value) for value in values)
    return lower | upper << u32(16)


def _multiply_add(op: Decoded, a: Values, b: Values, c: Values) -> Values:
    with np.errstate(all="ignore"):
        return _packed(op, *(_sum(x * y, z) for x, y, z in zip(*(_halves(op, v) for v in (a, b, c)), strict=True)))


def add(op: Decoded, a: Values, b: Values) -> Values:
    """Return the sums of two pairs."""
    return _packed(op, *map(_sum, _halves(op, a), _halves(op, b)))


def _multiply(op: Decoded, a: Values, b: Values) -> Values:
    with np.errstate(all="ignore"):
        return _packed(op, *(x * y for x, y in zip(_halves(op, a), _halves(op, b), strict=True)))


def _extremes(op: Decoded, a: Values, b: Values, least: Values) -> Values:
    return _packed(op, *(extreme(x, y, least) for x, y in zip(_halves(op, a), _halves(op, b), strict=True)))


def _holds(op: Decoded, a: Values, b: Values) -> list[Values]:
    """Return the comparisons of the lower and the upper numbers."""
    name = next(one for one in op.modifiers if one.removesuffix("U") in (*COMPARISONS, "NAN", "NUM"))
    return [holds(name, x, y) for x, y in zip(_halves(op, a), _halves(op, b), strict=True)]


def _compare(op: Decoded, a: Values, b: Values, other: Values) -> tuple[Values, Values]:
    """Return the comparisons of the lower and the upper numbers; of H_AND, that both hold, and its complement."""
    lower, upper = _holds(op, a, b)
    if "H_AND" in op.flags:
        return combine(op, lower & upper, other)
    return combine(op, lower, other)[0], combine(op, upper, other)[0]


def _set(op: Decoded, a: Values, b: Values, other: Values) -> Values:
    """Return 1.0 or 0.0 for each comparison, without BF all bits or none."""
    one = u32(0xFFFF) if "BF" not in op.flags else u32(0x3F80) if _is_brain(op) else u32(0x3C00)
    lower, upper = (np.where(combine(op, each, other)[0], one, u32(0)) for each in _holds(op, a, b))
    return lower | upper << u32(16)


# ------------------------------------------------------------------ conversions
def _to_float(op: Decoded, a: Values, b: Values) -> Values:
    return bits32((_halves(op, a)[0] + _halves(op, b)[0]).astype(f32))


def _pack_floats(op: Decoded, upper: Values, lower: Values) -> Values:
    return _packed(op, lower.astype(f64), upper.astype(f64))


def _narrow(op: Decoded, a: Values) -> Values:
    return _rounded(op, a.astype(f64))


def _from_integer(op: Decoded, a: Values) -> Values:
    number = integer_operand(op, a)
    value = number.astype(f64)
    error = int_error(number, value) if number.dtype in (i64, u64) else np.zeros_like(value)
    return _rounded(op, _to_odd(value, error))


_PACKED = ("F16 F32 PACK_AB", "BF16 F32 PACK_AB", "BF16 PACK_AB", "PACK_AB")
ROWS = [
    Row("HFMA2", "R h h h", _multiply_add, "MMA SAT RELU BF16_V2"),
    Row("HADD2", "R h h", _to_float, required="F32"),
    Row("HADD2", "R h h", add, "SAT BF16_V2"),
    Row("HMUL2", "R h h", _multiply, "SAT BF16_V2"),
    Row("HMNMX2", "R h h p", _extremes, "BF16_V2"),
    Row("HSETP2", "P P h h p", _compare, f"{ORDERED} H_AND BF16_V2"),
    Row("HSET2", "R h h p", _set, f"{ORDERED} BF BF16_V2"),
    *(Row("F2FP", "R f f", _pack_floats, "RELU", kind) for kind in _PACKED),
    *(Row("F2F", f"R {letter}", _narrow, required=f"{kind} {source}")
      for kind in ("F16", "BF16") for letter, source in (("f", "F32"), ("d", "F64"))),
    *(Row("I2F", "R l", _from_integer, required=f"{kind} {source}") for kind in ("F16", "BF16") for source in ("S64", "U64")),
    *(Row("I2F", "R i", _from_integer, "U32 U16 S16 U8 S8", kind) for kind in ("F16", "BF16")),
    *(Row("I2FP", "R i", _from_integer, "S32 U32", kind) for kind in ("F16", "BF16")),
]  # fmt: skip
"""Rows of a form with required modifiers precede the plain form."""
