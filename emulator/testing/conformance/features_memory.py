"""Feature kernels of memory and cooperation: vectors, shared memory, barriers, warps, atomics. See features.py."""

import numpy as np
import simtbed as st
from simtbed import (
    Global,
    char4,
    f32,
    f64,
    float2,
    float4,
    i8,
    i16,
    i32,
    int2,
    int4,
    short2,
    u8,
    u16,
    u32,
    u64,
    uchar4,
    uint2,
    uint4,
    ushort2,
)  # fmt: skip

from ...runtime.arrays import zeros
from .feature import feature, out


# ------------------------------------------------------------------ vectors
@feature(
    [v for x in range(32) for v in (4 * x + 3, 4 * x + 2, 4 * x + 1, 4 * x)],
    given=np.arange(128, dtype=np.int32).reshape(32, 4),
    out=out(32, "int4"),
)
@st.kernel
def vector_reverse(given: Global[int4], out: Global[int4]) -> None:
    v = given[st.lane]
    out[st.lane] = int4(v.w, v.z, v.y, v.x)


@feature([4 * x + 10 * (x % 2) for x in range(32)], given=np.ones((32, 4), np.float32), out=out(32, "f32"))
@st.kernel
def vector_parts(given: Global[float4], out: Global[f32]) -> None:
    v = given[st.lane]
    v.x = v.x + f32(4 * st.lane) - 4
    if st.lane % 2 == 1:
        v.y += 10
    total = f32(0)
    for k in st.unroll(range(4)):
        total += v[k]
    out[st.lane] = total


@feature([v for x in range(32) for v in (x & 127, 255 - x, (x * 2) & 127, 7)], out=out(32, "uchar4"))
@st.kernel
def byte_vectors(out: Global[uchar4]) -> None:
    signed = char4(i8(st.lane), i8(0), i8(st.lane * 2 & 127), i8(7))
    out[st.lane] = uchar4(u8(signed.x), u8(255) - u8(st.lane), u8(signed.z), u8(signed.w))


@feature([v for x in range(32) for v in (31 - x, 2 * (31 - x))], out=out(32, "short2"))
@st.kernel
def vectors_in_shared(out: Global[short2]) -> None:
    pairs = st.shared(short2, 32)
    wide = st.shared(float2, 32)
    own = st.local(int2, 1)
    t = st.thread.x
    pairs[t] = short2(i16(t), i16(2 * t))
    wide[t] = float2(f32(t), f32(2 * t))
    st.sync()
    own[0] = int2(i32(wide[31 - t].x), i32(wide[31 - t].y))
    out[t] = short2(pairs[31 - t].x, i16(own[0].y))


@feature(
    [v for x in range(32) for v in (2**32 - 4 * x - 1, 4 * x + 1, 2 * (31 - x) % 65536, (31 - x) * 4099 % 65536)],
    given=np.arange(128, dtype=np.uint32).reshape(32, 4),
    out=out(32, "uint4"),
)
@st.kernel
def unsigned_vectors(given: Global[uint4], out: Global[uint4]) -> None:
    pairs = st.shared(ushort2, 32)
    words = st.shared(uint2, 32)
    t = st.thread.x
    v = given[t]
    words[t] = uint2(~v.x, v.y)
    pairs[t] = ushort2(u16(2 * t), u16(4099 * t))
    st.sync()
    out[t] = uint4(words[t].x, words[t].y, u32(pairs[31 - t].x), u32(pairs[31 - t].y))


# ------------------------------------------------------------------ shared memory and barriers
@feature(
    [sum(range(64 * b, 64 * b + 64)) for b in range(4)], grid=4, block=64, x=np.arange(256, dtype=np.int32), out=out(4)
)
@st.kernel
def block_reduction(x: Global[i32], out: Global[i32]) -> None:
    partial = st.shared(i32, 64)
    t = st.thread.x
    partial[t] = x[st.block.x * 64 + t]
    st.sync()
    width = 32
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


@feature(
    [x * 32 + y for y in range(32) for x in range(32)], block=(32, 8), x=np.arange(1024, dtype=np.int32), out=out(1024)
)
@st.kernel
def shared_transpose(x: Global[i32], out: Global[i32]) -> None:
    tile = st.shared(i32, 32, 33)
    column = st.thread.x
    for row in range(st.thread.y, 32, 8):
        tile[row, column] = x[row * 32 + column]
    st.sync()
    for row in range(st.thread.y, 32, 8):
        out[row * 32 + column] = tile[column, row]


@feature([48 - x for x in range(48)], block=48, out=out(48), shared=48 * 4)
@st.kernel
def dynamic_shared_memory(out: Global[i32]) -> None:
    buffer = st.dynamic_shared(i32)
    t = st.thread.x
    buffer[t] = t + 1
    st.sync()
    out[t] = buffer[len(buffer) - 1 - t]


@feature([22, 0, 1] * 64, block=64, out=out(192))
@st.kernel
def counting_barriers(out: Global[i32]) -> None:
    t = st.thread.x
    count = st.sync_count(t % 3 == 0)
    everyone = st.sync_and(t < 63)
    anyone = st.sync_or(t == 63)
    out[t * 3] = count
    out[t * 3 + 1] = i32(everyone)
    out[t * 3 + 2] = i32(anyone)


@feature([(x + 3) % 96 for x in range(96)], block=96, out=out(96))
@st.kernel
def barrier_in_a_loop(out: Global[i32]) -> None:
    cell = st.shared(i32, 96)
    t = st.thread.x
    mine = t
    for turn in range(3):
        cell[t] = mine
        st.sync()
        mine = cell[(t + 1) % 96]
        st.sync()
    out[t] = mine


