"""Layers of networks and colours of images: batch normalisation, activations, attention to a cache, hues."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, Shared, f32, float2, half2, i32, u8, uchar4

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, zeros


@st.device
def tree_sum(partial: Shared[f32], value: f32) -> f32:
    """The sum over the block, in every thread, by halves of the block; it has a power of two threads."""
    t = st.thread.x
    partial[t] = value
    st.sync()
    half = st.block_dim.x // 2
    while half > 0:
        if t < half:
            partial[t] += partial[t + half]
        st.sync()
        half //= 2
    total = partial[0]
    st.sync()
    return total


@st.kernel
def batch_norm_forward(
    x: Global[f32], gain: Global[f32], bias: Global[f32], running_mean: Global[f32], running_variance: Global[f32], y: Global[f32],
    images: i32, pixels: i32, momentum: f32, epsilon: f32, BLOCK: Const,
) -> None:  # fmt: skip
    """y = x (images, channels, pixels) normalised by channel, a block a channel; running moments move to those of the batch."""
    partial = st.shared(f32, BLOCK)
    channel, channels = st.block.x, st.grid_dim.x
    count = images * pixels
    total, squares = 0.0, 0.0
    for i in range(st.thread.x, count, BLOCK):
        image, pixel = i // pixels, i % pixels
        value = x[(image * channels + channel) * pixels + pixel]
        total += value
        squares += value * value
    mean = tree_sum(partial, total) / f32(count)
    variance = tree_sum(partial, squares) / f32(count) - mean * mean
    if st.thread.x == 0:
        unbiased = variance * f32(count) / f32(count - 1)
        running_mean[channel] = (1.0 - momentum) * running_mean[channel] + momentum * mean
        running_variance[channel] = (1.0 - momentum) * running_variance[channel] + momentum * unbiased
    scale = gain[channel] * st.rsqrt(variance + epsilon)
    shift = bias[channel] - mean * scale
    for i in range(st.thread.x, count, BLOCK):
        image, pixel = i // pixels, i % pixels
        at = (image * channels + channel) * pixels + pixel
        y[at] = x[at] * scale + shift


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


@st.kernel
def attention_to_cache(
    query: Global[f32], key: Global[half2], value: Global[half2], length: Global[i32], out: Global[f32], room: i32, scale: f32,
    WARPS: Const,
) -> None:  # fmt: skip
    """out = attention of one query of 64 elements to a cache of `length` rows, a block a head; its warps are merged at the end."""
    tops = st.shared(f32, WARPS)
    totals = st.shared(f32, WARPS)
    sums = st.shared(f32, WARPS, 64)
    head = st.block.x
    lane, warp = st.thread.x % 32, st.thread.x // 32
    q0 = query[head * 64 + 2 * lane] * scale
    q1 = query[head * 64 + 2 * lane + 1] * scale
    top, total, s0, s1 = -math.inf, 0.0, 0.0, 0.0
    for place in range(warp, length[head], WARPS):
        at = (head * room + place) * 32 + lane
        k = key[at]
        score = q0 * f32(k.x) + q1 * f32(k.y)
        for step in (16, 8, 4, 2, 1):
            score += st.shuffle_xor(score, step)
        v = value[at]
        if score > top:
            shrink = st.fast_exp(top - score)
            total = total * shrink + 1.0
            s0 = s0 * shrink + f32(v.x)
            s1 = s1 * shrink + f32(v.y)
            top = score
        else:
            weight = st.fast_exp(score - top)
            total += weight
            s0 += weight * f32(v.x)
            s1 += weight * f32(v.y)
    if lane == 0:
        tops[warp] = top
        totals[warp] = total
    sums[warp, 2 * lane] = s0
    sums[warp, 2 * lane + 1] = s1
    st.sync()
    if st.thread.x < 64:
        highest = tops[0]
        for w in range(1, WARPS):
            highest = max(highest, tops[w])
        below, above = 0.0, 0.0
        for w in range(WARPS):
            weight = st.fast_exp(tops[w] - highest)
            below += weight * totals[w]
            above += weight * sums[w, st.thread.x]
        out[head * 64 + st.thread.x] = above / below


@st.kernel
def colours_to_hues(image: Global[uchar4], out: Global[uchar4], wide: i32, high: i32) -> None:
    """out = hue (0 to 179), saturation and value of the red, green and blue of an image, in whole numbers; w is kept."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x >= wide or y >= high:
        return
    pixel = image[y * wide + x]
    r, g, b = i32(pixel.x), i32(pixel.y), i32(pixel.z)
    largest = max(r, max(g, b))
    apart = largest - min(r, min(g, b))
    hue, saturation = 0, 0
    if largest != 0:
        saturation = 255 * apart // largest
    if apart != 0:
        if largest == r:
            hue = st.div(30 * (g - b), apart)
        elif largest == g:
            hue = 60 + st.div(30 * (b - r), apart)
        else:
            hue = 120 + st.div(30 * (r - g), apart)
        if hue < 0:
            hue += 180
    out[y * wide + x] = uchar4(u8(hue), u8(saturation), u8(largest), pixel.w)


