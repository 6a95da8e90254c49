// Declarations of CUDA C++ for kernels, without a toolkit. A function without a body is an operation or an effect of the IR, known by
// its name. A function with a body is lowered as the user's own. `header.py` appends the mathematical functions.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
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
#define NULL nullptr
#define SIMTBED_INTRINSIC __attribute__((device))
#define SIMTBED_INLINE static inline __attribute__((device))
#define SIMTBED_CONSTANT static constexpr __attribute__((device)) __attribute__((host))

typedef decltype(sizeof(0)) size_t;
typedef long ptrdiff_t; typedef long ssize_t; typedef long clock_t; typedef long intptr_t; typedef unsigned long uintptr_t;
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t; typedef unsigned long uint64_t;
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
typedef long long longlong; typedef unsigned long long ulonglong;
typedef _Float16 __half; typedef _Float16 half; typedef __bf16 __nv_bfloat16; typedef __bf16 nv_bfloat16;

#define SIMTBED_VECTORS(T, NAME, SIZE) \
    struct NAME##1 { T x; }; \
    struct __align__(2 * SIZE) NAME##2 { T x, y; }; \
    struct NAME##3 { T x, y, z; }; \
    struct __align__(SIZE < 4 ? 4 * SIZE : 16) NAME##4 { T x, y, z, w; }; \
    SIMTBED_INLINE NAME##1 make_##NAME##1(T x) { return {x}; } \
    SIMTBED_INLINE NAME##2 make_##NAME##2(T x, T y) { return {x, y}; } \
    SIMTBED_INLINE NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
    SIMTBED_INLINE NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
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
#define SIMTBED_BITS(T) __device__ constexpr operator T() const { return __builtin_bit_cast(T, x); }
struct __align__(4) half2 { __half x, y; };
struct __align__(4) bfloat162 { __nv_bfloat16 x, y; };
struct __half_raw { unsigned short x; SIMTBED_BITS(__half) };
struct __nv_bfloat16_raw { unsigned short x; SIMTBED_BITS(__nv_bfloat16) };
typedef half2 __half2; typedef bfloat162 __nv_bfloat162;
SIMTBED_INLINE half2 make_half2(__half x, __half y) { return {x, y}; }
SIMTBED_INLINE bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
SIMTBED_INLINE half2 __halves2half2(__half x, __half y) { return {x, y}; }
SIMTBED_INLINE half2 __half2half2(__half x) { return {x, x}; }
SIMTBED_INLINE half2 __float2half2_rn(float x) { return {(__half)x, (__half)x}; }
SIMTBED_INLINE half2 __floats2half2_rn(float x, float y) { return {(__half)x, (__half)y}; }
SIMTBED_INLINE float2 __half22float2(half2 v) { return {(float)v.x, (float)v.y}; }
SIMTBED_INLINE __half __low2half(half2 v) { return v.x; }
SIMTBED_INLINE __half __high2half(half2 v) { return v.y; }
SIMTBED_INLINE float __low2float(half2 v) { return v.x; }
SIMTBED_INLINE float __high2float(half2 v) { return v.y; }
SIMTBED_INLINE __half __float2half(float x) { return (__half)x; }
SIMTBED_INLINE __nv_bfloat16 __float2bfloat16(float x) { return (__nv_bfloat16)x; }
SIMTBED_INLINE __half __hadd(__half a, __half b) { return a + b; }
SIMTBED_INLINE __half __hsub(__half a, __half b) { return a - b; }
SIMTBED_INLINE __half __hmul(__half a, __half b) { return a * b; }
SIMTBED_INLINE half2 __hadd2(half2 a, half2 b) { return {a.x + b.x, a.y + b.y}; }
SIMTBED_INLINE half2 __hmul2(half2 a, half2 b) { return {a.x * b.x, a.y * b.y}; }

