"""Waits for later lanes, warps and blocks: each ends on a GPU in the corrected kernel, and orders what it waits for."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32

from .pair import X, pair

FLAG = np.zeros(2, np.int32)
DATA = np.zeros(256, np.float32)


@pair("step limit", grid=2, x=X, flag=FLAG, data=DATA)
@st.kernel
def flag_of_another_element(
    x: Global[f32], flag: Global[i32], data: Global[f32], out: Global[f32], FIXED: Const
) -> None:
    """The first block waits for the second one, which sets another flag."""
    if st.thread.x == 0:
        if st.block.x == 0:
            while st.load_acquire(flag, 0) == 0:
                pass
            out[0] = data[0]
        else:
            data[0] = x[0]
            st.store_release(flag, 0 if FIXED else 1, 1)


@pair("race", grid=4, x=X, flag=FLAG, data=DATA)
@st.kernel
def barrier_of_blocks_without_a_fence(
    x: Global[f32], flag: Global[i32], data: Global[f32], out: Global[f32], FIXED: Const
) -> None:
    """Resident blocks meet at a counter; each reads what the next one wrote before."""
    t = st.thread.x
    data[st.block.x * 64 + t] = x[t]
    if FIXED:
        st.fence()
    st.sync()
    if t == 0:
        st.atomic_add(flag, 0, 1)
        while st.volatile_load(flag, 0) < 4:
            pass
        st.fence()
    st.sync()
    if st.block.x < 2:
        out[st.block.x * 64 + t] = data[(st.block.x + 1) % 4 * 64 + t]


@pair("convergence", block=32, x=X)
@st.kernel
def syncwarp_in_one_arm(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """The lanes of both arms meet at a `syncwarp` of each arm."""
    row = st.shared(f32, 32)
    lane = st.lane
    if lane % 2 == 0:
        row[lane] = x[lane]
        st.syncwarp()
        out[lane] = row[lane ^ 1] if FIXED else row[lane]
    else:
        row[lane] = 2 * x[lane]
        if FIXED:
            st.syncwarp()
        out[lane] = row[lane ^ 1] if FIXED else x[lane]


@pair("race", x=X, flag=FLAG, data=DATA)
@st.kernel
def spin_lock_without_a_fence(
    x: Global[f32], flag: Global[i32], data: Global[f32], out: Global[f32], FIXED: Const
) -> None:
    """Each lane takes the lock: the others of its warp spin meanwhile."""
    while st.compare_swap(flag, 0, 0, 1) != 0:
        pass
    if FIXED:
        st.fence()
    data[0] += x[st.thread.x]
    if FIXED:
        st.fence()
    st.atomic_exchange(flag, 0, 0)


@pair("unacquired race", x=X, flag=FLAG, data=DATA)
@st.kernel
def spin_lock_that_only_releases(
    x: Global[f32], flag: Global[i32], data: Global[f32], out: Global[f32], FIXED: Const
) -> None:
    """A fence before the release alone: the next owner may read the sum from its L1 cache."""
    while st.compare_swap(flag, 0, 0, 1) != 0:
        pass
    if FIXED:
        st.fence()
    data[0] += x[st.thread.x]
    st.fence()
    st.atomic_exchange(flag, 0, 0)
