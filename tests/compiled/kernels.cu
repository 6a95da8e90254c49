//// cubin file
extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}
struct Pair { int a; double b; };
__device__ int calls = 3;
extern "C" __global__ void sum(int* out, Pair pair, short s) {
    extern __shared__ int data[];
    data[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    if (threadIdx.x) return;
    int total = calls++ + pair.a + int(pair.b) + s;
    for (int i = 0; i < blockDim.x; i++) total += data[i];
    out[0] = total;
}
//// weighted
__constant__ float weights[4];
extern "C" __global__ void weighted(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float own = x[i];
    out[i] = weights[i & 3] * own;
}

//// constant table
__constant__ int table[4] = {1, 2, 3, 4};
extern "C" __global__ void __launch_bounds__(64) twice(int* x) {
    __shared__ int row[64];
    row[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = row[63 - threadIdx.x] * table[x[0] & 3];
}
