"""The Mandelbrot set: the number of steps until each point of a grid leaves a circle."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Ints = npt.NDArray[np.int32]
TILE = (32, 4)
LEFT, TOP, SIDE = -2.0, -1.25, 2.5


@st.kernel
def escape(out: st.Global[st.i32], limit: st.i32) -> None:
    """out = steps until a point of the plane is further than 2 from 0, at most the limit."""
    i, j = st.block.y * st.block_dim.y + st.thread.y, st.block.x * st.block_dim.x + st.thread.x
    if i >= out.shape[0] or j >= out.shape[1]:
        return
    x, y = LEFT + SIDE * st.f64(j) / st.f64(out.shape[1]), TOP + SIDE * st.f64(i) / st.f64(out.shape[0])
    a, b, steps = 0.0, 0.0, 0
    while steps < limit and a * a + b * b <= 4.0:
        a, b = a * a - b * b + x, 2.0 * a * b + y
        steps += 1
    out[i, j] = steps


def mandelbrot(rows: int, columns: int, limit: int, launch: Callable[..., st.Result] = st.launch) -> Ints:
    """Steps of each point."""
    grid = (-(-columns // TILE[0]), -(-rows // TILE[1]))
    output: Ints = launch(
        escape, grid=grid, block=TILE, args=dict(out=st.empty((rows, columns), st.i32), limit=limit)
    ).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    y, x = np.mgrid[:30, :40]
    x, y = LEFT + SIDE * x / 40, TOP + SIDE * y / 30
    a, b, expected = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape, np.int32)
    for _ in range(50):
        inside = a * a + b * b <= 4
        expected += inside
        a, b = np.where(inside, a * a - b * b + x, a), np.where(inside, 2 * a * b + y, b)
    np.testing.assert_array_equal(mandelbrot(30, 40, 50, launch), expected)


if __name__ == "__main__":
    check()
