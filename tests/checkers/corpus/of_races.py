"""Races between the warps of a block."""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Shared, f32, i32, u8

from .pair import I, X, pair


@pair("race", x=X)
@st.kernel
def missing_barrier_after_the_load(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    tile[t] = x[t]
    if FIXED:
        st.sync()
    out[t] = tile[63 - t]


@pair("race", x=X)
@st.kernel
def stale_tile_in_the_next_turn(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """The barrier before the reads is there; the one before the tile is filled again is not."""
    tile = st.shared(f32, 64)
    t = st.thread.x
    total = f32(0)
    for turn in range(2):
        tile[t] = x[turn * 64 + t]
        st.sync()
        total += tile[63 - t]
        if FIXED:
            st.sync()
    out[t] = total


@pair("race", x=X)
@st.kernel
def reduction_without_a_barrier_a_turn(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    partial = st.shared(f32, 128)
    t = st.thread.x
    partial[t] = x[t]
    partial[t + 64] = x[t + 64]
    st.sync()
    width = 64
    while width > 32:
        if t < width:
            partial[t] += partial[t + width]
        if FIXED:
            st.sync()
        width //= 2
    if t < 32:
        out[t] = partial[t] + partial[t + 32]


@pair("race", x=X)
@st.kernel
def double_buffer_slip(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """Two alternating buffers save one of two barriers."""
    buffer = st.shared(f32, 2, 64)
    t = st.thread.x
    buffer[0, t] = x[t]
    st.sync()
    for turn in range(4):
        source = turn % 2
        target = (turn + 1) % 2 if FIXED else source
        value = buffer[source, (t + 1) % 64]
        buffer[target, t] = value + 1
        st.sync()
    out[t] = buffer[0, t]


@pair("race", x=X)
@st.kernel
def scan_in_place(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    row = st.shared(f32, 64)
    t = st.thread.x
    row[t] = x[t]
    st.sync()
    distance = 1
    while distance < 64:
        before = row[t - distance] if t >= distance else f32(0)
        if FIXED:
            st.sync()
        row[t] += before
        st.sync()
        distance *= 2
    out[t] = row[t]


@pair("race", x=I)
@st.kernel
def histogram_without_atomics(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    bins = st.shared(i32, 8)
    t = st.thread.x
    if t < 8:
        bins[t] = 0
    st.sync()
    if FIXED:
        st.atomic_add(bins, x[t] % 8, 1)
    else:
        bins[x[t] % 8] += 1
    st.sync()
    if t < 8:
        out[t] = f32(bins[t])


@pair("race", x=I)
@st.kernel
def atomic_beside_a_plain_read(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    count = st.shared(i32, 1)
    t = st.thread.x
    if t == 0:
        count[0] = 0
    st.sync()
    if x[t] % 3 == 0:
        st.atomic_add(count, 0, 1)
    if FIXED:
        st.sync()
    out[t] = f32(count[0])


@pair("race", x=X)
@st.kernel
def result_read_by_everybody_too_early(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    largest = st.shared(f32, 1)
    t = st.thread.x
    if t == 0:
        largest[0] = x[63]
    if FIXED:
        st.sync()
    out[t] = x[t] / largest[0]


@pair("race", x=X)
@st.kernel
def clearing_beside_adding(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    sums = st.shared(f32, 4)
    t = st.thread.x
    if t < 4:
        sums[t] = 0
    if FIXED:
        st.sync()
    st.atomic_add(sums, t % 4, x[t])
    st.sync()
    if t < 4:
        out[t] = sums[t]


@pair("race", x=X)
@st.kernel
def global_workspace_of_the_block(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    out[t] = x[t]
    if FIXED:
        st.sync()
    if t < 32:
        out[64 + t] = out[63 - t]


@pair("race", x=X)
@st.kernel
def transpose_before_the_tile_is_full(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f32, 8, 9)
    t = st.thread.x
    tile[t // 8, t % 8] = x[t]
    if FIXED:
        st.sync()
    out[t] = tile[t % 8, t // 8]


@pair("race", x=X)
@st.kernel
def sliding_window_overwritten(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    ring = st.shared(f32, 64)
    t = st.thread.x
    ring[t] = x[t]
    st.sync()
    kept = ring[(t + 33) % 64]
    if FIXED:
        st.sync()
    ring[t] = kept * 2
    st.sync()
    out[t] = ring[t]


@st.device
def exchange(cells: Shared[f32], t: i32, value: f32) -> f32:
    cells[t] = value
    st.sync()
    return cells[63 - t]


@pair("race", x=X)
@st.kernel
def exchange_called_twice(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """Each call is right by itself; the second writes what the first one is still reading."""
    cells = st.shared(f32, 64)
    t = st.thread.x
    first = exchange(cells, t, x[t])
    if FIXED:
        st.sync()
    second = exchange(cells, t, first + 1)
    out[t] = second


@pair("race", x=X)
@st.kernel
def everybody_writes_one_cell(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    last = st.shared(f32, 1)
    t = st.thread.x
    if not FIXED or t == 63:
        last[0] = x[t]
    st.sync()
    out[t] = last[0]


@pair("race", x=X, out=st.zeros(128, "u8"))
@st.kernel
def bytes_of_a_neighbour(x: Global[f32], out: Global[u8], FIXED: Const) -> None:
    """Adjacent bytes with different owners do not race; an access to the neighbour's byte does."""
    flags = st.shared(u8, 64)
    t = st.thread.x
    flags[t] = u8(1 if x[t] > 5 else 0)
    if FIXED:
        st.sync()
    out[t] = flags[(t + 32) % 64]


@pair("race", x=X)
@st.kernel
def flag_by_plain_stores(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """The atomic flag publishes the writes before the fence."""
    cell = st.shared(f32, 1)
    ready = st.shared(i32, 1)
    t = st.thread.x
    if t == 0:
        ready[0] = 0
    st.sync()
    if t == 0:
        cell[0] = x[5]
        if FIXED:
            st.fence_block()
        st.atomic_exchange(ready, 0, 1)
    if t == 32 and st.atomic_add(ready, 0, 0) == 1:
        if FIXED:
            st.fence_block()
        out[t] = cell[0]


@pair("race", x=X)
@st.kernel
def swapped_buffers_without_a_barrier(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """The buffers are swapped in each iteration; a warp that is ahead writes elements another warp still reads."""
    now = st.shared(f32, 64)
    then = st.shared(f32, 64)
    t = st.thread.x
    now[t] = x[t]
    st.sync()
    for turn in range(4):
        then[t] = now[63 - t] + 1
        if FIXED:
            st.sync()
        now, then = then, now
    st.sync()
    out[t] = now[t]


@pair("race", x=X)
@st.kernel
def copy_that_is_not_waited_for(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    st.async_copy(tile, t, x, t)
    st.async_commit()
    if FIXED:
        st.async_wait(0)
    out[t] = tile[t]
    st.async_wait(0)


@pair("race", x=X)
@st.kernel
def barrier_without_a_wait(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """A barrier does not order a pending copy; the wait must precede it."""
    tile = st.shared(f32, 64)
    t = st.thread.x
    st.async_copy(tile, t, x, t)
    st.async_commit()
    if FIXED:
        st.async_wait(0)
    st.sync()
    if not FIXED:
        st.async_wait(0)
    out[t] = tile[63 - t]


@pair("race", x=X)
@st.kernel
def pipeline_that_waits_for_too_few(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """Of two pending groups, the older one is complete only if the wait leaves at most one pending."""
    now = st.shared(f32, 64)
    then = st.shared(f32, 64)
    t = st.thread.x
    total = f32(0)
    st.async_copy(now, t, x, t)
    st.async_commit()
    for k in range(1, 5):
        st.async_copy(then, t, x, (t + k) % 64)
        st.async_commit()
        if FIXED:
            st.async_wait(1)
        else:
            st.async_wait(2)
        st.sync()
        total += now[63 - t]
        st.sync()
        now, then = then, now
    st.async_wait(0)
    out[t] = total


@pair("race", x=X)
@st.kernel
def copied_for_another_warp_without_a_barrier(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    st.async_copy(tile, t, x, t)
    st.async_commit()
    st.async_wait(0)
    if FIXED:
        st.sync()
    out[t] = tile[63 - t]
