"""Feature kernels of mathematics: functions that give several results, Python's own names, powers. See features.py.

Their answers are exact, so that engines agree on them to the bit.
"""

import math

import numpy as np
import simtbed as st
from simtbed import Global, f32, f64, i32

from .feature import feature, out

_X = np.array([1.5 * n - 20 for n in range(32)], np.float32)


@feature([v for n in range(32) for v in (0, 1)], out=out(64, "f64"))
@st.kernel
def sine_and_cosine(out: Global[f64]) -> None:
    """out = sine and cosine of 0, from a tuple."""
    s, c = st.sincos(f64(len(out) - 64))
    out[2 * st.lane] = s
    out[2 * st.lane + 1] = c


@feature([v for x in _X.tolist() for v in (*math.frexp(x), math.ldexp(x, 3))], x=_X, out=out(96, "f32"))
@st.kernel
def floats_taken_apart(x: Global[f32], out: Global[f32]) -> None:
    fraction, exponent = st.frexp(x[st.lane])
    out[3 * st.lane] = fraction
    out[3 * st.lane + 1] = f32(exponent)
    out[3 * st.lane + 2] = st.ldexp(x[st.lane], 3)


@feature([v for x in _X.tolist() for v in (x**2, x**3, x**4, 49)], x=_X, n=7, out=out(128, "f32"))
@st.kernel
def powers(x: Global[f32], n: i32, out: Global[f32]) -> None:
    """Small constant exponents multiply."""
    own = x[st.lane]
    out[4 * st.lane] = own**2
    out[4 * st.lane + 1] = pow(own, 3)
    out[4 * st.lane + 2] = own
    out[4 * st.lane + 2] **= 4
    out[4 * st.lane + 3] = f32(n**2)


@feature(
    [
        v
        for x in _X.tolist()
        for v in (math.floor(x), math.ceil(x), math.trunc(x), math.fmod(x, 4), math.remainder(x, 4))
    ],
    x=_X,
    out=out(160, "f32"),
)
@st.kernel
def mathematics_of_python(x: Global[f32], out: Global[f32]) -> None:
    """The functions of Python's `math` are those of the language; of constants alone they are constants."""
    own = x[st.lane] * (math.sqrt(4) / 2)
    at = 5 * st.lane
    out[at] = math.floor(own)
    out[at + 1] = math.ceil(own)
    out[at + 2] = math.trunc(own)
    out[at + 3] = math.fmod(own, 4)
    out[at + 4] = math.remainder(own, math.fabs(-4))


@feature(
    [
        [int(k == 0), int(k in (1, 2)), int(k > 2), int(k in (2, 4))][j]
        for n in range(32)
        for k in [n % 5]
        for j in range(4)
    ],
    x=np.array([[math.nan, math.inf, -math.inf, 0.0, -0.0][n % 5] for n in range(32)]),
    out=out(128),
)
@st.kernel
def kinds_of_floats(x: Global[f64], out: Global[i32]) -> None:
    own = x[st.lane]
    out[4 * st.lane] = i32(st.isnan(own))
    out[4 * st.lane + 1] = i32(math.isinf(own))
    out[4 * st.lane + 2] = i32(st.isfinite(own))
    out[4 * st.lane + 3] = i32(st.signbit(st.copysign(f64(1), own))) if not st.isnan(own) else 0
