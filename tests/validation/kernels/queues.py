"""Work that blocks share: packed codes, best exchanges, frontiers, small weights, ranks of digits, blocks of matrices."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f16, f32, float2, float4, i32, i64, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, warps, words, zeros

MOST = 12


@st.kernel
def pack_codes(
    x: Global[u8], code: Global[u32], size: Global[i32], out: Global[u32], bits: Global[i32], BLOCK: Const
) -> None:
    """out = symbols of each block by codes of 1 to 12 bits, one after another; bits = how many; places by a scan."""
    packed = st.shared(u32, BLOCK)
    of_warps = st.shared(i32, 32)
    t = st.thread.x
    symbol = i32(x[st.block.x * BLOCK + t])
    own, length = code[symbol], size[symbol]
    packed[t] = u32(0)
    end = length
    for step in st.unroll(range(5)):
        before = st.shuffle_up(end, 1 << step)
        if st.lane >= 1 << step:
            end += before
    if st.lane == 31:
        of_warps[st.warp] = end
    st.sync()
    for w in range(st.warp):
        end += of_warps[w]
    at = end - length
    st.atomic_or(packed, at >> 5, own << u32(at & 31))
    if (at & 31) + length > 32:
        st.atomic_or(packed, (at >> 5) + 1, own >> u32(32 - (at & 31)))
    if t == BLOCK - 1:
        bits[st.block.x] = end
    st.sync()
    out[st.block.x * BLOCK + t] = packed[t]


@st.device
def way(a: float2, b: float2) -> i32:
    """The distance of two towns in whole numbers."""
    dx, dy = a.x - b.x, a.y - b.y
    return i32(st.sqrt(dx * dx + dy * dy) + 0.5)


@st.kernel
def two_opt_best(town: Global[float2], out: Global[i64], n: i32, BLOCK: Const) -> None:
    """out[0] = gain of the best exchange of two legs of a tour, above the legs; block by block, then by an atomic."""
    best = st.shared(i64, BLOCK)
    t = st.thread.x
    least = i64(0)
    for k in range(st.block.x * BLOCK + t, n * n, st.grid_dim.x * BLOCK):
        i, j = k // n, k % n
        if j <= i + 1 or j == n - 1:
            continue
        a, b, c, d = town[i], town[i + 1], town[j], town[j + 1]
        change = way(a, c) + way(b, d) - way(a, b) - way(c, d)
        if change < 0:
            least = min(least, i64(change) * (1 << 32) + i64(k))
    best[t] = least
    st.sync()
    half = BLOCK // 2
    while half > 0:
        if t < half:
            best[t] = min(best[t], best[t + half])
        st.sync()
        half //= 2
    if t == 0:
        st.atomic_min(out, 0, best[0])


@st.kernel
def expand_frontier(
    start: Global[i32], target: Global[i32], depth: Global[i32], frontier: Global[i32], queue: Global[i32], tail: Global[i32],
    n: i32, level: i32, ROOM: Const,
) -> None:  # fmt: skip
    """queue = vertices that a frontier reaches first, in any order; a warp a vertex, a bounded queue in shared memory."""
    held = st.shared(i32, ROOM)
    count = st.shared(i32, 1)
    base = st.shared(i32, 1)
    if st.thread.x == 0:
        count[0] = 0
    st.sync()
    k = st.block.x * (st.block_dim.x // 32) + st.warp
    if k < n:
        vertex = frontier[k]
        for edge in range(start[vertex] + st.lane, start[vertex + 1], 32):
            to = target[edge]
            if st.compare_swap(depth, to, -1, level) == -1:
                place = st.atomic_add(count, 0, 1)
                if place < ROOM:
                    held[place] = to
                else:
                    queue[st.atomic_add(tail, 0, 1)] = to
    st.sync()
    kept = min(count[0], ROOM)
    if st.thread.x == 0:
        base[0] = st.atomic_add(tail, 0, kept)
    st.sync()
    for place in range(st.thread.x, kept, st.block_dim.x):
        queue[base[0] + place] = held[place]


@st.kernel
def small_weights(
    weight: Global[u32], scale: Global[f16], x: Global[float4], out: Global[f32], n: i32, words: i32
) -> None:
    """out = rows of weights of four bits times x, a warp a row; a scale in half precision for each 32 of them."""
    row = st.block.x * (st.block_dim.x // 32) + st.warp
    if row >= n:
        return
    total = 0.0
    for w in range(st.lane, words, 32):
        eight = weight[row * words + w]
        low, high = x[2 * w], x[2 * w + 1]
        part = 0.0
        for k in st.unroll(range(4)):
            part += f32(i32(eight >> u32(4 * k) & 15) - 8) * low[k]
            part += f32(i32(eight >> u32(4 * k + 16) & 15) - 8) * high[k]
        total += part * f32(scale[row * (words // 4) + w // 4])
    for step in (16, 8, 4, 2, 1):
        total += st.shuffle_down(total, step)
    if st.lane == 0:
        out[row] = total


@st.kernel
def rank_digits(key: Global[u32], out: Global[u32], shift: u32, BLOCK: Const) -> None:
    """out = keys of each block by four bits, equal ones in order: lanes of one digit find each other, warps add up."""
    counts = st.shared(i32, BLOCK // 32, 16)
    first = st.shared(i32, 16)
    t = st.thread.x
    own = key[st.block.x * BLOCK + t]
    digit = i32(own >> shift & 15)
    if st.lane < 16:
        counts[st.warp, st.lane] = 0
    st.syncwarp()
    peers = st.match_any(digit)
    before = st.popcount(peers & st.lanemask_lt())
    if before == 0:
        counts[st.warp, digit] = st.popcount(peers)
    st.sync()
    if st.warp == 0:
        total = 0
        if t < 16:
            for w in range(BLOCK // 32):
                count = counts[w, t]
                counts[w, t] = total
                total += count
        end = total
        for step in (1, 2, 4, 8):
            other = st.shuffle_up(end, step)
            if st.lane >= step:
                end += other
        if t < 16:
            first[t] = end - total
    st.sync()
    out[st.block.x * BLOCK + first[digit] + counts[st.warp, digit] + before] = own


@st.kernel
def block_rows(
    start: Global[i32], column: Global[i32], value: Global[float4], x: Global[float4], out: Global[f32], n: i32
) -> None:
    """A matrix of 4 x 4 blocks in compressed rows times x, a thread a row."""
    row = st.block.x * st.block_dim.x + st.thread.x
    if row >= n:
        return
    total = 0.0
    for k in range(start[row // 4], start[row // 4 + 1]):
        a, b = value[4 * k + row % 4], x[column[k]]
        total = st.fma(a.w, b.w, st.fma(a.z, b.z, st.fma(a.y, b.y, st.fma(a.x, b.x, total))))
    out[row] = total


# ------------------------------------------------------------------ launches
def _symbols(n: int, block: int) -> Args:
    """Code s is s ones and a nought, from the lowest bit on."""
    x = np.minimum(draw().geometric(0.4, n) - 1, MOST - 1).astype(np.uint8)
    size = np.arange(1, MOST + 1, dtype=np.int32)
    code = (1 << np.arange(MOST)).astype(np.uint32) - np.uint32(1)
    return {
        "x": x, "code": code, "size": size, "out": zeros(n, np.uint32), "bits": zeros(n // block, np.int32), "BLOCK": block,
    }  # fmt: skip


def _packed(args: Args) -> dict[str, Values]:
    """A bit is a nought where a code ends."""
    end = np.cumsum(args["size"][args["x"].reshape(-1, args["BLOCK"])], axis=1)
    bits = np.arange(32 * args["BLOCK"]) < end[:, -1:]
    bits[np.arange(len(end))[:, None], end - 1] = False
    return {"out": np.packbits(bits, axis=1, bitorder="little").view(np.uint32), "bits": end[:, -1]}


def _tour(n: int, block: int) -> Args:
    town = (1000 * floats(n, 2)).astype(np.float32)
    return {"town": town, "out": zeros(1, np.int64), "n": n, "BLOCK": block}


def _exchanged(args: Args) -> dict[str, Values]:
    town, n = args["town"], args["n"]
    dx, dy = town[:, None, 0] - town[:, 0], town[:, None, 1] - town[:, 1]
    far = (np.sqrt(dx * dx + dy * dy) + np.float32(0.5)).astype(int)
    leg = far[np.arange(n - 1), np.arange(1, n)]
    change = np.triu(far[:-1, :-1] + far[1:, 1:] - leg[:, None] - leg, 2)
    i, j = np.nonzero(change < 0)
    return {"out": np.array([(change[i, j] * 2**32 + i * n + j).min(initial=0)])}


def _graph(n: int, block: int) -> Args:
    """One vertex in four is in the frontier, a few of them have many edges."""
    rng, vertices = draw(), 4 * n
    degree = rng.integers(0, 13, vertices)
    degree[::97] = 200
    start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    frontier = rng.choice(vertices, n, replace=False).astype(np.int32)
    depth = np.where(rng.random(vertices) < 0.3, 2, -1).astype(np.int32)
    depth[frontier] = 3
    return {
        "start": start, "target": ints(int(start[-1]), vertices), "depth": depth, "frontier": frontier,
        "queue": zeros(vertices, np.int32), "tail": zeros(1, np.int32), "n": n, "level": 4, "ROOM": 64,
    }  # fmt: skip


def _next_frontier(args: Args) -> dict[str, Values]:
    start, depth = args["start"], args["depth"].copy()
    inside = np.zeros(len(depth), bool)
    inside[args["frontier"]] = True
    to = args["target"][np.repeat(inside, np.diff(start))]
    fresh = np.unique(to[depth[to] == -1])
    depth[fresh] = args["level"]
    return {"depth": depth, "queue": fresh, "tail": np.array([len(fresh)])}


COLUMNS = 2048


def _quantised(n: int, block: int) -> Args:
    scale = (floats(n * COLUMNS // 32) / 8).astype(np.float16)
    x = draw().normal(0, 1, COLUMNS).astype(np.float32)
    return {
        "weight": words(n * COLUMNS // 8), "scale": scale, "x": x.reshape(-1, 4), "out": zeros(n), "n": n, "words": COLUMNS // 8,
    }  # fmt: skip


def _scaled(args: Args) -> dict[str, Values]:
    quarters = (args["weight"][:, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).astype(np.float32) - 8
    products = quarters.reshape(-1, COLUMNS // 32, 32) * args["x"].reshape(-1, 32)
    return {"out": (products.sum(axis=2) * args["scale"].reshape(-1, COLUMNS // 32).astype(np.float32)).sum(axis=1)}


def _ranked(args: Args) -> dict[str, Values]:
    key = args["key"].reshape(-1, args["BLOCK"])
    order = np.argsort(key >> np.uint32(args["shift"]) & 15, axis=1, kind="stable")
    return {"out": np.take_along_axis(key, order, 1)}


def _blocks(n: int, block: int) -> Args:
    rows = n // 4
    start = np.concatenate([[0], np.cumsum(draw().integers(0, 13, rows))]).astype(np.int32)
    return {
        "start": start, "column": ints(int(start[-1]), rows), "value": floats(4 * int(start[-1]), 4), "x": floats(rows, 4),
        "out": zeros(n), "n": n,
    }  # fmt: skip


def _multiplied(args: Args) -> dict[str, Values]:
    value, start = args["value"].reshape(-1, 4, 4), args["start"]
    sums = np.cumsum((value * args["x"][args["column"], None]).sum(axis=2, dtype=float), axis=0)
    before = np.concatenate([np.zeros((1, 4)), sums])
    return {"out": before[start[1:]] - before[start[:-1]]}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(pack_codes, cover, _symbols, _packed, (1024, 128), (1 << 16, 1 << 20), BLOCKS),
    ValidationKernel(
        two_opt_best, lambda n, b: min(cover(n * n, b), 264), _tour, _exchanged, (60, 128), (512, 2048), (64, 256, 512), restored=("out",),
    ),
    ValidationKernel(
        expand_frontier, warps, _graph, _next_frontier, (200, 128), (1 << 13, 1 << 16), (64, 256, 512), unordered=("queue",),
        restored=("depth", "tail"),
    ),
    ValidationKernel(small_weights, warps, _quantised, _scaled, (40, 128), (1024, 8192), (64, 256, 512)),
    ValidationKernel(
        rank_digits, cover, lambda n, b: {"key": words(n), "out": zeros(n, np.uint32), "shift": 8, "BLOCK": b}, _ranked, (1024, 128),
    ),
    ValidationKernel(block_rows, cover, _blocks, _multiplied, (400, 128)),
)  # fmt: skip
