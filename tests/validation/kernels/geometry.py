"""Geometry: points inside a polygon, hulls of sets of points, trees of boxes."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, float2, i32, int2, int4, u8

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, warps, zeros


@st.kernel
def inside_polygon(
    point: Global[float2], corner: Global[float2], out: Global[u8], n: i32, m: i32, BLOCK: Const
) -> None:
    """out = whether points are inside a polygon: a ray crosses its sides an odd number of times; corners in shared memory."""
    held = st.shared(float2, BLOCK + 1)
    i = st.block.x * BLOCK + st.thread.x
    p = point[min(i, n - 1)]
    inside = False
    for first in range(0, m, BLOCK):
        many = min(BLOCK, m - first)
        for k in range(st.thread.x, many + 1, BLOCK):
            held[k] = corner[(first + k) % m]
        st.sync()
        for k in range(many):
            a, b = held[k], held[k + 1]
            if (a.y > p.y) != (b.y > p.y) and p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x:
                inside = not inside
        st.sync()
    if i < n:
        out[i] = u8(inside)


@st.device
def lower(a: int2, b: int2) -> bool:
    """Whether a is below b, or to its left at one height."""
    return a.y < b.y or (a.y == b.y and a.x < b.x)


@st.device
def outer(o: int2, a: int2, b: int2) -> bool:
    """Whether b is to the right of the line from o to a, or on it and farther."""
    turn = (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x)
    if turn != 0:
        return turn < 0
    return (b.x - o.x) ** 2 + (b.y - o.y) ** 2 > (a.x - o.x) ** 2 + (a.y - o.y) ** 2


@st.kernel
def hull_wraps(point: Global[int2], out: Global[i32], count: Global[i32], n: i32, SIZE: Const) -> None:
    """out = corners of the hulls of sets of SIZE points, from the lowest one against the clock; a warp a set."""
    own = st.block.x * (st.block_dim.x // 32) + st.warp
    if own >= n:
        return
    base = own * SIZE
    lowest = base + st.lane
    for k in range(base + st.lane + 32, base + SIZE, 32):
        if lower(point[k], point[lowest]):
            lowest = k
    for step in (16, 8, 4, 2, 1):
        other = st.shuffle_xor(lowest, step)
        if lower(point[other], point[lowest]):
            lowest = other
    at, found = lowest, 0
    while True:
        if st.lane == 0:
            out[base + found] = at - base
        found += 1
        here = point[at]
        best = base + st.lane
        for k in range(base + st.lane + 32, base + SIZE, 32):
            if outer(here, point[best], point[k]):
                best = k
        for step in (16, 8, 4, 2, 1):
            other = st.shuffle_xor(best, step)
            if outer(here, point[best], point[other]):
                best = other
        if best == lowest:
            break
        at = best
    if st.lane == 0:
        count[own] = found


@st.kernel
def box_tree_walk(box: Global[int4], asked: Global[int4], out: Global[i32], n: i32, LOG: Const) -> None:
    """out = number of 2^LOG boxes that intersect each box, down a tree with the bounding boxes of two children as nodes."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    stack = st.local(i32, LOG + 2)
    own = asked[i]
    stack[0] = 0
    top, found = 1, 0
    while top > 0:
        top -= 1
        node = stack[top]
        there = box[node]
        if there.x > own.z or there.z < own.x or there.y > own.w or there.w < own.y:
            continue
        if node >= (1 << LOG) - 1:
            found += 1
        else:
            stack[top] = 2 * node + 2
            stack[top + 1] = 2 * node + 1
            top += 2
    out[i] = found


# ------------------------------------------------------------------ launches
CORNERS = 300


def _polygon(n: int, block: int) -> Args:
    angle = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    radius = 0.2 + 0.3 * draw().random(CORNERS)
    corner = 0.5 + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return {
        "point": floats(n, 2), "corner": corner.astype(np.float32), "out": zeros(n, np.uint8), "n": n, "m": CORNERS, "BLOCK": block,
    }  # fmt: skip


