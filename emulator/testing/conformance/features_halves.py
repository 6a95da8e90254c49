"""Feature kernels of f16 and bf16: arithmetic, conversions, vectors, shared memory, shuffles, atomic operations."""

import numpy as np
import simtbed as st
from ml_dtypes import bfloat16
from simtbed import Const, Global, bf16, bfloat162, f16, f32, f64, half2, i16, i32, i64, u16

from .feature import feature, out

LANES = np.arange(32)
X = (LANES / 7).astype(np.float16)
Y = (1 - LANES / 3).astype(np.float16)
PAIRS = np.arange(128).reshape(64, 2)
TILE = np.arange(256).reshape(16, 16)


# ------------------------------------------------------------------ scalars
@feature(X * np.float16(0.1) + Y / np.float16(3) - X, x=X, y=Y, out=out(32, "f16"))
@st.kernel
def arithmetic_of_f16(x: Global[f16], y: Global[f16], out: Global[f16]) -> None:
    t = st.lane
    value = x[t] * 0.1
    value += y[t] / 3
    out[t] = value - x[t]


@feature(
    (X.astype(bfloat16) * bfloat16(0.1) + Y.astype(bfloat16) / bfloat16(3)).tolist(),
    x=X.astype(bfloat16), y=Y.astype(bfloat16), out=out(32, "bf16"),
)  # fmt: skip
@st.kernel
def arithmetic_of_bf16(x: Global[bf16], y: Global[bf16], out: Global[bf16]) -> None:
    out[st.lane] = x[st.lane] * 0.1 + y[st.lane] / 3


@feature(
    np.where(X > 1, np.maximum(X, 2), np.sqrt(np.abs(-Y))).astype(np.float16), x=X, y=Y, limit=2.0, out=out(32, "f16")
)
@st.kernel
def choices_of_f16(x: Global[f16], y: Global[f16], out: Global[f16], limit: f16) -> None:
    t = st.lane
    if x[t] > 1:
        out[t] = max(x[t], limit)
    else:
        out[t] = st.sqrt(abs(-y[t]))


@feature([1 + 2**-10, 1 + 2**-7, 2048, 2052, 2.0**25 + 2**18, np.inf, 1.5, 3, 2**-24], out=out(9, "f64"))
@st.kernel
def conversions_round_once(out: Global[f64]) -> None:
    """Each value is just above a tie, where a step in between would lose what decides."""
    if st.lane == 0:
        above = f64(1) + f64(2.0**-11) + f64(2.0**-40)
        out[0] = f64(f16(above))
        out[1] = f64(bf16(f64(1) + f64(2.0**-8) + f64(2.0**-40)))
        out[2] = f64(f16(i32(2049)))
        out[3] = f64(f16(i32(2051)))
        out[4] = f64(bf16((i64(1) << 25) + (1 << 17) + 1))
        out[5] = f64(f16(f32(65520)))
        out[6] = f64(bf16(f16(1.5)))
        out[7] = f64(i32(f16(3.75)))
        out[8] = f64(f16(f32(2.0**-25) * f32(1.001)))


@feature([2.0**-23, 193 / 128], out=out(2, "f32"))
@st.kernel
def fused_products_of_halves(out: Global[f32]) -> None:
    """A tiny addend decides a tie of the product."""
    if st.lane == 0:
        out[0] = f32(st.fma(f16(2.0**-12), f16(1.5 * 2.0**-12), f16(0)))
        out[1] = f32(st.fma(bf16(129 / 128), bf16(1.5), bf16(-(2.0**-120))))


@feature((X + X[::-1])[LANES ^ 1] + np.array([0.1, 0.3], np.float16)[LANES % 2], x=X, out=out(32, "f16"))
@st.kernel
def shuffles_of_f16(x: Global[f16], out: Global[f16]) -> None:
    table = st.constant(f16, (0.1, 0.3))
    t = st.lane
    total = st.shuffle_xor(x[t] + st.shuffle(x[t], 31 - t), 1)
    out[t] = total + table[t % 2]


@feature(X.view(np.uint16).astype(np.int32) + 0x3F80, x=X, out=out())
@st.kernel
def bits_of_halves(x: Global[f16], out: Global[i32]) -> None:
    same = st.bitcast(f16, st.bitcast(i16, x[st.lane]))
    out[st.lane] = i32(st.bitcast(u16, same)) + i32(st.bitcast(u16, bf16(1)))


# ------------------------------------------------------------------ vectors, shared memory
@feature((PAIRS * 0.5 + 3).astype(np.float16), block=64, a=0.5, x=PAIRS.astype(np.float16),
         y=np.full((64, 2), 3, np.float16), out=out(64, "half2"))  # fmt: skip
@st.kernel
def axpy_of_half2(a: f16, x: Global[half2], y: Global[half2], out: Global[half2]) -> None:
    i = st.thread.x
    u, v = x[i], y[i]
    out[i] = half2(st.fma(a, u.x, v.x), st.fma(a, u.y, v.y))


@feature((PAIRS[:, ::-1] - 1).tolist(), block=64, x=PAIRS.astype(bfloat16), out=out(64, "bfloat162"))
@st.kernel
def pairs_of_bf16(x: Global[bfloat162], out: Global[bfloat162]) -> None:
    pair = x[st.thread.x]
    out[st.thread.x] = bfloat162(pair[1] - 1, pair[0] - 1)


@feature((TILE % 7) @ (TILE % 5), block=(16, 16), a=(TILE % 7).astype(np.float16), b=(TILE % 5).astype(np.float16),
         out=st.empty((16, 16), "f32"), TILE=16)  # fmt: skip
@st.kernel
def product_of_f16_tiles(a: Global[f16], b: Global[f16], out: Global[f32], TILE: Const) -> None:
    """Halves in shared memory, their products summed in f32."""
    left = st.shared(f16, TILE, TILE)
    right = st.shared(f16, TILE, TILE + 1)
    i, j = st.thread.y, st.thread.x
    left[i, j], right[i, j] = a[i, j], b[i, j]
    st.sync()
    total = f32(0)
    for k in range(TILE):
        total = st.fma(f32(left[i, k]), f32(right[k, j]), total)
    out[i, j] = total


# ------------------------------------------------------------------ atomic operations
@feature([32.0, -48.0], out=np.zeros(2, np.float16))
@st.kernel
def atomic_addition_of_f16(out: Global[f16]) -> None:
    total = st.shared(f16, 1)
    if st.lane == 0:
        total[0] = 0
    st.syncwarp()
    st.atomic_add(total, 0, 1)
    st.atomic_sub(out, 1, 1.5)
    st.syncwarp()
    if st.lane == 0:
        out[0] = total[0]


@feature([32.0, 64.0, 16.0, 8.0], out=np.zeros((2, 2), np.float16))
@st.kernel
def atomic_addition_of_half2(out: Global[half2]) -> None:
    total = st.shared(half2, 1)
    if st.lane == 0:
        total[0] = half2(0, 0)
    st.syncwarp()
    st.atomic_add(out, 0, half2(1, 2))
    st.atomic_add(total, 0, half2(0.5, 0.25))
    st.syncwarp()
    if st.lane == 0:
        out[1] = total[0]


@feature([32.0, 64.0, 96.0], pairs=np.zeros((1, 2), bfloat16), out=np.zeros(3, bfloat16))
@st.kernel
def atomic_addition_of_bf16(pairs: Global[bfloat162], out: Global[bf16]) -> None:
    st.atomic_add(out, 0, 1)
    st.atomic_add(pairs, 0, bfloat162(2, 3))
    st.syncwarp()
    if st.lane == 0:
        out[1], out[2] = pairs[0]
