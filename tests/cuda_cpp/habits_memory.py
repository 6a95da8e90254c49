"""Kernels with memory that is accessed with several types and sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import simtbed as st

from tests.cuda_cpp.habits import HABITS, Arrays, add, f32

__all__ = ["HABITS"]

add(
    "sums, counts and flags in one dynamic shared array",
    """
    extern __shared__ __align__(16) unsigned char memory[];
    __global__ void moments(const float *x, double *sums, int *counts, int n)
    {
        double *sum = (double *)memory;
        int *count = (int *)(sum + blockDim.x);
        char *flag = (char *)(count + blockDim.x);
        int t = threadIdx.x;
        sum[t] = t < n ? x[t] : 0.0;
        count[t] = t < n;
        flag[t] = t & 1;
        __syncthreads();
        int other = blockDim.x - 1 - t;
        sums[t] = sum[t] + sum[other] + flag[other];
        counts[t] = count[other];
        __syncthreads();
        if (t == 0) atomicAdd(&count[0], 5);
        __syncthreads();
        if (t == 1) counts[blockDim.x] = count[0];
    }
    """,
    grid=1, block=40, shared=40 * 13,
    args=lambda rng: {"x": f32(40)(rng), "sums": st.empty(40, "f64"), "counts": st.empty(41, "i32"), "n": 30},
    expected=lambda g: _moments(g["x"].astype(np.float64), g["n"]),
)  # fmt: skip


def _moments(x: Any, n: int) -> Arrays:
    inside = np.arange(40) < n
    values = np.where(inside, x, 0.0)
    counts = np.append(inside[::-1], 6)
    return {"sums": values + values[::-1] + (np.arange(40)[::-1] & 1), "counts": counts}


add(
    "vector loads of a float pointer, bytes as words, and a struct in constant memory",
    """
    struct Limits { short low; unsigned char shift; double scale; };
    __constant__ Limits limits = {3, 2, 0.5};
    __global__ void mixed(const float *x, const unsigned char *bytes, float *out, unsigned int *words, int n)
    {
        __shared__ float tile[4 * 32];
        int i = threadIdx.x;
        float4 v = reinterpret_cast<const float4 *>(x)[i];
        *reinterpret_cast<float4 *>(&tile[4 * i]) = v;
        __syncthreads();
        float2 pair = *(float2 *)(tile + 2 * (63 - i));
        out[i] = (pair.x - pair.y) * limits.scale + limits.low;
        unsigned int word = *(const unsigned int *)(bytes + 4 * i);
        words[i] = __byte_perm(word, 0, 0x0123) >> limits.shift;
        unsigned int local[2] = {word, ~word};
        const unsigned char *piece = (const unsigned char *)local;
        if (n > 0) words[i] += piece[(i + n) % 8];
    }
    """,
    grid=1, block=32,
    args=lambda rng: {
        "x": f32(131)(rng), "bytes": rng.integers(0, 256, 128, np.uint8), "out": st.empty(32, "f32"),
        "words": st.empty(32, "u32"), "n": 3,
    },
    expected=lambda g: _mixed(g["x"][:128], g["bytes"]),
)  # fmt: skip


def _mixed(x: Any, data: Any) -> Arrays:
    pairs = x.reshape(64, 2)[63 - np.arange(32)]
    words = data.view(np.uint32)
    local = np.stack([words, ~words], axis=1).view(np.uint8)
    added = local[np.arange(32), (np.arange(32) + 3) % 8]
    scaled = (pairs[:, 0] - pairs[:, 1]).astype(np.float64) * 0.5 + 3
    return {"out": scaled.astype(np.float32), "words": (words.byteswap() >> 2) + added}


add(
    "vectors and structs of vectors by value, and variables as other types",
    """
    struct Light { float4 colour; short2 at; };
    __global__ void shade(float4 scale, uchar4 tint, Light light, unsigned int *out, float *sums)
    {
        int i = threadIdx.x;
        unsigned int word = 0x01020304u * i;
        uchar4 c = *(uchar4 *)&word;
        c.x += tint.x; c.w += tint.w;
        out[i] = *reinterpret_cast<unsigned int *>(&c);
        float2 pair = make_float2(i * scale.x, light.colour.w + light.at.y);
        unsigned long long both = *(unsigned long long *)&pair;
        scale.y += __uint_as_float((unsigned int)(both >> 32));
        sums[i] = scale.y + pair.x;
    }
    """,
    grid=1, block=32,
    args=lambda rng: {
        "scale": (0.5, 2.0, 0.0, 0.0), "tint": np.array([1, 0, 0, 2], np.uint8),
        "light": ((0.0, 0.0, 0.0, 1.5), (7, -3)), "out": st.empty(32, "u32"), "sums": st.empty(32, "f32"),
    },
    expected=lambda g: _shaded(np.arange(32, dtype=np.uint32)),
)  # fmt: skip


def _shaded(i: Any) -> Arrays:
    colours = (i * np.uint32(0x01020304)).view(np.uint8).reshape(32, 4) + np.array([1, 0, 0, 2], np.uint8)
    return {"out": colours.reshape(-1).view(np.uint32), "sums": (2.0 - 1.5 + 0.5 * i).astype(np.float32)}
