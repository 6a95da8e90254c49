"""Surfaces: triangles, costs of seams."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, i32, int4, u64

from .kernel import Args, ValidationKernel, Values, cover, draw


@st.device
def side_of(a: int4, b: int4, x: i32, y: i32) -> i32:
    """Above 0 where a pixel is to the left of the line from a to b: twice the area of the triangle."""
    return (b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x)


@st.kernel
def raster_triangles(corner: Global[int4], out: Global[u64], n: i32, wide: i32, high: i32) -> None:
    """out = depth and number of the nearest triangle at each pixel, a thread a triangle; back faces are omitted."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    a, b, c = corner[3 * i], corner[3 * i + 1], corner[3 * i + 2]
    area = side_of(a, b, c.x, c.y)
    if area <= 0:
        return
    for y in range(max(0, min(a.y, b.y, c.y)), min(high, max(a.y, b.y, c.y) + 1)):
        for x in range(max(0, min(a.x, b.x, c.x)), min(wide, max(a.x, b.x, c.x) + 1)):
            u, v, w = side_of(b, c, x, y), side_of(c, a, x, y), side_of(a, b, x, y)
            if u < 0 or v < 0 or w < 0:
                continue
            depth = st.div(u * a.z + v * b.z + w * c.z, area)
            st.atomic_min(out, y * wide + x, u64(depth) << 32 | u64(i))


@st.kernel
def seam_costs(energy: Global[i32], out: Global[i32], high: i32, wide: i32) -> None:
    """out = the least energy of a path from the top of an image to each pixel, straight or diagonal; a block an image."""
    above = st.dynamic_shared(i32, wide)
    below = st.dynamic_shared(i32, wide)
    base = st.block.x * high * wide
    for x in range(st.thread.x, wide, st.block_dim.x):
        above[x] = energy[base + x]
        out[base + x] = above[x]
    st.sync()
    for y in range(1, high):
        for x in range(st.thread.x, wide, st.block_dim.x):
            least = above[x]
            if x > 0:
                least = min(least, above[x - 1])
            if x < wide - 1:
                least = min(least, above[x + 1])
            least += energy[base + y * wide + x]
            below[x] = least
            out[base + y * wide + x] = least
        st.sync()
        above, below = below, above


# ------------------------------------------------------------------ launches
SCREEN = 512


def _triangles(n: int, block: int) -> Args:
    rng = draw()
    middle = rng.integers(-10, SCREEN + 10, (n, 1, 2))
    reach = np.minimum(rng.geometric(0.12, (n, 1, 1)) + 1, 60)
    corner = np.zeros((n, 3, 4), np.int32)
    corner[..., :2] = middle + np.rint(rng.uniform(-1, 1, (n, 3, 2)) * reach)
    corner[..., 2] = rng.integers(1, 1000, (n, 3))
    out = np.full(SCREEN * SCREEN, 2**64 - 1, np.uint64)
    return {"corner": corner.reshape(-1, 4), "out": out, "n": n, "wide": SCREEN, "high": SCREEN}


def _rasterised(args: Args) -> dict[str, Values]:
    out = args["out"].reshape(SCREEN, SCREEN).copy()
    for i, triangle in enumerate(args["corner"].reshape(-1, 3, 4)[..., :3].astype(int)):
        (low_x, low_y), (high_x, high_y) = np.maximum(triangle.min(axis=0)[:2], 0), triangle.max(axis=0)[:2]
        y, x = np.ogrid[low_y : min(high_y + 1, SCREEN), low_x : min(high_x + 1, SCREEN)]
        (a_x, a_y, a_z), (b_x, b_y, b_z), (c_x, c_y, c_z) = triangle.tolist()
        area = (b_x - a_x) * (c_y - a_y) - (b_y - a_y) * (c_x - a_x)
        if area <= 0 or not x.size or not y.size:
            continue
        u = (c_x - b_x) * (y - b_y) - (c_y - b_y) * (x - b_x)
        v = (a_x - c_x) * (y - c_y) - (a_y - c_y) * (x - c_x)
        w = area - u - v
        own = ((u * a_z + v * b_z + w * c_z) // area).astype(np.uint64) << np.uint64(32) | np.uint64(i)
        window = out[y[0, 0] : y[-1, 0] + 1, x[0, 0] : x[0, -1] + 1]
        window[:] = np.where((u >= 0) & (v >= 0) & (w >= 0), np.minimum(window, own), window)
    return {"out": out}


TALL, BROAD = 48, 300


def _energies(n: int, block: int) -> Args:
    energy = draw().integers(0, 256, n * TALL * BROAD, dtype=np.int32)
    return {"energy": energy, "out": np.zeros_like(energy), "high": TALL, "wide": BROAD}


def _seams(args: Args) -> dict[str, Values]:
    out = args["energy"].reshape(-1, TALL, BROAD).copy()
    for y in range(1, TALL):
        padded = np.pad(out[:, y - 1], ((0, 0), (1, 1)), constant_values=1 << 30)
        out[:, y] += np.minimum(np.minimum(padded[:, :-2], padded[:, 1:-1]), padded[:, 2:])
    return {"out": out}


KERNELS = (
    ValidationKernel(
        raster_triangles, cover, _triangles, _rasterised, (1000, 64), (1 << 12, 1 << 15), (32, 64, 256), restored=("out",),
    ),
    ValidationKernel(
        seam_costs, lambda n, b: n, _energies, _seams, (8, 128), (132, 1056), (64, 128, 320), shared=lambda n, b: 8 * BROAD,
    ),
)  # fmt: skip
