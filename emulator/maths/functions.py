"""All functions of the library."""

from .exponential import exp, exp2, exp10, expm1, pow
from .fast import (
    fast_cos,
    fast_divide,
    fast_divide_ftz,
    fast_exp,
    fast_exp2,
    fast_exp10,
    fast_log,
    fast_log2,
    fast_log10,
    fast_pow,
    fast_rcp,
    fast_rsqrt,
    fast_sin,
    fast_sqrt,
    fast_tan,
    full_divide,
)
from .gamma import lgamma, tgamma
from .gaussian import erf, erfc, normcdf
from .hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from .inverse import acos, asin, atan, atan2
from .logarithmic import log, log1p, log2, log10
from .remainders import fmod, frexp_exponent, frexp_fraction, ldexp, remainder
from .roots import cbrt, hypot, rcbrt
from .special_functions import (
    mufu_cos,
    mufu_ex2,
    mufu_lg2,
    mufu_rcp,
    mufu_rcp64h,
    mufu_rsq,
    mufu_rsq64h,
    mufu_sin,
    mufu_sqrt,
    mufu_tanh,
)
from .tensor_cores import mma_doubles, mma_floats, mma_integers
from .trigonometric import cos, sin, tan

__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "erf", "erfc", "exp", "exp2",
    "exp10", "expm1", "fast_cos", "fast_divide", "fast_divide_ftz", "fast_exp", "fast_exp2", "fast_exp10", "fast_log",
    "fast_log2", "fast_log10", "fast_pow", "fast_rcp", "fast_rsqrt", "fast_sin", "fast_sqrt", "fast_tan", "fmod",
    "frexp_exponent", "frexp_fraction", "full_divide", "hypot", "ldexp", "lgamma", "log", "log1p", "log2", "log10",
    "mma_doubles", "mma_floats", "mma_integers", "mufu_cos", "mufu_ex2", "mufu_lg2", "mufu_rcp", "mufu_rcp64h",
    "mufu_rsq", "mufu_rsq64h", "mufu_sin", "mufu_sqrt", "mufu_tanh", "normcdf", "pow", "rcbrt", "remainder", "sin",
    "sinh", "tan", "tanh", "tgamma",
]  # fmt: skip
