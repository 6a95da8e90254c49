"""Gamma function and its logarithm: Stirling's series from 8, a shift to this range by a product, reflection below 0."""

from ..language.functions import device
from ..language.hints import Global, Registers, f64, i64
from ..language.intrinsics import bitcast, fma, registers, unroll
from ..language.maths import trunc
from ..native import native
from .coefficients import HALF_LOG_2PI, LN2, LOG_GAMMA_1, LOG_GAMMA_2, PI, STIRLING
from .double_double import (
    INFINITY,
    NAN,
    ROUNDING,
    SMALLEST_NORMAL,
    growth,
    log_of,
    normal,
    one_more,
    polynomial,
    scaled,
    two_sum,
    whole,
)
from .trigonometric import cosine, sine

LARGEST = 2.5e305
"""Above it log gamma overflows."""


@device
def stirling(x: f64, x_low: f64, to: Registers[f64]) -> None:
    """The logarithm of gamma(x + x_low) = to[0] + to[1], for x from 8 to LARGEST."""
    logs = registers(f64, 2)
    log_of(x, x_low, logs)
    a = x - 0.5
    a_low = ((x - a) - 0.5) + x_low
    product = a * logs[0]
    product_low = fma(a, logs[0], -product) + (a * logs[1] + a_low * logs[0])
    first = registers(f64, 2)
    two_sum(product, -x, first)
    second = registers(f64, 2)
    two_sum(first[0], HALF_LOG_2PI[0], second)
    reciprocal = 1.0 / x
    correction = reciprocal * polynomial(reciprocal * reciprocal, STIRLING)
    low = (first[1] + second[1]) + ((product_low - x_low) + (HALF_LOG_2PI[1] + correction))
    to[0] = second[0] + low
    to[1] = (second[0] - to[0]) + low


@device
def multiplied(terms: Registers[f64], high: f64, low: f64) -> None:
    """terms *= high + low."""
    product = terms[0] * high
    rest = fma(terms[0], high, -product) + (terms[0] * low + terms[1] * high)
    terms[0] = product + rest
    terms[1] = (product - terms[0]) + rest


@device
def shifted(a: f64, log: Registers[f64], product: Registers[f64]) -> None:
    """gamma(a) = exp(log[0] + log[1]) / (product[0] + product[1]), for a from 1e-30 to LARGEST."""
    small = a < 8.0
    product[0] = f64(1)
    product[1] = f64(0)
    for k in unroll(range(8)):
        factor = registers(f64, 2)
        two_sum(min(a, 8.0), f64(k), factor)
        multiplied(product, factor[0], factor[1])
    product[0] = product[0] if small else f64(1)
    product[1] = product[1] if small else f64(0)
    up = registers(f64, 2)
    two_sum(a, f64(8) if small else f64(0), up)
    stirling(up[0], up[1], log)


@device
def reflected(a: f64, product: Registers[f64]) -> None:
    """product = pi * product / (a * sin(pi * a)); its terms are infinite where the sine is 0."""
    phase = a - 2.0 * trunc(0.5 * a)
    twice = phase + phase + ROUNDING
    r = phase - 0.5 * (twice - ROUNDING)
    angle = r * PI[0]
    angle_low = fma(r, PI[0], -angle) + r * PI[1]
    s = registers(f64, 2)
    c = registers(f64, 2)
    sine(angle, angle_low, s)
    cosine(angle, angle_low, c)
    quarter = bitcast(i64, twice)
    odd = (quarter & 1) != 0
    sign = f64(-1) if (quarter & 2) != 0 else f64(1)
    bottom = registers(f64, 2)
    bottom[0] = sign * (c[0] if odd else s[0])
    bottom[1] = sign * (c[1] if odd else s[1])
    multiplied(bottom, a, 0.0)
    multiplied(product, PI[0], PI[1])
    value = product[0] / bottom[0]
    product[1] = (fma(-value, bottom[0], product[0]) + (product[1] - value * bottom[1])) / bottom[0]
    product[0] = value


