"""Opcode rows of floating-point arithmetic and conversions.

Results have the bits of the hardware: NaN is 0x7fffffff for float32, sums and products are rounded once in the
instruction's mode, FTZ flushes denormal operands and results.
"""

import numpy as np

from ..ir.updates import without_subnormal
from .integer import COMPARISONS, Values, combine, i32, i64, low, signed, u32, u64, unsigned
from .operands import Decoded
from .rows import Row
from .traced import contiguous, fma, special_function

f32, f64 = np.float32, np.float64
NAN32, NAN64 = u32(0x7FFFFFFF), u64(0xFFF8000000000000)
_SMALL_PRODUCT, _NEAR, _SCALE = f64(2.0**-960), f64(2.0**-400), f64(2.0**600)
_ROUNDINGS = {"RM": -1, "RP": 1, "RZ": 0}
_INTEGER_TYPES = {f"{sign}{bits}": (sign == "S", bits) for sign in "SU" for bits in (8, 16, 32, 64)}


def bits32(value: Values) -> Values:
    """Return the bits of float32 values, with the hardware's NaN."""
    return np.where(np.isnan(value), NAN32, contiguous(value).view(u32))


def bits64(value: Values) -> Values:
    """Return the bits of float64 values, with the hardware's NaN."""
    return np.where(np.isnan(value), NAN64, contiguous(value).view(u64))


def flush(op: Decoded, *values: Values) -> tuple[Values, ...]:
    """Return the values, with FTZ without denormal ones."""
    if "FTZ" not in op.flags:
        return values
    return tuple(map(without_subnormal, values))


def _step(value: Values, error: Values, direction: int) -> Values:
    """Round in a direction. value: rounded to nearest. error: exact value less `value`. direction: 0 is toward zero."""
    toward = np.where(value > 0, -1, np.where(value < 0, 1, 0)) if direction == 0 else direction
    wrong = np.isfinite(value) & (error * toward > 0)
    return np.where(wrong, np.nextafter(value, value.dtype.type(np.inf) * toward, dtype=value.dtype), value)


def sum_error(a: Values, b: Values, total: Values) -> Values:
    """Return a + b - total exactly (Knuth's TwoSum)."""
    rest = total - a
    return (a - (total - rest)) + (b - rest)


def fused(op: Decoded, a: Values, b: Values, c: Values) -> Values:
    """Return a * b + c, rounded once in the mode of the instruction."""
    direction = next((_ROUNDINGS[name] for name in op.modifiers if name in _ROUNDINGS), None)
    with np.errstate(all="ignore"):
        value = fma(a, b, c)
        if direction is None:
            return value
        if value.dtype == f32:
            product = a.astype(f64) * b.astype(f64)
            exact = product + c.astype(f64)
            error = sum_error(product, c.astype(f64), exact)
            return _step(value, (exact - value) + error, direction)
        # The lower half of a product has its bits only in the range of normal numbers.
        small = np.abs(a * b) < _SMALL_PRODUCT
        near = small & (np.abs(c) < _NEAR)
        scale = np.where(near, _SCALE, f64(1))
        a_smaller = np.abs(a) < np.abs(b)
        a, b = np.where(a_smaller, a * scale, a), np.where(a_smaller, b, b * scale)
        c, scaled = c * scale, value * scale
        product = a * b
        product_low = fma(a, b, -product)
        first = c + product_low
        second = product + first
        error = (second - scaled) + sum_error(product, first, second) + sum_error(c, product_low, first)
        tiny = np.where((a == 0) | (b == 0), f64(0), np.copysign(f64(1), a) * np.copysign(f64(1), b))
        error = np.where((small & ~near) | (product == 0), tiny, error)  # c is the nearest number
        return _step(value, np.where(np.isfinite(error), error, 0), direction)


def _multiply_add(op: Decoded, a: Values, b: Values, c: Values) -> Values:
    return _finish(op, fused(op, *flush(op, a, b, c)))


def _add(op: Decoded, a: Values, b: Values) -> Values:
    a, b = flush(op, a, b)
    if _ROUNDINGS.keys() & op.flags:
        return _finish(op, fused(op, a, a.dtype.type(1) + np.zeros_like(a), b))
    with np.errstate(all="ignore"):
        return _finish(op, a + b)


def _multiply(op: Decoded, a: Values, b: Values) -> Values:
    a, b = flush(op, a, b)
    if _ROUNDINGS.keys() & op.flags:
        zero = np.copysign(a.dtype.type(0), np.copysign(1, a) * np.copysign(1, b))
        return _finish(op, fused(op, a, b, zero))
    with np.errstate(all="ignore"):
        return _finish(op, a * b)


