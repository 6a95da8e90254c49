"""Sparse rows: products with a dense matrix."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, f32, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros


@st.kernel
def sparse_times_dense(
    start: Global[i32],
    column: Global[i32],
    value: Global[f32],
    dense: Global[f32],
    out: Global[f32],
    rows: i32,
    width: i32,
) -> None:
    """out = a sparse matrix in rows times a dense one; a warp a row of 64 columns, its entries broadcast by shuffles."""
    row = st.block.x * st.block_dim.y + st.thread.y
    if row >= rows:
        return
    left = st.block.y * 64 + st.thread.x
    end = start[row + 1]
    a, b = 0.0, 0.0
    for first in range(start[row], end, 32):
        c, v = 0, 0.0
        if first + st.thread.x < end:
            c = column[first + st.thread.x] * width
            v = value[first + st.thread.x]
        for k in range(min(32, end - first)):
            offset = st.shuffle(c, k) + left
            factor = st.shuffle(v, k)
            a += factor * dense[offset]
            b += factor * dense[offset + 32]
    out[row * width + left] = a
    out[row * width + left + 32] = b


# ------------------------------------------------------------------ launches


WIDTH = 128


def _sparse(n: int, block: tuple[int, int]) -> Args:
    random = draw()
    degree = random.poisson(12, n) + np.where(random.random(n) < 0.05, 60, 0)
    start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    return {
        "start": start, "column": random.integers(0, n, start[-1]).astype(np.int32),
        "value": random.random(start[-1], dtype=np.float32), "dense": random.random((n * WIDTH,), dtype=np.float32),
        "out": zeros(n * WIDTH), "rows": n, "width": WIDTH,
    }  # fmt: skip


def _multiplied(args: Args) -> dict[str, Values]:
    dense, n = args["dense"].reshape(-1, WIDTH), args["rows"]
    own = np.repeat(np.arange(n), np.diff(args["start"]))
    out = np.zeros((n, WIDTH))
    for k in range(WIDTH):
        out[:, k] = np.bincount(own, args["value"] * dense[args["column"], k], n)
    return {"out": out}


KERNELS = (
    ValidationKernel(
        sparse_times_dense, lambda n, b: (cover(n, b[1]), WIDTH // 64), _sparse, _multiplied, (1000, (32, 8)), (1 << 13, 1 << 16),
        ((32, 4), (32, 8), (32, 16)),
    ),
)  # fmt: skip
