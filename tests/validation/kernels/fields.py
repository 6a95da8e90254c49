"""Fields and volumes: sums, surfaces, labels, patterns, edges, rays through cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, double2, f32, f64, i32, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, tiles, zeros

EMPTY = 1 << 20


class Ray(NamedTuple):
    """Where a ray begins, and its direction."""

    x: f32
    y: f32
    z: f32
    u: f32
    v: f32
    w: f32


@st.kernel
def integral_rows(x: Global[u8], out: Global[u32], wide: i32, high: i32) -> None:
    """out = sums along the rows of an image, a warp a row, 32 pixels at once plus the sum of the previous ones."""
    row = st.block.x * st.block_dim.y + st.thread.y
    if row >= high:
        return
    carry = u32(0)
    for first in range(0, wide, 32):
        column = first + st.lane
        total = u32(x[row * wide + column]) if column < wide else u32(0)
        for step in (1, 2, 4, 8, 16):
            other = st.shuffle_up(total, step)
            if st.lane >= step:
                total += other
        total += carry
        if column < wide:
            out[row * wide + column] = total
        carry = st.shuffle(total, 31)


@st.kernel
def marching_cases(
    volume: Global[u8], crossings: Constant[u8], case: Global[u8], out: Global[u8], LOG: Const, iso: i32
) -> None:
    """case = mask of the corners of each cell of a cube above a level, out = edges across it; cells of the far sides are 0."""
    i = st.block.x * st.block_dim.x + st.thread.x
    side = 1 << LOG
    x, y, z = i & (side - 1), (i >> LOG) & (side - 1), i >> (2 * LOG)
    found = 0
    if x + 1 < side and y + 1 < side and z + 1 < side:
        for corner in st.unroll(range(8)):
            at = ((z + (corner >> 2)) << 2 * LOG) + ((y + (corner >> 1 & 1)) << LOG) + x + (corner & 1)
            if i32(volume[at]) > iso:
                found |= 1 << corner
    case[i] = u8(found)
    out[i] = crossings[found]


@st.kernel
def label_tiles(image: Global[u8], out: Global[i32], n: i32, WIDE: Const, HIGH: Const) -> None:
    """out = the smallest index in its tile connected to each lit pixel; a block iterates until nothing changes."""
    label = st.shared(i32, HIGH, WIDE)
    x, y = st.thread.x, st.thread.y
    at = (st.block.y * HIGH + y) * n + st.block.x * WIDE + x
    lit = image[at] != 0
    label[y, x] = y * WIDE + x if lit else EMPTY
    changed = True
    while st.sync_or(changed):
        least = label[y, x]
        if lit:
            if x > 0:
                least = min(least, label[y, x - 1])
            if x < WIDE - 1:
                least = min(least, label[y, x + 1])
            if y > 0:
                least = min(least, label[y - 1, x])
            if y < HIGH - 1:
                least = min(least, label[y + 1, x])
        st.sync()
        changed = least != label[y, x]
        if changed:
            label[y, x] = least
    out[at] = label[y, x]


@st.kernel
def reaction_diffusion(u: Global[f64], v: Global[f64], out: Global[double2], feed: f64, kill: f64) -> None:
    """out = both substances of Gray and Scott's model after a step on a torus; five points each."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    high, wide = u.shape
    if x >= wide or y >= high:
        return
    west, east, north, south = (x + wide - 1) % wide, (x + 1) % wide, (y + high - 1) % high, (y + 1) % high
    a, b = u[y, x], v[y, x]
    spread_a = u[y, west] + u[y, east] + u[north, x] + u[south, x] - 4.0 * a
    spread_b = v[y, west] + v[y, east] + v[north, x] + v[south, x] - 4.0 * b
    both = a * b * b
    out[y, x] = double2(a + 0.16 * spread_a - both + feed * (1.0 - a), b + 0.08 * spread_b + both - (feed + kill) * b)


