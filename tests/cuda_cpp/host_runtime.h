// CUDA C++ for a host compiler: a thread of the system for each thread of a block, blocks in ascending order. Without warps.
#include <algorithm>
#include <barrier>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)

#define VECTORS(T, name, align2, align4) \
    struct alignas(align2) name##2 { T x, y; }; struct name##3 { T x, y, z; }; struct alignas(align4) name##4 { T x, y, z, w; }; \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTORS(signed char, char, 2, 4) VECTORS(unsigned char, uchar, 2, 4) VECTORS(short, short, 4, 8)
VECTORS(unsigned short, ushort, 4, 8) VECTORS(int, int, 8, 16) VECTORS(unsigned int, uint, 8, 16)
VECTORS(float, float, 8, 16) VECTORS(double, double, 16, 16)

struct dim3 { unsigned int x = 1, y = 1, z = 1; };
static thread_local uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static std::unique_ptr<std::barrier<>> block_barrier;
static std::mutex memory_mutex;


inline void __syncthreads() { block_barrier->arrive_and_wait(); }
inline void __threadfence() {}
inline void __threadfence_block() {}
template <typename T, typename F> T updated(T *place, F change) {
    std::lock_guard<std::mutex> lock(memory_mutex);
    T before = *place;
    *place = change(before);
    return before;
}
#define ATOMIC(name, expression) \
    template <typename T, typename U> T name(T *place, U operand) { \
        return updated(place, [=](T a) { T b = (T)operand; return (T)(expression); }); }
ATOMIC(atomicAdd, a + b) ATOMIC(atomicSub, a - b) ATOMIC(atomicMin, std::min(a, b)) ATOMIC(atomicMax, std::max(a, b))
ATOMIC(atomicAnd, a & b) ATOMIC(atomicOr, a | b) ATOMIC(atomicXor, a ^ b) ATOMIC(atomicExch, b)
template <typename T> T atomicCAS(T *place, T expected, T value) {
    return updated(place, [=](T a) { return a == expected ? value : a; });
}
template <typename To, typename From> To bits(From value) { To result; std::memcpy(&result, &value, sizeof result); return result; }
inline int __float_as_int(float x) { return bits<int>(x); }
inline unsigned int __float_as_uint(float x) { return bits<unsigned int>(x); }
inline float __int_as_float(int x) { return bits<float>(x); }
inline float __uint_as_float(unsigned int x) { return bits<float>(x); }
inline int __popc(unsigned int x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
template <typename T> T __ldg(const T *place) { return *place; }
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int order) {
    unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned int result = 0;
    for (int n = 0; n < 4; ++n) result |= (unsigned int)(both >> 8 * (order >> 4 * n & 7) & 255) << 8 * n;
    return result;
}
using std::max; using std::min;

template <typename... A, std::size_t... N>
void launch(void (*kernel)(A...), void **arguments, const unsigned int *grid, const unsigned int *block, std::index_sequence<N...>) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    for (unsigned int b = 0; b < grid[0] * grid[1] * grid[2]; ++b) {
        unsigned int count = block[0] * block[1] * block[2];
        block_barrier = std::make_unique<std::barrier<>>(count);
        std::vector<std::thread> threads;
        for (unsigned int t = 0; t < count; ++t)
            threads.emplace_back([=] {
                blockIdx = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
                threadIdx = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
                kernel(*(std::remove_reference_t<A> *)arguments[N]...);
                block_barrier->arrive_and_drop();
            });
        for (auto &thread : threads) thread.join();
    }
}
template <typename... A>
void launch(void (*kernel)(A...), void **arguments, const unsigned int *grid, const unsigned int *block) {
    launch(kernel, arguments, grid, block, std::index_sequence_for<A...>());
}
