"""Scale the rows of a matrix to the sum 1. Mistake: a row of zeros is divided by its sum."""

import numpy as np
import simtbed as st


@st.device
def ratio(value: st.f32, total: st.f32) -> st.f32:
    """value / total."""
    return value / total


@st.kernel
def scale(x: st.Global[st.f32], out: st.Global[st.f32], columns: st.i32) -> None:
    """A thread scales a row."""
    row = st.thread.x
    total = st.f32(0)
    for c in range(columns):
        total += x[row * columns + c]
    for c in range(columns):
        out[row * columns + c] = ratio(x[row * columns + c], total)


x = np.arange(32, dtype=np.float32)
x[8:12] = 0
result = st.launch(scale, grid=1, block=8, args=dict(x=x, out=st.empty(32, st.f32), columns=4))
print(result.out.sum())
