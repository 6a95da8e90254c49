"""Kernels of Numba-CUDA with one mistake each. The comment in a line states the kind of the finding and the text of its columns."""

# mypy: allow-untyped-defs
import sys
from typing import Any

import numpy as np
from numba import cuda, float32, int32


@cuda.jit(device=True)
def neighbour(x, i):
    return x[i + 1]  # bounds: x[i + 1]


@cuda.jit
def beyond_the_end(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = neighbour(x, i) - x[i]


@cuda.jit
def missing_barrier(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]  # race: tile[t]
    out[t] = tile[63 - t]


@cuda.jit
def unwritten_element(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < 63:
        tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t]  # uninitialised: tile[t]


@cuda.jit
def barrier_in_a_branch(x, out):
    tile = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    tile[t] = t
    if t < 40:
        cuda.syncthreads()  # barrier: cuda.syncthreads()
    out[t] = tile[t] + x[t]


@cuda.jit
def lost_update(x, out):
    out[0] += x[cuda.grid(1)]  # race: out[0] += x[cuda.grid(1)]


@cuda.jit(device=True, inline="always")
def pair_sum(x, i):
    return x[i] + x[i + 1]  # bounds: x[i + 1]


@cuda.jit
def mistake_in_an_inlined_function(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = pair_sum(x, i)


@cuda.jit
def unwritten_local_element(x, out):
    own = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    own[1] = x[t]
    out[t] = own[1] + own[t % 2]  # uninitialised: own[t % 2]


MISTAKES: tuple[Any, ...] = (
    beyond_the_end, missing_barrier, unwritten_element, barrier_in_a_branch, lost_update, mistake_in_an_inlined_function,
    unwritten_local_element,
)  # fmt: skip


if __name__ == "__main__":
    for kernel in MISTAKES:
        if kernel.__name__ in sys.argv[1:]:
            kernel[1, 64](np.arange(64, dtype=np.float32), np.zeros(64, np.float32))
