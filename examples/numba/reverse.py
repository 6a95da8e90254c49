import numpy as np
from numba import cuda, float32


@cuda.jit
def reverse(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    out[t] = tile[63 - t]


x = np.arange(64, dtype=np.float32)
out = np.zeros(64, np.float32)
reverse[1, 64](x, out)
print(out[:4])
