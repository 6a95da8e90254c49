"""A sparse matrix in compressed rows times a vector: a thread for each row, or a warp for each row."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy import sparse

Floats = npt.NDArray[np.float32]
THREADS = 128


@st.kernel
def by_thread(
    starts: st.Global[st.i32],
    columns: st.Global[st.i32],
    values: st.Global[st.f32],
    x: st.Global[st.f32],
    y: st.Global[st.f32],
) -> None:
    """y = A @ x. Row r has values[starts[r]:starts[r + 1]], in the columns of the same indices."""
    row = st.block.x * THREADS + st.thread.x
    if row < len(y):
        total = 0.0
        for k in range(starts[row], starts[row + 1]):
            total += values[k] * x[columns[k]]
        y[row] = total


@st.kernel
def by_warp(
    starts: st.Global[st.i32],
    columns: st.Global[st.i32],
    values: st.Global[st.f32],
    x: st.Global[st.f32],
    y: st.Global[st.f32],
) -> None:
    """The same; the lanes of a warp process a row together, so that loads are coalesced."""
    row = (st.block.x * THREADS + st.thread.x) // st.WARP_SIZE
    if row >= len(y):
        return
    total = 0.0
    for k in range(starts[row] + st.lane, starts[row + 1], st.WARP_SIZE):
        total += values[k] * x[columns[k]]
    for step in st.unroll(range(5)):
        total += st.shuffle_down(total, 16 >> step)
    if st.lane == 0:
        y[row] = total


def product(
    matrix: sparse.csr_matrix, x: Floats, kernel: st.Kernel, launch: Callable[..., st.Result] = st.launch
) -> Floats:
    """matrix @ x, by one of the two kernels."""
    rows = len(matrix.indptr) - 1
    threads = rows * st.WARP_SIZE if kernel is by_warp else rows
    args = dict(starts=matrix.indptr, columns=matrix.indices, values=matrix.data, x=x, y=st.empty(rows, st.f32))
    output: Floats = launch(kernel, grid=-(-threads // THREADS), block=THREADS, args=args).y
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    random = np.random.default_rng(16)
    filled = random.random((200, 300), np.float32)
    matrix = sparse.csr_matrix(np.where(filled < 0.1, filled, 0))
    x = random.random(300, np.float32)
    for kernel in (by_thread, by_warp):
        np.testing.assert_allclose(product(matrix, x, kernel, launch), matrix @ x, rtol=1e-5)


if __name__ == "__main__":
    check()
