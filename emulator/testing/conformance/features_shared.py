"""Feature kernels of dynamic shared memory. See features.py."""

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, f64, float4, i8, i16, i32, i64

from .feature import feature, out


@feature([2 * (31 - x) + 6 * x + 3 + 10 for x in range(32)], out=out(), n=32, shared=32 * 4 + 32 * 2 + 32 * 8)
@st.kernel
def dynamic_shared_arrays(out: Global[i32], n: i32) -> None:
    first = st.dynamic_shared(i32, n)
    second = st.dynamic_shared(i16, n)
    third = st.dynamic_shared(f64)
    t = st.thread.x
    first[t] = 2 * t
    second[t] = i16(6 * t)
    third[t] = f64(3)
    st.sync()
    out[t] = first[31 - t] + i32(second[t]) + i32(third[(t + 1) % len(third)]) + 10


@feature(
    [v for t in range(48) for v in (t % 5, 2 * (t % 15), (t + 1) % 3, t)],
    block=48,
    out=out(192),
    n=5,
    MORE=3,
    shared=5 + 3 + 15 * 8 + 3 + 1 + 48 * 2,
)
@st.kernel
def dynamic_shared_alignment(out: Global[i32], n: i32, MORE: Const) -> None:
    many = n * MORE
    bytes_of_n = st.dynamic_shared(i8, n)
    doubles = st.dynamic_shared(f64, many)
    few = st.dynamic_shared(i8, MORE)
    each = st.dynamic_shared(i16, st.block_dim.x)
    t = st.thread.x
    each[t] = i16(t)
    if t < n:
        bytes_of_n[t] = i8(t)
    if t < many:
        doubles[t] = f64(2 * t)
    if t < MORE:
        few[t] = i8(t)
    st.sync()
    out[4 * t] = i32(bytes_of_n[t % n])
    out[4 * t + 1] = i32(doubles[t % len(doubles)])
    out[4 * t + 2] = i32(few[(t + 1) % MORE])
    out[4 * t + 3] = i32(each[t])


@feature([(t - 5) % 64 + 100 for t in range(64)], block=64, out=out(64), turns=5)
@st.kernel
def shared_buffers_change_places(out: Global[i32], turns: i32) -> None:
    """Each iteration moves every element by one, from one buffer to the other."""
    now = st.shared(i32, 64)
    then = st.shared(i32, 64)
    t = st.thread.x
    now[t] = t + 100
    for turn in range(turns):
        st.sync()
        then[t] = now[(t + 63) % 64]
        now, then = then, now
    st.sync()
    out[t] = now[t]


@feature([v for t in range(64) for v in ((t - 3) % 64, 100)], block=64, out=out(128, "f32"), turns=3)
@st.kernel
def buffers_of_vectors_change_places(out: Global[f32], turns: i32) -> None:
    """An element of either buffer is a vector."""
    now = st.shared(st.float2, 64)
    then = st.shared(st.float2, 64)
    t = st.thread.x
    now[t] = st.float2(f32(t), 100.0)
    for turn in range(turns):
        st.sync()
        then[t] = now[(t + 63) % 64]
        now, then = then, now
    st.sync()
    out[2 * t], out[2 * t + 1] = now[t]


@st.device
def moved(source: Global[i32], target: Global[i32], i: i32) -> i32:
    """The previous value."""
    target[i] = source[(i + 1) % len(source)]
    return st.atomic_add(source, i, 0)


@feature(
    [v for x in range(32) for v in ((x + 3) % 32, (x + 2) % 32, 32, 0)],
    x=np.arange(32, dtype=np.int32),
    y=out(),
    out=out(128),
)
@st.kernel
def global_buffers_change_places(x: Global[i32], y: Global[i32], out: Global[i32]) -> None:
    here = st.lane
    last = 0
    count = 0
    while count < 3:
        last = moved(x, y, here)
        st.syncwarp()
        x, y = y, x
        count += 1
    out[4 * here] = x[here]
    out[4 * here + 1] = last
    out[4 * here + 2] = len(y)
    if here % 2 == 0:
        x, y = y, x
    st.syncwarp()
    out[4 * here + 3] = 0 if here % 2 == 1 else x[here] - (here + 2) % 32


@feature([x + 10 * ((x + 2) % 3) for x in range(32)], out=out())
@st.kernel
def three_arrays_take_turns(out: Global[i32]) -> None:
    a = st.local(i32, 2)
    b = st.local(i32, 2)
    c = st.local(i32, 2)
    a[0] = 0
    b[0] = 10
    c[0] = 20
    for turn in range(st.lane):
        a, b, c = b, c, a
    b, c, a = a, b, c
    out[st.lane] = a[0] + st.lane


@feature([2.0 * t for t in range(64)], block=64, x=np.arange(64, dtype=np.float32), out=out(64, "f32"))
@st.kernel
def asynchronous_copies(x: Global[f32], out: Global[f32]) -> None:
    tile = st.shared(f32, 64)
    t = st.thread.x
    st.async_copy(tile, t, x, t)
    st.async_commit()
    st.async_wait(0)
    st.sync()
    out[63 - t] = 2 * tile[63 - t]


@feature(
    [float(sum(4 * (t + 32 * k) + part for k in range(6) for part in range(4))) for t in range(32)],
    x=np.arange(4 * 192, dtype=np.float32).reshape(192, 4),
    out=out(32, "f32"),
)
@st.kernel
def pipeline_of_two_stages(x: Global[float4], out: Global[f32]) -> None:
    """While one buffer is summed, the next tile is copied to the other."""
    now = st.shared(float4, 32)
    then = st.shared(float4, 32)
    t = st.thread.x
    total = f32(0)
    st.async_copy(now, t, x, t)
    st.async_commit()
    for k in range(1, 7):
        if k < 6:
            st.async_copy(then, t, x, 32 * k + t)
        st.async_commit()
        st.async_wait(1)
        st.sync()
        mine = now[31 - t]
        total += st.shuffle_xor(mine.x + mine.y + mine.z + mine.w, 31)
        st.sync()
        now, then = then, now
    out[t] = total


@feature(
    [v for t in range(32) for v in (0.5 * (t % 3) - 1, 7 * (t % 2) + 3)],
    table=np.array([-1, -0.5, 0], np.float32),
    offsets=np.array([3, 10], np.int64),
    out=out(64, "f32"),
)
@st.kernel
def tables_from_arguments(table: Constant[f32], offsets: Constant[i64], out: Global[f32]) -> None:
    t = st.lane
    out[2 * t] = table[t % len(table)]
    out[2 * t + 1] = f32(offsets[t % 2])