def _finish(op: Decoded, value: Values) -> Values:
    """Return the bits of a result, flushed and saturated as the instruction says."""
    if value.dtype == f64:
        return bits64(value)
    (value,) = flush(op, value)
    if "SAT" in op.flags:
        value = np.where(np.isnan(value), f32(0), np.clip(value, f32(0), f32(1)))
    return bits32(value)


def extreme(a: Values, b: Values, least: Values) -> Values:
    """Return the smaller number where `least`, else the larger one; -0 is below 0, and NaN is none."""
    a, b = np.broadcast_arrays(a, b)
    a_first = (a < b) | ((a == b) & np.signbit(a))
    value = np.where(least, np.where(a_first, a, b), np.where(a_first, b, a))
    return np.where(np.isnan(a), b, np.where(np.isnan(b), a, value))


def _extreme(op: Decoded, a: Values, b: Values, least: Values) -> Values:
    a, b = flush(op, a, b)
    return bits32(extreme(a, b, least))


def holds(name: str, a: Values, b: Values) -> Values:
    """Return whether a comparison holds. name: of the modifier; with a final U it also holds for NaN."""
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("NAN", "NUM"):
        return unordered if name == "NAN" else ~unordered
    if name[-1] == "U":
        return COMPARISONS[name[:-1]](a, b) | unordered
    return COMPARISONS[name](a, b) & ~unordered


def _compare(op: Decoded, a: Values, b: Values, other: Values) -> tuple[Values, Values]:
    """Compare. MAX and MIN: see `_order`."""
    return combine(op, holds(op.modifiers[0], *flush(op, a, b)), other)


def _order(op: Decoded, a: Values, b: Values, other: Values) -> tuple[Values, Values]:
    """Return whether a is the larger (smaller) one or b is NaN, and whether both are NaN. -0 is below 0."""
    equal = a == b
    first = (a > b) | equal & ~np.signbit(a) if "MAX" in op.flags else (a < b) | equal & np.signbit(a)
    return first | ~np.isnan(a) & np.isnan(b), np.isnan(a) & np.isnan(b)


def _select(op: Decoded, a: Values, b: Values, first: Values) -> Values:
    return np.where(first, a.view(u32), b.view(u32))


def _division_check(op: Decoded, a: Values, b: Values) -> Values:
    """Return whether the fast path of a division is not exact for these operands."""
    ea, eb = ((contiguous(v).view(u32) >> u32(23) & u32(255)).astype(i64) for v in (a, b))
    return (eb == 0) | (eb >= 253) | (ea == 255) | (ea <= 24) | (np.abs(ea - eb) >= 126)


def _special_function(op: Decoded, a: Values) -> Values:
    return contiguous(special_function(f"mufu_{op.modifiers[0].lower()}", a)).view(u32)


def _special_function_high(op: Decoded, a: Values) -> Values:
    words = special_function(f"mufu_{op.modifiers[0].lower()}", (a.astype(u64) << u64(32)).view(f64))
    return (contiguous(words).view(u64) >> u64(32)).astype(u32)


# ------------------------------------------------------------------ conversions
def _integer_type(op: Decoded) -> tuple[bool, int]:
    return next((_INTEGER_TYPES[name] for name in op.modifiers if name in _INTEGER_TYPES), (True, 32))


def integer_operand(op: Decoded, a: Values) -> Values:
    """Return the integer that an instruction converts: of its type, in the lower bits of an operand."""
    is_signed, bits = _integer_type(op)
    if bits < 32:
        a = a << u32(32 - bits)
        return signed(a) >> i32(32 - bits) if is_signed else a >> u32(32 - bits)
    return signed(a) if is_signed else a


def _integer_to_float(op: Decoded, a: Values) -> Values:
    """Convert an integer to float32, rounded in the mode of the instruction, or to float64."""
    number = integer_operand(op, a)
    if "F64" in op.flags:
        return unsigned(number.astype(f64))
    value = number.astype(f32)
    direction = next((_ROUNDINGS[name] for name in op.modifiers if name in _ROUNDINGS), None)
    if direction is not None:
        exact = number.astype(f64)  # 64-bit integers: compared where both are integers
        error = exact - value if _integer_type(op)[1] <= 32 else int_error(number, value)
        value = _step(value, error, direction)
    return unsigned(value)


def int_error(number: Values, value: Values) -> Values:
    """Return the sign of number - value for 64-bit integers."""
    top = value.astype(f64) >= 2.0 ** (63 if number.dtype == i64 else 64)
    near = np.where(top, 0, value).astype(number.dtype)
    return np.where(top, -1.0, (number > near).astype(f64) - (number < near))


