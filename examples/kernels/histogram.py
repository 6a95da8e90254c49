"""A histogram of bytes: each block counts in shared memory, and adds its counts at the end."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

BINS = 256
THREADS = 128


@st.kernel
def count(x: st.Global[st.u8], bins: st.Global[st.u32]) -> None:
    """bins[v] += elements of x that are v."""
    table = st.shared(st.u32, BINS)
    for b in range(st.thread.x, BINS, THREADS):
        table[b] = 0
    st.sync()
    for i in range(st.block.x * THREADS + st.thread.x, len(x), st.grid_dim.x * THREADS):
        st.atomic_add(table, x[i], 1)
    st.sync()
    for b in range(st.thread.x, BINS, THREADS):
        if table[b] > 0:
            st.atomic_add(bins, b, table[b])


def histogram(x: npt.NDArray[np.uint8], launch: Callable[..., st.Result] = st.launch) -> npt.NDArray[np.uint32]:
    """How often each value is in x."""
    output: npt.NDArray[np.uint32] = launch(
        count, grid=4, block=THREADS, args=dict(x=x, bins=st.zeros(BINS, st.u32))
    ).bins
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    x = np.random.default_rng(7).normal(100, 20, 3000).astype(np.uint8)
    np.testing.assert_array_equal(histogram(x, launch), np.bincount(x, minlength=BINS))


if __name__ == "__main__":
    check()
