"""Irregular access: a breadth-first search and gathers."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, f32, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, zeros


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
def gather(x: Global[f32], index: Global[i32], out: Global[f32]) -> None:
    """Numbers from where an index says."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[index[i]]


# ------------------------------------------------------------------ launches
MEAN = 16


def _starts(n: int, mean: int = MEAN) -> Values:
    """Return the starts of rows with up to twice `mean` entries each; a few rows are a hundred times as long."""
    rng = draw()
    lengths = rng.integers(0, 2 * mean + 1, n)
    lengths[rng.integers(0, n, max(1, n // 1000))] *= 8
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


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


def _indexed(n: int, block: int) -> Args:
    return {"x": floats(4 * n), "index": ints(n, 4 * n), "out": zeros(n)}


BLOCKS = (64, 256, 1024)


def _wide(n: int, block: int) -> int:
    return n // block


KERNELS = (
    ValidationKernel(
        bfs_step, cover, _frontier, _next_level, (700, 128), (1 << 16, 1 << 19), BLOCKS, restored=("depth", "changed"),
    ),
    ValidationKernel(gather, _wide, _indexed, lambda a: {"out": a["x"][a["index"]]}, (1024, 128), (1 << 20, 1 << 22), BLOCKS),
)  # fmt: skip
