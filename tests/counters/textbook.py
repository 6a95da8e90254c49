"""Kernels whose counters everybody can work out on paper."""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32, i32


@st.kernel
def transpose_naive(x: Global[f32], out: Global[f32], N: Const) -> None:
    column = st.block.x * 32 + st.thread.x
    for row in range(st.block.y * 32 + st.thread.y, st.block.y * 32 + 32, 8):
        out[column * N + row] = x[row * N + column]


@st.kernel
def transpose_shared(x: Global[f32], out: Global[f32], N: Const, PAD: Const) -> None:
    tile = st.shared(f32, 32, 32 + PAD)
    column = st.block.x * 32 + st.thread.x
    for r in range(st.thread.y, 32, 8):
        tile[r, st.thread.x] = x[(st.block.y * 32 + r) * N + column]
    st.sync()
    column = st.block.y * 32 + st.thread.x
    for r in range(st.thread.y, 32, 8):
        out[(st.block.x * 32 + r) * N + column] = tile[st.thread.x, r]


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
    """The first threads work, on elements ever further apart: bank conflicts."""
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
def gather(x: Global[f32], index: Global[i32], out: Global[f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[index[i]]


@st.kernel
def grouped_copy(x: Global[f32], out: Global[f32], GROUP: Const) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i // GROUP]
