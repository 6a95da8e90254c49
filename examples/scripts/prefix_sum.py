"""An inclusive prefix sum of any length: blocks scan their segments; the sums of the blocks are scanned and added."""

import sys

import numpy as np
import simtbed as st

THREADS = 128


@st.kernel
def scan_blocks(x: st.Global[st.i32], out: st.Global[st.i32], sums: st.Global[st.i32], n: st.i32) -> None:
    """Each block's own prefix sums (Hillis and Steele), and its sum."""
    buffer = st.shared(st.i32, 2, THREADS)
    t = st.thread.x
    i = st.block.x * THREADS + t
    buffer[0, t] = x[i] if i < n else 0
    side, offset = 0, 1
    st.sync()
    while offset < THREADS:
        value = buffer[side, t]
        if t >= offset:
            value += buffer[side, t - offset]
        side = 1 - side
        buffer[side, t] = value
        st.sync()
        offset *= 2
    if i < n:
        out[i] = buffer[side, t]
    if t == THREADS - 1:
        sums[st.block.x] = buffer[side, t]


@st.kernel
def add_sums(out: st.Global[st.i32], sums: st.Global[st.i32], n: st.i32) -> None:
    """out[i] += the sum of all blocks before that of i."""
    i = st.block.x * THREADS + st.thread.x
    if st.block.x > 0 and i < n:
        out[i] += sums[st.block.x - 1]


def scan(x: np.ndarray) -> np.ndarray:
    blocks = -(-len(x) // THREADS)
    args = dict(x=x, out=st.empty(len(x), st.i32), sums=st.empty(blocks, st.i32), n=len(x))
    first = st.launch(scan_blocks, grid=blocks, block=THREADS, args=args)
    if blocks == 1:
        return first.out
    args = dict(out=first.out, sums=scan(first.sums), n=len(x))
    return st.launch(add_sums, grid=blocks, block=THREADS, args=args).out


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    x = np.random.default_rng(5).integers(0, 10, n).astype(np.int32)
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
        if not np.array_equal(scan(x), np.cumsum(x, dtype=np.int32)):
            sys.exit("wrong")
    print("the last of", n, "prefix sums is", int(x.sum()))


main()
