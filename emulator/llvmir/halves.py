"""Functions of halves from CUDA's headers, which kernels call by mangled names: a pointer to the result, then pointers to operands.

Mathematical functions compute with f32 and round once more. Functions without a row are refused by name.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..ir import nodes as ir
from ..language.types import BF16, BOOL, F16, F32, F64, HALVES, I8, I16, I32, I64, U8, U16, U32, U64, Scalar
from .arithmetic import bitcast, cast, compared_floats, constant, operation, selected

Function = Callable[..., ir.Expr]

_NAME = re.compile(r"_ZL?(?:(\d+)|N(6__half|13__nv_bfloat16)C1E|(pl|mi|ml|dv|eq|ne|lt|le|gt|ge|ng|ps)RK)(\w+)_nbst")
_OPERATOR = re.compile(r"_\w+__ZNK(6__half|13__nv_bfloat16)cv([fdijstlmxycahb])Ev_\d+")
_TYPE = re.compile(r"6__half|13__nv_bfloat16|S\d*_|[fdijstlmxycahb]")
_TYPES: Mapping[str, Scalar] = MappingProxyType({
    "6__half": F16, "13__nv_bfloat16": BF16, "f": F32, "d": F64, "i": I32, "j": U32, "s": I16, "t": U16, "l": I64,
    "m": U64, "x": I64, "y": U64, "c": I8, "a": I8, "h": U8, "b": BOOL,
})  # fmt: skip
_OPERATORS = {
    "pl": "__hadd", "mi": "__hsub", "ml": "__hmul", "dv": "__hdiv", "eq": "__heq", "ne": "__hneu", "lt": "__hlt", "le": "__hle",
    "gt": "__hgt", "ge": "__hge", "ng": "__hneg", "ps": "__hpos",
}  # fmt: skip


def _row(name: str) -> Function:
    return lambda *args: operation(name, *args)


def _in_f32(name: str) -> Function:
    def function(value: ir.Expr) -> ir.Expr:
        assert isinstance(value.type, Scalar)
        return cast(operation(name, cast(value, F32)), value.type)

    return function


def _comparison(predicate: str) -> Function:
    return lambda a, b: compared_floats(predicate, a, b)


def _extreme_with_nan(name: str) -> Function:
    def function(a: ir.Expr, b: ir.Expr) -> ir.Expr:
        return selected(compared_floats("uno", a, b), operation("add", a, b), operation(name, a, b))

    return function


def _saturated(name: str) -> Function:
    """A result between 0 and 1; a NaN becomes 0."""

    def function(*args: ir.Expr) -> ir.Expr:
        result = operation(name, *args)
        assert isinstance(result.type, Scalar)
        zero, unit = constant(0, result.type, result.span), constant(1, result.type, result.span)
        return operation("min", operation("max", result, zero), unit)

    return function


def _rectified_fma(*args: ir.Expr) -> ir.Expr:
    """fma_relu: at least 0; a NaN gives a NaN."""
    result = operation("fma", *args)
    assert isinstance(result.type, Scalar)
    zero = constant(0, result.type, result.span)
    return selected(compared_floats("uno", result, result), result, operation("max", result, zero))


def _reciprocal(value: ir.Expr) -> ir.Expr:
    assert isinstance(value.type, Scalar)
    return operation("fdiv", constant(1, value.type, value.span), value)


def _functions() -> Iterator[tuple[str, Function]]:
    for name, row in {"add": "add", "sub": "sub", "mul": "mul"}.items():
        yield from {f"__h{name}": _row(row), f"__h{name}_rn": _row(row), f"__h{name}_sat": _saturated(row)}.items()
    yield from {
        f"__h{name}": _row(row) for name, row in {"div": "fdiv", "fma": "fma", "neg": "neg", "abs": "abs"}.items()
    }.items()
    yield from {f"__h{name}": _row(name) for name in ("max", "min")}.items()
    yield from {f"__h{name}_nan": _extreme_with_nan(name) for name in ("max", "min")}.items()
    yield from {"__hfma_sat": _saturated("fma"), "__hfma_relu": _rectified_fma}.items()
    for word in ("eq", "lt", "le", "gt", "ge"):
        yield f"__h{word}", _comparison(f"o{word}")
        yield f"__h{word}u", _comparison(f"u{word}")
    yield from {"__hne": _comparison("one"), "__hneu": _comparison("une")}.items()
    yield "hsqrt", _row("sqrt")
    yield "hrcp", _reciprocal
    yield "__hpos", lambda value: value
    yield "htanh_approx", _in_f32("tanh")
    for name in (
        "sin",
        "cos",
        "exp",
        "exp2",
        "exp10",
        "log",
        "log2",
        "log10",
        "tanh",
        "rsqrt",
        "floor",
        "ceil",
        "trunc",
        "rint",
    ):
        yield f"h{name}", _in_f32(name)


_FUNCTIONS: Mapping[str, Function] = MappingProxyType(dict(_functions()))
_PREDICATES: Mapping[str, Function] = MappingProxyType({
    "__hisnan": lambda value: compared_floats("uno", value, value),
    "__hisinf": lambda value: cast(operation("isinf", cast(value, F32)), I32),
})  # fmt: skip
_CONVERSION = re.compile(
    r"__(half|bfloat16|float|double|char|uchar|short|ushort|int|uint|ll|ull)2(\w+?)(?:_(rn|rz|rd|ru))?"
)
_AS = re.compile(r"__(half|bfloat16|short|ushort)_as_(half|bfloat16|short|ushort)")
_NAMES: Mapping[str, Scalar] = MappingProxyType({
    "half": F16, "bfloat16": BF16, "float": F32, "double": F64, "char": I8, "uchar": U8, "short": I16, "ushort": U16,
    "int": I32, "uint": U32, "ll": I64, "ull": U64,
})  # fmt: skip
_STEPS = {"rn": "rint", "rd": "floor", "ru": "ceil"}


@dataclass(frozen=True)
class HalfFunction:
    """A function of halves.

    operands: their types. result: its type. compute: the result of the operands. first: the position of the pointer to the first
    operand, next to that of the result; 2 for a constructor, which has an unused pointer before them.
    """

    operands: tuple[Scalar, ...]
    result: Scalar
    compute: Function
    first: int = 1

    @property
    def target(self) -> int:
        """The position of the pointer to the result."""
        return self.first - 1


def _conversion(operands: tuple[Scalar, ...], target: Scalar, rounding: str | None) -> HalfFunction | None:
    """Return a conversion between halves and other types; None for other conversions with a rounding mode."""
    (source,) = operands
    if target in HALVES and rounding in ("rz", "rd", "ru"):
        if source.size < 8 or source is F64:
            return HalfFunction(operands, target, lambda value: rounded_half(value, target, rounding))
        return HalfFunction(operands, target, lambda value: rounded_half(_rounded_to_odd(value), target, rounding))
    if target.is_float:
        return HalfFunction(operands, target, lambda value: cast(value, target)) if rounding in (None, "rn") else None
    step = _STEPS.get(rounding or "rz", "trunc")
    return HalfFunction(operands, target, lambda value: _to_integer(operation(step, cast(value, F32)), target))


def _to_integer(value: ir.Expr, target: Scalar) -> ir.Expr:
    """Return a float as an integer: saturated, also to types of less than 32 bits; a NaN becomes 0."""
    if target is BOOL or target.size >= 4:
        return cast(value, target)
    low, high = (constant(bound, I32, value.span) for bound in target.range)
    return cast(operation("min", operation("max", cast(value, I32), low), high), target)


def _rounded_to_odd(value: ir.Expr) -> ir.Expr:
    """Return an integer of 64 bits that is exact in f64 and that each rounding to a half takes to the same half."""
    assert isinstance(value.type, Scalar)
    shift, low = constant(53, I32, value.span), constant(2047, value.type, value.span)
    top = operation("shr", value, shift)
    # The bits from 53 on equal the sign: f64 has this integer.
    small = operation("eq", top, constant(0, value.type, value.span))
    if value.type is I64:
        small = operation("either", small, operation("eq", top, constant(-1, I64, value.span)))
    is_exact = operation("eq", operation("and", value, low), constant(0, value.type, value.span))
    odd = operation("or", operation("and", value, operation("invert", low)), constant(2048, value.type, value.span))
    return selected(operation("either", small, is_exact), value, odd)


def rounded_half(value: ir.Expr, target: Scalar, rounding: str) -> ir.Expr:
    """Return a number as a half, rounded toward zero, down or up: the nearest half, or its neighbour. value: exact in f64."""
    exact, near = cast(value, F64), cast(value, target)
    wide, bits = cast(near, F64), bitcast(near, I16)
    zero = constant(0, F64, value.span)
    below, above = operation("lt", wide, exact), operation("gt", wide, exact)
    is_negative = operation("lt", exact, zero)
    smaller, larger = (operation("add", bits, constant(step, I16, value.span)) for step in (-1, 1))
    if rounding == "rz":
        moves_to_zero = selected(is_negative, below, above)
        moves_from_zero: ir.Expr = constant(False, BOOL, value.span)
    else:
        moves = above if rounding == "rd" else below
        to_zero = operation("not", is_negative) if rounding == "rd" else is_negative
        moves_to_zero = operation("both", moves, to_zero)
        moves_from_zero = operation("both", moves, operation("not", to_zero))
    moved = selected(moves_to_zero, smaller, selected(moves_from_zero, larger, bits))
    return bitcast(moved, target)


def half_function(name: str) -> HalfFunction | None:
    """Return the function of a mangled name; None for other names and functions without a row."""
    if match := _OPERATOR.fullmatch(name):
        return _conversion((_TYPES[match[1]],), _TYPES[match[2]], None)
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    length, constructed, operator, rest = match.groups()
    if constructed:
        operands = _operand_types(rest)
        type = _TYPES[constructed]
        if operands is None or len(operands) != 1:
            return None
        return HalfFunction(operands, type, lambda value: cast(value, type), 2)
    if operator:
        own, rest = _OPERATORS[operator], re.sub(r"S\d+_$", "S_", rest)
    else:
        own, rest = rest[: int(length)], rest[int(length) :]
    operands = _operand_types(rest)
    return None if not operands else _function(own, operands)


def _operand_types(text: str) -> tuple[Scalar, ...] | None:
    """Return the types of mangled parameters; None for types such as pointers."""
    types: list[Scalar] = []
    words = _TYPE.findall(text)
    if "".join(words) != text:
        return None
    for word in words:
        if word.startswith("S") and not types:
            return None
        types.append(types[-1] if word.startswith("S") else _TYPES[word])
    return tuple(types)


def _function(name: str, operands: tuple[Scalar, ...]) -> HalfFunction | None:
    if name in _FUNCTIONS and all(type in HALVES for type in operands):
        is_comparison = re.fullmatch(r"__h(eq|ne|lt|le|gt|ge)u?", name) is not None
        return HalfFunction(operands, BOOL if is_comparison else operands[0], _FUNCTIONS[name])
    if name in _PREDICATES:
        return HalfFunction(operands, BOOL if name == "__hisnan" else I32, _PREDICATES[name])
    if match := _AS.fullmatch(name):
        target = _NAMES[match[2]]
        return HalfFunction(operands, target, lambda value: bitcast(value, target))
    if (match := _CONVERSION.fullmatch(name)) and match[2] in _NAMES:
        return _conversion(operands, _NAMES[match[2]], match[3])
    return None
