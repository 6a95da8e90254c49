"""Work that blocks share: best exchanges, small weights."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f16, f32, float2, float4, i32, i64, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, warps, words, zeros


@st.device
def way(a: float2, b: float2) -> i32:
    """The distance of two towns in whole numbers."""
    dx, dy = a.x - b.x, a.y - b.y
    return i32(st.sqrt(dx * dx + dy * dy) + 0.5)


@st.kernel
def two_opt_best(town: Global[float2], out: Global[i64], n: i32, BLOCK: Const) -> None:
    """out[0] = gain of the best exchange of two legs of a tour, above the legs; block by block, then by an atomic."""
    best = st.shared(i64, BLOCK)
    t = st.thread.x
    least = i64(0)
    for k in range(st.block.x * BLOCK + t, n * n, st.grid_dim.x * BLOCK):
        i, j = k // n, k % n
        if j <= i + 1 or j == n - 1:
            continue
        a, b, c, d = town[i], town[i + 1], town[j], town[j + 1]
        change = way(a, c) + way(b, d) - way(a, b) - way(c, d)
        if change < 0:
            least = min(least, i64(change) * (1 << 32) + i64(k))
    best[t] = least
    st.sync()
    half = BLOCK // 2
    while half > 0:
        if t < half:
            best[t] = min(best[t], best[t + half])
        st.sync()
        half //= 2
    if t == 0:
        st.atomic_min(out, 0, best[0])


@st.kernel
def small_weights(
    weight: Global[u32], scale: Global[f16], x: Global[float4], out: Global[f32], n: i32, words: i32
) -> None:
    """out = rows of weights of four bits times x, a warp a row; a scale in half precision for each 32 of them."""
    row = st.block.x * (st.block_dim.x // 32) + st.warp
    if row >= n:
        return
    total = 0.0
    for w in range(st.lane, words, 32):
        eight = weight[row * words + w]
        low, high = x[2 * w], x[2 * w + 1]
        part = 0.0
        for k in st.unroll(range(4)):
            part += f32(i32(eight >> u32(4 * k) & 15) - 8) * low[k]
            part += f32(i32(eight >> u32(4 * k + 16) & 15) - 8) * high[k]
        total += part * f32(scale[row * (words // 4) + w // 4])
    for step in (16, 8, 4, 2, 1):
        total += st.shuffle_down(total, step)
    if st.lane == 0:
        out[row] = total


# ------------------------------------------------------------------ launches


def _tour(n: int, block: int) -> Args:
    town = (1000 * floats(n, 2)).astype(np.float32)
    return {"town": town, "out": zeros(1, np.int64), "n": n, "BLOCK": block}


def _exchanged(args: Args) -> dict[str, Values]:
    town, n = args["town"], args["n"]
    dx, dy = town[:, None, 0] - town[:, 0], town[:, None, 1] - town[:, 1]
    far = (np.sqrt(dx * dx + dy * dy) + np.float32(0.5)).astype(int)
    leg = far[np.arange(n - 1), np.arange(1, n)]
    change = np.triu(far[:-1, :-1] + far[1:, 1:] - leg[:, None] - leg, 2)
    i, j = np.nonzero(change < 0)
    return {"out": np.array([(change[i, j] * 2**32 + i * n + j).min(initial=0)])}


COLUMNS = 2048


def _quantised(n: int, block: int) -> Args:
    scale = (floats(n * COLUMNS // 32) / 8).astype(np.float16)
    x = draw().normal(0, 1, COLUMNS).astype(np.float32)
    return {
        "weight": words(n * COLUMNS // 8), "scale": scale, "x": x.reshape(-1, 4), "out": zeros(n), "n": n, "words": COLUMNS // 8,
    }  # fmt: skip


def _scaled(args: Args) -> dict[str, Values]:
    quarters = (args["weight"][:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).astype(np.float32) - 8
    products = quarters.reshape(-1, COLUMNS // 32, 32) * args["x"].reshape(-1, 32)
    return {"out": (products.sum(axis=2) * args["scale"].reshape(-1, COLUMNS // 32).astype(np.float32)).sum(axis=1)}


KERNELS = (
    ValidationKernel(
        two_opt_best, lambda n, b: min(cover(n * n, b), 264), _tour, _exchanged, (60, 128), (512, 2048), (64, 256, 512), restored=("out",),
    ),
    ValidationKernel(small_weights, warps, _quantised, _scaled, (40, 128), (1024, 8192), (64, 256, 512)),
)  # fmt: skip
