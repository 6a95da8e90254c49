"""Solvers: tridiagonal systems, small factorisations, relaxation on grids, eigenvalues, quadrature."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, round_off, stored, tiles, zeros

INTERVALS = 40


@st.kernel
def thomas_systems(
    a: Global[f32], b: Global[f32], c: Global[f32], d: Global[f32], held: Global[f32], x: Global[f32], n: i32, rows: i32
) -> None:
    """x solves n tridiagonal systems, a thread a system, interleaved; held: intermediate ratios."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    ratio = c[i] / b[i]
    value = d[i] / b[i]
    held[i] = ratio
    x[i] = value
    for row in range(1, rows):
        at = row * n + i
        scale = 1.0 / (b[at] - a[at] * ratio)
        ratio = c[at] * scale
        value = (d[at] - a[at] * value) * scale
        held[at] = ratio
        x[at] = value
    for row in range(rows - 2, -1, -1):
        at = row * n + i
        value = x[at] - held[at] * value
        x[at] = value


@st.kernel
def cyclic_reduction(
    below: Global[f32], middle: Global[f32], above: Global[f32], right: Global[f32], out: Global[f32], SIZE: Const
) -> None:
    """out solves tridiagonal systems by cyclic reduction, a block a system of two rows a thread."""
    a = st.shared(f32, SIZE)
    b = st.shared(f32, SIZE)
    c = st.shared(f32, SIZE)
    d = st.shared(f32, SIZE)
    x = st.shared(f32, SIZE)
    t, first = st.thread.x, st.block.x * SIZE
    for k in range(t, SIZE, SIZE // 2):
        a[k], b[k], c[k], d[k] = below[first + k], middle[first + k], above[first + k], right[first + k]
    st.sync()
    working, stride = SIZE // 2, 1
    while working > 1:
        stride *= 2
        if t < working:
            i = stride * t + stride - 1
            left, beyond = i - stride // 2, min(i + stride // 2, SIZE - 1)
            p, q = a[i] / b[left], c[i] / b[beyond]
            b[i] -= c[left] * p + a[beyond] * q
            d[i] -= d[left] * p + d[beyond] * q
            a[i] = -a[left] * p
            c[i] = -c[beyond] * q
        working //= 2
        st.sync()
    if t == 0:
        i, k = stride - 1, 2 * stride - 1
        scale = 1.0 / (b[k] * b[i] - c[i] * a[k])
        x[i] = (b[k] * d[i] - c[i] * d[k]) * scale
        x[k] = (d[k] * b[i] - d[i] * a[k]) * scale
    st.sync()
    working = 2
    while stride > 1:
        if t < working:
            i = stride * t + stride // 2 - 1
            value = d[i] - c[i] * x[i + stride // 2]
            if t > 0:
                value -= a[i] * x[i - stride // 2]
            x[i] = value / b[i]
        stride //= 2
        working *= 2
        st.sync()
    for k in range(t, SIZE, SIZE // 2):
        out[first + k] = x[k]


@st.kernel
def lud_diagonal(x: Global[f32], out: Global[f32], SIDE: Const) -> None:
    """out = lower and upper factors of a matrix a block, a thread a row and a column of it."""
    held = st.shared(f32, SIDE, SIDE)
    t, first = st.thread.x, st.block.x * SIDE * SIDE
    for row in range(SIDE):
        held[row, t] = x[first + row * SIDE + t]
    st.sync()
    for i in range(SIDE - 1):
        if t > i:
            for j in range(i):
                held[t, i] -= held[t, j] * held[j, i]
            held[t, i] /= held[i, i]
        st.sync()
        if t > i:
            for j in range(i + 1):
                held[i + 1, t] -= held[i + 1, j] * held[j, t]
        st.sync()
    for row in range(SIDE):
        out[first + row * SIDE + t] = held[row, t]


@st.kernel
def cholesky_shared(x: Global[f64], out: Global[f64], SIDE: Const) -> None:
    """out = lower triangular Cholesky factors of symmetric matrices, a block a matrix, column by column."""
    held = st.shared(f64, SIDE, SIDE + 1)
    column, rows = st.thread.x, st.block_dim.y
    for row in range(st.thread.y, SIDE, rows):
        held[row, column] = x[st.block.x, row, column]
    st.sync()
    for k in range(SIDE):
        if column == k and st.thread.y == 0:
            held[k, k] = st.sqrt(held[k, k])
        st.sync()
        if st.thread.y == 0 and column > k:
            held[column, k] /= held[k, k]
        st.sync()
        for row in range(k + 1 + st.thread.y, SIDE, rows):
            if k < column <= row:
                held[row, column] -= held[row, k] * held[column, k]
        st.sync()
    for row in range(st.thread.y, SIDE, rows):
        out[st.block.x, row, column] = held[row, column] if column <= row else 0.0


@st.kernel
def jacobi_residual(
    x: Global[f32], source: Global[f32], out: Global[f32], residual: Global[f32], n: i32, WARPS: Const
) -> None:
    """out = a sweep of Jacobi's method on a square with a fixed edge; residual = each block's sum of squared changes."""
    partial = st.shared(f32, WARPS)
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    change = 0.0
    if row < n and column < n:
        at = row * n + column
        own = x[at]
        if 0 < row < n - 1 and 0 < column < n - 1:
            new = 0.25 * (x[at - 1] + x[at + 1] + x[at - n] + x[at + n] + source[at])
            change = new - own
            own = new
        out[at] = own
    change *= change
    for step in (16, 8, 4, 2, 1):
        change += st.shuffle_down(change, step)
    if st.lane == 0:
        partial[st.warp] = change
    st.sync()
    if st.warp == 0:
        change = partial[st.lane] if st.lane < WARPS else 0.0
        for step in (16, 8, 4, 2, 1):
            change += st.shuffle_down(change, step)
        if st.lane == 0:
            residual[st.block.y * st.grid_dim.x + st.block.x] = change


@st.kernel
def red_black_sweep(x: Global[f32], source: Global[f32], n: i32, colour: i32, weight: f32) -> None:
    """x after over-relaxing the fields of one colour of a chequered square; its edge is fixed."""
    row = st.block.y * st.block_dim.y + st.thread.y + 1
    column = 2 * (st.block.x * st.block_dim.x + st.thread.x) + 1
    column += (row + colour) % 2
    if row < n - 1 and column < n - 1:
        at = row * n + column
        mean = 0.25 * (x[at - n] + x[at + n] + x[at - 1] + x[at + 1] + source[at])
        x[at] += weight * (mean - x[at])


@st.kernel
def eigenvalues_3x3(m: Global[f32], out: Global[f32], n: i32) -> None:
    """out = eigenvalues of symmetric matrices by Jacobi's rotations, in order; entries of each kind are contiguous."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    a = st.local(f32, 3, 3)
    a[0, 0], a[1, 1], a[2, 2] = m[i], m[n + i], m[2 * n + i]
    a[0, 1], a[0, 2], a[1, 2] = m[3 * n + i], m[4 * n + i], m[5 * n + i]
    for _ in range(8):
        if abs(a[0, 1]) + abs(a[0, 2]) + abs(a[1, 2]) < 1e-6:
            break
        for p in range(2):
            for q in range(p + 1, 3):
                if a[p, q] == 0.0:
                    continue
                theta = (a[q, q] - a[p, p]) / (2.0 * a[p, q])
                t = st.copysign(1.0 / (abs(theta) + st.sqrt(theta * theta + 1.0)), theta)
                c = st.rsqrt(t * t + 1.0)
                s = t * c
                a[p, p] -= t * a[p, q]
                a[q, q] += t * a[p, q]
                a[p, q] = 0.0
                r = 3 - p - q
                pr, rp = min(p, r), max(p, r)
                qr, rq = min(q, r), max(q, r)
                one, other = a[pr, rp], a[qr, rq]
                a[pr, rp] = c * one - s * other
                a[qr, rq] = s * one + c * other
    low, middle, high = a[0, 0], a[1, 1], a[2, 2]
    if low > middle:
        low, middle = middle, low
    if middle > high:
        middle, high = high, middle
    if low > middle:
        low, middle = middle, low
    out[i] = low
    out[n + i] = middle
    out[2 * n + i] = high


@st.device
def peak(x: f64, centre: f64, width: f64) -> f64:
    """A function that is steep near its centre."""
    return width / (width * width + (x - centre) * (x - centre))


@st.kernel
def adaptive_simpson(centre: Global[f64], width: Global[f64], out: Global[f64], n: i32, limit: f64) -> None:
    """out[i] = the integral of a peak from 0 to 1: intervals are halved, and wait on a stack, until Simpson's rule will do."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    left = st.local(f64, INTERVALS)
    size = st.local(f64, INTERVALS)
    mine, wide = centre[i], width[i]
    left[0] = 0.0
    size[0] = 1.0
    count = 1
    total = 0.0
    while count > 0:
        count -= 1
        a, h = left[count], size[count]
        fa, fb = peak(a, mine, wide), peak(a + h, mine, wide)
        middle = peak(a + 0.5 * h, mine, wide)
        fine = peak(a + 0.25 * h, mine, wide) + peak(a + 0.75 * h, mine, wide)
        once = h / 6.0 * (fa + 4.0 * middle + fb)
        twice = h / 12.0 * (fa + 4.0 * fine + 2.0 * middle + fb)
        if (h <= 0.0625 and abs(twice - once) < 15.0 * limit) or count + 2 > INTERVALS:
            total += twice + (twice - once) / 15.0
        else:
            left[count] = a
            left[count + 1] = a + 0.5 * h
            size[count] = 0.5 * h
            size[count + 1] = 0.5 * h
            count += 2
    out[i] = total


# ------------------------------------------------------------------ launches
ROWS = 64


def _dominant(systems: int, rows: int) -> tuple[Values, ...]:
    """Return tridiagonal systems, their right sides and their solutions; a row a system."""
    rng = draw()
    a, c, x = rng.uniform(-1, 1, (3, systems, rows)).astype(np.float32)
    b = rng.uniform(2.5, 4, (systems, rows)).astype(np.float32)
    a[:, 0] = c[:, -1] = 0
    d = b.astype(float) * x
    d[:, 1:] += a[:, 1:].astype(float) * x[:, :-1]
    d[:, :-1] += c[:, :-1].astype(float) * x[:, 1:]
    return a, b, c, d.astype(np.float32), x


def _systems(n: int, block: int) -> Args:
    a, b, c, d, _ = (part.T.ravel() for part in _dominant(n, ROWS))
    return {"a": a, "b": b, "c": c, "d": d, "held": zeros(n * ROWS), "x": zeros(n * ROWS), "n": n, "rows": ROWS}


def _reduced(n: int, block: int) -> Args:
    a, b, c, d, _ = (part.ravel() for part in _dominant(n, 2 * block))
    return {"below": a, "middle": b, "above": c, "right": d, "out": zeros(len(a)), "SIZE": 2 * block}


def _factors(n: int, side: int) -> Values:
    """Lower and upper triangles in one array: small next to a larger diagonal."""
    factors: Values = draw().uniform(-1, 1, (n, side, side)) / side**0.5
    factors[:, range(side), range(side)] = draw().uniform(1, 2, (n, side))
    return factors


def _product(n: int, block: int) -> Args:
    factors = _factors(n, block)
    product = (np.tril(factors, -1) + np.eye(block)) @ np.triu(factors)
    return {"x": product.astype(np.float32).ravel(), "out": zeros(n * block * block), "SIDE": block}


def _symmetric(n: int, block: object) -> Args:
    lower = np.tril(_factors(n, 32))
    x = stored("cholesky_shared_x", lower.size)
    if x is None:  # a product of matrices has other bits on other processors
        x = sum((lower[:, :, None, k] * lower[:, None, :, k] for k in range(32)), np.zeros_like(lower))
    return {"x": x, "out": np.zeros((n, 32, 32)), "SIDE": 32}


def _plane(n: int, block: tuple[int, int]) -> Args:
    x, source = floats(2, n * n)
    blocks = tiles(n, block)
    return {
        "x": x, "source": source, "out": zeros(n * n), "residual": zeros(blocks[0] * blocks[1]), "n": n,
        "WARPS": block[0] * block[1] // 32,
    }  # fmt: skip


def _means(args: Args) -> tuple[Values, Values]:
    """Return a square and its expected inner fields."""
    x, source = (args[name].reshape(args["n"], -1).astype(float) for name in ("x", "source"))
    mean = x.copy()
    mean[1:-1, 1:-1] = (x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1] + source[1:-1, 1:-1]) / 4
    return x, mean


def _relaxed_all(args: Args) -> dict[str, Values]:
    """Sums by blocks: as wide and high as there are sums."""
    x, mean = _means(args)
    n, threads = args["n"], 32 * args["WARPS"]
    for block in SHAPES:
        across, down = tiles(n, block)
        if block[0] * block[1] == threads and across * down == len(args["residual"]):
            square = np.pad((mean - x) ** 2, ((0, down * block[1] - n), (0, across * block[0] - n)))
            sums = square.reshape(down, block[1], across, block[0]).sum(axis=(1, 3))
            return {"out": mean, "residual": sums}
    raise ValueError("a block of another shape")


def _chequered(n: int, block: object) -> Args:
    x, source = floats(2, n * n)
    return {"x": x, "source": source, "n": n, "colour": 1, "weight": 1.5}


def _relaxed(args: Args) -> dict[str, Values]:
    x, mean = _means(args)
    n = args["n"]
    mine = np.indices((n, n)).sum(axis=0) % 2 == (args["colour"] + 1) % 2
    return {"x": np.where(mine, x + 1.5 * (mean - x), x)}


def _matrices(n: int, block: int) -> Args:
    return {"m": draw().normal(0, 1, 6 * n).astype(np.float32), "out": zeros(3 * n), "n": n}


def _eigenvalues(args: Args) -> dict[str, Values]:
    xx, yy, zz, xy, xz, yz = args["m"].reshape(6, -1).astype(float)
    return {"out": np.linalg.eigvalsh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]).T).T}


