"""The transpose of a matrix: a padded tile in shared memory gives coalesced loads and stores."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]
TILE = 32
ROWS = 8


@st.kernel
def through_tile(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out = the transpose of x. The block is TILE x ROWS."""
    tile = st.shared(st.f32, TILE, TILE + 1)
    left, top = st.block.x * TILE, st.block.y * TILE
    for k in st.unroll(range(0, TILE, ROWS)):
        i, j = top + st.thread.y + k, left + st.thread.x
        if i < x.shape[0] and j < x.shape[1]:
            tile[st.thread.y + k, st.thread.x] = x[i, j]
    st.sync()
    for k in st.unroll(range(0, TILE, ROWS)):
        i, j = left + st.thread.y + k, top + st.thread.x
        if i < out.shape[0] and j < out.shape[1]:
            out[i, j] = tile[st.thread.x, st.thread.y + k]


def transposed(x: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """The transpose of x."""
    rows, columns = x.shape
    args = dict(x=x, out=st.empty((columns, rows), st.f32))
    output: Floats = launch(
        through_tile, grid=(-(-columns // TILE), -(-rows // TILE)), block=(TILE, ROWS), args=args
    ).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    x = np.random.default_rng(3).standard_normal((70, 45), np.float32)
    np.testing.assert_array_equal(transposed(x, launch), x.T)


if __name__ == "__main__":
    check()
