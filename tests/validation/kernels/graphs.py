"""Irregular access: sparse matrices, graphs, gathers, scatters and chases."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, warps, zeros


@st.kernel
def spmv_rows(
    start: Global[i32], column: Global[i32], value: Global[f32], x: Global[f32], out: Global[f32], n: i32
) -> None:
    """A matrix in compressed rows times x, a thread a row."""
    row = st.block.x * st.block_dim.x + st.thread.x
    if row < n:
        total = 0.0
        for k in range(start[row], start[row + 1]):
            total += value[k] * x[column[k]]
        out[row] = total


@st.kernel
def spmv_warps(
    start: Global[i32], column: Global[i32], value: Global[f32], x: Global[f32], out: Global[f32], n: i32
) -> None:
    """The same, a warp a row."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= n:
        return
    total = 0.0
    for k in range(start[row] + st.lane, start[row + 1], 32):
        total += value[k] * x[column[k]]
    for step in st.unroll(range(5)):
        total += st.shuffle_down(total, 16 >> step)
    if st.lane == 0:
        out[row] = total


@st.kernel
def spmv_ell(column: Global[i32], value: Global[f32], x: Global[f32], out: Global[f32], n: i32, width: i32) -> None:
    """Rows padded to `width` entries, kept entry by entry; a padded one has column -1."""
    row = st.block.x * st.block_dim.x + st.thread.x
    if row < n:
        total = 0.0
        for k in range(width):
            c = column[k * n + row]
            if c >= 0:
                total += value[k * n + row] * x[c]
        out[row] = total


@st.kernel
def spmv_coordinates(
    row: Global[i32], column: Global[i32], value: Global[i32], x: Global[i32], out: Global[i32]
) -> None:
    """Entries by coordinates, of whole numbers: an atomic each."""
    k = st.block.x * st.block_dim.x + st.thread.x
    st.atomic_add(out, row[k], value[k] * x[column[k]])


@st.kernel
def bfs_step(
    start: Global[i32], target: Global[i32], depth: Global[i32], changed: Global[i32], n: i32, level: i32
) -> None:
    """Neighbours of the vertices of a level that have no depth yet get the next."""
    v = st.block.x * st.block_dim.x + st.thread.x
    if v < n and st.volatile_load(depth, v) == level:
        for k in range(start[v], start[v + 1]):
            if st.atomic_min(depth, target[k], level + 1) > level + 1:
                st.atomic_add(changed, 0, 1)


@st.kernel
def pagerank_step(
    start: Global[i32], source: Global[i32], degree: Global[i32], rank: Global[f32], out: Global[f32], n: i32
) -> None:
    """A vertex gathers the shares of those that point to it."""
    v = st.block.x * st.block_dim.x + st.thread.x
    if v < n:
        total = 0.0
        for k in range(start[v], start[v + 1]):
            u = source[k]
            total += rank[u] / f32(degree[u])
        out[v] = 0.15 / f32(n) + 0.85 * total


@st.kernel
def triangles(start: Global[i32], target: Global[i32], out: Global[i32], n: i32) -> None:
    """out[v] = triangles v < u < w, by merging sorted neighbours."""
    v = st.block.x * st.block_dim.x + st.thread.x
    if v < n:
        found = 0
        for k in range(start[v], start[v + 1]):
            u = target[k]
            i, j = k + 1, start[u]
            while i < start[v + 1] and j < start[u + 1]:
                a, b = target[i], target[j]
                if a == b:
                    found += 1
                if a <= b:
                    i += 1
                if b <= a:
                    j += 1
        out[v] = found


@st.kernel
def gather(x: Global[f32], index: Global[i32], out: Global[f32]) -> None:
    """Numbers from where an index says."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[index[i]]


@st.kernel
def scatter(x: Global[f32], index: Global[i32], out: Global[f32]) -> None:
    """Numbers to where a permutation says."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[index[i]] = x[i]


@st.kernel
def pointer_chase(next: Global[i32], out: Global[i32], HOPS: Const) -> None:
    """Each thread follows a permutation."""
    i = st.block.x * st.block_dim.x + st.thread.x
    at = i
    for _ in range(HOPS):
        at = next[at]
    out[i] = at


