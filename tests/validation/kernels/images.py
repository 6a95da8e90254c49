"""Images: coefficients of a filter, noise."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32

from .kernel import Args, ValidationKernel, Values, cover, floats, round_off, stored, tiles, zeros

CORNERS = tuple(int(k) for k in np.random.default_rng(256).permutation(256))


@st.kernel
def srad_coefficients(x: Global[f32], out: Global[f32], rows: i32, columns: i32, speckle: f32) -> None:
    """out = how much an image of ultrasound may diffuse at each pixel, from its gradient and Laplacian."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= rows * columns:
        return
    row = i // columns
    column = i % columns
    own = x[i]
    north = x[i - columns] - own if row > 0 else 0.0
    south = x[i + columns] - own if row < rows - 1 else 0.0
    west = x[i - 1] - own if column > 0 else 0.0
    east = x[i + 1] - own if column < columns - 1 else 0.0
    gradient = (north * north + south * south + west * west + east * east) / (own * own)
    laplacian = (north + south + west + east) / own
    variation = 0.5 * gradient - 0.0625 * laplacian * laplacian
    variation /= (1.0 + 0.25 * laplacian) ** 2
    rate = 1.0 / (1.0 + (variation - speckle) / (speckle * (1.0 + speckle)))
    out[i] = min(max(rate, 0.0), 1.0)


@st.device
def fade(t: f32) -> f32:
    """From 0 to 1, level at both."""
    return t * t * t * (t * (t * 6.0 - 15.0) + 10.0)


@st.device
def slope(corner: i32, x: f32, y: f32) -> f32:
    """The coordinate of a point along one of eight directions."""
    u = x if corner & 4 == 0 else y
    v = y if corner & 4 == 0 else x
    return (u if corner & 1 == 0 else -u) + (2.0 * v if corner & 2 == 0 else -2.0 * v)


@st.kernel
def perlin_noise(out: Global[f32], n: i32, OCTAVES: Const, scale: f32) -> None:
    """out = noise in the plane, of OCTAVES layers, each twice as fine and half as strong as the one before."""
    table = st.shared(i32, 256)
    corners = st.constant(i32, CORNERS)
    t = st.thread.y * st.block_dim.x + st.thread.x
    for k in range(t, 256, st.block_dim.x * st.block_dim.y):
        table[k] = corners[k]
    st.sync()
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    x, y = f32(column) * scale, f32(row) * scale
    total, strength = 0.0, 1.0
    for _ in range(OCTAVES):
        left, top = st.floor(x), st.floor(y)
        i, j = i32(left) & 255, i32(top) & 255
        dx, dy = x - left, y - top
        u, v = fade(dx), fade(dy)
        a, b = table[i] + j, table[(i + 1) & 255] + j
        above, right = slope(table[a & 255], dx, dy), slope(table[b & 255], dx - 1.0, dy)
        below = slope(table[(a + 1) & 255], dx, dy - 1.0)
        beyond = slope(table[(b + 1) & 255], dx - 1.0, dy - 1.0)
        high, low = above + u * (right - above), below + u * (beyond - below)
        total += strength * (high + v * (low - high))
        x, y = 2.0 * x, 2.0 * y
        strength *= 0.5
    out[row * n + column] = total


# ------------------------------------------------------------------ launches


def _scan(n: int, block: int) -> Args:
    x = stored("srad_coefficients_x", n * n)
    if x is None:
        x = round_off(np.exp(0.5 * floats(n * n).astype(np.float64))).astype(np.float32)
    return {"x": x, "out": zeros(n * n), "rows": n, "columns": n, "speckle": 0.05}


def _diffusing(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(args["rows"], -1).astype(float)
    p = np.pad(x, 1, mode="edge")
    sides = np.stack([p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]) - x
    laplacian = sides.sum(axis=0) / x
    variation = ((sides**2).sum(axis=0) / x**2 / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
    q = args["speckle"]
    return {"out": np.clip(1 / (1 + (variation - q) / (q * (1 + q))), 0, 1)}


def _noise(args: Args) -> dict[str, Values]:
    x = np.arange(args["n"], dtype=np.float32) * np.float32(args["scale"])
    table, total, strength = np.array(CORNERS), np.zeros((len(x), len(x))), 1.0
    gradients = np.array([(1, 2), (-1, 2), (1, -2), (-1, -2), (2, 1), (2, -1), (-2, 1), (-2, -1)])
    for _ in range(args["OCTAVES"]):
        whole, fraction = np.floor(x).astype(int), (x % 1).astype(float)
        smooth = 6 * fraction**5 - 15 * fraction**4 + 10 * fraction**3
        for i, k in np.ndindex(2, 2):  # across and down
            corner = table[(table[(whole + i) % 256][None, :] + whole[:, None] + k) % 256] & 7
            gradient = gradients[corner]
            along = gradient[..., 0] * (fraction - i)[None, :] + gradient[..., 1] * (fraction - k)[:, None]
            total += strength * along * abs(1 - i - smooth)[None, :] * abs(1 - k - smooth)[:, None]
        x, strength = 2 * x, strength / 2
    return {"out": total}


SHAPES = ((32, 4), (16, 16), (32, 32))


KERNELS = (
    ValidationKernel(srad_coefficients, lambda n, b: cover(n * n, b), _scan, _diffusing, (50, 128), (512, 2048), (64, 256, 1024)),
    ValidationKernel(
        perlin_noise, tiles, lambda n, b: {"out": zeros(n * n), "n": n, "OCTAVES": 4, "scale": 0.0625}, _noise,
        (60, (32, 4)), (512, 2048), SHAPES,
    ),
)  # fmt: skip
