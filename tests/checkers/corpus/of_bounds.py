"""Accesses outside an array."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, Shared, f32, float4, i32, i64

from .pair import I, X, pair


@pair("bounds", x=X[:64])
@st.kernel
def halo_to_the_right(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    right = f32(0)
    if not FIXED or t + 1 < len(x):
        right = x[t + 1]
    out[t] = x[t] + right


@pair("bounds", x=X[:64])
@st.kernel
def halo_to_the_left(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    left = f32(0)
    if not FIXED or t > 0:
        left = x[t - 1]
    out[t] = x[t] + left


@pair("bounds", grid=3, x=X, n=100, out=st.zeros(100, "f32"))
@st.kernel
def unguarded_tail_block(x: Global[f32], out: Global[f32], n: i32, FIXED: Const) -> None:
    i = st.block.x * 64 + st.thread.x
    if i < (n if FIXED else len(x)):
        out[i] = x[i] * 2


@pair("bounds", x=np.ones((15, 4), np.float32), n=60)
@st.kernel
def vector_load_across_the_end(x: Global[float4], out: Global[f32], n: i32, FIXED: Const) -> None:
    t = st.thread.x
    if t < (n // 4 if FIXED else (n + 7) // 4):
        v = x[t]
        out[t] = v.x + v.y + v.z + v.w


@pair("bounds", x=X)
@st.kernel
def reduction_one_too_wide(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    partial = st.shared(f32, 64)
    t = st.thread.x
    partial[t] = x[t]
    st.sync()
    width = 32
    while width > 0:
        value = f32(0)
        if t + width < (64 if FIXED else 65):
            value = partial[t + width]
        st.sync()
        partial[t] += value
        st.sync()
        width //= 2
    out[t] = partial[t]


@pair("bounds", x=I % 11)
@st.kernel
def bin_beyond_the_histogram(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    bins = st.shared(i32, 10)
    t = st.thread.x
    if t < 10:
        bins[t] = 0
    st.sync()
    value = x[t]
    if not FIXED or value < 10:
        st.atomic_add(bins, value, 1)
    st.sync()
    if t < 10:
        out[t] = f32(bins[t])


@pair("bounds", x=X)
@st.kernel
def local_array_too_short(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    own = st.local(f32, 8)
    for k in range(8 if FIXED else 9):
        own[k] = x[k]
    out[t] = own[t % 8]


@pair("bounds", x=X)
@st.kernel
def wrong_row_of_a_tile(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """The index is in range of the whole array; only the row is out of range."""
    tile = st.shared(f32, 8, 8)
    t = st.thread.x
    tile[t // 8, t % 8] = x[t]
    st.sync()
    if t // 8 < 7 and (not FIXED or t % 8 < 7):
        out[t] = tile[t // 8, t % 8 + 1]


@pair("bounds", x=X.reshape(-1, 16))
@st.kernel
def column_of_the_row_before(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    column = t % 16
    if not FIXED or column > 0:
        out[t] = x[t // 16 + 1, column - 1]


@pair("bounds", x=X.reshape(-1, 16))
@st.kernel
def row_that_is_not_there(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    rows = x.shape[0]
    row = x[t % rows if FIXED else t % (rows + 1), :]
    out[t] = row[0] if t % (rows + 1) < rows else f32(0)


@pair("bounds", x=X)
@st.kernel
def slice_that_ends_with_its_array(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    """x has 128 elements: in its memory, but not in the slice."""
    t = st.thread.x
    part = x[64 : 96 if not FIXED else 128]
    out[t] = part[t]


@pair("bounds", x=X)
@st.kernel
def slice_that_begins_before_its_array(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    part = x[t if FIXED else t - 1 :]
    out[t] = part[1]


@pair("bounds", x=X.reshape(-1, 4)[:, ::2])
@st.kernel
def gap_of_a_strided_array(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    out[t] = x[t // 4, t % (2 if FIXED else 4)]


@pair("bounds", shared=64 * 4, x=X)
@st.kernel
def dynamic_shared_too_small(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    buffer = st.dynamic_shared(f32)
    t = st.thread.x
    at = t if FIXED else t * 2
    buffer[at] = x[t]
    out[t] = buffer[at]


@pair("bounds", x=X[:64], far=np.array([1 << 40], np.int64))
@st.kernel
def index_beyond_32_bits(x: Global[f32], far: Global[i64], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    at = i64(t) + (far[0] if not FIXED else 0)
    out[t] = x[at]


@st.device
def last_of(row: Shared[f32], length: i32) -> f32:
    return row[length]


@pair("bounds", x=X)
@st.kernel
def off_by_one_in_a_function(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    row = st.shared(f32, 64)
    t = st.thread.x
    row[t] = x[t]
    st.sync()
    out[t] = last_of(row, 63 if FIXED else 64)


@pair("bounds", shared=64 * 4 + 64 * 4, x=X, n=64)
@st.kernel
def from_one_dynamic_array_into_the_next(x: Global[f32], out: Global[f32], n: i32, FIXED: Const) -> None:
    """The address is within the launch's dynamic shared memory, outside the array."""
    first = st.dynamic_shared(f32, n)
    second = st.dynamic_shared(f32)
    t = st.thread.x
    first[t] = x[t]
    second[t] = x[t]
    st.sync()
    out[t] = first[(t + 1) % n if FIXED else t + 1] + second[t]
