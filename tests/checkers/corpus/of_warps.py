"""Races between the lanes of a warp, which are not in step from compute capability 7.0 on, and two algorithms that
assume lockstep: GAMA's merge of two polynomials by a warp, and CUDA-EC's vote."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32, u8

from .pair import I, X, pair


@pair("race", x=X)
@st.kernel
def last_warp_of_a_reduction(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    partial = st.shared(f32, 64)
    t = st.thread.x
    partial[t] = x[t]
    st.sync()
    if t < 32:
        for k in range(6):
            value = partial[t] + partial[(t + (32 >> k)) % 64]
            if FIXED:
                st.syncwarp()
            partial[t] = value
            if FIXED:
                st.syncwarp()
        if t == 0:
            out[0] = partial[0]


@pair("race", x=X)
@st.kernel
def volatile_reduction_of_a_warp(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """Volatile memory was enough for lanes in step."""
    partial = st.shared(f32, 64)
    t = st.thread.x
    partial[t] = x[t]
    st.sync()
    if t < 32:
        for k in range(6):
            value = st.volatile_load(partial, t) + st.volatile_load(partial, t + (32 >> k))
            if FIXED:
                st.syncwarp()
            st.volatile_store(partial, t, value)
            if FIXED:
                st.syncwarp()
        if t == 0:
            out[0] = partial[0]


@pair("race", block=32, x=X)
@st.kernel
def neighbours_in_one_warp(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    row = st.shared(f32, 32)
    lane = st.lane
    row[lane] = x[lane]
    if FIXED:
        st.syncwarp()
    out[lane] = row[31 - lane]


@pair("race", block=32, x=X)
@st.kernel
def a_vote_is_no_fence(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    row = st.shared(f32, 32)
    lane = st.lane
    row[lane] = x[lane]
    if FIXED:
        st.syncwarp()
    some = st.any(x[lane] > 5)
    out[lane] = row[lane ^ 1] if some else f32(0)


@pair("race", block=32, x=X)
@st.kernel
def syncwarp_of_the_wrong_half(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    row = st.shared(f32, 32)
    lane = st.lane
    row[lane] = x[lane]
    if FIXED:
        st.syncwarp()
    elif lane < 16:
        st.syncwarp(0xFFFF)
    else:
        st.syncwarp(0xFFFF0000)
    out[lane] = row[lane ^ 16]


@pair("race", block=32, x=X)
@st.kernel
def leader_writes_and_all_read(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    cell = st.shared(f32, 1)
    lane = st.lane
    if lane == 0:
        cell[0] = x[0] + x[31]
    if FIXED:
        st.syncwarp()
    out[lane] = cell[0]


@pair("race", x=X)
@st.kernel
def scan_of_a_warp(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    row = st.shared(f32, 64)
    t = st.thread.x
    row[t] = x[t]
    for k in range(5):
        distance = 1 << k
        if FIXED:
            st.syncwarp()
        before = row[t - distance] if st.lane >= distance else f32(0)
        if FIXED:
            st.syncwarp()
        row[t] += before
    out[t] = row[t]


@pair("race", block=32, x=X)
@st.kernel
def through_global_memory(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    lane = st.lane
    out[lane] = x[lane]
    if FIXED:
        st.syncwarp()
    out[32 + lane] = out[(lane + 1) % 32]


@pair("race", block=32, x=I)
@st.kernel
def compaction_with_shared_slots(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """Two lanes use the same slot: the mask of the count excludes some lanes."""
    lane = st.lane
    keep = x[lane] % 3 == 0
    found = st.ballot(keep)
    below = (1 << lane) - 1 if lane < 31 else 0x7FFFFFFF
    slot = st.popcount(i32(found) & below)
    if keep:
        out[slot if FIXED else slot // 2] = f32(x[lane])


@pair("race", block=32, out=st.zeros(64, "f64"), f=np.arange(1.0, 34.0), g=np.arange(1.0, 34.0) / 7)
@st.kernel
def gama_merge(f: Global[f64], g: Global[f64], out: Global[f64], FIXED: Const) -> None:
    """h = f x g for 17 coefficients each: a lane has one coefficient of f; in step k all lanes add to the cells at distance k.

    Cells of one step are distinct, those of two steps overlap: the lanes must be synchronised between steps.
    """
    h = st.shared(f64, 64)
    lane = st.lane
    h[lane] = 0
    h[lane + 32] = 0
    st.syncwarp()
    for k in range(17):
        if lane < 17:
            h[lane + k] += f[lane] * g[k]
        if FIXED:
            st.syncwarp()
    st.syncwarp()
    out[lane] = h[lane]


@pair("race", block=32, out=st.zeros(64, "u8"), read=(I % 4).astype(np.uint8), solid=(I % 3 == 0).astype(np.uint8))
@st.kernel
def cuda_ec_vote(read: Global[u8], solid: Global[u8], out: Global[u8], FIXED: Const) -> None:
    """Each lane counts the votes of one position of the k-mer in shared memory; a warp vote decides whether to continue.

    `all` was assumed to be a barrier: on a GPU with lockstep warps it followed the stores of all lanes.
    """
    votes = st.shared(u8, 32)
    lane = st.lane
    votes[lane] = u8(0)
    if FIXED:
        st.syncwarp()
    for p in range(4):
        if lane < 20:
            place = (p + lane) % 32
            mutant = i32(read[place]) + p
            if solid[mutant] != u8(0):
                votes[place] = votes[place] + u8(1)
        done = st.all(solid[p] != u8(0))
        if FIXED:
            st.syncwarp()
        if done:
            break
    if FIXED:
        st.syncwarp()
    out[lane] = votes[31 - lane]
