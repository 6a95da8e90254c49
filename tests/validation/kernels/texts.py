"""Small numbers and copies: samples of 16 bits, transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i16, i32, short2

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, zeros


@st.kernel
def mix_samples(x: Global[short2], out: Global[i16], n: i32) -> None:
    """Two channels of 16 bits made one, saturated."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        both = x[i]
        out[i] = i16(min(max((3 * i32(both.x) + i32(both.y)) // 2, -32768), 32767))


@st.kernel
def transpose_naive(x: Global[f32], out: Global[f32], n: i32) -> None:
    """Loads of neighbours, stores at the stride of a row."""
    column, row = st.block.x * st.block_dim.x + st.thread.x, st.block.y * st.block_dim.y + st.thread.y
    if row < n and column < n:
        out[column * n + row] = x[row * n + column]


@st.kernel
def transpose_tiled(x: Global[f32], out: Global[f32], n: i32, ROWS: Const, PITCH: Const) -> None:
    """Tiles of 32 x 32 by ROWS threads a column; PITCH: words from row to row in shared memory."""
    tile = st.shared(f32, 32, PITCH)
    column = st.block.x * 32 + st.thread.x
    for r in range(st.thread.y, 32, ROWS):
        tile[r, st.thread.x] = x[(st.block.y * 32 + r) * n + column]
    st.sync()
    column = st.block.y * 32 + st.thread.x
    for r in range(st.thread.y, 32, ROWS):
        out[(st.block.x * 32 + r) * n + column] = tile[st.thread.x, r]


# ------------------------------------------------------------------ launches


def _samples(n: int, block: int) -> Args:
    return {"x": draw().integers(-32768, 32768, (n, 2)).astype(np.int16), "out": zeros(n, np.int16), "n": n}


def _mixed(args: Args) -> dict[str, Values]:
    x = args["x"].astype(np.int32)
    return {"out": np.clip((3 * x[:, 0] + x[:, 1]) // 2, -32768, 32767)}


def _matrix(n: int, block: Any, **consts: int) -> Args:
    return {"x": floats(n * n), "out": zeros(n * n), "n": n, **consts}


def _transposed(args: Args) -> dict[str, Values]:
    return {"out": args["x"].reshape(args["n"], -1).T.ravel()}


BLOCKS = (64, 256, 1024)


KERNELS = (
    ValidationKernel(mix_samples, cover, _samples, _mixed, (1000, 128), (1 << 18, 1 << 22), BLOCKS),
    ValidationKernel(transpose_naive, tiles, _matrix, _transposed, (100, (32, 8)), (1024, 4096), ((32, 8), (16, 16), (32, 32))),
    ValidationKernel(
        transpose_tiled, lambda n, b: (n // 32, n // 32), lambda n, b: _matrix(n, b, ROWS=b[1], PITCH=33), _transposed,
        (128, (32, 8)), (1024, 4096), ((32, 4), (32, 8), (32, 32)),
    ),
)  # fmt: skip
