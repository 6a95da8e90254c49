// Declarations of CUDA C++ for kernels, without a toolkit. A function with a symbol `simtbed.` is an operation or an effect of the IR
// (`llvmir.effect_calls`). `header.py` appends the mathematical functions.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __cluster_dims__(...) __attribute__((annotate("simtbed.cluster", __VA_ARGS__)))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __forceinline__ inline __attribute__((always_inline))
#define __inline__ inline
#define __noinline__
#define __grid_constant__
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define CUDART_VERSION 12080
#define CUDA_VERSION 12080
#define SIMTBED_INTRINSIC __attribute__((device, nodebug))
#define SIMTBED_PURE __attribute__((device, const))
#define SIMTBED_EFFECT __attribute__((device))
#define SIMTBED_INLINE static inline __attribute__((device, always_inline, nodebug))
#define SIMTBED_BOTH static inline __attribute__((device, host, always_inline, nodebug))
#define SIMTBED_CONSTANT static constexpr __attribute__((device)) __attribute__((host))

#ifndef SIMTBED_PROGRAM
#define NULL nullptr
typedef decltype(sizeof(0)) size_t;
typedef long ptrdiff_t; typedef long ssize_t; typedef long clock_t; typedef long intptr_t; typedef unsigned long uintptr_t;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned long uint64_t;
#endif
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
typedef long long longlong; typedef unsigned long long ulonglong;
typedef _Float16 __half; typedef _Float16 half; typedef __bf16 __nv_bfloat16; typedef __bf16 nv_bfloat16;

#define SIMTBED_VECTORS(T, NAME, SIZE) \
    struct NAME##1 { T x; }; \
    struct __align__(2 * SIZE) NAME##2 { T x, y; }; \
    struct NAME##3 { T x, y, z; }; \
    struct __align__(SIZE < 4 ? 4 * SIZE : 16) NAME##4 { T x, y, z, w; }; \
    SIMTBED_BOTH NAME##1 make_##NAME##1(T x) { return {x}; } \
    SIMTBED_BOTH NAME##2 make_##NAME##2(T x, T y) { return {x, y}; } \
    SIMTBED_BOTH NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
    SIMTBED_BOTH NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SIMTBED_VECTORS(signed char, char, 1)
SIMTBED_VECTORS(unsigned char, uchar, 1)
SIMTBED_VECTORS(short, short, 2)
SIMTBED_VECTORS(unsigned short, ushort, 2)
SIMTBED_VECTORS(int, int, 4)
SIMTBED_VECTORS(unsigned int, uint, 4)
SIMTBED_VECTORS(float, float, 4)
SIMTBED_VECTORS(long, long, 8)
SIMTBED_VECTORS(unsigned long, ulong, 8)
SIMTBED_VECTORS(long long, longlong, 8)
SIMTBED_VECTORS(unsigned long long, ulonglong, 8)
SIMTBED_VECTORS(double, double, 8)
#define SIMTBED_BITS(T) __host__ SIMTBED_INTRINSIC constexpr operator T() const { return __builtin_bit_cast(T, x); }
#define SIMTBED_PAIR(Pair, T) struct __align__(4) Pair { \
    T x, y; \
    Pair() = default; \
    __host__ SIMTBED_INTRINSIC constexpr Pair(T x, T y) : x(x), y(y) {} \
};
SIMTBED_PAIR(half2, __half) SIMTBED_PAIR(bfloat162, __nv_bfloat16)
struct __half_raw { unsigned short x; SIMTBED_BITS(__half) };
struct __nv_bfloat16_raw { unsigned short x; SIMTBED_BITS(__nv_bfloat16) };
typedef half2 __half2; typedef bfloat162 __nv_bfloat162; typedef bfloat162 nv_bfloat162;
#define SIMTBED_CONVERSIONS(PAIR, ONE, T) \
    SIMTBED_BOTH PAIR make_##PAIR(T x, T y) { return {x, y}; } SIMTBED_BOTH PAIR __halves2##PAIR(T x, T y) { return {x, y}; } \
    SIMTBED_BOTH PAIR __##ONE##2##PAIR(T x) { return {x, x}; } SIMTBED_BOTH PAIR __float2##PAIR##_rn(float x) { return {(T)x, (T)x}; } \
    SIMTBED_BOTH PAIR __floats2##PAIR##_rn(float x, float y) { return {(T)x, (T)y}; } SIMTBED_BOTH PAIR __float22##PAIR##_rn(float2 v) { return {(T)v.x, (T)v.y}; } \
    SIMTBED_BOTH float2 __##PAIR##2float2(PAIR v) { return {(float)v.x, (float)v.y}; } \
    SIMTBED_BOTH T __low2##ONE(PAIR v) { return v.x; } SIMTBED_BOTH T __high2##ONE(PAIR v) { return v.y; } \
    SIMTBED_BOTH float __low2float(PAIR v) { return v.x; } SIMTBED_BOTH float __high2float(PAIR v) { return v.y; } \
    SIMTBED_BOTH T __float2##ONE(float x) { return (T)x; }
