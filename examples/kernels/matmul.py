"""The product of two matrices: each block computes a tile of it from tiles in shared memory."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]
TILE = 16


@st.kernel
def tiled(a: st.Global[st.f32], b: st.Global[st.f32], c: st.Global[st.f32]) -> None:
    """c = a @ b. The block is TILE x TILE."""
    tile_a = st.shared(st.f32, TILE, TILE)
    tile_b = st.shared(st.f32, TILE, TILE)
    x, y = st.thread.x, st.thread.y
    row, column = st.block.y * TILE + y, st.block.x * TILE + x
    inner = a.shape[1]
    total = 0.0
    for start in range(0, inner, TILE):
        tile_a[y, x] = a[row, start + x] if row < a.shape[0] and start + x < inner else 0.0
        tile_b[y, x] = b[start + y, column] if start + y < inner and column < b.shape[1] else 0.0
        st.sync()
        for k in range(TILE):
            total += tile_a[y, k] * tile_b[k, x]
        st.sync()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def product(a: Floats, b: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """a @ b."""
    rows, columns = a.shape[0], b.shape[1]
    args = dict(a=a, b=b, c=st.empty((rows, columns), st.f32))
    output: Floats = launch(tiled, grid=(-(-columns // TILE), -(-rows // TILE)), block=(TILE, TILE), args=args).c
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    random = np.random.default_rng(2)
    a, b = random.standard_normal((40, 50), np.float32), random.standard_normal((50, 35), np.float32)
    np.testing.assert_allclose(product(a, b, launch), a @ b, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    check()
