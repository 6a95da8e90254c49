"""Neighbours on grids: stencils of one to three dimensions with halo loops, convolutions, images, cells."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, u8

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, zeros

TAPS = (0.02, 0.06, 0.12, 0.18, 0.24, 0.18, 0.12, 0.06, 0.02)
MASK = (1.0, 4.0, 6.0, 4.0, 1.0)


@st.kernel
def stencil_1d(x: Global[f32], out: Global[f32], n: i32, BLOCK: Const, RADIUS: Const) -> None:
    """The mean of 2 * RADIUS + 1 neighbours; a block loads its elements and the halo by a loop. Beyond the ends is 0."""
    tile = st.shared(f32, BLOCK + 2 * RADIUS)
    first = st.block.x * BLOCK - RADIUS
    for k in range(st.thread.x, BLOCK + 2 * RADIUS, BLOCK):
        at = first + k
        tile[k] = x[at] if at >= 0 and at < n else 0.0
    st.sync()
    i = st.block.x * BLOCK + st.thread.x
    if i < n:
        total = 0.0
        for k in range(2 * RADIUS + 1):
            total += tile[st.thread.x + k]
        out[i] = total / f32(2 * RADIUS + 1)


@st.kernel
def stencil_2d(x: Global[f32], out: Global[f32], n: i32, W: Const, H: Const) -> None:
    """Nine points; a tile and its halo are loaded by two loops."""
    tile = st.shared(f32, H + 2, W + 2)
    left, top = st.block.x * W - 1, st.block.y * H - 1
    for r in range(st.thread.y, H + 2, H):
        for c in range(st.thread.x, W + 2, W):
            row, column = top + r, left + c
            inside = row >= 0 and row < n and column >= 0 and column < n
            tile[r, c] = x[row * n + column] if inside else 0.0
    st.sync()
    row, column = st.block.y * H + st.thread.y, st.block.x * W + st.thread.x
    if row < n and column < n:
        total = 0.0
        for r in range(3):
            for c in range(3):
                total += tile[st.thread.y + r, st.thread.x + c]
        out[row * n + column] = total


@st.kernel
def stencil_3d(x: Global[f32], out: Global[f32], n: i32) -> None:
    """Seven points of a cube; a thread iterates over the planes and keeps three of them in registers."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if column > 0 and column < n - 1 and row > 0 and row < n - 1:
        at = row * n + column
        behind, here = x[at], x[at + n * n]
        for _ in range(1, n - 1):
            at += n * n
            ahead = x[at + n * n]
            around = (x[at - 1] + x[at + 1]) + (x[at - n] + x[at + n])
            out[at] = 0.4 * here + 0.1 * (around + (behind + ahead))
            behind = here
            here = ahead


@st.kernel
def convolution_1d(x: Global[f32], out: Global[f32], n: i32) -> None:
    """Nine taps in constant memory; loads beyond the ends are left out."""
    taps = st.constant(f32, TAPS)
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        total = 0.0
        for k in range(9):
            at = i + k - 4
            if at >= 0 and at < n:
                total += taps[k] * x[at]
        out[i] = total


@st.kernel
def convolution_2d(x: Global[f32], out: Global[f32], n: i32) -> None:
    """A mask of 5 x 5 with equal rows and columns; coordinates are clamped."""
    mask = st.constant(f32, MASK)
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    total = 0.0
    for r in range(-2, 3):
        y = min(max(row + r, 0), n - 1)
        for c in range(-2, 3):
            total += mask[r + 2] * mask[c + 2] * x[y * n + min(max(column + c, 0), n - 1)]
    out[row * n + column] = total / 256.0


@st.kernel
def life(cells: Global[u8], out: Global[u8], n: i32) -> None:
    """A step of Conway's game, the field a torus."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row < n and column < n:
        alive = 0
        for r in range(-1, 2):
            for c in range(-1, 2):
                if r != 0 or c != 0:
                    alive += i32(cells[(row + r + n) % n * n + (column + c + n) % n])
        own = cells[row * n + column]
        out[row * n + column] = u8(1) if alive == 3 or (alive == 2 and own == u8(1)) else u8(0)


@st.kernel
def bilinear(x: Global[f32], out: Global[f32], n: i32, m: i32, scale: f32) -> None:
    """An image of n x n, enlarged or reduced to m x m."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row < m and column < m:
        v, u = f32(row) * scale, f32(column) * scale
        top, left = i32(v), i32(u)
        below, right = min(top + 1, n - 1), min(left + 1, n - 1)
        dv, du = v - f32(top), u - f32(left)
        above = (1.0 - du) * x[top * n + left] + du * x[top * n + right]
        under = (1.0 - du) * x[below * n + left] + du * x[below * n + right]
        out[row * m + column] = (1.0 - dv) * above + dv * under