@st.kernel
def thin_edges(dx: Global[f32], dy: Global[f32], out: Global[u8], wide: i32, high: i32, low: f32, least: f32) -> None:
    """out = 2 for strong edges, 1 for weak ones, 0 where a neighbour along the gradient is stronger; 0 at the border."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x < 1 or y < 1 or x >= wide - 1 or y >= high - 1:
        return
    i = y * wide + x
    gx, gy = dx[i], dy[i]
    size = gx * gx + gy * gy
    if abs(gy) < 0.4 * abs(gx):
        ahead = 1
    elif abs(gx) < 0.4 * abs(gy):
        ahead = wide
    elif gx * gy > 0.0:
        ahead = wide + 1
    else:
        ahead = wide - 1
    before = dx[i - ahead] * dx[i - ahead] + dy[i - ahead] * dy[i - ahead]
    after = dx[i + ahead] * dx[i + ahead] + dy[i + ahead] * dy[i + ahead]
    if size < before or size <= after or size < low:
        out[i] = u8(0)
    elif size < least:
        out[i] = u8(1)
    else:
        out[i] = u8(2)


@st.kernel
def voxel_march(rays: Global[Ray], bits: Global[u32], out: Global[i32], n: i32, LOG: Const) -> None:
    """out = the first full cell of a cube on each ray, -1 where it leaves; a step crosses the nearest wall."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    ray = rays[i]
    side = 1 << LOG
    x, y, z = i32(ray.x), i32(ray.y), i32(ray.z)
    step_x, step_y, step_z = 1 if ray.u > 0.0 else -1, 1 if ray.v > 0.0 else -1, 1 if ray.w > 0.0 else -1
    wall_x = (f32(x + 1 if ray.u > 0.0 else x) - ray.x) / ray.u
    wall_y = (f32(y + 1 if ray.v > 0.0 else y) - ray.y) / ray.v
    wall_z = (f32(z + 1 if ray.w > 0.0 else z) - ray.z) / ray.w
    apart_x, apart_y, apart_z = abs(1.0 / ray.u), abs(1.0 / ray.v), abs(1.0 / ray.w)
    hit = -1
    while 0 <= x < side and 0 <= y < side and 0 <= z < side:
        cell = ((z << LOG) + y << LOG) + x
        if bits[cell >> 5] >> u32(cell & 31) & 1 != 0:
            hit = cell
            break
        if wall_x < wall_y and wall_x < wall_z:
            x += step_x
            wall_x += apart_x
        elif wall_y < wall_z:
            y += step_y
            wall_y += apart_y
        else:
            z += step_z
            wall_z += apart_z
    out[i] = hit


# ------------------------------------------------------------------ launches
WIDE = 500


def _image(n: int, block: object) -> Args:
    return {"x": ints(n * WIDE, 256, np.uint8), "out": zeros(n * WIDE, np.uint32), "wide": WIDE, "high": n}


CORNERS = (np.arange(256)[:, None] >> np.arange(8)) & 1
ENDS = np.array([(a, a | b) for a in range(8) for b in (1, 2, 4) if not a & b])
CROSSINGS = (CORNERS[:, ENDS[:, 0]] ^ CORNERS[:, ENDS[:, 1]]).sum(axis=1).astype(np.uint8)


def _volume(n: int, block: int) -> Args:
    z, y, x = np.mgrid[:n, :n, :n] / n
    volume = np.rint(127 + 60 * (np.sin(9 * x) + np.sin(7 * y * z))).astype(np.uint8).ravel()
    return {
        "volume": volume, "crossings": CROSSINGS, "case": np.zeros_like(volume), "out": np.zeros_like(volume),
        "LOG": n.bit_length() - 1, "iso": 120,
    }  # fmt: skip


def _cases(args: Args) -> dict[str, Values]:
    side = 1 << args["LOG"]
    above = (args["volume"].reshape(side, side, side) > args["iso"]).astype(int)
    case = np.zeros_like(above)
    for k in range(8):
        z, y, x = k >> 2, k >> 1 & 1, k & 1
        case[:-1, :-1, :-1] |= above[z : side - 1 + z, y : side - 1 + y, x : side - 1 + x] << k
    return {"case": case, "out": CROSSINGS[case]}


def _lit(n: int, block: tuple[int, int]) -> Args:
    image = (draw().random(n * n) < 0.6).astype(np.uint8)
    return {"image": image, "out": zeros(n * n, np.int32), "n": n, "WIDE": block[0], "HIGH": block[1]}


