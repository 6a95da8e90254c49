"""Barriers and warp operations that some threads do not reach."""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32, i32

from .pair import X, pair

OUT = st.zeros(128, "i32")


@pair("barrier", x=X)
@st.kernel
def barrier_in_a_divergent_branch(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    if t < 40:
        tile[t] = x[t]
        if not FIXED:
            st.sync()
    if FIXED:
        st.sync()
    if t < 39:
        out[t] = tile[t] if not FIXED else tile[t + 1]


@pair("barrier", device=st.devices.K40, x=X)  # from 7.0 on CUDA counts the threads that have not returned
@st.kernel
def early_return_before_the_barrier(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    if not FIXED and t >= 50:
        return
    if t < 50:
        tile[t] = x[t]
    st.sync()
    if t < 50:
        out[t] = tile[49 - t]


@pair("barrier", x=X)
@st.kernel
def turns_by_warp(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    for turn in range(2 if FIXED else st.warp + 1):
        st.sync()
    out[t] = x[t]


@pair("barrier", x=X)
@st.kernel
def a_barrier_in_each_arm(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    if t % 2 == 0:
        out[t] = x[t]
        if not FIXED:
            st.sync()
    else:
        out[t] = -x[t]
        if not FIXED:
            st.sync()
    if FIXED:
        st.sync()


@pair("barrier", x=X)
@st.kernel
def break_out_of_a_barrier_loop(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    for turn in range(4):
        if not FIXED and x[t] > 60:
            break
        st.sync()
    out[t] = x[t]


@pair("barrier", x=X)
@st.kernel
def count_of_a_part_of_the_block(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    count = 0
    if FIXED:
        count = st.sync_count(t < 10)
    elif t < 10:
        count = st.sync_count(True)
    out[t] = f32(count)


@pair("convergence", block=32, out=OUT)
@st.kernel
def shuffle_in_a_divergent_branch(out: Global[i32], FIXED: Const) -> None:
    lane = st.lane
    value = lane
    if FIXED or lane < 16:
        value = st.shuffle_down(value, 1)
    out[lane] = value


@pair("convergence", block=32, out=OUT)
@st.kernel
def shuffle_reads_a_lane_that_left(out: Global[i32], FIXED: Const) -> None:
    lane = st.lane
    value = lane
    if lane < 16:
        value = st.shuffle(value, 15 if FIXED else 20, mask=0xFFFF)
    out[lane] = value


@pair("convergence", block=32, out=OUT)
@st.kernel
def vote_on_a_partial_mask(out: Global[i32], FIXED: Const) -> None:
    lane = st.lane
    if lane < 8:
        out[lane] = i32(st.ballot(True, mask=0xFF if FIXED else 0x0F))


@pair("convergence", block=32, out=OUT)
@st.kernel
def vote_of_all_in_a_branch(out: Global[i32], FIXED: Const) -> None:
    lane = st.lane
    if lane % 2 == 0:
        here = st.any(lane == 4, mask=0x55555555) if FIXED else st.any(lane == 4)
        out[lane] = 1 if here else 0


@pair("convergence", block=32, out=OUT)
@st.kernel
def syncwarp_of_lanes_elsewhere(out: Global[i32], FIXED: Const) -> None:
    lane = st.lane
    if lane < 16:
        st.syncwarp(0x0000FFFF if FIXED else 0x00FFFFFF)
    out[lane] = 1


@pair("convergence", block=32, out=OUT)
@st.kernel
def match_in_a_loop_that_lanes_leave(out: Global[i32], FIXED: Const) -> None:
    lane = st.lane
    for turn in range(4):
        if not FIXED and turn > lane // 8:
            break
        out[lane] = i32(st.match_any(lane % 4) & 0xFF)
