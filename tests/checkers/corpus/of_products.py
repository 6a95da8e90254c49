"""Products of warpgroups: their registers and operands before a wait, and without a fence."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f16, f32

from .pair import pair

HALVES = np.ones(1024, np.float16)


@pair("wgmma", block=128, x=HALVES)
@st.kernel
def sum_before_its_wait(x: Global[f16], out: Global[f32], FIXED: Const) -> None:
    """The last of two groups is still pending."""
    tile = st.shared(f16, 1024)
    for i in range(st.thread.x, 1024, 128):
        tile[i] = x[i]
    first = st.registers(f32, 4)
    second = st.registers(f32, 4)
    st.fence_async()
    st.sync()
    st.wgmma_fence()
    whole = st.matrix_descriptor(0, leading=128, stride=256)
    st.wgmma(first, (tile, whole), (tile, whole), "m64n8k16", "f16", add=False)
    st.wgmma_commit()
    st.wgmma(second, (tile, whole), (tile, whole), "m64n8k16", "f16", add=False)
    st.wgmma_commit()
    st.wgmma_wait(1)
    total = first[0]
    if FIXED:
        st.wgmma_wait()
    out[st.thread.x] = total + second[0]
    st.wgmma_wait()


@pair("wgmma", block=128, x=HALVES)
@st.kernel
def product_after_a_write_of_its_registers(x: Global[f16], out: Global[f32], FIXED: Const) -> None:
    """A scaled sum is added to; the fence precedes the scaling."""
    tile = st.shared(f16, 1024)
    for i in range(st.thread.x, 1024, 128):
        tile[i] = x[i]
    total = st.registers(f32, 4)
    for i in st.unroll(range(4)):
        total[i] = f32(0)
    st.fence_async()
    st.sync()
    whole = st.matrix_descriptor(0, leading=128, stride=256)
    for _ in range(2):
        if not FIXED:
            st.wgmma_fence()
        for i in st.unroll(range(4)):
            total[i] *= f32(0.5)
        if FIXED:
            st.wgmma_fence()
        st.wgmma(total, (tile, whole), (tile, whole), "m64n8k16", "f16")
        st.wgmma_commit()
        st.wgmma_wait()
    out[st.thread.x] = total[0]


@pair("race", block=128, x=HALVES)
@st.kernel
def product_without_a_fence_of_its_operand(x: Global[f16], out: Global[f32], FIXED: Const) -> None:
    tile = st.shared(f16, 1024)
    for i in range(st.thread.x, 1024, 128):
        tile[i] = x[i]
    if FIXED:
        st.fence_async()
    st.sync()
    total = st.registers(f32, 4)
    st.wgmma_fence()
    whole = st.matrix_descriptor(0, leading=128, stride=256)
    st.wgmma(total, (tile, whole), (tile, whole), "m64n8k16", "f16", add=False)
    st.wgmma_commit()
    st.wgmma_wait()
    out[st.thread.x] = total[0]


@pair("race", block=128, x=HALVES)
@st.kernel
def operand_written_before_the_wait(x: Global[f16], out: Global[f32], FIXED: Const) -> None:
    """Two buffers, and a wait that leaves one group pending."""
    tile = st.shared(f16, 2048)
    total = st.registers(f32, 4)
    for i in st.unroll(range(4)):
        total[i] = f32(0)
    whole = st.matrix_descriptor(0, leading=128, stride=256)
    for k in range(3):
        for i in range(st.thread.x, 1024, 128):
            tile[k % 2 * 1024 + i] = x[i]
        st.fence_async()
        st.sync()
        st.wgmma_fence()
        st.wgmma(total, (tile, whole + st.u64(128 * (k % 2))), (tile, whole + st.u64(128 * (k % 2))), "m64n8k16", "f16")
        st.wgmma_commit()
        if FIXED:
            st.wgmma_wait(1)
            st.sync()
    st.wgmma_wait()
    out[st.thread.x] = total[0]
