"""Views: terrain from a point, slices from their projections, video frames in colour, motion between two pictures."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, i32, u8, u32, uchar4, uint4

from .kernel import Args, ValidationKernel, Values, cover, draw, tiles, zeros

STEPS, EYE, ANGLES = 777, 1.75, 120


@st.kernel
def line_of_sight(
    height: Global[f32], seen: Global[u8], count: Global[i32], steps: i32, eye: f32, BLOCK: Const
) -> None:  # fmt: skip
    """seen = visibility of the points of a ray over a terrain from its first point; a block a ray, a running maximum."""
    tops = st.shared(f32, 32)
    t, ray = st.thread.x, st.block.x
    origin = height[ray * steps] + eye
    highest = f32(-math.inf)
    total = 0
    for first in range(1, steps, BLOCK):
        k = first + t
        slope = f32(-math.inf)
        if k < steps:
            slope = (height[ray * steps + k] - origin) / f32(k)
        steepest = slope
        for step in (1, 2, 4, 8, 16):
            other = st.shuffle_up(steepest, step)
            if st.lane >= step:
                steepest = max(steepest, other)
        if st.lane == 31:
            tops[st.warp] = steepest
        st.sync()
        if st.warp == 0:
            top = tops[st.lane] if st.lane < BLOCK // 32 else f32(-math.inf)
            for step in (1, 2, 4, 8, 16):
                other = st.shuffle_up(top, step)
                if st.lane >= step:
                    top = max(top, other)
            tops[st.lane] = top
        st.sync()
        before = st.shuffle_up(steepest, 1)
        if st.lane == 0:
            before = highest
        if st.warp > 0:
            before = max(before, tops[st.warp - 1])
        before = max(before, highest)
        visible = k < steps and slope > before
        if k < steps:
            seen[ray * steps + k] = u8(1) if visible else u8(0)
        highest = max(highest, tops[BLOCK // 32 - 1])
        total += st.sync_count(visible)
    if t == 0:
        seen[ray * steps] = 1
        count[ray] = total + 1


def _rays(n: int, block: int) -> Args:
    height = np.cumsum(draw().standard_normal((n, STEPS), np.float32), axis=1)
    return {
        "height": height.ravel(), "seen": zeros(n * STEPS, np.uint8), "count": zeros(n, np.int32), "steps": STEPS, "eye": EYE,
        "BLOCK": block,
    }  # fmt: skip


def _sighted(args: Args) -> dict[str, Values]:
    height = args["height"].reshape(-1, args["steps"])
    slope = (height[:, 1:] - (height[:, :1] + np.float32(args["eye"]))) / np.arange(1, args["steps"], dtype=np.float32)
    visible = np.ones(height.shape, np.uint8)
    visible[:, 2:] = slope[:, 1:] > np.maximum.accumulate(slope, axis=1)[:, :-1]
    return {"seen": visible.ravel(), "count": visible.sum(axis=1, dtype=np.int32)}


@st.kernel
def back_projection(
    sinogram: Global[f32], out: Global[f32], cosine: Constant[f32], sine: Constant[f32], n: i32, angles: i32, detectors: i32
) -> None:  # fmt: skip
    """out = a slice of a body from filtered projections of parallel beams, a thread a pixel."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x >= n or y >= n:
        return
    right = f32(x) - 0.5 * f32(n - 1)
    down = f32(y) - 0.5 * f32(n - 1)
    total = 0.0
    for a in range(angles):
        at = right * cosine[a] + down * sine[a] + 0.5 * f32(detectors - 1)
        left = i32(st.floor(at))
        if left >= 0 and left + 1 < detectors:
            part = at - f32(left)
            total += (1.0 - part) * sinogram[a * detectors + left] + part * sinogram[a * detectors + left + 1]
    out[y * n + x] = total * (math.pi / f32(angles))


