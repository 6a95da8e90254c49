"""Functions of NVIDIA's libdevice, and their rows in the op table.

Functions without a row, such as the Bessel functions and directed rounding of arithmetic, are refused by name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..ir import nodes as ir
from ..language.types import F32, F64, I32, I64, U32, U64, Scalar
from .arithmetic import bitcast, cast, constant, operation, selected, signed, unsigned
from .types import UnsupportedError

Function = Callable[..., ir.Expr]

_FLOAT_ROWS = {
    "fabs": "abs", "fmax": "max", "fmin": "min", "nearbyint": "rint",
    **{name: name for name in (
        "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "exp", "exp2",
        "exp10", "expm1", "log", "log2", "log10", "log1p", "cbrt", "rcbrt", "erf", "erfc", "normcdf", "tgamma", "lgamma",
        "pow", "atan2", "hypot", "fmod", "remainder", "copysign", "floor", "ceil", "trunc", "rint", "round", "sqrt",
        "rsqrt", "fma",
    )},
}  # fmt: skip
"""Rows by the name of the function of a double; that of a float ends in f."""
_FAST = {
    "expf": "fast_exp", "exp10f": "fast_exp10", "logf": "fast_log", "log2f": "fast_log2", "log10f": "fast_log10",
    "sinf": "fast_sin", "cosf": "fast_cos", "tanf": "fast_tan", "powf": "fast_pow", "fdividef": "fast_divide",
}  # fmt: skip
_ROUNDED = {"add": "add", "sub": "sub", "mul": "mul", "div": "fdiv", "sqrt": "sqrt"}
"""Rows of arithmetic that rounds to the nearest, by the name without the letter of the type and `_rn`."""


def _row(name: str) -> Function:
    return lambda *args: operation(name, *args)


def _unsigned_row(name: str) -> Function:
    return lambda *args: signed(operation(name, *map(unsigned, args)))


def _reciprocal(value: ir.Expr) -> ir.Expr:
    assert isinstance(value.type, Scalar)
    return operation("fdiv", constant(1, value.type, value.span), value)


def _predicate(name: str) -> Function:
    return lambda value: cast(operation(name, value), I32)


def _positive_difference(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """fdim: a - b, or +0 where a <= b; a NaN operand gives a NaN."""
    assert isinstance(a.type, Scalar)
    return selected(operation("le", a, b), constant(0, a.type, a.span), operation("sub", a, b))


def _next_after(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    """nextafter: the neighbour of a towards b; of equal numbers the second, of a NaN a NaN."""
    assert isinstance(a.type, Scalar)
    span, integer = a.span, I32 if a.type is F32 else I64
    zero, bits = constant(0, a.type, span), bitcast(a, integer)
    away = operation("eq", operation("lt", a, b), operation("gt", a, zero))
    step = selected(away, constant(1, integer, span), constant(-1, integer, span))
    smallest = operation("copysign", bitcast(constant(1, integer, span), a.type), b)
    near = selected(operation("eq", a, zero), smallest, bitcast(operation("add", bits, step), a.type))
    ordered = operation("both", operation("eq", a, a), operation("eq", b, b))
    return selected(ordered, selected(operation("eq", a, b), b, near), operation("add", a, b))


def _power(base: ir.Expr, exponent: ir.Expr) -> ir.Expr:
    """powi: an integer exponent, exact as a float of the same function."""
    assert isinstance(base.type, Scalar)
    return cast(operation("pow", cast(base, F64), cast(exponent, F64)), base.type)


def _to_integer(step: str, type: Scalar) -> Function:
    return lambda value: cast(operation(step, value), type)


def _saturated(value: ir.Expr) -> ir.Expr:
    """saturatef: between 0 and 1; a NaN becomes 0."""
    zero, unit = constant(0, F32, value.span), constant(1, F32, value.span)
    return operation("min", operation("max", value, zero), unit)


def _low_product(is_signed: bool) -> Function:
    """mul24: the product of the low 24 bits; those of umul24 are unsigned."""

    def product(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        span = a.span
        eight = constant(8, I32, span)
        factors = [signed(operation("shr", *_shifted(x, eight, is_signed))) for x in (a, b)]
        return operation("mul", *factors)

    return product


def _shifted(value: ir.Expr, count: ir.Expr, is_signed: bool) -> tuple[ir.Expr, ir.Expr]:
    left = operation("shl", value, count)
    return (left if is_signed else unsigned(left)), count


def _absolute_difference(is_signed: bool) -> Function:
    """sad: |a - b| + c."""

    def distance(a: ir.Expr, b: ir.Expr, c: ir.Expr) -> ir.Expr:
        x, y = (a, b) if is_signed else (unsigned(a), unsigned(b))
        larger = selected(operation("gt", x, y), operation("sub", a, b), operation("sub", b, a))
        return operation("add", larger, c)

    return distance


def _average(is_signed: bool, up: bool) -> Function:
    """hadd: the mean of two integers, computed with 64 bits; rhadd rounds up."""

    def mean(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        x, y = (cast(v if is_signed else unsigned(v), I64) for v in (a, b))
        total = operation("add", x, y)
        total = operation("add", total, constant(int(up), I64, a.span))
        return cast(operation("shr", total, constant(1, I32, a.span)), I32)

    return mean


def _permuted(a: ir.Expr, b: ir.Expr, selector: ir.Expr) -> ir.Expr:
    return signed(operation("byte_perm", unsigned(a), unsigned(b), unsigned(selector)))


def _bits(type: Scalar) -> Function:
    return lambda value: bitcast(value, type)


def _half_of_double(high: bool) -> Function:
    def word(value: ir.Expr) -> ir.Expr:
        bits = bitcast(value, I64)
        return cast(operation("shr", bits, constant(32, I32, value.span)) if high else bits, I32)

    return word


def _double_of_halves(high: ir.Expr, low: ir.Expr) -> ir.Expr:
    upper = operation("shl", cast(high, I64), constant(32, I32, high.span))
    return bitcast(operation("or", upper, cast(unsigned(low), I64)), F64)


def _scaled(value: ir.Expr, exponent: ir.Expr) -> ir.Expr:
    return operation("ldexp", exponent, value)


def _functions() -> Mapping[str, Function]:
    table: dict[str, Function] = {}
    for name, row in _FLOAT_ROWS.items():
        table |= dict.fromkeys((name, f"{name}f"), _row(row))
    table |= {f"fast_{name}": _row(row) for name, row in _FAST.items()}
    table["rsqrtf"] = _row("fast_rsqrt")  # one instruction
    for name, row in _ROUNDED.items():
        table |= dict.fromkeys((f"f{name}_rn", f"d{name}_rn"), _row(row))
    for suffix in ("", "f"):
        table |= {
            f"fdim{suffix}": _positive_difference, f"nextafter{suffix}": _next_after, f"powi{suffix}": _power, f"ldexp{suffix}": _scaled,
            f"scalbn{suffix}": _scaled, f"lrint{suffix}": _to_integer("rint", I64),
            f"llrint{suffix}": _to_integer("rint", I64), f"lround{suffix}": _to_integer("round", I64),
            f"llround{suffix}": _to_integer("round", I64), f"fma{suffix}_rn": _row("fma"),
        }  # fmt: skip
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        table |= dict.fromkeys((f"{name}f", f"{name}d"), _predicate(name))
    return MappingProxyType(table | _INTEGERS)


_INTEGERS: dict[str, Function] = {
    **{name: _row("abs") for name in ("abs", "llabs")},
    **{f"{p}{name}": _row(name) for name in ("min", "max") for p in ("", "ll")},
    **{f"{p}{name}": _unsigned_row(name) for name in ("min", "max") for p in ("u", "ull")},
    "mulhi": _row("mulhi"), "mul64hi": _row("mulhi"), "umulhi": _unsigned_row("mulhi"), "umul64hi": _unsigned_row("mulhi"),
    "mul24": _low_product(True), "umul24": _low_product(False), "popc": _row("popcount"), "popcll": _row("popcount"),
    "clz": _row("clz"), "clzll": _row("clz"), "ffs": _row("ffs"), "ffsll": _row("ffs"), "brev": _row("brev"),
    "brevll": _row("brev"), "byte_perm": _permuted, "sad": _absolute_difference(True), "usad": _absolute_difference(False),
    "hadd": _average(True, False), "uhadd": _average(False, False), "rhadd": _average(True, True),
    "urhadd": _average(False, True), "float_as_int": _bits(I32), "float_as_uint": _bits(I32), "int_as_float": _bits(F32),
    "uint_as_float": _bits(F32), "double_as_longlong": _bits(I64), "longlong_as_double": _bits(F64),
    "double2hiint": _half_of_double(True), "double2loint": _half_of_double(False), "hiloint2double": _double_of_halves,
    "saturatef": _saturated, "frcp_rn": _reciprocal, "drcp_rn": _reciprocal, "frsqrt_rn": _row("rsqrt"),
    "finitef": _predicate("isfinite"),
}  # fmt: skip

FUNCTIONS = _functions()
"""Functions of numbers, by name without `__nv_`."""

_CONVERSION = re.compile(r"(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)(?:_(rn|rz|rd|ru))?")
_NUMBERS = {"float": F32, "double": F64, "int": I32, "uint": U32, "ll": I64, "ull": U64}
_STEPS = {"rn": "rint", "rd": "floor", "ru": "ceil"}


@dataclass(frozen=True)
class Pointed:
    """A function that stores results through pointers. stored: functions of the first argument, one a pointer; the type stored, or
    None for that of the argument. returned: the function of the result."""

    stored: tuple[tuple[Function, Scalar | None], ...]
    returned: Function | None = None


def _fraction(value: ir.Expr) -> ir.Expr:
    """The fraction of modf, with the sign of the value."""
    assert isinstance(value.type, Scalar)
    rest = operation("sub", value, operation("trunc", value))
    zero = constant(0, value.type, value.span)
    return operation("copysign", selected(operation("isinf", value), zero, rest), value)


POINTED: Mapping[str, Pointed] = MappingProxyType({
    **dict.fromkeys(("frexp", "frexpf"), Pointed(((_row("frexp_exponent"), I32),), _row("frexp_fraction"))),
    **dict.fromkeys(("modf", "modff"), Pointed(((_row("trunc"), None),), _fraction)),
    **dict.fromkeys(("sincos", "sincosf"), Pointed(((_row("sin"), None), (_row("cos"), None)))),
    "fast_sincosf": Pointed(((_row("fast_sin"), None), (_row("fast_cos"), None))),
})  # fmt: skip


def convert(name: str, value: ir.Expr) -> ir.Expr | None:
    """Return the result of a conversion such as double2int_rn; None for other functions.

    Raises UnsupportedError for a conversion to floats that does not round to the nearest.
    """
    match = _CONVERSION.fullmatch(name)
    if match is None:
        return None
    source, target, rounding = _NUMBERS[match[1]], _NUMBERS[match[2]], match[3]
    value = bitcast(value, source)
    if source.is_float and target.is_integer:
        step = _STEPS.get(rounding)
        return signed(cast(operation(step, value) if step else value, target))
    if rounding not in (None, "rn"):
        raise UnsupportedError(f"the function __nv_{name} is not supported: it does not round to the nearest")
    return signed(cast(value, target))
