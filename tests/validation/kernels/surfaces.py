"""Surfaces: triangles, marched distances, seams, distance transforms, votes for lines."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, i32, int4, u8, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, tiles, zeros

FAR = 1 << 14


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


@st.device
def distance_to_scene(x: f32, y: f32, z: f32) -> f32:
    """The distance to the nearest of a ball, a box and a floor."""
    ball = st.sqrt(x * x + y * y + z * z) - 1.0
    u, v, w = abs(x - 1.5) - 0.5, abs(y + 0.5) - 0.4, abs(z - 0.3) - 0.6
    p, q, r = max(u, 0.0), max(v, 0.0), max(w, 0.0)
    box = st.sqrt(p * p + q * q + r * r) + min(max(u, max(v, w)), 0.0)
    return min(min(ball, box), y + 1.2)


@st.kernel
def march_distances(out: Global[f32], n: i32, MOST: Const, far: f32) -> None:
    """out = distance of a scene along the ray of each pixel, -1 for a ray without a hit; each step is as long as is safe."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if column >= n or row >= n:
        return
    x, y = (f32(2 * column) - f32(n)) / f32(n), (f32(n) - f32(2 * row)) / f32(n)
    size = st.sqrt(x * x + y * y + 2.25)
    x, y, z = x / size, y / size, 1.5 / size
    gone, steps = 0.0, 0
    near = 1.0
    while near >= 0.001 and gone <= far and steps < MOST:
        near = distance_to_scene(gone * x, 0.2 + gone * y, gone * z - 4.0)
        gone += near
        steps += 1
    out[row * n + column] = gone if near < 0.001 else -1.0


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


@st.kernel
def distance_columns(image: Global[u8], out: Global[i32], wide: i32, high: i32) -> None:
    """out = how far the nearest lit pixel of its column is from each pixel: once down, once up."""
    x = st.block.x * st.block_dim.x + st.thread.x
    if x >= wide:
        return
    far = FAR
    for y in range(high):
        far = 0 if image[y * wide + x] != 0 else min(far + 1, FAR)
        out[y * wide + x] = far
    for y in range(high - 2, -1, -1):
        far = min(far + 1, out[y * wide + x])
        out[y * wide + x] = far


@st.kernel
def distance_rows(column: Global[i32], out: Global[i32], wide: i32, high: i32) -> None:
    """out = squared distances to the nearest lit pixel, from distances in columns; to both sides while it may get less."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x >= wide or y >= high:
        return
    least = column[y * wide + x] ** 2
    by = 1
    while by * by < least and by < wide:
        if x >= by:
            least = min(least, by * by + column[y * wide + x - by] ** 2)
        if x + by < wide:
            least = min(least, by * by + column[y * wide + x + by] ** 2)
        by += 1
    out[y * wide + x] = least


@st.kernel
def line_votes(
    image: Global[u8], cosine: Constant[i32], sine: Constant[i32], out: Global[i32], n: i32, wide: i32
) -> None:
    """out = votes of lit pixels for the lines through them, by angle and distance from the corner."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        if image[i] == 0:
            continue
        x, y = i % wide, i // wide
        for angle in range(len(cosine)):
            far = (x * cosine[angle] + y * sine[angle]) >> 12
            st.atomic_add(out, angle * 2 * wide * 2 + far + 2 * wide, 1)


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


def _marched(args: Args) -> dict[str, Values]:
    """In the precision of the kernel: at an edge a ray hits an object or misses it."""
    n = np.float32(args["n"])
    twice = 2 * np.arange(args["n"], dtype=np.float32)
    x, y = (a.ravel() for a in np.meshgrid((twice - n) / n, (n - twice) / n))
    size = np.sqrt(x * x + y * y + np.float32(2.25))
    x, y, z = x / size, y / size, np.float32(1.5) / size
    travelled, near = np.zeros_like(x), np.ones_like(x)
    for _ in range(args["MOST"]):
        active = np.flatnonzero((near >= np.float32(0.001)) & (travelled <= np.float32(args["far"])))
        start = travelled[active]
        near[active] = _nearest(
            start * x[active], np.float32(0.2) + start * y[active], start * z[active] - np.float32(4)
        )
        travelled[active] += near[active]
    return {"out": np.where(near < np.float32(0.001), travelled, -1)}


