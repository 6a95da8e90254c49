"""Layers of networks: an activation with its bias and residual."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, f32, float2, half2, i32

from .kernel import Args, ValidationKernel, Values, cover, draw


@st.device
def gelu(x: f32) -> f32:
    """The activation by its form with a hyperbolic tangent."""
    return 0.5 * x * (1.0 + st.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


@st.kernel
def gelu_bias_residual(
    x: Global[half2], bias: Global[half2], residual: Global[float2], out: Global[float2], n: i32, pairs: i32
) -> None:
    """out = residual + gelu(x + bias), two columns of a row at once; a row has `pairs` pairs of columns."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        v, b, r = x[i], bias[i % pairs], residual[i]
        left = gelu(f32(v.x) + f32(b.x))
        right = gelu(f32(v.y) + f32(b.y))
        out[i] = float2(r.x + left, r.y + right)


# ------------------------------------------------------------------ launches


PAIRS = 384


def _activations(n: int, block: int) -> Args:
    random = draw()
    return {
        "x": random.normal(0, 1.5, (n * PAIRS, 2)).astype(np.float16), "bias": random.normal(0, 0.5, (PAIRS, 2)).astype(np.float16),
        "residual": random.random((n * PAIRS, 2), dtype=np.float32), "out": np.zeros((n * PAIRS, 2), np.float32),
        "n": n * PAIRS, "pairs": PAIRS,
    }  # fmt: skip


def _activated(args: Args) -> dict[str, Values]:
    x = (args["x"].astype(np.float32).reshape(-1, PAIRS, 2) + args["bias"].astype(np.float32)).reshape(-1, 2)
    inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
    return {"out": args["residual"] + x * (1 + np.tanh(inner)) / 2}


KERNELS = (
    ValidationKernel(
        gelu_bias_residual, lambda n, b: min(cover(n * PAIRS, b), 1056), _activations, _activated, (100, 256), (512, 8192),
        (128, 256, 512),
    ),
)  # fmt: skip
