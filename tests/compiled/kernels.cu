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

//// clusters
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void __cluster_dims__(2, 2, 1) exchanged(const int* x, int* out, double* sums) {
    __shared__ int row[64];
    __shared__ float singles;
    __shared__ double doubles;
    cg::cluster_group cluster = cg::this_cluster();
    int t = threadIdx.x, block = blockIdx.x + gridDim.x * blockIdx.y;
    if (t == 0) singles = 0, doubles = 0;
    row[t] = x[64 * block + t];
    cluster.sync();
    unsigned other = (cluster.block_rank() + 1 + t % 2) % cluster.num_blocks();
    int value = cluster.map_shared_rank(row, other)[t];
    atomicAdd(cluster.map_shared_rank(&singles, other), float(t & 3));
    atomicAdd(cluster.map_shared_rank(&doubles, other), double(value));
    cluster.sync();
    int seen = atomicCAS(cluster.map_shared_rank(row, cluster.block_rank()) + t, x[64 * block + t], -1);
    cluster.sync();
    int* place = t & 1 ? cluster.map_shared_rank(row, 0) : out + 1024 + 64 * block;
    dim3 at = cluster.block_index();
    out[64 * block + t] = value + 1000 * seen + at.x + 2 * at.y + *(volatile int*)(place + t);
    if (t == 0) sums[2 * block] = singles, sums[2 * block + 1] = doubles;
    cluster.sync();
}
