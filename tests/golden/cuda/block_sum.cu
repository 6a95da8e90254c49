// block_sum, for blocks of 64 threads

extern "C" __global__ void __launch_bounds__(64)
block_sum(const float* __restrict__ x, float* __restrict__ out, int n) {
    __shared__ float partial[64];
    int t = int(threadIdx.x);
    int i = int(blockIdx.x) * 64 + t;
    partial[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    int width = 32;
    while (width > 0) {
        if (t < width) {
            partial[t] += partial[t + width];
        }
        __syncthreads();
        width >>= 1;
    }
    if (t == 0) {
        out[int(blockIdx.x)] = partial[0];
    }
}
