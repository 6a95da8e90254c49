"""Feature kernels of the tensor cores. See features.py."""

import numpy as np
import simtbed as st
from simtbed import Global, f16, f32, f64, i32, u32

from .feature import feature, out

_A = (np.arange(256) * 7 % 23 - 11).reshape(16, 16)
_B = (np.arange(128) * 5 % 19 - 9).reshape(16, 8)
_F64 = (np.arange(32) - 15.5) / 8


@feature(
    (_A @ _B).reshape(-1).tolist(),
    a=_A.reshape(-1).astype(np.float16),
    b=_B.reshape(-1).astype(np.float16),
    out=out(128, "f32"),
)
@st.kernel
def matrix_product_of_halves(a: Global[f16], b: Global[f16], out: Global[f32]) -> None:
    left = st.shared(f16, 16, 16)
    right = st.shared(f16, 16, 8)
    for i in range(st.lane, 256, 32):
        left[i // 16, i % 16] = a[i]
    for i in range(st.lane, 128, 32):
        right[i // 8, i % 8] = b[i]
    st.syncwarp()
    rows = st.load_matrix(left, (st.lane % 16, st.lane // 16 * 8))
    columns = st.load_matrix(right, (st.lane % 16, 0), count=2, transposed=True)
    d = st.mma(rows, columns, st.float4(0.0, 0.0, 0.0, 0.0), shape="m16n8k16", type="f16")
    place = st.lane // 4 * 8 + st.lane % 4 * 2
    out[place] = d.x
    out[place + 1] = d.y
    out[place + 64] = d.z
    out[place + 65] = d.w


@feature(
    [
        sum((4 * (x // 4) + k // 4 + 3 * (k % 4) - 40) * (k + x % 4 * 2 + n) for k in range(16)) + x
        for x in range(32)
        for n in range(2)
    ],
    out=out(64),
)
@st.kernel
def matrix_product_of_bytes(out: Global[i32]) -> None:
    row, a, b = st.lane // 4, u32(0), u32(0)
    for n in range(4):
        a |= (u32(4 * row + st.lane % 4 + 3 * n - 40) & u32(255)) << u32(8 * n)
        b |= u32(4 * (st.lane % 4) + n + row) << u32(8 * n)
    d = st.mma(a, b, st.int2(st.lane, st.lane), shape="m8n8k16", type="s8.u8")
    out[2 * st.lane] = d.x
    out[2 * st.lane + 1] = d.y


@feature(
    [float(v) for v in (_F64.reshape(8, 4)[:, :, None] * _F64.reshape(8, 4).T[None]).sum(axis=1).reshape(-1)],
    x=_F64,
    out=out(64, "f64"),
)
@st.kernel
def matrix_product_of_doubles(x: Global[f64], out: Global[f64]) -> None:
    d = st.mma(x[st.lane], x[st.lane], st.double2(0.0, 0.0), shape="m8n8k4", type="f64")
    out[2 * st.lane] = d.x
    out[2 * st.lane + 1] = d.y


@feature(
    [
        v
        for x in range(32)
        for v in (8 * (2 * (x % 4)) + x // 4 | 8 * (2 * (x % 4) + 1) + x // 4 << 16, x * 2 | x * 2 + 1 << 16)
    ]
    + [(63 - v) for v in range(64)],
    out=out(128, "u32"),
)
@st.kernel
def moves_of_matrices(out: Global[u32]) -> None:
    tile = st.shared(st.u16, 64)
    other = st.shared(st.u16, 64)
    tile[st.lane], tile[st.lane + 32] = st.u16(st.lane), st.u16(st.lane + 32)
    st.syncwarp()
    row = 8 * (st.lane % 8)
    plain = st.load_matrix(tile, row, count=1)
    turned = st.load_matrix(tile, row, count=1, transposed=True)
    out[2 * st.lane] = turned if st.move_matrix(plain) == turned else u32(0)
    out[2 * st.lane + 1] = plain
    st.store_matrix(other, row, turned, transposed=True)
    st.syncwarp()
    out[64 + st.lane] = u32(63 - i32(other[st.lane]))
    out[96 + st.lane] = u32(63 - i32(other[st.lane + 32]))


@feature(
    (_A[:, None, :] * _B.T[None]).sum(axis=2).repeat(4, axis=0).reshape(-1).tolist(),
    block=128,
    a=_A.reshape(-1).astype(np.float16),
    b=_B.reshape(-1).astype(np.float16),
    out=out(512, "f32"),
)
@st.kernel
def matrix_product_of_a_warpgroup(a: Global[f16], b: Global[f16], out: Global[f32]) -> None:
    left = st.shared(f16, 1024)
    right = st.shared(f16, 128)
    for i in range(st.thread.x, 1024, 128):
        row, k = i // 16, i % 16
        left[16 * row + (k ^ (row // 4 % 2 * 8))] = a[row // 4 * 16 + k]
    right[st.thread.x] = b[st.thread.x]
    d = st.registers(f32, 4)
    for i in st.unroll(range(4)):
        d[i] = f32(0)
    st.fence_async()
    st.sync()
    st.wgmma_fence()
    rows = st.matrix_descriptor(0, leading=16, stride=256, swizzle=32)
    columns = st.matrix_descriptor(0, leading=128, stride=128)
    st.wgmma(d, (left, rows), (right, columns), shape="m64n8k16", type="f16", transposed="b")
    st.wgmma_commit()
    st.wgmma_wait()
    place = (st.warp * 16 + st.lane // 4) * 8 + st.lane % 4 * 2
    out[place] = d[0]
    out[place + 1] = d[1]
    out[place + 64] = d[2]
    out[place + 65] = d[3]