struct dim3 {
    unsigned int x, y, z;
    SIMTBED_INTRINSIC dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
extern __device__ const uint3 threadIdx, blockIdx;
extern __device__ const dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

// ------------------------------------------------------------------ block, warp, order of memory accesses
SIMTBED_INTRINSIC void __syncthreads();
SIMTBED_INTRINSIC int __syncthreads_count(int predicate);
SIMTBED_INTRINSIC int __syncthreads_and(int predicate);
SIMTBED_INTRINSIC int __syncthreads_or(int predicate);
SIMTBED_INTRINSIC void __simtbed_grid_sync();
SIMTBED_INTRINSIC void __syncwarp(unsigned int mask = 0xffffffffu);
SIMTBED_INTRINSIC void __threadfence();
SIMTBED_INTRINSIC void __threadfence_block();
SIMTBED_INTRINSIC void __threadfence_system();
SIMTBED_INTRINSIC unsigned int __ballot_sync(unsigned int mask, int predicate);
SIMTBED_INTRINSIC int __any_sync(unsigned int mask, int predicate);
SIMTBED_INTRINSIC int __all_sync(unsigned int mask, int predicate);
SIMTBED_INTRINSIC unsigned int __activemask();
SIMTBED_INTRINSIC int clock();
SIMTBED_INTRINSIC long long clock64();
SIMTBED_INTRINSIC void __nanosleep(unsigned int nanoseconds);
SIMTBED_INTRINSIC void __trap();
SIMTBED_INTRINSIC int printf(const char *format, ...);
SIMTBED_INTRINSIC void __simtbed_assert(bool holds, const char *text);
#define assert(condition) __simtbed_assert(static_cast<bool>(condition), #condition)
SIMTBED_INLINE unsigned int __ballot(int predicate) { return __ballot_sync(0xffffffffu, predicate); }
SIMTBED_INLINE int __any(int predicate) { return __any_sync(0xffffffffu, predicate); }
SIMTBED_INLINE int __all(int predicate) { return __all_sync(0xffffffffu, predicate); }

#define SIMTBED_SHUFFLES(T) \
    SIMTBED_INTRINSIC T __shfl_sync(unsigned int mask, T value, int lane, int width = 32); \
    SIMTBED_INTRINSIC T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32); \
    SIMTBED_INTRINSIC T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32); \
    SIMTBED_INTRINSIC T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32); \
    SIMTBED_INLINE T __shfl(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); } \
    SIMTBED_INLINE T __shfl_up(T value, unsigned int delta) { return __shfl_up_sync(0xffffffffu, value, delta); } \
    SIMTBED_INLINE T __shfl_down(T value, unsigned int delta) { return __shfl_down_sync(0xffffffffu, value, delta); } \
    SIMTBED_INLINE T __shfl_xor(T value, int bits) { return __shfl_xor_sync(0xffffffffu, value, bits); } \
    SIMTBED_INTRINSIC unsigned int __match_any_sync(unsigned int mask, T value); \
    SIMTBED_INTRINSIC unsigned int __match_all_sync(unsigned int mask, T value, int *equal);
SIMTBED_SHUFFLES(int) SIMTBED_SHUFFLES(unsigned int) SIMTBED_SHUFFLES(long) SIMTBED_SHUFFLES(unsigned long)
SIMTBED_SHUFFLES(long long) SIMTBED_SHUFFLES(unsigned long long) SIMTBED_SHUFFLES(float) SIMTBED_SHUFFLES(double)
SIMTBED_SHUFFLES(__half) SIMTBED_SHUFFLES(__nv_bfloat16)
#define SIMTBED_REDUCTIONS(T) \
    SIMTBED_INTRINSIC T __reduce_add_sync(unsigned int mask, T value); \
    SIMTBED_INTRINSIC T __reduce_min_sync(unsigned int mask, T value); \
    SIMTBED_INTRINSIC T __reduce_max_sync(unsigned int mask, T value);
SIMTBED_REDUCTIONS(int) SIMTBED_REDUCTIONS(unsigned int)
SIMTBED_INTRINSIC unsigned int __reduce_and_sync(unsigned int mask, unsigned int value);
SIMTBED_INTRINSIC unsigned int __reduce_or_sync(unsigned int mask, unsigned int value);
SIMTBED_INTRINSIC unsigned int __reduce_xor_sync(unsigned int mask, unsigned int value);

// ------------------------------------------------------------------ atomics
#define SIMTBED_ATOMIC(NAME, T) \
    SIMTBED_INTRINSIC T NAME(T *p, T value); \
    SIMTBED_INTRINSIC T NAME##_block(T *p, T value); \
    SIMTBED_INTRINSIC T NAME##_system(T *p, T value);