def _beams(n: int, block: tuple[int, int]) -> Args:
    detectors = n + n // 5
    angle = np.arange(ANGLES) * math.pi / ANGLES
    sinogram = draw().random((ANGLES, detectors)) * np.hanning(detectors)
    return {
        "sinogram": sinogram.astype(np.float32).ravel(), "out": zeros(n * n), "cosine": np.cos(angle).astype(np.float32),
        "sine": np.sin(angle).astype(np.float32), "n": n, "angles": ANGLES, "detectors": detectors,
    }  # fmt: skip


def _slice(args: Args) -> dict[str, Values]:
    n, detectors = args["n"], args["detectors"]
    middle, places = np.arange(n) - (n - 1) / 2, np.arange(detectors)
    out = np.zeros((n, n))
    for row, c, s in zip(args["sinogram"].reshape(-1, detectors), args["cosine"], args["sine"], strict=True):
        at = middle * float(c) + (middle * float(s))[:, None] + (detectors - 1) / 2
        out += np.interp(at, places, row, left=0, right=0)
    return {"out": out.ravel() * math.pi / args["angles"]}


@st.device
def byte(x: i32) -> u32:
    """The nearest number that a byte holds."""
    return u32(min(max(x, 0), 255))


@st.device
def opaque(luma: u8, u: u8, v: u8) -> u32:
    """A pixel of four bytes, from its brightness and its colour by BT.601."""
    c, d, e = 298 * (i32(luma) - 16), i32(u) - 128, i32(v) - 128
    red = byte((c + 409 * e + 128) >> 8)
    green = byte((c - 100 * d - 208 * e + 128) >> 8)
    blue = byte((c + 516 * d + 128) >> 8)
    return red | green << 8 | blue << 16 | u32(0xFF000000)


