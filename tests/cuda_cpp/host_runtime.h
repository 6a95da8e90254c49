// A runtime of CUDA C++ kernels for a host compiler: one coroutine for each thread of a block, blocks one after the other.
// It declares only functions with one right result. No file of the package is used.
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#undef assert
#define assert(condition) ((void)(condition))
typedef unsigned int uint;
typedef unsigned char uchar;
struct uint3 { unsigned int x, y, z; };
struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;
static const int warpSize = 32;

#define VECTORS(T, NAME, SIZE) \
    struct __align__(2 * SIZE) NAME##2 { T x, y; }; \
    struct NAME##3 { T x, y, z; }; \
    struct __align__(SIZE < 8 ? 4 * SIZE : 16) NAME##4 { T x, y, z, w; }; \
    inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; } \
    inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
    inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTORS(signed char, char, 1) VECTORS(unsigned char, uchar, 1) VECTORS(short, short, 2) VECTORS(unsigned short, ushort, 2)
VECTORS(int, int, 4) VECTORS(float, float, 4) VECTORS(double, double, 8)
struct __align__(8) uint2 { unsigned int x, y; };
struct __align__(16) uint4 { unsigned int x, y, z, w; };
inline uint2 make_uint2(uint x, uint y) { return {x, y}; }
inline uint3 make_uint3(uint x, uint y, uint z) { return {x, y, z}; }
inline uint4 make_uint4(uint x, uint y, uint z, uint w) { return {x, y, z, w}; }

// ------------------------------------------------------------------ coroutines
struct Thread {
    ucontext_t context;
    uint3 index;
    bool alive, waiting, complete;
    bool at_barrier;      // else at an operation of a warp
    unsigned int mask;
    unsigned long long value, values[32];
};
static std::vector<Thread> threads;
static std::vector<char> stacks;
static char dynamic_memory[256 << 10] __attribute__((aligned(16)));
static ucontext_t scheduler;
static int current;
static int predicates[2], arrived;  // of a barrier: number of true predicates, and of threads
static const size_t STACK = 256 << 10;

static void suspend() {
    Thread &own = threads[current];
    own.waiting = true;
    swapcontext(&own.context, &scheduler);
    threadIdx = own.index;
}

// Complete the operations for which all threads have arrived. Return whether there was one.
static bool complete() {
    bool any = false;
    int alive = 0, there = 0, truths = 0;
    for (Thread &one : threads) {
        alive += one.alive;
        there += one.alive && one.waiting && one.at_barrier;
        truths += one.alive && one.waiting && one.at_barrier && one.value;
    }
    if (alive && there == alive) {
        predicates[0] = truths;
        arrived = alive;
        for (Thread &one : threads) one.waiting = false;
        return true;
    }
    for (size_t first = 0; first < threads.size(); first += 32)
        for (size_t lane = first; lane < first + 32 && lane < threads.size(); ++lane) {
            Thread &one = threads[lane];
            if (!one.alive || !one.waiting || one.at_barrier) continue;
            bool all = true;
            for (int other = 0; other < 32; ++other) {
                if (!(one.mask >> other & 1) || first + other >= threads.size() || !threads[first + other].alive) continue;
                Thread &peer = threads[first + other];
                all = all && peer.waiting && !peer.at_barrier && peer.mask == one.mask;
            }
            if (!all) continue;
            any = true;
            unsigned int mask = one.mask, present = 0;
            unsigned long long values[32] = {};
            for (int other = 0; other < 32; ++other)
                if (mask >> other & 1 && first + other < threads.size() && threads[first + other].alive) {
                    values[other] = threads[first + other].value;
                    present |= 1u << other;
                }
            for (int other = 0; other < 32; ++other)
                if (present >> other & 1) {
                    Thread &peer = threads[first + other];
                    memcpy(peer.values, values, sizeof values);
                    peer.mask = present;
                    peer.waiting = false;
                }
        }
    return any;
}

static void (*body)();
static void enter() {
    threadIdx = threads[current].index;
    body();
    threads[current].alive = false;
    swapcontext(&threads[current].context, &scheduler);
}

