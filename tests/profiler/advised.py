"""Kernels with an avoidable cost, and the kernels after the advised change, written as the advice says."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st
from simtbed import Const, Global, f32, i32
from simtbed.profiler.profile import Profile

N = 512
"""Threads of most launches."""
SHUFFLE = np.random.default_rng(3)


def profile(kernel: st.Kernel, grid: Any = 4, block: Any = 128, **args: Any) -> Profile:
    """Return the profile of one launch."""
    return st.launch(kernel, grid=grid, block=block, args=args, detail=True).profile()


def floats(n: int) -> npt.NDArray[np.float32]:
    return np.ones(n, np.float32)


# ------------------------------------------------------------------ layouts
@st.kernel
def column(x: Global[f32], out: Global[f32], K: Const, ACROSS: Const) -> None:
    """out[i] = the sum of K elements of row i, stored by rows, or with ACROSS by columns."""
    i = st.block.x * st.block_dim.x + st.thread.x
    total = f32(0)
    for k in range(K):
        total += x[i + k * ACROSS] if ACROSS > 0 else x[i * K + k]
    out[i] = total


@st.kernel
def naive_transpose(x: Global[f32], out: Global[f32], n: i32) -> None:
    """out = the transpose of x, written by columns."""
    i = st.block.x * 32 + st.thread.x
    for row in range(st.block.y * 32 + st.thread.y, st.block.y * 32 + 32, 4):
        out[i * n + row] = x[row * n + i]


@st.kernel
def tiled_transpose(x: Global[f32], out: Global[f32], n: i32) -> None:
    """The same through a tile."""
    tile = st.shared(f32, 32 * 33)
    tx, ty = st.thread.x, st.thread.y
    for row in range(ty, 32, 4):
        tile[row * 33 + tx] = x[(st.block.y * 32 + row) * n + st.block.x * 32 + tx]
    st.sync()
    for row in range(ty, 32, 4):
        out[(st.block.x * 32 + row) * n + st.block.y * 32 + tx] = tile[tx * 33 + row]


@st.kernel
def small_block_transpose(x: Global[f32], out: Global[f32], n: i32) -> None:
    """A naive transpose with blocks of 16 x 16."""
    i, j = st.block.x * 16 + st.thread.x, st.block.y * 16 + st.thread.y
    out[i * n + j] = x[j * n + i]


@st.kernel
def diagonals(x: Global[f32], out: Global[f32], n: i32, BY_DIAGONAL: Const) -> None:
    """out[d] = the sum of lane t's elements of anti-diagonals d < n of an n x n matrix; by diagonals, row d has diagonal d."""
    t = st.thread.x
    total = f32(0)
    for d in range(127, n):
        total += x[d * n + t] if BY_DIAGONAL else x[(d - t) * n + t]
    out[st.block.x * 128 + t] = total


@st.kernel
def particles(p: Global[f32], out: Global[f32], n: i32, STRIDE: Const) -> None:
    """Energies of particles with seven fields, as structs or, with STRIDE 1, as arrays."""
    i = st.block.x * st.block_dim.x + st.thread.x
    base = i * STRIDE
    step = 1 if STRIDE > 1 else n
    x = p[base]
    y = p[base + step]
    z = p[base + 2 * step]
    vx = p[base + 3 * step]
    vy = p[base + 4 * step]
    vz = p[base + 5 * step]
    out[i] = (x * x + y * y + z * z + vx * vx + vy * vy + vz * vz) * p[base + 6 * step]


@st.kernel
def store_pairs(x: Global[f32], out: Global[f32], n: i32, SPLIT: Const) -> None:
    """Write x and 2 x alternately, or with SPLIT in two halves."""
    i = st.block.x * st.block_dim.x + st.thread.x
    value = x[i]
    out[i if SPLIT else 2 * i] = value
    out[i + n if SPLIT else 2 * i + 1] = 2.0 * value


@st.kernel
def shifted(x: Global[f32], out: Global[f32], OFFSET: Const) -> None:
    """out[i] = x[i + OFFSET]."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[i + OFFSET]


@st.kernel
def doubled(x: Global[f32], out: Global[f32], SKIPPED: Const) -> None:
    """Skip a header of one element at the start of x and of out, or with SKIPPED 8 also seven unused elements."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i + SKIPPED] = 2.0 * x[i + SKIPPED]


