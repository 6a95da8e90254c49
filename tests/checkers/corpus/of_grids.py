"""Races between blocks, ordered only by the end of the launch or by a fence and an atomic operation; results
that depend on the order of blocks."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32

from .pair import I, X, pair


@pair("race", grid=4, x=X)
@st.kernel
def blocks_share_an_output(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    i = (st.block.x * 64 + st.thread.x) % 128
    if not FIXED or st.block.x < 2:
        out[i] = x[i] + f32(st.block.x)


@pair("race", grid=4, x=X, total=np.zeros(1, np.float32))
@st.kernel
def sum_into_one_cell(x: Global[f32], total: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    if t == 0:
        if FIXED:
            st.atomic_add(total, 0, x[st.block.x])
        else:
            total[0] += x[st.block.x]


@pair("race", grid=2, x=X, table=np.zeros(64, np.float32))
@st.kernel
def table_made_by_the_first_block(x: Global[f32], table: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    if st.block.x == 0 and not FIXED:
        table[t] = x[t] * 2
    st.sync()
    out[st.block.x * 64 + t] = x[t] * 2 if FIXED else table[t]


@pair("race", grid=4, x=X, partial=np.zeros(4, np.float32), done=np.zeros(1, np.int32))
@st.kernel
def last_block_without_a_fence(
    x: Global[f32], partial: Global[f32], done: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """The last block to increment the counter adds the partial results of the others; a fence must precede the increment."""
    last = st.shared(i32, 1)
    t = st.thread.x
    if t == 0:
        partial[st.block.x] = x[st.block.x]
        if FIXED:
            st.fence()
        last[0] = st.atomic_add(done, 0, 1)
    st.sync()
    if last[0] == 3 and t == 0:
        out[0] = partial[0] + partial[1] + partial[2] + partial[3]


@pair("race", grid=2, x=X, cell=np.zeros(1, np.float32), flag=np.zeros(1, np.int32))
@st.kernel
def flag_between_blocks(x: Global[f32], cell: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if st.thread.x == 0:
        if st.block.x == 0:
            cell[0] = x[7]
            st.fence()
            if FIXED:
                st.atomic_exchange(flag, 0, 1)
            else:
                flag[0] = 1
        elif FIXED:
            if st.atomic_add(flag, 0, 0) == 1:
                st.fence()
                out[0] = cell[0]
        elif flag[0] == 1:
            out[0] = cell[0]


@pair("race", grid=2, x=X, cell=np.zeros(1, np.float32), flag=np.zeros(1, np.int32))
@st.kernel
def fence_of_the_block_only(
    x: Global[f32], cell: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    if st.thread.x == 0:
        if st.block.x == 0:
            cell[0] = x[7]
            if FIXED:
                st.fence()
            else:
                st.fence_block()
            st.atomic_exchange(flag, 0, 1)
        elif st.atomic_add(flag, 0, 0) == 1:
            st.fence()
            out[0] = cell[0]


@pair("race", grid=4, x=X)
@st.kernel
def halo_written_by_two_blocks(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    at = st.block.x * 30 + t
    if t < (30 if FIXED else 32) and at < 120:
        out[at] = x[at] * f32(st.block.x + 1)


@pair("race", grid=2, x=X, row=X.copy())
@st.kernel
def in_place_stencil(x: Global[f32], row: Global[f32], out: Global[f32], FIXED: Const) -> None:
    i = st.block.x * 64 + st.thread.x
    left = f32(0)
    if i > 0:
        left = x[i - 1] if FIXED else row[i - 1]
    if FIXED:
        out[i] = left + x[i]
    else:
        st.sync()
        row[i] = left + x[i]


@pair("race", grid=3, block=32, x=I, count=np.zeros(1, np.int32))
@st.kernel
def queue_length_read_plainly(x: Global[i32], count: Global[i32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    if t == 0:
        at = 0
        if FIXED:
            at = st.atomic_add(count, 0, 1)
        else:
            at = count[0]
            st.atomic_add(count, 0, 1)
        st.atomic_max(count, 0, at)


@pair("schedule", grid=4, schedule=1, x=X, count=np.zeros(1, np.int32))
@st.kernel
def places_by_ticket(x: Global[f32], count: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """There is no race, but the order of the output is not determined."""
    if st.thread.x == 0:
        place = st.atomic_add(count, 0, 1)
        out[st.block.x if FIXED else place] = x[st.block.x]


@pair("schedule", grid=1, schedule=3, block=128, out=st.zeros(1, "i32"))
@st.kernel
def last_warp_wins(out: Global[i32], FIXED: Const) -> None:
    if st.lane == 0:
        if FIXED:
            st.atomic_max(out, 0, st.warp)
        else:
            st.atomic_exchange(out, 0, st.warp)


@pair("race", grid=2, x=X, cooperative=True)
@st.kernel
def neighbours_without_a_grid_barrier(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A block barrier orders the threads of one block."""
    i = st.block.x * 64 + st.thread.x
    x[i] = f32(i)
    if FIXED:
        st.grid_sync()
    else:
        st.sync()
    right = x[(i + 64) % 128]
    st.grid_sync()
    out[i] = right