// Run all threads of the current block. Return false if they wait for one another.
static bool run_block() {
    int count = blockDim.x * blockDim.y * blockDim.z, done = 0;
    threads.assign(count, Thread());
    stacks.resize(STACK * count);
    for (int n = 0; n < count; ++n) {
        Thread &one = threads[n];
        one.index = {n % blockDim.x, n / blockDim.x % blockDim.y, n / blockDim.x / blockDim.y};
        one.alive = true;
        getcontext(&one.context);
        one.context.uc_stack.ss_sp = &stacks[STACK * n];
        one.context.uc_stack.ss_size = STACK;
        one.context.uc_link = &scheduler;
        makecontext(&one.context, enter, 0);
    }
    while (true) {
        bool ran = false;
        done = 0;
        for (current = 0; current < count; ++current) {
            Thread &one = threads[current];
            if (one.alive && !one.waiting) {
                swapcontext(&scheduler, &one.context);
                ran = true;
            }
            done += !one.alive;
        }
        if (done == count) return true;
        if (!complete() && !ran) return false;
    }
}

template <class... P, size_t... N> void call(void (*kernel)(P...), void **args, std::index_sequence<N...>) {
    kernel(*(std::remove_reference_t<P> *)args[N]...);
}
template <class... P> bool launch(void (*kernel)(P...), void **args, const unsigned int *shape, size_t shared) {
    static void (*current_kernel)(P...);
    static void **current_args;
    current_kernel = kernel;
    current_args = args;
    body = [] { call(current_kernel, current_args, std::index_sequence_for<P...>()); };
    gridDim = dim3(shape[0], shape[1], shape[2]);
    blockDim = dim3(shape[3], shape[4], shape[5]);
    memset(dynamic_memory, 0, sizeof dynamic_memory);
    if (shared > sizeof dynamic_memory) return false;
    for (unsigned int z = 0; z < gridDim.z; ++z)
        for (unsigned int y = 0; y < gridDim.y; ++y)
            for (unsigned int x = 0; x < gridDim.x; ++x) {
                blockIdx = {x, y, z};
                if (!run_block()) return false;
            }
    return true;
}

