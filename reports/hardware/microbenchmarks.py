"""Microbenchmark kernels, one for each value of a device.

Chains are dependent operations, timed with the SM's clock by one warp. Rates are launches that fill the GPU, timed
as a whole. Each kernel has known outputs, for tests on an emulator.
"""

import simtbed as st
from simtbed import Const, Global, Kernel, f32, i32, i64, u32


@st.kernel
def empty(out: Global[i32]) -> None:
    """Empty except for one store."""
    if st.block.x == 0 and st.thread.x == 0:
        out[0] = 1


@st.kernel
def spin(out: Global[i64], turns: i32) -> None:
    """A long chain by one thread: out is its cycles."""
    start = st.clock64()
    x = f32(1)
    for _ in range(turns):
        x = x * f32(0.5) + f32(1)
    end = st.clock64()
    out[0] = end - start
    out[1] = i64(x)


@st.kernel
def flush(x: Global[st.float4], out: Global[f32], n: i32) -> None:
    """Read n times 16 bytes. With n beyond the size of L2, this evicts all other data and leaves no dirty line."""
    total = f32(0)
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        part = x[i]
        total += part.x + part.y + part.z + part.w
    out[st.block.x * st.block_dim.x + st.thread.x] = total


# ------------------------------------------------------------------ chains: latencies
def _chain(name: str, type: str, operation: str) -> Kernel:
    """Return a kernel of STEPS dependent operations on y an iteration. x is 0."""
    return st.kernel(
        source=f"""def {name}(out: st.Global[st.i64], x: st.{type}, TURNS: st.Const, STEPS: st.Const) -> None:
    y = x + st.{type}(st.thread.x)
    start = st.clock64()
    for _ in range(TURNS):
        for _step in st.unroll(range(STEPS)):
            y = {operation}
    end = st.clock64()
    if st.thread.x == 0:
        out[0] = end - start
        out[1] = st.i64(y)
"""
    )


float_chain = _chain("float_chain", "f32", "y + x")
double_chain = _chain("double_chain", "f64", "y + x")
product_chain = _chain("product_chain", "i32", "y * y + y")
convert_chain = _chain("convert_chain", "i32", "st.i32(st.f32(y))")
shuffle_chain = _chain("shuffle_chain", "i32", "st.shuffle_xor(y, 1)")


@st.kernel
def barriers(out: Global[i64], TURNS: Const, STEPS: Const) -> None:
    """STEPS barriers an iteration."""
    start = st.clock64()
    for _ in range(TURNS):
        for _step in st.unroll(range(STEPS)):
            st.sync()
    end = st.clock64()
    if st.thread.x == 0:
        out[0] = end - start


@st.kernel
def shared_chase(next: Global[i32], out: Global[i64], hops: i32) -> None:
    """A cycle of 32 words in shared memory."""
    held = st.shared(i32, 32)
    held[st.thread.x] = next[st.thread.x]
    st.sync()
    if st.thread.x == 0:
        at = 0
        start = st.clock64()
        for _ in range(hops):
            at = held[at]
        end = st.clock64()
        out[0] = end - start
        out[1] = i64(at)


@st.kernel
def chase(next: Global[i32], out: Global[i64], warm: i32, hops: i32) -> None:
    """A cycle through global memory by one thread: `warm` untimed hops, then `hops` timed ones."""
    at = 0
    for _ in range(warm):
        at = next[at]
    start = st.clock64()
    for _ in range(hops):
        at = next[at]
    end = st.clock64()
    out[0] = end - start
    out[1] = i64(at)


@st.kernel
def atomic_lines(x: Global[i32], out: Global[i64], lines: i32, hops: i32) -> None:
    """A chain of atomic operations on each line. x[32 * line] is 32 * line."""
    for line in range(lines):
        at = st.atomic_add(x, 32 * line, 0)
        start = st.clock64()
        for _ in range(hops):
            at = st.atomic_add(x, at, 0)
        end = st.clock64()
        out[line] = end - start
        out[lines] = i64(at)


# ------------------------------------------------------------------ rates of instructions
def _rate(name: str, type: str, operation: str, start: str = "x") -> Kernel:
    """Return a kernel of 32 operations a thread and iteration, in four chains. {v}, {w}: the variables of a chain and of the next one."""
    steps = ", ".join(operation.format(v=v, w=w) for v, w in ("ab", "bc", "cd", "da"))
    return st.kernel(
        source=f"""def {name}(out: st.Global[st.{type}], x: st.{type}, TURNS: st.Const) -> None:
    x = {start}
    a, b, c, d = x, x + 1, x + 2, x + 3
    for _ in range(TURNS):
        for _step in st.unroll(range(8)):
            a, b, c, d = {steps}
    out[st.block.x * st.block_dim.x + st.thread.x] = a + b + c + d
"""
    )


_OF_THREAD = "x + st.thread.x"
float_rate = _rate("float_rate", "f32", "{v} + x")
double_rate = _rate("double_rate", "f64", "{v} + x")
product_rate = _rate("product_rate", "i32", "{v} * x + x", _OF_THREAD)
logic_rate = _rate("logic_rate", "i32", "max({v} ^ x, {w})", _OF_THREAD)
convert_rate = _rate("convert_rate", "i32", "st.i32(st.f32({v}))", _OF_THREAD)
shuffle_rate = _rate("shuffle_rate", "i32", "st.shuffle_xor({v}, 1)", _OF_THREAD)


