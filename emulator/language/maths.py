"""Mathematical functions of f32 and f64; docs/language.md lists their error bounds."""

from .forms import OperationForm, OperationsForm
from .intrinsics import intrinsic


@intrinsic(OperationForm("sin"))
def sin(x: float) -> float:
    """Sine of an angle in radians."""


@intrinsic(OperationForm("cos"))
def cos(x: float) -> float:
    """Cosine of an angle in radians."""


@intrinsic(OperationForm("tan"))
def tan(x: float) -> float:
    """Tangent of an angle in radians."""


@intrinsic(OperationsForm(("sin", "cos")))
def sincos(x: float) -> tuple[float, float]:
    """Sine and cosine of an angle in radians."""


@intrinsic(OperationForm("asin"))
def asin(x: float) -> float:
    """Arc sine, from -pi / 2 to pi / 2; NaN for |x| > 1."""


@intrinsic(OperationForm("acos"))
def acos(x: float) -> float:
    """Arc cosine, from 0 to pi; NaN for |x| > 1."""


@intrinsic(OperationForm("atan"))
def atan(x: float) -> float:
    """Arc tangent, from -pi / 2 to pi / 2."""


@intrinsic(OperationForm("sinh"))
def sinh(x: float) -> float:
    """Hyperbolic sine."""


@intrinsic(OperationForm("cosh"))
def cosh(x: float) -> float:
    """Hyperbolic cosine."""


@intrinsic(OperationForm("tanh"))
def tanh(x: float) -> float:
    """Hyperbolic tangent."""


@intrinsic(OperationForm("asinh"))
def asinh(x: float) -> float:
    """Inverse hyperbolic sine."""


@intrinsic(OperationForm("acosh"))
def acosh(x: float) -> float:
    """Inverse hyperbolic cosine; NaN for x < 1."""


@intrinsic(OperationForm("atanh"))
def atanh(x: float) -> float:
    """Inverse hyperbolic tangent; NaN for |x| > 1."""


@intrinsic(OperationForm("exp"))
def exp(x: float) -> float:
    """e ** x."""


@intrinsic(OperationForm("exp2"))
def exp2(x: float) -> float:
    """2 ** x."""


@intrinsic(OperationForm("exp10"))
def exp10(x: float) -> float:
    """10 ** x."""


@intrinsic(OperationForm("expm1"))
def expm1(x: float) -> float:
    """e ** x - 1, accurate near 0."""


@intrinsic(OperationForm("log"))
def log(x: float) -> float:
    """Natural logarithm; -inf for 0, NaN for negative numbers."""


@intrinsic(OperationForm("log2"))
def log2(x: float) -> float:
    """Logarithm to base 2."""


@intrinsic(OperationForm("log10"))
def log10(x: float) -> float:
    """Logarithm to base 10."""


@intrinsic(OperationForm("log1p"))
def log1p(x: float) -> float:
    """log(1 + x), accurate near 0."""


@intrinsic(OperationForm("cbrt"))
def cbrt(x: float) -> float:
    """Cube root, also of negative numbers."""


@intrinsic(OperationForm("rcbrt"))
def rcbrt(x: float) -> float:
    """1 / cbrt(x)."""


@intrinsic(OperationForm("erf"))
def erf(x: float) -> float:
    """Error function."""


@intrinsic(OperationForm("erfc"))
def erfc(x: float) -> float:
    """1 - erf(x), accurate for small results."""


@intrinsic(OperationForm("normcdf"))
def normcdf(x: float) -> float:
    """Cumulative distribution function of the standard normal distribution."""


@intrinsic(OperationForm("tgamma"))
def tgamma(x: float) -> float:
    """Gamma function; NaN for negative integers."""


@intrinsic(OperationForm("lgamma"))
def lgamma(x: float) -> float:
    """Logarithm of |gamma(x)|; inf for 0 and negative integers."""


@intrinsic(OperationForm("floor"))
def floor(x: float) -> float:
    """x rounded down to an integer; a float, exact."""


@intrinsic(OperationForm("ceil"))
def ceil(x: float) -> float:
    """x rounded up to an integer; a float, exact."""


@intrinsic(OperationForm("trunc"))
def trunc(x: float) -> float:
    """x rounded toward zero to an integer; a float, exact."""


@intrinsic(OperationForm("rint"))
def rint(x: float) -> float:
    """x rounded to the nearest integer, halves to even; a float, exact."""


@intrinsic(OperationForm("round"))
def round(x: float) -> float:
    """x rounded to the nearest integer, halves away from zero, unlike Python's; a float, exact."""


@intrinsic(OperationForm("pow"))
def pow(x: float, y: float) -> float:
    """x ** y, with C's special cases."""


@intrinsic(OperationForm("atan2"))
def atan2(y: float, x: float) -> float:
    """Angle of the point (x, y), from -pi to pi."""


