"""Matrices: products by one element, by tiles, by registers and by asynchronous copies; steps of factorisations."""

from __future__ import annotations

from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32

from .kernel import Args, ValidationKernel, Values, draw, floats, tiles, warps, zeros


@st.kernel
def matmul_naive(a: Global[f32], b: Global[f32], out: Global[f32], n: i32) -> None:
    """out = a @ b, an element a thread."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row < n and column < n:
        total = 0.0
        for k in range(n):
            total += a[row * n + k] * b[k * n + column]
        out[row * n + column] = total


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
def matmul_registers(a: Global[f32], b: Global[f32], out: Global[f32], n: i32, SIDE: Const, WORK: Const) -> None:
    """out = a @ b. A block of SIDE x SIDE threads computes tiles of SIDE * WORK, a thread WORK x WORK of its elements."""
    left = st.shared(f32, SIDE * WORK, SIDE)
    right = st.shared(f32, SIDE, SIDE * WORK)
    sums = st.registers(f32, WORK * WORK)
    for i in st.unroll(range(WORK * WORK)):
        sums[i] = 0.0
    tx, ty = st.thread.x, st.thread.y
    top, first = st.block.y * SIDE * WORK, st.block.x * SIDE * WORK
    for step in range(0, n, SIDE):
        for w in st.unroll(range(WORK)):
            left[ty + w * SIDE, tx] = a[(top + ty + w * SIDE) * n + step + tx]
            right[ty, tx + w * SIDE] = b[(step + ty) * n + first + tx + w * SIDE]
        st.sync()
        for k in range(SIDE):
            for i in st.unroll(range(WORK)):
                for j in st.unroll(range(WORK)):
                    sums[i * WORK + j] += left[ty + i * SIDE, k] * right[k, tx + j * SIDE]
        st.sync()
    for i in st.unroll(range(WORK)):
        for j in st.unroll(range(WORK)):
            out[(top + ty + i * SIDE) * n + first + tx + j * SIDE] = sums[i * WORK + j]


@st.kernel
def matmul_async(a: Global[f32], b: Global[f32], out: Global[f32], n: i32, TILE: Const) -> None:
    """out = a @ b by tiles; the next tile is copied during the use of the current one."""
    left = st.shared(f32, 2, TILE * TILE)
    right = st.shared(f32, 2, TILE * TILE)
    tx, ty = st.thread.x, st.thread.y
    row, column, own = st.block.y * TILE + ty, st.block.x * TILE + tx, ty * TILE + tx
    st.async_copy(left[0, :], own, a, row * n + tx)
    st.async_copy(right[0, :], own, b, ty * n + column)
    st.async_commit()
    total = 0.0
    steps = n // TILE
    for step in range(steps):
        if step + 1 < steps:
            into, first = (step + 1) & 1, (step + 1) * TILE
            st.async_copy(left[into, :], own, a, row * n + first + tx)
            st.async_copy(right[into, :], own, b, (first + ty) * n + column)
        st.async_commit()
        st.async_wait(1)
        st.sync()
        for k in range(TILE):
            total += left[step & 1, ty * TILE + k] * right[step & 1, k * TILE + tx]
        st.sync()
    out[row * n + column] = total


@st.kernel
def gram_f64(a: Global[f64], out: Global[f64], rows: i32, columns: i32) -> None:
    """out = a.T @ a, the upper triangle and its mirror image."""
    j = st.block.x * st.block_dim.x + st.thread.x
    i = st.block.y * st.block_dim.y + st.thread.y
    if j < columns and i <= j:
        total = f64(0)
        for r in range(rows):
            total = st.fma(a[r * columns + i], a[r * columns + j], total)
        out[i * columns + j] = total
        out[j * columns + i] = total


@st.kernel
def matrix_vector(a: Global[f32], x: Global[f32], out: Global[f32], n: i32) -> None:
    """out = a @ x, a warp a row."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= n:
        return
    total = 0.0
    for k in range(st.lane, n, 32):
        total += a[row * n + k] * x[k]
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 16 >> step)
    if st.lane == 0:
        out[row] = total


@st.kernel
def matrix_vector_columns(a: Global[f32], x: Global[f32], out: Global[f32], n: i32) -> None:
    """out = a.T @ x, a thread a column."""
    column = st.block.x * st.block_dim.x + st.thread.x
    if column < n:
        total = 0.0
        for k in range(n):
            total += a[k * n + column] * x[k]
        out[column] = total


@st.kernel
def lu_step(a: Global[f32], n: i32, pivot: i32) -> None:
    """One step of an LU factorisation: the rows below the pivot and right of it; the factors are stored before."""
    column = pivot + 1 + st.block.x * st.block_dim.x + st.thread.x
    row = pivot + 1 + st.block.y * st.block_dim.y + st.thread.y
    if row < n and column < n:
        a[row * n + column] -= a[row * n + pivot] * a[pivot * n + column]


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


