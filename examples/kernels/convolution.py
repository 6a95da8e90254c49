"""Separable convolution: rows, then columns, with weights in constant memory."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy.ndimage import convolve1d

Floats = npt.NDArray[np.float32]
THREADS = 64


@st.device
def clamped(i: st.i32, size: st.i32) -> st.i32:
    """Return the nearest valid index."""
    return min(max(i, 0), size - 1)


@st.kernel
def along_rows(x: st.Global[st.f32], weights: st.Constant[st.f32], out: st.Global[st.f32]) -> None:
    """out = each row of x convolved with the weights; the edge values are repeated outside. A block computes a segment of a row."""
    radius = len(weights) // 2
    line = st.dynamic_shared(st.f32)
    start = st.block.x * THREADS - radius
    for t in range(st.thread.x, THREADS + 2 * radius, THREADS):
        line[t] = x[st.block.y, clamped(start + t, x.shape[1])]
    st.sync()
    j = st.block.x * THREADS + st.thread.x
    if j < x.shape[1]:
        total = 0.0
        for k in range(len(weights)):
            total += weights[k] * line[st.thread.x + 2 * radius - k]
        out[st.block.y, j] = total


def convolved(x: Floats, weights: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """x convolved with the weights along both axes."""
    for _ in range(2):
        grid = (-(-x.shape[1] // THREADS), x.shape[0])
        args = dict(x=x, weights=weights, out=st.empty(x.shape, st.f32))
        shared = 4 * (THREADS + len(weights) - 1)
        x = launch(along_rows, grid=grid, block=THREADS, args=args, shared=shared).out.T
    return x


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    x = np.random.default_rng(12).random((20, 90), np.float32)
    weights = np.array([0.1, 0.3, 0.4, 0.15, 0.05], np.float32)
    expected = convolve1d(convolve1d(x, weights, 1, mode="nearest"), weights, 0, mode="nearest")
    np.testing.assert_allclose(convolved(x, weights, launch), expected, rtol=1e-5)


if __name__ == "__main__":
    check()