@intrinsic(OperationForm("hypot"))
def hypot(x: float, y: float) -> float:
    """sqrt(x * x + y * y) without intermediate overflow; infinite if an argument is."""


@intrinsic(OperationForm("fmod"))
def fmod(x: float, y: float) -> float:
    """x - y * trunc(x / y), exact, with the sign of x. Python's `%` is not defined for floats in kernels."""


@intrinsic(OperationForm("remainder"))
def remainder(x: float, y: float) -> float:
    """x - y * rint(x / y), exact."""


@intrinsic(OperationForm("copysign"))
def copysign(x: float, y: float) -> float:
    """x with the sign of y, exact."""


@intrinsic(OperationForm("isnan"))
def isnan(x: float) -> bool:
    """Whether x is NaN."""


@intrinsic(OperationForm("isinf"))
def isinf(x: float) -> bool:
    """Whether x is infinite."""


@intrinsic(OperationForm("isfinite"))
def isfinite(x: float) -> bool:
    """Whether x is neither infinite nor NaN."""


@intrinsic(OperationForm("signbit"))
def signbit(x: float) -> bool:
    """Whether the sign bit of x is set, also for -0 and NaN."""


@intrinsic(OperationForm("ldexp", (1, 0)))
def ldexp(x: float, power: int) -> float:
    """x * 2 ** power, rounded once."""


@intrinsic(OperationsForm(("frexp_fraction", "frexp_exponent")))
def frexp(x: float) -> tuple[float, int]:
    """(m, n) with x = m * 2 ** n, |m| from 1 / 2 to 1; (x, 0) for 0, infinity and NaN."""


@intrinsic(OperationForm("fast_exp"))
def fast_exp(x: float) -> float:
    """CUDA's `__expf`, for f32."""


@intrinsic(OperationForm("fast_exp10"))
def fast_exp10(x: float) -> float:
    """CUDA's `__exp10f`, for f32."""


@intrinsic(OperationForm("fast_log"))
def fast_log(x: float) -> float:
    """CUDA's `__logf`, for f32."""


@intrinsic(OperationForm("fast_log2"))
def fast_log2(x: float) -> float:
    """CUDA's `__log2f`, for f32."""


@intrinsic(OperationForm("fast_log10"))
def fast_log10(x: float) -> float:
    """CUDA's `__log10f`, for f32."""


@intrinsic(OperationForm("fast_sin"))
def fast_sin(x: float) -> float:
    """CUDA's `__sinf`, for f32."""


@intrinsic(OperationForm("fast_cos"))
def fast_cos(x: float) -> float:
    """CUDA's `__cosf`, for f32."""


@intrinsic(OperationForm("fast_tan"))
def fast_tan(x: float) -> float:
    """CUDA's `__tanf`, for f32."""


@intrinsic(OperationForm("fast_exp2"))
def fast_exp2(x: float) -> float:
    """2 ** x: PTX's `ex2.approx`, for f32."""


@intrinsic(OperationForm("fast_rcp"))
def fast_rcp(x: float) -> float:
    """1 / x: PTX's `rcp.approx`, for f32."""


@intrinsic(OperationForm("fast_rsqrt"))
def fast_rsqrt(x: float) -> float:
    """1 / sqrt(x): PTX's `rsqrt.approx`, for f32."""


@intrinsic(OperationForm("fast_sqrt"))
def fast_sqrt(x: float) -> float:
    """Square root: PTX's `sqrt.approx`, for f32."""


@intrinsic(OperationForm("fast_tanh"))
def fast_tanh(x: float) -> float:
    """Hyperbolic tangent: PTX's `tanh.approx`, for f32."""


@intrinsic(OperationForm("fast_pow"))
def fast_pow(x: float, y: float) -> float:
    """CUDA's `__powf`, for f32 and x > 0."""


@intrinsic(OperationForm("fast_divide"))
def fast_divide(x: float, y: float) -> float:
    """CUDA's `__fdividef`, for f32; 0 for |y| above 2 ** 126."""


__all__ = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos", "cosh", "erf",
    "erfc", "exp", "exp2", "exp10", "expm1", "fast_cos", "fast_divide", "fast_exp", "fast_exp2", "fast_exp10",
    "fast_log", "fast_log2", "fast_log10", "fast_pow", "fast_rcp", "fast_rsqrt", "fast_sin", "fast_sqrt",
    "fast_tan", "fast_tanh", "floor", "fmod", "frexp", "hypot", "isfinite", "isinf", "isnan", "ldexp", "lgamma",
    "log", "log1p", "log2", "log10", "normcdf", "pow", "rcbrt", "remainder", "rint", "round", "signbit", "sin",
    "sincos", "sinh", "tan", "tanh", "tgamma", "trunc",
]  # fmt: skip
