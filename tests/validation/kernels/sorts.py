"""Sorting: bitonic, merging, a heap in local memory."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, zeros


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


# ------------------------------------------------------------------ launches
def _block_sorted(args: Args) -> dict[str, Values]:
    return {"out": np.sort(args["keys"].reshape(-1, 2 * args["BLOCK"]), axis=1).ravel()}


def _halves(n: int, block: int) -> Args:
    a, b = np.sort(draw().integers(0, 4 * n, (2, n), np.int32), axis=1)
    return {"a": a, "b": b, "out": zeros(2 * n, np.int32), "n": n, "EACH": 8}


def _columns(n: int, block: int) -> Args:
    return {"x": ints(32 * n, 1 << 20), "out": zeros(n, np.int32), "n": n, "LENGTH": 32, "KEPT": 8}


def _largest(args: Args) -> dict[str, Values]:
    return {"out": np.sort(args["x"].reshape(32, -1), axis=0)[-8:].sum(axis=0, dtype=np.int32)}


KERNELS = (
    ValidationKernel(
        bitonic_block, lambda n, b: n // (2 * b),
        lambda n, b: {"keys": ints(n, 1 << 30), "out": zeros(n, np.int32), "BLOCK": b}, _block_sorted, (512, 64),
        (1 << 17, 1 << 20), (64, 256, 1024),
    ),
    ValidationKernel(
        merge_path, lambda n, b: cover(2 * n // 8, b), _halves,
        lambda a: {"out": np.sort(np.concatenate([a["a"], a["b"]]))}, (1000, 64), (1 << 18, 1 << 20), (32, 128, 512),
    ),
    ValidationKernel(heap_largest, cover, _columns, _largest, (200, 64), (1 << 14, 1 << 17), (32, 128, 512)),
)  # fmt: skip