# ------------------------------------------------------------------ launches
IMAGES, PIXELS = 16, 14 * 14


def _features(n: int, block: int) -> Args:
    return {
        "x": draw().normal(0.3, 1, IMAGES * n * PIXELS).astype(np.float32), "gain": 0.5 + floats(n), "bias": floats(n),
        "running_mean": zeros(n), "running_variance": zeros(n) + np.float32(1), "y": zeros(IMAGES * n * PIXELS),
        "images": IMAGES, "pixels": PIXELS, "momentum": 0.1, "epsilon": 1e-5, "BLOCK": block,
    }  # fmt: skip


def _batch_normed(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(IMAGES, -1, PIXELS).astype(np.float64)
    mean, variance = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
    unbiased = variance * (IMAGES * PIXELS) / (IMAGES * PIXELS - 1)
    scale = args["gain"] / np.sqrt(variance + args["epsilon"])
    y = (x - mean[:, None]) * scale[:, None] + args["bias"][:, None]
    keep, take = 1 - args["momentum"], args["momentum"]
    return {
        "y": y, "running_mean": keep * args["running_mean"] + take * mean,
        "running_variance": keep * args["running_variance"] + take * unbiased,
    }  # fmt: skip


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


CAPACITY = 512


def _cache(n: int, block: int) -> Args:
    random = draw()
    keys, values = (
        random.random((n * CAPACITY * 32, 2), dtype=np.float32).astype(np.float16) - np.float16(0.5) for _ in range(2)
    )
    return {
        "query": random.normal(0, 2, n * 64).astype(np.float32), "key": keys, "value": values,
        "length": random.integers(40, CAPACITY + 1, n).astype(np.int32), "out": zeros(n * 64), "room": CAPACITY, "scale": 0.125,
        "WARPS": block // 32,
    }  # fmt: skip


def _recalled(args: Args) -> dict[str, Values]:
    out = []
    for head, query in enumerate(args["query"].reshape(-1, 64)):
        rows = slice(head * CAPACITY * 32, (head * CAPACITY + args["length"][head]) * 32)
        key, value = (args[name][rows].reshape(-1, 64).astype(np.float32) for name in ("key", "value"))
        score = key @ query * args["scale"]
        weight = np.exp(score - score.max())
        out.append(weight @ value / weight.sum())
    return {"out": np.array(out)}


def _photograph(n: int, block: object) -> Args:
    at = np.arange(n, dtype=np.float32)
    pixels = draw().integers(0, 16, (n, n, 4), dtype=np.uint8)
    for k in range(3):
        pixels[:, :, k] += (120 + 90 * np.outer(np.cos(at / (23 + 9 * k)), np.sin(at / 37 + k))).astype(np.uint8)
    pixels = pixels.reshape(-1, 4)
    return {"image": pixels, "out": np.zeros_like(pixels), "wide": n, "high": n}


def _hues(args: Args) -> dict[str, Values]:
    r, g, b, alpha = args["image"].T.astype(np.int32)
    largest = np.maximum(r, np.maximum(g, b))
    chroma = largest - np.minimum(r, np.minimum(g, b))
    over = np.maximum(chroma, 1)
    is_red, is_green = largest == r, largest == g
    offset = 30 * np.select([is_red, is_green], [g - b, b - r], r - g)
    hue = np.select([is_red, is_green], [0, 60], 120) + np.sign(offset) * (np.abs(offset) // over)
    hue = np.where(chroma == 0, 0, np.where(hue < 0, hue + 180, hue))
    return {"out": np.stack([hue, 255 * chroma // np.maximum(largest, 1), largest, alpha], axis=1)}


KERNELS = (
    ValidationKernel(
        batch_norm_forward, lambda n, b: n, _features, _batch_normed, (48, 128), (132, 3072), (64, 256, 512),
        restored=("running_mean", "running_variance"),
    ),
    ValidationKernel(
        gelu_bias_residual, lambda n, b: min(cover(n * PAIRS, b), 1056), _activations, _activated, (100, 256), (512, 8192),
        (128, 256, 512),
    ),
    ValidationKernel(attention_to_cache, lambda n, b: n, _cache, _recalled, (64, 128), (132, 1056), (64, 128, 256)),
    ValidationKernel(colours_to_hues, tiles, _photograph, _hues, (200, (32, 8)), (512, 3072), ((16, 16), (32, 8), (64, 4))),
)  # fmt: skip
