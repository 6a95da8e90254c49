// control, for blocks of 8 x 4 threads

#include <cassert>
#include <cstdio>

static __device__ __forceinline__ int floor_div(int a, int b) {
    const int quotient = a / b;
    return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

extern "C" __global__ void __launch_bounds__(32)
control(int* __restrict__ x, unsigned char* __restrict__ flags, unsigned int* __restrict__ out) {
    int t = int(threadIdx.x) + int(threadIdx.y) * 8;
    int value;
    if (t < 4) {
        value = floor_div(x[t], 3);
    } else if ((x[t] & 1) == 0) {
        value = -x[t];
    } else {
        value = 0;
    }
    int stop = value;
    int j_stop_1 = stop;
    for (int j = 0; j < j_stop_1; ++j) {
        stop -= j;
        int scaled = x[j] * 2;
        if (scaled == 7) continue;
        value += scaled;
    }
    for (int j = 10; j > 0; j -= 2) {
        int scaled = x[j];
        value ^= scaled;
    }
    while (x[value & 7] > 0 && value != 5) {
        value = atomicAdd(&x[0], 1);
    }
    flags[t] = (unsigned char)(flags[t] + (unsigned char)t) >> 1;
    atomicMax(&out[0], __ballot_sync(0xffffffff, value > 0));
    if (!(__any_sync(0xffffffff, flags[t] == 0) != 0)) return;
    assert(value < 100 && "100% of \"value\"");
    printf("block (%u, %u, %u), thread (%u, %u, %u): value %d %s %.9g\n", blockIdx.x, blockIdx.y, blockIdx.z,
        threadIdx.x, threadIdx.y, threadIdx.z, value, value > 0 ? "True" : "False", (float)value);
}
