// unrolled_numbers_are_constants, for blocks of 32 threads

static __device__ __forceinline__ int power(int x) {
    int result = 1;
    for (int _ = 0; _ < 0; ++_) {
        result *= x;
    }
    return result;
}

static __device__ __forceinline__ int power_2(int x) {
    int result = 1;
    for (int _ = 0; _ < 1; ++_) {
        result *= x;
    }
    return result;
}

static __device__ __forceinline__ int power_3(int x) {
    int result = 1;
    for (int _ = 0; _ < 2; ++_) {
        result *= x;
    }
    return result;
}

static __device__ __forceinline__ int power_4(int x) {
    int result = 1;
    for (int _ = 0; _ < 3; ++_) {
        result *= x;
    }
    return result;
}

extern "C" __global__ void __launch_bounds__(32)
unrolled_numbers_are_constants(int* __restrict__ out) {
    const int lane = int(threadIdx.x) & 31;
    int total = 0;
    int row[1];
    row[0] = 3;
    total += power(lane) + row[0];
    int row_1[2];
    row_1[1] = 5;
    total += power_2(lane) + row_1[1];
    total += 1;
    int row_2[3];
    row_2[2] = 7;
    total += power_3(lane) + row_2[2];
    total += 1;
    total += 1;
    int row_3[4];
    row_3[3] = 11;
    total += power_4(lane) + row_3[3];
    total += 1;
    total += 1;
    total += 1;
    out[lane] = total;
}
