"""The rows of mathematical functions in the table of operations.

Bounds in units in the last place are those of an H200 against the emulator, over the sweep of `tests/gpu/maths.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..language.types import BOOL, F32, F64, FLOATS, I32, Scalar
from .library import code
from .op import BITS, Meaning, Op, Policy, Values, ulp

_BOUNDS = {
    # of one operand: f32, f64
    "sin": (1, 1), "cos": (1, 1), "tan": (3, 2), "asin": (1, 2), "acos": (1, 1), "atan": (1, 2),
    "sinh": (3, 1), "cosh": (2, 1), "tanh": (2, 2), "asinh": (2, 2), "acosh": (2, 2), "atanh": (3, 2),
    "exp": (2, 1), "exp2": (2, 1), "exp10": (2, 1), "expm1": (1, 1),
    "log": (1, 1), "log2": (1, 1), "log10": (2, 1), "log1p": (1, 1), "cbrt": (1, 1), "rcbrt": (1, 1),
    "erf": (1, 2), "erfc": (4, 5), "normcdf": (5, 5), "tgamma": (5, 10),
}  # fmt: skip
_BOUNDS_OF_TWO = {"pow": (2, 1), "atan2": (2, 2), "hypot": (1, 2)}
_LOG_GAMMA = {F32: ulp(6, 2.0**-18), F64: ulp(4, 2.0**-46)}
"""The distances: between its zeros from -11 to -2.26, where CUDA states no units in the last place."""
_FAST = {
    # CUDA's name by row
    "fast_exp": "__expf({0})", "fast_exp10": "__exp10f({0})", "fast_log": "__logf({0})", "fast_log2": "__log2f({0})",
    "fast_log10": "__log10f({0})", "fast_sin": "__sinf({0})", "fast_cos": "__cosf({0})", "fast_tan": "__tanf({0})",
    "fast_pow": "__powf({0}, {1})", "fast_divide": "__fdividef({0}, {1})",
}  # fmt: skip
APPROXIMATE = {
    "fast_exp2": "ex2.approx.f32", "fast_rcp": "rcp.approx.f32", "fast_rsqrt": "rsqrt.approx.f32",
    "fast_sqrt": "sqrt.approx.f32", "fast_tanh": "tanh.approx.f32", "fast_exp2_ftz": "ex2.approx.ftz.f32",
    "fast_log2_ftz": "lg2.approx.ftz.f32", "fast_rcp_ftz": "rcp.approx.ftz.f32", "fast_rsqrt_ftz": "rsqrt.approx.ftz.f32",
    "fast_sqrt_ftz": "sqrt.approx.ftz.f32", "fast_divide_ftz": "div.approx.ftz.f32", "full_divide": "div.full.f32",
}  # fmt: skip
"""The PTX instruction by row."""
_INSTRUCTIONS = {
    "fast_tanh": "mufu_tanh", "fast_exp2_ftz": "mufu_ex2", "fast_log2_ftz": "mufu_lg2", "fast_rcp_ftz": "mufu_rcp",
    "fast_rsqrt_ftz": "mufu_rsq", "fast_sqrt_ftz": "mufu_sqrt",
}  # fmt: skip
"""Rows that are one instruction of the special function unit, and its function of the library."""


class Computed:
    """The meaning of a row that a function of its name computes. Floats are widened to f64, and the result is rounded
    once: to the type of the last operand, where no result's type is given."""

    def __init__(self, name: str, result: Scalar | None = None) -> None:
        self.name, self.result = name, result

    def __call__(self, *operands: Values) -> Values:
        shape = np.broadcast_shapes(*(np.shape(a) for a in operands))
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in operands]
        arguments = [np.ascontiguousarray(np.broadcast_to(a, shape)) for a in wide]
        result = np.empty(shape)
        called = code(self.name)  # held while it runs
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arguments) + 1), ctypes.c_int64)(called.address)
        function(*(a.ctypes.data for a in (*arguments, result)), result.size)
        return result.astype(self.result.dtype if self.result else operands[-1].dtype)


def _half_away(x: Values) -> Values:
    """Rounded to an integer, halves away from zero."""
    size = np.abs(x)
    down = np.floor(size)
    return np.asarray(np.copysign(down + (size - down >= 0.5), x))


_ROUNDED: dict[str, Meaning] = {
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "round": _half_away,
}  # fmt: skip
_KINDS: dict[str, Meaning] = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
}  # fmt: skip


def _spelled(name: str, *operands: int) -> dict[Scalar, str]:
    arguments = ", ".join(f"{{{n}}}" for n in operands or (0,))
    return {F32: f"{name}f({arguments})", F64: f"{name}({arguments})"}


def _bounds(pair: tuple[int, int]) -> dict[Scalar, Policy]:
    return {F32: ulp(pair[0]), F64: ulp(pair[1])}


def _rows() -> Iterator[Op]:
    def computed(name: str, cuda: str | dict[Scalar, str], operands: int, policy: Policy | dict[Scalar, Policy]) -> Op:
        types = FLOATS if isinstance(cuda, dict) else (F32,)
        function = _INSTRUCTIONS.get(name, name)
        return Op(name, types, Computed(function), cuda, f"${function}", "sfu", operands, policy=policy)

    for name, bounds in _BOUNDS.items():
        yield computed(name, _spelled(name), 1, _bounds(bounds))
    for name, bounds in _BOUNDS_OF_TWO.items():
        yield computed(name, _spelled(name, 0, 1), 2, _bounds(bounds))
    yield computed("lgamma", _spelled("lgamma"), 1, _LOG_GAMMA)
    for name, cuda in _FAST.items():
        yield computed(name, cuda, cuda.count("{"), BITS)
    for name in APPROXIMATE:
        arguments = "({0}, {1})" if "divide" in name else "({0})"
        yield computed(name, name + arguments, arguments.count("{"), BITS)
    for name in ("fmod", "remainder"):
        yield replace(computed(name, _spelled(name, 0, 1), 2, BITS), cost="fdiv")
    yield Op("copysign", FLOATS, np.copysign, _spelled("copysign", 0, 1), "@copysign", "arith", 2)
    for name, meaning in _ROUNDED.items():
        yield Op(name, FLOATS, meaning, _spelled(name), f"@{name}", "arith", 1)
    for name, meaning in _KINDS.items():
        yield Op(name, FLOATS, meaning, f"{name}({{0}})", f":{name}", "arith", 1, BOOL)
    ldexp = {F32: "ldexpf({1}, {0})", F64: "ldexp({1}, {0})"}
    yield Op("ldexp", FLOATS, Computed("ldexp"), ldexp, "$ldexp", "arith", 2, first=I32)
    fraction, exponent = "frexp_fraction", "frexp_exponent"
    yield Op(fraction, FLOATS, Computed(fraction), f"{fraction}({{0}})", f"${fraction}", "arith", 1)
    yield Op(exponent, FLOATS, Computed(exponent, I32), f"{exponent}({{0}})", f"${exponent}", "arith", 1, I32)


ROWS = tuple(_rows())
