"""Sorting and searching: bitonic, radix, by rank, merging, heaps and insertion in local memory, binary search."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, words, zeros


@st.kernel
def bitonic_block(keys: Global[i32], out: Global[i32], BLOCK: Const) -> None:
    """The keys of each block, two a thread, sorted in shared memory."""
    held = st.shared(i32, 2 * BLOCK)
    t = st.thread.x
    first = 2 * BLOCK * st.block.x
    held[t] = keys[first + t]
    held[t + BLOCK] = keys[first + t + BLOCK]
    size = 2
    while size <= 2 * BLOCK:
        stride = size // 2
        while stride > 0:
            st.sync()
            low = 2 * t - (t & (stride - 1))
            ascending = low & size == 0
            a, b = held[low], held[low + stride]
            if (a > b) == ascending:
                held[low] = b
                held[low + stride] = a
            stride //= 2
        size *= 2
    st.sync()
    out[first + t] = held[t]
    out[first + t + BLOCK] = held[t + BLOCK]


@st.kernel
def bitonic_step(keys: Global[i32], stride: i32, size: i32) -> None:
    """One step of a sort in global memory."""
    i = st.block.x * st.block_dim.x + st.thread.x
    other = i ^ stride
    if other > i:
        a, b = keys[i], keys[other]
        if (a > b) == (i & size == 0):
            keys[i] = b
            keys[other] = a


@st.kernel
def radix_count(keys: Global[u32], counts: Global[i32], n: i32, shift: u32) -> None:
    """counts[d, b] = keys of block b's slice with the value d of the four bits from `shift` on."""
    table = st.shared(i32, 16)
    if st.thread.x < 16:
        table[st.thread.x] = 0
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        st.atomic_add(table, i32((keys[i] >> shift) & 15), 1)
    st.sync()
    if st.thread.x < 16:
        counts[st.thread.x * st.grid_dim.x + st.block.x] = table[st.thread.x]


@st.kernel
def radix_split(keys: Global[u32], out: Global[u32], shift: u32) -> None:
    """The keys of each warp with bit `shift` off, in order, then those with it on."""
    i = st.block.x * st.block_dim.x + st.thread.x
    key = keys[i]
    on = (key >> shift) & 1 != 0
    ones = st.ballot(on)
    before = st.popcount(ones & st.lanemask_lt())
    place = 32 - st.popcount(ones) + before if on else st.lane - before
    out[i - st.lane + place] = key


@st.kernel
def rank_sort(x: Global[f32], out: Global[f32], n: i32, BLOCK: Const) -> None:
    """Each number to the place that as many smaller ones give it, tile by tile."""
    tile = st.shared(f32, BLOCK)
    i = st.block.x * BLOCK + st.thread.x
    own = x[i] if i < n else 0.0
    rank = 0
    for start in range(0, n, BLOCK):
        st.sync()
        tile[st.thread.x] = x[start + st.thread.x] if start + st.thread.x < n else 2.0
        st.sync()
        for k in range(BLOCK):
            if tile[k] < own or (tile[k] == own and start + k < i):
                rank += 1
    if i < n:
        out[rank] = own


@st.kernel
def merge_path(a: Global[i32], b: Global[i32], out: Global[i32], n: i32, EACH: Const) -> None:
    """Two sorted arrays of n merged: a thread finds where its EACH elements begin in both, and merges them."""
    first = (st.block.x * st.block_dim.x + st.thread.x) * EACH
    if first < 2 * n:
        low, high = max(0, first - n), min(first, n)
        while low < high:
            middle = (low + high) // 2
            if a[middle] <= b[first - 1 - middle]:
                low = middle + 1
            else:
                high = middle
        i, j = low, first - low
        for k in range(EACH):
            takes = j >= n
            if i < n and j < n:
                takes = a[i] <= b[j]
            if takes:
                out[first + k] = a[i]
                i += 1
            else:
                out[first + k] = b[j]
                j += 1


@st.kernel
def binary_search(table: Global[i32], keys: Global[i32], out: Global[i32], n: i32, count: i32) -> None:
    """out[i] = how many of the n sorted numbers are below key i."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < count:
        key, low, high = keys[i], 0, n
        while low < high:
            middle = (low + high) >> 1
            if table[middle] < key:
                low = middle + 1
            else:
                high = middle
        out[i] = low


@st.kernel
def heap_largest(x: Global[i32], out: Global[i32], n: i32, LENGTH: Const, KEPT: Const) -> None:
    """The KEPT largest of LENGTH numbers a thread, by a heap in local memory, smallest first out."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    heap = st.local(i32, KEPT)
    for k in range(KEPT):
        heap[k] = -1
    for j in range(LENGTH):
        value = x[j * n + i]
        if value > heap[0]:
            at = 0
            while 2 * at + 1 < KEPT:
                child = 2 * at + 1
                if child + 1 < KEPT and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= value:
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = value
    total = 0
    for k in range(KEPT):
        total += heap[k]
    out[i] = total