_TO_INTEGER = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}


def _round(op: Decoded, value: Values) -> Values:
    return next((_TO_INTEGER[name] for name in op.modifiers if name in _TO_INTEGER), np.rint)(value)


def _float_to_integer(op: Decoded, a: Values) -> Values:
    """Convert with saturation; NaN is 0, of a conversion from or to 64 bits only the top bit."""
    is_signed, bits = _integer_type(op)
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    (a,) = flush(op, a)
    value = _round(op, a.astype(f64))
    with np.errstate(all="ignore"):
        if bits == 32:
            number = low(np.clip(np.nan_to_num(value, nan=0.0), least, most).astype(i64).view(u64) & u64(0xFFFFFFFF))
            return np.where(np.isnan(value), u32(1 << 31), number) if "F64" in op.flags else number
        number = value.astype(i64).view(u64) if is_signed else value.astype(u64)
        number = np.where(value >= float(most), u64(most), np.where(value <= float(least), u64(least % 2**64), number))
        return np.where(np.isnan(value), u64(1 << 63), number)


def _round32(op: Decoded, a: Values) -> Values:
    return bits32(_round(op, a))


def _round64(op: Decoded, a: Values) -> Values:
    return bits64(_round(op, a))


def _widen(op: Decoded, a: Values) -> Values:
    return bits64(a.astype(f64))


def _narrow(op: Decoded, a: Values) -> Values:
    with np.errstate(all="ignore"):
        return bits32(a.astype(f32))


_SPECIAL_FUNCTIONS = ("RCP", "RSQ", "SQRT", "EX2", "LG2", "SIN", "COS", "TANH")
_MODES = "RM RP RZ"
ORDERED = "EQ NE LT LE GT GE EQU NEU LTU LEU GTU GEU NAN NUM AND OR XOR"
ROWS = [
    Row("FADD", "R f f", _add, f"FTZ SAT {_MODES}"),
    Row("FMUL", "R f f", _multiply, f"FTZ SAT {_MODES}"),
    Row("FFMA", "R f f f", _multiply_add, f"FTZ SAT {_MODES}"),
    Row("FMNMX", "R f f p", _extreme, "FTZ"),
    Row("FSEL", "R f f p", _select),
    Row("FSETP", "P P f f p", _compare, f"{ORDERED} FTZ"),
    Row("FCHK", "P f f", _division_check),
    Row("DADD", "D d d", _add, _MODES),
    Row("DMUL", "D d d", _multiply, _MODES),
    Row("DFMA", "D d d d", _multiply_add, _MODES),
    Row("DSETP", "P P d d p", _order, "", "MAX AND"),
    Row("DSETP", "P P d d p", _order, "", "MIN AND"),
    Row("DSETP", "P P d d p", _compare, ORDERED),
    *(Row("MUFU", "R i", _special_function_high, required=name) for name in ("RCP64H", "RSQ64H")),
    *(Row("MUFU", "R f", _special_function, required=name) for name in _SPECIAL_FUNCTIONS),
    Row("I2F", "D l", _integer_to_float, "S64 U64", "F64 S64"),
    Row("I2F", "D l", _integer_to_float, "", "F64 U64"),
    Row("I2F", "D i", _integer_to_float, "U32 U16 S16 U8 S8", "F64"),
    Row("I2F", "R l", _integer_to_float, _MODES, "S64"),
    Row("I2F", "R l", _integer_to_float, _MODES, "U64"),
    Row("I2F", "R i", _integer_to_float, f"U32 U16 S16 U8 S8 {_MODES}"),
    Row("I2FP", "R i", _integer_to_float, f"F32 S32 U32 {_MODES}"),
    *(
        Row("F2I", f"{to} {source}", _float_to_integer, f"FTZ NTZ {modes} {types}", required)
        for modes in ("TRUNC FLOOR CEIL",)
        for to, source, types, required in (
            ("D", "d", "", "S64 F64"), ("D", "d", "", "U64 F64"), ("R", "d", "U32", "F64"),
            ("D", "f", "", "S64"), ("D", "f", "", "U64"), ("R", "f", "U32", ""),
        )
    ),
    Row("FRND", "D d", _round64, "TRUNC FLOOR CEIL", "F64"),
    Row("FRND", "R f", _round32, "TRUNC FLOOR CEIL"),
    Row("F2F", "R d", _narrow, required="F32 F64"),
    Row("F2F", "D f", _widen, required="F64 F32"),
]  # fmt: skip
"""Rows of a form with required modifiers precede the plain form."""
