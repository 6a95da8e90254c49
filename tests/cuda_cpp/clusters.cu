//// histogram
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void hist(int *bins, const int *x, int n, int per) {
    extern __shared__ int own[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < per; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int *dst = cluster.map_shared_rank(own, x[i] / per);
        atomicAdd(dst + x[i] % per, 1);
    }
    cluster.sync();
    int *local = bins + cluster.block_rank() * per;
    for (int i = threadIdx.x; i < per; i += blockDim.x) atomicAdd(&local[i], own[i]);
}

//// ptx
#include <cooperative_groups.h>
extern "C" __global__ void ptx(int *out) {
    __shared__ int own[32]; __shared__ unsigned long long bar;
    int t = threadIdx.x; unsigned rank, size;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    own[t] = t + 100 * rank;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar), o = (unsigned)__cvta_generic_to_shared(own + t);
    if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(b), "r"(1) : "memory");
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    unsigned ro, rb; int v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(ro) : "r"(o), "r"((rank + 1) % size));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(rb) : "r"(b), "r"((rank + 1) % size));
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(v) : "r"(ro) : "memory");
    if (t == 0) asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" :: "r"(rb) : "memory");
    asm volatile("{ .reg .pred p; LAB_WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra LAB_WAIT; DONE: }" :: "r"(b), "r"(0) : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    asm volatile("st.shared::cluster.s32 [%0], %1;" :: "r"(ro), "r"(v + 1000) : "memory");
    asm volatile("red.shared::cluster.add.s32 [%0], %1;" :: "r"(ro), "r"(10000) : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    out[blockIdx.x * 32 + t] = own[t] + (cooperative_groups::this_cluster().query_shared_rank(cooperative_groups::this_cluster().map_shared_rank(own, 1)) == 1);
}

//// pointers
#include <cooperative_groups.h>
extern "C" __global__ void loops(int *out, int k) {
    __shared__ int own[64];
    auto cluster = cooperative_groups::this_cluster();
    int t = threadIdx.x;
    own[t] = t + 64 * cluster.block_rank();
    cluster.sync();
    int *p = k ? cluster.map_shared_rank(own, 1) : own;
    int sum = 0;
    for (int i = 0; i < 64; ++i, ++p) sum += *p;
    for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += 3 * cluster.map_shared_rank(own, r)[t];
    cluster.sync();
    out[blockIdx.x * 64 + t] = sum;
}

//// dimensions
#include <cooperative_groups.h>
constexpr int WIDTH = 2;
template <int N> __global__ void __cluster_dims__(WIDTH, 1, 1) of_a_template(int *out) {
    auto cluster = cooperative_groups::this_cluster();
    auto token = cluster.barrier_arrive();
    int own = N + 10 * cluster.num_blocks() + 100 * cluster.block_rank() + 1000 * cluster.dim_threads().x + 100000 * cluster.thread_rank();
    cluster.barrier_wait(static_cast<decltype(token) &&>(token));
    out[blockIdx.x * blockDim.x + threadIdx.x] = own;
}
extern "C" __global__ void __cluster_dims__(2) __launch_bounds__(32) of_a_function(int *out) { out[blockIdx.x] = __clusterSizeInBlocks(); }
extern "C" __global__ void of_the_launch(int *out) {
    out[blockIdx.x + gridDim.x * blockIdx.y] = __clusterIdx().y + 10 * __clusterRelativeBlockIdx().x + 100 * __clusterDim().y + 1000 * __clusterGridDimInClusters().x;
}

//// in memory
extern "C" __global__ void stored(int *out, int n) {
    __shared__ int own[32];
    int *places[2] = {own, (int *)__cluster_map_shared_rank(own, 1)};
    out[threadIdx.x] = places[n & 1][threadIdx.x];
}

//// copied
extern "C" __global__ void copied(const float *x, float *out) {
    __shared__ alignas(16) float own[32]; __shared__ alignas(8) unsigned long long bar;
    unsigned b = (unsigned)__cvta_generic_to_shared(&bar), to;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(b) : "memory");
        asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"((unsigned)__cvta_generic_to_shared(own)), "r"(1));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" :: "r"(to), "l"(x), "r"(b) : "memory");
    }
    out[threadIdx.x] = own[threadIdx.x];
}