# ------------------------------------------------------------------ gathers
@st.kernel
def gather(x: Global[f32], at: Global[i32], out: Global[f32]) -> None:
    """out[i] = x[at[i]]."""
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = x[at[i]]


@st.kernel
def lookup(table: Global[f32], at: Global[i32], out: Global[f32], n: i32) -> None:
    """The sum of table[at[i]] over a grid-stride loop."""
    total = f32(0)
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        total += table[at[i]]
    out[st.block.x * st.block_dim.x + st.thread.x] = total


@st.kernel
def lookup_shared(table: Global[f32], at: Global[i32], out: Global[f32], n: i32) -> None:
    """The same with a copy of the table in shared memory."""
    copy = st.shared(f32, 256)
    for k in range(st.thread.x, 256, st.block_dim.x):
        copy[k] = table[k]
    st.sync()
    total = f32(0)
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        total += copy[at[i]]
    out[st.block.x * st.block_dim.x + st.thread.x] = total


# ------------------------------------------------------------------ atomics
@st.kernel
def count_all(out: Global[i32]) -> None:
    """Every thread adds its number to one element."""
    st.atomic_add(out, 0, st.thread.x)


@st.kernel
def count_all_by_warp(out: Global[i32]) -> None:
    """One lane adds for its warp."""
    total = st.thread.x
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 1 << step)
    if st.lane == 0:
        st.atomic_add(out, 0, total)


@st.kernel
def histogram(values: Global[i32], out: Global[i32]) -> None:
    """out[v] = how many values are v."""
    st.atomic_add(out, values[st.block.x * st.block_dim.x + st.thread.x], 1)


@st.kernel
def histogram_matched(values: Global[i32], out: Global[i32]) -> None:
    """The lowest lane of those with one value adds for all."""
    value = values[st.block.x * st.block_dim.x + st.thread.x]
    same = st.match_any(value)
    if st.popcount(same & ((st.u32(1) << st.u32(st.lane)) - 1)) == 0:
        st.atomic_add(out, value, i32(st.popcount(same)))


@st.kernel
def tickets(out: Global[i32], count: Global[i32], COMBINED: Const) -> None:
    """Each thread claims an element of out."""
    if COMBINED:
        first = 0
        if st.lane == 0:
            first = st.atomic_add(count, 0, 32)
        out[st.shuffle(first, 0) + st.lane] = 1
    else:
        out[st.atomic_add(count, 0, 1)] = 1


# ------------------------------------------------------------------ shared memory
@st.kernel
def tile_columns(x: Global[f32], out: Global[f32], PITCH: Const) -> None:
    """A tile of 32 x 32 is written by rows and read by columns."""
    tile = st.shared(f32, 32 * PITCH)
    for k in range(32):
        tile[k * PITCH + st.lane] = x[k * 32 + st.lane]
    st.sync()
    for k in range(32):
        out[k * 32 + st.lane] = tile[st.lane * PITCH + k]


