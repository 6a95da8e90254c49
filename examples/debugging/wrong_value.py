"""Sums of blocks of 48 elements. Mistake: the tree needs a power of two."""

import numpy as np
import simtbed as st


@st.kernel
def block_sum(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out[b] = the sum of 48 elements."""
    partial = st.shared(st.f32, 48)
    t = st.thread.x
    partial[t] = x[st.block.x * 48 + t]
    st.sync()
    width = 24
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


x = np.ones(96, np.float32)
result = st.launch(block_sum, grid=2, block=48, args=dict(x=x, out=st.empty(2, st.f32)))
print(result.out, "instead of", x.reshape(2, 48).sum(1))
