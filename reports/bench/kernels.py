"""Workloads of `simtbed bench`: pair-HMM variants and two general kernels, each with a scalar loop."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from numba import njit
from simtbed import Const, Global, f32, i32
from simtbed.kernels.pairhmm.host.generate import generate
from simtbed.kernels.pairhmm.host.problem import Problem
from simtbed.runtime.engine import Request
from simtbed.runtime.request import prepare_request

from ..requests import first_request
from ..selection import find_family

Floats = npt.NDArray[np.float32]
BLOCK = 256
"""Block size of the reduction."""
CONTINUATION = 2
"""Phred gap continuation, high enough to avoid denormals and the slow path of the processor."""


@st.kernel
def transpose(x: Global[f32], out: Global[f32], width: i32, PITCH: Const) -> None:
    """out = x transposed, width x width, by tiles of 32 x 32 in shared memory; a pitch of 32 conflicts, 33 does not."""
    tile = st.shared(f32, 32, PITCH)
    column = st.block.x * 32 + st.thread.x
    for r in range(st.thread.y, 32, 8):
        tile[r, st.thread.x] = x[(st.block.y * 32 + r) * width + column]
    st.sync()
    column = st.block.y * 32 + st.thread.x
    for r in range(st.thread.y, 32, 8):
        out[(st.block.x * 32 + r) * width + column] = tile[st.thread.x, r]


@st.kernel
def block_sum(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """out[b] = the sum of block b's slice of x, by a tree with half of the threads in each iteration."""
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


def _transpose_loop(x: Floats, out: Floats, width: int) -> None:
    """Transpose by tiles as the kernel; a loop by rows would miss the cache and make any emulator appear fast."""
    for top in range(0, width, 32):
        for left in range(0, width, 32):
            for row in range(top, top + 32):
                for column in range(left, left + 32):
                    out[column * width + row] = x[row * width + column]


def _block_sum_loop(x: Floats, out: Floats, block: int) -> None:
    for b in range(len(out)):
        total = np.float32(0)
        for i in range(b * block, (b + 1) * block):
            total += x[i]
        out[b] = total


transpose_loop: Callable[[Floats, Floats, int], None] = njit()(_transpose_loop)
block_sum_loop: Callable[[Floats, Floats, int], None] = njit()(_block_sum_loop)


@dataclass(frozen=True)
class Size:
    """Problem size: reads x haplotypes pairs; side x side elements, side a multiple of 32."""

    reads: int
    haplotypes: int
    side: int


FULL = Size(64, 64, 1024)
SMALL = Size(8, 4, 64)
"""Size for interpreters."""


@dataclass(frozen=True)
class Work:
    """One row of the table.

    elements: of `unit`, that one launch computes. request: makes the launch's request, arguments and all.
    scalar: does the same in one thread of scalar code.
    """

    name: str
    unit: str
    elements: int
    request: Callable[[], Request]
    scalar: Callable[[], object]


def pairs(size: Size) -> Problem:
    """Return the pair-HMM problem of a size: one record, reads of 113 to 127 bases, haplotypes of about 250."""
    return generate(
        1,
        records=1,
        reads=(size.reads, size.reads),
        haplotypes=(size.haplotypes, size.haplotypes),
        read_length=(113, 127),
        haplotype_length=(250, 250),
        continuation=(CONTINUATION, CONTINUATION),
    )


def matrix(size: Size) -> Floats:
    """Return side * side random elements."""
    return np.random.default_rng(1).random(size.side * size.side, np.float32)


def works(size: Size) -> list[Work]:
    """Return all workloads: the first launch of each pair-HMM variant in float, the transposes, the reduction."""
    family, problem = find_family("pairhmm"), pairs(size)
    workloads = [
        Work(
            name, "cells", problem.cells, partial(first_request, family, name, problem), partial(family.oracle, problem)
        )
        for name in family.variants
    ]
    x, tiles = matrix(size), size.side // 32
    out, sums = np.empty_like(x), np.empty(len(x) // BLOCK, np.float32)

    def request(kernel: st.Kernel, grid: Any, block: Any, length: int, **more: int) -> Callable[[], Request]:
        args = {"x": x, "out": st.empty(length, "f32"), **more}
        return partial(prepare_request, kernel, grid=grid, block=block, args=args)

    for pitch in (33, 32):
        launch = request(transpose, (tiles, tiles), (32, 8), len(x), width=size.side, PITCH=pitch)
        looped = partial(transpose_loop, x, out, size.side)
        workloads.append(Work(f"transpose, pitch {pitch}", "elements", len(x), launch, looped))
    launch = request(block_sum, len(sums), BLOCK, len(sums), BLOCK=BLOCK)
    return [*workloads, Work("block sum", "elements", len(x), launch, partial(block_sum_loop, x, sums, BLOCK))]
