"""Sums, scans and compaction: through shared memory in several orders, by shuffles, by vectors."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, float4, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, zeros


@st.kernel
def reduce_interleaved(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """Neighbouring threads diverge: thread t works when t is a multiple of the width."""
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = x[st.block.x * BLOCK + t]
    st.sync()
    width = 1
    while width < BLOCK:
        if t % (2 * width) == 0:
            partial[t] += partial[t + width]
        st.sync()
        width *= 2
    if t == 0:
        out[st.block.x] = partial[0]


@st.kernel
def reduce_strided(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """The first threads work, on elements at growing strides: bank conflicts."""
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = x[st.block.x * BLOCK + t]
    st.sync()
    width = 1
    while width < BLOCK:
        at = 2 * width * t
        if at < BLOCK:
            partial[at] += partial[at + width]
        st.sync()
        width *= 2
    if t == 0:
        out[st.block.x] = partial[0]


@st.kernel
def reduce_sequential(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """The first threads work, on neighbouring elements: no conflicts, whole warps drop out."""
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = x[st.block.x * BLOCK + t]
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


@st.kernel
def reduce_shuffles(x: Global[i32], out: Global[i32], n: i32) -> None:
    """A sum by a grid-stride loop, by shuffles in a warp, through shared memory between warps, and one atomic a block."""
    sums = st.shared(i32, 32)
    total = 0
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        total += x[i]
    for step in st.unroll(range(5)):
        total += st.shuffle_down(total, 16 >> step)
    if st.lane == 0:
        sums[st.warp] = total
    st.sync()
    if st.warp == 0:
        total = sums[st.lane] if st.lane < st.block_dim.x // 32 else 0
        for step in st.unroll(range(5)):
            total += st.shuffle_down(total, 16 >> step)
        if st.lane == 0:
            st.atomic_add(out, 0, total)


@st.kernel
def reduce_vectors(x: Global[float4], out: Global[f32], n: i32) -> None:
    """A sum of four numbers a load; out: of each thread."""
    first = st.block.x * st.block_dim.x + st.thread.x
    total = 0.0
    for i in range(first, n, st.grid_dim.x * st.block_dim.x):
        four = x[i]
        total += (four.x + four.y) + (four.z + four.w)
    out[first] = total


@st.kernel
def largest_place(x: Global[f32], out: Global[i32], n: i32, BLOCK: Const) -> None:
    """out[b] = where the largest number of block b's slice is, the first of them; by pairs in shared memory."""
    values = st.shared(f32, BLOCK)
    places = st.shared(i32, BLOCK)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    values[t] = x[i] if i < n else -1.0
    places[t] = i
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            other = values[t + width]
            if other > values[t] or (other == values[t] and places[t + width] < places[t]):
                values[t] = other
                places[t] = places[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = places[0]


@st.kernel
def dot_f64(x: Global[f64], y: Global[f64], out: Global[f64], n: i32) -> None:
    """out: the partial inner product of each warp."""
    total = f64(0)
    thread = st.block.x * st.block_dim.x + st.thread.x
    for i in range(thread, n, st.grid_dim.x * st.block_dim.x):
        total = st.fma(x[i], y[i], total)
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 16 >> step)
    if st.lane == 0:
        out[thread // 32] = total


@st.kernel
def scan_hillis_steele(x: Global[i32], out: Global[i32], n: i32, BLOCK: Const) -> None:
    """Sums up to each element, block by block: every thread adds the sum ever further back, from one buffer to another."""
    buffers = st.shared(i32, 2, BLOCK)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    buffers[0, t] = x[i] if i < n else 0
    st.sync()
    distance, source = 1, 0
    while distance < BLOCK:
        total = buffers[source, t]
        if t >= distance:
            total += buffers[source, t - distance]
        source = 1 - source
        buffers[source, t] = total
        st.sync()
        distance *= 2
    if i < n:
        out[i] = buffers[source, t]


@st.kernel
def scan_blelloch(x: Global[i32], out: Global[i32], BLOCK: Const) -> None:
    """Sums before each element, of two elements a thread: up a tree and down again, with its bank conflicts."""
    tree = st.shared(i32, 2 * BLOCK)
    t = st.thread.x
    first = 2 * BLOCK * st.block.x
    tree[t] = x[first + t]
    tree[t + BLOCK] = x[first + t + BLOCK]
    distance = 1
    width = BLOCK
    while width > 0:
        st.sync()
        if t < width:
            low = distance * (2 * t + 1) - 1
            tree[low + distance] += tree[low]
        distance *= 2
        width //= 2
    if t == 0:
        tree[2 * BLOCK - 1] = 0
    width = 1
    while width <= BLOCK:
        distance //= 2
        st.sync()
        if t < width:
            low = distance * (2 * t + 1) - 1
            left = tree[low]
            tree[low] = tree[low + distance]
            tree[low + distance] += left
        width *= 2
    st.sync()
    out[first + t] = tree[t]
    out[first + t + BLOCK] = tree[t + BLOCK]


@st.kernel
def scan_shuffles(x: Global[i32], out: Global[i32], n: i32) -> None:
    """Sums up to each element, block by block: by shuffles in a warp, then of the warps' totals."""
    totals = st.shared(i32, 32)
    i = st.block.x * st.block_dim.x + st.thread.x
    total = x[i] if i < n else 0
    for step in st.unroll(range(5)):
        before = st.shuffle_up(total, 1 << step)
        if st.lane >= 1 << step:
            total += before
    if st.lane == 31:
        totals[st.warp] = total
    st.sync()
    if st.warp == 0:
        of_warp = totals[st.lane] if st.lane < st.block_dim.x // 32 else 0
        for step in st.unroll(range(5)):
            before = st.shuffle_up(of_warp, 1 << step)
            if st.lane >= 1 << step:
                of_warp += before
        totals[st.lane] = of_warp
    st.sync()
    if st.warp > 0:
        total += totals[st.warp - 1]
    if i < n:
        out[i] = total


@st.kernel
def scan_segments(x: Global[i32], head: Global[i32], out: Global[i32]) -> None:
    """Prefix sums that restart at each head, warp by warp."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = x[i]
    heads = st.ballot(head[i] != 0) & st.lanemask_le()
    start = 31 - st.clz(heads) if heads != u32(0) else 0
    for step in st.unroll(range(5)):
        before = st.shuffle_up(total, 1 << step)
        if st.lane - (1 << step) >= start:
            total += before
    out[i] = total


@st.kernel
def compact(x: Global[i32], out: Global[i32], counts: Global[i32], least: i32) -> None:
    """The elements of at least `least`, in order, at the front of each block's slice; counts: how many they are."""
    of_warps = st.shared(i32, 32)
    i = st.block.x * st.block_dim.x + st.thread.x
    value = x[i]
    keeps = st.ballot(value >= least)
    if st.lane == 0:
        of_warps[st.warp] = st.popcount(keeps)
    st.sync()
    place = st.popcount(keeps & st.lanemask_lt())
    for w in range(st.warp):
        place += of_warps[w]
    if value >= least:
        out[st.block.x * st.block_dim.x + place] = value
    if st.thread.x == st.block_dim.x - 1:
        counts[st.block.x] = place + (1 if value >= least else 0)


# ------------------------------------------------------------------ launches
def _sum(n: int, block: int) -> Args:
    return {"x": floats(n), "out": zeros(n // block), "BLOCK": block}


def _sums(args: Args) -> dict[str, Values]:
    return {"out": args["x"].reshape(-1, args["BLOCK"]).sum(axis=1, dtype=np.float64)}


GRID = 264


def _few(n: int, block: int) -> int:
    """Blocks of grid-stride loops."""
    return min(GRID, max(1, n // block))


def _total(n: int, block: int) -> Args:
    return {"x": ints(n, 100), "out": zeros(1, np.int32), "n": n}


def _vectors(n: int, block: int) -> Args:
    return {"x": floats(n // 4, 4), "out": zeros(_few(n // 4, block) * block), "n": n // 4}


def _vector_sums(args: Args) -> dict[str, Values]:
    threads, sums = len(args["out"]), args["x"].sum(axis=1, dtype=np.float64)
    padded = np.concatenate([sums, np.zeros(-len(sums) % threads)])
    return {"out": padded.reshape(-1, threads).sum(axis=0)}


def _places(n: int, block: int) -> Args:
    x = draw().integers(0, 10 * n, n).astype(np.float32)
    return {"x": x, "out": zeros(cover(n, block), np.int32), "n": n, "BLOCK": block}


def _largest(args: Args) -> dict[str, Values]:
    block = args["BLOCK"]
    padded = np.concatenate([args["x"], np.full(-args["n"] % block, -1, np.float32)]).reshape(-1, block)
    return {"out": padded.argmax(axis=1) + block * np.arange(len(padded))}


def _dot(n: int, block: int) -> Args:
    x, y = draw().random((2, n))
    return {"x": x, "y": y, "out": zeros(_few(n, block) * block // 32, np.float64), "n": n}


def _dots(args: Args) -> dict[str, Values]:
    lanes = 32 * len(args["out"])
    products = np.concatenate([args["x"] * args["y"], np.zeros(-args["n"] % lanes)])
    return {"out": products.reshape(-1, len(args["out"]), 32).sum(axis=(0, 2))}


def _scan(n: int, block: int) -> Args:
    return {"x": ints(n, 100), "out": zeros(n, np.int32), "n": n}


def _scanned(x: Values, block: int) -> Values:
    padded = np.concatenate([x, np.zeros(-len(x) % block, x.dtype)]).reshape(-1, block)
    return padded.cumsum(axis=1).ravel()[: len(x)]


def _blelloch(n: int, block: int) -> Args:
    return {"x": ints(n, 100), "out": zeros(n, np.int32), "BLOCK": block}


def _segments(n: int, block: int) -> Args:
    return {"x": ints(n, 100), "head": (draw().random(n) < 0.1).astype(np.int32), "out": zeros(n, np.int32)}


def _segmented(args: Args) -> dict[str, Values]:
    """A head is where a sum begins, and so is every 32nd element."""
    begins = args["head"] != 0
    begins[::32] = True
    sums = np.cumsum(args["x"])
    places = np.flatnonzero(begins)
    before = (sums[places] - args["x"][places])[np.cumsum(begins) - 1]
    return {"out": sums - before}


def _compaction(n: int, block: int) -> Args:
    return {"x": ints(n, 100), "out": zeros(n, np.int32), "counts": zeros(n // block, np.int32), "least": 60}


def _compacted(args: Args) -> dict[str, Values]:
    rows = args["x"].reshape(len(args["counts"]), -1)
    keeps = rows >= args["least"]
    out = np.zeros_like(rows)
    out[np.arange(rows.shape[1]) < keeps.sum(axis=1)[:, None]] = rows[keeps]
    return {"out": out.ravel(), "counts": keeps.sum(axis=1)}


SIZES = (1 << 18, 1 << 22)
BLOCKS = (64, 256, 1024)


def _wide(n: int, block: int) -> int:
    return n // block


KERNELS = (
    ValidationKernel(reduce_interleaved, _wide, _sum, _sums, (512, 128), SIZES, BLOCKS),
    ValidationKernel(reduce_strided, _wide, _sum, _sums, (512, 128), SIZES, BLOCKS),
    ValidationKernel(reduce_sequential, _wide, _sum, _sums, (512, 128), (1 << 20, 1 << 24), BLOCKS),
    ValidationKernel(
        reduce_shuffles, _few, _total, lambda a: {"out": a["x"].sum(dtype=np.int32, keepdims=True)}, (3000, 128),
        (1 << 20, 1 << 24), BLOCKS,
    ),
    ValidationKernel(reduce_vectors, lambda n, b: _few(n // 4, b), _vectors, _vector_sums, (4096, 128), (1 << 20, 1 << 24), BLOCKS),
    ValidationKernel(largest_place, cover, _places, _largest, (700, 128), SIZES, BLOCKS),
    ValidationKernel(dot_f64, _few, _dot, _dots, (3000, 128), SIZES, BLOCKS),
    ValidationKernel(
        scan_hillis_steele, cover, lambda n, b: {**_scan(n, b), "BLOCK": b},
        lambda a: {"out": _scanned(a["x"], a["BLOCK"])}, (700, 128), SIZES, BLOCKS,
    ),
    ValidationKernel(
        scan_blelloch, lambda n, b: n // (2 * b), _blelloch,
        lambda a: {"out": _scanned(a["x"], 2 * a["BLOCK"]) - a["x"]}, (1024, 128), SIZES, BLOCKS,
    ),
    ValidationKernel(
        scan_shuffles, cover, lambda n, b: _scan(n, b), lambda a: {"out": _scanned(a["x"], 256)}, (700, 256), SIZES, (256,),
    ),
    ValidationKernel(scan_segments, _wide, _segments, _segmented, (512, 128), (1 << 20,), BLOCKS),
    ValidationKernel(compact, _wide, _compaction, _compacted, (512, 128), (1 << 18, 1 << 22), BLOCKS),
)  # fmt: skip