@native
def tgamma(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The gamma function."""
    for i in range(n):
        size = abs(x[i])
        below = x[i] < 0.0
        log = registers(f64, 2)
        product = registers(f64, 2)
        shifted(min(max(size, 1e-30), 200.0), log, product)
        plain = registers(f64, 2)
        plain[0] = product[0]
        plain[1] = product[1]
        product[0] = product[0] if size <= 200.0 else f64(1)
        product[1] = product[1] if size <= 200.0 else f64(0)
        reflected(min(max(size, 1e-30), LARGEST), product)
        sign = f64(-1) if below else f64(1)
        terms = registers(f64, 3)
        growth(sign * log[0], sign * log[1], terms)
        exponential = registers(f64, 2)
        one_more(terms[0], terms[1], exponential)
        high = exponential[0] + exponential[1]
        low = (exponential[0] - high) + exponential[1]
        ratio = high / plain[0]
        ratio = ratio + (fma(-ratio, plain[0], high) + (low - ratio * plain[1])) / plain[0]
        mirror = -(high * product[0] + (low * product[0] + high * product[1]))
        value = scaled(mirror if below else ratio, whole(terms[2]))
        value = INFINITY if x[i] > 171.7 else value
        value = 1.0 / x[i] if size < 1e-17 else value
        integer = trunc(size) == size
        to[i] = NAN if below and integer else value if x[i] == x[i] else x[i]


@device
def log_of_small(a: f64) -> f64:
    """Logarithm of a positive number, including subnormals."""
    logs = registers(f64, 2)
    log_of(normal(a), 0.0, logs)
    shift = f64(-54) if a < SMALLEST_NORMAL else f64(0)
    return logs[0] + (shift * LN2[0] + (logs[1] + shift * LN2[1]))


@device
def log_gamma_of_huge(x: f64) -> f64:
    """x (log(x) - 1), for x from 1e300: Stirling's series without negligible terms, computed in sixteenths against overflow."""
    log = registers(f64, 2)
    log_of(x, f64(0), log)
    fraction = 0.0625 * x
    product = fraction * log[0]
    product_low = fma(fraction, log[0], -product) + fraction * log[1]
    sums = registers(f64, 2)
    two_sum(product, -fraction, sums)
    return 16.0 * (sums[0] + (sums[1] + product_low))


@native
def lgamma(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The logarithm of the absolute value of the gamma function."""
    for i in range(n):
        size = abs(x[i])
        below = x[i] < 0.0
        a = min(max(size, 1e-30), LARGEST)
        log = registers(f64, 2)
        product = registers(f64, 2)
        shifted(a, log, product)
        plain = registers(f64, 2)
        log_of(product[0], product[1], plain)
        sums = registers(f64, 2)
        two_sum(log[0], -plain[0], sums)
        above = sums[0] + (sums[1] + (log[1] - plain[1]))
        reflected(a, product)
        sign = f64(-1) if product[0] < 0.0 else f64(1)
        mirror = registers(f64, 2)
        log_of(max(sign * product[0], 1e-30), sign * product[1], mirror)
        two_sum(mirror[0], -log[0], sums)
        under = sums[0] + (sums[1] + (mirror[1] - log[1]))
        value = under if below else above
        first = a - 1.0
        second = a - 2.0
        value = first * polynomial(first, LOG_GAMMA_1) if abs(first) <= 0.125 and not below else value
        value = second * polynomial(second, LOG_GAMMA_2) if abs(second) <= 0.125 and not below else value
        value = -log_of_small(size) if size < 1e-20 and size > 0.0 else value
        value = log_gamma_of_huge(size) if size > LARGEST and not below else value
        integer = trunc(size) == size
        value = INFINITY if size == 0.0 or (below and integer) or size > 2.56e305 else value
        to[i] = value if x[i] == x[i] else x[i]
