"""Bitonic sort: each block sorts a row in shared memory, by exchanges at distances that halve."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Floats = npt.NDArray[np.float32]


@st.kernel
def sort_rows(x: st.Global[st.f32], WIDTH: st.Const) -> None:
    """Sort each row of x, of WIDTH elements, a power of two. A block has half as many threads."""
    row = st.shared(st.f32, WIDTH)
    t = st.thread.x
    row[t] = x[st.block.x, t]
    row[t + WIDTH // 2] = x[st.block.x, t + WIDTH // 2]
    size = 2
    while size <= WIDTH:
        distance = size // 2
        while distance > 0:
            st.sync()
            i = 2 * t - (t & (distance - 1))
            j = i + distance
            ascending = (i & size) == 0
            if (row[i] > row[j]) == ascending:
                row[i], row[j] = row[j], row[i]
            distance //= 2
        size *= 2
    st.sync()
    x[st.block.x, t] = row[t]
    x[st.block.x, t + WIDTH // 2] = row[t + WIDTH // 2]


def sorted_rows(x: Floats, launch: Callable[..., st.Result] = st.launch) -> Floats:
    """x with each row in ascending order."""
    rows, width = x.shape
    output: Floats = launch(sort_rows, grid=rows, block=width // 2, args=dict(x=x, WIDTH=width)).x
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    x = np.random.default_rng(9).standard_normal((4, 256), np.float32)
    np.testing.assert_array_equal(sorted_rows(x, launch), np.sort(x, axis=1))


if __name__ == "__main__":
    check()
