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

//// pipelined
#include <cuda_pipeline.h>

template <int STAGES> __device__ void pipelined(const float4 *x, float *out, int steps) {
    __shared__ float4 tile[STAGES][128];
    int t = threadIdx.x;
    float total = 0;
    x += blockIdx.x * 128 * steps;
    for (int k = 0; k < STAGES - 1; k++) {
        __pipeline_memcpy_async(&tile[k][t], x + k * 128 + t, 16);
        __pipeline_commit();
    }
    for (int k = 0; k < steps; k++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();
        int next = k + STAGES - 1;
        if (next < steps) __pipeline_memcpy_async(&tile[next % STAGES][t], x + next * 128 + t, 16);
        __pipeline_commit();
        float4 v = tile[k % STAGES][t ^ 1];
        total += v.x + v.y * v.z + v.w;
    }
    out[blockIdx.x * 128 + t] = total;
}
extern "C" __global__ void stages2(const float4 *x, float *out, int steps) { pipelined<2>(x, out, steps); }
extern "C" __global__ void stages4(const float4 *x, float *out, int steps) { pipelined<4>(x, out, steps); }
extern "C" __global__ void stages6(const float4 *x, float *out, int steps) { pipelined<6>(x, out, steps); }
