"""CUDA C++ kernels as their users write them, each with a launch and its answer in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simtbed as st

Arrays = dict[str, Any]


@dataclass(frozen=True)
class Habit:
    """text: with one kernel, or `kernel` of several. args: in the order of the parameters. expected: the arrays that the kernel writes."""

    text: str
    grid: Any
    block: Any
    args: Callable[[np.random.Generator], Arrays]
    expected: Callable[[Arrays], Arrays]
    kernel: str = ""
    shared: int = 0
    rtol: float = 0.0
    options: dict[str, Any] = field(default_factory=dict)
    instances: tuple[str, ...] = ()
    cooperative: bool = False


def f32(*shape: int) -> Callable[[np.random.Generator], Any]:
    return lambda rng: rng.random(shape, np.float32)


HABITS: dict[str, Habit] = {}


def add(name: str, text: str, **fields: Any) -> None:
    HABITS[name] = Habit(text, **fields)


add(
    "doublify of a matrix of 4 x 4",
    """
    __global__ void doublify(float *a)
    {
      int idx = threadIdx.x + threadIdx.y*4;
      a[idx] *= 2;
    }
    """,
    grid=1, block=(4, 4), args=lambda rng: {"a": rng.random((4, 4), np.float32)}, expected=lambda g: {"a": g["a"] * 2},
)  # fmt: skip

add(
    "grid-stride saxpy with restrict pointers",
    """
    extern "C" __global__ void saxpy(const float* __restrict__ x, float* __restrict__ y, float a, size_t n)
    {
        for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
            y[i] = a * x[i] + y[i];
    }
    """,
    grid=3, block=64, args=lambda rng: {"x": f32(1000)(rng), "y": f32(1000)(rng), "a": 2.5, "n": 1000},
    expected=lambda g: {"y": np.float32(2.5) * g["x"] + g["y"]},
)  # fmt: skip

add(
    "tiled product with bounds",
    """
    #define TILE 8
    __global__ void matmul(const float *A, const float *B, float *C, int M, int N, int K)
    {
        __shared__ float As[TILE][TILE];
        __shared__ float Bs[TILE][TILE + 1];
        const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
        float acc = 0.0f;
        for (int t = 0; t < (K + TILE - 1) / TILE; ++t) {
            int k = t * TILE + threadIdx.x, l = t * TILE + threadIdx.y;
            As[threadIdx.y][threadIdx.x] = row < M && k < K ? A[row * K + k] : 0.0f;
            Bs[threadIdx.y][threadIdx.x] = (l < K && col < N) ? B[l * N + col] : 0.f;
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < TILE; ++i) acc += As[threadIdx.y][i] * Bs[i][threadIdx.x];
            __syncthreads();
        }
        if (row < M && col < N) C[row * N + col] = acc;
    }
    """,
    grid=(3, 2), block=(8, 8),
    args=lambda rng: {"A": f32(13, 11)(rng), "B": f32(11, 19)(rng), "C": st.empty((13, 19), "f32"), "M": 13, "N": 19, "K": 11},
    expected=lambda g: {"C": g["A"].astype(np.float64) @ g["B"]}, rtol=1e-5,
)  # fmt: skip

add(
    "reduction in dynamic shared memory with a volatile tail",
    """
    template <unsigned int BLOCK> __device__ void tail(volatile int *s, unsigned int t) {
        if (BLOCK >= 64) { s[t] += s[t + 32]; __syncwarp(); }
        s[t] += s[t + 16]; __syncwarp();
        s[t] += s[t + 8]; __syncwarp();
        s[t] += s[t + 4]; __syncwarp();
        s[t] += s[t + 2]; __syncwarp();
        s[t] += s[t + 1];
    }
    template <unsigned int BLOCK> __global__ void reduce(const int *in, int *out, unsigned int n) {
        extern __shared__ int sdata[];
        unsigned int tid = threadIdx.x, i = blockIdx.x * (BLOCK * 2) + tid, step = BLOCK * 2 * gridDim.x;
        int sum = 0;
        while (i < n) { sum += in[i]; if (i + BLOCK < n) sum += in[i + BLOCK]; i += step; }
        sdata[tid] = sum;
        __syncthreads();
        if (BLOCK >= 128) { if (tid < 64) sdata[tid] += sdata[tid + 64]; __syncthreads(); }
        if (tid < 32) {
            int value = sdata[tid] + sdata[tid + 32];
            for (int offset = 16; offset > 0; offset >>= 1) value += __shfl_down_sync(0xffffffff, value, offset);
            if (tid == 0) out[blockIdx.x] = value;
        }
    }
    """,
    grid=3, block=128, shared=512, kernel="reduce<128>", instances=("reduce<128>",),
    args=lambda rng: {"in": rng.integers(0, 100, 1000).astype(np.int32), "out": st.empty(3, "i32"), "n": 1000},
    expected=lambda g: {"out": np.array([sum(int(g["in"][j]) for j in range(1000) if j % 768 // 256 == b) for b in range(3)])},
)  # fmt: skip

add(
    "histogram with shared and global atomics",
    """
    __global__ void histogram(const unsigned char *data, unsigned int *bins, int n)
    {
        __shared__ unsigned int local[256];
        for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
        __syncthreads();
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[data[i]], 1);
        __syncthreads();
        for (int i = threadIdx.x; i < 256; i += blockDim.x) if (local[i]) atomicAdd(bins + i, local[i]);
    }
    """,
    grid=2, block=64, args=lambda rng: {"data": rng.integers(0, 256, 1000).astype(np.uint8), "bins": np.zeros(256, np.uint32), "n": 1000},
    expected=lambda g: {"bins": np.bincount(g["data"], minlength=256)},
)  # fmt: skip

add(
    "stencil with constant coefficients and a halo",
    """
    #define RADIUS 3
    __constant__ float coefficient[RADIUS + 1] = {0.5f, 0.2f, -0.1f, 1.0f / 64};
    __global__ void stencil(const float *in, float *out, int n)
    {
        __shared__ float line[64 + 2 * RADIUS];
        int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + RADIUS;
        line[l] = g < n ? in[g] : 0;
        if (threadIdx.x < RADIUS) {
            line[l - RADIUS] = g >= RADIUS ? in[g - RADIUS] : 0;
            line[l + blockDim.x] = g + blockDim.x < n ? in[g + blockDim.x] : 0;
        }
        __syncthreads();
        if (g >= n) return;
        float sum = coefficient[0] * line[l];
        for (int r = 1; r <= RADIUS; r++) sum += coefficient[r] * (line[l - r] + line[l + r]);
        out[g] = sum;
    }
    """,
    grid=3, block=64, args=lambda rng: {"in": f32(150)(rng), "out": st.empty(150, "f32"), "n": 150},
    expected=lambda g: {"out": np.convolve(g["in"], [1 / 64, -0.1, 0.2, 0.5, 0.2, -0.1, 1 / 64], "same")}, rtol=1e-5,
)  # fmt: skip

add(
    "structs, references, methods and operators",
    """
    struct Vec { float x, y, z;
        __device__ Vec operator+(const Vec &o) const { return Vec{x + o.x, y + o.y, z + o.z}; }
        __device__ Vec &operator*=(float s) { x *= s; y *= s; z *= s; return *this; }
        __device__ float dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
    };
    struct Body { Vec position, velocity; };
    __device__ void advance(Body &body, const float dt) {
        Vec step = body.velocity;
        step *= dt;
        body.position = body.position + step;
    }
    __global__ void move(Body *bodies, float *energy, float dt, int n)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        advance(bodies[i], dt);
        const Body &b = bodies[i];
        energy[i] = 0.5f * b.velocity.dot(b.velocity);
    }
    """,
    grid=1, block=64, args=lambda rng: {"bodies": f32(50, 6)(rng), "energy": st.empty(50, "f32"), "dt": 0.5, "n": 50},
    expected=lambda g: {
        "bodies": np.hstack([g["bodies"][:, :3] + g["bodies"][:, 3:] * np.float32(0.5), g["bodies"][:, 3:]]),
        "energy": 0.5 * (g["bodies"][:, 3:] ** 2).sum(1),
    }, rtol=1e-6,
)  # fmt: skip

add(
    "a struct of several sizes, and one by value",
    """
    struct Item { double weight; int count; unsigned char tag; };
    struct Options { int n; float scale; };
    __global__ void weigh(const Item *items, double *out, Options options)
    {
        int i = threadIdx.x;
        if (i < options.n && items[i].tag == 1) out[i] = items[i].weight * items[i].count * options.scale;
        else if (i < options.n) out[i] = -1;
    }
    """,
    grid=1, block=32,
    args=lambda rng: {
        "items": np.array([(i / 4, i, i % 2) for i in range(20)], np.dtype([("weight", "f8"), ("count", "i4"), ("tag", "u1")], align=True)),
        "out": st.empty(20, "f64"), "options": (20, 2.0),
    },
    expected=lambda g: {"out": np.where(g["items"]["tag"] == 1, g["items"]["weight"] * g["items"]["count"] * 2.0, -1)},
)  # fmt: skip

add(
    "switch with fall-through, do-while, comma, conditional increments",
    """
    __global__ void steps(const int *x, int *out)
    {
        int v = x[threadIdx.x], r = 0, k = 0;
        switch (v & 7) {
            case 0: r = 1; break;
            case 1: r += 10;
            case 2: case 3: r += 100; break;
            case 4: { int w = v * 2; r = w; } break;
            case 5: if (v > 20) break; r = 7; break;
            default: r = -1;
        }
        do { r += k++; } while (k < (v & 3));
        int n = 0;
        for (int i = 0, j = 10; i < j; ++i, j--) n += i * j;
        while (n-- > 100) { if (n % 7 == 0) continue; r ^= n; if (r > 4000) break; }
        out[threadIdx.x] = r > 0 && ++k > 2 ? r + k : r - k;
    }
    """,
    grid=1, block=64, args=lambda rng: {"x": np.arange(64, dtype=np.int32), "out": st.empty(64, "i32")},
    expected=lambda g: {"out": [_steps(int(v)) for v in g["x"]]},
)  # fmt: skip


def _steps(v: int) -> int:
    r = {0: 1, 1: 110, 2: 100, 3: 100, 4: v * 2, 5: 0 if v > 20 else 7}.get(v & 7, -1)
    k = 0
    while True:
        r += k
        k += 1
        if not k < (v & 3):
            break
    n = sum(i * (10 - i) for i in range(5))
    while True:
        above = n > 100
        n -= 1
        if not above:
            break
        if n % 7 == 0:
            continue
        r ^= n
        if r > 4000:
            break
    if r > 0:
        k += 1
        return r + k if k > 2 else r - k
    return r - k


add(
    "ping-pong of pointers and pointer increments",
    """
    __global__ void smooth(float *a, float *b, int n, int rounds)
    {
        float *src = a, *dst = b;
        int i = threadIdx.x;
        for (int r = 0; r < rounds; r++) {
            const float *p = src + i;
            float sum = *p;
            if (i > 0) sum += *(p - 1);
            if (i + 1 < n) { ++p; sum += *p; }
            dst[i] = sum;
            __syncthreads();
            float *t = src; src = dst; dst = t;
        }
    }
    """,
    grid=1, block=64, args=lambda rng: {"a": np.arange(64, dtype=np.float32), "b": np.zeros(64, np.float32), "n": 64, "rounds": 3},
    expected=lambda g: _smooth(g["a"]),
)  # fmt: skip


def _smooth(a: Any) -> Arrays:
    rows = [a]
    for _ in range(3):
        rows.append(np.convolve(rows[-1], [1, 1, 1], "same").astype(np.float32))
    return {"a": rows[2], "b": rows[3]}


add(
    "float4 loads, sorted registers, bit casts",
    """
    __device__ inline void order(float &a, float &b) { if (a > b) { float t = a; a = b; b = t; } }
    __global__ void sort4(const float4 *in, float *out, unsigned int *bits)
    {
        int i = threadIdx.x;
        float4 v = in[i];
        float r[4] = {v.x, v.y, v.z, v.w};
        for (int k = 0; k < 3; ++k)
            for (int j = 0; j < 3 - k; ++j) order(r[j], r[j + 1]);
        for (int j = 0; j < 4; ++j) out[4 * i + j] = r[j];
        float sum = r[0] + r[3];
        bits[i] = *(unsigned int *)&sum ^ __float_as_uint(r[1]);
    }
    """,
    grid=1, block=32, args=lambda rng: {"in": f32(32, 4)(rng), "out": st.empty(128, "f32"), "bits": st.empty(32, "u32")},
    expected=lambda g: {
        "out": np.sort(g["in"], 1).ravel(),
        "bits": (lambda s: (s[:, 0] + s[:, 3]).view(np.uint32) ^ s[:, 1].copy().view(np.uint32))(np.sort(g["in"], 1)),
    },
)  # fmt: skip

add(
    "lambdas, templates of functors, std::min, auto",
    """
    #include <algorithm>
    struct Square { __device__ float operator()(float x) const { return x * x; } };
    template <class F> __device__ float apply(F f, float x, int times) { for (int i = 0; i < times; ++i) x = f(x); return x; }
    template <typename T, class Op> __global__ void map(const T *x, T *y, int n, Op op)
    {
        auto i = blockIdx.x * blockDim.x + threadIdx.x;
        auto clamp = [&](T v) { return std::min(v, T(n)); };
        if (i < n) y[i] = clamp(apply(op, x[i], 2)) + apply([=](float v) { return v + 1; }, 0.f, 3);
    }
    """,
    grid=2, block=32, kernel="map<float, Square>", instances=("map<float, Square>",),
    args=lambda rng: {"x": np.arange(50, dtype=np.float32), "y": st.empty(50, "f32"), "n": 50, "op": ()},
    expected=lambda g: {"y": np.minimum(g["x"] ** 4, 50) + 3},
)  # fmt: skip

add(
    "warp votes, matches, scans and integer arithmetic",
    """
    __global__ void warp(const int *x, unsigned int *ballots, int *scan, long long *wide)
    {
        const unsigned int full = 0xffffffffu;
        int lane = threadIdx.x & (warpSize - 1), v = x[threadIdx.x];
        unsigned int odd = __ballot_sync(full, v & 1);
        int sum = v;
        #pragma unroll
        for (int d = 1; d < 32; d <<= 1) { int up = __shfl_up_sync(full, sum, d); if (lane >= d) sum += up; }
        scan[threadIdx.x] = sum;
        if (lane == 0) ballots[threadIdx.x / 32] = odd;
        short s = (short)(v * 1000);
        wide[threadIdx.x] = (long long)v * v * v - (s >> 2) + (v % 5) + __popc(odd >> lane) + (unsigned char)(v - 3);
    }
    """,
    grid=1, block=64, args=lambda rng: {
        "x": rng.integers(-50, 50, 64).astype(np.int32), "ballots": st.empty(2, "u32"), "scan": st.empty(64, "i32"),
        "wide": st.empty(64, "i64"),
    },
    expected=lambda g: {
        "ballots": [sum(int(v & 1) << k for k, v in enumerate(row)) for row in g["x"].reshape(2, 32)],
        "scan": g["x"].reshape(2, 32).cumsum(1).ravel(),
        "wide": [_wide(g["x"], t) for t in range(64)],
    },
)  # fmt: skip


def _wide(x: Any, t: int) -> int:
    v, row = int(x[t]), x[t // 32 * 32 : t // 32 * 32 + 32]
    odd = sum(int(one & 1) << k for k, one in enumerate(row))
    remainder = abs(v) % 5 * (-1 if v < 0 else 1)
    return int(
        v**3 - (int(np.int32(v * 1000).astype(np.int16)) >> 2) + remainder + (odd >> t % 32).bit_count() + (v - 3) % 256
    )


add(
    "cooperative groups of tiles",
    """
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __global__ void sums(const float *x, float *out)
    {
        cg::thread_block block = cg::this_thread_block();
        cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
        __shared__ float s[64];
        s[block.thread_rank()] = x[blockIdx.x * blockDim.x + threadIdx.x];
        block.sync();
        float v = s[63 - block.thread_rank()];
        for (int i = tile.size() / 2; i > 0; i /= 2) v += tile.shfl_down(v, i);
        if (tile.thread_rank() == 0) out[blockIdx.x * 4 + tile.meta_group_rank()] = v;
    }
    """,
    grid=2, block=64, args=lambda rng: {"x": f32(128)(rng), "out": st.empty(8, "f32")},
    expected=lambda g: {"out": g["x"].reshape(2, 64)[:, ::-1].reshape(8, 16).sum(1)}, rtol=1e-6,
)  # fmt: skip

add(
    "a sum of all blocks behind a barrier of the grid",
    """
    #include <cooperative_groups.h>
    __device__ int total;
    __global__ void fraction(const int *x, float *out)
    {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        atomicAdd(&total, x[i]);
        cooperative_groups::this_grid().sync();
        out[i] = (float)x[i] / total;
    }
    """,
    grid=2, block=32, cooperative=True, args=lambda rng: {"x": np.arange(1, 65, dtype=np.int32), "out": st.empty(64, "f32")},
    expected=lambda g: {"out": g["x"].astype(np.float32) / np.float32(g["x"].sum()), "total": [g["x"].sum()]},
)  # fmt: skip

add(
    "an early return of a device function, a null pointer, an array of one parameter twice",
    """
    __device__ int find(const int *keys, int n, int key) {
        for (int i = 0; i < n; ++i) if (keys[i] == key) return i;
        return -1;
    }
    __global__ void lookup(const int *keys, const int *queries, int *out, const float *weights, int n)
    {
        int at = find(keys, n, queries[threadIdx.x]);
        if (weights != nullptr && at >= 0) at += (int)weights[at];
        out[threadIdx.x] = at;
    }
    """,
    grid=1, block=32, args=lambda rng: (
        lambda k: {"keys": k, "queries": k, "out": st.empty(32, "i32"), "weights": None, "n": 16}
    )(rng.permutation(32).astype(np.int32)),
    expected=lambda g: {"out": np.where(np.arange(32) < 16, np.arange(32), -1)},
)  # fmt: skip

add(
    "complex numbers of CuPy",
    """
    #include <cupy/complex.cuh>
    extern "C" __global__ void rotate(const complex<float> *z, complex<float> *out, float c, float s)
    {
        complex<float> w(c, s);
        int i = threadIdx.x;
        out[i] = z[i] * w + complex<float>(1.0f);
    }
    """,
    grid=1, block=32, args=lambda rng: {
        "z": (f32(32)(rng) + 1j * f32(32)(rng)).astype(np.complex64), "out": np.zeros(32, np.complex64), "c": 0.6, "s": 0.8,
    },
    expected=lambda g: {"out": g["z"] * np.complex64(0.6 + 0.8j) + 1}, rtol=1e-6,
)  # fmt: skip

add(
    "a random generator in registers, macros, shifts and masks",
    """
    #define ROTL(x, r) (((x) << (r)) | ((x) >> (32 - (r))))
    #define ROUND(v0, v1, v2, v3) do { v0 += v1; v1 = ROTL(v1, 5) ^ v0; v2 += v3; v3 = ROTL(v3, 8) ^ v2; } while (0)
    __global__ void mix(const unsigned int *seed, unsigned long long *out)
    {
        unsigned int s[4] = {seed[threadIdx.x], 0x736f6d65u, 0x646f7261u, 'x'};
        for (int i = 0; i < 4; i++) ROUND(s[0], s[1], s[2], s[3]);
        out[threadIdx.x] = ((unsigned long long)s[0] << 32 | s[1]) ^ ((unsigned long long)s[3] * s[2]);
    }
    """,
    grid=1, block=32, args=lambda rng: {"seed": rng.integers(0, 1 << 32, 32).astype(np.uint32), "out": st.empty(32, "u64")},
    expected=lambda g: {"out": [_mix(int(v)) for v in g["seed"]]},
)  # fmt: skip


def _mix(seed: int) -> int:
    mask = 0xFFFFFFFF
    a, b, c, d = seed, 0x736F6D65, 0x646F7261, ord("x")
    for _ in range(4):
        a = (a + b) & mask
        b = ((b << 5 | b >> 27) & mask) ^ a
        c = (c + d) & mask
        d = ((d << 8 | d >> 24) & mask) ^ c
    return (a << 32 | b) ^ (d * c)
