"""Equivalents of CUDA C++, Numba, Triton and Python words: the source of error messages and docs/porting.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Word:
    """A word and its equivalent. theirs: one or more spellings. ours: code; or a sentence with code between backticks."""

    theirs: tuple[str, ...]
    ours: str

    def names(self) -> Iterator[str]:
        """Yield the names under which a kernel would use it; none for non-Python text."""
        for text in self.theirs:
            match = re.match(r"(__\w+|[A-Za-z_]\w+(\.[A-Za-z_]\w*)*(?=$|[(\[]))", text)
            if match:
                yield match[0]


def _section(text: str) -> tuple[Word, ...]:
    """Parse rows of `theirs, theirs -> ours`, with two spaces around the arrow and between synonyms."""
    rows = (line.strip().split("  ->  ") for line in text.strip().splitlines())
    return tuple(Word(tuple(re.split(r"  +", theirs.strip())), ours.strip()) for theirs, ours in rows)


CUDA = _section("""
    threadIdx.x  ->  st.thread.x
    blockIdx.x  ->  st.block.x
    blockDim.x  ->  st.block_dim.x
    gridDim.x  ->  st.grid_dim.x
    warpSize  ->  st.WARP_SIZE
    threadIdx.x % warpSize  laneid  ->  st.lane
    threadIdx.x / warpSize  warpid  ->  st.warp
    __global__  ->  `@st.kernel` above the function
    __device__  __forceinline__  __host__  ->  `@st.device` above the function
    __shared__ float s[256]  ->  s = st.shared(st.f32, 256)
    extern __shared__ float s[]  ->  s = st.dynamic_shared(st.f32)
    __constant__ float c[2] = {1, 2}  ->  c = st.constant(st.f32, (1.0, 2.0))
    float r[4] (indexed by constants)  ->  r = st.registers(st.f32, 4)
    float r[4] (indexed at run time)  ->  r = st.local(st.f32, 4)
    float* x  const float* __restrict__ x  ->  x: st.Global[st.f32]
    __syncthreads()  ->  st.sync()
    __syncthreads_count(p)  ->  st.sync_count(p)
    __syncthreads_and(p)  ->  st.sync_and(p)
    __syncthreads_or(p)  ->  st.sync_or(p)
    cg.this_grid().sync()  this_grid().sync()  ->  st.grid_sync()
    cg.this_thread_block().sync()  this_thread_block().sync()  ->  st.sync()
    __syncwarp(mask)  ->  st.syncwarp(mask)
    __threadfence()  __threadfence_system()  ->  st.fence()
    __threadfence_block()  ->  st.fence_block()
    __shfl_sync(mask, v, lane)  __shfl(v, lane)  ->  st.shuffle(v, lane)
    __shfl_up_sync(mask, v, n)  __shfl_up(v, n)  ->  st.shuffle_up(v, n)
    __shfl_down_sync(mask, v, n)  __shfl_down(v, n)  ->  st.shuffle_down(v, n)
    __shfl_xor_sync(mask, v, m)  __shfl_xor(v, m)  ->  st.shuffle_xor(v, m)
    __ballot_sync(mask, p)  __ballot(p)  ->  st.ballot(p)
    __any_sync(mask, p)  __any(p)  ->  st.any(p)
    __all_sync(mask, p)  __all(p)  ->  st.all(p)
    __activemask()  ->  st.active_mask()
    __match_any_sync(mask, v)  ->  st.match_any(v)
    __match_all_sync(mask, v, &pred)  ->  mask, same = st.match_all(v)
    __reduce_add_sync(mask, v)  ->  st.reduce_add(v)
    warpScan(v)  warp_scan(v)  ->  `w = st.shuffle_up(v, d)` and `v += w if st.lane >= d else 0`, for d in (1, 2, 4, 8, 16)
    warpReduceSum(v)  warp_reduce(v)  warp_sum(v)  ->  `st.reduce_add(v)` of integers, or a loop over `v += st.shuffle_xor(v, d)`
    __reduce_min_sync(mask, v)  ->  st.reduce_min(v)
    __reduce_max_sync(mask, v)  ->  st.reduce_max(v)
    __reduce_and_sync(mask, v)  ->  st.reduce_and(v)
    __reduce_or_sync(mask, v)  ->  st.reduce_or(v)
    __reduce_xor_sync(mask, v)  ->  st.reduce_xor(v)
    %lanemask_lt  lanemask_lt()  ->  st.lanemask_lt()
    %lanemask_le  lanemask_le()  ->  st.lanemask_le()
    %lanemask_eq  lanemask_eq()  ->  st.lanemask_eq()
    %lanemask_ge  lanemask_ge()  ->  st.lanemask_ge()
    %lanemask_gt  lanemask_gt()  ->  st.lanemask_gt()
    __pipeline_memcpy_async(&s[i], &x[j], 4)  ->  st.async_copy(s, i, x, j)
    __pipeline_commit()  ->  st.async_commit()
    __pipeline_wait_prior(n)  ->  st.async_wait(n)
    __nanosleep(ns)  ->  st.nanosleep(ns)
    clock()  ->  st.clock()
    clock64()  ->  st.clock64()
    atomicAdd(&x[i], v)  ->  st.atomic_add(x, i, v)
    atomicSub(&x[i], v)  ->  st.atomic_sub(x, i, v)
    atomicInc(&x[i], limit)  ->  st.atomic_inc(x, i, limit)
    atomicDec(&x[i], limit)  ->  st.atomic_dec(x, i, limit)
    atomicMin(&x[i], v)  ->  st.atomic_min(x, i, v)
    atomicMax(&x[i], v)  ->  st.atomic_max(x, i, v)
    atomicAnd(&x[i], v)  ->  st.atomic_and(x, i, v)
    atomicOr(&x[i], v)  ->  st.atomic_or(x, i, v)
    atomicXor(&x[i], v)  ->  st.atomic_xor(x, i, v)
    atomicExch(&x[i], v)  ->  st.atomic_exchange(x, i, v)
    atomicCAS(&x[i], old, v)  ->  st.compare_swap(x, i, old, v)
    atomicAdd_block(&x[i], v)  ->  st.atomic_add(x, i, v, scope="block")
    atomicAdd_system(&x[i], v)  ->  st.atomic_add(x, i, v, scope="system")
    __ldg(&x[i])  __ldcg(&x[i])  __ldcs(&x[i])  ->  x[i]
    __popc(x)  __popcll(x)  ->  st.popcount(x)
    __clz(x)  __clzll(x)  ->  st.clz(x)
    __ffs(x)  __ffsll(x)  ->  st.ffs(x)
    __brev(x)  __brevll(x)  ->  st.brev(x)
    __mulhi(a, b)  __umulhi(a, b)  __mul64hi(a, b)  __umul64hi(a, b)  ->  st.mulhi(a, b)
    __byte_perm(a, b, s)  ->  st.byte_perm(a, b, s)
    __dp4a(a, b, c)  ->  st.dp4a(a, b, c)
    __funnelshift_l(low, high, n)  ->  st.funnel_shift_left(low, high, n)
    __funnelshift_r(low, high, n)  ->  st.funnel_shift_right(low, high, n)
    __funnelshift_lc(low, high, n)  ->  st.funnel_shift_left_clamped(low, high, n)
    __funnelshift_rc(low, high, n)  ->  st.funnel_shift_right_clamped(low, high, n)
    __float_as_int(x)  ->  st.bitcast(st.i32, x)
    __float_as_uint(x)  ->  st.bitcast(st.u32, x)
    __int_as_float(x)  __uint_as_float(x)  ->  st.bitcast(st.f32, x)
    __double_as_longlong(x)  ->  st.bitcast(st.i64, x)
    __longlong_as_double(x)  ->  st.bitcast(st.f64, x)
    __float2int_rz(x)  (int)x  ->  st.i32(x)
    __int2float_rn(x)  (float)x  ->  st.f32(x)
    __fmaf_rn(a, b, c)  fmaf(a, b, c)  ->  st.fma(a, b, c)
    __fadd_rn(a, b)  ->  a + b
    __fmul_rn(a, b)  ->  a * b
    __fdiv_rn(a, b)  ->  a / b
    __fdividef(a, b)  ->  st.fast_divide(a, b)
    __fsqrt_rn(x)  sqrtf(x)  ->  st.sqrt(x)
    __frsqrt_rn(x)  rsqrtf(x)  ->  st.rsqrt(x)
    expf(x)  ->  st.exp(x)
    logf(x)  ->  st.log(x)
    log2f(x)  ->  st.log2(x)
    sinf(x)  ->  st.sin(x)
    cosf(x)  ->  st.cos(x)
    tanf(x)  ->  st.tan(x)
    asinf(x)  ->  st.asin(x)
    acosf(x)  ->  st.acos(x)
    atanf(x)  ->  st.atan(x)
    sinhf(x)  ->  st.sinh(x)
    coshf(x)  ->  st.cosh(x)
    tanhf(x)  ->  st.tanh(x)
    asinhf(x)  ->  st.asinh(x)
    acoshf(x)  ->  st.acosh(x)
    atanhf(x)  ->  st.atanh(x)
    exp2f(x)  ->  st.exp2(x)
    exp10f(x)  ->  st.exp10(x)
    expm1f(x)  ->  st.expm1(x)
    log10f(x)  ->  st.log10(x)
    log1pf(x)  ->  st.log1p(x)
    cbrtf(x)  ->  st.cbrt(x)
    rcbrtf(x)  ->  st.rcbrt(x)
    erff(x)  ->  st.erf(x)
    erfcf(x)  ->  st.erfc(x)
    normcdff(x)  ->  st.normcdf(x)
    tgammaf(x)  ->  st.tgamma(x)
    lgammaf(x)  ->  st.lgamma(x)
    floorf(x)  ->  st.floor(x)
    ceilf(x)  ->  st.ceil(x)
    truncf(x)  ->  st.trunc(x)
    rintf(x)  ->  st.rint(x)
    roundf(x)  ->  st.round(x)
    powf(a, b)  ->  st.pow(a, b)
    atan2f(a, b)  ->  st.atan2(a, b)
    hypotf(a, b)  ->  st.hypot(a, b)
    fmodf(a, b)  ->  st.fmod(a, b)
    remainderf(a, b)  ->  st.remainder(a, b)
    copysignf(a, b)  ->  st.copysign(a, b)
    __expf(x)  ->  st.fast_exp(x)
    __exp10f(x)  ->  st.fast_exp10(x)
    __logf(x)  ->  st.fast_log(x)
    __log2f(x)  ->  st.fast_log2(x)
    __log10f(x)  ->  st.fast_log10(x)
    __sinf(x)  ->  st.fast_sin(x)
    __cosf(x)  ->  st.fast_cos(x)
    __tanf(x)  ->  st.fast_tan(x)
    __powf(x, y)  ->  st.fast_pow(x, y)
    sincosf(x, &s, &c)  __sincosf(x, &s, &c)  ->  s, c = st.sincos(x)
    frexpf(x, &n)  ->  m, n = st.frexp(x)
    ldexpf(x, n)  ->  st.ldexp(x, n)
    isnan(x)  ->  st.isnan(x)
    isinf(x)  ->  st.isinf(x)
    isfinite(x)  ->  st.isfinite(x)
    signbit(x)  ->  st.signbit(x)
    cuda::atomic_ref<int>(x[i]).load(memory_order_acquire)  ->  st.load_acquire(x, i)
    cuda::atomic_ref<int>(x[i]).store(v, memory_order_release)  ->  st.store_release(x, i, v)
    volatile float* x  ->  st.volatile_load(x, i)
    __ldcv(&x[i])  ->  st.volatile_load(x, i)
    __stwt(&x[i], v)  ->  st.volatile_store(x, i, v)
    fminf(a, b)  fmin(a, b)  ->  min(a, b)
    fmaxf(a, b)  fmax(a, b)  ->  max(a, b)
    fabsf(x)  fabs(x)  ->  abs(x)
    clamp(x, low, high)  ->  min(max(x, low), high)
    __saturatef(x)  ->  min(max(x, 0.0), 1.0)
    __vimax3_s32(a, b, c)  ->  st.vimax3(a, b, c)
    __viaddmax_s32(a, b, c)  ->  st.viaddmax(a, b, c)
    make_float2(x, y)  ->  st.float2(x, y)
    make_float4(x, y, z, w)  ->  st.float4(x, y, z, w)
    make_double2(x, y)  ->  st.double2(x, y)
    make_cuFloatComplex(x, y)  make_cuComplex(x, y)  ->  st.c64(x, y)
    make_cuDoubleComplex(x, y)  ->  st.c128(x, y)
    cuConjf(z)  cuConj(z)  ->  st.conj(z)
    cuCabsf(z)  cuCabs(z)  ->  abs(z)
    make_int2(x, y)  ->  st.int2(x, y)
    make_int4(x, y, z, w)  ->  st.int4(x, y, z, w)
    make_uint2(x, y)  ->  st.uint2(x, y)
    make_uint4(x, y, z, w)  ->  st.uint4(x, y, z, w)
    uint32_t  unsigned  ->  st.u32
    uint64_t  size_t  ->  st.u64
    uint8_t  unsigned char  ->  `st.u8`, which wraps at 8 bits where C promotes to `int`: cast first, `st.i32(x)`
    int64_t  longlong  ->  st.i64
    double  ->  st.f64
    __half  half  ->  st.f16
    __nv_bfloat16  nv_bfloat16  ->  st.bf16
    __half2  ->  st.half2
    __nv_bfloat162  nv_bfloat162  ->  st.bfloat162
    __float2half(x)  __float2half_rn(x)  ->  st.f16(x)
    __half2float(x)  __bfloat162float(x)  ->  st.f32(x)
    __float2bfloat16(x)  __float2bfloat16_rn(x)  ->  st.bf16(x)
    __hadd(a, b)  ->  a + b
    __hsub(a, b)  ->  a - b
    __hmul(a, b)  ->  a * b
    __hdiv(a, b)  ->  a / b
    __hfma(a, b, c)  ->  st.fma(a, b, c)
    __hmin(a, b)  ->  min(a, b)
    __hmax(a, b)  ->  max(a, b)
    __halves2half2(a, b)  make_half2(a, b)  ->  st.half2(a, b)
    __hfma2(a, b, c)  ->  `st.half2(st.fma(a.x, b.x, c.x), st.fma(a.y, b.y, c.y))`, by component; likewise `__hadd2`, `__hmul2`
    printf("%d", x)  ->  print(x)
    #pragma unroll  ->  for k in st.unroll(range(K)): ...
    a / b (of integers)  ->  `st.div(a, b)`, which truncates as C does; `a // b` floors
    a % b (of integers)  ->  `st.rem(a, b)`, which has the sign of `a` as in C; `a % b` has the sign of `b`
    a ? b : c  ->  b if a else c
    a && b  ->  a and b
    !a  ->  not a
    i++  ++i  ->  i += 1
    INFINITY  ->  math.inf
    NAN  ->  math.nan
    FLT_MAX  ->  a number, such as `3.4028235e38`
    INT_MAX  ->  a number, such as `2147483647`
    NULL  nullptr  ->  a flag as an `st.Const` parameter: arrays are always there
    cudaMalloc(&x, bytes)  ->  `st.empty(n, st.f32)` among the arguments of the launch
    k<<<grid, block>>>(x, n)  ->  st.launch(k, grid=grid, block=block, args=dict(x=x, n=n))
    dim3(x, y)  ->  `grid=(x, y)` and `block=(x, y)` of `st.launch`
    wmma.load_matrix_sync  mma  wgmma  ->  a loop over products: tensor cores are out of scope
    curand_init(seed, i, 0, &state)  curand(&state)  ->  a generator that counts, such as Philox, written in the kernel
    malloc(bytes)  free(p)  ->  arrays of the launch, `st.shared` or `st.local`: a kernel allocates nothing
