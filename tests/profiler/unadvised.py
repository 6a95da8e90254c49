"""Kernels without an avoidable cost of some kind, though they resemble those of `advised`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.profiler.profile import Profile

from .advised import CLOSE, INDEX, SHUFFLE, N, column, floats, gather, histogram, lookup, profile, row_sums, two_kinds


# ------------------------------------------------------------------ atomics
@st.kernel
def own_elements(out: Global[i32], STEP: Const) -> None:
    """Each lane adds to an element of its own, STEP elements after that of the lane before it."""
    st.atomic_add(out, (st.block.x * st.block_dim.x + st.thread.x) * STEP, 1)


@st.kernel
def own_bins(values: Global[i32], out: Global[i32]) -> None:
    """Each thread has eight bins of its own."""
    t = st.thread.x
    for k in range(16):
        st.atomic_add(out, values[k * 128 + t] % 8 * 128 + t, 1)


@st.kernel
def claim(keys: Global[i32], table: Global[i32], slots: i32) -> None:
    """Insert keys into a hash table with open addresses."""
    key = keys[st.block.x * st.block_dim.x + st.thread.x]
    at = (key * 40503 & 0x7FFFFFFF) % slots
    waiting = True
    while waiting:
        old = st.compare_swap(table, at, -1, key)
        if old == -1 or old == key:
            waiting = False
        at = (at + 1) % slots


@st.kernel
def last_value(out: Global[i32], seen: Global[i32]) -> None:
    """Exchanges, whose results depend on each other."""
    t = st.thread.x
    seen[st.block.x * 128 + t] = st.atomic_exchange(out, 0, t)


@st.kernel
def shared_histogram(values: Global[i32], out: Global[i32]) -> None:
    """A histogram of 256 bins by block."""
    bins = st.shared(i32, 256)
    t = st.thread.x
    bins[t] = 0
    bins[t + 128] = 0
    st.sync()
    for k in range(8):
        st.atomic_add(bins, values[st.block.x * 1024 + k * 128 + t], 1)
    st.sync()
    out[st.block.x * 256 + t] = bins[t]
    out[st.block.x * 256 + t + 128] = bins[t + 128]


# ------------------------------------------------------------------ memory
@st.kernel
def product(a: Global[f32], b: Global[f32], out: Global[f32], n: i32) -> None:
    """A matrix product in blocks of 16 x 16, without tiles: a warp reads one element of each of two rows of a."""
    i, j = st.block.y * 16 + st.thread.y, st.block.x * 16 + st.thread.x
    total = f32(0)
    for k in range(n):
        total += a[i * n + k] * b[k * n + j]
    out[i * n + j] = total


@st.kernel
def tiled_product(a: Global[f32], b: Global[f32], out: Global[f32], n: i32) -> None:
    """The same with tiles in shared memory."""
    mine = st.shared(f32, 256)
    other = st.shared(f32, 256)
    tx, ty = st.thread.x, st.thread.y
    i, j = st.block.y * 16 + ty, st.block.x * 16 + tx
    total = f32(0)
    for first in range(0, n, 16):
        mine[ty * 16 + tx] = a[i * n + first + tx]
        other[ty * 16 + tx] = b[(first + ty) * n + j]
        st.sync()
        for k in range(16):
            total += mine[ty * 16 + k] * other[k * 16 + tx]
        st.sync()
    out[i * n + j] = total


@st.kernel
def stencil(x: Global[f32], out: Global[f32], n: i32) -> None:
    """The mean of three neighbours."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i > 0 and i < n - 1:
        out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0


@st.kernel
def stencil_in_loop(x: Global[f32], out: Global[f32]) -> None:
    """The sum of seven neighbours."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = f32(0)
    for k in range(7):
        total += x[i + k + 1]
    out[i] = total


@st.kernel
def odd_rows(x: Global[f32], out: Global[f32], width: i32) -> None:
    """Copy rows of an odd width."""
    i, row = st.thread.x, st.block.x
    while i < width:
        out[row * width + i] = x[row * width + i]
        i += st.block_dim.x


@st.kernel
def tail(x: Global[f32], out: Global[f32], n: i32) -> None:
    """Copy with a bounds guard."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i]


