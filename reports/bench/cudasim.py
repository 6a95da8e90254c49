"""The workloads of `simtbed bench` as Numba CUDA kernels, timed in Numba's simulator in a child process."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import cuda as _cuda
from numba import float32
from simtbed.engines.llvm.engine import LlvmEngine
from simtbed.runtime.engine import Request

from .kernels import BLOCK, Size, Work, works

cuda: Any = _cuda  # the attributes for threads and blocks exist only while a kernel runs


def _transpose(pitch: int) -> Callable[..., None]:
    def kernel(x: Any, out: Any, width: Any) -> None:
        tile = cuda.shared.array((32, pitch), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        column = cuda.blockIdx.x * 32 + tx
        for r in range(ty, 32, 8):
            tile[r, tx] = x[(cuda.blockIdx.y * 32 + r) * width + column]
        cuda.syncthreads()
        column = cuda.blockIdx.y * 32 + tx
        for r in range(ty, 32, 8):
            out[(cuda.blockIdx.x * 32 + r) * width + column] = tile[tx, r]

    return kernel


def _block_sum(x: Any, out: Any) -> None:
    partial = cuda.shared.array(BLOCK, float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.blockIdx.x * BLOCK + t]
    cuda.syncthreads()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]


def _intertask_naive(  # the parameters of the shipped kernel
    groups: Any, lengths: Any, reads: Any, haplotypes: Any, error: Any, alpha: Any, delta: Any, zeta: Any,
    epsilon: Any, match_row: Any, insertion_row: Any, deletion_row: Any, sums: Any, scale: Any,
) -> None:  # fmt: skip
    """The shipped kernel `intertask_naive`; its docstring defines the letters."""
    pair = cuda.grid(1)
    lane = cuda.threadIdx.x % 32
    group = pair // 32
    top, rows, left, columns = groups[group, 0], groups[group, 1], groups[group, 2], groups[group, 3]
    m, n = lengths[pair, 0], lengths[pair, 1]
    first_row, first_column = top * 32 + lane, left * 32 + lane
    zero, one, three = np.float32(0), np.float32(1), np.float32(3)
    initial = scale / np.float32(n)
    result, word = zero, 0
    for i in range(rows):
        if i % 4 == 0:
            word = int(reads[(top + i) // 4 * 32 + lane])
        base = (word >> (i % 4 * 8)) & 255
        at = first_row + i * 32
        q, a, d, z, e = error[at], alpha[at], delta[at], zeta[at], epsilon[at]
        b = one - e
        matching, differing = one - q, q / three
        MN, DN = zero, zero
        MID = b * initial if i == 0 else zero
        for j in range(columns):
            letter = int(haplotypes[(left + j) // 4 * 32 + lane, j % 4])
            cell = first_column + j * 32
            MU, IU, DU = zero, zero, initial
            if i > 0:
                MU, IU, DU = match_row[cell], insertion_row[cell], deletion_row[cell]
            emission = matching if letter & base != 0 else differing
            DN = z * MN + e * DN
            MN = emission * MID
            IN = d * MU + e * IU
            MID = a * MU + b * (IU + DU)
            match_row[cell] = MN
            insertion_row[cell] = IN
            deletion_row[cell] = DN
            if i == m - 1 and j < n:
                result += MN + IN
    sums[pair] = result


KERNELS: dict[str, Callable[..., None]] = {
    "intertask-naive": _intertask_naive,
    "transpose, pitch 33": _transpose(33),
    "transpose, pitch 32": _transpose(32),
    "block sum": _block_sum,
}
"""Wavefront is missing: the simulator has no warp shuffles."""


def simulated(work: Work, repeat: int) -> list[float]:
    """Return the seconds of each launch in the simulator. Raises RuntimeError if the answer differs from the jit engine."""
    request = work.request()
    kernel = cuda.jit(KERNELS[work.name])[request.grid, request.block]
    seconds: list[float] = []
    for _ in range(repeat):
        arguments = _arguments(request)
        start = time.perf_counter()
        kernel(*arguments.values())
        seconds.append(time.perf_counter() - start)
    for name, expected in LlvmEngine(threads=1).run(request).buffers.items():
        # The simulator's multiply and add rounds twice, where the shipped kernel's fma rounds once.
        if not np.allclose(arguments[name], expected, rtol=1e-3, atol=0):
            raise RuntimeError(f"{work.name}: {name} of the simulator and of the jit engine differ")
    return seconds


def _arguments(request: Request) -> dict[str, npt.NDArray[Any] | np.generic]:
    return {name: np.array(a) if isinstance(a, np.ndarray) else a for name, a in request.arguments.items()}


if __name__ == "__main__":
    chosen = [work for work in works(Size(*map(int, sys.argv[2:]))) if work.name in KERNELS]
    print(json.dumps({work.name: simulated(work, int(sys.argv[1])) for work in chosen}))
