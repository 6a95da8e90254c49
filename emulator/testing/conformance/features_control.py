"""Feature kernels of loops, of literals and their types, and of what is known when a kernel is read."""

import enum
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32, i64, u32

from .feature import feature, out

WEIGHTS = (3, 5, 7, 11)
NEAR = ((0, 1), (1, 0), (2, 4))


# ------------------------------------------------------------------ loops
@feature([sum(range(x, 200, 96)) for x in range(96)], grid=3, out=out(96), n=200)
@st.kernel
def grid_stride(out: Global[i32], n: i32) -> None:
    first = st.block.x * st.block_dim.x + st.thread.x
    stride = st.grid_dim.x * st.block_dim.x
    total = 0
    for i in range(first, n, stride):
        total += i
    out[first] = total


@feature([sum(range(x, 40 - x, 8 - x)) if x != 8 else -1 for x in range(32)], out=out())
@st.kernel
def step_of_either_sign(out: Global[i32]) -> None:
    total = 0
    step = 8 - st.lane
    if step == 0:
        total = -1
    else:
        for i in range(st.lane, 40 - st.lane, step):
            if i == 1000:
                continue
            total += i
    out[st.lane] = total


@feature([sum(range(x, 90, 7)) + sum(range(x, 40, 1 << (x & 1))) for x in range(32)], out=out(32, "u32"), step=7)
@st.kernel
def unsigned_step(out: Global[u32], step: u32) -> None:
    first = u32(st.lane)
    total = u32(0)
    for i in range(first, 90, step):
        total += i
    for i in range(first, 40, u32(1) << (first & 1)):
        total += i
    out[st.lane] = total


@feature([x * sum(WEIGHTS) + sum(k * w for k, w in enumerate(WEIGHTS)) for x in range(32)], out=out())
@st.kernel
def loops_over_constants(out: Global[i32]) -> None:
    total = 0
    for weight in WEIGHTS:
        total += weight * st.lane
    for k, weight in enumerate(WEIGHTS):
        total += k * weight
    out[st.lane] = total


def _near(x: int) -> int:
    return sum(100 * dy + dx for dy, dx in NEAR) + sum(a * b for a, b in zip(WEIGHTS, (2, x, 4, x), strict=True))


@feature([_near(x) for x in range(32)], out=out())
@st.kernel
def loops_over_pairs(out: Global[i32]) -> None:
    total = 0
    for dy, dx in NEAR:
        total += 100 * dy + dx
    for a, b in zip(WEIGHTS, [2, st.lane, 4, st.lane], strict=True):
        total += a * b
    out[st.lane] = total


@feature([sum(k for k in range(8) if k % 3 and k < x) + (0 if x < 8 else 1000) for x in range(32)], out=out())
@st.kernel
def leaving_an_unrolled_loop(out: Global[i32]) -> None:
    total = 0
    for k in st.unroll(range(8)):
        if k == st.lane:
            break
        if k % 3 == 0:
            continue
        total += k
    else:
        total += 1000
    out[st.lane] = total


@st.device
def power(x: i32, EXPONENT: Const) -> i32:
    result = 1
    for _ in range(EXPONENT):
        result *= x
    return result


@feature([sum(x**k + WEIGHTS[k] for k in range(4)) + 6 for x in range(32)], out=out())
@st.kernel
def unrolled_numbers_are_constants(out: Global[i32]) -> None:
    total = 0
    for k in st.unroll(range(4)):
        row = st.registers(i32, k + 1)
        row[k] = WEIGHTS[k]
        total += power(st.lane, k) + row[k]
        for j in st.unroll(range(k)):
            total += 1 if WEIGHTS[j] < WEIGHTS[k] else 50
    out[st.lane] = total


@feature([next((i for i in range(2, x) if x % i == 0), -1) for x in range(32)], out=out())
@st.kernel
def for_else(out: Global[i32]) -> None:
    for i in range(2, st.lane):
        if st.lane % i == 0:
            out[st.lane] = i
            break
    else:
        out[st.lane] = -1


@feature([50 if x < 20 else x for x in range(32)], out=out())
@st.kernel
def while_else(out: Global[i32]) -> None:
    i = 0
    while i < 20:
        if i == st.lane:
            break
        i += 1
    else:
        i = st.lane - 50
    out[st.lane] = 50 if i == st.lane else i + 50


@feature([next(k for k in range(100) if k * k > 10 * x) for x in range(32)], out=out())
@st.kernel
def while_true_and_walrus(out: Global[i32]) -> None:
    k = 0
    while True:
        if ((square := k * k) > 10 * st.lane and square > 0) or (square == 0 and st.lane < 0):
            break
        k += 1
    out[st.lane] = k


@feature([sum(range(x)) + 6 + x * 5 + 7 for x in range(32)], out=out())
@st.kernel
def names_used_again(out: Global[i32], n: i32 = 3) -> None:
    total = 0
    for i in range(st.lane):
        total += i
    for i in range(i64(4)):
        total += i32(i)
    for n in range(5):
        total += st.lane
    i = 7
    out[st.lane] = total + i


@feature(
    [int(0 <= x < (3 * x) % 32 < 25) for x in range(32)], given=np.arange(0, 96, 3, dtype=np.int32) % 32, out=out()
)
@st.kernel
def chained_comparisons(given: Global[i32], out: Global[i32]) -> None:
    out[st.lane] = 1 if 0 <= st.lane < given[st.lane] < 25 else 0


