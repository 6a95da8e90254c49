"""Layers of neural networks: products of bytes."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, f32, i32

from .kernel import Args, ValidationKernel, Values, draw, floats, warps, zeros


@st.kernel
def dot_int8(x: Global[i32], weights: Global[i32], scale: Global[f32], out: Global[f32], n: i32, words: i32) -> None:
    """out = rows of small whole numbers, four a word, times a vector of them, scaled; a warp a row."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= n:
        return
    total = 0
    for k in range(st.lane, words, 32):
        total = st.dp4a(weights[row * words + k], x[k], total)
    total = st.reduce_add(total)
    if st.lane == 0:
        out[row] = f32(total) * scale[row]


# ------------------------------------------------------------------ launches


def _quantised(n: int, block: int) -> Args:
    bytes = draw().integers(-128, 128, (n + 1, 1024), np.int8)
    return {
        "x": bytes[0].view(np.int32), "weights": bytes[1:].ravel().view(np.int32), "scale": floats(n), "out": zeros(n), "n": n,
        "words": 256,
    }  # fmt: skip


def _dotted(args: Args) -> dict[str, Values]:
    x, weights = (args[name].view(np.int8).reshape(-1, 1024).astype(np.float32) for name in ("x", "weights"))
    return {"out": (weights @ x[0]) * args["scale"]}


BLOCKS = (64, 256, 1024)


KERNELS = (
    ValidationKernel(dot_int8, warps, _quantised, _dotted, (60, 128), (4096, 65536), BLOCKS),
)  # fmt: skip
