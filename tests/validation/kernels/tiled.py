"""Tiles in shared memory: products with registers and two buffers, small matrices, a transposed product, a stencil of 27 points."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, zeros

POINTS = (0.4, 0.05, 0.02, 0.0075)
DEEP = 8


@st.kernel
def matmul_double_buffered(a: Global[f32], b: Global[f32], out: Global[f32], n: i32, WIDE: Const, HIGH: Const) -> None:
    """out = a @ b, 4 x 4 elements a thread; the next tiles are loaded to registers while the present ones are multiplied."""
    left = st.shared(f32, 2, DEEP, 4 * HIGH)
    right = st.shared(f32, 2, DEEP, 4 * WIDE)
    next_left = st.registers(f32, 4 * DEEP // WIDE)
    next_right = st.registers(f32, 4 * DEEP // HIGH)
    of_left = st.registers(f32, 4)
    of_right = st.registers(f32, 4)
    sums = st.registers(f32, 16)
    for s in st.unroll(range(16)):
        sums[s] = 0.0
    tx, ty = st.thread.x, st.thread.y
    t = ty * WIDE + tx
    top, first = st.block.y * 4 * HIGH, st.block.x * 4 * WIDE

    for s in st.unroll(range(4 * DEEP // WIDE)):
        e = t + s * WIDE * HIGH
        left[0, e % DEEP, e // DEEP] = a[(top + e // DEEP) * n + e % DEEP]
    for s in st.unroll(range(4 * DEEP // HIGH)):
        e = t + s * WIDE * HIGH
        right[0, e // (4 * WIDE), e % (4 * WIDE)] = b[e // (4 * WIDE) * n + first + e % (4 * WIDE)]
    st.sync()

    buffer = 0
    for step in range(DEEP, n + DEEP, DEEP):
        if step < n:
            for s in st.unroll(range(4 * DEEP // WIDE)):
                e = t + s * WIDE * HIGH
                next_left[s] = a[(top + e // DEEP) * n + step + e % DEEP]
            for s in st.unroll(range(4 * DEEP // HIGH)):
                e = t + s * WIDE * HIGH
                next_right[s] = b[(step + e // (4 * WIDE)) * n + first + e % (4 * WIDE)]
        for k in st.unroll(range(DEEP)):
            for s in st.unroll(range(4)):
                of_left[s] = left[buffer, k, 4 * ty + s]
                of_right[s] = right[buffer, k, 4 * tx + s]
            for i in st.unroll(range(4)):
                for j in st.unroll(range(4)):
                    sums[4 * i + j] += of_left[i] * of_right[j]
        if step < n:
            buffer = 1 - buffer
            for s in st.unroll(range(4 * DEEP // WIDE)):
                e = t + s * WIDE * HIGH
                left[buffer, e % DEEP, e // DEEP] = next_left[s]
            for s in st.unroll(range(4 * DEEP // HIGH)):
                e = t + s * WIDE * HIGH
                right[buffer, e // (4 * WIDE), e % (4 * WIDE)] = next_right[s]
            st.sync()

    for i in st.unroll(range(4)):
        for j in st.unroll(range(4)):
            out[(top + 4 * ty + i) * n + first + 4 * tx + j] = sums[4 * i + j]


@st.kernel
def batched_products(
    a: Global[f32], b: Global[f32], c: Global[f32], alpha: f32, beta: f32, SIZE: Const, EACH: Const
) -> None:
    """c = alpha * a @ b + beta * c for many matrices of SIZE x SIZE; a block computes EACH of them, one a layer of threads."""
    left = st.shared(f32, EACH, SIZE, SIZE + 1)
    right = st.shared(f32, EACH, SIZE, SIZE + 1)
    j, i, layer = st.thread.x, st.thread.y, st.thread.z
    m = st.block.x * EACH + layer
    count = a.shape[0]
    if m < count:
        left[layer, i, j] = a[m, i, j]
        right[layer, i, j] = b[m, i, j]
    st.sync()
    if m >= count:
        return
    total = 0.0
    for k in range(SIZE):
        total += left[layer, i, k] * right[layer, k, j]
    if beta == 0.0:
        c[m, i, j] = alpha * total
    else:
        c[m, i, j] = alpha * total + beta * c[m, i, j]


@st.kernel
def matrix_transposed_vector(
    a: Global[f64], x: Global[f64], out: Global[f64], rows: i32, columns: i32, WIDE: Const, HIGH: Const
) -> None:
    """out = a.T @ x. A block computes WIDE columns: HIGH threads share a column and add up in shared memory."""
    part = st.shared(f64, HIGH, WIDE)
    tx, ty = st.thread.x, st.thread.y
    column = st.block.x * WIDE + tx
    total = f64(0)
    if column < columns:
        for row in range(ty, rows, HIGH):
            total += a[row * columns + column] * x[row]
    part[ty, tx] = total
    st.sync()
    half = HIGH // 2
    while half > 0:
        if ty < half:
            part[ty, tx] += part[ty + half, tx]
        st.sync()
        half //= 2
    if ty == 0 and column < columns:
        out[column] = part[0, tx]


@st.kernel
def stencil_27_points(x: Global[f32], out: Global[f32], n: i32, WIDE: Const, HIGH: Const, DEPTH: Const) -> None:
    """A mean of 27 points of a cube, weighted by centre, face, edge and corner; a block loads its cells and a halo of one cell."""
    tile = st.shared(f32, DEPTH + 2, HIGH + 2, WIDE + 2)
    tx, ty, tz = st.thread.x, st.thread.y, st.thread.z
    left, top, front = st.block.x * WIDE - 1, st.block.y * HIGH - 1, st.block.z * DEPTH - 1
    t = (tz * HIGH + ty) * WIDE + tx
    for e in range(t, (DEPTH + 2) * (HIGH + 2) * (WIDE + 2), WIDE * HIGH * DEPTH):
        c = e % (WIDE + 2)
        r = e // (WIDE + 2) % (HIGH + 2)
        p = e // ((WIDE + 2) * (HIGH + 2))
        column, row, plane = left + c, top + r, front + p
        if 0 <= column < n and 0 <= row < n and 0 <= plane < n:
            tile[p, r, c] = x[(plane * n + row) * n + column]
        else:
            tile[p, r, c] = 0.0
    st.sync()
    column, row, plane = left + 1 + tx, top + 1 + ty, front + 1 + tz
    if column >= n or row >= n or plane >= n:
        return
    total = 0.0
    for p in st.unroll(range(3)):
        for r in st.unroll(range(3)):
            for c in st.unroll(range(3)):
                total += POINTS[abs(p - 1) + abs(r - 1) + abs(c - 1)] * tile[tz + p, ty + r, tx + c]
    out[(plane * n + row) * n + column] = total


# ------------------------------------------------------------------ launches
def _square(n: int, block: tuple[int, int]) -> Args:
    a, b = floats(2, n * n)
    return {"a": a, "b": b, "out": zeros(n * n), "n": n, "WIDE": block[0], "HIGH": block[1]}


def _product(args: Args) -> dict[str, Values]:
    n = args["n"]
    return {"out": (args["a"].reshape(n, n) @ args["b"].reshape(n, n)).ravel()}


def _batch(n: int, block: tuple[int, int, int]) -> Args:
    a, b, c = floats(3, n, block[1], block[0])
    return {"a": a, "b": b, "c": c, "alpha": 1.5, "beta": 0.5, "SIZE": block[0], "EACH": block[2]}


def _batched(args: Args) -> dict[str, Values]:
    return {"c": args["alpha"] * np.matmul(args["a"], args["b"]) + args["beta"] * args["c"]}


def _tall(n: int, block: tuple[int, int]) -> Args:
    rows = n + n // 4
    return {
        "a": draw().random(rows * n), "x": draw().random(rows), "out": zeros(n, np.float64), "rows": rows, "columns": n,
        "WIDE": block[0], "HIGH": block[1],
    }  # fmt: skip


def _cube(n: int, block: tuple[int, int, int]) -> Args:
    return {"x": floats(n**3), "out": zeros(n**3), "n": n, "WIDE": block[0], "HIGH": block[1], "DEPTH": block[2]}


def _around(args: Args) -> dict[str, Values]:
    """Sums over three cells in each direction, with the weights by how many directions a cell is off in."""
    n = args["n"]
    padded = np.pad(args["x"].reshape(n, n, n), 1)
    out = np.zeros((n, n, n), np.float32)
    for p, r, c in np.ndindex(3, 3, 3):
        out += np.float32(POINTS[abs(p - 1) + abs(r - 1) + abs(c - 1)]) * padded[p : p + n, r : r + n, c : c + n]
    return {"out": out.ravel()}


KERNELS = (
    ValidationKernel(
        matmul_double_buffered, lambda n, b: (n // (4 * b[0]), n // (4 * b[1])), _square, _product, (256, (16, 16)),
        (512, 1024), ((8, 8), (16, 16), (32, 8)),
    ),
    ValidationKernel(
        batched_products, lambda n, b: cover(n, b[2]), _batch, _batched, (250, (8, 8, 4)), (1 << 12, 1 << 16),
        ((8, 8, 4), (8, 8, 16), (16, 16, 2)), restored=("c",),
    ),
    ValidationKernel(
        matrix_transposed_vector, lambda n, b: cover(n, b[0]), _tall,
        lambda a: {"out": a["x"] @ a["a"].reshape(a["rows"], -1)}, (500, (32, 8)), (1000, 3000), ((32, 8), (32, 16), (64, 4)),
    ),
    ValidationKernel(
        stencil_27_points, lambda n, b: tuple(cover(n, side) for side in b), _cube, _around, (36, (8, 8, 8)), (64, 180),
        ((8, 8, 8), (16, 8, 4), (32, 4, 4)),
    ),
)  # fmt: skip
