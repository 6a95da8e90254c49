"""Protocols of threads that communicate: locks, flags, ring buffers, tickets, last blocks, producers and consumers."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32

from .pair import X, pair

CELLS = np.zeros(128, np.float32)
FLAGS = np.zeros(4, np.int32)


# ------------------------------------------------------------------ locks
@pair("unacquired race", grid=2, block=32, flags=FLAGS)
@st.kernel
def lock_tried_until_taken_without_an_acquire(flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """The owner may read the sum of the last one from its L1 cache."""
    taken = False
    while not taken:
        if st.compare_swap(flags, 0, 0, 1) == 0:
            if FIXED:
                st.fence()
            out[0] += 1.0
            st.fence()
            st.atomic_exchange(flags, 0, 0)
            taken = True


@pair("race", grid=2, block=32, flags=FLAGS)
@st.kernel
def lock_released_by_a_plain_store(flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if st.lane == 0:
        while st.compare_swap(flags, 0, 0, 1, order="acquire") != 0:
            pass
        out[0] += 1.0
        if FIXED:
            st.store_release(flags, 0, 0)
        else:
            st.fence()
            flags[0] = 0


@pair("race", grid=2, block=32, flags=FLAGS)
@st.kernel
def sum_behind_the_unlock(flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if st.lane == 0:
        while st.compare_swap(flags, 0, 0, 1, order="acquire") != 0:
            pass
        if FIXED:
            out[0] += 1.0
        st.store_release(flags, 0, 0)
        if not FIXED:
            out[0] += 1.0


@pair("race", grid=2, block=32, flags=FLAGS)
@st.kernel
def lock_of_the_scope_of_a_block(flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """Two blocks share the lock."""
    if st.lane == 0:
        if FIXED:
            while st.compare_swap(flags, 0, 0, 1, order="acquire") != 0:
                pass
            out[0] += 1.0
            st.store_release(flags, 0, 0)
        else:
            while st.compare_swap(flags, 0, 0, 1, order="acquire", scope="block") != 0:
                pass
            out[0] += 1.0
            st.store_release(flags, 0, 0, scope="block")


@pair("schedule", grid=4, block=32, schedule=1, flags=FLAGS)
@st.kernel
def lock_tried_once(flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """A block that does not get the lock does not count."""
    if st.lane == 0:
        trying = True
        while trying:
            if st.compare_swap(flags, 0, 0, 1, order="acquire") == 0:
                out[0] += 1.0
                st.store_release(flags, 0, 0)
                trying = False
            elif not FIXED:
                trying = False


@pair("race", grid=2, block=32, cells=CELLS, flags=FLAGS)
@st.kernel
def sum_read_outside_the_lock(cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if st.lane == 0:
        while st.compare_swap(flags, 0, 0, 1, order="acquire") != 0:
            pass
        cells[0] += 1.0
        if FIXED:
            out[st.block.x] = cells[0]
        st.store_release(flags, 0, 0)
        if not FIXED:
            out[st.block.x] = cells[0]


# ------------------------------------------------------------------ flags
@pair("race", grid=2, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def flag_not_awaited(x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if st.block.x == 0:
        cells[st.lane] = x[st.lane]
        st.fence()
        st.syncwarp()
        if st.lane == 0:
            st.store_release(flags, 0, 1)
    else:
        if FIXED and st.lane == 0:
            while st.load_acquire(flags, 0) == 0:
                pass
        st.syncwarp()
        out[st.lane] = cells[st.lane]


@pair("race", grid=2, block=64, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def flag_awaited_by_one_thread(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """The other threads of the block do not wait for it."""
    t = st.thread.x
    if st.block.x == 0:
        cells[t] = x[t]
        st.sync()
        if t == 0:
            st.store_release(flags, 0, 1)
    else:
        if t == 0:
            while st.load_acquire(flags, 0) == 0:
                pass
        if FIXED:
            st.sync()
        out[t] = cells[t]


@pair("race", grid=2, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def flag_set_before_the_data(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    if st.lane == 0:
        if st.block.x == 0:
            if FIXED:
                cells[0] = x[0]
            st.store_release(flags, 0, 1)
            if not FIXED:
                cells[0] = x[0]
        else:
            while st.load_acquire(flags, 0) == 0:
                pass
            out[0] = cells[0]


@pair("race", grid=2, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def double_checked_flag_without_fences(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """The first block that takes the lock writes the cell; the check outside the lock acquires it."""
    if st.lane == 0:
        made = st.load_acquire(flags, 1) if FIXED else st.volatile_load(flags, 1)
        if made == 0:
            while st.compare_swap(flags, 0, 0, 1, order="acquire") != 0:
                pass
            if st.volatile_load(flags, 1) == 0:
                cells[0] = x[0]
                if FIXED:
                    st.store_release(flags, 1, 1)
                else:
                    st.volatile_store(flags, 1, 1)
            st.store_release(flags, 0, 0)
        out[st.block.x] = cells[0]


# ------------------------------------------------------------------ ring buffers, queues, tickets
@pair("race", grid=2, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def mailbox_freed_before_it_is_read(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """A ring of one slot: the producer waits until the consumer has freed it."""
    if st.lane == 0:
        for n in range(4):
            if st.block.x == 0:
                while n - st.load_acquire(flags, 1) >= 1:
                    pass
                cells[0] = x[n]
                st.store_release(flags, 0, n + 1)
            else:
                while st.load_acquire(flags, 0) <= n:
                    pass
                if FIXED:
                    out[n] = cells[0]
                st.store_release(flags, 1, n + 1)
                if not FIXED:
                    out[n] = cells[0]


@pair("race", grid=2, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def ring_head_moved_before_the_slot_is_full(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    if st.lane == 0:
        if st.block.x == 0:
            if FIXED:
                cells[0] = x[0]
            st.atomic_add(flags, 0, 1, order="release")
            if not FIXED:
                cells[0] = x[0]
        elif st.load_acquire(flags, 0) > 0:
            out[0] = cells[0]


@pair("race", grid=2, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def queue_item_stored_behind_its_count(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """One counter reserves places, the other one counts the full ones."""
    if st.block.x == 0:
        place = st.atomic_add(flags, 0, 1)
        cells[place] = x[st.lane]
        if FIXED:
            st.atomic_add(flags, 1, 1, order="release")
    elif st.lane == 0:
        count = st.load_acquire(flags, 1) if FIXED else st.load_acquire(flags, 0)
        if count == 32:
            out[0] = cells[31]


@pair("race", grid=4, block=32, flags=FLAGS)
@st.kernel
def ticket_passed_on_without_a_release(flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if st.lane == 0:
        ticket = st.atomic_add(flags, 0, 1)
        while st.load_acquire(flags, 1) != ticket:
            pass
        out[0] += 1.0
        if FIXED:
            st.store_release(flags, 1, ticket + 1)
        else:
            st.volatile_store(flags, 1, ticket + 1)


@pair("schedule", grid=4, block=32, schedule=1, flags=FLAGS)
@st.kernel
def ticket_drawn_in_two_steps(flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """Two blocks may draw one ticket."""
    if st.lane == 0:
        ticket = 0
        if FIXED:
            ticket = st.atomic_add(flags, 0, 1)
        else:
            ticket = st.volatile_load(flags, 0)
            st.volatile_store(flags, 0, ticket + 1)
        st.atomic_add(out, ticket, 1.0)


# ------------------------------------------------------------------ last blocks and barriers of blocks
@pair("unacquired race", grid=4, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def last_block_without_an_acquire(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    if st.lane == 0:
        cells[st.block.x] = x[st.block.x]
        st.fence()
        if st.atomic_add(flags, 0, 1) == 3:
            if FIXED:
                st.fence()
            out[0] = cells[0] + cells[1] + cells[2] + cells[3]


@pair("race", grid=4, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def block_counted_before_its_sum(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    if st.lane == 0:
        if FIXED:
            cells[st.block.x] = x[st.block.x]
        last = st.atomic_add(flags, 0, 1, order="acq_rel") == 3
        if not FIXED:
            cells[st.block.x] = x[st.block.x]
        if last:
            out[0] = cells[0] + cells[1] + cells[2] + cells[3]


@pair("race", grid=4, block=64, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def last_block_announced_without_a_barrier(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    last = st.shared(i32, 1)
    if st.thread.x == 0:
        cells[st.block.x] = x[st.block.x]
        last[0] = 1 if st.atomic_add(flags, 0, 1, order="acq_rel") == 3 else 0
    if FIXED:
        st.sync()
    if last[0] != 0 and st.thread.x == 40:
        out[0] = x[0]


@pair("race", grid=4, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def block_barrier_passed_twice_by_one_count(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """The second barrier needs a count of its own."""
    if st.lane == 0:
        for phase in range(2):
            cells[4 * phase + st.block.x] = x[phase]
            if FIXED or phase == 0:
                st.atomic_add(flags, 0, 1, order="release")
            while st.load_acquire(flags, 0) < (4 * phase + 4 if FIXED else 4):
                pass
            out[4 * phase + st.block.x] = cells[4 * phase + (st.block.x + 1) % 4]


@pair("race", grid=2, block=32, x=X, cells=CELLS, flags=FLAGS)
@st.kernel
def prefix_published_to_its_own_block(
    x: Global[f32], cells: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const
) -> None:
    """A look-back over blocks: the status follows the sum by a fence of the device."""
    if st.lane == 0:
        before = f32(0)
        if st.block.x > 0:
            while st.volatile_load(flags, 0) == 0:
                pass
            st.fence()
            before = cells[0]
        cells[st.block.x] = before + x[st.block.x]
        if FIXED:
            st.fence()
        else:
            st.fence_block()
        st.volatile_store(flags, st.block.x, 1)


# ------------------------------------------------------------------ warps as producers and consumers
@pair("race", block=64, x=X, flags=FLAGS)
@st.kernel
def tile_handed_over_without_a_fence(x: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """The first warp fills a tile for the second one."""
    tile = st.shared(f32, 32)
    if st.warp == 0:
        tile[st.lane] = x[st.lane]
        st.syncwarp()
        if FIXED:
            st.fence_block()
        if st.lane == 0:
            st.volatile_store(flags, 0, 1)
    else:
        while st.volatile_load(flags, 0) == 0:
            pass
        if FIXED:
            st.fence_block()
        out[st.lane] = tile[st.lane]


@pair("race", block=64, x=X, flags=FLAGS)
@st.kernel
def tile_freed_before_it_is_read(x: Global[f32], flags: Global[i32], out: Global[f32], FIXED: Const) -> None:
    """The producer waits for the consumer's count before it fills the tile again."""
    tile = st.shared(f32, 32)
    for n in range(2):
        if st.warp == 0:
            if st.lane == 0:
                while st.load_acquire(flags, 1, scope="block") < n:
                    pass
            st.syncwarp()
            tile[st.lane] = x[st.lane + n]
            st.syncwarp()
            if st.lane == 0:
                st.store_release(flags, 0, n + 1, scope="block")
        else:
            if st.lane == 0:
                while st.load_acquire(flags, 0, scope="block") <= n:
                    pass
            st.syncwarp()
            if FIXED:
                out[st.lane] = tile[st.lane]
                st.syncwarp()
            if st.lane == 0:
                st.store_release(flags, 1, n + 1, scope="block")
            if not FIXED:
                out[st.lane] = tile[st.lane]


@pair("race", block=64, x=X)
@st.kernel
def private_sums_merged_without_a_barrier(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """Atomic sums of two warps in shared memory, read plainly."""
    sums = st.shared(f32, 2)
    if st.thread.x < 2:
        sums[st.thread.x] = 0.0
    st.sync()
    st.atomic_add(sums, st.lane % 2, x[st.thread.x])
    if FIXED:
        st.sync()
    if st.thread.x < 2:
        out[st.thread.x] = sums[st.thread.x]
