"""Blocks of a cluster: accesses to the shared memory of each other without an order, and of blocks that do not run."""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32, i32, u64

from .pair import X, pair


@pair("race", grid=4, cluster=2, block=32, x=X)
@st.kernel
def block_barrier_in_place_of_one_of_the_cluster(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A barrier of the block does not order the threads of another one."""
    own = st.shared(f32, 32)
    i = st.block.x * 32 + st.thread.x
    own[st.thread.x] = f32(0)
    st.cluster_sync()
    st.map_shared_rank(own, st.cluster_rank ^ 1)[st.thread.x] = x[i]
    if FIXED:
        st.cluster_sync()
    else:
        st.sync()
    out[i] = own[st.thread.x]
    st.cluster_sync()


@pair("race", grid=4, cluster=2, block=32, x=X)
@st.kernel
def access_between_arrival_and_wait(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A write after the arrival is not ordered before what follows the wait."""
    own = st.shared(f32, 32)
    i = st.block.x * 32 + st.thread.x
    own[st.thread.x] = x[i]
    st.cluster_arrive()
    if not FIXED:
        own[st.thread.x] = x[i] + 1
    st.cluster_wait()
    other = st.map_shared_rank(own, st.cluster_rank ^ 1)[st.thread.x]
    st.cluster_sync()
    out[i] = other


@pair("race", grid=2, cluster=2, block=32, x=X)
@st.kernel
def read_of_a_block_that_may_have_ended(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    own = st.shared(f32, 32)
    i = st.block.x * 32 + st.thread.x
    own[st.thread.x] = x[i]
    st.cluster_sync()
    out[i] = st.map_shared_rank(own, st.cluster_rank ^ 1)[st.thread.x]
    if FIXED:
        st.cluster_sync()


@pair("race", grid=2, cluster=2, block=32)
@st.kernel
def write_to_a_block_that_may_not_have_started(out: Global[f32], FIXED: Const) -> None:
    own = st.shared(f32, 32)
    if FIXED:
        st.cluster_sync()
    st.map_shared_rank(own, st.cluster_rank ^ 1)[st.thread.x] = f32(st.thread.x)
    st.cluster_sync()
    out[st.block.x * 32 + st.thread.x] = own[st.thread.x]


@pair("bounds", grid=4, cluster=2, block=32, x=X)
@st.kernel
def rank_of_no_block(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    own = st.shared(f32, 32)
    i = st.block.x * 32 + st.thread.x
    own[st.thread.x] = x[i]
    st.cluster_sync()
    rank = st.cluster_rank + 1
    if FIXED:
        rank = rank % st.cluster_size
    right = st.map_shared_rank(own, rank)[st.thread.x]
    st.cluster_sync()
    out[i] = right


@pair("barrier", grid=4, cluster=2, block=32)
@st.kernel
def barrier_of_half_a_cluster(out: Global[f32], FIXED: Const) -> None:
    if FIXED or st.cluster_rank == 0:
        st.cluster_sync()
    out[st.block.x * 32 + st.thread.x] = f32(1)


@pair("race", grid=2, cluster=2, block=32, x=X)
@st.kernel
def arrival_before_the_data(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A block stores data in another one, and arrives at a barrier there; lanes are not in step without a `syncwarp`."""
    bar = st.shared(u64, 1)
    data = st.shared(f32, 32)
    if st.thread.x == 0:
        st.mbarrier_init(bar, 0, 1)
    st.cluster_sync()
    if st.cluster_rank == 0:
        st.map_shared_rank(data, 1)[st.thread.x] = x[st.thread.x]
        if FIXED:
            st.syncwarp()
        if st.thread.x == 0:
            st.mbarrier_arrive(st.map_shared_rank(bar, 1), 0)
    else:
        while not st.mbarrier_try_wait_parity(bar, 0, 0):
            pass
        out[st.thread.x] = data[st.thread.x]
    st.cluster_sync()


@pair("race", grid=4, cluster=2, block=32, x=X)
@st.kernel
def barrier_of_another_cluster(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A barrier of a cluster does not order the blocks of two clusters."""
    i = st.block.x * 32 + st.thread.x
    x[i] = f32(i)
    st.cluster_sync()
    span = 64 if FIXED else 128
    out[i] = x[i // span * span + (i + 32) % span]


@pair("uninitialised", grid=4, cluster=2, block=32, x=X)
@st.kernel
def array_that_another_block_does_not_write(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    own = st.shared(i32, 32)
    i = st.block.x * 32 + st.thread.x
    if FIXED or st.cluster_rank == 0:
        own[st.thread.x] = i
    st.cluster_sync()
    right = st.map_shared_rank(own, 1)[st.thread.x]
    st.cluster_sync()
    out[i] = x[i] + f32(right)
