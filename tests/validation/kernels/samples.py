"""Kernels as a vendor's samples have them: a Fourier transform, a filter with aggregated counts."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float2, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, zeros


@st.device
def by_angle(v: float2, angle: f32) -> float2:
    """A complex number, rotated."""
    s, c = st.sincos(angle)
    return float2(v.x * c - v.y * s, v.x * s + v.y * c)


@st.kernel
def fft_radix4(x: Global[float2], out: Global[float2], BLOCK: Const) -> None:
    """out = transforms of 4 * BLOCK numbers, a block each: four a thread in registers, exchanged through shared memory."""
    real = st.shared(f32, 4 * BLOCK)
    imaginary = st.shared(f32, 4 * BLOCK)
    t = st.thread.x
    first = st.block.x * 4 * BLOCK
    a, b, c, d = x[first + t], x[first + t + BLOCK], x[first + t + 2 * BLOCK], x[first + t + 3 * BLOCK]
    span = 1
    while span < 4 * BLOCK:
        angle = f32(-math.pi / 2) * f32(t % span) / f32(span)
        b, c, d = by_angle(b, angle), by_angle(c, 2.0 * angle), by_angle(d, 3.0 * angle)
        p, q = float2(a.x + c.x, a.y + c.y), float2(a.x - c.x, a.y - c.y)
        r, s = float2(b.x + d.x, b.y + d.y), float2(b.y - d.y, d.x - b.x)
        to = t // span * span * 4 + t % span
        real[to], imaginary[to] = p.x + r.x, p.y + r.y
        real[to + span], imaginary[to + span] = q.x + s.x, q.y + s.y
        real[to + 2 * span], imaginary[to + 2 * span] = p.x - r.x, p.y - r.y
        real[to + 3 * span], imaginary[to + 3 * span] = q.x - s.x, q.y - s.y
        st.sync()
        a, b = float2(real[t], imaginary[t]), float2(real[t + BLOCK], imaginary[t + BLOCK])
        c = float2(real[t + 2 * BLOCK], imaginary[t + 2 * BLOCK])
        d = float2(real[t + 3 * BLOCK], imaginary[t + 3 * BLOCK])
        st.sync()
        span *= 4
    out[first + t] = a
    out[first + t + BLOCK] = b
    out[first + t + 2 * BLOCK] = c
    out[first + t + 3 * BLOCK] = d


@st.kernel
def filter_aggregated(x: Global[i32], out: Global[i32], count: Global[i32], n: i32, least: i32) -> None:
    """out = numbers above `least` in any order; the lanes that have one take their places by one atomic."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        value = x[i]
        if value > least:
            active = st.active_mask()
            leader = st.ffs(active) - 1
            base = 0
            if st.lane == leader:
                base = st.atomic_add(count, 0, st.popcount(active))
            base = st.shuffle(base, leader, mask=active)
            out[base + st.popcount(active & st.lanemask_lt())] = value


# ------------------------------------------------------------------ launches


def _waves(n: int, block: int) -> Args:
    x = draw().normal(0, 1, (n * 4 * block, 2)).astype(np.float32)
    return {"x": x, "out": np.zeros_like(x), "BLOCK": block}


def _transformed(args: Args) -> dict[str, Values]:
    x = args["x"].astype(float).view(complex).reshape(-1, 4 * args["BLOCK"])
    return {"out": np.fft.fft(x).view(float)}


def _numbers(n: int, block: int) -> Args:
    return {"x": ints(n, 1000), "out": zeros(n, np.int32), "count": zeros(1, np.int32), "n": n, "least": 700}


def _above(args: Args) -> dict[str, Values]:
    selected = args["x"][args["x"] > args["least"]]
    return {"out": selected, "count": np.array([len(selected)])}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(fft_radix4, lambda n, b: n, _waves, _transformed, (4, 64), (264, 2048), (16, 64, 256)),
    ValidationKernel(
        filter_aggregated, lambda n, b: min(cover(n, b), 1056), _numbers, _above, (3000, 128), (1 << 18, 1 << 22), BLOCKS,
        unordered=("out",), restored=("count",),
    ),
)  # fmt: skip
