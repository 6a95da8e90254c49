"""Differences of neighbours. Mistake: no thread loads the element behind the tile."""

import numpy as np
import simtbed as st


@st.kernel
def differences(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out[i] = x[i + 1] - x[i], for the elements of a block."""
    tile = st.shared(st.f32, 65)
    t = st.thread.x
    i = st.block.x * 64 + t
    tile[t] = x[i]
    st.sync()
    out[i] = tile[t + 1] - tile[t]


x = np.arange(129, dtype=np.float32)
result = st.launch(differences, grid=2, block=64, args=dict(x=x, out=st.empty(128, st.f32)))
print(result.out[:4])
