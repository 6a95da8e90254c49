"""Whole blocks at work on a slice: a running maximum."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, i32, int4

from .kernel import Args, ValidationKernel, draw, zeros

LEAST = -(2**31)


# ------------------------------------------------------------------ scans
@st.device
def padded(i: i32) -> i32:
    """Where element i is, with one word left out after each 32."""
    return i + (i >> 5)


@st.kernel
def running_maximum(x: Global[int4], out: Global[int4], BLOCK: Const) -> None:
    """out = the largest number up to each one in a block's slice: four a thread; one warp rakes the maxima of all threads."""
    of_threads = st.shared(i32, BLOCK + BLOCK // 32)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    four = x[i]
    b = max(four.x, four.y)
    c = max(b, four.z)
    d = max(c, four.w)
    of_threads[padded(t)] = d
    st.sync()
    if t < 32:
        each = BLOCK // 32
        largest = LEAST
        for k in range(each):
            largest = max(largest, of_threads[padded(t * each + k)])
        for step in (1, 2, 4, 8, 16):
            other = st.shuffle_up(largest, step)
            if t >= step:
                largest = max(largest, other)
        before = st.shuffle_up(largest, 1)
        if t == 0:
            before = LEAST
        for k in range(each):
            at = padded(t * each + k)
            own = of_threads[at]
            of_threads[at] = before
            before = max(before, own)
    st.sync()
    before = of_threads[padded(t)]
    out[i] = int4(max(before, four.x), max(before, b), max(before, c), max(before, d))


# ------------------------------------------------------------------ launches


def _rising(n: int, block: int) -> Args:
    """Numbers that rise slowly among many that are smaller."""
    x = (np.arange(n) + draw().integers(-5000, 5000, n)).astype(np.int32)
    return {"x": x.reshape(-1, 4), "out": zeros(n, np.int32).reshape(-1, 4), "BLOCK": block}


KERNELS = (
    ValidationKernel(
        running_maximum, lambda n, b: n // (4 * b), _rising,
        lambda a: {"out": np.maximum.accumulate(a["x"].reshape(-1, 4 * a["BLOCK"]), axis=1).ravel()}, (1 << 15, 256),
        (1 << 18, 1 << 23), (128, 256, 1024),
    ),
)  # fmt: skip
