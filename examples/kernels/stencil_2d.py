"""A stencil of five points: heat spreads over a plate, from a tile with a halo in shared memory."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]
TILE = 16


@st.kernel
def step(u: st.Global[st.f32], out: st.Global[st.f32], rate: st.f32) -> None:
    """out = u after one step; the edge keeps its values. The block is TILE x TILE."""
    tile = st.shared(st.f32, TILE + 2, TILE + 2)
    left, top = st.block.x * TILE - 1, st.block.y * TILE - 1
    for y in range(st.thread.y, TILE + 2, TILE):
        for x in range(st.thread.x, TILE + 2, TILE):
            i, j = top + y, left + x
            inside = 0 <= i < u.shape[0] and 0 <= j < u.shape[1]
            tile[y, x] = u[i, j] if inside else 0.0
    st.sync()
    y, x = st.thread.y + 1, st.thread.x + 1
    i, j = top + y, left + x
    if i >= u.shape[0] or j >= u.shape[1]:
        return
    here = tile[y, x]
    if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
        around = tile[y - 1, x] + tile[y + 1, x] + tile[y, x - 1] + tile[y, x + 1]
        here += rate * (around - 4 * here)
    out[i, j] = here


def heated(u: Floats, rate: float, steps: int, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """u after some steps."""
    grid = (-(-u.shape[1] // TILE), -(-u.shape[0] // TILE))
    for _ in range(steps):
        u = launch(step, grid=grid, block=(TILE, TILE), args=dict(u=u, out=st.empty(u.shape, st.f32), rate=rate)).out
    return u


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    u = np.random.default_rng(10).random((40, 50), np.float32)
    expected = u.copy()
    for _ in range(3):
        around = expected[:-2, 1:-1] + expected[2:, 1:-1] + expected[1:-1, :-2] + expected[1:-1, 2:]
        expected[1:-1, 1:-1] += np.float32(0.2) * (around - 4 * expected[1:-1, 1:-1])
    np.testing.assert_allclose(heated(u, 0.2, 3, launch), expected, rtol=1e-6)


if __name__ == "__main__":
    check()