def _labelled(args: Args) -> dict[str, Values]:
    n, wide, high = args["n"], args["WIDE"], args["HIGH"]
    lit = args["image"].reshape(n // high, high, n // wide, wide).swapaxes(1, 2) != 0
    label = np.where(lit, np.arange(high * wide).reshape(high, wide), EMPTY)
    while True:
        padded = np.pad(label, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=EMPTY)
        rows, columns = (
            np.minimum(padded[..., :-2, 1:-1], padded[..., 2:, 1:-1]),
            np.minimum(padded[..., 1:-1, :-2], padded[..., 1:-1, 2:]),
        )
        least = np.where(lit, np.minimum(label, np.minimum(rows, columns)), EMPTY)
        if (least == label).all():
            return {"out": label.swapaxes(1, 2)}
        label = least


def _substances(n: int, block: object) -> Args:
    u, v = draw().random((2, n, n + 16))
    return {"u": u.copy(), "v": v.copy(), "out": np.zeros((n, n + 16, 2)), "feed": 0.035, "kill": 0.065}


def _reacted(args: Args) -> dict[str, Values]:
    u, v = args["u"], args["v"]
    spread = [sum(np.roll(x, by, axis) for by in (1, -1) for axis in (0, 1)) - 4 * x for x in (u, v)]
    both, feed, kill = u * v * v, args["feed"], args["kill"]
    return {
        "out": np.stack([u + 0.16 * spread[0] - both + feed * (1 - u), v + 0.08 * spread[1] + both - (feed + kill) * v], axis=2)
    }  # fmt: skip


def _gradients(n: int, block: object) -> Args:
    dx, dy = draw().normal(0, 1, (2, n * n)).astype(np.float32)
    return {
        "dx": dx.copy(), "dy": dy.copy(), "out": zeros(n * n, np.uint8), "wide": n, "high": n, "low": 1.5, "least": 4.0,
    }  # fmt: skip


def _thinned(args: Args) -> dict[str, Values]:
    n = args["wide"]
    dx, dy = args["dx"].reshape(n, n), args["dy"].reshape(n, n)
    size, out, level = dx * dx + dy * dy, np.zeros((n, n), np.uint8), np.float32(0.4)
    along = np.where(abs(dx) < level * abs(dy), n, np.where(dx * dy > 0, n + 1, n - 1))
    along = np.where(abs(dy) < level * abs(dx), 1, along)
    at = np.arange(n * n).reshape(n, n)[1:-1, 1:-1]
    own, before, after = (size.ravel()[at + by * along[1:-1, 1:-1]] for by in (0, -1, 1))
    keeps = (own >= before) & (own > after) & (own >= args["low"])
    out[1:-1, 1:-1] = keeps * np.where(own < args["least"], 1, 2)
    return {"out": out}


LOG = 5


def _rays(n: int, block: int) -> Args:
    """Return random rays that start in a cube; one cell in forty is full."""
    rng = draw()
    rays = np.zeros(n, [(name, np.float32) for name in Ray._fields])
    for name in "xyz":
        rays[name] = rng.random(n) * 0.999 * 2**LOG
    for name in "uvw":
        rays[name] = rng.uniform(0.1, 1, n) * rng.choice([-1, 1], n)
    bits = np.packbits(rng.random(8**LOG) < 1 / 40, bitorder="little").view(np.uint32)
    return {"rays": rays, "bits": bits, "out": zeros(n, np.int32), "n": n, "LOG": LOG}


def _marched(args: Args) -> dict[str, Values]:
    """In the precision of the kernel: near an edge a ray passes one wall first or the other."""
    rays, side = args["rays"], 2**LOG
    full = np.unpackbits(args["bits"].view(np.uint8), bitorder="little")
    place, direction = (np.stack([rays[name] for name in names]) for names in ("xyz", "uvw"))
    cell: Values = place.astype(np.int32)
    step: Values = np.where(direction > 0, 1, -1)
    wall: Values = ((cell + (direction > 0)).astype(np.float32) - place) / direction
    distance: Values = abs(np.float32(1) / direction)
    out = np.full(len(rays), -1)
    index: Values = np.arange(len(rays))
    while len(index):
        inside = ((cell >= 0) & (cell < side)).all(axis=0)
        at = np.where(inside, (cell[2] * side + cell[1]) * side + cell[0], 0)
        hit = inside & (full[at] != 0)
        out[index[hit]] = at[hit]
        index, cell, wall, step, distance = (x[..., inside & ~hit] for x in (index, cell, wall, step, distance))
        axis = np.where((wall[0] < wall[1]) & (wall[0] < wall[2]), 0, np.where(wall[1] < wall[2], 1, 2))
        ray = np.arange(len(index))
        cell[axis, ray] += step[axis, ray]
        wall[axis, ray] += distance[axis, ray]
    return {"out": out}


KERNELS = (
    ValidationKernel(
        integral_rows, lambda n, b: cover(n, b[1]), _image, lambda args: {"out": np.cumsum(args["x"].reshape(-1, WIDE), axis=1)},
        (20, (32, 4)), (512, 4096), ((32, 2), (32, 8), (32, 16)),
    ),
    ValidationKernel(marching_cases, lambda n, b: n**3 // b, _volume, _cases, (16, 128)),
    ValidationKernel(
        label_tiles, lambda n, b: (n // b[0], n // b[1]), _lit, _labelled, (64, (16, 16)), (256, 1024), ((16, 8), (16, 16), (32, 16)),
    ),
    ValidationKernel(
        reaction_diffusion, lambda n, b: (cover(n + 16, b[0]), cover(n, b[1])), _substances, _reacted, (48, (16, 8)), (256, 1024),
        ((16, 8), (32, 8), (64, 4)),
    ),
    ValidationKernel(thin_edges, tiles, _gradients, _thinned, (60, (16, 16))),
    ValidationKernel(voxel_march, cover, _rays, _marched, (600, 128), (1 << 14, 1 << 18), (64, 128, 512)),
)  # fmt: skip