@st.kernel
def pointer_jump(parent: Global[i32], out: Global[i32], n: i32) -> None:
    """out[i] = the root of i in a forest with parents that are never larger; some roots are found at once."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        at = i
        while parent[at] != at:
            at = parent[at]
        out[i] = at


# ------------------------------------------------------------------ launches
MEAN = 16


def _starts(n: int, mean: int = MEAN) -> Values:
    """Return the starts of rows with up to twice `mean` entries each; a few rows are a hundred times as long."""
    rng = draw()
    lengths = rng.integers(0, 2 * mean + 1, n)
    lengths[rng.integers(0, n, max(1, n // 1000))] *= 8
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _sparse(n: int, block: int) -> Args:
    start = _starts(n)
    count = int(start[-1])
    return {
        "start": start, "column": ints(count, n), "value": floats(count), "x": floats(n), "out": zeros(n), "n": n,
    }  # fmt: skip


def _by_row(start: Values, entries: Values) -> Values:
    """Sums of each row's entries."""
    sums = np.concatenate([[0], np.cumsum(entries, dtype=np.float64)])
    result: Values = sums[start[1:]] - sums[start[:-1]]
    return result


def _spmv(args: Args) -> dict[str, Values]:
    return {"out": _by_row(args["start"], args["value"] * args["x"][args["column"]])}


def _ell(n: int, block: int) -> Args:
    column = ints(MEAN * n, n)
    column[draw().random(MEAN * n) < 0.3] = -1
    return {"column": column, "value": floats(MEAN * n), "x": floats(n), "out": zeros(n), "n": n, "width": MEAN}


def _ell_answer(args: Args) -> dict[str, Values]:
    products = np.where(args["column"] >= 0, args["value"] * args["x"][args["column"]], 0)
    return {"out": products.reshape(MEAN, -1).sum(axis=0)}


def _entries(n: int, block: int) -> Args:
    """In order of their rows, as they are kept mostly."""
    rows = n // MEAN
    return {
        "row": np.sort(ints(n, rows)), "column": ints(n, rows), "value": ints(n, 100), "x": ints(rows, 100),
        "out": zeros(rows, np.int32),
    }  # fmt: skip


def _coordinates(args: Args) -> dict[str, Values]:
    out = args["out"].copy()
    np.add.at(out, args["row"], args["value"] * args["x"][args["column"]])
    return {"out": out}


