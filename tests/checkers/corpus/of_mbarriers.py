"""Barriers in shared memory and bulk copies: initialisation, counts, and accesses that do not wait."""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32

from .pair import X, pair


@pair("race", x=X)
@st.kernel
def barrier_used_before_the_block_synchronised(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    barriers = st.shared(st.u64, 1)
    if st.thread.x == 0:
        st.mbarrier_init(barriers, 0, 64)
    if FIXED:
        st.sync()
    state = st.mbarrier_arrive(barriers, 0)
    while not st.mbarrier_test_wait(barriers, 0, state):
        pass
    out[st.thread.x] = x[st.thread.x]


@pair("race", x=X)
@st.kernel
def consumer_without_a_wait(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A warp fills a buffer, another one reads it."""
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f32, 32)
    if st.thread.x == 0:
        st.mbarrier_init(barriers, 0, 32)
    st.sync()
    if st.warp == 0:
        buffer[st.lane] = x[st.lane]
        st.mbarrier_arrive(barriers, 0)
    else:
        if FIXED:
            while not st.mbarrier_try_wait_parity(barriers, 0, 0):
                pass
        out[st.lane] = buffer[31 - st.lane]


@pair("mbarrier", x=X)
@st.kernel
def more_arrivals_than_the_count(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """The bytes that the phase expects arrive last."""
    barriers = st.shared(st.u64, 1)
    if st.thread.x == 0:
        st.mbarrier_init(barriers, 0, 65 if FIXED else 64)
    st.sync()
    if st.thread.x == 0:
        st.mbarrier_arrive_expect_tx(barriers, 0, 4)
    st.syncwarp()
    st.mbarrier_arrive(barriers, 0)
    if st.thread.x == 63:
        st.mbarrier_complete_tx(barriers, 0, 4)
    out[st.thread.x] = x[st.thread.x]


@pair("step limit", x=X)
@st.kernel
def bytes_that_nothing_completes(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    barriers = st.shared(st.u64, 2)
    if st.thread.x < 2:
        st.mbarrier_init(barriers, st.thread.x, 64)
    st.sync()
    if not FIXED and st.thread.x == 0:
        st.mbarrier_expect_tx(barriers, 1, 16)
    state = st.mbarrier_arrive(barriers, 1)
    while not st.mbarrier_test_wait(barriers, 1, state):
        pass
    out[st.thread.x] = x[st.thread.x]


@pair("race", x=X)
@st.kernel
def bulk_copy_that_is_not_waited_for(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """The block synchronises before the copy, and reads after it."""
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f32, 64)
    if st.thread.x == 0:
        st.mbarrier_init(barriers, 0, 1)
        st.fence_async()
    st.sync()
    if st.thread.x == 0:
        st.mbarrier_arrive_expect_tx(barriers, 0, 256)
        st.bulk_copy(buffer, 0, x, 0, 256, barriers, 0)
    if FIXED:
        while not st.mbarrier_try_wait_parity(barriers, 0, 0):
            pass
    out[st.thread.x] = buffer[63 - st.thread.x]


@pair("step limit", x=X)
@st.kernel
def more_bytes_expected_than_copied(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    barriers = st.shared(st.u64, 1)
    buffer = st.shared(f32, 64)
    if st.thread.x == 0:
        st.mbarrier_init(barriers, 0, 1)
        st.fence_async()
    st.sync()
    if st.thread.x == 0:
        st.mbarrier_arrive_expect_tx(barriers, 0, 256 if FIXED else 512)
        st.bulk_copy(buffer, 0, x, 0, 256, barriers, 0)
    while not st.mbarrier_try_wait_parity(barriers, 0, 0):
        pass
    out[st.thread.x] = buffer[63 - st.thread.x]


@pair("race", x=X)
@st.kernel
def buffer_filled_again_before_the_copy_has_read_it(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    buffer = st.shared(f32, 64)
    t = st.thread.x
    for k in range(2):
        buffer[t] = x[64 * k + t]
        st.fence_async()
        st.sync()
        if t == 0:
            st.bulk_store(out, 64 * k, buffer, 0, 256)
            st.bulk_commit()
            if FIXED:
                st.bulk_wait_read()
        st.sync()
    st.bulk_wait()


@pair("race", x=X)
@st.kernel
def bulk_store_without_a_fence(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    buffer = st.shared(f32, 64)
    t = st.thread.x
    buffer[t] = x[t]
    if FIXED:
        st.fence_async()
    st.sync()
    if t == 0:
        st.bulk_store(out, 0, buffer, 0, 256)
        st.bulk_commit()
    st.bulk_wait()


@pair("race", grid=2, x=X)
@st.kernel
def sum_of_blocks_by_copies(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """Both blocks write to the same elements; a reduction is atomic."""
    buffer = st.shared(f32, 64)
    t = st.thread.x
    buffer[t] = x[64 * st.block.x + t]
    st.fence_async()
    st.sync()
    if t == 0:
        if FIXED:
            st.bulk_store(out, 0, buffer, 0, 256, reduce="add")
        else:
            st.bulk_store(out, 0, buffer, 0, 256)
        st.bulk_commit()
    st.bulk_wait()
