"""Launches of scattered accesses: throughput of L2 and device memory for words that are not adjacent.

Random words, strides, rows of a thread and local arrays, in regions of several sizes. Their times,
`records/times/scattered_*.json`, are the source of `line_interval`, `store_interval`, `l2_slices` and `dram_row` of
a device. For `dram_row`, random gathers from 64 Mi numbers, single and in groups of two and four, have equal errors
on both GPUs.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, Kernel, f32, i32, u32
from simtbed.reports.hardware.launches import Timed

BLOCK = 256
SOME, MANY = 132, 1056
"""Blocks: one a SM of an H200, and eight."""


# ------------------------------------------------------------------ random
@st.kernel
def adds_drawn(out: Global[i32], mask: i32) -> None:
    drawn = u32(st.block.x * st.block_dim.x + st.thread.x) * u32(2654435761) + u32(12345)
    for _ in st.unroll(range(8)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        st.atomic_add(out, i32(drawn >> u32(8)) & mask, 1)


@st.kernel
def ors_drawn(out: Global[u32], mask: i32) -> None:
    drawn = u32(st.block.x * st.block_dim.x + st.thread.x) * u32(2654435761) + u32(12345)
    for _ in st.unroll(range(8)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        st.atomic_or(out, i32(drawn >> u32(8)) & mask, u32(1) << (drawn & u32(31)))


@st.kernel
def float_adds_drawn(out: Global[f32], mask: i32) -> None:
    drawn = u32(st.block.x * st.block_dim.x + st.thread.x) * u32(2654435761) + u32(12345)
    for _ in st.unroll(range(8)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        st.atomic_add(out, i32(drawn >> u32(8)) & mask, f32(1))


@st.kernel
def fetched_drawn(out: Global[i32], sums: Global[i32], mask: i32) -> None:
    """The same; the previous values are used."""
    i = st.block.x * st.block_dim.x + st.thread.x
    drawn, total = u32(i) * u32(2654435761) + u32(12345), 0
    for _ in st.unroll(range(8)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        total += st.atomic_add(out, i32(drawn >> u32(8)) & mask, 1)
    sums[i] = total


@st.kernel
def swaps_drawn(out: Global[i32], sums: Global[i32], mask: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    drawn, total = u32(i) * u32(2654435761) + u32(12345), 0
    for _ in st.unroll(range(8)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        total += st.compare_swap(out, i32(drawn >> u32(8)) & mask, 0, 1)
    sums[i] = total


@st.kernel
def gathers_drawn(x: Global[f32], out: Global[f32], mask: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    drawn, total = u32(i) * u32(2654435761) + u32(12345), f32(0)
    for _step in st.unroll(range(16)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        total += x[i32(drawn >> u32(8)) & mask]
    out[i] = total


@st.kernel
def grouped_gathers(x: Global[f32], out: Global[f32], mask: i32, GROUP: Const) -> None:
    """GROUP neighbours read adjacent numbers."""
    i = st.block.x * st.block_dim.x + st.thread.x
    drawn, total = u32(i // GROUP) * u32(2654435761) + u32(12345), f32(0)
    for _step in st.unroll(range(16)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        total += x[((i32(drawn >> u32(8)) * GROUP) & mask) + i % GROUP]
    out[i] = total


@st.kernel
def scatters_drawn(out: Global[f32], mask: i32) -> None:
    drawn = u32(st.block.x * st.block_dim.x + st.thread.x) * u32(2654435761) + u32(12345)
    for _ in st.unroll(range(16)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        out[i32(drawn >> u32(8)) & mask] = f32(1)


# ------------------------------------------------------------------ in order
@st.kernel
def strided_loads(x: Global[f32], out: Global[f32], S: Const) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i * S]


@st.kernel
def strided_stores(x: Global[f32], out: Global[f32], S: Const) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i * S] = x[i]


@st.kernel
def rows_each(x: Global[f32], out: Global[f32], N: Const) -> None:
    """A thread reads N numbers side by side and writes as many."""
    i = st.block.x * st.block_dim.x + st.thread.x
    for k in st.unroll(range(N)):
        out[i * N + k] = x[i * N + k] * f32(2)


@st.kernel
def local_walk(x: Global[i32], out: Global[i32], N: Const) -> None:
    """Through an array of its own, by indices known at run time alone."""
    i = st.block.x * st.block_dim.x + st.thread.x
    own = st.local(i32, N)
    for k in range(N):
        own[(k * 7 + x[i]) % N] = k
    total = 0
    for k in range(N):
        total += own[(k * 5 + x[i]) % N]
    out[i] = total


# ------------------------------------------------------------------ launches
Make = Callable[[], Mapping[str, Any]]


def _zeros(n: int, dtype: type[np.generic]) -> dict[str, Any]:
    return {"out": np.zeros(n, dtype), "mask": n - 1}


def _fetched(n: int, blocks: int) -> dict[str, Any]:
    return _zeros(n, np.int32) | {"sums": np.zeros(blocks * BLOCK, np.int32)}


def _gathered(n: int, blocks: int) -> dict[str, Any]:
    return {"x": np.ones(n, np.float32), "out": np.zeros(blocks * BLOCK, np.float32), "mask": n - 1}


def _arrays(read: int, written: int, **const: int) -> dict[str, Any]:
    return {"x": np.ones(read, np.float32), "out": np.zeros(written, np.float32), **const}


def _walked(threads: int, n: int) -> dict[str, Any]:
    return {"x": np.arange(threads, dtype=np.int32) % 97, "out": np.zeros(threads, np.int32), "N": n}


def _timed(kernel: Kernel, label: str, grid: int, make: Make) -> Timed:
    return Timed(f"{kernel.__name__} {label} {BLOCK}", kernel, grid, BLOCK, make)


def cases() -> Iterator[Timed]:
    """Yield all launches by number of blocks and kernel."""
    for blocks in (SOME, MANY):
        for power in (8, 10, 12, 14, 16, 18, 20, 22, 24):
            n, label = 1 << power, f"2^{power} {blocks}"
            yield _timed(adds_drawn, label, blocks, partial(_zeros, n, np.int32))
            if power in (12, 16, 20, 22):
                yield _timed(ors_drawn, label, blocks, partial(_zeros, n, np.uint32))
                yield _timed(float_adds_drawn, label, blocks, partial(_zeros, n, np.float32))
                yield _timed(fetched_drawn, label, blocks, partial(_fetched, n, blocks))
                yield _timed(swaps_drawn, label, blocks, partial(_fetched, n, blocks))
        for power in (12, 14, 15, 16, 18, 20, 22, 23, 24, 25, 26):
            n, label = 1 << power, f"2^{power} {blocks}"
            yield _timed(gathers_drawn, label, blocks, partial(_gathered, n, blocks))
            if power in (12, 16, 20, 22, 26):
                yield _timed(scatters_drawn, label, blocks, partial(_zeros, n, np.float32))
        for group in (2, 4, 8, 16, 32):
            for power in (20, 26):
                make = partial(_grouped, 1 << power, blocks, group)
                yield _timed(grouped_gathers, f"{group} 2^{power} {blocks}", blocks, make)
    for threads in (1 << 18, 1 << 21):
        for stride in (2, 3, 4, 5, 8, 9, 16, 32):
            label, blocks = f"{stride} {threads}", threads // BLOCK
            yield _timed(strided_loads, label, blocks, partial(_arrays, stride * threads, threads, S=stride))
            yield _timed(strided_stores, label, blocks, partial(_arrays, threads, stride * threads, S=stride))
    for n in (2, 3, 4, 6, 9, 16):
        for threads in (1 << 16, 1 << 20):
            make = partial(_arrays, n * threads, n * threads, N=n)
            yield _timed(rows_each, f"{n} {threads}", threads // BLOCK, make)
    for n in (8, 16, 32, 64, 128):
        for threads in (1 << 14, 1 << 17):
            yield _timed(local_walk, f"{n} {threads}", threads // BLOCK, partial(_walked, threads, n))


def _grouped(n: int, blocks: int, group: int) -> dict[str, Any]:
    return _gathered(n, blocks) | {"GROUP": group}
