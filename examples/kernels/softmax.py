"""Softmax of rows: one warp per row computes the maximum and the sum in one pass."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy import special

Floats = npt.NDArray[np.float32]
THREADS = 128


@st.device
def joined(a: tuple[st.f32, st.f32], b: tuple[st.f32, st.f32]) -> tuple[st.f32, st.f32]:
    """Merge two (maximum, sum of exponentials) pairs."""
    highest = max(a[0], b[0])
    if highest == -math.inf:
        return highest, 0.0
    return highest, a[1] * st.exp(a[0] - highest) + b[1] * st.exp(b[0] - highest)


@st.kernel
def softmax_rows(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out = exp(x) / the sum of exp(x) over the row."""
    row = (st.block.x * THREADS + st.thread.x) // st.WARP_SIZE
    if row >= x.shape[0]:
        return
    part = (-math.inf, 0.0)
    for j in range(st.lane, x.shape[1], st.WARP_SIZE):
        part = joined(part, (x[row, j], 1.0))
    for step in st.unroll(range(5)):
        part = joined(part, (st.shuffle_xor(part[0], 1 << step), st.shuffle_xor(part[1], 1 << step)))
    highest, total = part
    for j in range(st.lane, x.shape[1], st.WARP_SIZE):
        out[row, j] = st.exp(x[row, j] - highest) / total


def softmax(x: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """The softmax of each row."""
    args = dict(x=x, out=st.empty(x.shape, st.f32))
    output: Floats = launch(softmax_rows, grid=-(-len(x) * st.WARP_SIZE // THREADS), block=THREADS, args=args).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    x = np.random.default_rng(18).normal(0, 10, (10, 70)).astype(np.float32)
    np.testing.assert_allclose(softmax(x, launch), special.softmax(x, 1), rtol=1e-5)


if __name__ == "__main__":
    check()
