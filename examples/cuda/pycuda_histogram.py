"""A PyCUDA script: a histogram of bytes in shared memory. `simtbed check` and `simtbed profile` run it without a GPU."""

import numpy as np
import pycuda.autoinit  # noqa: F401 - creates the context
import pycuda.driver as drv
from pycuda.compiler import SourceModule

module = SourceModule("""
__global__ void histogram(const unsigned char *data, int n, unsigned int *bins)
{
    __shared__ unsigned int local[256];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}
""")
histogram = module.get_function("histogram")
data = np.random.default_rng(1).integers(0, 256, 10_000, np.uint8)
bins = np.zeros(256, np.uint32)
histogram(drv.In(data), np.int32(len(data)), drv.InOut(bins), grid=(4, 1), block=(256, 1, 1))
if not np.array_equal(bins, np.bincount(data, minlength=256)):
    raise SystemExit("the bins differ from numpy.bincount")
