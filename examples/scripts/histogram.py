"""A histogram of bytes: atomic additions to global memory, and to a copy in shared memory first."""

import argparse

import numpy as np
import simtbed as st

BINS = 256


@st.kernel
def in_global(data: st.Global[st.u8], bins: st.Global[st.u32], n: st.i32) -> None:
    """bins[b] += elements that are b."""
    i = st.block.x * st.block_dim.x + st.thread.x
    while i < n:
        st.atomic_add(bins, st.i32(data[i]), 1)
        i += st.grid_dim.x * st.block_dim.x


@st.kernel
def in_shared(data: st.Global[st.u8], bins: st.Global[st.u32], n: st.i32) -> None:
    """The same, with one copy of the bins a block."""
    mine = st.shared(st.u32, BINS)
    mine[st.thread.x] = 0
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    while i < n:
        st.atomic_add(mine, st.i32(data[i]), 1)
        i += st.grid_dim.x * st.block_dim.x
    st.sync()
    st.atomic_add(bins, st.thread.x, mine[st.thread.x])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    n = options.n
    data = np.random.default_rng(3).normal(128, 30, n).clip(0, 255).astype(np.uint8)
    expected = np.bincount(data, minlength=BINS)
    for kernel in (in_global, in_shared) * options.repeat:
        args = dict(data=data, bins=st.zeros(BINS, st.u32), n=n)
        result = st.launch(kernel, grid=8, block=BINS, args=args)
        assert np.array_equal(result.bins, expected), kernel.__name__
    print("the fullest bin is", int(expected.argmax()), "with", int(expected.max()))


if __name__ == "__main__":
    main()
