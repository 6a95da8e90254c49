"""Attention without a matrix of weights: keys and values are read in tiles, and the softmax is updated for each tile."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy import special

Floats = npt.NDArray[np.float32]
THREADS = 32


@st.kernel
def attend(
    queries: st.Global[st.f32],
    keys: st.Global[st.f32],
    values: st.Global[st.f32],
    out: st.Global[st.f32],
    WIDTH: st.Const,
) -> None:
    """out = softmax(queries @ keys.T / sqrt(WIDTH)) @ values. A thread for each query."""
    tile_keys = st.shared(st.f32, THREADS, WIDTH)
    tile_values = st.shared(st.f32, THREADS, WIDTH)
    query = st.registers(st.f32, WIDTH)
    mixed = st.registers(st.f32, WIDTH)
    i = st.block.x * THREADS + st.thread.x
    for d in st.unroll(range(WIDTH)):
        query[d] = queries[i, d] / math.sqrt(WIDTH) if i < queries.shape[0] else 0.0
        mixed[d] = 0.0
    highest, total = -math.inf, 0.0
    for start in range(0, keys.shape[0], THREADS):
        count = min(THREADS, keys.shape[0] - start)
        for k in range(count):
            for d in range(st.thread.x, WIDTH, THREADS):
                tile_keys[k, d] = keys[start + k, d]
                tile_values[k, d] = values[start + k, d]
        st.sync()
        for k in range(count):
            score = 0.0
            for d in st.unroll(range(WIDTH)):
                score += query[d] * tile_keys[k, d]
            higher = max(highest, score)
            correction, weight = st.exp(highest - higher), st.exp(score - higher)
            total = total * correction + weight
            for d in st.unroll(range(WIDTH)):
                mixed[d] = mixed[d] * correction + weight * tile_values[k, d]
            highest = higher
        st.sync()
    if i < queries.shape[0]:
        for d in st.unroll(range(WIDTH)):
            out[i, d] = mixed[d] / total


def attention(queries: Floats, keys: Floats, values: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """Return the mean of the values for each query, weighted by the softmax of the products with the keys."""
    rows, width = queries.shape
    args = dict(queries=queries, keys=keys, values=values, out=st.empty((rows, width), st.f32), WIDTH=width)
    output: Floats = launch(attend, grid=-(-rows // THREADS), block=THREADS, args=args).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    random = np.random.default_rng(19)
    queries, (keys, values) = (
        random.standard_normal((40, 16), np.float32),
        random.standard_normal((2, 50, 16), np.float32),
    )
    expected = special.softmax(queries @ keys.T / 4, 1) @ values
    np.testing.assert_allclose(attention(queries, keys, values, launch), expected, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    check()
