"""Products of dense and sparse matrices, a norm in one launch, residuals of a grid."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, tiles, warps, zeros


@st.kernel
def gemver_update(
    a: Global[f64], u1: Global[f64], v1: Global[f64], u2: Global[f64], v2: Global[f64], n: i32
) -> None:  # fmt: skip
    """a += u1 v1' + u2 v2', a thread an element of a square matrix."""
    i = st.block.y * st.block_dim.y + st.thread.y
    j = st.block.x * st.block_dim.x + st.thread.x
    if i < n and j < n:
        a[i * n + j] += u1[i] * v1[j] + u2[i] * v2[j]


@st.kernel
def block_sparse_vector(
    start: Global[i32], column: Global[i32], value: Global[f32], x: Global[f32], out: Global[f32], rows: i32
) -> None:
    """out = A x for A of dense blocks of 4 x 4 in compressed rows; a warp a row of blocks, half a warp a block."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= rows:
        return
    lane = st.thread.x % 32
    place = lane % 16
    total = 0.0
    for k in range(start[row] + lane // 16, start[row + 1], 2):
        total += value[k * 16 + place] * x[column[k] * 4 + place % 4]
    total += st.shuffle_down(total, 16)
    total += st.shuffle_down(total, 2)
    total += st.shuffle_down(total, 1)
    if lane < 16 and lane % 4 == 0:
        out[row * 4 + lane // 4] = total


@st.kernel
def product_row_sizes(
    a_start: Global[i32], a_column: Global[i32], b_start: Global[i32], b_column: Global[i32], out: Global[i32], n: i32,
    SLOTS: Const, BLOCK: Const,
) -> None:  # fmt: skip
    """out = entries in each row of a sparse product A B, by a hash table in shared memory; a warp a row of A."""
    tables = st.shared(i32, BLOCK // 32, SLOTS)
    row = st.block.x * (BLOCK // 32) + st.warp
    if row >= n:
        return
    table = tables[st.warp, :]
    for k in range(st.lane, SLOTS, 32):
        table[k] = -1
    st.syncwarp()
    count = 0
    for k in range(a_start[row] + st.lane // 8, a_start[row + 1], 4):
        other = a_column[k]
        for j in range(b_start[other] + st.lane % 8, b_start[other + 1], 8):
            key = b_column[j]
            slot = key * 107 & (SLOTS - 1)
            while True:
                old = st.compare_swap(table, slot, -1, key)
                if old == -1:
                    count += 1
                    break
                if old == key:
                    break
                slot = slot + 1 & (SLOTS - 1)
    st.syncwarp()
    for step in (16, 8, 4, 2, 1):
        count += st.shuffle_down(count, step)
    if st.lane == 0:
        out[row] = count


@st.kernel
def norm_by_last_block(
    x: Global[f64], partial: Global[f64], done: Global[u32], out: Global[f64], n: i32, BLOCK: Const
) -> None:
    """out = the Euclidean norm of x in one launch: the last block adds the partial sums of all blocks."""
    sums = st.shared(f64, BLOCK // 32)
    last = st.shared(bool, 1)
    t = st.thread.x
    total = 0.0
    for i in range(st.block.x * BLOCK + t, n, st.grid_dim.x * BLOCK):
        total += x[i] * x[i]
    for step in (16, 8, 4, 2, 1):
        total += st.shuffle_down(total, step)
    if t % 32 == 0:
        sums[t // 32] = total
    st.sync()
    if t == 0:
        total = sums[0]
        for w in range(1, BLOCK // 32):
            total += sums[w]
        partial[st.block.x] = total
        st.fence()
        ticket = st.atomic_inc(done, 0, u32(st.grid_dim.x - 1))
        last[0] = ticket == u32(st.grid_dim.x - 1)
    st.sync()
    if last[0]:
        st.fence()
        total = 0.0
        for i in range(t, st.grid_dim.x, BLOCK):
            total += partial[i]
        for step in (16, 8, 4, 2, 1):
            total += st.shuffle_down(total, step)
        if t % 32 == 0:
            sums[t // 32] = total
        st.sync()
        if t == 0:
            total = sums[0]
            for w in range(1, BLOCK // 32):
                total += sums[w]
            out[0] = st.sqrt(total)


def _ranks(n: int, block: tuple[int, int]) -> Args:
    random = draw()
    u1, v1, u2, v2 = random.standard_normal((4, n))
    return {"a": random.random(n * n), "u1": u1, "v1": v1, "u2": u2, "v2": v2, "n": n}


def _updated(args: Args) -> dict[str, Values]:
    left, right = np.stack([args["u1"], args["u2"]], axis=1), np.stack([args["v1"], args["v2"]])
    return {"a": args["a"] + (left @ right).ravel()}


def _starts(long: Values) -> Values:
    return np.concatenate([[0], np.cumsum(long)]).astype(np.int32)


def _block_sparse(n: int, block: int) -> Args:
    random = draw()
    start = _starts(random.integers(1, 32, n))
    near = np.repeat(np.arange(n), np.diff(start)) + random.integers(-200, 201, start[-1])
    column = np.where(random.random(start[-1]) < 0.8, near % n, random.integers(0, n, start[-1]))
    return {
        "start": start, "column": column.astype(np.int32), "value": random.random(16 * start[-1], dtype=np.float32),
        "x": random.random(4 * n, dtype=np.float32), "out": zeros(4 * n), "rows": n,
    }  # fmt: skip


def _times_blocks(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, 4)[args["column"]]
    products = np.einsum("kij,kj->ki", args["value"].reshape(-1, 4, 4), x, dtype=float)
    return {"out": np.add.reduceat(products, args["start"][:-1], axis=0).ravel()}


SLOTS = 512


def _sparse(random: np.random.Generator, n: int) -> tuple[Values, Values]:
    """Starts and columns of compressed rows near the diagonal, without doubles, at most 20 a row."""
    row = np.repeat(np.arange(n), np.minimum(random.geometric(0.12, n), 20))
    pairs = np.unique(row * n + (row + random.integers(-30, 31, row.size)) % n)
    return _starts(np.bincount(pairs // n, minlength=n)), (pairs % n).astype(np.int32)


def _factors(n: int, block: int) -> Args:
    random = draw()
    (a_start, a_column), (b_start, b_column) = _sparse(random, n), _sparse(random, n)
    return {
        "a_start": a_start, "a_column": a_column, "b_start": b_start, "b_column": b_column, "out": zeros(n, np.int32), "n": n,
        "SLOTS": SLOTS, "BLOCK": block,
    }  # fmt: skip


def _entries(args: Args) -> dict[str, Values]:
    n, start, middle = args["n"], args["b_start"].astype(np.int64), args["a_column"]
    row = np.repeat(np.arange(n), np.diff(args["a_start"]))
    long = np.diff(start)[middle]
    first = np.repeat(start[middle] - np.cumsum(long) + long, long)
    column = args["b_column"][first + np.arange(long.sum())]
    return {"out": np.bincount(np.unique(np.repeat(row, long) * n + column) // n, minlength=n)}


def _squares_grid(n: int, block: int) -> int:
    return min(cover(n, 4 * block), 528)


def _vector(n: int, block: int) -> Args:
    return {
        "x": draw().standard_normal(n), "partial": zeros(_squares_grid(n, block), np.float64), "done": zeros(1, np.uint32),
        "out": zeros(1, np.float64), "n": n, "BLOCK": block,
    }  # fmt: skip


def _norm(args: Args) -> dict[str, Values]:
    return {"out": np.array([math.sqrt(args["x"] @ args["x"])]), "done": zeros(1, np.uint32)}


@st.kernel
def restrict_residual(
    u: Global[f64], f: Global[f64], out: Global[f64], coarse: i32, inverse: f64, WIDTH: Const, HEIGHT: Const
) -> None:
    """out = the residual of Poisson's equation, weighted to every second point; blocks of WIDTH x HEIGHT coarse points."""
    residual = st.shared(f64, 2 * HEIGHT + 1, 2 * WIDTH + 1)
    pitch = 2 * coarse + 1
    left = 2 * st.block.x * WIDTH + 1
    top = 2 * st.block.y * HEIGHT + 1
    for k in range(st.thread.y * WIDTH + st.thread.x, (2 * WIDTH + 1) * (2 * HEIGHT + 1), WIDTH * HEIGHT):
        y, x = k // (2 * WIDTH + 1), k % (2 * WIDTH + 1)
        if top + y < pitch - 1 and left + x < pitch - 1:
            at = (top + y) * pitch + left + x
            around = u[at - 1] + u[at + 1] + u[at - pitch] + u[at + pitch]
            residual[y, x] = f[at] - (4.0 * u[at] - around) * inverse
    st.sync()
    i = st.block.y * HEIGHT + st.thread.y + 1
    j = st.block.x * WIDTH + st.thread.x + 1
    if i < coarse and j < coarse:
        y, x = 2 * st.thread.y + 1, 2 * st.thread.x + 1
        corners = residual[y - 1, x - 1] + residual[y - 1, x + 1] + residual[y + 1, x - 1] + residual[y + 1, x + 1]
        edges = residual[y - 1, x] + residual[y + 1, x] + residual[y, x - 1] + residual[y, x + 1]
        out[i * (coarse + 1) + j] = 0.25 * residual[y, x] + 0.125 * edges + 0.0625 * corners


def _fine(n: int, block: tuple[int, int]) -> Args:
    u, f = draw().standard_normal((2, (2 * n + 1) ** 2))
    return {
        "u": u, "f": f, "out": zeros((n + 1) ** 2, np.float64), "coarse": n, "inverse": 0.75, "WIDTH": block[0], "HEIGHT": block[1]
    }  # fmt: skip


def _restricted(args: Args) -> dict[str, Values]:
    n = args["coarse"]
    u, f = (args[name].reshape(2 * n + 1, 2 * n + 1) for name in ("u", "f"))
    residual = np.zeros_like(u)
    laplacian = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
    residual[1:-1, 1:-1] = f[1:-1, 1:-1] + args["inverse"] * laplacian
    rows = residual[1:-2:2] + 2 * residual[2:-1:2] + residual[3::2]
    out = np.zeros((n + 1, n + 1))
    out[1:-1, 1:-1] = (rows[:, 1:-2:2] + 2 * rows[:, 2:-1:2] + rows[:, 3::2]) / 16
    return {"out": out.ravel()}


CHANNELS, HEIGHT, WIDTH, POOLED, SCALE = 64, 50, 68, 7, 0.0625


KERNELS = (
    ValidationKernel(
        gemver_update, tiles, _ranks, _updated, (100, (32, 8)), (1440, 4096), ((32, 8), (16, 16), (128, 1)), restored=("a",)
    ),
    ValidationKernel(block_sparse_vector, warps, _block_sparse, _times_blocks, (150, 128), (1 << 15, 1 << 18), (64, 256, 1024)),
    ValidationKernel(product_row_sizes, warps, _factors, _entries, (100, 128), (1 << 14, 1 << 17), (64, 128, 256)),
    ValidationKernel(norm_by_last_block, _squares_grid, _vector, _norm, (10_000, 128), (1 << 22, 1 << 25), (128, 256, 1024)),
    ValidationKernel(
        restrict_residual, tiles, _fine, _restricted, (50, (16, 16)), (768, 2048), ((16, 16), (32, 8), (8, 8)),
    ),
)  # fmt: skip
