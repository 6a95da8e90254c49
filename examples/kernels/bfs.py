"""Breadth-first search: one launch a level, a thread for each vertex, edges in compressed rows."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy import sparse
from scipy.sparse import csgraph

Ints = npt.NDArray[np.int32]
THREADS = 128
UNSEEN = -1


@st.kernel
def expand(
    starts: st.Global[st.i32],
    ends: st.Global[st.i32],
    levels: st.Global[st.i32],
    found: st.Global[st.i32],
    level: st.i32,
) -> None:
    """Assign the next level to unvisited neighbours of this level. The neighbours of v are ends[starts[v]:starts[v + 1]]."""
    v = st.block.x * THREADS + st.thread.x
    if v < len(levels) and st.volatile_load(levels, v) == level:
        for edge in range(starts[v], starts[v + 1]):
            if st.compare_swap(levels, ends[edge], UNSEEN, level + 1) == UNSEEN:
                st.atomic_add(found, 0, 1)


def distances(starts: Ints, ends: Ints, source: int, launch: Callable[..., st.Result] = st.launch) -> Ints:
    """Return the number of edges from the source to each vertex, UNSEEN for unreachable vertices."""
    levels: Ints = np.full(len(starts) - 1, UNSEEN, np.int32)
    levels[source] = 0
    level, grid = 0, -(-len(levels) // THREADS)
    while True:
        args = dict(starts=starts, ends=ends, levels=levels, found=st.zeros(1, st.i32), level=level)
        result = launch(expand, grid=grid, block=THREADS, args=args)
        levels, level = result.levels, level + 1
        if result.found[0] == 0:
            return levels


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    edges = np.random.default_rng(15).random((300, 300)) < 0.008
    graph = sparse.csr_matrix(edges)
    expected = csgraph.dijkstra(graph, indices=0, unweighted=True)
    expected[np.isinf(expected)] = UNSEEN
    output = distances(graph.indptr.astype(np.int32), graph.indices.astype(np.int32), 0, launch)
    np.testing.assert_array_equal(output, expected)


if __name__ == "__main__":
    check()