def _peaks(n: int, block: int) -> Args:
    rng = draw()
    centre, exponent = rng.random(n), rng.uniform(-3, 0, n)
    width = stored("adaptive_simpson_width", n)
    return {
        "centre": centre, "width": round_off(np.exp(exponent)) if width is None else width, "out": np.zeros(n), "n": n, "limit": 1e-6,
    }  # fmt: skip


def _areas(args: Args) -> dict[str, Values]:
    c, w = args["centre"], args["width"]
    return {"out": np.arctan((1 - c) / w) + np.arctan(c / w)}


SHAPES = ((32, 4), (16, 16), (32, 32))


def _half(n: int, block: tuple[int, int]) -> tuple[int, int]:
    return cover((n - 1) // 2, block[0]), cover(n - 2, block[1])


KERNELS = (
    ValidationKernel(
        thomas_systems, cover, _systems, lambda a: {"x": _dominant(a["n"], ROWS)[4].T}, (200, 64), (1 << 13, 1 << 16),
        (32, 128, 512),
    ),
    ValidationKernel(
        cyclic_reduction, lambda n, b: n, _reduced,
        lambda a: {"out": _dominant(len(a["out"]) // a["SIZE"], a["SIZE"])[4]}, (6, 128), (132, 4096), (64, 128, 256),
    ),
    ValidationKernel(
        lud_diagonal, lambda n, b: n, _product, lambda a: {"out": _factors(len(a["x"]) // a["SIDE"] ** 2, a["SIDE"])},
        (10, 32), (132, 4096), (16, 32, 64),
    ),
    ValidationKernel(
        cholesky_shared, lambda n, b: n, _symmetric, lambda a: {"out": np.tril(_factors(len(a["x"]), 32))}, (6, (32, 8)),
        (132, 4096), ((32, 4), (32, 8), (32, 32)),
    ),
    ValidationKernel(jacobi_residual, tiles, _plane, _relaxed_all, (60, (32, 4)), (512, 2048), SHAPES),
    ValidationKernel(red_black_sweep, _half, _chequered, _relaxed, (70, (32, 4)), (512, 2048), SHAPES, restored=("x",)),
    ValidationKernel(eigenvalues_3x3, cover, _matrices, _eigenvalues, (1000, 128), (1 << 15, 1 << 19), (64, 256, 512)),
    ValidationKernel(adaptive_simpson, cover, _peaks, _areas, (700, 64), (1 << 13, 1 << 16), (64, 128, 256)),
)  # fmt: skip
