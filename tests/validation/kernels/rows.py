"""Rows of several lengths: gradients of layers, distinct keys, segments, networks that sort pairs, outliers, edges."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float4, i32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, warps, zeros


@st.device
def totals_of_block(a: f32, b: f32, room: st.Shared[f32], WARPS: Const) -> tuple[f32, f32]:
    """Two sums over the block, in every thread."""
    for step in st.unroll(range(5)):
        a += st.shuffle_xor(a, 16 >> step)
        b += st.shuffle_xor(b, 16 >> step)
    st.sync()
    if st.lane == 0:
        room[st.warp] = a
        room[32 + st.warp] = b
    st.sync()
    a, b = 0.0, 0.0
    for w in range(WARPS):
        a += room[w]
        b += room[32 + w]
    return a, b


@st.kernel
def layer_norm_backward(
    x: Global[f32], slope: Global[f32], weight: Global[f32], mean: Global[f32], scale: Global[f32], out: Global[f32],
    of_weight: Global[f32], of_bias: Global[f32], rows: i32, WIDTH: Const, BLOCK: Const,
) -> None:  # fmt: skip
    """out = slopes of the inputs of a layer norm, of_weight and of_bias = those of its parameters; a block some rows."""
    room = st.shared(f32, 64)
    weights = st.registers(f32, WIDTH // BLOCK)
    biases = st.registers(f32, WIDTH // BLOCK)
    normal = st.registers(f32, WIDTH // BLOCK)
    given = st.registers(f32, WIDTH // BLOCK)
    for k in st.unroll(range(WIDTH // BLOCK)):
        weights[k], biases[k] = 0.0, 0.0
    for row in range(st.block.x, rows, st.grid_dim.x):
        middle, inverse = mean[row], scale[row]
        plain, along = 0.0, 0.0
        for k in st.unroll(range(WIDTH // BLOCK)):
            at = row * WIDTH + k * BLOCK + st.thread.x
            normal[k] = (x[at] - middle) * inverse
            raw = slope[at]
            given[k] = raw * weight[k * BLOCK + st.thread.x]
            weights[k] += raw * normal[k]
            biases[k] += raw
            plain += given[k]
            along += given[k] * normal[k]
        plain, along = totals_of_block(plain, along, room, BLOCK // 32)
        for k in st.unroll(range(WIDTH // BLOCK)):
            at = row * WIDTH + k * BLOCK + st.thread.x
            out[at] = inverse * (given[k] - (plain + normal[k] * along) / WIDTH)
    for k in st.unroll(range(WIDTH // BLOCK)):
        st.atomic_add(of_weight, k * BLOCK + st.thread.x, weights[k])
        st.atomic_add(of_bias, k * BLOCK + st.thread.x, biases[k])


LOG = 10


@st.device
def murmur_mixed(key: u64) -> u64:
    """The last steps of Murmur's hash of 64 bits."""
    key ^= key >> 33
    key *= u64(0xFF51AFD7ED558CCD)
    key ^= key >> 33
    key *= u64(0xC4CEB9FE1A85EC53)
    return key ^ key >> 33


@st.kernel
def distinct_registers(key: Global[u64], out: Global[i32], n: i32) -> None:
    """out = for each of 2^LOG slots and each column the longest run of leading noughts of hashed keys, and one."""
    longest = st.shared(i32, 1 << LOG)
    column = st.block.y
    for k in range(st.thread.x, 1 << LOG, st.block_dim.x):
        longest[k] = 0
    st.sync()
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        mixed = murmur_mixed(key[column * n + i])
        slot = i32(mixed >> (64 - LOG))
        rest = mixed << LOG | u64(1 << (LOG - 1))
        st.atomic_max(longest, slot, st.clz(rest) + 1, scope="block")
    st.sync()
    for k in range(st.thread.x, 1 << LOG, st.block_dim.x):
        if longest[k] > 0:
            st.atomic_max(out, (column << LOG) + k, longest[k])


FEATURES = 512