def _inside(args: Args) -> dict[str, Values]:
    x, y = args["point"].T.copy()
    inside = np.zeros(args["n"], bool)
    for a, b in zip(args["corner"], np.roll(args["corner"], -1, axis=0), strict=True):
        crossed = np.flatnonzero((a[1] > y) != (b[1] > y))
        inside[crossed] ^= x[crossed] < (b[0] - a[0]) * (y[crossed] - a[1]) / (b[1] - a[1]) + a[0]
    return {"out": inside}


MEMBERS = 64


def _clouds(n: int, block: int) -> Args:
    cell = np.stack([draw().permutation(128 * 128)[:MEMBERS] for _ in range(16)])
    cell = cell[draw().integers(0, 16, n)] ^ draw().integers(0, 1 << 14, (n, 1))
    point = np.stack([cell & 127, cell >> 7], axis=2).reshape(-1, 2).astype(np.int32)
    return {
        "point": point,
        "out": np.full(n * MEMBERS, -1, np.int32),
        "count": zeros(n, np.int32),
        "n": n,
        "SIZE": MEMBERS,
    }


def _wrapped(args: Args) -> dict[str, Values]:
    """All sets at once, corner after corner."""
    point = args["point"].reshape(-1, MEMBERS, 2).astype(int)
    rows, out = np.arange(len(point)), args["out"].reshape(-1, MEMBERS).copy()
    lowest = (point[..., 1] * 128 + point[..., 0]).argmin(axis=1)
    at, count = lowest, np.zeros(len(point), int)
    active = np.ones(len(point), bool)
    while active.any():
        out[rows[active], count[active]] = at[active]
        count += active
        best = np.zeros_like(at)
        corner = point[rows, at]
        for k in range(1, MEMBERS):
            a, b = point[rows, best] - corner, point[:, k] - corner
            cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
            farther = (b * b).sum(axis=1) > (a * a).sum(axis=1)
            best = np.where((cross < 0) | (cross == 0) & farther, k, best)
        active, at = active & (best != lowest), best
    return {"out": out, "count": count}


DEPTH = 11


def _boxes(n: int, block: int) -> Args:
    rng = draw()
    place = rng.integers(0, 100000, (1 << DEPTH, 2))
    for level in range(DEPTH):
        boxes = place.reshape(1 << level, -1, 2)
        order = boxes[..., level % 2].argsort(axis=1)
        place = np.take_along_axis(boxes, order[..., None], 1).reshape(-1, 2)
    box = np.concatenate([place, place + rng.integers(1, 2000, place.shape)], axis=1).astype(np.int32)
    levels = [box]
    while len(levels[0]) > 1:
        a, b = levels[0][::2], levels[0][1::2]
        levels.insert(0, np.concatenate([np.minimum(a, b)[:, :2], np.maximum(a, b)[:, 2:]], axis=1))
    query = rng.integers(0, 100000, (n, 2))
    query = np.concatenate([query, query + rng.integers(1, 4000, (n, 2))], axis=1).astype(np.int32)
    return {"box": np.concatenate(levels), "asked": query, "out": zeros(n, np.int32), "n": n, "LOG": DEPTH}


def _intersections(args: Args) -> dict[str, Values]:
    left, low, right, high = args["asked"].T.copy()
    out = np.zeros(args["n"], np.int32)
    for x, y, z, w in args["box"][-(1 << DEPTH) :].tolist():
        out += (x <= right) & (z >= left) & (y <= high) & (w >= low)
    return {"out": out}


KERNELS = (
    ValidationKernel(inside_polygon, cover, _polygon, _inside, (1500, 128), (1 << 15, 1 << 19), (64, 128, 512)),
    ValidationKernel(hull_wraps, warps, _clouds, _wrapped, (48, 128), (1 << 11, 1 << 14), (32, 128, 256)),
    ValidationKernel(box_tree_walk, cover, _boxes, _intersections, (1000, 64), (1 << 13, 1 << 16), (64, 128, 256)),
)  # fmt: skip
