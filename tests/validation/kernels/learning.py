"""Layers of neural networks and their statistics: attention, norms, pooling, convolutions."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, c64, f32, float4, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, warps, zeros


@st.device
def warp_total(value: f32) -> f32:
    """The sum over the lanes of the warp, in every lane."""
    for step in (16, 8, 4, 2, 1):
        value += st.shuffle_xor(value, step)
    return value


@st.kernel
def attention_rows(
    query: Global[f32], key: Global[f32], value: Global[f32], out: Global[f32], n: i32, scale: f32
) -> None:
    """out = causal attention, a warp a query of 64 elements; the softmax is corrected online."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= n:
        return
    q0, q1 = query[row, st.lane], query[row, st.lane + 32]
    most, total = -math.inf, 0.0
    a0, a1 = 0.0, 0.0
    for k in range(row + 1):
        score = scale * warp_total(q0 * key[k, st.lane] + q1 * key[k, st.lane + 32])
        new = max(most, score)
        shrink, weight = st.exp(most - new), st.exp(score - new)
        total = total * shrink + weight
        a0 = a0 * shrink + weight * value[k, st.lane]
        a1 = a1 * shrink + weight * value[k, st.lane + 32]
        most = new
    out[row, st.lane] = a0 / total
    out[row, st.lane + 32] = a1 / total


