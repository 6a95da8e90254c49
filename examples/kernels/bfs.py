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
    """Give vertices next to those of this level the next one. Edges of v go to ends[starts[v]:starts[v + 1]]."""
    v = st.block.x * THREADS + st.thread.x
    if v < len(levels) and st.volatile_load(levels, v) == level:
        for edge in range(starts[v], starts[v + 1]):
            if st.compare_swap(levels, ends[edge], UNSEEN, level + 1) == UNSEEN:
                st.atomic_add(found, 0, 1)


def distances(starts: Ints, ends: Ints, source: int, launch: Callable[..., st.Result] = st.launch) -> Ints:
    """The number of edges from the source to each vertex, UNSEEN where there is no way."""
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
    """Raises AssertionError unless it is what SciPy computes."""
    edges = np.random.default_rng(15).random((300, 300)) < 0.008
    graph = sparse.csr_matrix(edges)
    expected = csgraph.dijkstra(graph, indices=0, unweighted=True)
    expected[np.isinf(expected)] = UNSEEN
    found = distances(graph.indptr.astype(np.int32), graph.indices.astype(np.int32), 0, launch)
    np.testing.assert_array_equal(found, expected)


if __name__ == "__main__":
    check()