@st.kernel
def nv12_to_rgba(luma: Global[uchar4], chroma: Global[uchar4], out: Global[uint4], wide: i32, high: i32) -> None:
    """out = a video frame of brightness and interleaved colour as pixels of 32 bits; 4 x 2 pixels a thread."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x >= wide // 4 or y >= high // 2:
        return
    colour = chroma[y * (wide // 4) + x]
    for k in range(2):
        row = 2 * y + k
        four = luma[row * (wide // 4) + x]
        out[row * (wide // 4) + x] = uint4(
            opaque(four.x, colour.x, colour.y), opaque(four.y, colour.x, colour.y), opaque(four.z, colour.z, colour.w),
            opaque(four.w, colour.z, colour.w),
        )  # fmt: skip


def _frame(high: int, block: tuple[int, int]) -> Args:
    random, wide = draw(), high // 9 * 16
    return {
        "luma": random.integers(0, 256, (high * wide // 4, 4), dtype=np.uint8),
        "chroma": random.integers(0, 256, (high * wide // 8, 4), dtype=np.uint8),
        "out": np.zeros((high * wide // 4, 4), np.uint32), "wide": wide, "high": high,
    }  # fmt: skip


def _coloured(args: Args) -> dict[str, Values]:
    wide, high = args["wide"], args["high"]
    bright = 298 * (args["luma"].reshape(high, wide).astype(np.int32) - 16) + 128
    pairs = args["chroma"].reshape(high // 2, wide // 2, 2).astype(np.int32) - 128
    d, e = pairs.repeat(2, axis=0).repeat(2, axis=1).transpose(2, 0, 1)
    out = np.full((high, wide, 4), 255, np.uint8)
    for k, colour in enumerate((409 * e, -100 * d - 208 * e, 516 * d)):
        out[:, :, k] = np.clip(bright + colour >> 8, 0, 255)
    return {"out": out.view(np.uint32).reshape(-1, 4)}


@st.kernel
def horn_schunck_step(
    u: Global[f32], v: Global[f32], ix: Global[f32], iy: Global[f32], it: Global[f32], new_u: Global[f32], new_v: Global[f32],
    width: i32, height: i32, alpha: f32, WIDE: Const, HIGH: Const,
) -> None:  # fmt: skip
    """A Jacobi step of the motion between two pictures after Horn and Schunck; tiles with a halo, edges are repeated."""
    tile_u = st.shared(f32, HIGH + 2, WIDE + 2)
    tile_v = st.shared(f32, HIGH + 2, WIDE + 2)
    tx, ty = st.thread.x, st.thread.y
    x, y = st.block.x * WIDE + tx, st.block.y * HIGH + ty
    column, row = min(x, width - 1), min(y, height - 1)
    at = row * width + column
    tile_u[ty + 1, tx + 1] = u[at]
    tile_v[ty + 1, tx + 1] = v[at]
    if tx == 0:
        beside = row * width + max(x - 1, 0)
        tile_u[ty + 1, 0] = u[beside]
        tile_v[ty + 1, 0] = v[beside]
    if tx == WIDE - 1:
        beside = row * width + min(x + 1, width - 1)
        tile_u[ty + 1, WIDE + 1] = u[beside]
        tile_v[ty + 1, WIDE + 1] = v[beside]
    if ty == 0:
        beside = max(y - 1, 0) * width + column
        tile_u[0, tx + 1] = u[beside]
        tile_v[0, tx + 1] = v[beside]
    if ty == HIGH - 1:
        beside = min(y + 1, height - 1) * width + column
        tile_u[HIGH + 1, tx + 1] = u[beside]
        tile_v[HIGH + 1, tx + 1] = v[beside]
    st.sync()
    if x >= width or y >= height:
        return
    mean_u = 0.25 * (tile_u[ty + 1, tx] + tile_u[ty + 1, tx + 2] + tile_u[ty, tx + 1] + tile_u[ty + 2, tx + 1])
    mean_v = 0.25 * (tile_v[ty + 1, tx] + tile_v[ty + 1, tx + 2] + tile_v[ty, tx + 1] + tile_v[ty + 2, tx + 1])
    across, down = ix[at], iy[at]
    change = (across * mean_u + down * mean_v + it[at]) / (alpha * alpha + across * across + down * down)
    new_u[at] = mean_u - across * change
    new_v[at] = mean_v - down * change


def _motion(n: int, block: tuple[int, int]) -> Args:
    high = n * 3 // 4
    u, v, ix, iy, it = draw().random((5, high * n), dtype=np.float32) - np.float32(0.5)
    return {
        "u": u, "v": v, "ix": ix, "iy": iy, "it": it, "new_u": zeros(high * n), "new_v": zeros(high * n), "width": n,
        "height": high, "alpha": 0.6, "WIDE": block[0], "HIGH": block[1],
    }  # fmt: skip


def _moved(args: Args) -> dict[str, Values]:
    shape = args["height"], args["width"]
    u, v, ix, iy, it = (args[name].reshape(shape).astype(float) for name in ("u", "v", "ix", "iy", "it"))

    def mean(x: Values) -> Values:
        p = np.pad(x, 1, mode="edge")
        neighbours: Values = p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1]
        return neighbours / 4

    u, v = mean(u), mean(v)
    change = (ix * u + iy * v + it) / (args["alpha"] ** 2 + ix**2 + iy**2)
    return {"new_u": (u - ix * change).ravel(), "new_v": (v - iy * change).ravel()}


KERNELS = (
    ValidationKernel(line_of_sight, lambda n, b: n, _rays, _sighted, (25, 128), (1500, 30_000), (64, 128, 256)),
    ValidationKernel(back_projection, tiles, _beams, _slice, (60, (16, 16)), (300, 1000), ((16, 16), (32, 8), (8, 8))),
    ValidationKernel(
        nv12_to_rgba, lambda n, b: (cover(n // 9 * 4, b[0]), cover(n // 2, b[1])), _frame, _coloured, (90, (32, 8)),
        (2160, 4320), ((32, 8), (16, 16), (128, 1)),
    ),
    ValidationKernel(
        horn_schunck_step, lambda n, b: (cover(n, b[0]), cover(n * 3 // 4, b[1])), _motion, _moved, (60, (32, 6)),
        (1500, 3300), ((32, 6), (16, 16), (32, 16)),
    ),
)  # fmt: skip
