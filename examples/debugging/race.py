"""Reverse each block of 64 elements. Mistake: no barrier between the stores to the tile and the loads."""

import numpy as np
import simtbed as st


@st.kernel
def reverse(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out[i] = the mirrored element of the block of x."""
    tile = st.shared(st.f32, 64)
    t = st.thread.x
    i = st.block.x * 64 + t
    tile[t] = x[i]
    out[i] = tile[63 - t]


x = np.arange(256, dtype=np.float32)
result = st.launch(reverse, grid=4, block=64, args=dict(x=x, out=st.empty(256, st.f32)))
print(result.out[:4])