""")

NUMBA = _section("""
    @cuda.jit  ->  `@st.kernel`
    @cuda.jit(device=True)  ->  `@st.device`
    k[grid, block](x, n)  ->  st.launch(k, grid=grid, block=block, args=dict(x=x, n=n))
    cuda.threadIdx.x  ->  st.thread.x
    cuda.blockIdx.x  ->  st.block.x
    cuda.blockDim.x  ->  st.block_dim.x
    cuda.gridDim.x  ->  st.grid_dim.x
    cuda.laneid  ->  st.lane
    cuda.warpsize  ->  st.WARP_SIZE
    cuda.grid(1)  ->  st.block.x * st.block_dim.x + st.thread.x
    cuda.gridsize(1)  ->  st.grid_dim.x * st.block_dim.x
    cuda.shared.array(256, float32)  ->  s = st.shared(st.f32, 256)
    cuda.shared.array(0, float32)  ->  s = st.dynamic_shared(st.f32)
    cuda.local.array(4, float32)  ->  r = st.local(st.f32, 4)
    cuda.const.array_like(c)  ->  c = st.constant(st.f32, (1.0, 2.0))
    cuda.syncthreads()  ->  st.sync()
    cuda.syncthreads_count(p)  ->  st.sync_count(p)
    cuda.syncthreads_and(p)  ->  st.sync_and(p)
    cuda.syncthreads_or(p)  ->  st.sync_or(p)
    cuda.cg.this_grid().sync()  ->  st.grid_sync()
    cuda.syncwarp(mask)  ->  st.syncwarp(mask)
    cuda.threadfence()  cuda.threadfence_system()  ->  st.fence()
    cuda.threadfence_block()  ->  st.fence_block()
    cuda.atomic.add(x, i, v)  ->  st.atomic_add(x, i, v)
    cuda.atomic.sub(x, i, v)  ->  st.atomic_sub(x, i, v)
    cuda.atomic.inc(x, i, limit)  ->  st.atomic_inc(x, i, limit)
    cuda.atomic.dec(x, i, limit)  ->  st.atomic_dec(x, i, limit)
    cuda.atomic.min(x, i, v)  cuda.atomic.nanmin(x, i, v)  ->  st.atomic_min(x, i, v)
    cuda.atomic.max(x, i, v)  cuda.atomic.nanmax(x, i, v)  ->  st.atomic_max(x, i, v)
    cuda.atomic.and_(x, i, v)  ->  st.atomic_and(x, i, v)
    cuda.atomic.or_(x, i, v)  ->  st.atomic_or(x, i, v)
    cuda.atomic.xor(x, i, v)  ->  st.atomic_xor(x, i, v)
    cuda.atomic.exch(x, i, v)  ->  st.atomic_exchange(x, i, v)
    cuda.atomic.cas(x, i, old, v)  cuda.atomic.compare_and_swap(x, old, v)  ->  st.compare_swap(x, i, old, v)
    cuda.shfl_sync(mask, v, lane)  ->  st.shuffle(v, lane)
    cuda.shfl_up_sync(mask, v, n)  ->  st.shuffle_up(v, n)
    cuda.shfl_down_sync(mask, v, n)  ->  st.shuffle_down(v, n)
    cuda.shfl_xor_sync(mask, v, m)  ->  st.shuffle_xor(v, m)
    cuda.ballot_sync(mask, p)  ->  st.ballot(p)
    cuda.any_sync(mask, p)  ->  st.any(p)
    cuda.all_sync(mask, p)  ->  st.all(p)
    cuda.activemask()  ->  st.active_mask()
    cuda.match_any_sync(mask, v)  ->  st.match_any(v)
    cuda.match_all_sync(mask, v)  ->  mask, same = st.match_all(v)
    cuda.nanosleep(ns)  ->  st.nanosleep(ns)
    cuda.brev(x)  ->  st.brev(x)
    cuda.ffs(x)  ->  st.ffs(x)
    cuda.popc(x)  ->  st.popcount(x)
    cuda.clz(x)  ->  st.clz(x)
    cuda.fma(a, b, c)  ->  st.fma(a, b, c)
    cuda.selp(c, a, b)  ->  a if c else b
    cuda.to_device(x)  cuda.device_array(n)  ->  `st.DeviceArray(x)`, or the NumPy array itself
    cuda.synchronize()  ->  nothing: `st.launch` returns when the kernel has run; `stream.synchronize()` on a stream
    cuda.stream()  cuda.external_stream(p)  ->  `st.Stream()`, or `st.Stream(p)`
    cuda.event()  ->  `st.Event()`: event.record(stream), stream.wait(event), start.elapsed(end)
    cuda.pinned_array(n)  ->  `st.pinned(st.zeros(n, st.f32))`
    float16  ->  st.f16
    bfloat16  ->  st.bf16
    float32  ->  st.f32
    float64  ->  st.f64
    int32  ->  st.i32
    int64  ->  st.i64
    uint8  ->  st.u8
    uint32  ->  st.u32
    uint64  ->  st.u64