@st.kernel
def vectors(x: Global[st.float4], out: Global[f32]) -> None:
    """One access of a struct of four fields."""
    i = st.block.x * st.block_dim.x + st.thread.x
    v = x[i]
    out[i] = v.x + v.y + v.z + v.w


@st.kernel
def every_other_lane(x: Global[f32], out: Global[f32]) -> None:
    """Even lanes copy their element."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i % 2 == 0:
        out[i] = x[i]


@st.kernel
def global_tree(x: Global[f32], n: i32) -> None:
    """A reduction in global memory: the distance doubles with each step."""
    t = st.thread.x
    step = 1
    while step < n:
        if t % (2 * step) == 0:
            x[t] = x[t] + x[t + step]
        st.sync()
        step *= 2


@st.kernel
def bitonic(x: Global[i32], n: i32) -> None:
    """A sorting network in global memory."""
    t = st.thread.x
    size = 2
    while size <= n:
        distance = size // 2
        while distance > 0:
            other = t ^ distance
            if other > t:
                a, b = x[t], x[other]
                if (a > b) == (t & size == 0):
                    x[t] = b
                    x[other] = a
            st.sync()
            distance //= 2
        size *= 2


@st.kernel
def reduction(x: Global[f32], out: Global[f32]) -> None:
    """A reduction in shared memory."""
    partial_sums = st.shared(f32, 128)
    t = st.thread.x
    partial_sums[t] = x[st.block.x * 128 + t]
    st.sync()
    width = 64
    while width > 0:
        if t < width:
            partial_sums[t] += partial_sums[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial_sums[0]


@st.kernel
def one_barrier(x: Global[f32], out: Global[f32]) -> None:
    """Reverse the elements of a block."""
    tile = st.shared(f32, 128)
    t = st.thread.x
    tile[t] = x[st.block.x * 128 + t]
    st.sync()
    out[st.block.x * 128 + t] = tile[127 - t]


@st.kernel
def uniform_local(x: Global[f32], out: Global[f32], n: i32) -> None:
    """Indices that a compiler knows, once it has unrolled the loops."""
    t = st.thread.x
    own = st.local(f32, 8)
    if t < n:
        for k in range(8):
            own[k] = x[k * 128 + t]
        for k in range(1, 8):
            value = own[k]
            at = k - 1
            while at >= 0 and own[at] > value:
                own[at + 1] = own[at]
                at -= 1
            own[at + 1] = value
        at = 0
        while at < 8:
            out[at * 128 + t] = own[7 - at]
            at += 1


COEFFICIENTS = (0.25, 0.5, 0.25, 1.0)


@st.kernel
def uniform_constant(x: Global[f32], out: Global[f32]) -> None:
    """All lanes read one coefficient at a time."""
    coefficients = st.constant(f32, COEFFICIENTS)
    i = st.block.x * st.block_dim.x + st.thread.x
    total = f32(0)
    for k in range(4):
        total += coefficients[k] * x[i]
    out[i] = total


# ------------------------------------------------------------------ control
@st.kernel
def half_idle(out: Global[i32]) -> None:
    """Half of the threads execute eight iterations each, the others none."""
    t = st.thread.x
    total = 0
    if t % 2 == 0:
        for k in range(8):
            total += k * t
    out[st.block.x * 128 + t] = total


@st.kernel
def half_idle_in_loop(out: Global[i32]) -> None:
    """The same by the bounds of the loop."""
    t = st.thread.x
    total = 0
    for k in range(8 if t % 2 == 0 else 0):
        total += k * t
    out[st.block.x * 128 + t] = total


@st.kernel
def escape(x: Global[f32], out: Global[i32]) -> None:
    """Iterations until a sequence exceeds a limit, which only the loop can find out."""
    i = st.block.x * st.block_dim.x + st.thread.x
    v = x[i]
    steps = 0
    while v < 100.0 and steps < 60:
        v = v * 1.25 + 0.125
        steps += 1
    out[i] = steps


@st.kernel
def search(x: Global[i32], keys: Global[i32], out: Global[i32], n: i32) -> None:
    """The position of each key in a list, by a linear search that ends at the key."""
    i = st.block.x * st.block_dim.x + st.thread.x
    at = -1
    for k in range(n):
        if x[k] == keys[i]:
            at = k
            break
    out[i] = at


@st.kernel
def triangle(out: Global[i32]) -> None:
    """Thread i executes i iterations: neighbours have nearly equal numbers."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = 0
    for k in range(i):
        total += k & i
    out[i] = total


