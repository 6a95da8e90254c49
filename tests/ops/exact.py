"""Reference for the op table: operations on single numbers in exact Python arithmetic."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from simtbed.language.types import BOOL, F64, SCALARS, Scalar

from tests.ops import exact_maths


def wrap(value: int, type: Scalar) -> int:
    """Return the value modulo 2**bits, in the range of the type."""
    value &= (1 << type.bits) - 1
    return value - (1 << type.bits) if type.kind == "int" and value >> (type.bits - 1) else value


_FORMATS = {"f16": (11, -24, 15), "bf16": (8, -133, 127), "f32": (24, -149, 127), "f64": (53, -1074, 1023)}
"""Bits of the significand; exponent of the smallest subnormal; exponent of the largest number."""


def rounded(value: Fraction, type: Scalar) -> float:
    """Return the nearest float of a type, ties to even; overflow to infinity."""
    if value == 0:
        return 0.0
    mantissa, lowest, highest = _FORMATS[type.name]
    exponent = max(_floor_log2(abs(value)) - mantissa + 1, lowest)
    scaled = value / Fraction(2) ** exponent
    whole = round(scaled)  # Python rounds half to even
    if whole == 0:
        return -0.0 if value < 0 else 0.0
    result = Fraction(whole) * Fraction(2) ** exponent
    if abs(result) >= Fraction(2) ** (highest + 1):
        return math.copysign(math.inf, float(whole))
    return float(result)


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def _float_op(exact: Callable[..., Fraction], plain: Callable[..., float]) -> Callable[..., Any]:
    """Return an operation: finite operands in fractions; infinities, NaN and signed zeros by IEEE 754, through double."""

    def scalar_result(type: Scalar, *args: float) -> float:
        if len(args) == 3 and math.isfinite(args[0]) and math.isfinite(args[1]) and not math.isfinite(args[2]):
            return args[2]  # the product of an fma does not overflow before the sum
        if not all(math.isfinite(a) for a in args):
            with np.errstate(all="ignore"):
                return float(plain(*(np.float64(a) for a in args)))
        try:
            value = exact(*(Fraction(a) for a in args))
        except ZeroDivisionError:
            with np.errstate(all="ignore"):
                return float(plain(*(np.float64(a) for a in args)))
        if value == 0:
            with np.errstate(all="ignore"):
                sign = float(plain(*(np.float64(a) for a in args)))
            return math.copysign(0.0, sign) if sign == 0 or all(a != 0 for a in args) else 0.0
        return rounded(value, type)

    return scalar_result


_FLOATS: dict[str, Callable[..., Any]] = {
    "add": _float_op(lambda a, b: a + b, lambda a, b: a + b),
    "sub": _float_op(lambda a, b: a - b, lambda a, b: a - b),
    "mul": _float_op(lambda a, b: a * b, lambda a, b: a * b),
    "fdiv": _float_op(lambda a, b: a / b, lambda a, b: a / b),
    "fma": _float_op(lambda a, b, c: a * b + c, lambda a, b, c: a * b + c),
}


def _precise(name: str) -> Callable[..., Any]:
    functions = {"sqrt": mpmath.sqrt, "rsqrt": lambda x: 1 / mpmath.sqrt(x)}

    def scalar_result(type: Scalar, x: float) -> float:
        if math.isnan(x) or x < 0:
            return math.nan
        if x == 0:
            return {"sqrt": x, "rsqrt": math.copysign(math.inf, x)}[name]
        if math.isinf(x):
            return {"rsqrt": 0.0}.get(name, math.inf)
        with mpmath.workdps(60):
            value = functions[name](mpmath.mpf(x))
            return rounded(
                Fraction(int(mpmath.floor(mpmath.ldexp(value, 2000)))) / Fraction(2) ** 2000 if value else Fraction(0),
                type,
            )

    return scalar_result


_FLOATS |= {name: _precise(name) for name in ("sqrt", "rsqrt")}

_INTEGERS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b,
    "div": lambda a, b: int(Fraction(a, b)), "rem": lambda a, b: a - b * int(Fraction(a, b)),
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "invert": lambda a: ~a,
    "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b, "min": min, "max": max, "abs": abs,
    "viaddmax": lambda a, b, c: max(a + b, c), "vimax3": max,
}  # fmt: skip

_ANY: dict[str, Callable[..., Any]] = {
    "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "select": lambda c, a, b: a if c else b,
}  # fmt: skip

_BOOLS: dict[str, Callable[..., bool]] = {
    "not": lambda a: not a, "both": lambda a, b: a and b, "either": lambda a, b: a or b,
    "and": lambda a, b: a and b, "or": lambda a, b: a or b, "xor": lambda a, b: a != b,
}  # fmt: skip


def _extreme(name: str, a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return min(a, b) if name == "min" else max(a, b)


def _cast(source: Scalar, target: Scalar, x: Any) -> Any:
    if target is BOOL:
        return bool(x != 0)
    if target.is_float:
        if isinstance(x, float):
            return x if not math.isfinite(x) or x == 0 else rounded(Fraction(x), target)
        return rounded(Fraction(int(x)), target)
    if not isinstance(x, float):
        return wrap(int(x), target)
    low, high = (target if target.size >= 4 else SCALARS["i32" if target.kind == "int" else "u32"]).range
    if math.isnan(x):
        whole = 0 if source is not F64 and target.size < 8 else 1 << (max(32, target.bits) - 1)
    else:
        whole = high if x == math.inf else low if x == -math.inf else min(max(int(x), low), high)
    return wrap(whole, target)


def _bits(x: Any, source: Scalar, target: Scalar) -> Any:
    codes = {"i16": "h", "u16": "H", "f16": "e", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}
    if "bf16" in (source.name, target.name):  # the upper half of an f32
        if source.name == "bf16":
            return struct.unpack("<" + codes[target.name], struct.pack("<f", x)[2:])[0]
        return struct.unpack("<f", bytes(2) + struct.pack("<" + codes[source.name], x))[0]
    return struct.unpack("<" + codes[target.name], struct.pack("<" + codes[source.name], x))[0]


def _mulhi(type: Scalar, a: int, b: int) -> int:
    return a * b >> type.bits


def _reversed(type: Scalar, x: int) -> int:
    return int(format(x & ((1 << type.bits) - 1), f"0{type.bits}b")[::-1], 2)


def _permuted(type: Scalar, a: int, b: int, selector: int) -> int:
    operand_bytes = [*a.to_bytes(4, "little"), *b.to_bytes(4, "little")]
    return int.from_bytes([operand_bytes[selector >> 4 * n & 7] for n in range(4)], "little")


def _dot(type: Scalar, a: int, b: int, c: int) -> int:
    code = "<4b" if type.kind == "int" else "<4B"
    left, right = (struct.unpack(code, (x & 0xFFFFFFFF).to_bytes(4, "little")) for x in (a, b))
    return c + sum(int(x) * int(y) for x, y in zip(left, right, strict=True))


def _funnel(left: bool, clamped: bool) -> Callable[..., int]:
    def scalar_result(type: Scalar, low: int, high: int, count: int) -> int:
        shift = min(count, 32) if clamped else count % 32
        both = high << 32 | low
        return both << shift >> 32 if left else both >> shift

    return scalar_result


_BITS: dict[str, Callable[..., int]] = {
    "brev": _reversed, "mulhi": _mulhi, "byte_perm": _permuted, "dp4a": _dot,
    "funnel_shift_left": _funnel(True, False), "funnel_shift_right": _funnel(False, False),
    "funnel_shift_left_clamped": _funnel(True, True), "funnel_shift_right_clamped": _funnel(False, True),
}  # fmt: skip


def evaluate(name: str, type: Scalar, *args: Any) -> Any:
    """Return the result of an operation on Python numbers inside its domain."""
    if name in exact_maths.NAMES:
        exact = exact_maths.evaluate(name, *args)
        return rounded(exact, type) if isinstance(exact, Fraction) else exact
    if name.startswith("cast_"):
        return _cast(type, SCALARS[name[5:]], args[0])
    if name.startswith("as_"):
        return _bits(args[0], type, SCALARS[name[3:]])
    if name == "popcount":
        return (args[0] & ((1 << type.bits) - 1)).bit_count()
    if name == "clz":
        return type.bits - (args[0] & ((1 << type.bits) - 1)).bit_length()
    if name == "ffs":
        return (args[0] & -args[0]).bit_length()
    if name in _BITS:
        return wrap(_BITS[name](type, *args), type)
    if name in _ANY:
        return _ANY[name](*args)
    if type is BOOL:
        return _BOOLS[name](*args)
    if type.is_float:
        if name in ("min", "max"):
            return _extreme(name, *args)
        if name in ("neg", "abs"):
            return -args[0] if name == "neg" else math.fabs(args[0])
        return _FLOATS[name](type, *args)
    return wrap(_INTEGERS[name](*args), type)
