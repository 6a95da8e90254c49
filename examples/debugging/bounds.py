"""Average of three neighbours. Mistake: the guard does not cover the right neighbour of the last element."""

import numpy as np
import simtbed as st


@st.kernel
def average(x: st.Global[st.f32], out: st.Global[st.f32], n: st.i32) -> None:
    """out[i] = the mean of x[i - 1], x[i], x[i + 1]."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i > 0 and i < n:
        left = x[i - 1]
        right = x[i + 1]
        out[i] = (left + x[i] + right) / 3.0


x = np.arange(200, dtype=np.float32)
result = st.launch(average, grid=2, block=128, args=dict(x=x, out=st.zeros(200, st.f32), n=200))
print(result.out[:4])