def _frontier(n: int, block: int) -> Args:
    start = _starts(n, 4)
    depth = np.full(n, 1 << 20, np.int32)
    depth[draw().permutation(n)[: n // 8]] = 3
    return {
        "start": start, "target": ints(int(start[-1]), n), "depth": depth, "changed": zeros(1, np.int32), "n": n, "level": 3,
    }  # fmt: skip


def _next_level(args: Args) -> dict[str, Values]:
    start, depth = args["start"], args["depth"].copy()
    at = np.repeat(depth == 3, np.diff(start))
    targets = np.unique(args["target"][at])
    fresh = targets[depth[targets] > 4]
    depth[fresh] = 4
    return {"depth": depth, "changed": np.array([len(fresh)])}


def _ranks(n: int, block: int) -> Args:
    start = _starts(n, 8)
    return {
        "start": start, "source": ints(int(start[-1]), n), "degree": ints(n, 30) + 1, "rank": floats(n), "out": zeros(n), "n": n,
    }  # fmt: skip


def _ranked(args: Args) -> dict[str, Values]:
    shares = (args["rank"] / args["degree"])[args["source"]]
    return {"out": 0.15 / args["n"] + 0.85 * _by_row(args["start"], shares)}


def _graph(n: int, block: int) -> Args:
    """Edges to larger vertices that are near, sorted."""
    rng = draw()
    edges = np.unique(
        np.repeat(np.arange(n), 8) * n + np.minimum(np.repeat(np.arange(n), 8) + rng.integers(1, 33, 8 * n), n - 1)
    )
    source, target = edges // n, edges % n
    keeps = source < target
    start = np.concatenate([[0], np.cumsum(np.bincount(source[keeps], minlength=n))]).astype(np.int32)
    return {"start": start, "target": target[keeps].astype(np.int32), "out": zeros(n, np.int32), "n": n}


def _triangles(args: Args) -> dict[str, Values]:
    n, start, target = args["n"], args["start"], args["target"]
    source = np.repeat(np.arange(n), np.diff(start))
    edges = source.astype(np.int64) * n + target
    out = np.zeros(n, np.int64)
    for distance in range(1, int(np.diff(start).max())):  # pairs of neighbours, at this distance in a vertex's list
        first = np.flatnonzero(np.arange(len(target)) + distance < start[source + 1])
        edge = target[first].astype(np.int64) * n + target[first + distance]
        closed = edges[np.minimum(np.searchsorted(edges, edge), len(edges) - 1)] == edge
        out += np.bincount(source[first], closed, minlength=n).astype(np.int64)
    return {"out": out}


def _indexed(n: int, block: int) -> Args:
    return {"x": floats(4 * n), "index": ints(n, 4 * n), "out": zeros(n)}


def _permuted(n: int, block: int) -> Args:
    return {"x": floats(n), "index": draw().permutation(n).astype(np.int32), "out": zeros(n)}


def _scattered(args: Args) -> dict[str, Values]:
    out = np.empty_like(args["x"])
    out[args["index"]] = args["x"]
    return {"out": out}


def _chased(args: Args) -> dict[str, Values]:
    at = np.arange(len(args["out"]))
    for _ in range(args["HOPS"]):
        at = args["next"][at]
    return {"out": at}


def _forest(n: int, block: int) -> Args:
    parent = (draw().random(n) * np.arange(n)).astype(np.int32)
    roots = draw().random(n) < 0.1
    return {"parent": np.where(roots, np.arange(n), parent).astype(np.int32), "out": zeros(n, np.int32), "n": n}


def _roots(args: Args) -> dict[str, Values]:
    at = args["parent"]
    while not np.array_equal(at[at], at):
        at = at[at]
    return {"out": at}


BLOCKS = (64, 256, 1024)


def _wide(n: int, block: int) -> int:
    return n // block


KERNELS = (
    ValidationKernel(spmv_rows, cover, _sparse, _spmv, (300, 128), (1 << 14, 1 << 17), BLOCKS),
    ValidationKernel(spmv_warps, warps, _sparse, _spmv, (300, 128), (1 << 13, 1 << 16), BLOCKS),
    ValidationKernel(spmv_ell, cover, _ell, _ell_answer, (300, 128), (1 << 14, 1 << 17), BLOCKS),
    ValidationKernel(spmv_coordinates, _wide, _entries, _coordinates, (4096, 128), (1 << 18, 1 << 20), BLOCKS),
    ValidationKernel(
        bfs_step, cover, _frontier, _next_level, (700, 128), (1 << 16, 1 << 19), BLOCKS, restored=("depth", "changed"),
    ),
    ValidationKernel(pagerank_step, cover, _ranks, _ranked, (300, 128), (1 << 14, 1 << 17), BLOCKS),
    ValidationKernel(triangles, cover, _graph, _triangles, (200, 64), (1 << 14, 1 << 16), (32, 128, 512)),
    ValidationKernel(gather, _wide, _indexed, lambda a: {"out": a["x"][a["index"]]}, (1024, 128), (1 << 20, 1 << 22), BLOCKS),
    ValidationKernel(scatter, _wide, _permuted, _scattered, (1024, 128), (1 << 20, 1 << 22), BLOCKS),
    ValidationKernel(
        pointer_chase, _wide, lambda n, b: {"next": draw().permutation(n).astype(np.int32), "out": zeros(n, np.int32), "HOPS": 16},
        _chased, (1024, 128), (1 << 16, 1 << 20), BLOCKS,
    ),
    ValidationKernel(pointer_jump, cover, _forest, _roots, (700, 128), (1 << 16, 1 << 20), BLOCKS),
)  # fmt: skip