@st.kernel
def insertion_sort(x: Global[i32], out: Global[i32], n: i32, LENGTH: Const) -> None:
    """LENGTH numbers a thread sorted in local memory."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        held = st.local(i32, LENGTH)
        for j in range(LENGTH):
            value, k = x[j * n + i], j
            while k > 0 and held[max(k - 1, 0)] > value:
                held[k] = held[k - 1]
                k -= 1
            held[k] = value
        for j in range(LENGTH):
            out[j * n + i] = held[j]


@st.kernel
def odd_even_registers(x: Global[i32], out: Global[i32]) -> None:
    """Eight numbers a thread sorted by exchanges in registers."""
    i = st.block.x * st.block_dim.x + st.thread.x
    held = st.registers(i32, 8)
    for k in st.unroll(range(8)):
        held[k] = x[8 * i + k]
    for turn in st.unroll(range(8)):
        for k in st.unroll(range(turn % 2, 7, 2)):
            low, high = min(held[k], held[k + 1]), max(held[k], held[k + 1])
            held[k] = low
            held[k + 1] = high
    for k in st.unroll(range(8)):
        out[8 * i + k] = held[k]


# ------------------------------------------------------------------ launches
def _block_sorted(args: Args) -> dict[str, Values]:
    return {"out": np.sort(args["keys"].reshape(-1, 2 * args["BLOCK"]), axis=1).ravel()}


def _step(n: int, block: int) -> Args:
    return {"keys": ints(n, 1 << 30), "stride": n // 8, "size": n // 4}


def _stepped(args: Args) -> dict[str, Values]:
    keys, stride = args["keys"], args["stride"]
    pairs = keys.reshape(-1, 2, stride)
    rising = (np.arange(len(pairs)) * 2 * stride & args["size"]) == 0
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    return {"keys": np.where(rising[:, None, None], np.stack([low, high], 1), np.stack([high, low], 1)).ravel()}


def _radix(n: int, block: int) -> Args:
    return {"keys": words(n), "counts": zeros(16 * cover(n, block), np.int32), "n": n, "shift": 8}


def _radix_counts(args: Args) -> dict[str, Values]:
    blocks, digits = len(args["counts"]) // 16, args["keys"] >> np.uint32(8) & np.uint32(15)
    block_of = np.arange(args["n"]) // -(-args["n"] // blocks)
    return {"counts": np.bincount(digits.astype(np.int64) * blocks + block_of, minlength=16 * blocks)}


def _radix_blocks(n: int, block: int) -> int:
    return n // block


def _split(args: Args) -> dict[str, Values]:
    rows = args["keys"].reshape(-1, 32)
    order = np.argsort(rows >> np.uint32(args["shift"]) & np.uint32(1), axis=1, kind="stable")
    return {"out": np.take_along_axis(rows, order, 1).ravel()}


def _halves(n: int, block: int) -> Args:
    a, b = np.sort(draw().integers(0, 4 * n, (2, n), np.int32), axis=1)
    return {"a": a, "b": b, "out": zeros(2 * n, np.int32), "n": n, "EACH": 8}


def _searched(n: int, block: int) -> Args:
    return {
        "table": np.sort(ints(n, 1 << 30)), "keys": ints(n // 2, 1 << 30), "out": zeros(n // 2, np.int32),
        "n": n, "count": n // 2,
    }  # fmt: skip


def _columns(n: int, block: int) -> Args:
    return {"x": ints(32 * n, 1 << 20), "out": zeros(n, np.int32), "n": n, "LENGTH": 32, "KEPT": 8}


def _largest(args: Args) -> dict[str, Values]:
    return {"out": np.sort(args["x"].reshape(32, -1), axis=0)[-8:].sum(axis=0, dtype=np.int32)}


def _inserted(n: int, block: int) -> Args:
    return {"x": ints(16 * n, 1 << 20), "out": zeros(16 * n, np.int32), "n": n, "LENGTH": 16}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(
        bitonic_block, lambda n, b: n // (2 * b),
        lambda n, b: {"keys": ints(n, 1 << 30), "out": zeros(n, np.int32), "BLOCK": b}, _block_sorted, (512, 64),
        (1 << 17, 1 << 20), (64, 256, 1024),
    ),
    ValidationKernel(
        bitonic_step, lambda n, b: n // b, _step, _stepped, (1024, 128), (1 << 18, 1 << 22), BLOCKS, restored=("keys",),
    ),
    ValidationKernel(radix_count, _radix_blocks, _radix, _radix_counts, (1024, 128), (1 << 18, 1 << 21), BLOCKS),
    ValidationKernel(
        radix_split, lambda n, b: n // b, lambda n, b: {"keys": words(n), "out": zeros(n, np.uint32), "shift": 5}, _split,
        (1024, 128), (1 << 18, 1 << 22), BLOCKS,
    ),
    ValidationKernel(
        rank_sort, cover, lambda n, b: {"x": floats(n), "out": zeros(n), "n": n, "BLOCK": b},
        lambda a: {"out": np.sort(a["x"])}, (300, 64), (1 << 11, 1 << 12), (64, 128, 256),
    ),
    ValidationKernel(
        merge_path, lambda n, b: cover(2 * n // 8, b), _halves,
        lambda a: {"out": np.sort(np.concatenate([a["a"], a["b"]]))}, (1000, 64), (1 << 18, 1 << 20), (32, 128, 512),
    ),
    ValidationKernel(
        binary_search, lambda n, b: cover(n // 2, b), _searched,
        lambda a: {"out": np.searchsorted(a["table"], a["keys"])}, (2000, 128), (1 << 16, 1 << 20), BLOCKS,
    ),
    ValidationKernel(heap_largest, cover, _columns, _largest, (200, 64), (1 << 14, 1 << 17), (32, 128, 512)),
    ValidationKernel(
        insertion_sort, cover, _inserted, lambda a: {"out": np.sort(a["x"].reshape(16, -1), axis=0).ravel()}, (200, 64),
        (1 << 14, 1 << 17), (32, 128, 512),
    ),
    ValidationKernel(
        odd_even_registers, lambda n, b: n // b,
        lambda n, b: {"x": ints(8 * n, 1 << 30), "out": zeros(8 * n, np.int32)},
        lambda a: {"out": np.sort(a["x"].reshape(-1, 8), axis=1).ravel()}, (256, 128), (1 << 17,), BLOCKS,
    ),
)  # fmt: skip
