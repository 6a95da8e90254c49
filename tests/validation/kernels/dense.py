"""Matrices: products by tiles, systems with a triangular matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32

from .kernel import Args, ValidationKernel, Values, floats, tiles, zeros


@st.kernel
def matmul_tiled(a: Global[f32], b: Global[f32], out: Global[f32], n: i32, TILE: Const) -> None:
    """out = a @ b, by tiles in shared memory, with guards at the edges."""
    left = st.shared(f32, TILE, TILE)
    right = st.shared(f32, TILE, TILE)
    tx, ty = st.thread.x, st.thread.y
    row, column = st.block.y * TILE + ty, st.block.x * TILE + tx
    total = 0.0
    for step in range(0, n, TILE):
        left[ty, tx] = a[row * n + step + tx] if row < n and step + tx < n else 0.0
        right[ty, tx] = b[(step + ty) * n + column] if step + ty < n and column < n else 0.0
        st.sync()
        for k in range(TILE):
            total += left[ty, k] * right[k, tx]
        st.sync()
    if row < n and column < n:
        out[row * n + column] = total


@st.kernel
def triangular_solve(a: Global[f32], b: Global[f32], out: Global[f32], N: Const) -> None:
    """Forward substitution, a block a system of N unknowns: a thread each; the diagonal is 1."""
    x = st.shared(f32, N)
    t, system = st.thread.x, st.block.x
    own = b[system * N + t]
    for k in range(N):
        if t == k:
            x[k] = own
        st.sync()
        if t > k:
            own -= a[t * N + k] * x[k]
    out[system * N + t] = own


# ------------------------------------------------------------------ launches
def _square(n: int, **consts: Any) -> Args:
    a, b = floats(2, n * n)
    return {"a": a, "b": b, "out": zeros(n * n), "n": n, **consts}


def _product(args: Args) -> dict[str, Values]:
    n = args["n"]
    return {"out": (args["a"].reshape(n, n) @ args["b"].reshape(n, n)).ravel()}


def _systems(n: int, block: int) -> Args:
    a = (np.tril(floats(block, block), -1) / block + np.eye(block)).astype(np.float32)
    return {"a": a.ravel(), "b": floats(n * block), "out": zeros(n * block), "N": block}


def _solved(args: Args) -> dict[str, Values]:
    n = args["N"]
    a, b = args["a"].reshape(n, n).astype(np.float64), args["b"].reshape(-1, n)
    return {"out": np.linalg.solve(a, b.T).T.ravel()}


KERNELS = (
    ValidationKernel(
        matmul_tiled, tiles, lambda n, b: _square(n, TILE=b[0]), _product, (72, (16, 16)),
        (256, 768), ((8, 8), (16, 16), (32, 32)),
    ),
    ValidationKernel(triangular_solve, lambda n, b: n, _systems, _solved, (3, 64), (264, 1056), (64, 128, 256)),
)  # fmt: skip