SIMTBED_CONVERSIONS(half2, half, __half) SIMTBED_CONVERSIONS(bfloat162, bfloat16, __nv_bfloat16)
#define SIMTBED_COMPARISONS(T) \
    SIMTBED_BOTH T __hadd(T a, T b) { return a + b; } SIMTBED_BOTH T __hsub(T a, T b) { return a - b; } \
    SIMTBED_BOTH T __hmul(T a, T b) { return a * b; } SIMTBED_BOTH T __hdiv(T a, T b) { return a / b; } \
    SIMTBED_BOTH T __hneg(T x) { return -x; } \
    SIMTBED_BOTH bool __heq(T a, T b) { return a == b; } SIMTBED_BOTH bool __hne(T a, T b) { return a < b || a > b; } \
    SIMTBED_BOTH bool __hlt(T a, T b) { return a < b; } SIMTBED_BOTH bool __hle(T a, T b) { return a <= b; } \
    SIMTBED_BOTH bool __hgt(T a, T b) { return a > b; } SIMTBED_BOTH bool __hge(T a, T b) { return a >= b; } \
    SIMTBED_BOTH bool __hisnan(T x) { return x != x; } SIMTBED_BOTH int __hisinf(T x) { return __builtin_isinf_sign((float)x); }
SIMTBED_COMPARISONS(__half) SIMTBED_COMPARISONS(__nv_bfloat16)
#define SIMTBED_PAIR(T, NAME, OP) \
    SIMTBED_BOTH T NAME(T a, T b) { return {a.x OP b.x, a.y OP b.y}; } \
    SIMTBED_BOTH T operator OP(T a, T b) { return {a.x OP b.x, a.y OP b.y}; } \
    SIMTBED_BOTH T &operator OP##=(T &a, T b) { a = a OP b; return a; }
#define SIMTBED_PAIRS(T) \
    SIMTBED_PAIR(T, __hadd2, +) SIMTBED_PAIR(T, __hsub2, -) SIMTBED_PAIR(T, __hmul2, *) SIMTBED_PAIR(T, __h2div, /) \
    SIMTBED_BOTH T operator-(T v) { return {-v.x, -v.y}; } SIMTBED_BOTH T __hneg2(T v) { return {-v.x, -v.y}; }
SIMTBED_PAIRS(half2) SIMTBED_PAIRS(bfloat162)

// ------------------------------------------------------------------ types of the runtime, in declarations
#ifndef SIMTBED_PROGRAM  // it has the runtime's types
struct cudaArray;
typedef cudaArray *cudaArray_t; typedef struct CUstream_st *cudaStream_t; typedef struct CUevent_st *cudaEvent_t; typedef int cudaError_t;
#endif

