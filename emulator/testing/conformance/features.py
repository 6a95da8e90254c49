"""One tiny kernel for each feature of the language, with its answer worked out in plain Python.

the other files named features have memory, barriers, warps and atomic operations; this file has arithmetic, control flow and functions. Their names and
texts are recorded on GPUs: a change of either makes the records stale.
"""

import numpy as np
import simtbed as st
from simtbed import Array, Const, Constant, Global, Local, Real, Registers, Shared, f32, f64, i32, i64, u8, u32, u64

from ...runtime.arrays import zeros
from .feature import feature, out

TABLE = (2, 3, 5, 7)


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


@st.device
def nibble(word: u32, at: i64) -> u32:
    """Four bits of a word."""
    return (word >> (4 * at)) & 15


@feature(
    [v for x in range(32) for v in (x << x % 8, 0xFFFFFFFF >> x, 0x76543210 >> 4 * (x % 8) & 15)], out=out(96, "u64")
)
@st.kernel
def shifts_by_counts_of_any_type(out: Global[u64]) -> None:
    t = st.lane
    narrow, mask = u8(t % 8), u32(0xFFFFFFFF)
    mask >>= t
    out[t * 3] = u64(t) << narrow
    out[t * 3 + 1] = u64(mask)
    both = 0
    for k in st.unroll(range(8)):
        both |= (u64(nibble(0x76543210, i64(narrow))) >> k & 1) << k
    out[t * 3 + 2] = both


@feature([v for x in range(32) for v in (max(x - 9, -3), max(x, 20 - x, 15))], out=out(64))
@st.kernel
def maxima_of_sums_and_of_three(out: Global[i32]) -> None:
    x = st.lane
    out[st.lane * 2] = st.viaddmax(x, -9, -3)
    out[st.lane * 2 + 1] = st.vimax3(x, 20 - x, 15)


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


@feature([x + 3 * (x + 1) for x in range(32)], out=out())
@st.kernel
def loop_bounds_are_read_once(out: Global[i32]) -> None:
    most = st.registers(i32, 1)
    most[0] = st.lane + 1
    total = st.lane
    for _ in range(most[0]):
        most[0] += 1
        total += 3
    out[st.lane] = total


@feature([sum(range(x + 5, 3, -3)) for x in range(32)], out=out(32, "u32"))
@st.kernel
def unsigned_countdown(out: Global[u32]) -> None:
    total = u32(0)
    for i in range(u32(st.lane) + 5, u32(3), -3):
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


@feature([x if x < 7 else 7 if x < 20 else 0 for x in range(32)], out=zeros(32, i32))
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
def second_of(any_memory: Array[i32], at: i32) -> i32:
    return any_memory[at + 1]


@feature([4 * (x + 1) + 5 for x in range(32)], given=np.arange(0, 99, 3, dtype=np.int32), out=out())
@st.kernel
def arrays_of_any_memory(given: Global[i32], out: Global[i32]) -> None:
    row = st.shared(i32, 33)
    own = st.local(i32, 2)
    row[st.lane + 1] = st.lane + 1
    own[1] = 5
    out[st.lane] = second_of(given, st.lane) + second_of(row, st.lane) + second_of(own, 0)


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


@feature([20 * x + 700 for x in range(32)], out=out())
@st.kernel
def names_of_unrolled_numbers(out: Global[i32]) -> None:
    """A name given once to what unrolling makes a constant is one: an index of registers, a bound, a condition."""
    kept = st.registers(i32, 6)
    for row in st.unroll(range(2)):
        for part in st.unroll(range(3)):
            at = 3 * row + part
            kept[at] = 0
            for turn in st.unroll(range(at)):
                last = turn + 1
                kept[last] += st.lane if last == at else 0
            kept[at] = 10 * at + kept[at]
    total = i32(0)
    for number in st.unroll(range(6)):
        total += kept[number] * (number + 1)
    out[st.lane] = total
