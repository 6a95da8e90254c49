"""Kernels with traffic and time computable by hand."""

import numpy as np
import simtbed as st
from simtbed.model.launches import observe
from simtbed.model.observed import ObservedLaunch
from simtbed.runtime.request import prepare_request

H200 = st.devices.H200


@st.kernel
def copy(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out = x."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i]


@st.kernel
def reads(x: st.Global[st.f32], out: st.Global[st.f32], TIMES: st.Const, STRIDE: st.Const) -> None:
    """Each block reads its own 128 * STRIDE bytes TIMES times."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = st.f32(0)
    for _ in range(TIMES):
        total += x[i * STRIDE]
    out[i] = total


@st.kernel
def own_rows(x: st.Global[st.f32], out: st.Global[st.f32], TIMES: st.Const) -> None:
    """Each thread reads its own row by words."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = st.f32(0)
    for k in range(TIMES):
        total += x[i * TIMES + k]
    out[i] = total


@st.kernel
def halves(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """Two numbers at a distance of 32 bytes in each 64 bytes."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[16 * i] + x[16 * i + 8]


@st.kernel
def again(x: st.Global[st.f32], out: st.Global[st.f32], MASK: st.Const) -> None:
    """All blocks write to MASK + 1 elements."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i & MASK] = x[i]


@st.kernel
def written_and_read(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """x is read, then the written values."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i]
    out[i] = out[i] + st.f32(1)


@st.kernel
def table(x: st.Global[st.f32], out: st.Global[st.f32], n: st.i32) -> None:
    """All blocks read the same n numbers."""
    total = st.f32(0)
    for i in range(st.thread.x, n, st.block_dim.x):
        total += x[i]
    out[st.block.x * st.block_dim.x + st.thread.x] = total


@st.kernel
def chain(out: st.Global[st.f32], TURNS: st.Const) -> None:
    """Dependent sums, as many as the constant."""
    x = st.f32(1)
    for _ in st.unroll(range(TURNS)):
        x = x * st.f32(0.5) + st.f32(1)
    out[st.block.x * st.block_dim.x + st.thread.x] = x


@st.kernel
def total(x: st.Global[st.i32], out: st.Global[st.i32], MASK: st.Const) -> None:
    """Atomic sums at MASK + 1 addresses."""
    i = st.block.x * st.block_dim.x + st.thread.x
    st.atomic_add(out, i & MASK, x[i])


@st.kernel
def float_total(x: st.Global[st.f32], out: st.Global[st.f32], MASK: st.Const) -> None:
    """As `total`, for floats."""
    i = st.block.x * st.block_dim.x + st.thread.x
    st.atomic_add(out, i & MASK, x[i])


@st.kernel
def swap(x: st.Global[st.f32], out: st.Global[st.i32]) -> None:
    """A fetching compare-and-swap and an addition per thread, at separate addresses."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i + st.compare_swap(out, i, 0, 1)] = 0
    st.atomic_add(out, i, 1)


@st.kernel
def rows(x: st.Global[st.f32], out: st.Global[st.f32], READ: st.Const, WORDS: st.Const) -> None:
    """WORDS adjacent numbers per thread, each by a store. READ: with a load before each."""
    i = st.block.x * st.block_dim.x + st.thread.x
    value = x[i]
    for k in st.unroll(range(WORDS)):
        out[WORDS * i + k] = value + x[i] if READ else value


@st.kernel
def voted(x: st.Global[st.i32], out: st.Global[st.i32]) -> None:
    """Count ones at one address."""
    if x[st.block.x * st.block_dim.x + st.thread.x] == 1:
        st.atomic_add(out, 0, 1)


@st.kernel
def read_again(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """Two loads of one number on two lines, merged by the compiler."""
    i = st.block.x * st.block_dim.x + st.thread.x
    once = x[i]
    twice = x[i]
    out[i] = once * twice


@st.kernel
def product(x: st.Global[st.f32], out: st.Global[st.f32], n: st.i32) -> None:
    """The matrix x squared, one thread per element."""
    column, row = st.block.x * 8 + st.thread.x, st.block.y * 8 + st.thread.y
    total = st.f32(0)
    for k in range(n):
        total += x[row * n + k] * x[k * n + column]
    out[row * n + column] = total


@st.kernel
def spread(x: st.Global[st.f32], out: st.Global[st.f32], STRIDE: st.Const) -> None:
    """Write one number of every STRIDE."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i * STRIDE] = x[i]


@st.kernel
def table_traffic(
    table: st.Constant[st.i32], out: st.Global[st.i32], turns: st.i32, mask: st.i32, apart: st.i32
) -> None:
    """Dependent lookups in a constant table."""
    i = st.block.x * st.block_dim.x + st.thread.x
    at = (i >> 5) * apart
    total = 0
    for t in range(turns):
        for s in st.unroll(range(8)):
            total += table[(at + t * 8 + s) & mask]
    out[i] = total


@st.kernel
def broadcast(x: st.Global[st.f32], out: st.Global[st.f32], TURNS: st.Const) -> None:
    """All lanes read the same four adjacent numbers in shared memory repeatedly."""
    held = st.shared(st.f32, 256)
    t = st.thread.x
    if t < 256:
        held[t] = x[t]
    st.sync()
    total = st.f32(0)
    for turn in range(TURNS):
        at = (turn & 63) * 4
        total += held[at] * held[at + 1] + held[at + 2] * held[at + 3]
    out[st.block.x * st.block_dim.x + t] = total


@st.kernel
def exchange(x: st.Global[st.f32], out: st.Global[st.f32], STRIDE: st.Const, BLOCK: st.Const) -> None:
    """Exchange through shared memory with bank conflicts by STRIDE."""
    t = st.thread.x
    i = st.block.x * BLOCK + t
    held = st.shared(st.f32, BLOCK * STRIDE)
    held[t * STRIDE] = x[i]
    st.sync()
    out[i] = held[(BLOCK - 1 - t) * STRIDE]


@st.kernel
def uneven(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """The first block reads 64 numbers, the others one."""
    total = st.f32(0)
    for k in range(64 if st.block.x == 0 else 1):
        total += x[k]
    out[st.block.x * st.block_dim.x + st.thread.x] = total


def observed(
    kernel: st.Kernel, blocks: int, block: int = 256, elements: int = 0, device: st.Device = H200, source_only: bool = True,
    most: int = 1 << 22, outputs: int = 1, **consts: object,
) -> ObservedLaunch:  # fmt: skip
    """Observe a launch on arrays of ones. elements: of x, by default one per thread. outputs: per thread. most: sampled lines."""
    n = blocks * block
    x, out = ("i32" if kernel in whole else "f32" for whole in ((total, voted), (total, voted, swap)))
    args = {"x": np.ones(elements or n, np.int32 if x == "i32" else np.float32), "out": st.zeros(outputs * n, out)}
    if kernel is chain:
        args.pop("x")
    request = prepare_request(kernel, grid=blocks, block=block, args={**args, **consts}, device=device)
    return observe(request, source_only=source_only, max_lines=most)


def observed_product(n: int, most: int = 1 << 22) -> ObservedLaunch:
    """`product` of n rows, in blocks of 8 by 8."""
    args = {"x": np.ones(n * n, np.float32), "out": st.zeros(n * n, "f32"), "n": n}
    request = prepare_request(product, grid=(n // 8, n // 8), block=(8, 8), args=args, device=H200)
    return observe(request, source_only=True, max_lines=most)
