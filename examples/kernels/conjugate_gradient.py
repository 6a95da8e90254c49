"""Conjugate gradients for a sparse system in one cooperative launch with grid barriers."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy import sparse

Doubles = npt.NDArray[np.float64]
BLOCKS, THREADS = 4, 64
WARPS = THREADS // st.WARP_SIZE


@st.device
def warp_sum(value: st.f64) -> st.f64:
    """The sum over the lanes of the warp, in every lane."""
    for step in st.unroll(range(5)):
        value += st.shuffle_xor(value, 1 << step)
    return value


@st.device
def grid_sum(value: st.f64, parts: st.Global[st.f64]) -> st.f64:
    """The sum over the threads of the grid, in every thread. warp_sums: one element for each warp of the grid, at most 32."""
    value = warp_sum(value)
    if st.lane == 0:
        parts[st.block.x * WARPS + st.warp] = value
    st.grid_sync()
    total = warp_sum(parts[st.lane] if st.lane < BLOCKS * WARPS else 0.0)
    st.grid_sync()
    return total


@st.kernel
def solve(
    starts: st.Global[st.i32],
    columns: st.Global[st.i32],
    values: st.Global[st.f64],
    x: st.Global[st.f64],
    residual: st.Global[st.f64],
    direction: st.Global[st.f64],
    product: st.Global[st.f64],
    parts: st.Global[st.f64],
    tolerance: st.f64,
) -> None:
    """Change x until A @ x = b. Before: x = 0, residual = direction = b."""
    first, stride = st.block.x * THREADS + st.thread.x, BLOCKS * THREADS
    mine = 0.0
    for i in range(first, len(x), stride):
        mine += residual[i] * residual[i]
    error = grid_sum(mine, parts)
    while error > tolerance:
        mine = 0.0
        for i in range(first, len(x), stride):
            total = 0.0
            for k in range(starts[i], starts[i + 1]):
                total += values[k] * direction[columns[k]]
            product[i] = total
            mine += total * direction[i]
        length = error / grid_sum(mine, parts)
        mine = 0.0
        for i in range(first, len(x), stride):
            x[i] += length * direction[i]
            residual[i] -= length * product[i]
            mine += residual[i] * residual[i]
        before, error = error, grid_sum(mine, parts)
        for i in range(first, len(x), stride):
            direction[i] = residual[i] + error / before * direction[i]
        st.grid_sync()


def solution(matrix: sparse.csr_matrix, b: Doubles, launch: Callable[..., st.Result] = st.launch) -> Doubles:
    """x such that matrix @ x = b. The matrix is symmetric and positive definite."""
    args = dict(
        starts=matrix.indptr,
        columns=matrix.indices,
        values=matrix.data,
        x=st.zeros(len(b), st.f64),
        residual=b,
        direction=b.copy(),
        product=st.empty(len(b), st.f64),
        parts=st.empty(BLOCKS * WARPS, st.f64),
        tolerance=1e-20,
    )
    output: Doubles = launch(solve, grid=BLOCKS, block=THREADS, args=args, cooperative=True).x
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the residual is too large."""
    line = 2.1 * np.eye(12) - np.eye(12, k=1) - np.eye(12, k=-1)
    matrix = sparse.csr_matrix(np.kron(line, np.eye(12)) + np.kron(np.eye(12), line))
    b = np.random.default_rng(22).standard_normal(144)
    np.testing.assert_allclose(matrix @ solution(matrix, b, launch), b, atol=1e-9)


if __name__ == "__main__":
    check()
