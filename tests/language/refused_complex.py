"""Refused uses of complex numbers; the golden text has the messages."""

# ruff: noqa
# mypy: ignore-errors
import numpy as np
import simtbed as st
from simtbed import Global, c64, c128, f32, i32


@st.kernel
def complex_numbers(z: Global[c64], w: Global[c128], x: Global[f32], n: i32) -> None:
    a = z[0]
    b = a * x[0]
    c = x[0] + 2j
    d = a + w[0]
    e = a < 1j
    f = a**2
    g = a // 2
    h = a.x
    i = a[0]
    a.real = 1.0
    j, k = a
    l = c64(1.0, 2.0, 3.0)
    m = c64(n, 1)
    o = st.conj(x[0])
    p = st.exp(a)
    q = f32(a)
    r = min(a, 1j)
    x[0] = 1j
    z[0] = x[0]
    z[0] = 1e300j
    s = st.shuffle(a, 0)
    print(a)
    st.atomic_add(z, 0, a)
    t = st.constant(c64, (1j, 2.0))
    u = complex(1.0, 2.0)
    v = not a
    y = z[1j]
    if a:
        x[0] = 1.0
    aa = 0.0
    aa += a
    bb = x[0] > 1j
    cc = st.bitcast(i32, a)
