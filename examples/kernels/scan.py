"""Prefix sums in three launches: of each block, of the sums of blocks, and their addition."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Ints = npt.NDArray[np.int32]
THREADS = 128
WARPS = THREADS // st.WARP_SIZE


@st.device
def warp_scan(value: st.i32) -> st.i32:
    """The sum over this lane and those before it."""
    for step in st.unroll(range(5)):
        before = st.shuffle_up(value, 1 << step)
        if st.lane >= 1 << step:
            value += before
    return value


@st.kernel
def scan_blocks(x: st.Global[st.i32], out: st.Global[st.i32], sums: st.Global[st.i32]) -> None:
    """out = prefix sums of the slice of each block; sums[b] = the sum of slice b."""
    of_warps = st.shared(st.i32, WARPS)
    i = st.block.x * THREADS + st.thread.x
    value = warp_scan(x[i] if i < len(x) else 0)
    if st.lane == st.WARP_SIZE - 1:
        of_warps[st.warp] = value
    st.sync()
    for w in range(st.warp):
        value += of_warps[w]
    if i < len(x):
        out[i] = value
    if st.thread.x == THREADS - 1:
        sums[st.block.x] = value


@st.kernel
def add_before(out: st.Global[st.i32], sums: st.Global[st.i32]) -> None:
    """Add the sum of the preceding slices to each slice of out."""
    i = st.block.x * THREADS + st.thread.x
    if st.block.x > 0 and i < len(out):
        out[i] += sums[st.block.x - 1]


def prefix_sums(x: Ints, launch: Callable[..., st.Result] = st.launch) -> Ints:
    """The inclusive prefix sums of x."""
    blocks = -(-len(x) // THREADS)
    args = dict(x=x, out=st.empty(len(x), st.i32), sums=st.empty(blocks, st.i32))
    scan = launch(scan_blocks, grid=blocks, block=THREADS, args=args)
    output: Ints = scan.out
    if blocks > 1:
        sums = prefix_sums(scan.sums, launch)
        output = launch(add_before, grid=blocks, block=THREADS, args=dict(out=output, sums=sums)).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    x = np.random.default_rng(5).integers(-100, 100, 1000).astype(np.int32)
    np.testing.assert_array_equal(prefix_sums(x, launch), np.cumsum(x))


if __name__ == "__main__":
    check()
