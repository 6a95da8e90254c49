// grid_stride, for blocks of 32 threads

extern "C" __global__ void __launch_bounds__(32)
grid_stride(int* __restrict__ out, int begin, int n) {
    int seen = 0;
    int i_limit_1 = max(n, int(gridDim.x) * int(blockDim.x) + (-2147483647 - 1)) - int(gridDim.x) * int(blockDim.x);
    for (int i = begin + int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x); i < n; i = i < i_limit_1 ? i
        + int(gridDim.x) * int(blockDim.x) : n) {
        seen += min(i, 1);
    }
    atomicAdd(&out[0], seen);
}

// down, for blocks of 32 threads

extern "C" __global__ void __launch_bounds__(32)
down(unsigned int* __restrict__ out, unsigned int n) {
    unsigned int total = 0u;
    for (unsigned int i = n; i > 0u; i = i > 2u ? i - 2u : 0u) {
        total += i;
    }
    out[0] = total;
}

// narrow, for blocks of 32 threads

#include <cassert>

static __device__ __forceinline__ int floor_mod(int a, int b) {
    const int rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

extern "C" __global__ void __launch_bounds__(32)
narrow(unsigned long long* __restrict__ out, const int* __restrict__ starts, const int* __restrict__ stops, int step) {
    const int lane = int(threadIdx.x) & 31;
    int start = starts[lane];
    int stop = stops[lane];
    int seen = 0;
    unsigned long long total = 0ULL;
    assert(step != 0 && "a range's step is not 0");
    int i_limit_1 = min(max(stop, max(step, 0) + (-2147483647 - 1)), min(step, 0) + 2147483647) - step;
    for (int i = start; step > 0 ? i < stop : step < 0
        && i > stop; i = (step > 0 ? i < i_limit_1 : step < 0 && i > i_limit_1) ? i + step : stop) {
        if (seen == 5) break;
        seen += 1;
        if (floor_mod(i, 3) == 1) continue;
        total = total * 31ULL + (unsigned long long)i;
    }
    seen = 0;
    for (unsigned int k = (unsigned int)start; k > (unsigned int)stop; k -= 5) {
        if (seen == 5) break;
        seen += 1;
        if (k % 3u == 1u) continue;
        total = total * 31ULL + (unsigned long long)k;
    }
    out[lane] = total;
}
