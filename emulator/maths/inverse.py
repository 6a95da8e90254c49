"""Inverse trigonometric functions."""

from ..language.functions import device
from ..language.hints import Global, Registers, f64, i64
from ..language.intrinsics import bitcast, fma, registers, sqrt
from ..native import native
from .coefficients import ASIN, ATAN, ATAN_HALF, HALF_PI, PI, QUARTER_PI
from .double_double import DOWN, HUGE, INFINITY, TINY, UP, polynomial, two_sum


@device
def negative(x: f64) -> bool:
    """Whether the sign bit is set."""
    return bitcast(i64, x) < 0


@device
def arc(n: f64, d: f64, to: Registers[f64]) -> None:
    """atan(n / d) = to[0] + to[1], for 0 <= n <= d, d from 2**-500 to 2**500; n may be 0."""
    half = n >= 0.25 * d
    whole = n >= 0.75 * d
    top = n - d if whole else n - 0.5 * d if half else n
    scale = f64(1) if whole else f64(0.5) if half else f64(0)
    sums = registers(f64, 2)
    two_sum(d, scale * n, sums)
    t = top / sums[0]
    t_low = (fma(-t, sums[0], top) - t * sums[1]) / sums[0]
    base = f64(QUARTER_PI[0]) if whole else f64(ATAN_HALF[0]) if half else f64(0)
    base_low = f64(QUARTER_PI[1]) if whole else f64(ATAN_HALF[1]) if half else f64(0)
    z = t * t
    low = fma(t * z, polynomial(z, ATAN), t_low + base_low)
    high = base + t
    low = ((base - high) + t if half else f64(0)) + low
    to[0] = high + low
    to[1] = (high - to[0]) + low


@device
def from_angle(angle: f64, angle_low: f64, terms: Registers[f64]) -> f64:
    """angle - (terms[0] + terms[1])."""
    total = angle - terms[0]
    return total + (((angle - total) - terms[0]) + (angle_low - terms[1]))


@device
def arc_of(y: f64, x: f64) -> f64:
    """Angle of a point from the x axis, from 0 to pi, for y >= 0; the caller handles signs and special cases."""
    size = abs(x)
    swapped = y > size
    n = size if swapped else y
    d = y if swapped else size
    scale = f64(DOWN) if d > HUGE else f64(UP) if d < TINY else f64(1)
    terms = registers(f64, 2)
    arc(n * scale, d * scale, terms)
    flat = n < d * 1e-30
    ratio = n / d
    terms[0] = ratio if flat else terms[0]
    terms[1] = f64(0) if flat else terms[1]
    below = negative(x)
    angle = f64(HALF_PI[0]) if swapped else f64(PI[0])
    angle_low = f64(HALF_PI[1]) if swapped else f64(PI[1])
    off = from_angle(angle, angle_low, terms)
    past = registers(f64, 2)
    past[0] = -terms[0]
    past[1] = -terms[1]
    beyond = from_angle(angle, angle_low, past)
    return (beyond if swapped else off) if below else off if swapped else terms[0] + terms[1]


@native
def atan2(y: Global[f64], x: Global[f64], to: Global[f64], n: i64) -> None:
    """The angle of the point (x, y), with C's special cases."""
    for i in range(n):
        height = abs(y[i])
        size = abs(x[i])
        endless = height == INFINITY and size == INFINITY
        up = f64(1) if endless else height
        along = (f64(-1) if negative(x[i]) else f64(1)) if endless else x[i]
        value = arc_of(up, along)
        value = (
            (f64(PI[0]) if negative(x[i]) else f64(0)) if height == 0.0 or (size == INFINITY and not endless) else value
        )
        value = f64(HALF_PI[0]) if height == INFINITY and not endless else value
        value = -value if negative(y[i]) else value
        to[i] = value if x[i] == x[i] and y[i] == y[i] else x[i] + y[i]


@native
def atan(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The arc tangent."""
    for i in range(n):
        value = arc_of(min(abs(x[i]), 1e100), 1.0)
        value = -value if x[i] < 0.0 else value
        to[i] = value if abs(x[i]) > 1e-300 else x[i]


@device
def arc_sine(s: f64, s_low: f64, to: Registers[f64]) -> None:
    """asin(s + s_low) = to[0] + to[1], for |s| <= 1 / 2."""
    z = s * s
    to[1] = fma(s * z, polynomial(z, ASIN), s_low * fma(z, 0.5, 1.0))
    to[0] = s


@device
def of_chord(x: f64, to: Registers[f64]) -> None:
    """asin(sqrt((1 - x) / 2)) * 2 = to[0] + to[1], for x from 1 / 2 to 1."""
    w = 0.5 * (1.0 - x)
    s = sqrt(w)
    s_low = fma(-s, s, w) / (2.0 * s) if s > 0.0 else f64(0)
    arc_sine(s, s_low, to)
    to[0] = 2.0 * to[0]
    to[1] = 2.0 * to[1]


@native
def asin(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The arc sine."""
    for i in range(n):
        size = abs(x[i])
        chord = registers(f64, 2)
        of_chord(size, chord)
        small = registers(f64, 2)
        arc_sine(size, 0.0, small)
        value = small[0] + small[1] if size <= 0.5 else from_angle(HALF_PI[0], HALF_PI[1], chord)
        value = -value if x[i] < 0.0 else value
        to[i] = value if size > 1e-300 else x[i]


@native
def acos(x: Global[f64], to: Global[f64], n: i64) -> None:
    """The arc cosine."""
    for i in range(n):
        size = abs(x[i])
        chord = registers(f64, 2)
        of_chord(size, chord)
        small = registers(f64, 2)
        arc_sine(x[i], 0.0, small)
        outer = from_angle(PI[0], PI[1], chord) if x[i] < 0.0 else chord[0] + chord[1]
        to[i] = from_angle(HALF_PI[0], HALF_PI[1], small) if size <= 0.5 else outer