@st.kernel
def leader(x: Global[f32], out: Global[f32]) -> None:
    """One lane of each warp works on."""
    total = x[st.block.x * st.block_dim.x + st.thread.x]
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 1 << step)
    if st.lane == 0:
        for _k in range(16):
            total = total * 0.5 + 1.0
        out[st.block.x * 4 + st.thread.x // 32] = total


@st.kernel
def border(x: Global[f32], out: Global[f32], n: i32) -> None:
    """The first and the last thread take the other arm."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i == 0 or i == n - 1:
        out[i] = 0.0
    else:
        v = x[i]
        for _k in range(8):
            v = v * 0.5 + 1.0
        out[i] = v


@dataclass(frozen=True)
class Unadvised:
    """A launch, and the kinds of explanation that it must not have; all of them by default."""

    name: str
    run: Callable[[], Profile]
    kinds: tuple[str, ...] = ()


def new(n: int, type: Any = f32) -> Any:
    return st.empty(n, type)


SORTED = np.sort((SHUFFLE.exponential(12, N) + 1).astype(np.int32))
STARTS = np.concatenate([[0], np.cumsum(SORTED)]).astype(np.int32)
SPARSE = (SHUFFLE.permutation(65536)[:N]).astype(np.int32)
_SQUARES = {"a": floats(48 * 48), "b": floats(48 * 48), "n": 48}

UNADVISED = [
    Unadvised("an element for each lane", partial(profile, own_elements, out=st.zeros(N, i32), STEP=1)),
    Unadvised("a sector for each lane", partial(profile, own_elements, out=st.zeros(N * 8, i32), STEP=8)),
    Unadvised("a line for each lane", partial(profile, own_elements, out=st.zeros(N * 32, i32), STEP=32)),
    Unadvised("bins of each thread", partial(profile, own_bins, grid=1, values=INDEX[:2048], out=st.zeros(1024, i32))),
    Unadvised(
        "a hash table",
        partial(profile, claim, keys=CLOSE // 4, table=st.full(1024, -1, i32), slots=1024), ("contended atomic", "uneven loop"),
    ),
    Unadvised("exchanges", partial(profile, last_value, out=st.zeros(1, i32), seen=new(N, i32))),
    Unadvised("a histogram of 256 bins", partial(profile, shared_histogram, values=INDEX, out=new(1024, i32))),
    Unadvised("a histogram without repeats", partial(profile, histogram, values=CLOSE, out=st.zeros(N, i32))),
    Unadvised("product", partial(profile, product, grid=(3, 3), block=(16, 16), **_SQUARES, out=new(48 * 48))),
    Unadvised("product with tiles", partial(profile, tiled_product, grid=(3, 3), block=(16, 16), **_SQUARES, out=new(48 * 48))),
    Unadvised("stencil", partial(profile, stencil, x=floats(N), out=new(N), n=N)),
    Unadvised("stencil in a loop", partial(profile, stencil_in_loop, x=floats(N + 8), out=new(N))),
    Unadvised("rows of odd width", partial(profile, odd_rows, grid=9, x=floats(9 * 301), out=new(9 * 301), width=301)),
    Unadvised("a tail", partial(profile, tail, x=floats(N), out=st.zeros(N, f32), n=403)),
    Unadvised("four sectors where four would do", partial(profile, column, x=floats(N * 16), out=new(N), K=16, ACROSS=N)),
    Unadvised("vectors", partial(profile, vectors, x=np.ones((N, 4), np.float32), out=new(N))),
    Unadvised("every other lane", partial(profile, every_other_lane, x=floats(N), out=st.zeros(N, f32))),
    Unadvised("tree in global memory", partial(profile, global_tree, grid=1, x=floats(128), n=128), ("misaligned access",)),
    Unadvised("sorting network", partial(profile, bitonic, grid=1, x=CLOSE[:128].copy(), n=128)),
    Unadvised("reduction", partial(profile, reduction, x=floats(N), out=new(4))),
    Unadvised("one barrier", partial(profile, one_barrier, x=floats(N), out=new(N))),
    Unadvised("uniform local index", partial(profile, uniform_local, grid=1, x=floats(1024), out=st.zeros(1024, f32), n=100)),
    Unadvised("uniform constant index", partial(profile, uniform_constant, x=floats(N), out=new(N))),
    Unadvised("half of the threads idle", partial(profile, half_idle, out=new(N, i32))),
    Unadvised("half of the threads without an iteration", partial(profile, half_idle_in_loop, out=new(N, i32))),
    Unadvised("sorted rows", partial(profile, row_sums, starts=STARTS, x=floats(int(STARTS[-1])), out=new(N)), ("uneven loop",)),
    Unadvised("escape times", partial(profile, escape, x=SHUFFLE.random(N).astype(np.float32), out=new(N, i32))),
    Unadvised("linear search", partial(profile, search, x=CLOSE[:64].copy(), keys=CLOSE, out=new(N, i32), n=64)),
    Unadvised("triangle", partial(profile, triangle, out=new(N, i32))),
    Unadvised("leader", partial(profile, leader, x=floats(N), out=new(16))),
    Unadvised("border", partial(profile, border, x=floats(N), out=new(N), n=N)),
    Unadvised("sorted kinds", partial(profile, two_kinds, kinds=np.arange(N, dtype=np.int32) // 256, x=floats(N), out=new(N))),
    Unadvised("sorted gather", partial(profile, gather, x=floats(N), at=np.arange(N, dtype=np.int32), out=new(N))),
]  # fmt: skip
"""Launches without advice."""


def rows_of(n: int, multiple: int = 1) -> Any:
    """Return random multiples below n, for each thread."""
    return (multiple * SHUFFLE.integers(0, n // multiple, N)).astype(np.int32)


@st.kernel
def scatter(x: Global[f32], at: Global[i32], out: Global[f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[at[i]] = x[i]


@st.kernel
def gather_vectors(x: Global[st.float4], at: Global[i32], out: Global[f32]) -> None:
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[at[i]].y


@st.kernel
def shared_lookup(table: Global[f32], at: Global[i32], out: Global[f32]) -> None:
    """Random elements of a table of 128 in shared memory."""
    copy = st.shared(f32, 128)
    t = st.thread.x
    copy[t] = table[t]
    st.sync()
    total = f32(0)
    for k in range(4):
        total += copy[at[128 * k + t]]
    out[st.block.x * 128 + t] = total


_SCATTERED, _CONFLICTS = ("scattered access",), ("bank conflicts",)
_NEAR = (np.arange(N) // 32 * 200 + rows_of(64)).astype(np.int32)
UNPREDICTED = [
    Unadvised("a sparse gather", partial(profile, gather, x=floats(65536), at=SPARSE, out=new(N)), _SCATTERED),
    Unadvised(
        "a large table", partial(profile, lookup, table=floats(65536), at=np.resize(SPARSE, 4096), out=new(N), n=4096), _SCATTERED,
    ),
    Unadvised("random rows of eight", partial(profile, gather, x=floats(65536), at=rows_of(65536, 8), out=new(N)), _SCATTERED),
    Unadvised("even elements", partial(profile, gather, x=floats(65536), at=rows_of(65536, 2), out=new(N)), _SCATTERED),
    Unadvised("elements within eight sectors", partial(profile, gather, x=floats(65536), at=_NEAR, out=new(N)), _SCATTERED),
    Unadvised(
        "a gather of vectors",
        partial(profile, gather_vectors, x=np.ones((65536, 4), np.float32), at=rows_of(65536), out=new(N)), _SCATTERED,
    ),
    Unadvised("a scatter", partial(profile, scatter, x=floats(N), at=SPARSE, out=st.zeros(65536, f32)), _SCATTERED),
    Unadvised(
        "a table in shared memory", partial(profile, shared_lookup, table=floats(128), at=rows_of(128), out=new(N)), _CONFLICTS,
    ),
]  # fmt: skip
"""Launches with advice whose effect cannot be predicted, and its kind."""
