// Groups of a grid, a block and tiles of a warp.
#ifndef SIMTBED_COOPERATIVE_GROUPS_H  // the file has several names
#define SIMTBED_COOPERATIVE_GROUPS_H
namespace cooperative_groups {
struct thread_group {};
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
    SIMTBED_INTRINSIC static unsigned long long block_rank() { return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z); }
    SIMTBED_INTRINSIC static unsigned long long thread_rank() { return block_rank() * thread_block::size() + thread_block::thread_rank(); }
    SIMTBED_INTRINSIC static unsigned long long size() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z * thread_block::size(); }
    SIMTBED_INTRINSIC static unsigned long long num_threads() { return size(); }
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
template <unsigned int N, class Parent> struct thread_block_tile : thread_group {
    thread_block_tile() = default;
    template <class P> SIMTBED_INTRINSIC thread_block_tile(const thread_block_tile<N, P> &) {}
    SIMTBED_INTRINSIC static unsigned int first_lane() { return thread_block::thread_rank() % 32u / N * N; }
    SIMTBED_INTRINSIC static unsigned int mask() { return N == 32 ? 0xffffffffu : ((1u << (N % 32)) - 1u) << first_lane(); }
    SIMTBED_INTRINSIC static void sync() { __syncwarp(mask()); }
    SIMTBED_INTRINSIC static unsigned int thread_rank() { return thread_block::thread_rank() % N; }
    SIMTBED_INTRINSIC static constexpr unsigned int size() { return N; }
    SIMTBED_INTRINSIC static constexpr unsigned int num_threads() { return N; }
    SIMTBED_INTRINSIC static unsigned int meta_group_rank() { return simtbed_parent<Parent>::rank() / N; }
    SIMTBED_INTRINSIC static unsigned int meta_group_size() { return (simtbed_parent<Parent>::size() + N - 1) / N; }
    template <class T> SIMTBED_INTRINSIC static T shfl(T value, int lane) { return __shfl_sync(mask(), value, lane, N); }
    template <class T> SIMTBED_INTRINSIC static T shfl_up(T value, unsigned int delta) { return __shfl_up_sync(mask(), value, delta, N); }
    template <class T> SIMTBED_INTRINSIC static T shfl_down(T value, unsigned int delta) { return __shfl_down_sync(mask(), value, delta, N); }
    template <class T> SIMTBED_INTRINSIC static T shfl_xor(T value, unsigned int bits) { return __shfl_xor_sync(mask(), value, (int)bits, N); }
    SIMTBED_INTRINSIC static int any(int predicate) { return __any_sync(mask(), predicate); }
    SIMTBED_INTRINSIC static int all(int predicate) { return __all_sync(mask(), predicate); }
    SIMTBED_INTRINSIC static unsigned int ballot(int predicate) { return __ballot_sync(mask(), predicate) >> first_lane(); }
};
struct coalesced_group : thread_group {
    unsigned int lanes;
    SIMTBED_INTRINSIC unsigned int lane_of(unsigned int rank) const {
        unsigned int rest = lanes;
        for (; rank > 0; --rank) rest &= rest - 1;
        return __ffs((int)rest) - 1;
    }
    SIMTBED_INTRINSIC void sync() const { __syncwarp(lanes); }
    SIMTBED_INTRINSIC unsigned int thread_rank() const { return __popc(lanes & ((1u << thread_block::thread_rank() % 32u) - 1u)); }
    SIMTBED_INTRINSIC unsigned int size() const { return __popc(lanes); }
    SIMTBED_INTRINSIC unsigned int num_threads() const { return __popc(lanes); }
    template <class T> SIMTBED_INTRINSIC T shfl(T value, unsigned int rank) const { return __shfl_sync(lanes, value, (int)lane_of(rank % size())); }
    SIMTBED_INTRINSIC int any(int predicate) const { return __any_sync(lanes, predicate); }
    SIMTBED_INTRINSIC int all(int predicate) const { return __all_sync(lanes, predicate); }
};
SIMTBED_INLINE coalesced_group coalesced_threads() { coalesced_group group; group.lanes = __activemask(); return group; }
SIMTBED_INLINE thread_block this_thread_block() { return thread_block(); }
SIMTBED_INLINE grid_group this_grid() { return grid_group(); }
template <unsigned int N, class P> SIMTBED_INLINE thread_block_tile<N, P> tiled_partition(const P &) { return thread_block_tile<N, P>(); }
template <class G> SIMTBED_INLINE void sync(const G &group) { group.sync(); }
template <class T> struct plus { SIMTBED_INTRINSIC T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { SIMTBED_INTRINSIC T operator()(T a, T b) const { return a < b ? a : b; } };
template <class T> struct greater { SIMTBED_INTRINSIC T operator()(T a, T b) const { return a > b ? a : b; } };
template <unsigned int N, class P, class T, class O> SIMTBED_INLINE T reduce(const thread_block_tile<N, P> &tile, T value, O op) {
    for (unsigned int bits = N / 2; bits > 0; bits /= 2) value = op(value, tile.shfl_xor(value, bits));
    return value;
}
}
#endif
