"""A stencil of seven points: threads of a plane iterate over the third dimension with the previous planes in registers."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]
WIDTH, HEIGHT = 32, 4


@st.kernel
def laplacian(u: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out = the sum of the six neighbours less six times the element, 0 at the faces. The block is WIDTH x HEIGHT."""
    depth, rows, columns = u.shape
    j = st.block.y * HEIGHT + st.thread.y
    k = st.block.x * WIDTH + st.thread.x
    if j >= rows or k >= columns:
        return
    inside = 0 < j < rows - 1 and 0 < k < columns - 1
    below, here = 0.0, u[0, j, k]
    for i in range(depth):
        above = u[i + 1, j, k] if i + 1 < depth else 0.0
        total = 0.0
        if inside and 0 < i < depth - 1:
            around = u[i, j - 1, k] + u[i, j + 1, k] + u[i, j, k - 1] + u[i, j, k + 1]
            total = around + below + above - 6.0 * here
        out[i, j, k] = total
        below, here = here, above


def laplace(u: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """The discrete Laplacian of u inside, 0 at the faces."""
    grid = (-(-u.shape[2] // WIDTH), -(-u.shape[1] // HEIGHT))
    output: Floats = launch(
        laplacian, grid=grid, block=(WIDTH, HEIGHT), args=dict(u=u, out=st.empty(u.shape, st.f32))
    ).out
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    u = np.random.default_rng(11).random((9, 10, 40), np.float32)
    expected = np.zeros_like(u)
    inner = (slice(1, -1),) * 3
    neighbours = sum(np.roll(u, step, axis) for axis in range(3) for step in (-1, 1))
    expected[inner] = (neighbours - 6 * u)[inner]
    np.testing.assert_allclose(laplace(u, launch), expected, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    check()
