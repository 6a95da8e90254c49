//// groups
#include <cooperative_groups.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
__device__ int total(cg::thread_group group, int *tile, int value) {
    int rank = group.thread_rank();
    for (int i = group.size() / 2; i > 0; i /= 2) {
        tile[rank] = value;
        group.sync();
        if (rank < i) value += tile[rank + i];
        group.sync();
    }
    return value;
}
__global__ void totals(int *out) {
    __shared__ int tile[64];
    cg::thread_block block = cg::this_thread_block();
    int value = total(block, tile, 1);
    if (block.thread_rank() == 0) out[0] = value;
    block.sync();
    cg::thread_group tile16 = cg::tiled_partition(block, 16);
    value = total(tile16, tile + threadIdx.x / 16 * 16, threadIdx.x);
    if (tile16.thread_rank() == 0) out[1 + threadIdx.x / 16] = value;
}
__global__ void partitions(unsigned *out, const int *x) {
    auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    auto label = cg::labeled_partition(warp, x[threadIdx.x]);
    auto half = cg::binary_partition(warp, x[threadIdx.x] > 1);
    unsigned *own = out + 8 * threadIdx.x;
    own[0] = label.lanes;
    own[1] = half.lanes;
    own[2] = label.thread_rank();
    own[3] = cg::inclusive_scan(label, (int)threadIdx.x);
    own[4] = cg::reduce(half, (int)threadIdx.x, cg::plus<int>());
    own[5] = cg::exclusive_scan(warp, 1);
    own[6] = half.ballot(threadIdx.x % 3 == 0);
    own[7] = cg::tiled_partition(label, 2).lanes;
}
__global__ void shuffles(int *out, int width) {
    int value = threadIdx.x, *own = out + 4 * value;
    own[0] = __shfl_sync(-1u, value, 3, width);
    own[1] = __shfl_up_sync(-1u, value, 3, width);
    own[2] = __shfl_down_sync(-1u, value, 3, width);
    own[3] = __shfl_xor_sync(-1u, value, 9, width);
}
__global__ void atomics(int *x) {
    atomicInc((unsigned *)&x[0], 17);
    atomicDec((unsigned *)&x[1], 137);
    atomicMax((unsigned *)&x[2], threadIdx.x + 0x80000000u);
    atomicMax(&x[3], (int)threadIdx.x - 40);
}
struct Twice { int value; __device__ Twice(int x) : value(x * 2) {} };
__global__ void copies(float4 *x, half2 *pairs, unsigned char *raw, int *out) {
    float4 own;
    memcpy(&own, &x[threadIdx.x], sizeof own);
    own.x += 1;
    memcpy(&x[threadIdx.x], &own, sizeof own);
    pairs[threadIdx.x] = pairs[threadIdx.x] * pairs[threadIdx.x] + __halves2half2(1, 2);
    pairs[threadIdx.x] -= __hsub2(pairs[threadIdx.x], __halves2half2(0, 5));
    memset(raw + 4 * threadIdx.x, 7, 4);
    __shared__ char memory[32 * sizeof(Twice)];
    new (memory + threadIdx.x * sizeof(Twice)) Twice(threadIdx.x);
    __syncthreads();
    out[threadIdx.x] = ((Twice *)memory)[31 - threadIdx.x].value;
}
template <class A, class B> __device__ typename std::common_type<A, B>::type sum(A a, B b) { return a + b; }
__global__ void copies_of_groups(const int *x, int *out, int n) {
    __shared__ __align__(16) int tile[64];
    cg::thread_block block = cg::this_thread_block();
    cg::memcpy_async(block, tile, x + n, sizeof(int) * 40);
    cg::memcpy_async(block, (char *)(tile + 40), (const char *)x + 1, 7);
    cg::wait_prior<1>(block);
    out[threadIdx.x] = threadIdx.x < 40 ? tile[39 - threadIdx.x] : 0;
    cg::wait(block);
    if (threadIdx.x == 40) out[40] = tile[40];
}
__global__ void halves(const half2 *x, half2 *pairs, float *out, int n) {
    half2 a = x[0], b = x[1];
    pairs[0] = __hfma2(a, b, a);
    half2 zero(0.f, 0.f);
    pairs[1] = __hmax2(a, b) + zero;
    pairs[2] = __hgt2(a, b);
    pairs[3] = __lowhigh2highlow(a);
    pairs[4] = __lows2half2(a, b);
    pairs[5] = __habs2(-a);
    out[0] = __hbgt2(a, b);
    out[1] = sum(1, 2.5f);
    out[2] = __low2float(__hfma2(__float2bfloat162_rn(1.5f), __floats2bfloat162_rn(1.5f, 2), __float2bfloat162_rn(1.5f)));
    float value;
    if (n > 2) value = __half2int_rn(a.x);
    if (n > 2) out[3] = value;
}

//// the words of a double
__global__ void k(double *x, int *out) {
        out[0] = __double2hiint(x[0]); out[1] = __double2loint(x[0]); x[1] = __hiloint2double(out[0], out[1]);
    }
