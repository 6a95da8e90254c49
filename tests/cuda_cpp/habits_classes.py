"""Kernels with classes, groups of threads and the libraries' numbers, as their users write them."""

from __future__ import annotations

import numpy as np
import simtbed as st

from tests.cuda_cpp.habits import add, f32
from tests.cuda_cpp.habits_memory import HABITS

__all__ = ["HABITS"]

add(
    "classes with bases, in registers and in memory",
    """
    template <class T> class Mean {
    protected:
        T sum; int n;
    public:
        __device__ void add(T x) { sum += x; n += 1; }
        __device__ T value() const { return sum / n; }
    };
    template <class T> struct Scaled : public Mean<T> {
        T factor;
        __device__ Scaled(T f) { factor = f; this->sum = 0; this->n = 0; }
        __device__ T result() { this->add(1); return this->value() * factor; }
    };
    template <class T> __device__ void twice(Mean<T> &mean, T x) { mean.add(x); mean.add(x); }
    struct Key { int key; };
    struct Entry : Key { int value; };
    __global__ void means(const float *x, float *out, Entry *entries, int *values)
    {
        Scaled<float> mean(2.0f);
        twice(mean, x[threadIdx.x]);
        mean.add(x[threadIdx.x]);
        out[threadIdx.x] = mean.result();
        Key *key = &entries[threadIdx.x];
        entries[threadIdx.x].value = key->key;
        key->key = 7;
        values[threadIdx.x] = entries[threadIdx.x].value * 10 + entries[threadIdx.x].key;
    }
    """,
    grid=1, block=32, args=lambda rng: {
        "x": np.arange(32, dtype=np.float32), "out": st.empty(32, "f32"),
        "entries": np.array([(i, -1) for i in range(32)], [("key", "i4"), ("value", "i4")]),
        "values": st.empty(32, "i32"),
    },
    expected=lambda g: {"out": (3 * g["x"] + 1) / 4 * 2, "values": 10 * np.arange(32) + 7},
)  # fmt: skip

add(
    "parameters of templates that are declared as arrays",
    """
    template <typename T, int M> __device__ void fill(T (&row)[M], const T column[M], T tile[M][M])
    {
        tile[threadIdx.x / M][threadIdx.x % M] = column[threadIdx.x / M] * row[threadIdx.x % M];
    }
    __global__ void outer(const float *x, float *out)
    {
        __shared__ float tile[8][8], row[8];
        if (threadIdx.x < 8) row[threadIdx.x] = x[8 + threadIdx.x];
        __syncthreads();
        fill<float, 8>(row, x, tile);
        __syncthreads();
        out[threadIdx.x] = tile[threadIdx.x % 8][threadIdx.x / 8];
    }
    """,
    grid=1, block=64, args=lambda rng: {"x": f32(16)(rng), "out": st.empty((8, 8), "f32")},
    expected=lambda g: {"out": np.outer(g["x"][8:], g["x"][:8])},
)  # fmt: skip

add(
    "coalesced groups, tiles of tiles",
    """
    #include <cooperative_groups.h>
    #include <cooperative_groups/reduce.h>
    namespace cg = cooperative_groups;
    __global__ void positive(const int *x, int *out, int *count, int *ranks)
    {
        auto block = cg::this_thread_block();
        auto warp = cg::tiled_partition<32>(block);
        auto tile = cg::tiled_partition<8>(warp);
        ranks[block.thread_rank()] = tile.meta_group_rank() * 100 + tile.meta_group_size() * 10 + tile.thread_rank();
        int v = x[block.thread_rank()];
        if (v > 0) {
            cg::coalesced_group active = cg::coalesced_threads();
            int at = 0;
            if (active.thread_rank() == 0) at = atomicAdd(count, active.size());
            out[active.shfl(at, 0) + active.thread_rank()] = v;
        }
    }
    """,
    grid=1, block=64, args=lambda rng: {
        "x": rng.integers(-9, 9, 64).astype(np.int32), "out": np.zeros(64, np.int32), "count": np.zeros(1, np.int32),
        "ranks": st.empty(64, "i32"),
    },
    expected=lambda g: {
        "count": [(g["x"] > 0).sum()], "ranks": [t % 32 // 8 * 100 + 40 + t % 8 for t in range(64)],
        "out": np.pad(g["x"][g["x"] > 0], (0, (g["x"] <= 0).sum())),
    },
)  # fmt: skip

add(
    "products of 24 bits, positive differences",
    """
    __global__ void arithmetic(const int *a, const int *b, int *product, unsigned int *positive, float *difference)
    {
        int i = threadIdx.x;
        product[i] = __mul24(a[i], b[i]);
        positive[i] = __umul24(a[i], b[i]);
        difference[i] = fdimf(a[i] ? (float)a[i] : __int_as_float(0x7fc00000), (float)b[i]);
    }
    """,
    grid=1, block=32, args=lambda rng: {
        "a": (rng.integers(-(1 << 31), 1 << 31, 32) * (np.arange(32) > 0)).astype(np.int32),
        "b": rng.integers(-(1 << 31), 1 << 31, 32).astype(np.int32),
        "product": st.empty(32, "i32"), "positive": st.empty(32, "u32"), "difference": st.empty(32, "f32"),
    },
    expected=lambda g: {
        "product": [_low(_signed(int(x)) * _signed(int(y)), "i4") for x, y in zip(g["a"], g["b"], strict=True)],
        "positive": [(int(x) & 0xFFFFFF) * (int(y) & 0xFFFFFF) & 0xFFFFFFFF for x, y in zip(g["a"], g["b"], strict=True)],
        "difference": np.where(g["a"] == 0, np.nan, np.maximum(g["a"].astype("f4") - g["b"].astype("f4"), 0)),
    },
)  # fmt: skip


def _signed(x: int) -> int:
    low = x & 0xFFFFFF
    return low - (1 << 24) if low >> 23 else low


def _low(x: int, type: str) -> int:
    return int(np.array(x & 0xFFFFFFFF, np.uint32).view(type))


add(
    "quotients, absolute values and exponentials of complex numbers",
    """
    #include <pycuda-complex.hpp>
    #include <cuComplex.h>
    typedef pycuda::complex<double> number;
    __global__ void numbers(const number *a, const number *b, number *out, double *size, const cuDoubleComplex *c)
    {
        int i = threadIdx.x;
        number z = a[i];
        z /= b[i];
        out[i] = exp(z) + 2.0 * conj(z);
        cuDoubleComplex w = cuCmul(c[i], make_cuDoubleComplex(0, 1));
        size[i] = abs(z) + arg(z) + cuCreal(cuCdiv(w, c[i])) + cuCimag(cuCdiv(w, c[i]));
    }
    """,
    grid=1, block=16, args=lambda rng: {
        "a": rng.random(16) + 1j * rng.random(16), "b": rng.random(16) + 1j * rng.random(16), "out": np.zeros(16, complex),
        "size": st.empty(16, "f64"), "c": 1 + rng.random(16) + 1j * rng.random(16),
    },
    expected=lambda g: (lambda z: {"out": np.exp(z) + 2 * z.conj(), "size": abs(z) + np.angle(z) + 1})(g["a"] / g["b"]),
    rtol=1e-12,
)  # fmt: skip