def _nearest(x: Values, y: Values, z: Values) -> Values:
    number = np.float32
    ball = np.sqrt(x * x + y * y + z * z) - number(1)
    sides = abs(x - number(1.5)) - number(0.5), abs(y + number(0.5)) - number(0.4), abs(z - number(0.3)) - number(0.6)
    p, q, r = (np.maximum(side, number(0)) for side in sides)
    box = np.sqrt(p * p + q * q + r * r) + np.minimum(np.maximum.reduce(sides), number(0))
    least: Values = np.minimum(np.minimum(ball, box), y + number(1.2))
    return least


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


def _sparks(n: int) -> Values:
    return (draw().random(n * n) < 0.01).astype(np.uint8)


def _down(image: Values) -> Values:
    n = math.isqrt(image.size)
    place = np.where(image.reshape(n, n) != 0, np.arange(n)[:, None], -FAR)
    above = np.maximum.accumulate(place)
    below = np.minimum.accumulate(np.where(place < 0, 2 * FAR, place)[::-1])[::-1]
    rows = np.arange(n)[:, None]
    return np.minimum(np.minimum(rows - above, below - rows), FAR)


def _across(args: Args) -> dict[str, Values]:
    wide = args["wide"]
    column = args["column"].reshape(-1, wide).astype(int) ** 2
    least = column.copy()
    for shift in range(1, wide):
        if shift * shift >= least.max():
            break
        least[:, shift:] = np.minimum(least[:, shift:], column[:, :-shift] + shift * shift)
        least[:, :-shift] = np.minimum(least[:, :-shift], column[:, shift:] + shift * shift)
    return {"out": least}


ANGLES = np.arange(0, math.pi, math.pi / 60)
COSINE, SINE = (np.rint(4096 * f(ANGLES)).astype(np.int32) for f in (np.cos, np.sin))


def _lit(n: int, block: int) -> Args:
    image = _sparks(n)
    image[np.arange(0, n * n, n + 1)] = 1
    return {"image": image, "cosine": COSINE, "sine": SINE, "out": zeros(60 * 4 * n, np.int32), "n": n * n, "wide": n}


def _votes(args: Args) -> dict[str, Values]:
    wide = args["wide"]
    y, x = np.divmod(np.flatnonzero(args["image"]), wide)
    far = [(x * c + y * s) >> 12 for c, s in zip(COSINE.tolist(), SINE.tolist(), strict=True)]
    return {"out": np.stack([np.bincount(one + 2 * wide, minlength=4 * wide) for one in far])}


SHAPES = ((16, 8), (32, 8), (32, 32))

KERNELS = (
    ValidationKernel(
        raster_triangles, cover, _triangles, _rasterised, (1000, 64), (1 << 12, 1 << 15), (32, 64, 256), restored=("out",),
    ),
    ValidationKernel(
        march_distances, tiles, lambda n, b: {"out": zeros(n * n), "n": n, "MOST": 100, "far": 20.0}, _marched, (64, (16, 8)),
        (256, 1024), SHAPES,
    ),
    ValidationKernel(
        seam_costs, lambda n, b: n, _energies, _seams, (8, 128), (132, 1056), (64, 128, 320), shared=lambda n, b: 8 * BROAD,
    ),
    ValidationKernel(
        distance_columns, cover, lambda n, b: {"image": _sparks(n), "out": zeros(n * n, np.int32), "wide": n, "high": n},
        lambda args: {"out": _down(args["image"])}, (512, 32), (512, 2048), (32, 64),
    ),
    ValidationKernel(
        distance_rows, tiles,
        lambda n, b: {"column": _down(_sparks(n)).astype(np.int32).ravel(), "out": zeros(n * n, np.int32), "wide": n, "high": n},
        _across, (100, (16, 16)), (512, 2048), SHAPES,
    ),
    ValidationKernel(
        line_votes, lambda n, b: min(cover(n * n, b), 528), _lit, _votes, (90, 256), (256, 1024), (128, 512), restored=("out",),
    ),
)  # fmt: skip