@st.kernel
def sobel(x: Global[u8], out: Global[u8], n: i32) -> None:
    """The gradient of an image, saturated; 0 at the edge."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row < n and column < n:
        steep = 0
        if row > 0 and row < n - 1 and column > 0 and column < n - 1:
            at = row * n + column
            a, b, c = i32(x[at - n - 1]), i32(x[at - n]), i32(x[at - n + 1])
            d, f = i32(x[at - 1]), i32(x[at + 1])
            g, h, i = i32(x[at + n - 1]), i32(x[at + n]), i32(x[at + n + 1])
            steep = abs(c + 2 * f + i - a - 2 * d - g) + abs(g + 2 * h + i - a - 2 * b - c)
        out[row * n + column] = u8(min(steep, 255))


@st.kernel
def box_rows(x: Global[i32], out: Global[i32], n: i32, RADIUS: Const) -> None:
    """Sliding sums along the columns of a square, a thread a column."""
    column = st.block.x * st.block_dim.x + st.thread.x
    if column < n:
        total = 0
        for row in range(RADIUS):
            total += x[row * n + column]
        for row in range(n):
            if row + RADIUS < n:
                total += x[(row + RADIUS) * n + column]
            if row > RADIUS:
                total -= x[(row - RADIUS - 1) * n + column]
            out[row * n + column] = total


@st.kernel
def median_3x3(x: Global[u8], out: Global[u8], n: i32) -> None:
    """The median of nine pixels by exchanges in registers; the edge is copied."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    if row == 0 or row == n - 1 or column == 0 or column == n - 1:
        out[row * n + column] = x[row * n + column]
        return
    held = st.registers(u8, 9)
    for k in st.unroll(range(9)):
        held[k] = x[(row + k // 3 - 1) * n + column + k % 3 - 1]
    for i in st.unroll(range(5)):
        for k in st.unroll(range(i + 1, 9)):
            low, high = min(held[i], held[k]), max(held[i], held[k])
            held[i] = low
            held[k] = high
    out[row * n + column] = held[4]


# ------------------------------------------------------------------ launches
def _line(n: int, block: int) -> Args:
    return {"x": floats(n), "out": zeros(n), "n": n}


def _windows(x: Values, radius: int) -> Values:
    return np.lib.stride_tricks.sliding_window_view(np.pad(x, radius), 2 * radius + 1)


def _square(n: int, block: object) -> Args:
    return {"x": floats(n * n), "out": zeros(n * n), "n": n}


def _shifted(x: Values, radius: int, mode: str) -> Values:
    """Squares of neighbours, one for each pixel."""
    side = int(len(x) ** 0.5)
    padded = np.pad(x.reshape(side, side), radius, mode=mode)  # type: ignore[call-overload]
    windows: Values = np.lib.stride_tricks.sliding_window_view(padded, (2 * radius + 1,) * 2)
    return windows


def _nine(args: Args) -> dict[str, Values]:
    return {"out": _shifted(args["x"], 1, "constant").sum(axis=(2, 3)).ravel()}


def _cube(n: int, block: object) -> Args:
    return {"x": floats(n**3), "out": zeros(n**3), "n": n}


def _seven(args: Args) -> dict[str, Values]:
    x, out = args["x"].reshape((args["n"],) * 3), np.zeros((args["n"],) * 3, np.float32)
    inner = slice(1, -1)
    around = sum(np.roll(x, step, axis)[inner, inner, inner] for axis in range(3) for step in (1, -1))
    out[inner, inner, inner] = 0.4 * x[inner, inner, inner] + 0.1 * around
    return {"out": out.ravel()}


def _masked(args: Args) -> dict[str, Values]:
    mask = np.outer(MASK, MASK) / 256
    return {"out": np.einsum("ijkl,kl->ij", _shifted(args["x"], 2, "edge"), mask).ravel()}


def _cells(n: int, block: object) -> Args:
    return {"cells": (draw().random(n * n) < 0.3).astype(np.uint8), "out": zeros(n * n, np.uint8), "n": n}


def _lived(args: Args) -> dict[str, Values]:
    alive = _shifted(args["cells"], 1, "wrap").sum(axis=(2, 3)).ravel() - args["cells"]
    return {"out": (alive == 3) | ((alive == 2) & (args["cells"] == 1))}


def _image(n: int, block: object) -> Args:
    m = n + n // 4
    return {"x": floats(n * n), "out": zeros(m * m), "n": n, "m": m, "scale": np.float32(0.8)}


def _enlarged(args: Args) -> dict[str, Values]:
    n, x = args["n"], args["x"].reshape(args["n"], -1)
    at = np.arange(args["m"], dtype=np.float32) * args["scale"]
    low = at.astype(int)
    high, fraction = np.minimum(low + 1, n - 1), at - low
    rows = (1 - fraction) * x[:, low] + fraction * x[:, high]
    return {"out": ((1 - fraction)[:, None] * rows[low] + fraction[:, None] * rows[high]).ravel()}


def _bytes(n: int, block: object) -> Args:
    return {"x": draw().integers(0, 256, n * n, np.uint8), "out": zeros(n * n, np.uint8), "n": n}


def _steep(args: Args) -> dict[str, Values]:
    n = args["n"]
    around = _shifted(args["x"].astype(np.int32), 1, "constant")[1:-1, 1:-1]
    down = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
    steep = sum(abs((around * kernel).sum(axis=(2, 3))) for kernel in (down, down.T))
    out = np.zeros((n, n), np.uint8)
    out[1:-1, 1:-1] = np.minimum(steep, 255)
    return {"out": out.ravel()}


def _medians(args: Args) -> dict[str, Values]:
    n = args["n"]
    out = args["x"].reshape(n, n).copy()
    out[1:-1, 1:-1] = np.median(_shifted(args["x"], 1, "constant")[1:-1, 1:-1], axis=(2, 3))
    return {"out": out.ravel()}


def _sums(n: int, block: object) -> Args:
    return {"x": draw().integers(0, 256, n * n, np.int32), "out": zeros(n * n, np.int32), "n": n, "RADIUS": 4}


def _slid(args: Args) -> dict[str, Values]:
    x = np.pad(args["x"].reshape(args["n"], -1), ((4, 4), (0, 0)))
    return {"out": np.lib.stride_tricks.sliding_window_view(x, 9, axis=0).sum(axis=2).ravel()}


SHAPES = ((32, 4), (32, 8), (16, 16), (32, 32))
BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(
        stencil_1d, cover, lambda n, b: {**_line(n, b), "BLOCK": b, "RADIUS": 7},
        lambda a: {"out": _windows(a["x"], 7).mean(axis=1)}, (1000, 128), (1 << 18, 1 << 22), BLOCKS,
    ),
    ValidationKernel(
        stencil_2d, tiles, lambda n, b: {**_square(n, b), "W": b[0], "H": b[1]}, _nine, (100, (32, 8)), (512, 2048), SHAPES,
    ),
    ValidationKernel(stencil_3d, tiles, _cube, _seven, (34, (16, 8)), (64, 160), SHAPES),
    ValidationKernel(
        convolution_1d, cover, _line, lambda a: {"out": _windows(a["x"], 4) @ np.array(TAPS[::-1])}, (1000, 128),
        (1 << 18, 1 << 22), BLOCKS,
    ),
    ValidationKernel(convolution_2d, tiles, _square, _masked, (70, (16, 16)), (512, 1536), SHAPES),
    ValidationKernel(life, tiles, _cells, _lived, (70, (32, 8)), (512, 1536), SHAPES),
    ValidationKernel(
        bilinear, lambda n, b: tiles(n + n // 4, b), _image, _enlarged, (64, (32, 8)), (512, 2048), SHAPES,
    ),
    ValidationKernel(sobel, tiles, _bytes, _steep, (100, (32, 8)), (512, 2048), SHAPES),
    ValidationKernel(box_rows, cover, _sums, _slid, (100, 64), (512, 2048), (32, 128, 512)),
    ValidationKernel(median_3x3, tiles, _bytes, _medians, (70, (32, 8)), (512, 1536), SHAPES),
)  # fmt: skip