@st.kernel
def rms_norm(x: Global[float4], gain: Global[float4], out: Global[float4], quarters: i32) -> None:
    """out = rows by their root mean square, a block a row, four numbers at once."""
    partial = st.shared(f32, 32)
    first = st.block.x * quarters
    total = 0.0
    for k in range(st.thread.x, quarters, st.block_dim.x):
        v = x[first + k]
        total += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w
    total = warp_total(total)
    if st.lane == 0:
        partial[st.warp] = total
    st.sync()
    if st.warp == 0:
        total = warp_total(partial[st.lane] if st.lane < st.block_dim.x // 32 else 0.0)
        if st.lane == 0:
            partial[0] = st.rsqrt(total / f32(4 * quarters) + 1e-6)
    st.sync()
    scale = partial[0]
    for k in range(st.thread.x, quarters, st.block_dim.x):
        v, g = x[first + k], gain[k]
        out[first + k] = float4(v.x * scale * g.x, v.y * scale * g.y, v.z * scale * g.z, v.w * scale * g.w)


@st.kernel
def embedding_bags(table: Global[f32], word: Global[i32], start: Global[i32], out: Global[f32]) -> None:
    """out = means of the rows of a table that a bag names; a row of threads a bag, a thread a column."""
    bag = st.block.x * st.block_dim.y + st.thread.y
    if bag >= out.shape[0]:
        return
    first, last = start[bag], start[bag + 1]
    for column in range(st.thread.x, out.shape[1], st.block_dim.x):
        total = 0.0
        for k in range(first, last):
            total += table[word[k], column]
        out[bag, column] = total / f32(last - first) if last > first else 0.0


@st.kernel
def max_pool(x: Global[f32], out: Global[f32], place: Global[i32], high: i32, wide: i32, n: i32) -> None:
    """out = the maximum of 3 x 3 numbers, stride two, with padding; place = its index. A thread an output, in one dimension."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    columns, rows = (wide + 1) // 2, (high + 1) // 2
    column = i % columns
    row = i // columns % rows
    plane = i // (columns * rows)
    best, where = -math.inf, -1
    for r in range(2 * row - 1, 2 * row + 2):
        for c in range(2 * column - 1, 2 * column + 2):
            if r >= 0 and r < high and c >= 0 and c < wide:
                value = x[(plane * high + r) * wide + c]
                if value > best:
                    best = value
                    where = r * wide + c
    out[i] = best
    place[i] = where


@st.kernel
def depthwise_convolution(x: Global[f32], weight: Global[f32], out: Global[f32]) -> None:
    """out = each channel of an image by its own mask of 3 x 3; a block is flat or has depth."""
    c = st.block.z * st.block_dim.z + st.thread.z
    i = st.block.y * st.block_dim.y + st.thread.y
    j = st.block.x * st.block_dim.x + st.thread.x
    channels, high, wide = x.shape
    if c >= channels or i >= high or j >= wide:
        return
    total = 0.0
    for r in range(3):
        for s in range(3):
            y, z = i + r - 1, j + s - 1
            if 0 <= y < high and 0 <= z < wide:
                total += weight[c, r, s] * x[c, y, z]
    out[c, i, j] = max(total, 0.0)


@st.kernel
def welford_channels(x: Global[f32], mean: Global[f32], variance: Global[f32], count: i32) -> None:
    """mean and variance of each row, a block a row, by Welford's steps, joined by shuffles and in shared memory."""
    means = st.shared(f32, 32)
    squares = st.shared(f32, 32)
    counts = st.shared(f32, 32)
    m, s, n = 0.0, 0.0, 0.0
    for k in range(st.thread.x, count, st.block_dim.x):
        value = x[st.block.x * count + k]
        n += 1.0
        apart = value - m
        m += apart / n
        s += apart * (value - m)
    for step in (16, 8, 4, 2, 1):
        om, os, on = st.shuffle_down(m, step), st.shuffle_down(s, step), st.shuffle_down(n, step)
        both = n + on
        if both > 0.0:
            apart = om - m
            m += apart * on / both
            s += os + apart * apart * n * on / both
            n = both
    if st.lane == 0:
        means[st.warp], squares[st.warp], counts[st.warp] = m, s, n
    st.sync()
    if st.thread.x == 0:
        for w in range(1, st.block_dim.x // 32):
            both = n + counts[w]
            apart = means[w] - m
            m += apart * counts[w] / both
            s += squares[w] + apart * apart * n * counts[w] / both
            n = both
        mean[st.block.x] = m
        variance[st.block.x] = s / n


@st.kernel
def dot_int8(x: Global[i32], weights: Global[i32], scale: Global[f32], out: Global[f32], n: i32, words: i32) -> None:
    """out = rows of small whole numbers, four a word, times a vector of them, scaled; a warp a row."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= n:
        return
    total = 0
    for k in range(st.lane, words, 32):
        total = st.dp4a(weights[row * words + k], x[k], total)
    total = st.reduce_add(total)
    if st.lane == 0:
        out[row] = f32(total) * scale[row]


@st.kernel
def top_of_rows(x: Global[f32], out: Global[f32], place: Global[i32], n: i32, columns: i32, K: Const) -> None:
    """out = the K largest of each row in order, and where they are; a warp a row, each lane with K in registers."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= n:
        return
    value = st.registers(f32, K)
    where = st.registers(i32, K)
    for k in st.unroll(range(K)):
        value[k] = -math.inf
        where[k] = -1
    for c in range(st.lane, columns, 32):
        v, at = x[row * columns + c], c
        if v > value[K - 1]:
            for k in st.unroll(range(K)):
                if v > value[k]:
                    value[k], v = v, value[k]
                    where[k], at = at, where[k]
    for turn in range(K):
        best, lane = value[0], st.lane
        for step in (16, 8, 4, 2, 1):
            other, whose = st.shuffle_xor(best, step), st.shuffle_xor(lane, step)
            if other > best or (other == best and whose < lane):
                best, lane = other, whose
        if lane == st.lane:
            out[row * K + turn] = best
            place[row * K + turn] = where[0]
            for k in st.unroll(range(K - 1)):
                value[k] = value[k + 1]
                where[k] = where[k + 1]
            value[K - 1] = -math.inf


@st.kernel
def complex_products(a: Global[c64], b: Global[c64], out: Global[c64], n: i32, TILE: Const) -> None:
    """out = a product of complex matrices, by tiles of both."""
    left = st.shared(c64, TILE, TILE)
    right = st.shared(c64, TILE, TILE)
    x, y = st.thread.x, st.thread.y
    row, column = st.block.y * TILE + y, st.block.x * TILE + x
    total = c64(0.0, 0.0)
    for first in range(0, n, TILE):
        left[y, x] = a[row * n + first + x]
        right[y, x] = b[(first + y) * n + column]
        st.sync()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        st.sync()
    out[row * n + column] = total


# ------------------------------------------------------------------ launches
def _tokens(n: int, block: int) -> Args:
    query, key, value = draw().normal(0, 1, (3, n, 64)).astype(np.float32)
    return {"query": query, "key": key, "value": value, "out": zeros(n * 64).reshape(n, 64), "n": n, "scale": 0.125}


def _attended(args: Args) -> dict[str, Values]:
    score = args["query"] @ args["key"].T * args["scale"]
    weight = np.tril(np.exp(score - score.max(axis=1, keepdims=True)))
    return {"out": weight @ args["value"] / weight.sum(axis=1, keepdims=True)}


WIDTH = 2048


def _rows(n: int, block: int) -> Args:
    x = draw().normal(0, 1, (n, WIDTH)).astype(np.float32)
    return {
        "x": x.reshape(-1, 4), "gain": floats(WIDTH // 4, 4), "out": np.zeros_like(x).reshape(-1, 4), "quarters": WIDTH // 4,
    }  # fmt: skip


def _normed(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, WIDTH).astype(float)
    return {"out": x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * args["gain"].ravel()}


def _bags(n: int, block: object) -> Args:
    """Return words with some frequent ones."""
    lengths = draw().integers(0, 17, n)
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    word = (50000 * draw().random(start[-1]) ** 3).astype(np.int32)
    return {"table": floats(50000, 64), "word": word, "start": start, "out": np.zeros((n, 64), np.float32)}


def _bagged(args: Args) -> dict[str, Values]:
    start = args["start"]
    out = np.zeros(args["out"].shape)
    for k in range(np.diff(start).max()):
        longer = np.diff(start) > k
        out[longer] += args["table"][args["word"][start[:-1][longer] + k]]
    return {"out": out / np.maximum(np.diff(start), 1)[:, None]}


def _planes(n: int, block: int) -> Args:
    x = draw().permutation(n * 57 * 64).astype(np.float32)
    outputs = n * 29 * 32
    return {"x": x, "out": zeros(outputs), "place": zeros(outputs, np.int32), "high": 57, "wide": 64, "n": outputs}


def _pooled(args: Args) -> dict[str, Values]:
    x = np.pad(args["x"].reshape(-1, 57, 64), ((0, 0), (1, 1), (1, 1)), constant_values=-1)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))[:, ::2, ::2].reshape(-1, 29, 32, 9)
    best = windows.argmax(axis=3)
    row, column = 2 * np.arange(29)[:, None] - 1 + best // 3, 2 * np.arange(32) - 1 + best % 3
    return {"out": windows.max(axis=3), "place": row * 64 + column}


SIDE = 56


def _channels(n: int, block: object) -> Args:
    return {
        "x": draw().normal(0, 1, (n, SIDE, SIDE)).astype(np.float32), "weight": floats(n, 3, 3) - np.float32(0.5),
        "out": np.zeros((n, SIDE, SIDE), np.float32),
    }  # fmt: skip


def _convolved(args: Args) -> dict[str, Values]:
    x = np.pad(args["x"], ((0, 0), (1, 1), (1, 1)))
    total = sum(args["weight"][:, r, s, None, None] * x[:, r : r + SIDE, s : s + SIDE] for r, s in np.ndindex(3, 3))
    return {"out": np.maximum(total, 0)}


def _batch(n: int, block: int) -> Args:
    x = draw().normal(3, 1, (n, 4000)).astype(np.float32)
    return {"x": x.ravel(), "mean": zeros(n), "variance": zeros(n), "count": 4000}


def _moments(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, 4000).astype(float)
    return {"mean": x.mean(axis=1), "variance": x.var(axis=1)}


def _quantised(n: int, block: int) -> Args:
    bytes = draw().integers(-128, 128, (n + 1, 1024), np.int8)
    return {
        "x": bytes[0].view(np.int32), "weights": bytes[1:].ravel().view(np.int32), "scale": floats(n), "out": zeros(n), "n": n,
        "words": 256,
    }  # fmt: skip


def _dotted(args: Args) -> dict[str, Values]:
    x, weights = (args[name].view(np.int8).reshape(-1, 1024).astype(np.float32) for name in ("x", "weights"))
    return {"out": (weights @ x[0]) * args["scale"]}


def _scores(n: int, block: int) -> Args:
    """Different values in each row: multiples of its own number, modulo a prime."""
    x = np.multiply.outer(draw().integers(1000, 1000003, n), np.arange(1, 1001)) % 1000003
    return {
        "x": x.astype(np.float32).ravel(),
        "out": zeros(4 * n),
        "place": zeros(4 * n, np.int32),
        "n": n,
        "columns": 1000,
        "K": 4,
    }


def _best(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, 1000)
    order = np.argsort(-x, axis=1)[:, :4]
    return {"out": np.take_along_axis(x, order, 1), "place": order}


def _complex(n: int, block: tuple[int, int]) -> Args:
    a, b = draw().normal(0, 1, (2, n * n, 2)).astype(np.float32).view(np.complex64)[..., 0]
    return {"a": a.copy(), "b": b.copy(), "out": zeros(n * n, np.complex64), "n": n, "TILE": block[0]}


def _multiplied(args: Args) -> dict[str, Values]:
    a, b = (args[name].reshape(args["n"], -1) for name in ("a", "b"))
    return {"out": a @ b}


BLOCKS = (64, 256, 1024)


def _boxed(n: int, block: tuple[int, int, int]) -> tuple[int, int, int]:
    return cover(SIDE, block[0]), cover(SIDE, block[1]), cover(n, block[2])


KERNELS = (
    ValidationKernel(attention_rows, warps, _tokens, _attended, (60, 128), (512, 2048), (64, 128, 256)),
    ValidationKernel(rms_norm, lambda n, b: n, _rows, _normed, (4, 128), (132, 4096), (64, 256, 512)),
    ValidationKernel(
        embedding_bags, lambda n, b: cover(n, b[1]), _bags, _bagged, (60, (32, 4)), (4096, 65536), ((32, 4), (64, 4), (32, 16)),
    ),
    ValidationKernel(max_pool, lambda n, b: cover(n * 29 * 32, b), _planes, _pooled, (3, 128), (64, 1024), BLOCKS),
    ValidationKernel(
        depthwise_convolution, _boxed, _channels, _convolved, (2, (8, 8, 2)), (64, 1024), ((8, 8, 4), (32, 8, 1), (56, 4, 4)),
    ),
    ValidationKernel(welford_channels, lambda n, b: n, _batch, _moments, (4, 128), (132, 4096), BLOCKS),
    ValidationKernel(dot_int8, warps, _quantised, _dotted, (60, 128), (4096, 65536), BLOCKS),
    ValidationKernel(top_of_rows, warps, _scores, _best, (60, 128), (4096, 16384), (64, 256, 512)),
    ValidationKernel(complex_products, tiles, _complex, _multiplied, (64, (16, 16)), (256, 768), ((8, 8), (16, 16), (32, 32))),
)  # fmt: skip
