"""Kernels with one mistake each, and their fixed twins."""

from __future__ import annotations

import simtbed as st
from simtbed import Global, f32, i32


@st.kernel
def halo_too_far(x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    out[t] = x[t] + x[t + 1]


@st.kernel
def halo(x: Global[f32], out: Global[f32]) -> None:
    t = st.thread.x
    right = x[t + 1] if t + 1 < len(x) else f32(0)
    out[t] = x[t] + right


@st.kernel
def tree_too_wide(x: Global[f32], out: Global[f32]) -> None:
    partial = st.shared(f32, 64)
    t = st.thread.x
    partial[t] = x[st.block.x * 64 + t]
    st.sync()
    width = 32
    while width > 0:
        if t <= width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


@st.kernel
def tree_over_the_end(out: Global[f32]) -> None:
    partial = st.shared(f32, 64)
    t = st.thread.x
    width = 32
    partial[t] = f32(1)
    st.sync()
    partial[t] += partial[t + width]
    out[t] = partial[t]


@st.kernel
def negative_index(x: Global[f32], out: Global[f32]) -> None:
    i = st.lane - 1
    out[st.lane] = x[i]


@st.kernel
def barrier_in_a_branch(out: Global[i32]) -> None:
    if st.thread.x < 40:
        st.sync()
    out[st.thread.x] = 1


@st.kernel
def barrier_beside_a_branch(out: Global[i32]) -> None:
    if st.thread.x < 40:
        out[st.thread.x] = 1
    st.sync()


@st.kernel
def barrier_by_warp(out: Global[i32]) -> None:
    for turn in range(st.warp + 1):
        st.sync()
    out[st.thread.x] = 1


@st.kernel
def spin(flag: Global[i32], out: Global[i32]) -> None:
    if st.thread.x == 0:
        while flag[0] == 0:
            out[1] = 7
    out[0] = 5


@st.kernel
def shuffle_in_a_branch(out: Global[i32]) -> None:
    value = st.lane
    if st.lane < 16:
        value = st.shuffle_down(value, 1)
    out[st.lane] = value


@st.kernel
def shuffle_beside_a_branch(out: Global[i32]) -> None:
    value = st.lane
    moved = st.shuffle_down(value, 1)
    if st.lane < 16:
        value = moved
    out[st.lane] = value


@st.kernel
def reads_an_inactive_lane(out: Global[i32]) -> None:
    value = st.lane
    if st.lane < 16:
        value = st.shuffle(value, 20, mask=0xFFFF)
    out[st.lane] = value


@st.kernel
def syncwarp_of_others(out: Global[i32]) -> None:
    if st.lane < 16:
        st.syncwarp(0xFF0000FF)
    out[st.lane] = 1


@st.kernel
def outside_its_own_mask(out: Global[i32]) -> None:
    if st.lane < 8:
        out[st.lane] = i32(st.ballot(True, mask=0x0F))


@st.kernel
def assertion_fails(out: Global[i32]) -> None:
    assert st.thread.x < 70, "only 70 threads"
    out[st.thread.x] = 1