@st.kernel
def small_tile(x: Global[f32], out: Global[f32], EVERY: Const) -> None:
    """A tile of 16 x 16 is written by rows and read by columns; after each EVERY elements, one is unused."""
    tile = st.shared(f32, 256 + 256 // EVERY)
    row, column = st.thread.y * 16 + st.thread.x, st.thread.x * 16 + st.thread.y
    tile[row + row // EVERY] = x[row]
    st.sync()
    out[row] = tile[column + column // EVERY]


@st.kernel
def private_rows(x: Global[f32], out: Global[f32], PITCH: Const) -> None:
    """Each thread sums a row of eight elements in shared memory."""
    rows = st.shared(f32, 128 * PITCH)
    t = st.thread.x
    for k in range(8):
        rows[t * PITCH + k] = x[k * 128 + t]
    total = f32(0)
    for k in range(8):
        total += rows[t * PITCH + k]
    out[t] = total


# ------------------------------------------------------------------ local and constant memory
@st.kernel
def private_counts(values: Global[i32], out: Global[i32], SHARED: Const) -> None:
    """Counts of eight values by thread, in a local array or in shared memory."""
    t = st.thread.x
    if SHARED:
        column = st.shared(i32, 8 * 128)
        for k in range(8):
            column[k * 128 + t] = 0
        for k in range(16):
            column[values[k * 128 + t] * 128 + t] += 1
        for k in range(8):
            out[k * 128 + t] = column[k * 128 + t]
    else:
        counts = st.local(i32, 8)
        for k in range(8):
            counts[k] = 0
        for k in range(16):
            counts[values[k * 128 + t]] += 1
        for k in range(8):
            out[k * 128 + t] = counts[k]


@st.kernel
def rotated(x: Global[f32], out: Global[f32], shift: i32, SHARED: Const) -> None:
    """A rotation by a number of elements that only the launch knows, in a local array or in shared memory."""
    t = st.thread.x
    own = st.local(f32, 8)
    column = st.shared(f32, 8 * 128 if SHARED else 1)
    for k in range(8):
        if SHARED:
            column[k * 128 + t] = x[k * 128 + t]
        else:
            own[k] = x[k * 128 + t]
    for k in range(8):
        at = (k + shift) % 8
        out[k * 128 + t] = column[at * 128 + t] if SHARED else own[at]


WEIGHTS = tuple(float(n) for n in range(256))


@st.kernel
def weigh(at: Global[i32], out: Global[f32]) -> None:
    """out[i] = the weight of at[i], in constant memory."""
    weights = st.constant(f32, WEIGHTS)
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = weights[at[i]]


@st.kernel
def weigh_shared(weights: Global[f32], at: Global[i32], out: Global[f32]) -> None:
    """The same in shared memory."""
    copy = st.shared(f32, 256)
    for k in range(st.thread.x, 256, st.block_dim.x):
        copy[k] = weights[k]
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    out[i] = copy[at[i]]


# ------------------------------------------------------------------ control
@st.kernel
def row_sums(starts: Global[i32], x: Global[f32], out: Global[f32]) -> None:
    """out[row] = the sum of the row's elements."""
    row = st.block.x * st.block_dim.x + st.thread.x
    total = f32(0)
    for k in range(starts[row], starts[row + 1]):
        total += x[k] * x[k] + 1.0
    out[row] = total


@st.kernel
def two_kinds(kinds: Global[i32], x: Global[f32], out: Global[f32]) -> None:
    """Two costly arms."""
    i = st.block.x * st.block_dim.x + st.thread.x
    v = x[i]
    if kinds[i] == 0:
        for _k in range(20):
            v = v * 0.5 + 1.0
    else:
        for _k in range(20):
            v = v * v - 1.0
    out[i] = v


@st.kernel
def three_kinds(kinds: Global[i32], x: Global[f32], out: Global[f32]) -> None:
    """Three costly arms."""
    i = st.block.x * st.block_dim.x + st.thread.x
    v = x[i]
    kind = kinds[i]
    if kind == 0:
        for _k in range(20):
            v = v * 0.5 + 1.0
    elif kind == 1:
        for _k in range(20):
            v = v * v - 1.0
    else:
        for _k in range(20):
            v = v - v * 0.25
    out[i] = v


@dataclass(frozen=True)
class Advised:
    """A launch with an avoidable cost, the kind of its explanation, a pattern of the text, and the changed launch."""

    name: str
    what: str
    pattern: str
    before: Callable[[], Profile]
    after: Callable[[], Profile]


def _rows(lengths: npt.NDArray[Any]) -> Callable[[], Profile]:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return partial(profile, row_sums, starts=starts, x=floats(int(starts[-1])), out=st.empty(N, f32))


def _counted(kernel: st.Kernel, bins: int) -> Callable[[], Profile]:
    values = SHUFFLE.integers(0, bins, N).astype(np.int32)
    return partial(profile, kernel, values=values, out=st.zeros(bins, i32))


LENGTHS = (SHUFFLE.exponential(12, N) + 1).astype(np.int32)
CLOSE = SHUFFLE.permutation(N).astype(np.int32)
INDEX = SHUFFLE.integers(0, 256, 4096).astype(np.int32)
PAIRS = (SHUFFLE.random(N) < 0.4).astype(np.int32)
KINDS = SHUFFLE.integers(0, 3, N).astype(np.int32)
_LOOKUP = {"table": floats(256), "at": INDEX, "n": 4096}
_SQUARE = {"x": floats(64 * 64), "n": 64}


def _control(kernel: st.Kernel, kinds: npt.NDArray[np.int32]) -> tuple[Callable[[], Profile], Callable[[], Profile]]:
    before, after = (
        partial(profile, kernel, kinds=order, x=floats(N), out=st.empty(N, f32)) for order in (kinds, np.sort(kinds))
    )
    return before, after


ADVISED = [
    Advised(
        "rows of a matrix by thread", "uncoalesced access", r"touches 32 sectors instead of 4: .* 16 elements, 64 bytes",
        partial(profile, column, x=floats(N * 16), out=st.empty(N, f32), K=16, ACROSS=0),
        partial(profile, column, x=floats(N * 16), out=st.empty(N, f32), K=16, ACROSS=N),
    ),
    Advised(
        "transpose", "uncoalesced access", r"store of out touches 32 sectors instead of 4: .* 64 elements, 256 bytes.*tile",
        partial(profile, naive_transpose, grid=(2, 2), block=(32, 4), **_SQUARE, out=st.empty(64 * 64, f32)),
        partial(profile, tiled_transpose, grid=(2, 2), block=(32, 4), **_SQUARE, out=st.empty(64 * 64, f32)),
    ),
    Advised(
        "transpose with small blocks", "uncoalesced access", r"store of out touches 16 sectors instead of 4: .*runs of 2",
        partial(profile, small_block_transpose, grid=(4, 4), block=(16, 16), **_SQUARE, out=st.empty(64 * 64, f32)),
        partial(profile, tiled_transpose, grid=(2, 2), block=(32, 4), **_SQUARE, out=st.empty(64 * 64, f32)),
    ),
    Advised(
        "anti-diagonals", "uncoalesced access", r"touches 32 sectors instead of 4: .* 159 elements.* another layout",
        partial(profile, diagonals, grid=1, x=floats(160 * 160), out=st.empty(128, f32), n=160, BY_DIAGONAL=False),
        partial(profile, diagonals, grid=1, x=floats(160 * 160), out=st.empty(128, f32), n=160, BY_DIAGONAL=True),
    ),
    Advised(
        "fields of a struct", "uncoalesced access", r"\(also lines .*, .*, .*\) touches 28 sectors .*Store each field of p in an array",
        partial(profile, particles, p=floats(7 * N), out=st.empty(N, f32), n=N, STRIDE=7),
        partial(profile, particles, p=floats(7 * N), out=st.empty(N, f32), n=N, STRIDE=1),
    ),
    Advised(
        "stored pairs", "uncoalesced access", r"store of out \(also line .*Store each field of out in an array of its own",
        partial(profile, store_pairs, x=floats(N), out=st.empty(2 * N, f32), n=N, SPLIT=False),
        partial(profile, store_pairs, x=floats(N), out=st.empty(2 * N, f32), n=N, SPLIT=True),
    ),
    Advised(
        "chunks", "uncoalesced access", "another assignment of elements to threads",
        partial(profile, column, x=floats(N * 20), out=st.empty(N, f32), K=20, ACROSS=0),
        partial(profile, column, x=floats(N * 20), out=st.empty(N, f32), K=20, ACROSS=N),
    ),
    Advised(
        "shifted input", "misaligned access", "load of x touches 5 sectors instead of 4: .* Put 5 unused elements before",
        partial(profile, shifted, x=floats(N + 8), out=st.empty(N, f32), OFFSET=3),
        partial(profile, shifted, x=floats(N + 8), out=st.empty(N, f32), OFFSET=8),
    ),
    Advised(
        "array with a header", "misaligned access", "store of out touches 5 sectors instead of 4: .* Put 7 unused elements before",
        partial(profile, doubled, x=floats(N + 8), out=st.empty(N + 8, f32), SKIPPED=1),
        partial(profile, doubled, x=floats(N + 8), out=st.empty(N + 8, f32), SKIPPED=8),
    ),
    Advised(
        "gather", "scattered access", "order of the elements of x that they access",
        partial(profile, gather, x=floats(20000), at=CLOSE, out=st.empty(N, f32)),
        partial(profile, gather, x=floats(20000), at=np.sort(CLOSE), out=st.empty(N, f32)),
    ),
    Advised(
        "table", "scattered access", "only reads table, which has 1,024 bytes.*Copy table to shared memory",
        partial(profile, lookup, **_LOOKUP, out=st.empty(N, f32)),
        partial(profile, lookup_shared, **_LOOKUP, out=st.empty(N, f32)),
    ),
    Advised(
        "one counter", "contended atomic", "32 lanes of a warp change one element of out.*shuffles",
        partial(profile, count_all, out=st.zeros(1, i32)), partial(profile, count_all_by_warp, out=st.zeros(1, i32)),
    ),
    Advised(
        "few bins", "contended atomic", "32 lanes of a warp change . elements of out.*match_any",
        _counted(histogram, 6), _counted(histogram_matched, 6),
    ),
    Advised(
        "tickets", "contended atomic", "32 lanes of a warp change one element of count",
        partial(profile, tickets, out=st.zeros(N, i32), count=st.zeros(1, i32), COMBINED=False),
        partial(profile, tickets, out=st.zeros(N, i32), count=st.zeros(1, i32), COMBINED=True),
    ),
    Advised(
        "columns of a tile", "bank conflicts", r"load of tile takes up to 32 wavefronts.* pitch of 33",
        partial(profile, tile_columns, grid=1, block=32, x=floats(1024), out=st.empty(1024, f32), PITCH=32),
        partial(profile, tile_columns, grid=1, block=32, x=floats(1024), out=st.empty(1024, f32), PITCH=33),
    ),
    Advised(
        "columns of a small tile", "bank conflicts", r"i \+ i // 32 ",
        partial(profile, small_tile, grid=1, block=(16, 16), x=floats(256), out=st.empty(256, f32), EVERY=256),
        partial(profile, small_tile, grid=1, block=(16, 16), x=floats(256), out=st.empty(256, f32), EVERY=32),
    ),
    Advised(
        "rows of eight in shared memory", "bank conflicts", r"takes up to 8 wavefronts.* pitch of 9",
        partial(profile, private_rows, grid=1, x=floats(1024), out=st.empty(128, f32), PITCH=8),
        partial(profile, private_rows, grid=1, x=floats(1024), out=st.empty(128, f32), PITCH=9),
    ),
    Advised(
        "local counts", "local memory", r"local array counts .*run time only, up to 8 different ones.*element k of thread t at k \* 128",
        partial(profile, private_counts, grid=1, values=INDEX[:2048] % 8, out=st.empty(1024, i32), SHARED=False),
        partial(profile, private_counts, grid=1, values=INDEX[:2048] % 8, out=st.empty(1024, i32), SHARED=True),
    ),
    Advised(
        "rotated local array", "local memory", r"local array own \(also line .*\) is indexed by a value that is known at run time only, so",
        partial(profile, rotated, grid=1, x=floats(1024), out=st.empty(1024, f32), shift=3, SHARED=False),
        partial(profile, rotated, grid=1, x=floats(1024), out=st.empty(1024, f32), shift=3, SHARED=True),
    ),
    Advised(
        "constant table", "constant memory", r"different elements of the constant array weights.*shared memory \(1,024 bytes\)",
        partial(profile, weigh, at=np.arange(N, dtype=np.int32) % 256, out=st.empty(N, f32)),
        partial(profile, weigh_shared, weights=np.array(WEIGHTS, np.float32), at=np.arange(N, dtype=np.int32) % 256, out=st.empty(N, f32)),
    ),
    Advised("uneven rows", "uneven loop", "order of their numbers of iterations", _rows(LENGTHS), _rows(np.sort(LENGTHS))),
    Advised("two kinds of items", "divergent branch", "in 16 of 16 executions", *_control(two_kinds, PAIRS)),
    Advised("three kinds of items", "divergent branch", "in 16 of 16 executions", *_control(three_kinds, KINDS)),
]  # fmt: skip
