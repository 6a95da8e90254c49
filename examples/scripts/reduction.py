"""The sum of an array: a tree in shared memory, and shuffles, block by block until one number is left."""

import argparse
import sys

import numpy as np
import simtbed as st

THREADS = 256


@st.kernel
def tree(x: st.Global[st.i32], out: st.Global[st.i32], n: st.i32) -> None:
    """out[b] = the sum of two elements a thread of block b."""
    partial = st.shared(st.i32, THREADS)
    t = st.thread.x
    i = st.block.x * (2 * THREADS) + t
    mine = x[i] if i < n else 0
    mine += x[i + THREADS] if i + THREADS < n else 0
    partial[t] = mine
    st.sync()
    width = THREADS // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


@st.kernel
def shuffled(x: st.Global[st.i32], out: st.Global[st.i32], n: st.i32) -> None:
    """out[0] = the sum of x: shuffles in a warp, then one atomic addition a warp."""
    i = st.block.x * THREADS + st.thread.x
    mine = x[i] if i < n else 0
    for step in st.unroll(range(5)):
        mine += st.shuffle_down(mine, 16 >> step)
    if st.lane == 0:
        st.atomic_add(out, 0, mine)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    x = np.random.default_rng(2).integers(-100, 100, options.n).astype(np.int32)
    for _ in range(options.repeat):
        left = total(x)
    args = dict(x=x, out=st.zeros(1, st.i32), n=len(x))
    atomic = st.launch(shuffled, grid=-(-len(x) // THREADS), block=THREADS, args=args).out
    print("sum:", left)
    return 0 if left == atomic[0] == x.sum() else 1


def total(x: np.ndarray) -> int:
    left = x
    while len(left) > 1:
        blocks = -(-len(left) // (2 * THREADS))
        args = dict(x=left, out=st.empty(blocks, st.i32), n=len(left))
        left = st.launch(tree, grid=blocks, block=THREADS, args=args).out
    return int(left[0])


if __name__ == "__main__":
    sys.exit(main())
