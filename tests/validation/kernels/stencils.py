"""Neighbours on grids: medians."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, i32, u8

from .kernel import Args, ValidationKernel, Values, draw, tiles, zeros


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


def _shifted(x: Values, radius: int, mode: str) -> Values:
    """Squares of neighbours, one for each pixel."""
    side = int(len(x) ** 0.5)
    padded = np.pad(x.reshape(side, side), radius, mode=mode)  # type: ignore[call-overload]
    windows: Values = np.lib.stride_tricks.sliding_window_view(padded, (2 * radius + 1,) * 2)
    return windows


def _bytes(n: int, block: object) -> Args:
    return {"x": draw().integers(0, 256, n * n, np.uint8), "out": zeros(n * n, np.uint8), "n": n}


def _medians(args: Args) -> dict[str, Values]:
    n = args["n"]
    out = args["x"].reshape(n, n).copy()
    out[1:-1, 1:-1] = np.median(_shifted(args["x"], 1, "constant")[1:-1, 1:-1], axis=(2, 3))
    return {"out": out.ravel()}


SHAPES = ((32, 4), (32, 8), (16, 16), (32, 32))

KERNELS = (
    ValidationKernel(median_3x3, tiles, _bytes, _medians, (70, (32, 8)), (512, 1536), SHAPES),
)  # fmt: skip
