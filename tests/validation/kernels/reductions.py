"""Sums through shared memory in several orders."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32

from .kernel import Args, ValidationKernel, Values, floats, zeros


@st.kernel
def reduce_interleaved(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """Neighbouring threads diverge: thread t works when t is a multiple of the width."""
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = x[st.block.x * BLOCK + t]
    st.sync()
    width = 1
    while width < BLOCK:
        if t % (2 * width) == 0:
            partial[t] += partial[t + width]
        st.sync()
        width *= 2
    if t == 0:
        out[st.block.x] = partial[0]


@st.kernel
def reduce_strided(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """The first threads work, on elements at growing strides: bank conflicts."""
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = x[st.block.x * BLOCK + t]
    st.sync()
    width = 1
    while width < BLOCK:
        at = 2 * width * t
        if at < BLOCK:
            partial[at] += partial[at + width]
        st.sync()
        width *= 2
    if t == 0:
        out[st.block.x] = partial[0]


@st.kernel
def reduce_sequential(x: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """The first threads work, on neighbouring elements: no conflicts, whole warps drop out."""
    partial = st.shared(f32, BLOCK)
    t = st.thread.x
    partial[t] = x[st.block.x * BLOCK + t]
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


# ------------------------------------------------------------------ launches
def _sum(n: int, block: int) -> Args:
    return {"x": floats(n), "out": zeros(n // block), "BLOCK": block}


def _sums(args: Args) -> dict[str, Values]:
    return {"out": args["x"].reshape(-1, args["BLOCK"]).sum(axis=1, dtype=np.float64)}


SIZES = (1 << 18, 1 << 22)
BLOCKS = (64, 256, 1024)


def _wide(n: int, block: int) -> int:
    return n // block


KERNELS = (
    ValidationKernel(reduce_interleaved, _wide, _sum, _sums, (512, 128), SIZES, BLOCKS),
    ValidationKernel(reduce_strided, _wide, _sum, _sums, (512, 128), SIZES, BLOCKS),
    ValidationKernel(reduce_sequential, _wide, _sum, _sums, (512, 128), (1 << 20, 1 << 24), BLOCKS),
)  # fmt: skip
