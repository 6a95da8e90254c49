"""Feature kernels of complex numbers: arithmetic, arrays in every memory, device functions, tuples."""

from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Global, c64, c128, double2, f32, f64, i32

from .feature import feature, out

_RE, _IM = (np.random.default_rng(n).integers(-8, 9, 32).astype(np.float32) for n in (1, 2))
NUMBERS = (_RE + 1j * _IM).astype(np.complex64)
"""Small whole numbers: their sums and products are exact."""
TURN = 1 - 2j


@feature(
    np.stack([NUMBERS * NUMBERS[::-1] - TURN * NUMBERS, -NUMBERS.conj() + 1j, 2 + NUMBERS / 4j], 1).astype(
        np.complex64
    ),
    x=NUMBERS,
    out=out(96, "c64"),
)
@st.kernel
def complex_arithmetic(x: Global[c64], out: Global[c64]) -> None:
    z, other = x[st.lane], x[31 - st.lane]
    out[3 * st.lane] = z * other - TURN * z
    out[3 * st.lane + 1] = -st.conj(z) + 1j
    out[3 * st.lane + 2] = 2.0 + z / 4j


def _smith(a: complex, b: complex) -> complex:
    """a / b in f64, as the documentation has it."""
    if abs(b.real) >= abs(b.imag):
        ratio = b.imag / b.real
        scale = b.real + b.imag * ratio
        return complex((a.real + a.imag * ratio) / scale, (a.imag - a.real * ratio) / scale)
    ratio = b.real / b.imag
    scale = b.real * ratio + b.imag
    return complex((a.real * ratio + a.imag) / scale, (a.imag * ratio - a.real) / scale)


@feature(
    [_smith(complex(n + 0.3, 7 - n), complex(n - 15.5, 3.7)) for n in range(32)],
    x=np.array([complex(n + 0.3, 7 - n) for n in range(32)]),
    out=out(32, "c128"),
)
@st.kernel
def complex_division(x: Global[c128], out: Global[c128]) -> None:
    out[st.lane] = x[st.lane] / c128(f64(st.lane) - 15.5, 3.7)


@feature([5 * n + 10 * (n == 3) + 100 * (n != 3) for n in range(32)], out=out(32, "f32"))
@st.kernel
def complex_magnitude(out: Global[f32]) -> None:
    n = f32(st.lane)
    z = c64(3 * n, -4 * n)
    out[st.lane] = abs(z) + (10.0 if z == 9 - 12j else 0.0) + (100.0 if z != c64(9.0, -12.0) else 0.0)


@feature(NUMBERS.reshape(4, 8).T.conj() * 3, block=(8, 4), x=NUMBERS.reshape(4, 8).T, out=st.empty((8, 4), "c64"))
@st.kernel
def complex_arrays(x: Global[c64], out: Global[c64]) -> None:
    """A transposed array, shared and local memory, registers."""
    tile = st.shared(c64, 8, 4)
    own = st.local(c64, 2)
    kept = st.registers(c64, 2)
    i, j = st.thread.x, st.thread.y
    tile[i, j] = x[i, j]
    st.sync()
    own[i % 2] = st.conj(tile[i, j])
    kept[1] = own[i % 2] * 2
    kept[1] += own[i % 2]
    out[i, j] = kept[1]


class Pole(NamedTuple):
    """A point and its weight."""

    at: c64
    weight: f32


@st.device
def rotated(z: c64, times: i32) -> tuple[c64, Pole]:
    """z rotated by right angles, and its position."""
    turned = z
    for _ in range(times):
        turned = turned * 1j
    return turned, Pole(turned if times > 1 else c64(0), turned.real)


_ROTATED = [NUMBERS[n] * 1j ** (n % 3) for n in range(32)]


@feature(
    np.array([z + (z if n % 3 > 1 else 0) + z.real for n, z in enumerate(_ROTATED)]), x=NUMBERS, out=out(32, "c64")
)
@st.kernel
def complex_numbers_of_device_functions(x: Global[c64], out: Global[c64]) -> None:
    z, pole = rotated(x[st.lane], st.lane % 3)
    out[st.lane] = z + pole.at + c64(pole.weight)


@feature([[n, 2 * n + 0.5] for n in range(32)], out=out(32, "double2"))
@st.kernel
def pairs_of_doubles(out: Global[double2]) -> None:
    wide = c128(c64(f32(st.lane), 2 * f32(st.lane))) + 0.5j
    out[st.lane] = double2(wide.real, wide.imag)