# ------------------------------------------------------------------ memories
@st.kernel
def copy(x: Global[f32], out: Global[f32]) -> None:
    """out = x."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i]


@st.kernel
def wide_copy(x: Global[st.float4], out: Global[st.float4], n: i32) -> None:
    """out = x, n times 16 bytes, by few threads."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        out[i] = x[i]


@st.kernel
def wide_write(out: Global[st.float4], n: i32) -> None:
    """out = 1, n times 16 bytes, by few threads."""
    one = st.float4(1.0, 1.0, 1.0, 1.0)
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        out[i] = one


@st.kernel
def scatter(out: Global[f32], mask: i32) -> None:
    """Write 16 random elements a thread, below `mask`."""
    drawn = u32(st.block.x * st.block_dim.x + st.thread.x) * u32(2654435761) + u32(12345)
    for _ in st.unroll(range(16)):
        drawn = drawn * u32(1664525) + u32(1013904223)
        out[i32(drawn >> u32(8)) & mask] = f32(1)


@st.kernel
def pick(x: Global[f32], index: Global[i32], out: Global[f32]) -> None:
    """out = x[index]."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[index[i]]


@st.kernel
def gathers(x: Global[f32], out: Global[f32], mask: i32, turns: i32) -> None:
    """Read 8 random elements a thread and iteration, below `mask`."""
    i = st.block.x * st.block_dim.x + st.thread.x
    drawn, total = u32(i) * u32(2654435761) + u32(12345), f32(0)
    for _ in range(turns):
        for _step in st.unroll(range(8)):
            drawn = drawn * u32(1664525) + u32(1013904223)
            total += x[i32(drawn >> u32(8)) & mask]
    out[i] = total


@st.kernel
def reads(x: Global[f32], out: Global[f32], mask: i32, step: i32, apart: i32, turns: i32) -> None:
    """Read 16 elements a thread and iteration at the stride of a block. Iterations start at multiples of `step`, blocks
    at multiples of `apart`, modulo `mask` + 1."""
    at = st.block.x * apart
    total = f32(0)
    for _ in range(turns):
        first = (at & mask) + st.thread.x
        for k in st.unroll(range(16)):
            total += x[first + k * st.block_dim.x]
        at += step
    out[st.block.x * st.block_dim.x + st.thread.x] = total


@st.kernel
def wide_reads(x: Global[st.float4], out: Global[f32], mask: i32, step: i32, turns: i32) -> None:
    """As `reads`, four times 16 bytes an iteration; all blocks read the same data."""
    at = 0
    total = f32(0)
    for _ in range(turns):
        first = (at & mask) + st.thread.x
        for k in st.unroll(range(4)):
            part = x[first + k * st.block_dim.x]
            total += (part.x + part.y) + (part.z + part.w)
        at += step
    out[st.block.x * st.block_dim.x + st.thread.x] = total


@st.kernel
def adds(index: Global[i32], out: Global[i32]) -> None:
    """Every thread adds 1 to out[index]."""
    st.atomic_add(out, index[st.block.x * st.block_dim.x + st.thread.x], 1)


@st.kernel
def float_adds(out: Global[f32]) -> None:
    """Every thread adds 1 to one number."""
    st.atomic_add(out, 0, f32(1))


@st.kernel
def swaps(index: Global[i32], out: Global[i32]) -> None:
    """Replace a 0 by 1 at four elements of out[index] a thread, and reset it."""
    i, threads = st.block.x * st.block_dim.x + st.thread.x, st.grid_dim.x * st.block_dim.x
    for k in st.unroll(range(4)):
        st.compare_swap(out, index[i + k * threads], 0, 1)
    for k in st.unroll(range(4)):
        st.compare_swap(out, index[i + k * threads], 1, 0)


# ------------------------------------------------------------------ merged stores
@st.kernel
def stores_later(out: Global[f32], turns: i32, WORDS: Const, LATER: Const) -> None:
    """A thread stores WORDS adjacent words, one store each, with LATER products between two stores; `turns` iterations."""
    i, threads = st.block.x * st.block_dim.x + st.thread.x, st.grid_dim.x * st.block_dim.x
    value = f32(st.thread.x)
    for turn in range(turns):
        first = (turn * threads + i) * WORDS
        for k in st.unroll(range(WORDS)):
            out[first + k] = value
            for _step in st.unroll(range(LATER)):
                value = value * f32(0.5)


@st.kernel
def stores_queued(x: Global[f32], out: Global[i64], STORES: Const) -> None:
    """A warp makes STORES stores, each to 32 lines: out is the cycles until the last one is issued."""
    start = st.clock64()
    for k in st.unroll(range(STORES)):
        x[(k * 32 + st.lane) * 32] = f32(1)
    end = st.clock64()
    if st.thread.x == 0:
        out[0] = end - start


@st.kernel
def regions_in_turn(out: Global[f32], turns: i32, region: i32, REGIONS: Const) -> None:
    """A thread writes the first one of two words in each of REGIONS regions, then the second one of each; `turns` iterations."""
    i, threads = st.block.x * st.block_dim.x + st.thread.x, st.grid_dim.x * st.block_dim.x
    for turn in range(turns):
        first = (turn * threads + i) * 2
        for k in st.unroll(range(2)):
            for r in st.unroll(range(REGIONS)):
                out[first + k + r * region] = f32(1)
