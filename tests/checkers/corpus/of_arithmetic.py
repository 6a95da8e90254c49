"""Results that CUDA leaves undefined, and loops that do not end."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, i64, u32

from .pair import I, X, pair


@pair("arithmetic", x=I)
@st.kernel
def mean_of_nothing(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    count = x[t]
    out[t] = f32(100 // count if not FIXED or count != 0 else 0)


@pair("arithmetic", x=I)
@st.kernel
def remainder_by_zero(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    divisor = max(x[t], 1) if FIXED else x[t]
    out[t] = f32(st.rem(t, divisor))


@pair("arithmetic", x=I, out=st.zeros(128, "u32"))
@st.kernel
def mask_of_32_bits_by_shift(x: Global[i32], out: Global[u32], FIXED: Const) -> None:
    t = st.thread.x
    bits = x[t] - 31
    if bits >= 1 and bits <= 32:
        low = u32(1) << u32(bits & 31 if FIXED else bits)
        out[t] = low - 1


@pair("arithmetic", x=I)
@st.kernel
def shift_by_a_negative_count(x: Global[i32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    count = x[t] - 1
    out[t] = f32(1 << (max(count, 0) & 15 if FIXED else min(count, 15)))


@pair("arithmetic", x=X)
@st.kernel
def float_too_large_for_an_index(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    wide = x[t] * 1e9
    out[t] = f32(i32(min(wide, 1e9) if FIXED else wide))


@pair("arithmetic", x=np.where(I == 7, np.nan, I).astype(np.float32))
@st.kernel
def not_a_number_as_an_integer(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    value = x[t]
    if not FIXED or value == value:
        out[t] = f32(i32(value))


@pair("arithmetic", grid=2, stride=1 << 30, out=st.zeros(128, "i64"))
@st.kernel
def offset_in_32_bits(out: Global[i64], stride: i32, FIXED: Const) -> None:
    i = st.block.x * 64 + st.thread.x
    if FIXED:
        out[i] = i64(st.thread.x) * i64(stride)
    else:
        out[i] = i64(st.thread.x * stride)


@pair("arithmetic", x=np.full(128, 2**31 - 10, np.int32), out=st.zeros(128, "i32"))
@st.kernel
def sum_overflows(x: Global[i32], out: Global[i32], FIXED: Const) -> None:
    t = st.thread.x
    if FIXED:
        out[t] = i32((i64(x[t]) + i64(t)) // 2)
    else:
        out[t] = (x[t] + t) // 2


@pair("arithmetic", x=np.full(128, -(2**31), np.int32), out=st.zeros(128, "i32"))
@st.kernel
def smallest_number_negated(x: Global[i32], out: Global[i32], FIXED: Const) -> None:
    t = st.thread.x
    value = max(x[t], -2147483647) if FIXED else x[t]
    out[t] = -value


@pair("arithmetic", x=I, out=st.zeros(128, "i32"))
@st.kernel
def hash_in_signed_numbers(x: Global[i32], out: Global[i32], FIXED: Const) -> None:
    t = st.thread.x
    if FIXED:
        h = u32(5381)
        for k in range(8):
            h = h * 33 + u32(x[t])
        out[t] = i32(h & 0x7FFFFFFF)
    else:
        g = i32(5381)
        for k in range(8):
            g = g * 33 + x[t]
        out[t] = g & 0x7FFFFFFF


@pair("step limit", x=X)
@st.kernel
def loop_without_progress(x: Global[f32], out: Global[f32], FIXED: Const) -> None:
    t = st.thread.x
    left = t % 4
    while left > 0:
        if FIXED or left > 1:
            left -= 1
    out[t] = x[t]


@pair("step limit", grid=1, out=st.zeros(2, "i32"))
@st.kernel
def lock_taken_lane_by_lane(out: Global[i32], FIXED: Const) -> None:
    """A lane waits for a lock that a masked-off lane of its own warp holds."""
    if FIXED:
        st.atomic_add(out, 1, 1)
    else:
        while st.compare_swap(out, 0, 0, 1) != 0:
            pass
        st.atomic_add(out, 1, 1)


@pair("step limit", grid=1, block=32, flag=np.zeros(1, np.int32))
@st.kernel
def wait_for_a_block_that_never_runs(flag: Global[i32], out: Global[f32], FIXED: Const) -> None:
    if st.thread.x == 0:
        while not FIXED and st.atomic_add(flag, 0, 0) == 0:
            out[0] = 1
        out[1] = 2
