"""Launches for the validation of estimated times: kernels of one kind each, in several sizes and blocks."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, Kernel, f32, f64, i32
from simtbed.reports.hardware.launches import Timed
from simtbed.reports.hardware.measuring import SEED
from simtbed.reports.hardware.microbenchmarks import copy

from ..kernels.graphs import gather


@st.kernel
def saxpy(x: Global[f32], y: Global[f32], out: Global[f32], n: i32) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = f32(2) * x[i] + y[i]


@st.kernel
def strided(x: Global[f32], out: Global[f32], STRIDE: Const) -> None:
    """One number of every STRIDE."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i * STRIDE]


@st.kernel
def tiled_transpose(x: Global[f32], out: Global[f32], n: i32, TILE: Const, PITCH: Const) -> None:
    """TILE: rows and columns of a block. PITCH: words from row to row."""
    tile = st.shared(f32, TILE, PITCH)
    tile[st.thread.y, st.thread.x] = x[(st.block.y * TILE + st.thread.y) * n + st.block.x * TILE + st.thread.x]
    st.sync()
    out[(st.block.x * TILE + st.thread.y) * n + st.block.y * TILE + st.thread.x] = tile[st.thread.x, st.thread.y]


@st.kernel
def matmul(a: Global[f32], b: Global[f32], out: Global[f32], n: i32, TILE: Const) -> None:
    left = st.shared(f32, TILE, TILE)
    right = st.shared(f32, TILE, TILE)
    row, column = st.block.y * TILE + st.thread.y, st.block.x * TILE + st.thread.x
    total = f32(0)
    for step in range(0, n, TILE):
        left[st.thread.y, st.thread.x] = a[row * n + step + st.thread.x]
        right[st.thread.y, st.thread.x] = b[(step + st.thread.y) * n + column]
        st.sync()
        for k in st.unroll(range(TILE)):
            total += left[st.thread.y, k] * right[k, st.thread.x]
        st.sync()
    out[row * n + column] = total


@st.kernel
def stencil(x: Global[f32], out: Global[f32], n: i32) -> None:
    column, row = st.block.x * st.block_dim.x + st.thread.x, st.block.y * st.block_dim.y + st.thread.y
    if column > 0 and column < n - 1 and row > 0 and row < n - 1:
        at = row * n + column
        out[at] = f32(0.25) * (x[at - 1] + x[at + 1] + x[at - n] + x[at + n])


@st.kernel
def histogram(x: Global[i32], out: Global[i32], n: i32, BINS: Const) -> None:
    """In shared memory, then added up."""
    bins = st.shared(i32, BINS)
    for b in range(st.thread.x, BINS, st.block_dim.x):
        bins[b] = 0
    st.sync()
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        st.atomic_add(bins, x[i] & (BINS - 1), 1)
    st.sync()
    for b in range(st.thread.x, BINS, st.block_dim.x):
        st.atomic_add(out, b, bins[b])


@st.kernel
def scatter_add(x: Global[i32], out: Global[i32], MASK: Const) -> None:
    st.atomic_add(out, x[st.block.x * st.block_dim.x + st.thread.x] & MASK, 1)


@st.kernel
def polynomial(x: Global[f32], out: Global[f32], TURNS: Const) -> None:
    """A chain of products and sums."""
    i = st.block.x * st.block_dim.x + st.thread.x
    y = x[i]
    for _ in range(TURNS):
        for _step in st.unroll(range(16)):
            y = y * f32(0.5) + f32(1)
    out[i] = y


@st.kernel
def polynomial64(x: Global[f64], out: Global[f64], TURNS: Const) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    y = x[i]
    for _ in range(TURNS):
        for _step in st.unroll(range(16)):
            y = y * f64(0.5) + f64(1)
    out[i] = y


@st.kernel
def exponentials(x: Global[f32], out: Global[f32], TURNS: Const) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    y = x[i]
    for _ in range(TURNS):
        y = st.exp(-y)
    out[i] = y


@st.kernel
def divisions(x: Global[f32], out: Global[f32], TURNS: Const) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    y = x[i]
    for _ in range(TURNS):
        y = f32(1) / (y + f32(1))
    out[i] = y


@st.kernel
def rows(start: Global[i32], column: Global[i32], x: Global[f32], out: Global[f32], n: i32) -> None:
    """A sparse matrix of ones times x, a thread a row."""
    row = st.block.x * st.block_dim.x + st.thread.x
    if row < n:
        total = f32(0)
        for at in range(start[row], start[row + 1]):
            total += x[column[at]]
        out[row] = total


@st.kernel
def conflicts(x: Global[f32], out: Global[f32], STRIDE: Const, BLOCK: Const) -> None:
    """Through shared memory at a stride of STRIDE words, 16 times."""
    held = st.shared(f32, BLOCK * STRIDE)
    t = st.thread.x
    total = x[st.block.x * BLOCK + t]
    for _ in range(16):
        held[t * STRIDE] = total
        st.sync()
        total += held[(BLOCK - 1 - t) * STRIDE]
        st.sync()
    out[st.block.x * BLOCK + t] = total


