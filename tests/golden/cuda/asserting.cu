// asserting, for blocks of 32 threads

#include <cassert>
#include <cstdio>
#include <cuda_fp16.h>

extern "C" __global__ void __launch_bounds__(32)
asserting(const float* __restrict__ x, float* __restrict__ out, int n) {
    const int lane = int(threadIdx.x) & 31;
    float v = x[lane] * 2.0f;
    assert(v < 5.0f);
    assert((__float2half_rn(v) < __float2half_rn(2.0f) || n < 0) && "a text outside");
    assert(x[n] > 100.0f && n > 0);
    float2 w = make_float2(v, 1.0f);
    bool inside = n < 2;
    if (!(w.y < 1.0f || inside)) {
        float x_1 = x[lane + 1];
        printf("block (%u, %u, %u), thread (%u, %u, %u): assertion failed: %d of %d: x = %.9g, %s\n", blockIdx.x,
            blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, n * 2, lane, x_1, v < 3.0f ? "True"
            : "False");
        assert(false);
    }
    out[lane] = v;
}