def _layer(n: int, block: int) -> Args:
    random = draw()
    x, slope = random.standard_normal((2, n, FEATURES), np.float32)
    return {
        "x": x.ravel(), "slope": slope.ravel(), "weight": random.random(FEATURES, dtype=np.float32) + np.float32(0.5),
        "mean": x.mean(axis=1), "scale": 1 / np.sqrt(x.var(axis=1) + np.float32(1e-5)), "out": zeros(n * FEATURES),
        "of_weight": zeros(FEATURES), "of_bias": zeros(FEATURES), "rows": n, "WIDTH": FEATURES, "BLOCK": block,
    }  # fmt: skip


def _backward(args: Args) -> dict[str, Values]:
    x, slope = (args[name].reshape(-1, FEATURES).astype(float) for name in ("x", "slope"))
    scale = args["scale"][:, None].astype(float)
    normal, gradient = (x - args["mean"][:, None]) * scale, slope * args["weight"]
    along = (gradient * normal).mean(axis=1, keepdims=True)
    out = scale * (gradient - gradient.mean(axis=1, keepdims=True) - normal * along)
    return {"out": out, "of_weight": (slope * normal).sum(axis=0), "of_bias": slope.sum(axis=0)}


COLUMNS = 4


def _visits(n: int, block: int) -> Args:
    random = draw()
    several = [random.integers(0, n // 4 * (k + 1), n, dtype=np.uint64) for k in range(COLUMNS)]
    return {"key": np.concatenate(several), "out": zeros(COLUMNS << LOG, np.int32), "n": n}


def _longest(args: Args) -> dict[str, Values]:
    key = args["key"].copy()
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        key = (key ^ key >> np.uint64(33)) * np.uint64(factor)
    key ^= key >> np.uint64(33)
    slot = (key >> np.uint64(64 - LOG)).astype(int)
    rest = (key & np.uint64((1 << (64 - LOG)) - 1)).astype(float)
    noughts = np.where(rest > 0, 64 - LOG - 1 - np.floor(np.log2(np.maximum(rest, 1))), 64 - LOG).astype(np.int32)
    out = zeros(COLUMNS << LOG, np.int32)
    np.maximum.at(out, np.repeat(np.arange(COLUMNS) << LOG, args["n"]) + slot, noughts + 1)
    return {"out": out}


@st.kernel
def segment_spreads(x: Global[f32], start: Global[i32], out: Global[float4], n: i32) -> None:
    """out = mean, deviation, least and largest number of segments of any length, a warp each, in two passes; 0 of an empty one."""
    segment = (st.block.x * st.block_dim.x + st.thread.x) // 32
    lane = st.thread.x % 32
    if segment >= n:
        return
    first, last = start[segment], start[segment + 1]
    count = f32(last - first)
    if first == last:
        if lane == 0:
            out[segment] = float4(0.0, 0.0, 0.0, 0.0)
        return
    total, low, high = 0.0, math.inf, -math.inf
    for k in range(first + lane, last, 32):
        value = x[k]
        total += value
        low = min(low, value)
        high = max(high, value)
    for step in (16, 8, 4, 2, 1):
        total += st.shuffle_xor(total, step)
        low = min(low, st.shuffle_xor(low, step))
        high = max(high, st.shuffle_xor(high, step))
    mean = total / count
    squares = 0.0
    for k in range(first + lane, last, 32):
        apart = x[k] - mean
        squares += apart * apart
    for step in (16, 8, 4, 2, 1):
        squares += st.shuffle_down(squares, step)
    if lane == 0:
        out[segment] = float4(mean, st.sqrt(squares / count), low, high)


@st.device
def in_order(key: st.Shared[f32], value: st.Shared[i32], a: i32, b: i32) -> None:
    """Exchange two pairs if their keys are not in ascending order."""
    if key[a] > key[b]:
        key[a], key[b] = key[b], key[a]
        value[a], value[b] = value[b], value[a]


@st.kernel
def odd_even_merge_pairs(
    key: Global[f32], value: Global[i32], out_key: Global[f32], out_value: Global[i32], BLOCK: Const
) -> None:
    """Pairs sorted by key in slices of two a thread, by Batcher's merges of odd and even places in shared memory."""
    keys = st.shared(f32, 2 * BLOCK)
    values = st.shared(i32, 2 * BLOCK)
    t = st.thread.x
    first = st.block.x * 2 * BLOCK
    keys[t] = key[first + t]
    values[t] = value[first + t]
    keys[t + BLOCK] = key[first + t + BLOCK]
    values[t + BLOCK] = value[first + t + BLOCK]
    size = 2
    while size <= 2 * BLOCK:
        stride = size // 2
        offset = t & (stride - 1)
        st.sync()
        place = 2 * t - (t & (stride - 1))
        in_order(keys, values, place, place + stride)
        stride //= 2
        while stride > 0:
            st.sync()
            place = 2 * t - (t & (stride - 1))
            if offset >= stride:
                in_order(keys, values, place - stride, place)
            stride //= 2
        size *= 2
    st.sync()
    out_key[first + t] = keys[t]
    out_value[first + t] = values[t]
    out_key[first + t + BLOCK] = keys[t + BLOCK]
    out_value[first + t + BLOCK] = values[t + BLOCK]


def _segments(n: int, block: int) -> Args:
    random = draw()
    long = np.where(random.random(n) < 0.1, 0, np.minimum(random.zipf(1.5, n) * 3, 2000) + random.integers(0, 40, n))
    start = np.concatenate([[0], np.cumsum(long)]).astype(np.int32)
    x = random.normal(1, 2, start[-1]).astype(np.float32)
    return {"x": x, "start": start, "out": np.zeros((n, 4), np.float32), "n": n}


def _spread(args: Args) -> dict[str, Values]:
    start, x = args["start"], args["x"].astype(float)
    long = np.diff(start)
    filled = np.flatnonzero(long)
    first, count = start[filled], long[filled]
    mean = np.add.reduceat(x, first) / count
    variance = np.add.reduceat((x - np.repeat(mean, count)) ** 2, first) / count
    out = np.zeros((args["n"], 4))
    out[filled] = np.stack(
        [mean, np.sqrt(variance), np.minimum.reduceat(x, first), np.maximum.reduceat(x, first)], axis=1
    )
    return {"out": out}


def _pairs(n: int, block: int) -> Args:
    key = draw().permutation(n).astype(np.float32) - np.float32(n // 2)
    value = draw().integers(-(2**31), 2**31, n).astype(np.int32)
    return {"key": key, "value": value, "out_key": zeros(n), "out_value": zeros(n, np.int32), "BLOCK": block}


def _merged(args: Args) -> dict[str, Values]:
    key, value = (args[name].reshape(-1, 2 * args["BLOCK"]) for name in ("key", "value"))
    order = key.argsort(axis=1)
    return {"out_key": np.take_along_axis(key, order, 1), "out_value": np.take_along_axis(value, order, 1)}


@st.kernel
def hampel_filter(x: Global[f32], out: Global[f32], changed: Global[i32], n: i32, limit: f32, RADIUS: Const) -> None:
    """out = a signal with outliers replaced by medians of their windows; the threshold is a multiple of the median distance."""
    window = st.local(f32, 2 * RADIUS + 1)
    i = st.block.x * st.block_dim.x + st.thread.x
    replaced = False
    if i < n:
        for k in range(2 * RADIUS + 1):
            value = x[min(max(i + k - RADIUS, 0), n - 1)]
            j = k - 1
            while j >= 0 and window[j] > value:
                window[j + 1] = window[j]
                j -= 1
            window[j + 1] = value
        median = window[RADIUS]
        for k in range(2 * RADIUS + 1):
            value = abs(window[k] - median)
            j = k - 1
            while j >= 0 and window[j] > value:
                window[j + 1] = window[j]
                j -= 1
            window[j + 1] = value
        own = x[i]
        replaced = abs(own - median) > limit * window[RADIUS]
        out[i] = median if replaced else own
    lanes = st.ballot(replaced)
    if st.lane == 0 and lanes != 0:
        st.atomic_add(changed, 0, st.popcount(lanes))


@st.kernel
def edge_supports(
    start: Global[i32], target: Global[i32], source: Global[i32], support: Global[i32], total: Global[i32], n: i32
) -> None:
    """support = triangles that begin with each edge u < v, by search of the shorter list in the longer; a warp an edge."""
    edge = st.block.x * (st.block_dim.x // 32) + st.warp
    if edge >= n:
        return
    u, v = source[edge], target[edge]
    short, short_end = start[u], start[u + 1]
    long, long_end = start[v], start[v + 1]
    if short_end - short > long_end - long:
        short, long = long, short
        short_end, long_end = long_end, short_end
    count = 0
    for k in range(short + st.lane, short_end, 32):
        wanted = target[k]
        low, high = long, long_end
        while low < high:
            middle = (low + high) // 2
            if target[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < long_end and target[low] == wanted:
            count += 1
    for step in (16, 8, 4, 2, 1):
        count += st.shuffle_down(count, step)
    if st.lane == 0:
        support[edge] = count
        if count > 0:
            st.atomic_add(total, 0, count)


RADIUS, LIMIT = 5, 4.4478


def _noisy(n: int, block: int) -> Args:
    random = draw()
    x = np.sin(np.arange(n) / 40) + random.normal(0, 0.1, n) + np.where(random.random(n) < 0.03, 3, 0)
    return {
        "x": x.astype(np.float32), "out": zeros(n), "changed": zeros(1, np.int32), "n": n, "limit": LIMIT, "RADIUS": RADIUS,
    }  # fmt: skip


def _cleaned(args: Args) -> dict[str, Values]:
    x = args["x"]
    window = np.lib.stride_tricks.sliding_window_view(np.pad(x, RADIUS, mode="edge"), 2 * RADIUS + 1)
    median = np.median(window, axis=1)
    far = np.median(np.abs(window - median[:, None]), axis=1)
    replaced = np.abs(x - median) > np.float32(LIMIT) * far
    return {"out": np.where(replaced, median, x), "changed": np.array([replaced.sum()])}


def _edges(n: int, block: int) -> Args:
    random, vertices = draw(), n // 16
    ends = np.sort((vertices * random.random((3 * n, 2)) ** 1.6).astype(np.int64), axis=1)
    pairs = np.unique(ends[ends[:, 0] < ends[:, 1]] @ [vertices, 1])
    source, target = np.divmod(np.sort(random.choice(pairs, n, replace=False)), vertices)
    return {
        "start": np.searchsorted(source, np.arange(vertices + 1)).astype(np.int32), "target": target.astype(np.int32),
        "source": source.astype(np.int32), "support": zeros(n, np.int32), "total": zeros(1, np.int32), "n": n,
    }  # fmt: skip


def _supported(args: Args) -> dict[str, Values]:
    start, target, n = args["start"], args["target"].astype(np.int64), args["n"]
    pairs = args["source"] * start.size + target
    support = np.zeros(n, int)
    degree = np.diff(start)[args["source"]]
    for k in range(degree.max()):
        edge = np.flatnonzero(degree > k)
        closing = target[edge] * start.size + target[start[args["source"][edge]] + k]
        at = np.searchsorted(pairs, closing)
        support[edge] += pairs[np.minimum(at, n - 1)] == closing
    return {"support": support, "total": np.array([support.sum()])}


KERNELS = (
    ValidationKernel(
        layer_norm_backward, lambda n, b: min(n, 528), _layer, _backward, (100, 128), (1 << 10, 1 << 13), (64, 128, 256),
        restored=("of_weight", "of_bias"), unordered=("of_weight", "of_bias"),
    ),
    ValidationKernel(
        distinct_registers, lambda n, b: (min(cover(n, 4 * b), 132), COLUMNS), _visits, _longest, (6000, 128),
        (1 << 16, 1 << 20), (128, 256, 1024), restored=("out",),
    ),
    ValidationKernel(segment_spreads, warps, _segments, _spread, (1000, 128), (1 << 13, 1 << 17), (64, 256, 1024)),
    ValidationKernel(
        odd_even_merge_pairs, lambda n, b: n // (2 * b), _pairs, _merged, (1 << 12, 128), (1 << 15, 1 << 20), (64, 256, 512),
    ),
    ValidationKernel(
        hampel_filter, cover, _noisy, _cleaned, (5000, 128), (1 << 16, 1 << 20), (64, 256, 1024), restored=("changed",),
    ),
    ValidationKernel(edge_supports, warps, _edges, _supported, (2500, 128), (1 << 15, 1 << 18), (64, 256, 1024), restored=("total",)),
)  # fmt: skip
