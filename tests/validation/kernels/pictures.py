"""Gated recurrences, buckets of a sample sort, denoised and equalised images, regions of interest."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float4, i32, u8, u32, uchar4

from .kernel import Args, ValidationKernel, Values, cover, draw, tiles, zeros


@st.kernel
def selective_scan(
    delta: Global[float4], x: Global[float4], rate: Global[f32], out: Global[float4], LENGTH: Const, BLOCK: Const
) -> None:
    """out = h of h = exp(-delta rate) h + delta x along each channel of LENGTH steps; a block a channel, four steps a thread."""
    factors = st.shared(f32, BLOCK // 32)
    offsets = st.shared(f32, BLOCK // 32)
    channel = st.block.x
    slope = rate[channel]
    decay = st.registers(f32, 4)
    state = st.registers(f32, 4)
    carry = 0.0
    for first in range(0, LENGTH // 4, BLOCK):
        at = channel * (LENGTH // 4) + first + st.thread.x
        step, inflow = delta[at], x[at]
        factor, offset = 1.0, 0.0
        for k in st.unroll(range(4)):
            decay[k] = st.exp(-step[k] * slope)
            state[k] = step[k] * inflow[k]
            factor *= decay[k]
            offset = decay[k] * offset + state[k]
        for k in st.unroll(range(5)):
            before_factor = st.shuffle_up(factor, 1 << k)
            before_offset = st.shuffle_up(offset, 1 << k)
            if st.lane >= 1 << k:
                offset = factor * before_offset + offset
                factor = factor * before_factor
        if st.lane == 31:
            factors[st.warp] = factor
            offsets[st.warp] = offset
        st.sync()
        h = carry
        for w in range(BLOCK // 32):
            if w == st.warp:
                h = carry
            carry = factors[w] * carry + offsets[w]
        factor = st.shuffle_up(factor, 1)
        offset = st.shuffle_up(offset, 1)
        if st.lane > 0:
            h = factor * h + offset
        for k in st.unroll(range(4)):
            h = decay[k] * h + state[k]
            state[k] = h
        out[at] = float4(state[0], state[1], state[2], state[3])
        st.sync()


@st.kernel
def bucket_by_splitters(
    key: Global[u32], tree: Global[u32], bucket: Global[u8], counts: Global[i32], n: i32, LEVELS: Const, ITEMS: Const, BLOCK: Const
) -> None:  # fmt: skip
    """bucket = that of each key of a sample sort, counts = keys of each bucket in each block; splitters are a search tree."""
    splitters = st.shared(u32, 1 << LEVELS)
    table = st.shared(i32, 1 << LEVELS)
    for k in range(st.thread.x, 1 << LEVELS, BLOCK):
        splitters[k] = tree[k]
        table[k] = 0
    st.sync()
    for item in range(ITEMS):
        i = (st.block.x * ITEMS + item) * BLOCK + st.thread.x
        if i < n:
            own = key[i]
            node = 1
            for _ in st.unroll(range(LEVELS)):
                node = 2 * node + (1 if own > splitters[node] else 0)
            found = node - (1 << LEVELS)
            bucket[i] = u8(found)
            st.atomic_add(table, found, 1)
    st.sync()
    for k in range(st.thread.x, 1 << LEVELS, BLOCK):
        counts[k * st.grid_dim.x + st.block.x] = table[k]


STEPS = 2048


def _channels(n: int, block: int) -> Args:
    random = draw()
    delta, x = random.random((n, STEPS // 4, 4), np.float32), random.standard_normal((n, STEPS // 4, 4), np.float32)
    return {
        "delta": delta.reshape(-1, 4) * np.float32(0.2), "x": x.reshape(-1, 4), "rate": random.random(n, dtype=np.float32) * 2,
        "out": np.zeros((n * STEPS // 4, 4), np.float32), "LENGTH": STEPS, "BLOCK": block,
    }  # fmt: skip


def _states(args: Args) -> dict[str, Values]:
    delta, x = (args[name].reshape(-1, STEPS).T.astype(float) for name in ("delta", "x"))
    decay, out, h = np.exp(-delta * args["rate"]), np.empty_like(x), np.zeros(args["rate"].size)
    for t in range(STEPS):
        out[t] = h = decay[t] * h + delta[t] * x[t]
    return {"out": out.T.reshape(-1, 4)}


LEVELS, ITEMS = 7, 8


def _sampled(n: int, block: int) -> Args:
    random = draw()
    key = (2.0**32 * random.random(n) ** 2).astype(np.uint32)
    tree = np.zeros(1 << LEVELS, np.uint32)
    splitters = np.sort(random.choice(key, (1 << LEVELS) * 16))[16::16]
    for level in range(LEVELS):
        half = 1 << (LEVELS - 1 - level)
        tree[1 << level : 2 << level] = splitters[half - 1 :: 2 * half]
    return {
        "key": key, "tree": tree, "bucket": zeros(n, np.uint8), "counts": zeros(cover(n, ITEMS * block) << LEVELS, np.int32),
        "n": n, "LEVELS": LEVELS, "ITEMS": ITEMS, "BLOCK": block,
    }  # fmt: skip


def _bucketed(args: Args) -> dict[str, Values]:
    slice, n = ITEMS * args["BLOCK"], args["n"]
    bucket = np.asarray(np.searchsorted(np.sort(args["tree"][1:]), args["key"]))
    blocks = cover(n, slice)
    counts = np.bincount(bucket * blocks + np.arange(n) // slice, minlength=blocks << LEVELS)
    return {"bucket": bucket, "counts": counts}


@st.kernel
def non_local_means(
    image: Global[f32], out: Global[f32], width: i32, height: i32, sharpness: f32, SEARCH: Const, PATCH: Const,
    BLOCK_X: Const, BLOCK_Y: Const,
) -> None:  # fmt: skip
    """out = a mean of the pixels around each, weighted by the similarity of their patches; patches are read from a shared tile."""
    tile = st.shared(f32, BLOCK_Y + 2 * (SEARCH + PATCH), BLOCK_X + 2 * (SEARCH + PATCH))
    halo = SEARCH + PATCH
    left, top = st.block.x * BLOCK_X - halo, st.block.y * BLOCK_Y - halo
    for y in range(st.thread.y, BLOCK_Y + 2 * halo, BLOCK_Y):
        for x in range(st.thread.x, BLOCK_X + 2 * halo, BLOCK_X):
            row, column = min(max(top + y, 0), height - 1), min(max(left + x, 0), width - 1)
            tile[y, x] = image[row * width + column]
    st.sync()
    x, y = st.thread.x + halo, st.thread.y + halo
    total, weights = 0.0, 0.0
    for dy in range(-SEARCH, SEARCH + 1):
        for dx in range(-SEARCH, SEARCH + 1):
            apart = 0.0
            for py in st.unroll(range(-PATCH, PATCH + 1)):
                for px in st.unroll(range(-PATCH, PATCH + 1)):
                    change = tile[y + dy + py, x + dx + px] - tile[y + py, x + px]
                    apart += change * change
            weight = st.fast_exp(-apart * sharpness)
            total += weight * tile[y + dy, x + dx]
            weights += weight
    if left + x < width and top + y < height:
        out[(top + y) * width + left + x] = total / weights


@st.kernel
def clipped_equaliser(
    image: Global[uchar4], table: Global[u8], pitch: i32, limit: i32, SIDE: Const, BLOCK: Const
) -> None:
    """table = for each tile of an image how its grey levels are equalised, contrast being limited; a block a tile."""
    bins = st.shared(i32, 256)
    sums = st.shared(i32, BLOCK // 32)
    over = st.shared(i32, 1)
    t = st.thread.x
    for k in range(t, 256, BLOCK):
        bins[k] = 0
    if t == 0:
        over[0] = 0
    st.sync()
    corner = st.block.y * SIDE * pitch + st.block.x * (SIDE // 4)
    for k in range(t, SIDE * SIDE // 4, BLOCK):
        four = image[corner + k // (SIDE // 4) * pitch + k % (SIDE // 4)]
        st.atomic_add(bins, i32(four.x), 1)
        st.atomic_add(bins, i32(four.y), 1)
        st.atomic_add(bins, i32(four.z), 1)
        st.atomic_add(bins, i32(four.w), 1)
    st.sync()
    clipped = 0
    for k in range(t, 256, BLOCK):
        if bins[k] > limit:
            clipped += bins[k] - limit
            bins[k] = limit
    if clipped > 0:
        st.atomic_add(over, 0, clipped)
    st.sync()
    each, rest = over[0] // 256, over[0] % 256
    mine = st.registers(i32, 256 // BLOCK)
    total = 0
    for k in st.unroll(range(256 // BLOCK)):
        level = t * (256 // BLOCK) + k
        total += bins[level] + each + (1 if level < rest else 0)
        mine[k] = total
    whole = total
    for k in st.unroll(range(5)):
        before = st.shuffle_up(whole, 1 << k)
        if st.lane >= 1 << k:
            whole += before
    if st.lane == 31:
        sums[st.warp] = whole
    st.sync()
    offset = whole - total
    for w in range(st.warp):
        offset += sums[w]
    for k in st.unroll(range(256 // BLOCK)):
        level = ((offset + mine[k]) * 255 + SIDE * SIDE // 2) // (SIDE * SIDE)
        table[(st.block.y * st.grid_dim.x + st.block.x) * 256 + t * (256 // BLOCK) + k] = u8(level)


SEARCH, PATCH, SHARPNESS = 3, 1, 4.0


def _grainy(n: int, block: tuple[int, int]) -> Args:
    y, x = np.mgrid[:n, :n]
    image = 0.5 + 0.3 * np.sin(x / 9) * np.cos(y / 13) + 0.2 * ((x // 16 + y // 16) % 2) + draw().normal(0, 0.1, (n, n))
    return {
        "image": image.astype(np.float32).ravel(), "out": zeros(n * n), "width": n, "height": n, "sharpness": SHARPNESS,
        "SEARCH": SEARCH, "PATCH": PATCH, "BLOCK_X": block[0], "BLOCK_Y": block[1],
    }  # fmt: skip


def _smoothed(args: Args) -> dict[str, Values]:
    n, halo = args["width"], SEARCH + PATCH
    wide = np.pad(args["image"].reshape(n, n).astype(float), halo, mode="edge")
    patched, view = n + 2 * PATCH, np.lib.stride_tricks.sliding_window_view
    total, weights = np.zeros((2, n, n))
    middle = wide[SEARCH : SEARCH + patched, SEARCH : SEARCH + patched]
    for dy in range(2 * SEARCH + 1):
        for dx in range(2 * SEARCH + 1):
            moved = wide[dy : dy + patched, dx : dx + patched]
            rows = view((moved - middle) ** 2, 2 * PATCH + 1, axis=0).sum(axis=-1)
            weight = np.exp(-SHARPNESS * view(rows, 2 * PATCH + 1, axis=1).sum(axis=-1))
            total += weight * moved[PATCH : PATCH + n, PATCH : PATCH + n]
            weights += weight
    return {"out": (total / weights).ravel()}


SIDE, CLIP = 64, 40


def _grey(n: int, block: int) -> Args:
    random = draw()
    y, x = np.mgrid[:n, :n].astype(np.float32)
    image = 110 + 60 * np.sin(x / 170) * np.cos(y / 230) + 25 * random.standard_normal((n, n), np.float32)
    return {
        "image": np.clip(image, 0, 255).astype(np.uint8).reshape(-1, 4), "table": zeros((n // SIDE) ** 2 * 256, np.uint8),
        "pitch": n // 4, "limit": CLIP, "SIDE": SIDE, "BLOCK": block,
    }  # fmt: skip


def _equalised(args: Args) -> dict[str, Values]:
    across = args["pitch"] * 4 // SIDE
    grey = args["image"].reshape(across, SIDE, across, SIDE).swapaxes(1, 2).reshape(across**2, -1)
    tile = np.arange(across**2)[:, None] * 256
    bins = np.bincount((tile + grey).ravel(), minlength=across**2 * 256).reshape(-1, 256)
    over = np.maximum(bins - CLIP, 0).sum(axis=1, keepdims=True)
    bins = np.minimum(bins, CLIP) + over // 256 + (np.arange(256) < over % 256)
    return {"table": ((bins.cumsum(axis=1) * 255 + SIDE**2 // 2) // SIDE**2).ravel()}


@st.device
def bilinear_or_nought(plane: Global[f32], first: i32, y: f32, x: f32, height: i32, width: i32) -> f32:
    """A plane between its points: its edge up to a point outside, 0 beyond."""
    if y < -1.0 or y > f32(height) or x < -1.0 or x > f32(width):
        return 0.0
    y, x = max(y, 0.0), max(x, 0.0)
    top, left = min(i32(y), height - 1), min(i32(x), width - 1)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down = y - f32(top) if bottom > top else 0.0
    over = x - f32(left) if right > left else 0.0
    upper = plane[first + top * width + left] * (1.0 - over) + plane[first + top * width + right] * over
    lower = plane[first + bottom * width + left] * (1.0 - over) + plane[first + bottom * width + right] * over
    return upper * (1.0 - down) + lower * down


@st.kernel
def align_regions(
    features: Global[f32], regions: Global[float4], out: Global[f32], n: i32, channels: i32, height: i32, width: i32,
    scale: f32, POOLED: Const,
) -> None:  # fmt: skip
    """out = POOLED x POOLED means of each region of each channel, of as many bilinear samples as the region is large."""
    for index in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        px, py = index % POOLED, index // POOLED % POOLED
        channel = index // (POOLED * POOLED) % channels
        region = regions[index // (POOLED * POOLED) // channels]
        left, top = region.x * scale, region.y * scale
        cell_x = max(region.z * scale - left, 1.0) / POOLED
        cell_y = max(region.w * scale - top, 1.0) / POOLED
        samples_x, samples_y = i32(st.ceil(cell_x)), i32(st.ceil(cell_y))
        total = 0.0
        for iy in range(samples_y):
            y = top + cell_y * (f32(py) + (f32(iy) + 0.5) / f32(samples_y))
            for ix in range(samples_x):
                x = left + cell_x * (f32(px) + (f32(ix) + 0.5) / f32(samples_x))
                total += bilinear_or_nought(features, channel * height * width, y, x, height, width)
        out[index] = total / f32(samples_x * samples_y)


CHANNELS, HEIGHT, WIDTH, POOLED, SCALE = 64, 50, 68, 7, 0.0625


def _regions(n: int, block: int) -> Args:
    random = draw()
    features = random.standard_normal(CHANNELS * HEIGHT * WIDTH, np.float32)
    sides = np.exp(random.uniform(np.log(24), np.log(700), (n, 2)))
    corner = random.random((n, 2)) * [1060, 780] - sides / 2
    return {
        "features": features, "regions": np.hstack([corner, corner + sides]).astype(np.float32),
        "out": zeros(n * CHANNELS * POOLED**2), "n": n * CHANNELS * POOLED**2, "channels": CHANNELS, "height": HEIGHT,
        "width": WIDTH, "scale": SCALE, "POOLED": POOLED,
    }  # fmt: skip


def _weights(low: float, high: float, extent: int) -> Values:
    """Return the weight of each point of an axis in each of POOLED cells."""
    cell = float(np.maximum(np.float32(high - low), np.float32(1)) / np.float32(POOLED))
    samples = math.ceil(cell)
    at = low + cell * (np.arange(POOLED * samples) + 0.5) / samples
    inside = (at >= -1) & (at <= extent)
    at = np.clip(at, 0, extent - 1)
    hats = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(extent))) * inside[:, None]
    weights: Values = hats.reshape(POOLED, samples, extent).mean(axis=1)
    return weights


def _aligned(args: Args) -> dict[str, Values]:
    features = args["features"].reshape(CHANNELS, HEIGHT, WIDTH).astype(float)
    out = []
    for left, top, right, bottom in args["regions"] * np.float32(SCALE):
        rows, columns = _weights(top, bottom, HEIGHT), _weights(left, right, WIDTH)
        out.append(np.matmul(np.matmul(rows, features), columns.T))
    return {"out": np.concatenate(out).ravel()}


KERNELS = (
    ValidationKernel(selective_scan, lambda n, b: n, _channels, _states, (6, 128), (1 << 10, 1 << 13), (64, 128, 512)),
    ValidationKernel(
        bucket_by_splitters, lambda n, b: cover(n, ITEMS * b), _sampled, _bucketed, (10_000, 128), (1 << 22, 1 << 25),
        (128, 256, 512),
    ),
    ValidationKernel(non_local_means, tiles, _grainy, _smoothed, (50, (16, 16)), (512, 1536), ((16, 16), (32, 8), (8, 8))),
    ValidationKernel(
        clipped_equaliser, lambda n, b: (n // SIDE, n // SIDE), _grey, _equalised, (192, 128), (2048, 8192), (64, 128, 256),
    ),
    ValidationKernel(
        align_regions, lambda n, b: min(cover(n * CHANNELS * POOLED**2, b), 4096), _regions, _aligned, (5, 128), (128, 1024),
        (64, 256, 1024),
    ),
)  # fmt: skip
