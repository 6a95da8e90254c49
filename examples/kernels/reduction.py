"""The sum of an array: shuffles in each warp, shared memory between warps, a second launch between blocks."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]
BLOCKS = 8
THREADS = 128
WARPS = THREADS // st.WARP_SIZE


@st.device
def warp_sum(value: st.f32) -> st.f32:
    """The sum over the lanes of the warp, in every lane."""
    for step in st.unroll(range(5)):
        value += st.shuffle_xor(value, 1 << step)
    return value


@st.kernel
def partial_sums(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out[b] = the sum of the elements that block b takes."""
    of_warps = st.shared(st.f32, WARPS)
    mine = 0.0
    for i in range(st.block.x * THREADS + st.thread.x, len(x), st.grid_dim.x * THREADS):
        mine += x[i]
    mine = warp_sum(mine)
    if st.lane == 0:
        of_warps[st.warp] = mine
    st.sync()
    if st.warp == 0:
        total = warp_sum(of_warps[st.lane] if st.lane < WARPS else 0.0)
        if st.lane == 0:
            out[st.block.x] = total


def total(x: Floats, launch: Callable[..., st.Result] = st.launch) -> float:
    """The sum of x."""
    sums = launch(partial_sums, grid=BLOCKS, block=THREADS, args=dict(x=x, out=st.empty(BLOCKS, st.f32))).out
    return float(launch(partial_sums, grid=1, block=THREADS, args=dict(x=sums, out=st.empty(1, st.f32))).out[0])


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    x = np.random.default_rng(4).random(5000, np.float32)
    np.testing.assert_allclose(total(x, launch), x.sum(dtype=np.float64), rtol=1e-5)


if __name__ == "__main__":
    check()
