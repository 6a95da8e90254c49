"""Words read before anything was written to them."""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32, float4, i32

from .pair import I, X, pair


@pair("uninitialised", x=X)
@st.kernel
def shared_tile_half_filled(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    if t < (64 if FIXED else 48):
        tile[t] = x[t]
    st.sync()
    out[t] = tile[63 - t]


@pair("uninitialised", x=X)
@st.kernel
def halo_cells_forgotten(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    row = st.shared(f32, 66)
    t = st.thread.x
    row[t + 1] = x[t]
    if FIXED and t < 2:
        row[t * 65] = 0
    st.sync()
    out[t] = row[t] + row[t + 1] + row[t + 2]


@pair("uninitialised", x=I)
@st.kernel
def histogram_not_cleared(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    bins = st.shared(i32, 8)
    t = st.thread.x
    if FIXED and t < 8:
        bins[t] = 0
    st.sync()
    st.atomic_add(bins, x[t] % 8, 1)
    st.sync()
    if t < 8:
        out[t] = f32(bins[t])


@pair("uninitialised", x=X)
@st.kernel
def local_table_partly_set(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    own = st.local(f32, 4)
    for k in range(4 if FIXED else 3):
        own[k] = x[t] * f32(k)
    out[t] = own[t % 4]


@pair("uninitialised", x=X)
@st.kernel
def register_set_in_one_arm(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    acc = st.registers(f32, 2)
    acc[0] = x[t]
    if FIXED or x[t] > 10:
        acc[1] = x[t] * 2
    out[t] = acc[0] + acc[1]


@pair("uninitialised", x=X)
@st.kernel
def accumulator_without_a_start(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    sums = st.registers(f32, 4)
    if FIXED:
        for k in st.unroll(range(4)):
            sums[k] = 0
    for turn in range(3):
        for k in st.unroll(range(4)):
            sums[k] += x[t + turn + k]
    out[t] = sums[0] + sums[3]


@pair("uninitialised", x=X, out=st.empty(64, "f32"))
@st.kernel
def output_summed_into(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """An output buffer on a GPU has no initial contents."""
    t = st.thread.x
    if FIXED:
        out[t] = x[t]
    else:
        out[t] += x[t]


@pair("uninitialised", x=X, work=st.empty(64, "f32"))
@st.kernel
def workspace_read_too_far(x: Global[f32], work: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    if t < 63 or FIXED:
        work[t] = x[t]
    st.sync()
    out[t] = work[t]


@pair("uninitialised", x=I, bins=st.empty(8, "i32"))
@st.kernel
def counters_in_global_memory_not_cleared(x: Global[i32], bins: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """The counters are created as `zeros`, or the kernel clears them."""
    t = st.thread.x
    if FIXED and t < 8:
        bins[t] = 0
    st.sync()
    st.atomic_add(bins, x[t] % 8, 1)
    st.sync()
    if t < 8:
        out[t] = f32(bins[t])


@pair("uninitialised", x=I, locks=st.empty(8, "i32"))
@st.kernel
def lock_never_opened(x: Global[i32], locks: Global[i32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    if FIXED and t < 8:
        locks[t] = 0
    st.sync()
    taken = st.compare_swap(locks, x[t] % 8, 0, 1)
    out[t] = f32(taken)


@pair("uninitialised", x=X)
@st.kernel
def vectors_in_shared_memory(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(float4, 64)
    t = st.thread.x
    if t % 4 != 3 or FIXED:
        tile[t] = float4(x[t], 0, 0, 0)
    st.sync()
    v = tile[t ^ 1]
    out[t] = v.x


@pair("uninitialised", grid=3, x=X)
@st.kernel
def left_over_from_another_block(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """Shared memory with the leftover values of a previous block is uninitialised."""
    tile = st.shared(f32, 64)
    t = st.thread.x
    if st.block.x == 0 or FIXED:
        tile[t] = x[t]
    st.sync()
    if st.block.x == 1:
        out[t] = tile[t]


@pair("uninitialised", x=X)
@st.kernel
def dynamic_loop_leaves_a_hole(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    ring = st.shared(f32, 96)
    t = st.thread.x
    for k in range(t, 96 if FIXED else 90, 64):
        ring[k] = x[k]
    st.sync()
    out[t] = ring[t + 32]
