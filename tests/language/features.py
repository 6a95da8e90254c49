"""One tiny kernel for each feature of the language, with its answer worked out in plain Python.

Every engine runs all of them: the emulators in tests/language, the GPU in tests/gpu.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from simtbed.emulator import Out
from simtbed.emulator import lang as st
from simtbed.emulator.lang import (
    Const,
    Constant,
    Global,
    Kernel,
    Local,
    Real,
    Registers,
    Shared,
    char4,
    f32,
    f64,
    float2,
    float4,
    i8,
    i16,
    i32,
    i64,
    int2,
    int4,
    short2,
    u8,
    u16,
    u32,
    u64,
    uchar4,
)  # fmt: skip

LANES = np.arange(32)
TABLE = (2, 3, 5, 7)


@dataclass(frozen=True)
class Feature:
    """A kernel, how to launch it, and what `out` holds afterwards."""

    kernel: Kernel
    args: dict[str, Any]
    expected: Any
    grid: int | tuple[int, ...] = 1
    block: int | tuple[int, ...] = 32
    shared: int = 0

    @property
    def name(self) -> str:
        return self.kernel.__name__

    def launch(self, run: Callable[..., Any]) -> Any:
        """Run it with `launch`, or something called like it."""
        return run(self.kernel, grid=self.grid, block=self.block, args=self.args, shared=self.shared)


FEATURES: list[Feature] = []


def feature(
    expected: Any, *, grid: Any = 1, block: Any = 32, shared: int = 0, **args: Any
) -> Callable[[Kernel], Kernel]:
    def add(kernel: Kernel) -> Kernel:
        FEATURES.append(Feature(kernel, args, expected, grid, block, shared))
        return kernel

    return add


def out(length: int = 32, type: str = "i32") -> Out:
    return Out(length, type)


# ------------------------------------------------------------------ indices
@feature([1000 * b + t for b in range(3) for t in range(40)], grid=3, block=40, out=out(120))
@st.kernel
def linear_index(out: Global[i32]) -> None:
    out[st.block.x * st.block_dim.x + st.thread.x] = st.block.x * 1000 + st.thread.x


@feature(
    [((z * 3 + y) * 4 + x) * 10000 + (bz * 2 + by) * 100 + 4 * 10 + 3 for bz in range(2) for by in range(2) for z in range(2) for y in range(3) for x in range(4)],
    grid=(1, 2, 2), block=(4, 3, 2), out=out(96),
)  # fmt: skip
@st.kernel
def indices_3d(out: Global[i32]) -> None:
    t = (st.thread.z * st.block_dim.y + st.thread.y) * st.block_dim.x + st.thread.x
    b = (st.block.z * st.grid_dim.y + st.block.y) * st.grid_dim.x + st.block.x
    out[b * 24 + t] = t * 10000 + b * 100 + st.block_dim.x * 10 + st.block_dim.y


@feature([w * 100 + lane for w in range(3) for lane in range(32)][:70], block=(35, 2), out=out(70))
@st.kernel
def lane_and_warp(out: Global[i32]) -> None:
    out[st.thread.y * st.block_dim.x + st.thread.x] = st.warp * 100 + st.lane


# ------------------------------------------------------------------ arithmetic
@feature([v for x in range(-16, 16) for v in (x // 5, x % 5, int(x / 5), x - 5 * int(x / 5))], out=out(128))
@st.kernel
def integer_division(out: Global[i32]) -> None:
    x, five = st.lane - 16, 5
    at = st.lane * 4
    out[at] = x // five
    out[at + 1] = x % five
    out[at + 2] = st.div(x, five)
    out[at + 3] = st.rem(x, five)


@feature([v for x in range(-16, 16) for v in (x // 8, x % 8)], out=out(64))
@st.kernel
def power_of_two_division(out: Global[i32]) -> None:
    x = st.lane - 16
    out[st.lane * 2] = x // 8
    out[st.lane * 2 + 1] = x % 8


@feature([v for x in range(32) for v in ((x * 9) & 255, -((x * 9) & 255) & 255, (x * 9 & 255) >> 1)], out=out(96, "u8"))
@st.kernel
def narrow_integers_wrap(out: Global[u8]) -> None:
    x = u8(st.lane) * 9
    out[st.lane * 3] = x
    out[st.lane * 3 + 1] = -x
    out[st.lane * 3 + 2] = x >> 1


@feature([(x << 40) + x for x in range(32)], out=out(32, "i64"))
@st.kernel
def wide_integers(out: Global[i64]) -> None:
    x = i64(st.lane)
    out[st.lane] = (x << 40) + x


@feature([v for x in range(32) for v in (bin(x * 37).count("1"), 32 - (x * 37).bit_length())], out=out(64))
@st.kernel
def bit_counts(out: Global[i32]) -> None:
    x = st.lane * 37
    out[st.lane * 2] = st.popcount(x)
    out[st.lane * 2 + 1] = st.clz(x)


_THIRDS = (np.arange(32, dtype=np.float32) / np.float32(3)).astype(np.float32)


@feature(
    np.stack(
        [
            _THIRDS,
            np.sqrt(_THIRDS),
            np.abs(np.float32(1) - _THIRDS),
            np.minimum(_THIRDS, np.float32(0.1)).astype(np.float32),
        ],
        1,
    ).ravel(),
    out=out(128, "f32"),
)
@st.kernel
def float_arithmetic(out: Global[f32]) -> None:
    x = f32(st.lane) / 3
    at = st.lane * 4
    out[at] = x
    out[at + 1] = st.sqrt(x)
    out[at + 2] = abs(1 - x)
    out[at + 3] = min(x, 0.1)


def _fma_exact(x: int) -> float:
    from fractions import Fraction

    a = Fraction(float(np.float32(1 + x / 4096)))
    exact = a * a - Fraction(1)
    return float(np.float32(np.longdouble(exact.numerator) / np.longdouble(exact.denominator)))


@feature(np.array([_fma_exact(x) for x in range(32)], np.float32), out=out(32, "f32"))
@st.kernel
def fused_multiply_add(out: Global[f32]) -> None:
    a = 1 + f32(st.lane) / 4096
    out[st.lane] = st.fma(a, a, f32(-1))


@feature([min(max(int(x * 1e9), -(2**31)), 2**31 - 1) for x in range(-16, 16)], out=out())
@st.kernel
def conversion_saturates(out: Global[i32]) -> None:
    out[st.lane] = i32(f64(st.lane - 16) * 1e9)


@feature(np.array([1.0 + x for x in range(32)], np.float32).view(np.uint32), out=out(32, "u32"))
@st.kernel
def bit_casts(out: Global[u32]) -> None:
    bits = st.bitcast(i32, f32(st.lane) + 1)
    out[st.lane] = st.bitcast(u32, st.bitcast(f32, bits))


@feature([int((3 < x <= 20 and x % 2 == 0) or x == 31) + 2 * int(not x > 5) for x in range(32)], out=out())
@st.kernel
def booleans(out: Global[i32]) -> None:
    x = st.lane
    chosen = (3 < x <= 20 and x % 2 == 0) or x == 31
    out[x] = i32(chosen) + 2 * i32(not x > 5)


# ------------------------------------------------------------------ control
@feature([x if x < 10 else 100 + x if x < 20 else 200 for x in range(32)], out=out())
@st.kernel
def if_else(out: Global[i32]) -> None:
    x = st.lane
    if x < 10:
        value = x
    elif x < 20:
        value = 100 + x
    else:
        value = 200
    out[x] = value


@feature([x if x < 20 else -1 for x in range(32)], x=np.arange(20, dtype=np.int32), out=out())
@st.kernel
def guards_are_honest(x: Global[i32], out: Global[i32]) -> None:
    i = st.lane
    big = i < len(x) and x[i] >= 0
    out[i] = x[i] if big else -1


def _collatz(n: int) -> int:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@feature([_collatz(x + 1) for x in range(64)], block=64, out=out(64))
@st.kernel
def divergent_while(out: Global[i32]) -> None:
    n = st.thread.x + 1
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    out[st.thread.x] = steps


@feature([sum(i for i in range(x) if i % 3 and i < 20) for x in range(32)], out=out())
@st.kernel
def break_and_continue(out: Global[i32]) -> None:
    total = 0
    for i in range(st.lane):
        if i % 3 == 0:
            continue
        if i >= 20:
            break
        total += i
    out[st.lane] = total


@feature([sum(range(x, 0, -3)) for x in range(32)], out=out())
@st.kernel
def loop_downwards(out: Global[i32]) -> None:
    total = 0
    for i in range(st.lane, 0, -3):
        total += i
    out[st.lane] = total


@feature([sum(1 for i in range(x) for j in range(i) if not i * j > 40) for x in range(32)], out=out())
@st.kernel
def nested_loops(out: Global[i32]) -> None:
    found = 0
    i = 0
    while i < st.lane:
        for j in range(i):
            if i * j > 40:
                break
            found += 1
        i += 1
    out[st.lane] = found


@feature([x if x < 7 else 7 if x < 20 else 0 for x in range(32)], out=out())
@st.kernel
def early_return(out: Global[i32]) -> None:
    if st.lane >= 20:
        return
    for i in range(100):
        if i == 7 or i == st.lane:
            out[st.lane] = i
            return


@feature([x * x + 1 for x in range(32)], block=32, out=out())
@st.kernel
def while_reads_memory(out: Global[i32]) -> None:
    mine = st.local(i32, 2)
    mine[0] = 0
    while mine[0] < st.lane * st.lane + 1:
        mine[0] += 1
    out[st.lane] = mine[0]


# ------------------------------------------------------------------ constants, functions, types
@feature([sum(TABLE[k] * x for k in range(4)) + 3 for x in range(32)], out=out(), K=4, WEIGHTS=TABLE, SHIFT=True)
@st.kernel
def const_parameters(out: Global[i32], K: Const, WEIGHTS: Const, SHIFT: Const) -> None:
    total = 0
    for w in st.unroll(range(1)):
        total += WEIGHTS[0] * st.lane * (1 + w)
    rest = WEIGHTS[1] + WEIGHTS[2] + WEIGHTS[3]
    total += rest * st.lane
    if SHIFT:
        total += K - 1
    out[st.lane] = total


@feature([sum((k + 1) * (x + k) for k in range(8)) for x in range(32)], out=out())
@st.kernel
def unrolled_registers(out: Global[i32]) -> None:
    value = st.registers(i32, 8)
    for k in st.unroll(range(8)):
        value[k] = st.lane + k
    total = 0
    for k in st.unroll(range(8)):
        if k % 2 == 0:
            total += value[k] * (k + 1)
        else:
            total += (k + 1) * value[k]
    out[st.lane] = total


@feature([TABLE[x % 4] for x in range(32)], out=out())
@st.kernel
def constant_table(out: Global[i32]) -> None:
    primes = st.constant(i32, TABLE)
    out[st.lane] = primes[st.lane % 4]


@st.device
def clamp(x: i32, low: i32, high: i32) -> i32:
    if x < low:
        return low
    if x > high:
        return high
    return x


@st.device
def twice_clamped(x: i32) -> i32:
    return clamp(x, 3, 20) + clamp(x + 1, 0, 9)


@feature([min(max(x, 3), 20) + min(max(x + 1, 0), 9) for x in range(32)], out=out())
@st.kernel
def device_functions(out: Global[i32]) -> None:
    out[st.lane] = twice_clamped(st.lane)


@st.device
def fill(row: Shared[i32], own: Local[i32], some: Registers[i32], given: Global[i32], at: i32) -> None:
    row[at] = given[at] * 2
    own[at % 4] = at
    for k in st.unroll(range(3)):
        some[k] = at + k


@feature([2 * (31 - x) * 3 + x + (x + 2) for x in range(32)], given=np.arange(0, 96, 3, dtype=np.int32), out=out())
@st.kernel
def device_arrays(given: Global[i32], out: Global[i32]) -> None:
    row = st.shared(i32, 32)
    own = st.local(i32, 4)
    some = st.registers(i32, 3)
    t = st.thread.x
    fill(row, own, some, given, t)
    st.sync()
    out[t] = row[31 - t] + own[t % 4] + some[2]


@st.device
def half(x: Real) -> Real:
    return x / 2


@feature([0.5 * x + 0.25 for x in range(32)], given=np.arange(32, dtype=np.float64), out=out(32, "f64"))
@st.kernel
def generic_over_real(given: Global[Real], out: Global[Real]) -> None:
    out[st.lane] = half(given[st.lane]) + 0.25


@st.device
def lookup(table: Constant[f32], at: i32) -> f32:
    return table[at]


@feature([0.5 if x % 2 == 0 else 0.25 for x in range(32)], out=out(32, "f32"))
@st.kernel
def constant_argument(out: Global[f32]) -> None:
    table = st.constant(f32, (0.5, 0.25))
    out[st.lane] = lookup(table, st.lane & 1)


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
    source = st.matrix(x, 32)
    result = st.matrix(out, 32)
    column = st.thread.x
    for row in range(st.thread.y, 32, 8):
        tile[row, column] = source[row, column]
    st.sync()
    for row in range(st.thread.y, 32, 8):
        result[row, column] = tile[column, row]


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
@feature([12] * 8, grid=3, block=32, out=out(8))
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


@feature([32 * 33 // 2], out=out(1))
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