@feature([t + 100 if t < 40 else t for t in range(64)], grid=2, block=64, out=out(64))
@st.kernel
def barrier_after_returns(out: Global[i32]) -> None:
    cell = st.shared(i32, 64)
    t = st.thread.x
    if st.block.x == 1:
        return
    out[t] = t
    if t >= 40:
        return
    cell[t] = t + 100
    st.sync()
    out[t] = cell[39 - t] - 39 + 2 * t


# ------------------------------------------------------------------ warp
@feature(
    [
        v
        for x in range(32)
        for v in (x - 1 if x else 0, x - 1 if x % 8 else x, x + 2 if x % 16 < 14 else x, x ^ 5, x // 4 * 4 + 3)
    ],
    out=out(160),
)
@st.kernel
def shuffles(out: Global[i32]) -> None:
    x = st.lane
    out[x * 5] = st.shuffle_up(x, 1)
    out[x * 5 + 1] = st.shuffle_up(x, 1, width=8)
    out[x * 5 + 2] = st.shuffle_down(x, 2, width=16)
    out[x * 5 + 3] = st.shuffle_xor(x, 5)
    out[x * 5 + 4] = st.shuffle(x, 3, width=4)


@feature([float(sum(range(32)))] * 32, out=out(32, "f64"))
@st.kernel
def shuffle_reduction(out: Global[f64]) -> None:
    total = f64(st.lane)
    offset = 16
    while offset > 0:
        total += st.shuffle_xor(total, offset)
        offset //= 2
    out[st.lane] = total


@feature(
    [
        v
        for x in range(32)
        for v in (
            sum(1 << i for i in range(32) if i % 3 == 0),
            1,
            0,
            0xFFFFFFFF,
            sum(1 << i for i in range(32) if i % 5 == x % 5),
        )
    ],
    out=out(160, "u32"),
)
@st.kernel
def votes(out: Global[u32]) -> None:
    x = st.lane
    out[x * 5] = st.ballot(x % 3 == 0)
    out[x * 5 + 1] = u32(st.any(x == 31))
    out[x * 5 + 2] = u32(st.all(x < 31))
    out[x * 5 + 3] = st.active_mask()
    out[x * 5 + 4] = st.match_any(x % 5)


@feature([15 if x < 16 else -1 for x in range(32)], out=out())
@st.kernel
def partial_masks(out: Global[i32]) -> None:
    result = -1
    if st.lane < 16:
        result = st.shuffle(st.lane, 15, mask=0xFFFF)
        if st.any(st.lane == 20, mask=0xFFFF):
            result = -2
    out[st.lane] = result


@feature([31 - x for x in range(32)], out=out())
@st.kernel
def warp_barrier(out: Global[i32]) -> None:
    cell = st.shared(i32, 32)
    cell[st.lane] = st.lane
    st.syncwarp()
    out[st.lane] = cell[31 - st.lane]


# ------------------------------------------------------------------ atomics and fences
@feature([12] * 8, grid=3, block=32, out=zeros(8, i32))
@st.kernel
def global_histogram(out: Global[i32]) -> None:
    st.atomic_add(out, st.lane % 8, 1)


@feature([8, 28, 31, -1, 0xFFFF, 0x1FFFF], block=64, out=np.array([0, 0, 0, 0, -1, 0x10000], np.int32))
@st.kernel
def atomic_kinds(out: Global[i32]) -> None:
    bins = st.shared(u64, 2)
    t = st.thread.x
    if t < 2:
        bins[t] = 0
    st.sync()
    if t < 8:
        st.atomic_add(bins, 0, u64(1))
        st.atomic_max(bins, 1, u64(t * 4))
    st.sync()
    if t == 0:
        out[0] = i32(bins[0])
        out[1] = i32(bins[1])
    if t < 32:
        st.atomic_max(out, 2, t)
        st.atomic_min(out, 3, t - 1)
        st.atomic_and(out, 4, 0xFFFF)
        st.atomic_or(out, 5, t * 0x800 & 0xFFFF | 0xFFF)
        st.atomic_xor(out, 5, 0)


@feature([sum(range(64))], block=64, out=out(1))
@st.kernel
def queue_of_tickets(out: Global[i32]) -> None:
    tail = st.shared(i32, 1)
    slots = st.shared(i32, 64)
    t = st.thread.x
    if t == 0:
        tail[0] = 0
    st.sync()
    ticket = st.atomic_add(tail, 0, 1)
    slots[ticket] = t
    st.sync()
    if t == 0:
        total = 0
        for i in range(64):
            total += slots[i]
        out[0] = total


@feature([64], grid=2, out=np.zeros(1, np.float32))
@st.kernel
def float_sum(out: Global[f32]) -> None:
    st.atomic_add(out, 0, f32(1))


@feature([32 * 33 // 2], out=zeros(1, i32))
@st.kernel
def compare_and_swap_loop(out: Global[i32]) -> None:
    done = False
    while not done:
        seen = st.atomic_add(out, 0, 0)
        done = st.compare_swap(out, 0, seen, seen + st.lane + 1) == seen


@feature([5, 5], out=np.array([5, 7], np.int32))
@st.kernel
def exchange(out: Global[i32]) -> None:
    if st.lane == 0:
        old = st.atomic_exchange(out, 1, 9)
        out[1] = old - 2
    st.fence_block()
    st.fence()


# ------------------------------------------------------------------ checks
@feature([x + 1 for x in range(32)], out=out())
@st.kernel
def assertion_holds(out: Global[i32]) -> None:
    assert st.lane < 32, "a warp has 32 lanes"
    out[st.lane] = st.lane + 1


@feature([x % 256 for x in range(32)], out=out(32, "u16"))
@st.kernel
def swap_variables(out: Global[u16]) -> None:
    a, b = u16(0), u16(st.lane)
    a, b = b, a
    out[st.lane] = a + b
