"""Nearest neighbours in several processes; a function creates the kernel for each dimension."""

import multiprocessing
import os
import sys
import tempfile

import numpy as np
import simtbed as st


def make_kernel(DIMENSIONS: int) -> st.Kernel:
    @st.kernel
    def nearest(
        points: st.Global[st.f32], queries: st.Global[st.f32], out: st.Global[st.i32], n: st.i32, m: st.i32
    ) -> None:
        """out[i] = the index of the first point nearest to queries[i]."""
        mine = st.registers(st.f32, DIMENSIONS)
        i = st.block.x * st.block_dim.x + st.thread.x
        if i < m:
            for d in st.unroll(range(DIMENSIONS)):
                mine[d] = queries[i * DIMENSIONS + d]
            best, at = st.f32(3.0e38), -1
            for j in range(n):
                distance = st.f32(0)
                for d in st.unroll(range(DIMENSIONS)):
                    offset = points[j * DIMENSIONS + d] - mine[d]
                    distance = st.fma(offset, offset, distance)
                if distance < best:
                    best, at = distance, j
            out[i] = at

    return nearest


KERNELS = {dimensions: make_kernel(dimensions) for dimensions in (2, 3)}


def solve(task: tuple[int, int]) -> bool:
    dimensions, size = task
    random = np.random.default_rng(dimensions)
    points, queries = random.random((size, dimensions), np.float32), random.random((size // 2, dimensions), np.float32)
    args = dict(
        points=points.ravel(),
        queries=queries.ravel(),
        out=st.empty(len(queries), st.i32),
        n=len(points),
        m=len(queries),
    )
    out = st.launch(KERNELS[dimensions], grid=-(-len(queries) // 64), block=64, args=args).out
    distances = ((queries[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    return bool(np.allclose(distances[np.arange(len(queries)), out], distances.min(axis=1)))


if __name__ == "__main__":
    size = int(os.environ.get("POINTS", "200"))
    os.chdir(tempfile.gettempdir())
    with multiprocessing.Pool(2) as pool:
        right = pool.map(solve, [(2, size), (3, size)])
    print("nearest neighbours in 2 and 3 dimensions:", *right)
    sys.exit(not all(right))
