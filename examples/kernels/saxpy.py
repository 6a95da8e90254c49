"""SAXPY, y = a * x + y: each thread processes elements with the stride of the grid."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]


@st.kernel
def axpy(a: st.f32, x: st.Global[st.f32], y: st.Global[st.f32]) -> None:
    """y = a * x + y."""
    first = st.block.x * st.block_dim.x + st.thread.x
    for i in range(first, len(x), st.grid_dim.x * st.block_dim.x):
        y[i] = a * x[i] + y[i]


def saxpy(a: float, x: Floats, y: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """a * x + y."""
    output: Floats = launch(axpy, grid=4, block=64, args=dict(a=a, x=x, y=y)).y
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    x, y = np.random.default_rng(1).standard_normal((2, 1000), np.float32)
    np.testing.assert_array_equal(saxpy(2.5, x, y, launch), np.float32(2.5) * x + y)


if __name__ == "__main__":
    check()
