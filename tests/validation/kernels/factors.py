"""Factors of numbers, labels of communities, periods of stars, a convolution as one product."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros

SLOTS, SAMPLES = 512, 500
IMAGES, CHANNELS, FILTERS, SIDE, STRIDE, PAD = 3, 13, 24, 3, 2, 1


@st.device
def common_divisor(a: u32, b: u32) -> u32:
    """The greatest common divisor, by Euclid's algorithm."""
    while b != 0:
        a, b = b, a % b
    return a


@st.device
def square_plus(x: u32, c: u32, n: u32) -> u32:
    """The next number of Pollard's sequence."""
    return u32((u64(x) * u64(x) + u64(c)) % u64(n))


@st.kernel
def rho_factors(number: Global[u32], out: Global[u32], n: i32) -> None:
    """out = the smaller of two prime factors of each number, by Pollard's rho method with Floyd's cycles."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    whole = number[i]
    divisor, c = whole, u32(1)
    while divisor == whole:
        slow, fast = u32(2), u32(2)
        divisor = 1
        while divisor == 1:
            slow = square_plus(slow, c, whole)
            fast = square_plus(square_plus(fast, c, whole), c, whole)
            divisor = common_divisor(slow - fast if slow > fast else fast - slow, whole)
        c += 1
    out[i] = min(divisor, whole // divisor)


def _primes(n: int) -> tuple[Values, Values]:
    sieve = np.ones(1 << 16, bool)
    sieve[:2] = False
    for k in range(2, 256):
        sieve[k * k :: k] = False
    primes = np.flatnonzero(sieve)[3:].astype(np.uint32)
    random = draw()
    return primes[random.integers(0, 1000, n)], primes[random.integers(1000, primes.size, n)]


def _composites(n: int, block: int) -> Args:
    small, large = _primes(n)
    return {"number": small * large, "out": zeros(n, np.uint32), "n": n}


@st.kernel
def popular_labels(
    start: Global[i32], target: Global[i32], label: Global[i32], out: Global[i32], SLOTS: Const, BLOCK: Const
) -> None:
    """out = the label that most neighbours of a vertex have, the smallest of several; a block a vertex, counts by hashing."""
    key = st.shared(i32, SLOTS)
    count = st.shared(i32, SLOTS)
    best = st.shared(u64, 1)
    t, vertex = st.thread.x, st.block.x
    begin, end = start[vertex], start[vertex + 1]
    if begin == end:
        if t == 0:
            out[vertex] = label[vertex]
        return
    for s in range(t, SLOTS, BLOCK):
        key[s] = -1
        count[s] = 0
    if t == 0:
        best[0] = 0
    st.sync()
    for edge in range(begin + t, end, BLOCK):
        own = label[target[edge]]
        slot = i32(u32(own) * u32(2654435761) >> 16) % SLOTS
        while True:
            old = st.compare_swap(key, slot, -1, own)
            if old == -1 or old == own:
                break
            slot = (slot + 1) % SLOTS
        st.atomic_add(count, slot, 1)
    st.sync()
    for s in range(t, SLOTS, BLOCK):
        if count[s] > 0:
            st.atomic_max(best, 0, u64(count[s]) << 32 | u64(0x7FFFFFFF - key[s]))
    st.sync()
    if t == 0:
        out[vertex] = 0x7FFFFFFF - i32(best[0] & 0xFFFFFFFF)


def _community(n: int, block: int) -> Args:
    random = draw()
    degree = np.minimum(random.pareto(1.3, n) * 12, 400).astype(np.int64)
    start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    near = np.repeat(np.arange(n), degree) + random.integers(-150, 151, start[-1])
    target = np.where(random.random(start[-1]) < 0.9, near % n, random.integers(0, n, start[-1])).astype(np.int32)
    label = np.where(random.random(n) < 0.5, np.arange(n) // 100 * 100, np.arange(n)).astype(np.int32)
    return {"start": start, "target": target, "label": label, "out": zeros(n, np.int32), "SLOTS": SLOTS, "BLOCK": block}


def _popular(args: Args) -> dict[str, Values]:
    n = args["out"].size
    pair = np.repeat(np.arange(n), np.diff(args["start"])) * n + args["label"][args["target"]]
    pair, count = np.unique(pair, return_counts=True)
    order = np.lexsort((pair % n, -count, pair // n))
    vertex, first = np.unique(pair[order] // n, return_index=True)
    out = args["label"].copy()
    out[vertex] = pair[order][first] % n
    return {"out": out}


@st.kernel
def lomb_periodogram(
    time: Global[f64], value: Global[f64], power: Global[f64], samples: i32, frequencies: i32, step: f64, variance: f64,
    BLOCK: Const,
) -> None:  # fmt: skip
    """power = how strong each frequency is in samples at uneven times, after Lomb and Scargle; a thread a frequency."""
    times = st.shared(f64, BLOCK)
    values = st.shared(f64, BLOCK)
    t = st.thread.x
    k = st.block.x * BLOCK + t
    omega = 2.0 * math.pi * step * f64(k + 1)
    xc, xs, cc, cs = f64(0), f64(0), f64(0), f64(0)
    for first in range(0, samples, BLOCK):
        if first + t < samples:
            times[t] = time[first + t]
            values[t] = value[first + t]
        st.sync()
        for j in range(min(BLOCK, samples - first)):
            s, c = st.sincos(omega * times[j])
            xc += values[j] * c
            xs += values[j] * s
            cc += c * c
            cs += c * s
        st.sync()
    if k >= frequencies:
        return
    ss = f64(samples) - cc
    shift = 0.5 * st.atan2(2.0 * cs, cc - ss)
    s, c = st.sincos(shift)
    along = c * xc + s * xs
    across = c * xs - s * xc
    mixed = 2.0 * c * s * cs
    power[k] = 0.5 / variance * (
        along * along / (c * c * cc + mixed + s * s * ss) + across * across / (c * c * ss - mixed + s * s * cc)
    )  # fmt: skip


def _star(n: int, block: int) -> Args:
    random = draw()
    time = np.sort(random.uniform(0, 300, SAMPLES))
    value = np.sin(2 * math.pi * 0.37 * time) + random.standard_normal(SAMPLES)
    value -= value.mean()
    return {
        "time": time, "value": value, "power": zeros(n, np.float64), "samples": SAMPLES, "frequencies": n, "step": 4 / n,
        "variance": value.var(ddof=1), "BLOCK": block,
    }  # fmt: skip


def _periods(args: Args) -> dict[str, Values]:
    """A fit of a sine and a cosine by least squares explains as much at each frequency."""
    time, value, power = args["time"], args["value"], np.zeros(args["frequencies"])
    for first in range(0, power.size, 1000):
        k = np.arange(first, min(first + 1000, power.size))
        wave = np.exp(2j * math.pi * args["step"] * (k[:, None] + 1) * time)
        c, s = np.ascontiguousarray(wave.real), np.ascontiguousarray(wave.imag)
        cc, ss, cs = (np.einsum("kt,kt->k", *pair) for pair in ((c, c), (s, s), (c, s)))
        xc, xs = c @ value, s @ value
        power[k] = (ss * xc**2 - 2 * cs * xc * xs + cc * xs**2) / (cc * ss - cs**2) / 2 / args["variance"]
    return {"power": power}


@st.kernel
def convolution_as_product(
    x: Global[f32], weight: Global[f32], bias: Global[f32], out: Global[f32], images: i32, channels: i32, height: i32,
    width: i32, filters: i32, out_height: i32, out_width: i32, stride: i32, pad: i32, SIDE: Const, TILE: Const,
) -> None:  # fmt: skip
    """A layer of filters with bias and rectifier, as a tiled product with patches gathered during the loads."""
    weights = st.shared(f32, TILE, TILE)
    patches = st.shared(f32, TILE, TILE)
    tx, ty = st.thread.x, st.thread.y
    f = st.block.y * TILE + ty
    pixel = st.block.x * TILE + tx
    pixels = images * out_height * out_width
    depth = channels * SIDE * SIDE
    image = pixel // (out_height * out_width)
    place = pixel % (out_height * out_width)
    top = place // out_width * stride - pad
    left = place % out_width * stride - pad

    total = 0.0
    for first in range(0, depth, TILE):
        k = first + tx
        weights[ty, tx] = weight[f * depth + k] if f < filters and k < depth else 0.0
        k = first + ty
        channel = k // (SIDE * SIDE)
        row = top + k % (SIDE * SIDE) // SIDE
        column = left + k % SIDE
        if pixel < pixels and k < depth and 0 <= row < height and 0 <= column < width:
            patches[ty, tx] = x[((image * channels + channel) * height + row) * width + column]
        else:
            patches[ty, tx] = 0.0
        st.sync()
        for e in range(TILE):
            total += weights[ty, e] * patches[e, tx]
        st.sync()

    if f < filters and pixel < pixels:
        out[(image * filters + f) * out_height * out_width + place] = max(total + bias[f], 0.0)


def _outside(n: int) -> int:
    """Return the side of the output."""
    return (n + 2 * PAD - SIDE) // STRIDE + 1


def _layer(n: int, block: tuple[int, int]) -> Args:
    random, side = draw(), _outside(n)
    return {
        "x": random.random(IMAGES * CHANNELS * n * n, dtype=np.float32),
        "weight": random.standard_normal(FILTERS * CHANNELS * SIDE * SIDE, np.float32),
        "bias": random.standard_normal(FILTERS, np.float32), "out": zeros(IMAGES * FILTERS * side * side), "images": IMAGES,
        "channels": CHANNELS, "height": n, "width": n, "filters": FILTERS, "out_height": side, "out_width": side,
        "stride": STRIDE, "pad": PAD, "SIDE": SIDE, "TILE": block[0],
    }  # fmt: skip


def _filtered(args: Args) -> dict[str, Values]:
    n, side = args["height"], args["out_height"]
    x = np.pad(args["x"].reshape(IMAGES, CHANNELS, n, n), ((0, 0), (0, 0), (PAD, PAD), (PAD, PAD)))
    weight = args["weight"].reshape(FILTERS, CHANNELS, SIDE, SIDE)
    out = np.zeros((FILTERS, IMAGES, side, side)) + args["bias"][:, None, None, None]
    for r, s in np.ndindex(SIDE, SIDE):
        window = x[:, :, r : r + STRIDE * side : STRIDE, s : s + STRIDE * side : STRIDE][:, :, :side, :side]
        out += np.tensordot(weight[:, :, r, s], window, axes=(1, 1))
    return {"out": np.maximum(out, 0).transpose(1, 0, 2, 3).ravel()}


KERNELS = (
    ValidationKernel(
        rho_factors, cover, _composites, lambda a: {"out": _primes(a["n"])[0]}, (1500, 128), (10_000, 100_000), (64, 128, 256)
    ),
    ValidationKernel(popular_labels, lambda n, b: n, _community, _popular, (60, 64), (20_000, 150_000), (32, 64, 128)),
    ValidationKernel(lomb_periodogram, cover, _star, _periods, (1000, 128), (10_000, 100_000), (64, 128, 256)),
    ValidationKernel(
        convolution_as_product, lambda n, b: (cover(IMAGES * _outside(n) ** 2, b[0]), cover(FILTERS, b[1])), _layer, _filtered,
        (11, (16, 16)), (150, 500), ((8, 8), (16, 16), (32, 32)),
    ),
)  # fmt: skip