""")

TRITON = _section("""
    tl.program_id(0)  ->  st.block.x
    tl.num_programs(0)  ->  st.grid_dim.x
    tl.arange(0, BLOCK)  ->  `st.thread.x`: a kernel is written for one thread
    tl.load(x + i, mask=i < n)  ->  x[i] if i < n else 0.0
    tl.store(x + i, v, mask=i < n)  ->  if i < n: x[i] = v
    tl.sum(v)  tl.max(v)  ->  a reduction by `st.shuffle_xor`, or in `st.shared` memory
    tl.where(c, a, b)  ->  a if c else b
    tl.dot(a, b)  ->  a loop over products: tensor cores are out of scope
    tl.constexpr  ->  st.Const
    tl.atomic_add(x + i, v)  ->  st.atomic_add(x, i, v)
    tl.static_range(K)  ->  st.unroll(range(K))
    tl.exp(x)  ->  st.exp(x)
""")

PYTHON = _section("""
    np.exp(x)  ->  st.exp(x)
    np.log(x)  ->  st.log(x)
    np.log2(x)  ->  st.log2(x)
    np.sqrt(x)  ->  st.sqrt(x)
    np.sin(x)  ->  st.sin(x)
    np.cos(x)  ->  st.cos(x)
    np.tan(x)  ->  st.tan(x)
    np.arcsin(x)  ->  st.asin(x)
    np.arccos(x)  ->  st.acos(x)
    np.arctan(x)  ->  st.atan(x)
    np.sinh(x)  ->  st.sinh(x)
    np.cosh(x)  ->  st.cosh(x)
    np.tanh(x)  ->  st.tanh(x)
    np.arcsinh(x)  ->  st.asinh(x)
    np.arccosh(x)  ->  st.acosh(x)
    np.arctanh(x)  ->  st.atanh(x)
    np.exp2(x)  ->  st.exp2(x)
    np.expm1(x)  ->  st.expm1(x)
    np.log10(x)  ->  st.log10(x)
    np.log1p(x)  ->  st.log1p(x)
    np.cbrt(x)  ->  st.cbrt(x)
    np.floor(x)  ->  st.floor(x)
    np.ceil(x)  ->  st.ceil(x)
    np.trunc(x)  ->  st.trunc(x)
    np.rint(x)  ->  st.rint(x)
    np.round(x)  round(x)  ->  `st.rint(x)`, which rounds halves to even as Python does; `st.round(x)` rounds them away from zero
    np.power(a, b)  ->  st.pow(a, b)
    np.arctan2(a, b)  ->  st.atan2(a, b)
    np.hypot(a, b)  ->  st.hypot(a, b)
    np.fmod(a, b)  ->  st.fmod(a, b)
    np.copysign(a, b)  ->  st.copysign(a, b)
    np.isnan(x)  ->  st.isnan(x)
    np.isinf(x)  ->  st.isinf(x)
    np.isfinite(x)  ->  st.isfinite(x)
    np.abs(x)  ->  abs(x)
    np.minimum(a, b)  np.fmin(a, b)  ->  min(a, b)
    np.maximum(a, b)  np.fmax(a, b)  ->  max(a, b)
    np.where(c, a, b)  ->  a if c else b
    np.zeros(n)  np.empty(n)  np.ones(n)  ->  `st.local(st.f32, n)` or `st.registers(st.f32, n)`, and assign values
    complex(x, y)  ->  st.c64(x, y), or st.c128(x, y)
    np.conj(z)  ->  st.conj(z)
    np.sum(x)  np.dot(a, b)  sum(x)  ->  a loop: `for i in range(len(x)): total += x[i]`
    all(f)  any(f)  ->  a loop, or `st.all(p)` and `st.any(p)` over the warp
    divmod(a, b)  ->  `a // b` and `a % b`
    sorted(x)  ->  a sort written in the kernel, such as a bitonic one
    str(x)  ->  `print(x)`, or `print(f"{x}")`
    list(x)  dict(x)  set(x)  ->  `st.local(st.f32, n)` or `st.shared(st.f32, n)`
    isinstance(x, T)  type(x)  ->  nothing: types are known when the kernel is read
    input()  open(file)  ->  arguments of the launch: a kernel reads no files
    time.time()  time.perf_counter()  ->  `result.milliseconds` of a launch on `engine="cuda"`
    random.random()  np.random.rand()  ->  a generator that counts, such as Philox, written in the kernel
""")

SECTIONS = {"CUDA C++": CUDA, "Numba": NUMBA, "Triton": TRITON, "Python": PYTHON}


@cache
def by_name() -> dict[str, tuple[str, Word]]:
    """Return the origin and the first row of each name."""
    rows: dict[str, tuple[str, Word]] = {}
    for origin, words in SECTIONS.items():
        for word in words:
            for key in word.names():
                rows.setdefault(key, (origin, word))
    return rows