// ------------------------------------------------------------------ barriers, warps
static int barrier(int predicate) {
    Thread &own = threads[current];
    own.at_barrier = true;
    own.value = predicate != 0;
    suspend();
    return predicates[0];
}
inline void __syncthreads() { barrier(0); }
inline int __syncthreads_count(int predicate) { return barrier(predicate); }
inline int __syncthreads_or(int predicate) { return barrier(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return barrier(predicate) == arrived; }
inline int lane_number() { return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32; }

template <class T> Thread &exchange(unsigned int mask, T value) {
    Thread &own = threads[current];
    own.at_barrier = false;
    own.mask = mask;
    own.value = 0;
    memcpy(&own.value, &value, sizeof value);
    suspend();
    return own;
}
template <class T> T value_of(const Thread &own, int lane) {
    T result;
    memcpy(&result, &own.values[lane], sizeof result);
    return result;
}
inline void __syncwarp(unsigned int mask = 0xffffffffu) { exchange(mask, 0); }
template <class T> T shuffle(unsigned int mask, T value, int lane, int width, bool inside) {
    int own = lane_number();
    Thread &all = exchange(mask, value);
    return inside ? value_of<T>(all, lane) : value_of<T>(all, own);
}
template <class T> T __shfl_sync(unsigned int mask, T value, int lane, int width = 32) {
    return shuffle(mask, value, lane_number() / width * width + (lane & (width - 1)), width, true);
}
template <class T> T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
    int lane = lane_number() - (int)delta;
    return shuffle(mask, value, lane, width, lane >= lane_number() / width * width);
}
template <class T> T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
    int lane = lane_number() + (int)delta;
    return shuffle(mask, value, lane, width, lane < lane_number() / width * width + width);
}
template <class T> T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32) {
    int lane = lane_number() ^ bits;
    return shuffle(mask, value, lane, width, lane < lane_number() / width * width + width);
}
inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
    Thread &all = exchange(mask, (int)(predicate != 0));
    unsigned int result = 0;
    for (int lane = 0; lane < 32; ++lane) result |= (all.mask >> lane & 1 && all.values[lane]) ? 1u << lane : 0u;
    return result;
}
inline int __any_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned int mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T> unsigned int __match_any_sync(unsigned int mask, T value) {
    Thread &all = exchange(mask, value);
    unsigned int result = 0;
    for (int lane = 0; lane < 32; ++lane) result |= (all.mask >> lane & 1 && all.values[lane] == all.value) ? 1u << lane : 0u;
    return result;
}
template <class T, class F> T reduced(unsigned int mask, T value, F f) {
    Thread &all = exchange(mask, value);
    bool first = true;
    T result = value;
    for (int lane = 0; lane < 32; ++lane)
        if (all.mask >> lane & 1) {
            T next = value_of<T>(all, lane);
            result = first ? next : f(result, next);
            first = false;
        }
    return result;
}
template <class T> T __reduce_add_sync(unsigned int mask, T value) { return reduced(mask, value, [](T a, T b) { return (T)(a + b); }); }
template <class T> T __reduce_min_sync(unsigned int mask, T value) { return reduced(mask, value, [](T a, T b) { return std::min(a, b); }); }
template <class T> T __reduce_max_sync(unsigned int mask, T value) { return reduced(mask, value, [](T a, T b) { return std::max(a, b); }); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// ------------------------------------------------------------------ atomics
template <class T> struct same { typedef T type; };
#define ATOMIC(NAME, RESULT) \
    template <class T> T NAME(T *p, typename same<T>::type v) { T old = *p; *p = RESULT; return old; }
ATOMIC(atomicAdd, (T)(old + v)) ATOMIC(atomicSub, (T)(old - v)) ATOMIC(atomicMin, std::min(old, v)) ATOMIC(atomicMax, std::max(old, v))
ATOMIC(atomicAnd, (T)(old & v)) ATOMIC(atomicOr, (T)(old | v)) ATOMIC(atomicXor, (T)(old ^ v)) ATOMIC(atomicExch, v)
ATOMIC(atomicInc, old >= v ? 0 : old + 1) ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
ATOMIC(atomicMax_block, std::max(old, v))
template <class T> T atomicCAS(T *p, typename same<T>::type expected, typename same<T>::type v) {
    T old = *p;
    if (old == expected) *p = v;
    return old;
}

// ------------------------------------------------------------------ arithmetic
template <class T> T __ldg(const T *p) { return *p; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
inline uint min(uint a, uint b) { return a < b ? a : b; }
inline uint max(uint a, uint b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline int __popc(uint x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline uint __byte_perm(uint a, uint b, uint selector) {
    unsigned long long bytes = (unsigned long long)b << 32 | a;
    uint result = 0;
    for (int n = 0; n < 4; ++n) {
        uint choice = selector >> 4 * n & 15, byte = bytes >> 8 * (choice & 7) & 255;
        result |= (choice & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * n;
    }
    return result;
}
inline int __dp4a(int a, int b, int sum) {
    for (int n = 0; n < 4; ++n) sum += (int)(signed char)(a >> 8 * n) * (int)(signed char)(b >> 8 * n);
    return sum;
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline uint __umulhi(uint a, uint b) { return (uint)((unsigned long long)a * b >> 32); }
inline long long low24(int x) { return (x & 0xffffff) - (x & 0x800000 ? 0x1000000 : 0); }
inline int __mul24(int a, int b) { return (int)(uint)(low24(a) * low24(b)); }
inline uint __umul24(uint a, uint b) { return (uint)((unsigned long long)(a & 0xffffff) * (b & 0xffffff)); }
inline uint __brev(uint x) {
    uint result = 0;
    for (int bit = 0; bit < 32; ++bit) result |= (x >> bit & 1) << (31 - bit);
    return result;
}
inline uint __funnelshift_l(uint low, uint high, uint shift) {
    return (uint)((((unsigned long long)high << 32 | low) << (shift & 31)) >> 32);
}
inline uint __funnelshift_r(uint low, uint high, uint shift) {
    return (uint)(((unsigned long long)high << 32 | low) >> (shift & 31));
}
template <class To, class From> To bits_as(From x) {
    To result;
    memcpy(&result, &x, sizeof result);
    return result;
}
inline int __float_as_int(float x) { return bits_as<int>(x); }
inline uint __float_as_uint(float x) { return bits_as<uint>(x); }
inline float __int_as_float(int x) { return bits_as<float>(x); }
inline float __uint_as_float(uint x) { return bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return bits_as<double>(x); }
// Conversions from floats saturate; NaN is 0.
inline int __double2int_rz(double x) { return x != x ? 0 : x >= 2147483647.0 ? 2147483647 : x <= -2147483648.0 ? -2147483647 - 1 : (int)x; }
inline int __float2int_rz(float x) { return __double2int_rz(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