@st.kernel
def small_inverses(a: Global[f32], out: Global[f32], n: i32) -> None:
    """The inverse of a matrix of 3 x 3 a thread, by cofactors."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        m = st.registers(f32, 9)
        for k in st.unroll(range(9)):
            m[k] = a[9 * i + k]
        c0 = m[4] * m[8] - m[5] * m[7]
        c1 = m[5] * m[6] - m[3] * m[8]
        c2 = m[3] * m[7] - m[4] * m[6]
        scale = 1.0 / (m[0] * c0 + m[1] * c1 + m[2] * c2)
        out[9 * i] = c0 * scale
        out[9 * i + 1] = (m[2] * m[7] - m[1] * m[8]) * scale
        out[9 * i + 2] = (m[1] * m[5] - m[2] * m[4]) * scale
        out[9 * i + 3] = c1 * scale
        out[9 * i + 4] = (m[0] * m[8] - m[2] * m[6]) * scale
        out[9 * i + 5] = (m[2] * m[3] - m[0] * m[5]) * scale
        out[9 * i + 6] = c2 * scale
        out[9 * i + 7] = (m[1] * m[6] - m[0] * m[7]) * scale
        out[9 * i + 8] = (m[0] * m[4] - m[1] * m[3]) * scale


# ------------------------------------------------------------------ launches
def _square(n: int, **consts: Any) -> Args:
    a, b = floats(2, n * n)
    return {"a": a, "b": b, "out": zeros(n * n), "n": n, **consts}


def _product(args: Args) -> dict[str, Values]:
    n = args["n"]
    return {"out": (args["a"].reshape(n, n) @ args["b"].reshape(n, n)).ravel()}


def _gram(n: int, block: object) -> Args:
    return {"a": draw().random(128 * n), "out": zeros(n * n, np.float64), "rows": 128, "columns": n}


def _gram_answer(args: Args) -> dict[str, Values]:
    a = args["a"].reshape(args["rows"], args["columns"])
    return {"out": (a.T @ a).ravel()}


def _vector(n: int, block: object) -> Args:
    return {"a": floats(n * n), "x": floats(n), "out": zeros(n), "n": n}


def _lu(n: int, block: object) -> Args:
    return {"a": floats(n * n), "n": n, "pivot": n // 8}


def _lu_answer(args: Args) -> dict[str, Values]:
    n, p = args["n"], args["pivot"]
    a = args["a"].reshape(n, n).copy()
    a[p + 1 :, p + 1 :] -= np.outer(a[p + 1 :, p], a[p, p + 1 :])
    return {"a": a.ravel()}


def _systems(n: int, block: int) -> Args:
    a = (np.tril(floats(block, block), -1) / block + np.eye(block)).astype(np.float32)
    return {"a": a.ravel(), "b": floats(n * block), "out": zeros(n * block), "N": block}


def _solved(args: Args) -> dict[str, Values]:
    n = args["N"]
    a, b = args["a"].reshape(n, n).astype(np.float64), args["b"].reshape(-1, n)
    return {"out": np.linalg.solve(a, b.T).T.ravel()}


def _matrices(n: int, block: object) -> Args:
    a = floats(n, 3, 3) + 2 * np.eye(3, dtype=np.float32)
    return {"a": a.ravel(), "out": zeros(9 * n), "n": n}


SHAPES = ((16, 16), (32, 8), (32, 32), (8, 8))

KERNELS = (
    ValidationKernel(matmul_naive, tiles, lambda n, b: _square(n), _product, (72, (16, 16)), (256, 512), SHAPES),
    ValidationKernel(
        matmul_tiled, tiles, lambda n, b: _square(n, TILE=b[0]), _product, (72, (16, 16)),
        (256, 768), ((8, 8), (16, 16), (32, 32)),
    ),
    ValidationKernel(
        matmul_registers, lambda n, b: (n // (4 * b[0]),) * 2, lambda n, b: _square(n, SIDE=b[0], WORK=4), _product,
        (64, (8, 8)), (512, 1024), ((8, 8), (16, 16)),
    ),
    ValidationKernel(
        matmul_async, tiles, lambda n, b: _square(n, TILE=b[0]), _product, (64, (16, 16)), (256, 768), ((16, 16), (32, 32)),
    ),
    ValidationKernel(gram_f64, tiles, _gram, _gram_answer, (48, (16, 8)), (256, 512), ((16, 16), (32, 4), (32, 16))),
    ValidationKernel(
        matrix_vector, warps, _vector, lambda a: {"out": a["a"].reshape(a["n"], -1) @ a["x"]}, (100, 128),
        (1024, 4096), (64, 256, 1024),
    ),
    ValidationKernel(
        matrix_vector_columns, lambda n, b: -(-n // b), _vector, lambda a: {"out": a["x"] @ a["a"].reshape(a["n"], -1)},
        (100, 64), (1024, 4096), (32, 128, 512),
    ),
    ValidationKernel(lu_step, tiles, _lu, _lu_answer, (70, (32, 8)), (512, 2048), ((32, 4), (16, 16), (32, 32))),
    ValidationKernel(triangular_solve, lambda n, b: n, _systems, _solved, (3, 64), (264, 1056), (64, 128, 256)),
    ValidationKernel(
        small_inverses, lambda n, b: -(-n // b), _matrices,
        lambda a: {"out": np.linalg.inv(a["a"].reshape(-1, 3, 3).astype(np.float64)).ravel()}, (300, 128),
        (1 << 16, 1 << 20), (64, 256, 1024),
    ),
)  # fmt: skip
