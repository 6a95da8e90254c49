"""Reference for the mathematical functions: single numbers with mpmath, special values by Annex F of C."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath

Exact = Any
"""A Fraction, or a float if the result is an infinity, NaN or zero."""

_M, _FAR = mpmath.mp.clone(), mpmath.mp.clone()
_M.prec, _FAR.prec = 400, 1400
"""Bits of precision: for results near 1 and 0; for the sine of the largest float."""
INF, NAN = math.inf, math.nan


def fraction(value: Any) -> Fraction:
    """Convert a number of mpmath exactly."""
    sign, man, exp, _ = value._mpf_
    return Fraction(-int(man) if sign else int(man)) * Fraction(2) ** int(exp)


def _log(base: float) -> Callable[[Any], Any]:
    return lambda x: _M.log(x) / _M.log(base)


def _cbrt(x: Any) -> Any:
    return _M.sign(x) * _M.cbrt(abs(x))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": _FAR.sin, "cos": _FAR.cos, "tan": _FAR.tan, "asin": _M.asin, "acos": _M.acos, "atan": _M.atan,
    "sinh": _M.sinh, "cosh": _M.cosh, "tanh": _M.tanh, "asinh": _M.asinh, "acosh": _M.acosh, "atanh": _M.atanh,
    "exp": _M.exp, "exp2": lambda x: _M.mpf(2) ** x, "exp10": lambda x: _M.mpf(10) ** x, "expm1": _M.expm1,
    "log": _M.log, "log2": _log(2), "log10": _log(10), "log1p": _M.log1p, "cbrt": _cbrt, "rcbrt": lambda x: 1 / _cbrt(x),
    "erf": _M.erf, "erfc": _M.erfc, "normcdf": lambda x: _M.erfc(-x / _M.sqrt(2)) / 2, "tgamma": _M.gamma,
    "lgamma": lambda x: _M.log(abs(_M.gamma(x))) if abs(x) < 1e5 else _M.loggamma(x),
    "pow": _M.power, "atan2": _M.atan2, "hypot": _M.hypot,
}  # fmt: skip
_INSIDE: dict[str, Callable[[float], bool]] = {
    **dict.fromkeys(("asin", "acos"), lambda x: abs(x) <= 1), "acosh": lambda x: x >= 1, "atanh": lambda x: abs(x) < 1,
    **dict.fromkeys(("log", "log2", "log10"), lambda x: x > 0), "log1p": lambda x: x > -1,
    "tgamma": lambda x: x > 0 or x != int(x), "lgamma": lambda x: x > 0 or x != int(x),
}  # fmt: skip
_AT_INFINITY = {
    # limits at minus and plus infinity
    "atan": (-math.pi / 2, math.pi / 2), "sinh": (-INF, INF), "cosh": (INF, INF), "tanh": (-1.0, 1.0), "asinh": (-INF, INF),
    "acosh": (NAN, INF), "exp": (0.0, INF), "exp2": (0.0, INF), "exp10": (0.0, INF), "expm1": (-1.0, INF), "log": (NAN, INF),
    "log2": (NAN, INF), "log10": (NAN, INF), "log1p": (NAN, INF), "cbrt": (-INF, INF), "rcbrt": (-0.0, 0.0), "erf": (-1.0, 1.0),
    "erfc": (2.0, 0.0), "normcdf": (0.0, 1.0), "tgamma": (NAN, INF), "lgamma": (INF, INF),
}  # fmt: skip
_BEYOND = {
    "exp": 1e3, "exp2": 2e3, "exp10": 1e3, "expm1": 1e3, "sinh": 1e3, "cosh": 1e3, "erfc": 50.0, "normcdf": 50.0,
    "tgamma": 300.0,
}  # fmt: skip
"""Operands of at least this magnitude have the result at infinity."""
_ODD = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "cbrt", "erf")
"""Functions that return a zero operand unchanged."""
_AT_EDGE = {"log": (0.0, -INF), "log2": (0.0, -INF), "log10": (0.0, -INF), "log1p": (-1.0, -INF), "lgamma": (0.0, INF)}


def of_one(name: str, x: float) -> Exact:
    """Evaluate a function of one number."""
    if x != x:
        return x
    if name == "tgamma" and x < -300 and math.isfinite(x) and x != int(x):
        return 0.0 if math.floor(x) % 2 == 0 else -0.0
    if math.isinf(x) or abs(x) > _BEYOND.get(name, INF):
        return _AT_INFINITY.get(name, (NAN, NAN))[x > 0]
    if x == 0 and name in (*_ODD, "rcbrt", "tgamma"):
        return x if name in _ODD else math.copysign(INF, x)
    if name in _AT_EDGE and x == _AT_EDGE[name][0]:
        return _AT_EDGE[name][1]
    if name == "atanh" and abs(x) == 1:
        return math.copysign(INF, x)
    if name in _INSIDE and not _INSIDE[name](x):
        return INF if name == "lgamma" else NAN
    return fraction(_FUNCTIONS[name](_FAR.mpf(x)).real)


def of_two(name: str, x: float, y: float) -> Exact:
    """Evaluate a function of two numbers; the special cases of C are those of Python's functions."""
    if name == "hypot":
        return INF if INF in (abs(x), abs(y)) else x + y if x != x or y != y else _hypot(x, y)
    if name == "atan2":
        return math.atan2(x, y) if not _plain(x, y) else fraction(_M.atan2(x, y))
    assert name == "pow"
    if not _plain(x, y) or x == 1 or (x < 0 and y != int(y)):
        return _special_power(x, y)
    size = y * math.log2(abs(x))
    negative = x < 0 and int(y) % 2 == 1
    if abs(size) > 3000:
        result = INF if size > 0 else 0.0
        return -result if negative else result
    exact = fraction(_M.power(abs(x), y))
    return -exact if negative else exact


