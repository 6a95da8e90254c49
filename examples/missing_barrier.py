"""The kernel of `block_sum.py` without the barrier at the end of a tree level."""

import numpy as np
import simtbed as st


@st.kernel
def block_sum(x: st.Global[st.f32], out: st.Global[st.f32], BLOCK: st.Const) -> None:
    """out[b] = the sum of block b's slice of x, for one order of the warps."""
    partial = st.shared(st.f32, BLOCK)
    t = st.thread.x
    partial[t] = x[st.block.x * BLOCK + t]
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


x = np.arange(256, dtype=np.float32)
try:
    st.launch(block_sum, grid=2, block=128, args=dict(x=x, out=st.empty(2, st.f32), BLOCK=128), check="races")
except st.FaultError as error:
    print(error)
