// functions, for blocks of 32 threads

__constant__ float weights[2] = {0.5f, 0.25f};

static __device__ __forceinline__ float scan(float value, const float* row, float* own) {
    const int lane = int(threadIdx.x) & 31;
    float total = value;
    int offset = 1;
    while (offset < 32 && row[0] >= 0.0f) {
        own[lane] = total;
        __syncwarp();
        if (lane >= offset) {
            total += own[lane - offset];
        }
        __syncwarp();
        offset *= 2;
    }
    return total;
}

extern "C" __global__ void __launch_bounds__(32)
functions(const float* __restrict__ x, float* __restrict__ out, const int x_length) {
    __shared__ float row[32];
    __shared__ float scan_own[32];
    __shared__ float scan_own_2[32];
    const int lane = int(threadIdx.x) & 31;
    float sums[2];
    row[lane] = x[lane];
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 2; ++k) {
        sums[k] = scan(row[lane] * weights[k], row, scan_own);
    }
    out[lane] = scan(sums[0] / sums[1], row, scan_own_2);
    if (x_length > 32 && x[32] != 0.0f) {
        float shuffled_1 = __shfl_down_sync(0xffffffff, sums[0], 1);
        out[lane] = shuffled_1 + __shfl_sync(0x000000ff, sums[1], 0, 8);
    }
}