struct dim3 {
    unsigned int x, y, z;
    __attribute__((device, host, nodebug)) dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    __attribute__((device, host, nodebug)) dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __attribute__((device, host, nodebug)) operator uint3() const { return {x, y, z}; }
};
#define SIMTBED_INDEX(NAME, TYPE, REGISTER) \
    struct simtbed_##NAME { \
        __declspec(property(get = get_x)) unsigned int x; __declspec(property(get = get_y)) unsigned int y; \
        __declspec(property(get = get_z)) unsigned int z; \
        SIMTBED_INTRINSIC static inline unsigned int get_x() { return __nvvm_read_ptx_sreg_##REGISTER##_x(); } \
        SIMTBED_INTRINSIC static inline unsigned int get_y() { return __nvvm_read_ptx_sreg_##REGISTER##_y(); } \
        SIMTBED_INTRINSIC static inline unsigned int get_z() { return __nvvm_read_ptx_sreg_##REGISTER##_z(); } \
        SIMTBED_INTRINSIC operator TYPE() const { return TYPE(x, y, z); } \
    }; \
    extern const __attribute__((device, weak)) simtbed_##NAME NAME;
struct simtbed_uint3 : uint3 { SIMTBED_INTRINSIC simtbed_uint3(unsigned int a, unsigned int b, unsigned int c) { x = a; y = b; z = c; } };
SIMTBED_INDEX(threadIdx, simtbed_uint3, tid) SIMTBED_INDEX(blockIdx, simtbed_uint3, ctaid)
SIMTBED_INDEX(blockDim, dim3, ntid) SIMTBED_INDEX(gridDim, dim3, nctaid)
static constexpr int warpSize = 32;

// ------------------------------------------------------------------ block, warp, order of memory accesses
SIMTBED_EFFECT void __syncthreads() __asm__("simtbed.barrier.sync");
SIMTBED_EFFECT int __syncthreads_count(int predicate) __asm__("simtbed.barrier.count");
SIMTBED_EFFECT int __syncthreads_and(int predicate) __asm__("simtbed.barrier.and");
SIMTBED_EFFECT int __syncthreads_or(int predicate) __asm__("simtbed.barrier.or");
SIMTBED_EFFECT void __simtbed_grid_sync() __asm__("simtbed.barrier.grid");
SIMTBED_EFFECT void __cluster_barrier_arrive() __asm__("simtbed.barrier.cluster_arrive");
SIMTBED_EFFECT void __cluster_barrier_wait() __asm__("simtbed.barrier.cluster_wait");
SIMTBED_INLINE void __cluster_barrier_arrive_relaxed() { __cluster_barrier_arrive(); }
#define SIMTBED_OF_CLUSTER(NAME, REGISTER) SIMTBED_INLINE unsigned int NAME() { unsigned int value; asm("mov.u32 %0, %%" REGISTER ";" : "=r"(value)); return value; }
SIMTBED_OF_CLUSTER(__clusterRelativeBlockRank, "cluster_ctarank") SIMTBED_OF_CLUSTER(__clusterSizeInBlocks, "cluster_nctarank")
#define SIMTBED_INDEX_OF_CLUSTER(NAME, REGISTER) \
    SIMTBED_OF_CLUSTER(NAME##_x, REGISTER ".x") SIMTBED_OF_CLUSTER(NAME##_y, REGISTER ".y") SIMTBED_OF_CLUSTER(NAME##_z, REGISTER ".z") \
    SIMTBED_INLINE dim3 NAME() { return dim3(NAME##_x(), NAME##_y(), NAME##_z()); }
SIMTBED_INDEX_OF_CLUSTER(__clusterIdx, "clusterid") SIMTBED_INDEX_OF_CLUSTER(__clusterGridDimInClusters, "nclusterid")
SIMTBED_INDEX_OF_CLUSTER(__clusterRelativeBlockIdx, "cluster_ctaid") SIMTBED_INDEX_OF_CLUSTER(__clusterDim, "cluster_nctaid")
SIMTBED_INLINE void *__cluster_map_shared_rank(const void *address, unsigned int rank) {
    void *mapped; asm("mapa.u64 %0, %1, %2;" : "=l"(mapped) : "l"(address), "r"(rank)); return mapped;
}
SIMTBED_INLINE unsigned int __cluster_query_shared_rank(const void *address) {
    unsigned int rank; asm("getctarank.u64 %0, %1;" : "=r"(rank) : "l"(address)); return rank;
}
SIMTBED_EFFECT void __syncwarp(unsigned int mask = 0xffffffffu) __asm__("simtbed.warp_barrier");
SIMTBED_EFFECT void __threadfence() __asm__("simtbed.fence.device");
SIMTBED_EFFECT void __threadfence_block() __asm__("simtbed.fence.block");
SIMTBED_EFFECT void __threadfence_system() __asm__("simtbed.fence.device.system");
SIMTBED_EFFECT unsigned int __simtbed_ballot(unsigned int mask, bool predicate) __asm__("simtbed.vote.ballot.bool");
SIMTBED_EFFECT bool __simtbed_any(unsigned int mask, bool predicate) __asm__("simtbed.vote.any.bool");
SIMTBED_EFFECT bool __simtbed_all(unsigned int mask, bool predicate) __asm__("simtbed.vote.all.bool");
SIMTBED_INLINE unsigned int __ballot_sync(unsigned int mask, int predicate) { return __simtbed_ballot(mask, predicate); }
SIMTBED_INLINE int __any_sync(unsigned int mask, int predicate) { return __simtbed_any(mask, predicate); }
SIMTBED_INLINE int __all_sync(unsigned int mask, int predicate) { return __simtbed_all(mask, predicate); }
SIMTBED_EFFECT unsigned int __activemask() __asm__("simtbed.active");
SIMTBED_EFFECT int clock() __asm__("simtbed.clock.i32");
SIMTBED_EFFECT long long clock64() __asm__("simtbed.clock.i64");
SIMTBED_EFFECT void __nanosleep(unsigned int nanoseconds) __asm__("simtbed.sleep");
extern "C" SIMTBED_EFFECT int printf(const char *format, ...);
SIMTBED_EFFECT void __simtbed_assert(bool holds, const char *text) __asm__("simtbed.assert");
SIMTBED_INLINE void __trap() { __simtbed_assert(false, "__trap()"); }
#define assert(condition) __simtbed_assert(static_cast<bool>(condition), #condition)
SIMTBED_INLINE unsigned int __ballot(int predicate) { return __ballot_sync(0xffffffffu, predicate); }
SIMTBED_INLINE int __any(int predicate) { return __any_sync(0xffffffffu, predicate); }
SIMTBED_INLINE int __all(int predicate) { return __all_sync(0xffffffffu, predicate); }

#define SIMTBED_SHUFFLES(T, TYPE) \
    SIMTBED_EFFECT T __shfl_sync(unsigned int mask, T value, int lane, int width = 32) __asm__("simtbed.shuffle.idx." TYPE); \
    SIMTBED_EFFECT T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32) __asm__("simtbed.shuffle.up." TYPE); \
    SIMTBED_EFFECT T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32) __asm__("simtbed.shuffle.down." TYPE); \
    SIMTBED_EFFECT T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32) __asm__("simtbed.shuffle.xor." TYPE); \
    SIMTBED_INLINE T __shfl(T value, int lane, int width = 32) { return __shfl_sync(0xffffffffu, value, lane, width); } \
    SIMTBED_INLINE T __shfl_up(T value, unsigned int delta, int width = 32) { return __shfl_up_sync(0xffffffffu, value, delta, width); } \
    SIMTBED_INLINE T __shfl_down(T value, unsigned int delta, int width = 32) { return __shfl_down_sync(0xffffffffu, value, delta, width); } \
    SIMTBED_INLINE T __shfl_xor(T value, int bits, int width = 32) { return __shfl_xor_sync(0xffffffffu, value, bits, width); } \
    SIMTBED_EFFECT unsigned int __match_any_sync(unsigned int mask, T value) __asm__("simtbed.vote.match." TYPE); \
    SIMTBED_EFFECT unsigned int __simtbed_match_all(unsigned int mask, T value) __asm__("simtbed.vote.match_all." TYPE); \
    SIMTBED_INLINE unsigned int __match_all_sync(unsigned int mask, T value, int *equal) { \
        unsigned int lanes = __simtbed_match_all(mask, value); *equal = lanes != 0; return lanes; }
SIMTBED_SHUFFLES(int, "i32") SIMTBED_SHUFFLES(unsigned int, "u32") SIMTBED_SHUFFLES(long, "i64") SIMTBED_SHUFFLES(unsigned long, "u64")
SIMTBED_SHUFFLES(long long, "i64") SIMTBED_SHUFFLES(unsigned long long, "u64") SIMTBED_SHUFFLES(float, "f32")
SIMTBED_SHUFFLES(double, "f64") SIMTBED_SHUFFLES(__half, "f16") SIMTBED_SHUFFLES(__nv_bfloat16, "bf16")
#define SIMTBED_REDUCTIONS(T, TYPE) \
    SIMTBED_EFFECT T __reduce_add_sync(unsigned int mask, T value) __asm__("simtbed.vote.add." TYPE); \
    SIMTBED_EFFECT T __reduce_min_sync(unsigned int mask, T value) __asm__("simtbed.vote.min." TYPE); \
    SIMTBED_EFFECT T __reduce_max_sync(unsigned int mask, T value) __asm__("simtbed.vote.max." TYPE);
SIMTBED_REDUCTIONS(int, "i32") SIMTBED_REDUCTIONS(unsigned int, "u32")
SIMTBED_EFFECT unsigned int __reduce_and_sync(unsigned int mask, unsigned int value) __asm__("simtbed.vote.and.u32");
SIMTBED_EFFECT unsigned int __reduce_or_sync(unsigned int mask, unsigned int value) __asm__("simtbed.vote.or.u32");
SIMTBED_EFFECT unsigned int __reduce_xor_sync(unsigned int mask, unsigned int value) __asm__("simtbed.vote.xor.u32");

// ------------------------------------------------------------------ atomics
#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_CONSUME 1
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_ATOMIC_SEQ_CST 5
#define __NV_THREAD_SCOPE_THREAD 0
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_CLUSTER 2
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4
#define SIMTBED_ATOMIC_OPERATION(OP, T, TYPE) \
    SIMTBED_EFFECT T __simtbed_atomic_##OP(T *p, T value, int order, int scope) __asm__("simtbed.atomic." #OP "." TYPE);
#define SIMTBED_INTEGER_OPERATIONS(T, TYPE) \
    SIMTBED_ATOMIC_OPERATION(add, T, TYPE) SIMTBED_ATOMIC_OPERATION(sub, T, TYPE) SIMTBED_ATOMIC_OPERATION(min, T, TYPE) \
    SIMTBED_ATOMIC_OPERATION(max, T, TYPE) SIMTBED_ATOMIC_OPERATION(and, T, TYPE) SIMTBED_ATOMIC_OPERATION(or, T, TYPE) \
    SIMTBED_ATOMIC_OPERATION(xor, T, TYPE)
#define SIMTBED_ACCESSES(T, TYPE) \
    SIMTBED_ATOMIC_OPERATION(exchange, T, TYPE) \
    SIMTBED_EFFECT T __simtbed_load(T *p, int order, int scope) __asm__("simtbed.load." TYPE); \
    SIMTBED_EFFECT void __simtbed_store(T *p, T value, int order, int scope) __asm__("simtbed.store." TYPE);
#define SIMTBED_SWAP(T, TYPE) SIMTBED_EFFECT T __simtbed_swap(T *p, T expected, T value, int order, int scope) __asm__("simtbed.swap." TYPE);
#define SIMTBED_INTEGER(T, TYPE) SIMTBED_INTEGER_OPERATIONS(T, TYPE) SIMTBED_ACCESSES(T, TYPE) SIMTBED_SWAP(T, TYPE)
SIMTBED_INTEGER(int, "i32") SIMTBED_INTEGER(unsigned int, "u32") SIMTBED_INTEGER(long, "i64") SIMTBED_INTEGER(unsigned long, "u64")
SIMTBED_INTEGER(long long, "i64") SIMTBED_INTEGER(unsigned long long, "u64")
SIMTBED_ACCESSES(float, "f32") SIMTBED_ACCESSES(double, "f64") SIMTBED_ACCESSES(bool, "bool") SIMTBED_ACCESSES(char, "i8")
SIMTBED_ACCESSES(signed char, "i8") SIMTBED_ACCESSES(unsigned char, "u8") SIMTBED_ACCESSES(short, "i16")
SIMTBED_ACCESSES(unsigned short, "u16") SIMTBED_SWAP(unsigned short, "u16") SIMTBED_SWAP(short, "i16")
SIMTBED_ATOMIC_OPERATION(add, float, "f32") SIMTBED_ATOMIC_OPERATION(add, double, "f64")
SIMTBED_ATOMIC_OPERATION(min, float, "f32") SIMTBED_ATOMIC_OPERATION(min, double, "f64")
SIMTBED_ATOMIC_OPERATION(max, float, "f32") SIMTBED_ATOMIC_OPERATION(max, double, "f64")
SIMTBED_ATOMIC_OPERATION(add, __half, "f16") SIMTBED_ATOMIC_OPERATION(add, __nv_bfloat16, "bf16")
SIMTBED_ATOMIC_OPERATION(inc, unsigned int, "u32") SIMTBED_ATOMIC_OPERATION(dec, unsigned int, "u32")
#define SIMTBED_ATOMIC(NAME, OP, T) \
    SIMTBED_INLINE T NAME(T *p, T value) { return __simtbed_atomic_##OP(p, value, 0, 3); } \
    SIMTBED_INLINE T NAME##_block(T *p, T value) { return __simtbed_atomic_##OP(p, value, 0, 1); } \
    SIMTBED_INLINE T NAME##_system(T *p, T value) { return __simtbed_atomic_##OP(p, value, 0, 4); }
#define SIMTBED_INTEGER_ATOMIC(NAME, OP) \
    SIMTBED_ATOMIC(NAME, OP, int) SIMTBED_ATOMIC(NAME, OP, unsigned int) SIMTBED_ATOMIC(NAME, OP, long long) \
    SIMTBED_ATOMIC(NAME, OP, unsigned long long)
SIMTBED_INTEGER_ATOMIC(atomicAdd, add) SIMTBED_INTEGER_ATOMIC(atomicMin, min) SIMTBED_INTEGER_ATOMIC(atomicMax, max)
SIMTBED_INTEGER_ATOMIC(atomicAnd, and) SIMTBED_INTEGER_ATOMIC(atomicOr, or) SIMTBED_INTEGER_ATOMIC(atomicXor, xor)
SIMTBED_INTEGER_ATOMIC(atomicExch, exchange)
SIMTBED_ATOMIC(atomicAdd, add, float) SIMTBED_ATOMIC(atomicAdd, add, double) SIMTBED_ATOMIC(atomicAdd, add, __half)
SIMTBED_ATOMIC(atomicAdd, add, __nv_bfloat16) SIMTBED_ATOMIC(atomicExch, exchange, float)
SIMTBED_ATOMIC(atomicSub, sub, int) SIMTBED_ATOMIC(atomicSub, sub, unsigned int)
SIMTBED_ATOMIC(atomicInc, inc, unsigned int) SIMTBED_ATOMIC(atomicDec, dec, unsigned int)
#define SIMTBED_VECTOR_ATOMIC(T, LANE, LANES, TYPE) \
    typedef LANE simtbed_##T __attribute__((ext_vector_type(LANES))); \
    SIMTBED_EFFECT simtbed_##T __simtbed_atomic_add(T *p, simtbed_##T value, int order, int scope) __asm__("simtbed.atomic.add." TYPE); \
    SIMTBED_INLINE T __simtbed_atomic_add(T *p, T value, int order, int scope) { \
        return __builtin_bit_cast(T, __simtbed_atomic_add(p, __builtin_bit_cast(simtbed_##T, value), order, scope)); } \
    SIMTBED_ATOMIC(atomicAdd, add, T)
SIMTBED_VECTOR_ATOMIC(half2, _Float16, 2, "half2") SIMTBED_VECTOR_ATOMIC(bfloat162, __bf16, 2, "bfloat162")
SIMTBED_VECTOR_ATOMIC(float2, float, 2, "float2") SIMTBED_VECTOR_ATOMIC(float4, float, 4, "float4")
#define SIMTBED_CAS(T) \
    SIMTBED_INLINE T atomicCAS(T *p, T expected, T value) { return __simtbed_swap(p, expected, value, 0, 3); } \
    SIMTBED_INLINE T atomicCAS_block(T *p, T expected, T value) { return __simtbed_swap(p, expected, value, 0, 1); } \
    SIMTBED_INLINE T atomicCAS_system(T *p, T expected, T value) { return __simtbed_swap(p, expected, value, 0, 4); }
SIMTBED_CAS(int) SIMTBED_CAS(unsigned int) SIMTBED_CAS(unsigned long long) SIMTBED_CAS(unsigned short)
template <class T> SIMTBED_INLINE T __nv_atomic_load_n(T *p, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) { return __simtbed_load(p, order, scope); }
template <class T, class V> SIMTBED_INLINE void __nv_atomic_store_n(T *p, V value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) { __simtbed_store(p, (T)value, order, scope); }
template <class T, class V> SIMTBED_INLINE T __nv_atomic_exchange_n(T *p, V value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) { return __simtbed_atomic_exchange(p, (T)value, order, scope); }
#define SIMTBED_ORDERED(OP) \
    template <class T, class V> SIMTBED_INLINE T __nv_atomic_fetch_##OP(T *p, V value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) { \
        return __simtbed_atomic_##OP(p, (T)value, order, scope); } \
    template <class T, class V> SIMTBED_INLINE void __nv_atomic_##OP(T *p, V value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) { \
        __simtbed_atomic_##OP(p, (T)value, order, scope); }
SIMTBED_ORDERED(add) SIMTBED_ORDERED(sub) SIMTBED_ORDERED(min) SIMTBED_ORDERED(max) SIMTBED_ORDERED(and) SIMTBED_ORDERED(or) SIMTBED_ORDERED(xor)
template <class T, class V> SIMTBED_INLINE bool __nv_atomic_compare_exchange_n(T *p, T *expected, V value, bool weak, int success, int failure, int scope = __NV_THREAD_SCOPE_SYSTEM) {
    T before = *expected;
    T old = __simtbed_swap(p, before, (T)value, success, scope);
    *expected = old;
    return old == before;
}

// ------------------------------------------------------------------ loads, stores, copies
// clang knows both as its own where they are of the host and the device.
extern "C" __host__ __device__ void *memcpy(void *to, const void *from, size_t size);
extern "C" __host__ __device__ void *memset(void *to, int value, size_t size);
extern "C" SIMTBED_EFFECT void *malloc(size_t size);
extern "C" SIMTBED_EFFECT void free(void *memory);
SIMTBED_INTRINSIC inline void *operator new[](size_t, void *place) noexcept { return place; }
SIMTBED_INTRINSIC inline void *operator new(size_t, void *place) noexcept { return place; }
SIMTBED_INTRINSIC inline void operator delete(void *, void *) noexcept {}
SIMTBED_INLINE void cudaGridDependencySynchronize() { asm volatile("griddepcontrol.wait;"); }
SIMTBED_INLINE void cudaTriggerProgrammaticLaunchCompletion() { asm volatile("griddepcontrol.launch_dependents;"); }
#define SIMTBED_CACHED(LOAD, STORE) \
    template <class T> SIMTBED_INLINE T LOAD(const T *p) { return *p; } template <class T> SIMTBED_INLINE void STORE(T *p, T value) { *p = value; }
SIMTBED_CACHED(__ldcg, __stcg) SIMTBED_CACHED(__ldcs, __stcs) SIMTBED_CACHED(__ldca, __stwb)
template <class T> SIMTBED_INLINE T __ldg(const T *p) { return *p; } template <class T> SIMTBED_INLINE T __ldlu(const T *p) { return *p; }
template <class T> SIMTBED_INLINE T __ldcv(const volatile T *p) { return *p; }
template <class T> SIMTBED_INLINE void __stwt(volatile T *p, T value) { *p = value; }
#define SIMTBED_SPACE(NAME, TEST, WORD, SPACE) \
    SIMTBED_INLINE size_t __cvta_generic_to_##NAME(const void *p) { return (size_t)(const void __attribute__((address_space(SPACE))) *)p; } \
    SIMTBED_INLINE void *__cvta_##NAME##_to_generic(size_t p) { return (void *)(void __attribute__((address_space(SPACE))) *)p; } \
    SIMTBED_INLINE unsigned TEST(const void *p) { \
        unsigned result; \
        asm("{ .reg .pred q; isspacep." #WORD " q, %1; selp.u32 %0, 1, 0, q; }" : "=r"(result) : "l"(p)); \
        return result; \
    }
SIMTBED_SPACE(global, __isGlobal, global, 1) SIMTBED_SPACE(shared, __isShared, shared, 3)
SIMTBED_INLINE unsigned __isClusterShared(const void *p) { return __isShared(p); }
SIMTBED_SPACE(constant, __isConstant, const, 4) SIMTBED_SPACE(local, __isLocal, local, 5)
SIMTBED_EFFECT void __pipeline_memcpy_async(void *to, const void *from, size_t size) __asm__("simtbed.copy_async");
SIMTBED_EFFECT void __pipeline_commit() __asm__("simtbed.commit");
SIMTBED_EFFECT void __pipeline_wait_prior(size_t pending) __asm__("simtbed.wait");

// ------------------------------------------------------------------ limits and constants
#ifndef SIMTBED_PROGRAM  // it has the headers of C
#define CHAR_BIT 8
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295u
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define ULLONG_MAX 18446744073709551615ULL
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX 9223372036854775807L
#define UINT64_MAX 18446744073709551615UL
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#endif
#define CUDART_INF_F __builtin_inff()
#define CUDART_INF __builtin_inf()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_NAN __builtin_nan("")
// of math_constants.h, by their definitions
static constexpr float CUDART_MIN_DENORM_F = 1.401298464e-45f, CUDART_MAX_NORMAL_F = __FLT_MAX__, CUDART_NEG_ZERO_F = (-0.0f), CUDART_ZERO_F = 0.0f, CUDART_ONE_F = 1.0f,
    CUDART_SQRT_HALF_F = 0.707106781f, CUDART_SQRT_TWO_F = 1.414213562f, CUDART_PIO4_F = 0.785398163f, CUDART_PIO2_F = 1.570796327f, CUDART_2_OVER_PI_F = 0.636619772f,
    CUDART_PI_F = 3.141592654f, CUDART_L2E_F = 1.442695041f, CUDART_LN2_F = 0.693147181f, CUDART_LNT_F = 2.302585093f, CUDART_TWO_TO_23_F = 8388608.0f;
static constexpr double CUDART_MAX_NORMAL = __DBL_MAX__, CUDART_ZERO = 0.0, CUDART_ONE = 1.0, CUDART_SQRT_HALF = 0.70710678118654757, CUDART_SQRT_TWO = 1.4142135623730951,
    CUDART_PIO4 = 0.78539816339744828, CUDART_PIO2 = 1.5707963267948966, CUDART_PI = 3.1415926535897931, CUDART_L2E = 1.4426950408889634,
    CUDART_LN2 = 0.69314718055994529, CUDART_LNT = 2.3025850929940459;
#ifndef SIMTBED_PROGRAM
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#endif