# ------------------------------------------------------------------ literals and their types
@feature([0.1 * x + 0.25 for x in range(32)], given=np.arange(32) * 0.1, out=out(32, "f64"))
@st.kernel
def literals_take_the_type_of_their_uses(given: Global[f64], out: Global[f64]) -> None:
    total = 0.0
    copy = total + 0.25
    copy += given[st.lane]
    out[st.lane] = copy


@feature([(1 << 40) * x for x in range(32)], given=np.arange(32) << 40, out=out(32, "i64"))
@st.kernel
def whole_literals_too(given: Global[i64], out: Global[i64]) -> None:
    best = 0
    for i in range(32):
        if i == st.lane:
            best = given[i]
    out[st.lane] = best


@feature([0.5 if x < 3 else 2.0 for x in range(32)], out=out(32, "f64"), d=0.25)
@st.kernel
def choices_of_literals(out: Global[f64], d: f64) -> None:
    factor = 2 if st.lane < 3 else 8.0
    out[st.lane] = factor * d


class Mode(enum.Enum):
    """A constant of a module."""

    COPY = 1
    SCALE = 2


class Axis(enum.IntEnum):
    """Numbers with names."""

    X = 0
    Y = 1


@dataclass(frozen=True)
class Settings:
    """Constants of a module."""

    scale: float
    mode: Mode
    offsets: tuple[int, int]


class Window(NamedTuple):
    """Constants of a module."""

    low: int
    high: int


SETTINGS = Settings(0.5, Mode.SCALE, (4, 6))
WINDOW = Window(low=2, high=20)


def _limits(x: int) -> float:
    if x == 0:
        return math.inf
    if x == 1:
        return math.pi
    return x * 0.5 + 6 if 2 <= x < 20 else -math.inf


@feature(np.array([_limits(x) for x in range(32)], np.float32), out=out(32, "f32"))
@st.kernel
def constants_of_a_module(out: Global[f32]) -> None:
    value = -float("inf")
    if st.lane == Axis.X:
        value = math.inf
    elif st.lane == Axis.Y:
        value = f32(np.float32(math.pi))
    elif SETTINGS.mode == Mode.SCALE and WINDOW.low <= st.lane < WINDOW.high:
        value = f32(st.lane) * SETTINGS.scale + SETTINGS.offsets[Axis.Y]
    out[st.lane] = value


@st.device
def scaled(x: i32, factor: i32 = 3, *, offset: i32 = Axis.Y) -> i32:
    return x * factor + offset


@feature([3 * x + 1 + 2 * x + 1 + 3 * x + 9 + 5 for x in range(32)], out=out())
@st.kernel
def defaults_and_keywords(out: Global[i32], n: i32 = 5, MORE: Const = True) -> None:
    total = scaled(st.lane) + scaled(factor=2, x=st.lane)
    if MORE:
        total += scaled(st.lane, offset=9)
    out[st.lane] = total + n


SEPARATORS = (ord(","), 9)


def _members(x: int) -> int:
    return (x % 7 in (1, 4, x - 14)) + 2 * (x not in [3, 5, 8]) + 4 * (x + 30 in SEPARATORS)


@feature([_members(x) for x in range(32)], out=out())
@st.kernel
def members_of_tuples(out: Global[i32]) -> None:
    x = st.lane
    found = 1 if x % 7 in (1, 4, x - 14) else 0
    if x not in [3, 5, 8]:
        found += 2
    if (x + 30) in SEPARATORS and ord(",") in SEPARATORS:
        found += 4
    out[st.lane] = found


@feature([[10 + sum(range(4)) + x * 14, 2 * sum(range(4)), 6 + 2 * (x % 2)] for x in range(32)], out=out(96, "u32"))
@st.kernel
def constants_take_types(out: Global[u32]) -> None:
    word, real = u32(10), f32(0)
    five = i32(2) + 3
    for k in st.unroll(range(4)):
        word += k + u32(st.lane) * (k * k)
        part = 2 * k
        real += part
    out[st.lane * 3] = word
    out[st.lane * 3 + 1] = u32(real)
    both = st.registers(u32, five - 3)
    for k in (0, 1):
        at = i32(k)
        both[at] = u32((6, 8)[at])
    out[st.lane * 3 + 2] = both[0] if st.lane % 2 == 0 else both[1]


def _cast(x: int) -> float:
    return int(x * 1.5 - 10) + (x - 3) / 2 + (1 if x - 3 else 0)


@feature([_cast(x) for x in range(32)], out=out(32, "f32"))
@st.kernel
def python_casts(out: Global[f32]) -> None:
    whole = int(float(st.lane) * 1.5 - 10)
    half = float(st.lane - 3) / float(2)
    out[st.lane] = float(whole) + half + float(bool(st.lane - 3))


@feature([[x + 2, 2 * x + 1, 40 + x] for x in range(32)], out=out(96))
@st.kernel
def parts_by_index(out: Global[i32]) -> None:
    v = st.int4(st.lane, 1, 40, 0)
    for k in st.unroll(range(3)):
        v[k] += st.lane * k if k < 2 else st.lane
    v[0] += 2
    v[1] += st.lane
    for k in st.unroll(range(3)):
        out[st.lane * 3 + k] = v[k]