@pair("race", grid=2, x=X, cooperative=True)
@st.kernel
def turns_with_half_their_grid_barriers(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    i = st.block.x * 64 + st.thread.x
    for turn in range(3):
        left = x[(i + 64) % 128]
        if FIXED:
            st.grid_sync()
        x[i] = left + 1
        st.grid_sync()
    out[i] = x[i]


@pair("barrier", grid=3, x=X, cooperative=True)
@st.kernel
def block_that_returns_before_the_grid_barrier(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    i = st.block.x * 64 + st.thread.x
    if i >= 128 and not FIXED:
        return
    st.grid_sync()
    if i < 128:
        out[i] = x[i]


@pair("uninitialised", grid=2, x=X, cooperative=True)
@st.kernel
def shared_memory_of_another_block(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A block's shared memory outlives a grid barrier, and is no other block's."""
    kept = st.shared(f32, 64)
    t = st.thread.x
    if FIXED or st.block.x == 0:
        kept[t] = x[t]
    st.grid_sync()
    out[st.block.x * 64 + t] = kept[t]


@pair("race", grid=2, x=X, left=np.zeros(64, np.float32), flag=np.zeros(1, np.int32))
@st.kernel
def hand_over_without_a_release(
    x: Global[f32], left: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """A block leaves a value and raises a flag; a volatile store orders nothing."""
    t = st.thread.x
    if st.block.x == 0:
        if t == 0:
            left[0] = x[0]
            if FIXED:
                st.store_release(flag, 0, 1)
            else:
                st.volatile_store(flag, 0, 1)
    elif t == 0 and st.load_acquire(flag, 0) == 1:
        out[0] = left[0]


@pair("race", grid=2, x=X, left=np.zeros(64, np.float32), flag=np.zeros(1, np.int32))
@st.kernel
def release_to_its_own_block(
    x: Global[f32], left: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """A release of the scope of a block orders nothing for another one."""
    t = st.thread.x
    if st.block.x == 0:
        if t == 0:
            left[0] = x[0]
            if FIXED:
                st.atomic_exchange(flag, 0, 1, order="release")
            else:
                st.atomic_exchange(flag, 0, 1, order="release", scope="block")
    elif t == 0 and st.load_acquire(flag, 0) == 1:
        out[0] = left[0]


@pair("race", grid=2, x=X, total=np.zeros(1, np.int32))
@st.kernel
def blocks_count_by_block_scope(x: Global[f32], total: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if FIXED:
        st.atomic_add(total, 0, 1)
    else:
        st.atomic_add(total, 0, 1, scope="block")


@pair("race", grid=2, x=X, flag=np.zeros(1, np.int32))
@st.kernel
def flag_read_plainly(x: Global[f32], flag: Global[i32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    if st.block.x == 0 and t == 0:
        st.volatile_store(flag, 0, 1)
    elif t == 0:
        seen = st.volatile_load(flag, 0) if FIXED else flag[0]
        out[0] = f32(seen)


@pair("race", grid=4, block=32, count=st.zeros(1, "i32"))
@st.kernel
def counter_reset_by_another_block_than_the_last(count: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """The block that counts last may reset the counter; after any other one, blocks still count."""
    if st.thread.x == 0:
        before = st.atomic_add(count, 0, 1)
        if before == st.grid_dim.x - 1 if FIXED else before == 2:
            count[0] = 0
            out[0] = 1


@pair("race", total=st.zeros(1, "i32"))
@st.kernel
def value_read_before_a_compare_and_swap(total: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """A plain read may propose the first swap, but its value is no result."""
    old = st.volatile_load(total, 0) if FIXED else total[0]
    out[st.thread.x] = f32(old)
    while True:
        expected = old
        old = st.compare_swap(total, 0, expected, expected + 1)
        if old == expected:
            break
