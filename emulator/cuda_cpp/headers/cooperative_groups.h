// Groups of a grid, a block and tiles of a warp.
#ifndef SIMTBED_COOPERATIVE_GROUPS_H  // the file has several names
#define SIMTBED_COOPERATIVE_GROUPS_H
namespace cooperative_groups {
struct thread_group {
    unsigned int lanes = 0;  // of the warp; 0 for the block
    SIMTBED_INTRINSIC static unsigned int block_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
    SIMTBED_INTRINSIC static unsigned int below() { return (1u << block_rank() % 32u) - 1u; }
    SIMTBED_INTRINSIC unsigned int thread_rank() const { return lanes ? __popc(lanes & below()) : block_rank(); }
    SIMTBED_INTRINSIC unsigned int size() const { return lanes ? __popc(lanes) : blockDim.x * blockDim.y * blockDim.z; }
    SIMTBED_INTRINSIC unsigned int num_threads() const { return size(); }
    SIMTBED_INTRINSIC void sync() const { if (lanes) __syncwarp(lanes); else __syncthreads(); }
};
struct thread_block : thread_group {
    SIMTBED_INTRINSIC static void sync() { __syncthreads(); }
    SIMTBED_INTRINSIC static unsigned int thread_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
    SIMTBED_INTRINSIC static unsigned int size() { return blockDim.x * blockDim.y * blockDim.z; }
    SIMTBED_INTRINSIC static unsigned int num_threads() { return size(); }
    SIMTBED_INTRINSIC static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    SIMTBED_INTRINSIC static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    SIMTBED_INTRINSIC static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    SIMTBED_INTRINSIC static dim3 dim_threads() { return group_dim(); }
};
struct grid_group {
    SIMTBED_INTRINSIC static void sync() { __simtbed_grid_sync(); }
    SIMTBED_INTRINSIC static bool is_valid() { return true; }
    SIMTBED_INTRINSIC static dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
    SIMTBED_INTRINSIC static dim3 dim_blocks() { return group_dim(); }
    SIMTBED_INTRINSIC static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    SIMTBED_INTRINSIC static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
    SIMTBED_INTRINSIC static unsigned long long block_rank() { return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z); }
    SIMTBED_INTRINSIC static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    SIMTBED_INTRINSIC static unsigned long long size() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * thread_block::size(); }
    SIMTBED_INTRINSIC static unsigned long long num_threads() { return size(); }
};
struct cluster_group {
    struct arrival_token {};
    SIMTBED_INTRINSIC static arrival_token barrier_arrive() { __cluster_barrier_arrive(); return arrival_token(); }
    SIMTBED_INTRINSIC static void barrier_wait() { __cluster_barrier_wait(); }
    SIMTBED_INTRINSIC static void barrier_wait(arrival_token &&) { __cluster_barrier_wait(); }
    SIMTBED_INTRINSIC static void sync() { __cluster_barrier_arrive(); __cluster_barrier_wait(); }
    SIMTBED_INTRINSIC static dim3 group_index() { return __clusterIdx(); }
    SIMTBED_INTRINSIC static dim3 block_index() { return __clusterRelativeBlockIdx(); }
    SIMTBED_INTRINSIC static unsigned int block_rank() { return __clusterRelativeBlockRank(); }
    SIMTBED_INTRINSIC static dim3 dim_blocks() { return __clusterDim(); }
    SIMTBED_INTRINSIC static unsigned int num_blocks() { return __clusterSizeInBlocks(); }
    SIMTBED_INTRINSIC static unsigned int thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    SIMTBED_INTRINSIC static dim3 dim_threads() { return dim3(blockDim.x * dim_blocks().x, blockDim.y * dim_blocks().y, blockDim.z * dim_blocks().z); }
    SIMTBED_INTRINSIC static unsigned int num_threads() { return num_blocks() * thread_block::size(); }
    SIMTBED_INTRINSIC static unsigned int size() { return num_threads(); }
    template <class T> SIMTBED_INTRINSIC static T *map_shared_rank(T *address, int rank) { return static_cast<T *>(__cluster_map_shared_rank(address, rank)); }
    SIMTBED_INTRINSIC static unsigned int query_shared_rank(const void *address) { return __cluster_query_shared_rank(address); }
};
template <unsigned int N, class Parent = void> struct thread_block_tile;
template <class Parent> struct simtbed_parent {
    SIMTBED_INTRINSIC static unsigned int rank() { return thread_block::thread_rank(); }
    SIMTBED_INTRINSIC static unsigned int size() { return thread_block::size(); }
};
template <unsigned int N, class P> struct simtbed_parent<thread_block_tile<N, P>> {
    SIMTBED_INTRINSIC static unsigned int rank() { return thread_block::thread_rank() % N; }
    SIMTBED_INTRINSIC static unsigned int size() { return N; }
};
__device__ void tile_of_several_warps();  // not defined: a kernel that needs the barrier of such a tile is refused
template <unsigned int N, class Parent> struct thread_block_tile : thread_group {
    SIMTBED_INTRINSIC thread_block_tile() { lanes = mask(); }
    template <class P> SIMTBED_INTRINSIC thread_block_tile(const thread_block_tile<N, P> &) { lanes = mask(); }
    SIMTBED_INTRINSIC static unsigned int first_lane() { return thread_block::thread_rank() % 32u / N * N; }
    SIMTBED_INTRINSIC static unsigned int mask() { if constexpr (N > 32) tile_of_several_warps(); return N == 32 ? 0xffffffffu : ((1u << (N % 32)) - 1u) << first_lane(); }
    SIMTBED_INTRINSIC static void sync() { __syncwarp(mask()); }
    SIMTBED_INTRINSIC static unsigned int thread_rank() { return thread_block::thread_rank() % N; }
    SIMTBED_INTRINSIC static constexpr unsigned int size() { return N; }
    SIMTBED_INTRINSIC static constexpr unsigned int num_threads() { return N; }
    SIMTBED_INTRINSIC static unsigned int meta_group_rank() { return simtbed_parent<Parent>::rank() / N; }
    SIMTBED_INTRINSIC static unsigned int meta_group_size() { return (simtbed_parent<Parent>::size() + N - 1) / N; }
    template <class T> SIMTBED_INTRINSIC static T shfl(T value, int lane) { return simtbed_shfl(mask(), value, lane, N); }
    template <class T> SIMTBED_INTRINSIC static T shfl_up(T value, unsigned int delta) { return simtbed_shfl_up(mask(), value, delta, N); }
    template <class T> SIMTBED_INTRINSIC static T shfl_down(T value, unsigned int delta) { return simtbed_shfl_down(mask(), value, delta, N); }
    template <class T> SIMTBED_INTRINSIC static T shfl_xor(T value, unsigned int bits) { return simtbed_shfl_xor(mask(), value, (int)bits, N); }
    SIMTBED_INTRINSIC static int any(int predicate) { return __any_sync(mask(), predicate); }
    SIMTBED_INTRINSIC static int all(int predicate) { return __all_sync(mask(), predicate); }
    SIMTBED_INTRINSIC static unsigned int ballot(int predicate) { return __ballot_sync(mask(), predicate) >> first_lane(); }
    template <class T> SIMTBED_INTRINSIC static unsigned int match_any(T value) { return __match_any_sync(mask(), value) >> first_lane(); }
    template <class T> SIMTBED_INTRINSIC static unsigned int match_all(T value, int &equal) { return __match_all_sync(mask(), value, &equal) >> first_lane(); }
};
struct coalesced_group : thread_group {
    SIMTBED_INTRINSIC unsigned int lane_of(unsigned int rank) const {
        unsigned int rest = lanes;
        for (; rank > 0; --rank) rest &= rest - 1;
        return __ffs((int)rest) - 1;
    }
    SIMTBED_INTRINSIC unsigned int ranks(unsigned int chosen) const {  // the bits of lanes as bits of ranks
        unsigned int result = 0, rank = 0;
        for (unsigned int rest = lanes; rest; rest &= rest - 1) result |= (chosen >> (__ffs((int)rest) - 1) & 1u) << rank++;
        return result;
    }
    template <class T> SIMTBED_INTRINSIC T shfl(T value, unsigned int rank) const { return simtbed_shfl(lanes, value, (int)lane_of(rank % size())); }
    SIMTBED_INTRINSIC int any(int predicate) const { return __any_sync(lanes, predicate); }
    template <class T> SIMTBED_INTRINSIC T shfl_up(T value, unsigned int delta) const {
        unsigned int rank = thread_rank();
        return simtbed_shfl(lanes, value, (int)lane_of(rank < delta ? rank : rank - delta));
    }
    template <class T> SIMTBED_INTRINSIC T shfl_down(T value, unsigned int delta) const {
        unsigned int rank = thread_rank();
        return simtbed_shfl(lanes, value, (int)lane_of(rank + delta < size() ? rank + delta : rank));
    }
    SIMTBED_INTRINSIC int all(int predicate) const { return __all_sync(lanes, predicate); }
    SIMTBED_INTRINSIC unsigned int ballot(int predicate) const { return ranks(__ballot_sync(lanes, predicate)); }
    template <class T> SIMTBED_INTRINSIC unsigned int match_any(T value) const { return ranks(__match_any_sync(lanes, value)); }
};
SIMTBED_INLINE coalesced_group simtbed_lanes(unsigned int lanes) { coalesced_group group; group.lanes = lanes; return group; }
SIMTBED_INLINE coalesced_group coalesced_threads() { return simtbed_lanes(__activemask()); }
SIMTBED_INLINE thread_block this_thread_block() { return thread_block(); }
template <unsigned int N> struct block_tile_memory { char bytes[N / 4]; };
template <unsigned int N> SIMTBED_INLINE thread_block this_thread_block(block_tile_memory<N> &) { return thread_block(); }
SIMTBED_INLINE thread_block_tile<1> this_thread() { return thread_block_tile<1>(); }
SIMTBED_INLINE cluster_group this_cluster() { return cluster_group(); }
SIMTBED_INLINE grid_group this_grid() { return grid_group(); }
template <unsigned int N, class P> SIMTBED_INLINE thread_block_tile<N, P> tiled_partition(const P &) { return thread_block_tile<N, P>(); }
SIMTBED_INLINE coalesced_group tiled_partition(const coalesced_group &group, unsigned int size) {
    unsigned int chosen = 0, rank = 0, own = group.thread_rank() / size;
    for (unsigned int rest = group.lanes; rest; rest &= rest - 1) chosen |= rank++ / size == own ? rest & (0u - rest) : 0u;
    return simtbed_lanes(chosen);
}
SIMTBED_INLINE thread_group tiled_partition(const thread_group &group, unsigned int size) {
    unsigned int all = size < 32 ? (1u << size) - 1u : 0xffffffffu, first = group.lanes ? __ffs((int)group.lanes) - 1 : 0;
    thread_group result;
    result.lanes = all << (first + (group.block_rank() % 32u - first) / size * size);
    return result;
}
template <class G> SIMTBED_INLINE coalesced_group labeled_partition(const G &group, int label) { return simtbed_lanes(__match_any_sync(group.lanes, label)); }
template <class G> SIMTBED_INLINE coalesced_group binary_partition(const G &group, bool predicate) {
    unsigned int chosen = __ballot_sync(group.lanes, predicate);
    return simtbed_lanes(predicate ? chosen : group.lanes & ~chosen);
}
template <class G> SIMTBED_INLINE void sync(const G &group) { group.sync(); }
template <class Unit, class G> SIMTBED_INLINE void simtbed_copy(const G &group, void *to, const void *from, size_t bytes) {
    for (size_t i = group.thread_rank(); i < bytes / sizeof(Unit); i += group.size())
        __pipeline_memcpy_async((Unit *)to + i, (const Unit *)from + i, sizeof(Unit));
}
template <class G, class T, class Size> SIMTBED_INLINE void memcpy_async(const G &group, T *to, const T *from, const Size &size) {
    size_t bytes = size, common = (size_t)to | (size_t)from | bytes;
    if (common % 16 == 0) simtbed_copy<uint4>(group, to, from, bytes);
    else if (common % 8 == 0) simtbed_copy<uint2>(group, to, from, bytes);
    else if (common % 4 == 0) simtbed_copy<unsigned int>(group, to, from, bytes);
    else for (size_t i = group.thread_rank(); i < bytes; i += group.size()) ((char *)to)[i] = ((const char *)from)[i];
    __pipeline_commit();
}
template <unsigned int prior, class G> SIMTBED_INLINE void wait_prior(const G &group) { __pipeline_wait_prior(prior); group.sync(); }
template <class G> SIMTBED_INLINE void wait(const G &group) { wait_prior<0>(group); }
#define SIMTBED_OPERATOR(NAME, RESULT) template <class T> struct NAME { SIMTBED_INTRINSIC T operator()(T a, T b) const { return RESULT; } };
SIMTBED_OPERATOR(plus, a + b) SIMTBED_OPERATOR(less, a < b ? a : b) SIMTBED_OPERATOR(greater, a > b ? a : b)
SIMTBED_OPERATOR(bit_and, a & b) SIMTBED_OPERATOR(bit_or, a | b) SIMTBED_OPERATOR(bit_xor, a ^ b)
template <unsigned int N, class P, class T, class O> SIMTBED_INLINE T reduce(const thread_block_tile<N, P> &tile, T value, O op) {
    for (unsigned int bits = N / 2; bits > 0; bits /= 2) value = op(value, tile.shfl_xor(value, bits));
    return value;
}
template <class T, class O> SIMTBED_INLINE T reduce(const coalesced_group &group, T value, O op) {
    T result = group.shfl(value, 0);
    for (unsigned int rank = 1; rank < group.size(); ++rank) result = op(result, group.shfl(value, rank));
    return result;
}
template <class G, class T, class O> SIMTBED_INLINE T inclusive_scan(const G &group, T value, O op) {
    for (unsigned int delta = 1; delta < group.size(); delta *= 2) {
        T other = group.shfl_up(value, delta);
        if (group.thread_rank() >= delta) value = op(other, value);
    }
    return value;
}
template <class G, class T> SIMTBED_INLINE T inclusive_scan(const G &group, T value) { return inclusive_scan(group, value, plus<T>()); }
template <class G, class T, class O> SIMTBED_INLINE T exclusive_scan(const G &group, T value, O op) {
    T result = group.shfl_up(inclusive_scan(group, value, op), 1);
    return group.thread_rank() ? result : T();
}
template <class G, class T> SIMTBED_INLINE T exclusive_scan(const G &group, T value) { return exclusive_scan(group, value, plus<T>()); }
}
#endif
