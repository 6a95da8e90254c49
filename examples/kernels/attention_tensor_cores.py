"""Attention on tensor cores: a warp has 16 queries, and the fragments of their scores are those of the weights for the values."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy import special

Matrix = npt.NDArray[Any]
TILE = 64
WIDTH = 64
SCALE = math.log2(math.e) / math.sqrt(WIDTH)


@st.device
def pair(x: st.f32, y: st.f32) -> st.u32:
    """Two halves in a register."""
    low, high = st.bitcast(st.u16, st.f16(x)), st.bitcast(st.u16, st.f16(y))
    return st.u32(low) | st.u32(high) << 16


@st.kernel
def attend(
    queries: st.Global[st.f16], keys: st.Global[st.f16], values: st.Global[st.f16], out: st.Global[st.f32]
) -> None:
    """out = softmax(queries @ keys.T / sqrt(WIDTH)) @ values. The block is four warps; the rows are multiples of TILE."""
    tile = st.shared(st.f16, 2, TILE, WIDTH + 8)  # with 8 more, the 8 rows of a matrix are in different banks
    query = st.registers(st.u32, WIDTH // 4)
    mixed = st.registers(st.f32, WIDTH // 2)
    first = st.block.x * TILE
    for i in range(st.thread.x, TILE * WIDTH, 128):
        tile[0, i // WIDTH, i % WIDTH] = queries[first + i // WIDTH, i % WIDTH]
    st.sync()
    for d in st.unroll(range(WIDTH // 16)):
        a = st.load_matrix(tile, (0, 16 * st.warp + st.lane % 16, 16 * d + st.lane // 16 * 8))
        query[4 * d], query[4 * d + 1], query[4 * d + 2], query[4 * d + 3] = a.x, a.y, a.z, a.w
    for n in st.unroll(range(WIDTH // 2)):
        mixed[n] = 0.0
    highest, highest_8, total, total_8 = -math.inf, -math.inf, 0.0, 0.0  # of the rows lane / 4 and lane / 4 + 8
    for start in range(0, keys.shape[0], TILE):
        st.sync()
        for i in range(st.thread.x, TILE * WIDTH, 128):
            tile[0, i // WIDTH, i % WIDTH] = keys[start + i // WIDTH, i % WIDTH]
            tile[1, i // WIDTH, i % WIDTH] = values[start + i // WIDTH, i % WIDTH]
        st.sync()
        for k in range(0, TILE, 16):
            low, high = st.float4(0.0, 0.0, 0.0, 0.0), st.float4(0.0, 0.0, 0.0, 0.0)
            for d in st.unroll(range(WIDTH // 16)):
                rows = st.uint4(query[4 * d], query[4 * d + 1], query[4 * d + 2], query[4 * d + 3])
                b = st.load_matrix(tile, (0, k + st.lane // 16 * 8 + st.lane % 8, 16 * d + st.lane // 8 % 2 * 8))
                low = st.mma(rows, st.uint2(b.x, b.y), low, shape="m16n8k16", type="f16")
                high = st.mma(rows, st.uint2(b.z, b.w), high, shape="m16n8k16", type="f16")
            top, top_8 = max(low.x, low.y, high.x, high.y), max(low.z, low.w, high.z, high.w)
            for step in st.unroll(range(2)):
                top = max(top, st.shuffle_xor(top, 1 << step))
                top_8 = max(top_8, st.shuffle_xor(top_8, 1 << step))
            top, top_8 = max(highest, top), max(highest_8, top_8)
            shrink, shrink_8 = st.fast_exp2((highest - top) * SCALE), st.fast_exp2((highest_8 - top_8) * SCALE)
            x, y = st.fast_exp2((low.x - top) * SCALE), st.fast_exp2((low.y - top) * SCALE)
            z, w = st.fast_exp2((low.z - top_8) * SCALE), st.fast_exp2((low.w - top_8) * SCALE)
            p, q = st.fast_exp2((high.x - top) * SCALE), st.fast_exp2((high.y - top) * SCALE)
            r, s = st.fast_exp2((high.z - top_8) * SCALE), st.fast_exp2((high.w - top_8) * SCALE)
            total, total_8 = total * shrink + (x + y + p + q), total_8 * shrink_8 + (z + w + r + s)
            highest, highest_8 = top, top_8
            weights = st.uint4(pair(x, y), pair(z, w), pair(p, q), pair(r, s))
            for n in st.unroll(range(WIDTH // 8)):
                v = st.load_matrix(tile, (1, k + st.lane % 16, 8 * n), count=2, transposed=True)
                x, y, z, w = mixed[4 * n], mixed[4 * n + 1], mixed[4 * n + 2], mixed[4 * n + 3]
                c = st.float4(x * shrink, y * shrink, z * shrink_8, w * shrink_8)
                c = st.mma(weights, v, c, shape="m16n8k16", type="f16")
                mixed[4 * n], mixed[4 * n + 1], mixed[4 * n + 2], mixed[4 * n + 3] = c.x, c.y, c.z, c.w
    for step in st.unroll(range(2)):
        total, total_8 = total + st.shuffle_xor(total, 1 << step), total_8 + st.shuffle_xor(total_8, 1 << step)
    for n in st.unroll(range(WIDTH // 2)):
        row = first + 16 * st.warp + st.lane // 4 + n // 2 % 2 * 8
        out[row, n // 4 * 8 + st.lane % 4 * 2 + n % 2] = mixed[n] / (total if n // 2 % 2 == 0 else total_8)


def attention(queries: Matrix, keys: Matrix, values: Matrix, launch: Callable[..., st.Result] = st.launch) -> Matrix:
    """Return the mean of the values for each query, weighted by the softmax of the products with the keys."""
    args = dict(queries=queries, keys=keys, values=values, out=st.empty(queries.shape, st.f32))
    output: Matrix = launch(attend, grid=queries.shape[0] // TILE, block=128, args=args).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    random = np.random.default_rng(23)
    queries, keys, values = (random.standard_normal((rows, WIDTH)).astype(np.float16) for rows in (64, 128, 128))
    scores = queries.astype(np.float64) @ keys.T.astype(np.float64) / math.sqrt(WIDTH)
    expected = special.softmax(scores, 1) @ values.astype(np.float64)
    np.testing.assert_allclose(attention(queries, keys, values, launch), expected, rtol=0, atol=2e-3)


if __name__ == "__main__":
    check()
