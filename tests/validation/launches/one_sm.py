"""Launches with different numbers of warps on an SM: stores merged by L1, cycles of L1 for the lines of a load, the
port to L2, first fetches of instructions.

One block an SM, or a few; the number of warps varies between launches.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, Kernel, f32, i32, u32, u64
from simtbed.reports.hardware.launches import Timed
from simtbed.reports.hardware.microbenchmarks import empty, regions_in_turn

SMS = 132
WARPS = (1, 2, 4, 8, 16, 32)
_STORING = 1 << 14
"""Maximum number of words that an SM stores of each number of a thread."""


# ------------------------------------------------------------------ stores
@st.kernel
def words_in_turn(out: Global[f32], turns: i32, N: Const) -> None:
    """A thread writes N words side by side, each by a store; `turns` times."""
    i, threads = st.block.x * st.block_dim.x + st.thread.x, st.grid_dim.x * st.block_dim.x
    for turn in range(turns):
        first = (turn * threads + i) * N
        for k in st.unroll(range(N)):
            out[first + k] = f32(1)


@st.kernel
def words_apart(out: Global[f32], turns: i32, delay: i32, N: Const) -> None:
    """The same, with `delay` products between stores. A loop prevents nvcc from joining the stores."""
    i, threads = st.block.x * st.block_dim.x + st.thread.x, st.grid_dim.x * st.block_dim.x
    value = f32(st.thread.x)
    for turn in range(turns):
        first = (turn * threads + i) * N
        for k in st.unroll(range(N)):
            out[first + k] = value
            for _ in range(delay):
                value = value * f32(0.5)


@st.kernel
def stores_drawn(out: Global[f32], mask: i32, turns: i32) -> None:
    """Sixteen random words an iteration, below `mask`."""
    drawn = u32(st.block.x * st.block_dim.x + st.thread.x) * u32(2654435761) + u32(12345)
    for _ in range(turns):
        for _step in st.unroll(range(16)):
            drawn = drawn * u32(1664525) + u32(1013904223)
            out[i32(drawn >> u32(8)) & mask] = f32(1)


# ------------------------------------------------------------------ loads
@st.kernel
def looked_up(x: Global[f32], out: Global[f32], lanes: i32, apart: i32, turns: i32) -> None:
    """The first `lanes` lanes read words at a stride of `apart`, the others repeat them; sixteen loads an iteration, of
    the same lines each."""
    first = st.lane % lanes * apart
    total = f32(0)
    for turn in range(turns):
        for k in st.unroll(range(16)):
            total += x[first + 32 * (turn & 3) + 128 * k]
    out[st.block.x * st.block_dim.x + st.thread.x] = total


@st.kernel
def groups_drawn(x: Global[f32], out: Global[f32], mask: i32, turns: i32, GROUP: Const) -> None:
    """GROUP neighbours read adjacent words; sixteen random reads an iteration, below `mask`."""
    i = st.block.x * st.block_dim.x + st.thread.x
    drawn, total = u32(i // GROUP) * u32(2654435761) + u32(12345), f32(0)
    for _ in range(turns):
        for _step in st.unroll(range(16)):
            drawn = drawn * u32(1664525) + u32(1013904223)
            total += x[((i32(drawn >> u32(8)) * GROUP) & mask) + i % GROUP]
    out[i] = total


@st.kernel
def own_lines(x: Global[f32], out: Global[f32], turns: i32, lines: i32) -> None:
    """Sixteen consecutive whole lines an iteration; the first lines of two warps are at a constant distance."""
    first = st.warp * lines * 32 + st.lane
    total = f32(0)
    for turn in range(turns):
        for k in st.unroll(range(16)):
            total += x[first + (turn & 1) * 32 + k * 32]
    out[st.block.x * st.block_dim.x + st.thread.x] = total


# ------------------------------------------------------------------ barriers
@st.kernel
def barriers_in_turn(out: Global[i32], turns: i32) -> None:
    """Sixteen barriers an iteration, each followed by a sum."""
    total = st.thread.x
    for _turn in range(turns):
        for _step in st.unroll(range(16)):
            st.sync()
            total += total >> 1
    out[st.block.x * st.block_dim.x + st.thread.x] = total


@st.kernel
def counts_in_turn(out: Global[i32], turns: i32) -> None:
    """Sixteen counting barriers an iteration; the predicate is the previous count."""
    total = st.thread.x
    for _turn in range(turns):
        for _step in st.unroll(range(16)):
            total = st.sync_count(total & 1 == 0) + st.thread.x
    out[st.block.x * st.block_dim.x + st.thread.x] = total


# ------------------------------------------------------------------ instructions
@st.kernel
def straight(out: Global[f32], x: f32, turns: i32, N: Const) -> None:
    """A chain of N products without a jump, `turns` times."""
    value = x
    for _ in range(turns):
        for _step in st.unroll(range(N)):
            value = value * f32(0.5) + x
    out[st.block.x * st.block_dim.x + st.thread.x] = value


@st.kernel
def products_in_turn(out: Global[u32], x: u32, turns: i32) -> None:
    """32 products of 32 bits an iteration, in four chains."""
    a = x + u32(st.thread.x)
    b, c, d = a + u32(1), a + u32(2), a + u32(3)
    for _ in range(turns):
        for _step in st.unroll(range(8)):
            a, b, c, d = a * x + a, b * x + b, c * x + c, d * x + d
    out[st.block.x * st.block_dim.x + st.thread.x] = a + b + c + d


@st.kernel
def long_products_in_turn(out: Global[u32], x: u32, turns: i32) -> None:
    """The same of 64 bits."""
    a = u64(x) + u64(st.thread.x)
    b, c, d = a + u64(1), a + u64(2), a + u64(3)
    for _ in range(turns):
        for _step in st.unroll(range(8)):
            a, b = u64(u32(a)) * u64(x) + a, u64(u32(b)) * u64(x) + b
            c, d = u64(u32(c)) * u64(x) + c, u64(u32(d)) * u64(x) + d
    out[st.block.x * st.block_dim.x + st.thread.x] = u32(a + b + c + d)


@st.kernel
def mixed_products_in_turn(out: Global[u32], x: u32, y: f32, turns: i32) -> None:
    """Sixteen products of 32 bits, and sixteen of floating point numbers."""
    a = x + u32(st.thread.x)
    b = a + u32(1)
    c, d = f32(a), f32(b)
    for _ in range(turns):
        for _step in st.unroll(range(8)):
            a, c = a * x + a, st.fma(c, y, c)
            b, d = b * x + b, st.fma(d, y, d)
    out[st.block.x * st.block_dim.x + st.thread.x] = a + b + st.bitcast(u32, c + d)


@st.kernel
def long_mixed_products_in_turn(out: Global[u32], x: u32, y: f32, turns: i32) -> None:
    """The same of 64 bits and of floating point numbers."""
    a = u64(x) + u64(st.thread.x)
    b = a + u64(1)
    c, d = f32(x), f32(x) + f32(1)
    for _ in range(turns):
        for _step in st.unroll(range(8)):
            a, c = u64(u32(a)) * u64(x) + a, st.fma(c, y, c)
            b, d = u64(u32(b)) * u64(x) + b, st.fma(d, y, d)
    out[st.block.x * st.block_dim.x + st.thread.x] = u32(a + b) + st.bitcast(u32, c + d)


# ------------------------------------------------------------------ launches
PATTERNS = (
    (1, 0), (2, 1), (8, 1), (16, 1), (32, 1), (2, 8), (4, 8), (2, 32), (2, 33), (4, 32), (4, 33), (8, 32), (8, 33), (16, 33), (32, 33),
    (32, 2), (32, 3), (32, 4), (32, 8), (32, 9), (8, 9), (8, 2), (8, 4), (16, 9), (32, 32),
)  # fmt: skip
"""Lanes with different words, and their stride in words: 1 to 4 sectors of a line, 1 to 32 lines, different banks or one bank."""


def _written(size: int, dtype: Any = np.float32, **consts: float) -> Mapping[str, Any]:
    return {"out": np.zeros(size, dtype), **consts}


def _read(words: int, threads: int, **consts: int) -> Mapping[str, Any]:
    return {"x": np.ones(words, np.float32), **_written(threads, **consts)}


def _iterations(words: int, warps: int) -> int:
    return max(1, _STORING // words // (32 * warps))


def _case(kernel: Kernel, label: str, blocks: int, warps: int, make: Any, *sizes: Any, **consts: int) -> Timed:
    return Timed(f"{kernel.__name__} {label} {32 * warps}", kernel, blocks, 32 * warps, partial(make, *sizes, **consts))


def storing() -> Iterator[Timed]:
    """Yield launches of stores; the sectors of their requests to L2 are also counted."""
    for n in (2, 3, 4, 6, 8, 9, 16):
        for warps in WARPS if n in (4, 9) else (1, 4, 8, 32):
            iterations = _iterations(n, warps)
            words = SMS * 32 * warps * iterations * n
            yield _case(words_in_turn, f"{n}", SMS, warps, _written, words, turns=iterations, N=n)
    for n, delay in ((4, 8), (4, 32), (4, 128), (9, 8), (9, 32)):
        for warps in (1, 4, 16):
            iterations = _iterations(n, warps)
            words = SMS * 32 * warps * iterations * n
            yield _case(
                words_apart, f"{n} {delay}", SMS, warps, _written, words, turns=iterations, delay=delay, N=n
            )  # fmt: skip
    for regions in (1, 2, 4, 8, 16, 32):
        for warps in (1, 4):
            iterations = _iterations(2 * regions, warps)
            region = SMS * 64 * warps * iterations
            yield _case(
                regions_in_turn, f"{regions}", SMS, warps, _written, region * regions, turns=iterations, region=region,
                REGIONS=regions,
            )  # fmt: skip


def cases() -> Iterator[Timed]:
    """Yield all launches; the last word of a name is the size of the block."""
    yield from storing()
    for blocks, warps in ((1, 1), (SMS, 1), (SMS, 32), (8 * SMS, 8)):
        yield _case(empty, f"{blocks}", blocks, warps, _written, 1, np.int32)
    for n in (64, 256, 1024, 4096):
        for iterations in (1, 2, 4):
            for warps in (1, 16):
                consts: Any = {"x": 1.0, "turns": iterations, "N": n}
                yield _case(straight, f"{n} {iterations}", SMS, warps, _written, SMS * 32 * warps, **consts)
    for blocks in (1, 16, SMS):
        for warps in (1, 8, 32):
            words = 1 << 20
            yield _case(
                stores_drawn, f"{blocks}", blocks, warps, _written, words, mask=words - 1, turns=max(1, 32 // warps)
            )
    for lanes, stride in PATTERNS:
        words = 128 * 16 + 32 * 3 + lanes * stride + 1
        yield _case(
            looked_up, f"{lanes} {stride}", 2 * SMS, 32, _read, words, 2 * SMS * 1024, lanes=lanes, apart=stride, turns=16,
        )  # fmt: skip
    for warps in (1, 4, 16):
        yield _case(looked_up, "8 33", SMS, warps, _read, 2500, SMS * 32 * warps, lanes=8, apart=33, turns=64)
    yield from _pipes_and_ports()


def _pipes_and_ports() -> Iterator[Timed]:
    """Yield launches of whole lines, barriers, products and adjacent words."""
    for lines in (0, 1, 2, 16, 17):
        words = 32 * (32 * lines + 18)
        yield _case(own_lines, f"{lines}", 2 * SMS, 32, _read, words, 2 * SMS * 1024, lines=lines, turns=64)
    for kernel in (barriers_in_turn, counts_in_turn):
        for warps in (1, 2, 4, 8, 16, 32):
            for resident in (1, 2, 4, 8, 16):
                if warps * resident <= 64:
                    threads = resident * SMS * 32 * warps
                    yield _case(kernel, f"{resident}", resident * SMS, warps, _written, threads, np.int32, turns=32)
    for kernel in (products_in_turn, long_products_in_turn, mixed_products_in_turn, long_mixed_products_in_turn):
        other = {} if kernel in (products_in_turn, long_products_in_turn) else {"y": 0.5}
        for warps in (1, 8, 32):
            make = partial(_written, SMS * 32 * warps, np.uint32, x=3, turns=128, **other)
            yield Timed(f"{kernel.__name__} {32 * warps}", kernel, SMS, 32 * warps, make)
    for group in (1, 8, 32):
        for blocks in (1, 16, SMS):
            for warps in (4, 32):
                words, iterations = 1 << 22, 64 // warps
                consts = {"mask": words - 1, "turns": iterations, "GROUP": group}
                yield _case(
                    groups_drawn, f"{group} {blocks}", blocks, warps, _read, words, blocks * 32 * warps, **consts
                )
