// speaking, for blocks of 2 threads

#include <cstdio>

extern "C" __global__ void __launch_bounds__(2)
speaking(const float* __restrict__ x, int n) {
    int i = int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x);
    if (i < n) {
        printf("block (%u, %u, %u), thread (%u, %u, %u): x %d %.9g\n", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
            threadIdx.y, threadIdx.z, i, x[i]);
        printf("block (%u, %u, %u), thread (%u, %u, %u): %d of %d: %s, x[i]=%.9g 100%%\n", blockIdx.x, blockIdx.y,
            blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, i, n, x[i] > 0.5f ? "True" : "False", x[i]);
    }
}
