"""Prefix sums in one launch: each tile reads the published sums of preceding tiles (decoupled look-back)."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Ints = npt.NDArray[np.int32]
THREADS = 128
WARPS = THREADS // st.WARP_SIZE
SUM, PREFIX = 1, 2


@st.device
def warp_scan(value: st.i32) -> st.i32:
    """The sum over this lane and those before it."""
    for step in st.unroll(range(5)):
        before = st.shuffle_up(value, 1 << step)
        if st.lane >= 1 << step:
            value += before
    return value


@st.device
def sum_before(tile: st.i32, state: st.Global[st.i32], sums: st.Global[st.i32], prefixes: st.Global[st.i32]) -> st.i32:
    """Return the sum of all preceding tiles. Tiles start in order, so that each awaited tile is running."""
    total = 0
    look = tile - 1
    while look >= 0:
        known = st.load_acquire(state, look)
        if known == PREFIX:
            return total + prefixes[look]
        if known == SUM:
            total += sums[look]
            look -= 1
    return total


@st.kernel
def scan_tiles(
    x: st.Global[st.i32],
    out: st.Global[st.i32],
    ticket: st.Global[st.i32],
    state: st.Global[st.i32],
    sums: st.Global[st.i32],
    prefixes: st.Global[st.i32],
) -> None:
    """out = prefix sums of x. state[t]: whether sums[t] and prefixes[t] of tile t are published."""
    shared_tile = st.shared(st.i32, 1)
    shared_before = st.shared(st.i32, 1)
    of_warps = st.shared(st.i32, WARPS)
    if st.thread.x == 0:
        shared_tile[0] = st.atomic_add(ticket, 0, 1)
    st.sync()
    tile = shared_tile[0]
    i = tile * THREADS + st.thread.x
    value = warp_scan(x[i] if i < len(x) else 0)
    if st.lane == st.WARP_SIZE - 1:
        of_warps[st.warp] = value
    st.sync()
    for w in range(st.warp):
        value += of_warps[w]
    if st.thread.x == THREADS - 1:
        sums[tile] = value
        st.store_release(state, tile, SUM)
        before = sum_before(tile, state, sums, prefixes)
        prefixes[tile] = before + value
        st.store_release(state, tile, PREFIX)
        shared_before[0] = before
    st.sync()
    if i < len(x):
        out[i] = value + shared_before[0]


def prefix_sums(x: Ints, launch: Callable[..., st.Result] = st.launch) -> Ints:
    """The inclusive prefix sums of x."""
    tiles = -(-len(x) // THREADS)
    args = dict(
        x=x,
        out=st.empty(len(x), st.i32),
        ticket=st.zeros(1, st.i32),
        state=st.zeros(tiles, st.i32),
        sums=st.empty(tiles, st.i32),
        prefixes=st.empty(tiles, st.i32),
    )
    output: Ints = launch(scan_tiles, grid=tiles, block=THREADS, args=args).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    x = np.random.default_rng(6).integers(-100, 100, 1500).astype(np.int32)
    np.testing.assert_array_equal(prefix_sums(x, launch), np.cumsum(x))


if __name__ == "__main__":
    check()