def _plain(*arguments: float) -> bool:
    return all(math.isfinite(x) and x != 0 for x in arguments)


def _hypot(x: float, y: float) -> Exact:
    return fraction(_M.sqrt(_M.mpf(x) ** 2 + _M.mpf(y) ** 2)) if x or y else 0.0


def _special_power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except ValueError:  # C: a pole, or a negative base
        odd = y == int(y) and int(y) % 2 == 1
        return (math.copysign(INF, x) if odd else INF) if x == 0 else NAN


def _remainder(x: float, y: float, function: Callable[[float, float], float]) -> float:
    if x != x or y != y or math.isinf(x) or y == 0:
        return NAN
    return function(x, y)


def _round(x: float) -> float:
    """Round half away from zero."""
    if not math.isfinite(x):
        return x
    exact = Fraction(x)
    whole = math.floor(abs(exact) + Fraction(1, 2))
    return math.copysign(float(whole), x)


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


def _frexp(x: float) -> tuple[float, int]:
    return math.frexp(x) if math.isfinite(x) else (x, 0)


EXACTLY: dict[str, Callable[..., Any]] = {
    "floor": _whole(math.floor), "ceil": _whole(math.ceil), "trunc": _whole(math.trunc), "rint": _whole(round),
    "round": _round, "isnan": math.isnan, "isinf": math.isinf, "isfinite": math.isfinite,
    "signbit": lambda x: math.copysign(1.0, x) < 0, "copysign": math.copysign,
    "fmod": lambda x, y: _remainder(x, y, math.fmod), "remainder": lambda x, y: _remainder(x, y, math.remainder),
    "frexp_fraction": lambda x: _frexp(x)[0], "frexp_exponent": lambda x: _frexp(x)[1],
}  # fmt: skip
"""Functions with results that are numbers of the type."""


def _ldexp(power: int, x: float) -> Exact:
    if not math.isfinite(x) or x == 0:
        return x
    return Fraction(x) * Fraction(2) ** min(max(power, -5000), 5000)


def evaluate(name: str, *args: Any) -> Exact:
    """Return the exact result as a Fraction or a special float; a number of the row's type for functions in `EXACTLY`."""
    if name in EXACTLY:
        return EXACTLY[name](*args)
    if name == "ldexp":
        return _ldexp(*args)
    return of_one(name, *args) if len(args) == 1 else of_two(name, *args)


NAMES = frozenset(_FUNCTIONS) | frozenset(EXACTLY) | {"ldexp"}
