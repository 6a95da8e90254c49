"""Whole blocks at work on a slice: a radix sort, a merge sort, a running maximum, sums by key, a softmax, a compensated sum."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, int4, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, zeros

LEAST = -(2**31)
LOWEST = -3.0e38


class Running(NamedTuple):
    """The largest number so far, the sum of powers relative to it, and the place of the largest."""

    high: f32
    total: f32
    place: i32


# ------------------------------------------------------------------ sorts
@st.device
def inclusive_sum(value: i32, sums: st.Shared[i32], t: i32, BLOCK: Const) -> i32:
    """The sum of the values of this thread and all before it in the block."""
    sums[t] = value
    st.sync()
    step = 1
    while step < BLOCK:
        before = sums[t - step] if t >= step else 0
        st.sync()
        sums[t] += before
        st.sync()
        step *= 2
    return sums[t]


@st.kernel
def radix_sort_block(x: Global[u32], out: Global[u32], BLOCK: Const, BITS: Const) -> None:
    """out = keys of BITS bits sorted block by block, a key a thread: a split by each bit, with a scan of the zeros."""
    keys = st.shared(u32, BLOCK)
    sums = st.shared(i32, BLOCK)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    key = x[i]
    for bit in range(BITS):
        zero = 1 - i32(key >> bit & 1)
        upto = inclusive_sum(zero, sums, t, BLOCK)
        zeros_of_all = sums[BLOCK - 1]
        place = upto - 1 if zero == 1 else zeros_of_all + t - upto
        keys[place] = key
        st.sync()
        key = keys[t]
    out[i] = key


@st.device
def count_below(keys: st.Shared[i32], first: i32, count: i32, key: i32) -> i32:
    """Return the number of the `count` sorted keys from `first` on below a key."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if keys[first + middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@st.device
