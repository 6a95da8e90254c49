// for_else, for blocks of 32 threads

static __device__ __forceinline__ int floor_mod(int a, int b) {
    const int rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

extern "C" __global__ void __launch_bounds__(32)
for_else(int* __restrict__ out) {
    const int lane = int(threadIdx.x) & 31;
    bool broke_1 = false;
    for (int i = 2; i < lane; ++i) {
        if (floor_mod(lane, i) == 0) {
            out[lane] = i;
            broke_1 = true;
            break;
        }
    }
    if (!broke_1) {
        out[lane] = -1;
    }
}
