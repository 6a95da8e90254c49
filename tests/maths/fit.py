"""Fit the coefficients of `simtbed.maths`: polynomial interpolation at Chebyshev points.

python -m tests.maths.fit > emulator/maths/coefficients.py
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath

mp = mpmath.mp.clone()
mp.dps = 60
Real = Any


@dataclass(frozen=True)
class Fit:
    """A polynomial approximation of `function` between two numbers, with its comment."""

    function: Callable[[Real], Real]
    low: float
    high: float
    terms: int
    stated: str

    def coefficients(self) -> list[float]:
        """Return the rounded coefficients from the lowest power on."""
        middle, half = mp.mpf(self.high + self.low) / 2, mp.mpf(self.high - self.low) / 2
        nodes = [mp.cos(mp.pi * (2 * k + 1) / (2 * self.terms)) for k in range(self.terms)]
        points = [middle + half * node for node in nodes]
        matrix = mp.matrix([[point**power for power in range(self.terms)] for point in points])
        actual = mp.lu_solve(matrix, mp.matrix([self.function(point) for point in points]))
        return [float(c) for c in actual]

    def error(self, samples: int = 200) -> float:
        """Return the largest distance of the rounded polynomial from the function."""
        own = self.coefficients()
        step = mp.mpf(self.high - self.low) / samples
        points = [self.low + step * (k + mp.mpf(1) / 3) for k in range(samples)]
        return float(max(abs(_horner(own, x) - self.function(x)) for x in points))


def _horner(coefficients: list[float], x: Real) -> Real:
    value = mp.mpf(0)
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value


def _series(first: Callable[[int], Real]) -> Callable[[Real], Real]:
    """Return a power series, accurate near zero."""

    def value(z: Real) -> Real:
        total, added, term, power = mp.mpf(0), mp.mpf(1), 0, mp.mpf(1)
        while power and (term < 3 or abs(added) > mp.mpf(10) ** -58):
            added = first(term) * power
            total, power, term = total + added, power * z, term + 1
        return total

    return value


def _asin(k: int) -> Real:
    """Coefficient k of (asin(s) / s - 1) / s^2 as a series in s^2."""
    n = k + 1
    return mp.binomial(2 * n, n) / (mp.mpf(4) ** n * (2 * n + 1))


def _erf(k: int) -> Real:
    """Coefficient k of (erf(x) / x - 2 / sqrt(pi)) / x^2 as a series in x^2."""
    return 2 / mp.sqrt(mp.pi) * mp.mpf(-1) ** (k + 1) / (mp.factorial(k + 1) * (2 * k + 3))


def _stirling(z: Real) -> Real:
    """(log gamma(x) - (x - 1 / 2) log(x) + x - log(2 pi) / 2) x, z = 1 / x^2."""
    if z < 1e-4:
        terms = (mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) * z ** (k - 1) for k in range(1, 14))
        return mp.fsum(terms)
    x = 1 / mp.sqrt(z)
    return (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x


def _log_gamma(at: int) -> Callable[[Real], Real]:
    def function(h: Real) -> Real:
        return mp.loggamma(at + h) / h

    return function


def _scaled_erfc(t: Real) -> Real:
    """erfc(x) exp(x^2) (1 + 2 x), where t = (x - 4) / (x + 4)."""
    x = 4 * (1 + t) / (1 - t)
    return mp.erfc(x) * mp.exp(x * x) * (1 + 2 * x)


FITS = {
    "EXP": Fit(_series(lambda k: 1 / mp.factorial(k + 3)), -0.3475, 0.3475, 11, "(exp(r) - 1 - r - r^2 / 2) / r^3"),
    "ATANH": Fit(_series(lambda k: mp.mpf(1) / (2 * k + 5)), 0.0, 0.02945, 10, "((atanh(s) / s - 1) / z - 1 / 3) / z, z = s^2"),
    "SIN": Fit(_series(lambda k: mp.mpf(-1) ** k / mp.factorial(2 * k + 5)), 0.0, 0.6169, 7, "((sin(r) / r - 1) / z + 1 / 6) / z, z = r^2"),
    "COS": Fit(_series(lambda k: mp.mpf(-1) ** k / mp.factorial(2 * k + 4)), 0.0, 0.6169, 8, "(cos(r) - 1 + z / 2) / z^2, z = r^2"),
    "ATAN": Fit(_series(lambda k: mp.mpf(-1) ** (k + 1) / (2 * k + 3)), 0.0, 0.0626, 11, "(atan(t) / t - 1) / z, z = t^2"),
    "ASIN": Fit(_series(_asin), 0.0, 0.2501, 15, "(asin(s) / s - 1) / z, z = s^2"),
    "SINH": Fit(_series(lambda k: 1 / mp.factorial(2 * k + 5)), 0.0, 1.0, 8, "((sinh(x) / x - 1) / z - 1 / 6) / z, z = x^2"),
"ERF": Fit(_series(_erf), 0.0, 1.0, 14, "(erf(x) / x - 2 / sqrt(pi)) / z, z = x^2"),
    "ERFC": Fit(_scaled_erfc, -0.7, 0.78, 24, "erfc(x) exp(x^2) (1 + 2 x), of t = (x - 4) / (x + 4)"),
    "CBRT": Fit(mp.cbrt, 1.0, 8.0, 6, "x^(1/3)"),
    "STIRLING": Fit(_stirling, 0.0, 1 / 64, 10, "(log gamma(x) - (x - 1 / 2) log(x) + x - log(2 pi) / 2) x, z = 1 / x^2"),
    "LOG_GAMMA_1": Fit(_log_gamma(1), -0.1251, 0.1251, 16, "log gamma(1 + h) / h"),
    "LOG_GAMMA_2": Fit(_log_gamma(2), -0.1251, 0.1251, 14, "log gamma(2 + h) / h"),
}  # fmt: skip


def float_terms(value: Real, bits: tuple[int, ...]) -> list[float]:
    """Return a number as a sum of floats with these numbers of bits."""
    actual = []
    for count in bits:
        exponent = int(mp.floor(mp.log(abs(value), 2))) + 1 - count
        actual.append(float(mp.ldexp(mp.nint(mp.ldexp(value, -exponent)), exponent)))
        value -= actual[-1]
    return actual


def constants() -> dict[str, list[float]]:
    """Return constants as double-doubles, with short first terms for exact products with an exponent."""
    pi, log = mp.pi, mp.log
    return {
        "LN2": float_terms(log(2), (42, 53)), "LN2_FULL": float_terms(log(2), (53, 53)), "LOG2_E": float_terms(1 / log(2), (53, 53)),
        "LN10": float_terms(log(10), (53, 53)), "LOG10_E": float_terms(1 / log(10), (53, 53)),
        "LOG10_2": float_terms(log(2) / log(10), (42, 53)), "TWO_THIRDS": float_terms(mp.mpf(2) / 3, (53, 53)),
        "SIXTH": float_terms(mp.mpf(1) / 6, (53, 53)),
        "HALF_PI": float_terms(pi / 2, (53, 53, 53)), "PI": float_terms(pi, (53, 53)), "QUARTER_PI": float_terms(pi / 4, (53, 53)),
        "ATAN_HALF": float_terms(mp.atan(0.5), (53, 53)), "ROOT_HALF": float_terms(mp.sqrt(0.5), (53, 53)),
        "ERF_SLOPE": float_terms(2 / mp.sqrt(pi), (53, 53)), "HALF_LOG_2PI": float_terms(log(2 * pi) / 2, (53, 53)),
    }  # fmt: skip


def words_of_two_over_pi(count: int = 20) -> list[int]:
    """Return the first bits of 2 / pi after the binary point, 64 a number."""
    with mp.workdps(500):
        return [int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * (n + 1)))) % 2**64 for n in range(count)]


def text() -> str:
    """Return the text of the module."""
    lines = ['"""Coefficients of polynomials, from the lowest power on, as `tests/maths/fit.py` computes them."""\n']
    for name, fit in FITS.items():
        values = "".join(f"    {c!r},\n" for c in fit.coefficients())
        lines.append(f'{name} = (\n{values})\n"""{fit.stated}, from {fit.low:g} to {fit.high:g}."""')
    lines += [f"{name} = ({', '.join(map(repr, actual))})" for name, actual in constants().items()]
    words = "".join(f"    0x{word:016X},\n" for word in words_of_two_over_pi())
    lines.append(f'TWO_OVER_PI = (\n    0,\n{words})\n"""64 zeros, then the first bits of 2 / pi after the point."""')
    return "\n".join(lines)


if __name__ == "__main__":
    print(text())
