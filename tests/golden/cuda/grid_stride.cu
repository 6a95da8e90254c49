// grid_stride, for blocks of 32 threads

extern "C" __global__ void __launch_bounds__(32)
grid_stride(int* __restrict__ out, int n) {
    int first = int(blockIdx.x) * int(blockDim.x) + int(threadIdx.x);
    int stride = int(gridDim.x) * int(blockDim.x);
    int total = 0;
    for (int i = first; i < n; i += stride) {
        total += i;
    }
    out[first] = total;
}