def count_up_to(keys: st.Shared[i32], first: i32, count: i32, key: i32) -> i32:
    """Return the number of the `count` sorted keys from `first` on that are not above a key."""
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if keys[first + middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low


@st.kernel
def merge_sort_block(
    key: Global[i32], value: Global[i32], sorted_key: Global[i32], sorted_value: Global[i32], BLOCK: Const
) -> None:
    """Keys with their values sorted in slices of 2 * BLOCK: runs are merged in pairs, each key by its rank in the other run."""
    keys = st.shared(i32, 2 * BLOCK)
    values = st.shared(i32, 2 * BLOCK)
    t = st.thread.x
    first = st.block.x * 2 * BLOCK
    keys[t] = key[first + t]
    values[t] = value[first + t]
    keys[t + BLOCK] = key[first + t + BLOCK]
    values[t + BLOCK] = value[first + t + BLOCK]
    width = 1
    while width < 2 * BLOCK:
        own = t & (width - 1)
        start = 2 * (t - own)
        st.sync()
        key_a, value_a = keys[start + own], values[start + own]
        key_b, value_b = keys[start + width + own], values[start + width + own]
        place_a = start + own + count_below(keys, start + width, width, key_a)
        place_b = start + own + count_up_to(keys, start, width, key_b)
        st.sync()
        keys[place_a], values[place_a] = key_a, value_a
        keys[place_b], values[place_b] = key_b, value_b
        width *= 2
    st.sync()
    sorted_key[first + t] = keys[t]
    sorted_value[first + t] = values[t]
    sorted_key[first + t + BLOCK] = keys[t + BLOCK]
    sorted_value[first + t + BLOCK] = values[t + BLOCK]


# ------------------------------------------------------------------ scans
@st.device
def padded(i: i32) -> i32:
    """Where element i is, with one word left out after each 32."""
    return i + (i >> 5)


@st.kernel
def running_maximum(x: Global[int4], out: Global[int4], BLOCK: Const) -> None:
    """out = the largest number up to each one in a block's slice: four a thread; one warp rakes the maxima of all threads."""
    of_threads = st.shared(i32, BLOCK + BLOCK // 32)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    four = x[i]
    b = max(four.x, four.y)
    c = max(b, four.z)
    d = max(c, four.w)
    of_threads[padded(t)] = d
    st.sync()
    if t < 32:
        each = BLOCK // 32
        largest = LEAST
        for k in range(each):
            largest = max(largest, of_threads[padded(t * each + k)])
        for step in (1, 2, 4, 8, 16):
            other = st.shuffle_up(largest, step)
            if t >= step:
                largest = max(largest, other)
        before = st.shuffle_up(largest, 1)
        if t == 0:
            before = LEAST
        for k in range(each):
            at = padded(t * each + k)
            own = of_threads[at]
            of_threads[at] = before
            before = max(before, own)
    st.sync()
    before = of_threads[padded(t)]
    out[i] = int4(max(before, four.x), max(before, b), max(before, c), max(before, d))


@st.kernel
def reduce_by_key(key: Global[i32], x: Global[f32], out: Global[f32], n: i32, BLOCK: Const) -> None:
    """out[k] = sum of the numbers with key k; keys ascend. A segmented scan of a block; sums at its ends are added by atomics."""
    keys = st.shared(i32, BLOCK)
    sums = st.shared(f32, BLOCK)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    own = -1
    sums[t] = 0.0
    if i < n:
        own = key[i]
        sums[t] = x[i]
    keys[t] = own
    st.sync()
    step = 1
    while step < BLOCK:
        before = 0.0
        if t >= step and keys[t - step] == own:
            before = sums[t - step]
        st.sync()
        sums[t] += before
        st.sync()
        step *= 2
    if own < 0:
        return
    if t == BLOCK - 1 or keys[t + 1] != own:
        if t == BLOCK - 1 or keys[0] == own:
            st.atomic_add(out, own, sums[t])
        else:
            out[own] = sums[t]


# ------------------------------------------------------------------ reductions
@st.device
def joined(a: Running, b: Running) -> Running:
    """Merge the partial results of two halves of a row; the first of equal numbers has priority."""
    if b.high > a.high or (b.high == a.high and b.place < a.place):
        return Running(b.high, b.total + a.total * st.exp(a.high - b.high), b.place)
    return Running(a.high, a.total + b.total * st.exp(b.high - a.high), a.place)


@st.device
def joined_in_warp(own: Running) -> Running:
    """Merge the partial results of all lanes in lane 0."""
    offset = 16
    while offset > 0:
        other = Running(
            st.shuffle_down(own.high, offset), st.shuffle_down(own.total, offset), st.shuffle_down(own.place, offset)
        )
        own = joined(own, other)
        offset >>= 1
    return own


@st.kernel
def softmax_online(x: Global[f32], out: Global[f32], place: Global[i32]) -> None:
    """out = softmax of each row, place = where its largest number is; a block a row, maximum and sum found in one pass."""
    highs = st.shared(f32, 32)
    totals = st.shared(f32, 32)
    places = st.shared(i32, 32)
    row, columns = st.block.x, x.shape[1]
    found = Running(LOWEST, 0.0, 0x7FFFFFFF)
    for k in range(st.thread.x, columns, st.block_dim.x):
        value = x[row, k]
        if value > found.high:
            found = Running(value, found.total * st.exp(found.high - value) + 1.0, k)
        else:
            found = Running(found.high, found.total + st.exp(value - found.high), found.place)
    found = joined_in_warp(found)
    if st.lane == 0:
        highs[st.warp], totals[st.warp], places[st.warp] = found
    st.sync()
    if st.warp == 0:
        found = Running(LOWEST, 0.0, 0x7FFFFFFF)
        if st.lane < st.block_dim.x // 32:
            found = Running(highs[st.lane], totals[st.lane], places[st.lane])
        found = joined_in_warp(found)
        if st.lane == 0:
            highs[0], totals[0] = found.high, found.total
            place[row] = found.place
    st.sync()
    high, scale = highs[0], 1.0 / totals[0]
    for k in range(st.thread.x, columns, st.block_dim.x):
        out[row, k] = st.exp(x[row, k] - high) * scale


@st.device
def two_sum(a: f32, b: f32) -> tuple[f32, f32]:
    """A sum and its accumulated rounding error."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)


@st.kernel
def kahan_sums(x: Global[f32], out: Global[f32], n: i32, BLOCK: Const) -> None:
    """out[b] = sum of the elements of block b in a grid-stride loop, by Kahan's method; threads are merged with their corrections."""
    sums = st.shared(f32, BLOCK)
    errors = st.shared(f32, BLOCK)
    t = st.thread.x
    total, lost = 0.0, 0.0
    for i in range(st.block.x * BLOCK + t, n, BLOCK * st.grid_dim.x):
        y = x[i] - lost
        whole = total + y
        lost = (whole - total) - y
        total = whole
    sums[t] = total
    errors[t] = -lost
    st.sync()
    half = BLOCK // 2
    while half > 0:
        if t < half:
            whole, error = two_sum(sums[t], sums[t + half])
            sums[t] = whole
            errors[t] += errors[t + half] + error
        st.sync()
        half >>= 1
    if t == 0:
        out[st.block.x] = sums[0] + errors[0]


# ------------------------------------------------------------------ launches
def _radix(n: int, block: int) -> Args:
    return {"x": ints(n, 1 << 16, np.uint32), "out": zeros(n, np.uint32), "BLOCK": block, "BITS": 16}


def _pairs(n: int, block: int) -> Args:
    return {
        "key": ints(n, 1000), "value": np.arange(n, dtype=np.int32), "sorted_key": zeros(n, np.int32),
        "sorted_value": zeros(n, np.int32), "BLOCK": block,
    }  # fmt: skip


def _merged(args: Args) -> dict[str, Values]:
    keys = args["key"].reshape(-1, 2 * args["BLOCK"])
    order = np.argsort(keys, axis=1, kind="stable")
    values = np.take_along_axis(args["value"].reshape(keys.shape), order, axis=1)
    return {"sorted_key": np.take_along_axis(keys, order, axis=1).ravel(), "sorted_value": values.ravel()}


def _rising(n: int, block: int) -> Args:
    """Numbers that rise slowly among many that are smaller."""
    x = (np.arange(n) + draw().integers(-5000, 5000, n)).astype(np.int32)
    return {"x": x.reshape(-1, 4), "out": zeros(n, np.int32).reshape(-1, 4), "BLOCK": block}


def _keyed(n: int, block: int) -> Args:
    """Segments of some ten or twenty numbers; some keys are not there."""
    key = np.sort(draw().integers(0, n // 20, n // 3).repeat(3))
    key = np.concatenate([key, np.full(n - len(key), n // 20)]).astype(np.int32)
    return {"key": key, "x": floats(n), "out": zeros(n // 20 + 1), "n": n, "BLOCK": block}


def _by_key(args: Args) -> dict[str, Values]:
    return {"out": np.bincount(args["key"], args["x"], len(args["out"]))}


COLUMNS = 1000


def _rows(n: int, block: int) -> Args:
    x = draw().standard_normal((n, COLUMNS), np.float32) * 3
    return {"x": x, "out": np.zeros_like(x), "place": zeros(n, np.int32)}


def _softmax(args: Args) -> dict[str, Values]:
    powers = np.exp(args["x"] - args["x"].max(axis=1, keepdims=True))
    return {"out": powers / powers.sum(axis=1, keepdims=True), "place": args["x"].argmax(axis=1)}


def _few(n: int, block: int) -> int:
    return min(264, cover(n, block))


def _numbers(n: int, block: int) -> Args:
    x = np.ldexp(floats(n), draw().integers(0, 12, n)).astype(np.float32)
    return {"x": x, "out": zeros(_few(n, block)), "n": n, "BLOCK": block}


def _kahan(args: Args) -> dict[str, Values]:
    period = len(args["out"]) * args["BLOCK"]
    x = np.pad(args["x"].astype(np.float64), (0, -args["n"] % period))
    return {"out": x.reshape(-1, len(args["out"]), args["BLOCK"]).sum(axis=(0, 2))}


KERNELS = (
    ValidationKernel(
        radix_sort_block, lambda n, b: n // b, _radix,
        lambda a: {"out": np.sort(a["x"].reshape(-1, a["BLOCK"]), axis=1).ravel()}, (1 << 13, 256),
        (1 << 16, 1 << 20), (128, 256, 1024),
    ),
    ValidationKernel(
        merge_sort_block, lambda n, b: n // (2 * b), _pairs, _merged, (1 << 14, 256), (1 << 17, 1 << 20), (64, 256, 512),
    ),
    ValidationKernel(
        running_maximum, lambda n, b: n // (4 * b), _rising,
        lambda a: {"out": np.maximum.accumulate(a["x"].reshape(-1, 4 * a["BLOCK"]), axis=1).ravel()}, (1 << 15, 256),
        (1 << 18, 1 << 23), (128, 256, 1024),
    ),
    ValidationKernel(
        reduce_by_key, cover, _keyed, _by_key, (10_000, 256), (1 << 17, 3_000_000), (128, 256, 512), restored=("out",), unordered=("out",),
    ),
    ValidationKernel(softmax_online, lambda n, b: n, _rows, _softmax, (40, 128), (256, 8192), (128, 256, 1024)),
    ValidationKernel(kahan_sums, _few, _numbers, _kahan, (100_000, 128), (1 << 18, 1 << 24), (128, 256, 512)),
)  # fmt: skip