@st.kernel
def warp_sum(x: Global[f32], out: Global[f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    total = x[i]
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 16 >> step)
    if st.lane == 0:
        out[i // 32] = total


def _floats(*sizes: int, **consts: Any) -> Mapping[str, Any]:
    """Return random x and out of the given sizes, and other arguments."""
    draw = np.random.default_rng(SEED)
    names = ("x", "out")
    return {**{n: draw.random(s, dtype=np.float32) for n, s in zip(names, sizes, strict=False)}, **consts}


def _matrices(n: int, **consts: Any) -> Mapping[str, Any]:
    a, b = _floats(n * n, n * n).values()
    return {"a": a, "b": b, "out": np.zeros(n * n, np.float32), "n": n, **consts}


def _gathered(n: int, reach: int) -> Mapping[str, Any]:
    index = np.random.default_rng(SEED).integers(0, reach, n, dtype=np.int32)
    return {"x": np.ones(reach, np.float32), "index": index, "out": np.zeros(n, np.float32)}


def _words(count: int, out: int, **consts: Any) -> Mapping[str, Any]:
    return {
        "x": np.random.default_rng(SEED).integers(0, 1 << 20, count, dtype=np.int32),
        "out": np.zeros(out, np.int32),
        **consts,
    }


def _sparse(n: int, mean: int) -> Mapping[str, Any]:
    draw = np.random.default_rng(SEED)
    start = np.concatenate([[0], np.cumsum(draw.integers(0, 2 * mean + 1, n))]).astype(np.int32)
    column = draw.integers(0, n, int(start[-1]) + 1, dtype=np.int32)
    return {"start": start, "column": column, "x": np.ones(n, np.float32), "out": np.zeros(n, np.float32), "n": n}


BLOCKS = (64, 256, 1024)


def cases() -> Iterator[Timed]:
    """Yield all launches; a name is "kernel size block"."""

    def case(
        kernel: Kernel, size: str, grid: int | tuple[int, ...], block: int | tuple[int, ...],
        make: Callable[..., Mapping[str, Any]], *sizes: Any, **consts: Any,
    ) -> Timed:  # fmt: skip
        shape = block if isinstance(block, int) else "x".join(map(str, block))
        return Timed(f"{kernel.__name__} {size} {shape}", kernel, grid, block, partial(make, *sizes, **consts))

    for block in BLOCKS:
        for power in (18, 22, 26):
            n = 1 << power
            yield case(copy, f"2^{power}", n // block, block, _floats, n, n)
        for n in (1 << 20, 1 << 24):
            size, grid = f"2^{n.bit_length() - 1}", n // block
            yield case(saxpy, size, grid, block, lambda n=n: {**_floats(n, n, n=n), "y": np.ones(n, np.float32)})
            yield case(strided, f"{size}/8", grid // 8, block, _floats, n, n // 8, STRIDE=8)
            yield case(warp_sum, size, grid, block, _floats, n, n // 32)
            yield case(gather, f"{size} of 2^24", grid, block, _gathered, n, 1 << 24)
            yield case(scatter_add, f"{size} to 2^10", grid, block, _words, n, 1 << 10, MASK=1023)
        for grid in (132, 1320):
            n = grid * block
            yield case(polynomial, f"{grid} blocks", grid, block, _floats, n, n, TURNS=64)
            yield case(exponentials, f"{grid} blocks", grid, block, _floats, n, n, TURNS=64)
            yield case(divisions, f"{grid} blocks", grid, block, _floats, n, n, TURNS=64)
            yield case(
                polynomial64, f"{grid} blocks", grid, block,
                lambda n=n: {"x": np.ones(n), "out": np.zeros(n), "TURNS": 32},
            )  # fmt: skip
        yield case(rows, "2^18 of 16", (1 << 18) // block, block, _sparse, 1 << 18, 16)
        yield case(histogram, "2^22", 264, block, _words, 1 << 22, 256, n=1 << 22, BINS=256)
    for stride in (1, 2, 8, 32):
        yield case(conflicts, f"stride {stride}", 2048, 256, _floats, 2048 * 256, 2048 * 256, STRIDE=stride, BLOCK=256)
    for n in (1024, 4096):
        for x, y in ((32, 8), (16, 16), (32, 32)):
            tile_grid, shape = (n // x, n // y), (x, y)
            yield case(stencil, f"{n}", tile_grid, shape, _floats, n * n, n * n, n=n)
        for tile in (16, 32):
            for pitch in (tile, tile + 1):
                yield case(
                    tiled_transpose, f"{n} pitch {pitch}", (n // tile, n // tile), (tile, tile), _floats, n * n, n * n,
                    n=n, TILE=tile, PITCH=pitch,
                )  # fmt: skip
    for n in (512, 1024):
        for tile in (8, 16, 32):
            yield case(matmul, f"{n}", (n // tile, n // tile), (tile, tile), _matrices, n, TILE=tile)
