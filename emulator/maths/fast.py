"""CUDA's fast functions of f32: the instructions that nvcc makes of each for sm_90, rounded to f32 at each step.

Arguments are f32 values stored as f64. Denormal arguments are scaled to normal ones, and the results back.
"""

from ..language.functions import device
from ..language.hints import Global, f64, i64
from ..native import native
from .special_functions import SMALLEST, ex2, flushed, lg2, rcp, root, rounded, rsq, sine, truncated

LOG2_E = 1.44269502162933349609375
LOG2_10 = 3.3219280242919921875
LN2 = 0.693147182464599609375
LOG10_2 = 0.3010300099849701
PERIODS = 0.15915493667125701904296875
LARGE = 2.0**126
UP = 2.0**24


@device
def scale(x: f64) -> f64:
    """The factor that makes a denormal number normal."""
    return UP if abs(x) < SMALLEST else 1.0


@device
def exponential(x: f64) -> f64:
    below = x < -126.0
    value = ex2(0.5 * x if below else x)
    return rounded(value * value) if below else value


@device
def logarithm(x: f64) -> f64:
    small = abs(x) < SMALLEST
    value = lg2(x * scale(x))
    return rounded(value - 24.0) if small else value


@device
def reciprocal(x: f64) -> f64:
    factor = 0.25 if abs(x) > LARGE else scale(x)
    return rounded(factor * rcp(x * factor))


@device
def quotient(x: f64, y: f64) -> f64:
    return rounded(rounded(x * scale(y)) * rcp(y * scale(y)))


@device
def periods(x: f64) -> f64:
    return truncated(x * PERIODS)


@native
def fast_exp2(x: Global[f64], to: Global[f64], n: i64) -> None:
    """2**x."""
    for i in range(n):
        to[i] = exponential(x[i])


@native
def fast_exp(x: Global[f64], to: Global[f64], n: i64) -> None:
    """2**(x * log2(e))."""
    for i in range(n):
        to[i] = exponential(rounded(x[i] * LOG2_E))


@native
def fast_exp10(x: Global[f64], to: Global[f64], n: i64) -> None:
    """2**(x * log2(10))."""
    for i in range(n):
        to[i] = exponential(rounded(x[i] * LOG2_10))


@native
def fast_log2(x: Global[f64], to: Global[f64], n: i64) -> None:
    """log2(x)."""
    for i in range(n):
        to[i] = logarithm(x[i])


@native
def fast_log(x: Global[f64], to: Global[f64], n: i64) -> None:
    """log2(x) * log(2)."""
    for i in range(n):
        to[i] = logarithm(x[i]) * LN2


@native
def fast_log10(x: Global[f64], to: Global[f64], n: i64) -> None:
    """log2(x) * log10(2)."""
    for i in range(n):
        to[i] = logarithm(x[i]) * LOG10_2


@native
def fast_rcp(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 / x."""
    for i in range(n):
        to[i] = reciprocal(x[i])


@native
def fast_rsqrt(x: Global[f64], to: Global[f64], n: i64) -> None:
    """1 / sqrt(x)."""
    for i in range(n):
        to[i] = rsq(x[i] * scale(x[i])) * (4096.0 if abs(x[i]) < SMALLEST else 1.0)


@native
def fast_sqrt(x: Global[f64], to: Global[f64], n: i64) -> None:
    """sqrt(x)."""
    for i in range(n):
        to[i] = root(x[i] * scale(x[i])) * (2.0**-12 if abs(x[i]) < SMALLEST else 1.0)


@native
def fast_sin(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The sine."""
    for i in range(n):
        to[i] = sine(periods(x[i]), 0)


@native
def fast_cos(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The cosine."""
    for i in range(n):
        to[i] = sine(periods(x[i]), 1)


@native
def fast_tan(x: Global[f64], to: Global[f64], n: i64) -> None:
    """sin(x) / cos(x)."""
    for i in range(n):
        to[i] = quotient(sine(periods(x[i]), 0), sine(periods(x[i]), 1))


@native
def fast_pow(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """2**(y * log2(x))."""
    for i in range(n):
        to[i] = exponential(rounded(y[i] * logarithm(x[i])))


@native
def fast_divide(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """x * (1 / y)."""
    for i in range(n):
        to[i] = quotient(x[i], y[i])


@native
def fast_divide_ftz(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """x * (1 / y); denormal numbers are zero."""
    for i in range(n):
        to[i] = flushed(rounded(flushed(x[i]) * rcp(y[i])))


@native
def full_divide(x: Global[f64], y: Global[f64], to: Global[f64], n: i64) -> None:
    """x * (1 / y), scaled for large y."""
    for i in range(n):
        factor = 0.25 if abs(y[i]) > LARGE else 1.0
        to[i] = quotient(rounded(x[i] * factor), y[i] * factor)