#define SIMTBED_INTEGER_ATOMIC(NAME) \
    SIMTBED_ATOMIC(NAME, int) SIMTBED_ATOMIC(NAME, unsigned int) SIMTBED_ATOMIC(NAME, long long) SIMTBED_ATOMIC(NAME, unsigned long long)
SIMTBED_INTEGER_ATOMIC(atomicAdd) SIMTBED_INTEGER_ATOMIC(atomicMin) SIMTBED_INTEGER_ATOMIC(atomicMax)
SIMTBED_INTEGER_ATOMIC(atomicAnd) SIMTBED_INTEGER_ATOMIC(atomicOr) SIMTBED_INTEGER_ATOMIC(atomicXor)
SIMTBED_INTEGER_ATOMIC(atomicExch)
SIMTBED_ATOMIC(atomicAdd, float) SIMTBED_ATOMIC(atomicAdd, double) SIMTBED_ATOMIC(atomicAdd, __half)
SIMTBED_ATOMIC(atomicAdd, __nv_bfloat16) SIMTBED_ATOMIC(atomicAdd, half2) SIMTBED_ATOMIC(atomicAdd, bfloat162)
SIMTBED_ATOMIC(atomicAdd, float2) SIMTBED_ATOMIC(atomicAdd, float4)
SIMTBED_ATOMIC(atomicExch, float) SIMTBED_ATOMIC(atomicSub, int) SIMTBED_ATOMIC(atomicSub, unsigned int)
SIMTBED_ATOMIC(atomicInc, unsigned int) SIMTBED_ATOMIC(atomicDec, unsigned int)
#define SIMTBED_CAS(T) \
    SIMTBED_INTRINSIC T atomicCAS(T *p, T expected, T value); \
    SIMTBED_INTRINSIC T atomicCAS_block(T *p, T expected, T value); \
    SIMTBED_INTRINSIC T atomicCAS_system(T *p, T expected, T value);
SIMTBED_CAS(int) SIMTBED_CAS(unsigned int) SIMTBED_CAS(unsigned long long) SIMTBED_CAS(unsigned short)
#define __NV_ATOMIC_RELAXED 0
#define __NV_ATOMIC_ACQUIRE 2
#define __NV_ATOMIC_RELEASE 3
#define __NV_ATOMIC_ACQ_REL 4
#define __NV_THREAD_SCOPE_BLOCK 1
#define __NV_THREAD_SCOPE_DEVICE 3
#define __NV_THREAD_SCOPE_SYSTEM 4
template <class T> SIMTBED_INTRINSIC T __nv_atomic_load_n(T *p, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC void __nv_atomic_store_n(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_exchange_n(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_fetch_add(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_fetch_sub(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_fetch_min(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_fetch_max(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_fetch_and(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_fetch_or(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC T __nv_atomic_fetch_xor(T *p, V value, int order, int scope);
template <class T, class V> SIMTBED_INTRINSIC bool __nv_atomic_compare_exchange_n(T *p, T *expected, V value, bool weak, int success, int failure, int scope);

// ------------------------------------------------------------------ loads, stores, copies
template <class T> SIMTBED_INLINE T __ldg(const T *p) { return *p; }
template <class T> SIMTBED_INLINE T __ldcg(const T *p) { return *p; }
template <class T> SIMTBED_INLINE T __ldca(const T *p) { return *p; }
template <class T> SIMTBED_INLINE T __ldcs(const T *p) { return *p; }
template <class T> SIMTBED_INLINE T __ldlu(const T *p) { return *p; }
template <class T> SIMTBED_INLINE T __ldcv(const volatile T *p) { return *p; }
template <class T> SIMTBED_INLINE void __stcg(T *p, T value) { *p = value; }
template <class T> SIMTBED_INLINE void __stcs(T *p, T value) { *p = value; }
template <class T> SIMTBED_INLINE void __stwb(T *p, T value) { *p = value; }
template <class T> SIMTBED_INLINE void __stwt(volatile T *p, T value) { *p = value; }
SIMTBED_INTRINSIC void __pipeline_memcpy_async(void *to, const void *from, size_t size);
SIMTBED_INTRINSIC void __pipeline_commit();
SIMTBED_INTRINSIC void __pipeline_wait_prior(size_t pending);

// ------------------------------------------------------------------ limits and constants
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
#define CUDART_INF_F __builtin_inff()
#define CUDART_INF __builtin_inf()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
