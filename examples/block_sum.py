"""Sum the blocks of an array by a tree in shared memory, and print counters of the emulator."""

import numpy as np
import simtbed as st


@st.kernel
def block_sum(x: st.Global[st.f32], out: st.Global[st.f32], n: st.i32, BLOCK: st.Const) -> None:
    """out[b] = the sum of block b's slice of x."""
    partial = st.shared(st.f32, BLOCK)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    partial[t] = x[i] if i < n else st.f32(0)
    st.sync()
    width = BLOCK // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        st.sync()
        width //= 2
    if t == 0:
        out[st.block.x] = partial[0]


x = np.arange(200, dtype=np.float32)
result = st.launch(block_sum, grid=4, block=64, args=dict(x=x, out=st.empty(4, st.f32), n=200, BLOCK=64), check="all")

print(result.out)
print("sectors loaded:", result.counters.total("global_load_sectors"))
print("wavefronts of one line:", result.counters.at("partial[t] +=").total("shared_load_wavefronts"))
print("warp execution efficiency:", round(result.counters.derived()["warp_execution_efficiency"], 3))
