"""Numerical work: a Fourier transform, random numbers, options, records of particles."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import simtbed as st
from simtbed import Const, Global, c64, f32, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, zeros


@st.kernel
def fft_stage(x: Global[c64], out: Global[c64], half: i32, roots: Global[c64]) -> None:
    """One stage of a transform in Stockham's order: a butterfly a thread."""
    i = st.block.x * st.block_dim.x + st.thread.x
    count = st.grid_dim.x * st.block_dim.x
    k = i & (half - 1)
    a, b = x[i], x[i + count] * roots[k * (count // half)]
    to = 2 * (i - k) + k
    out[to] = a + b
    out[to + half] = a - b


@st.kernel
def philox(out: Global[u32], seed: u32) -> None:
    """Ten rounds of Philox 4x32, four numbers a thread."""
    i = st.block.x * st.block_dim.x + st.thread.x
    c0, c1, c2, c3 = u32(i), u32(0), u32(0), u32(0)
    k0, k1 = seed, u32(0xCAFE)
    for _ in range(10):
        low, high = c0 * u32(0xD2511F53), st.mulhi(c0, u32(0xD2511F53))
        low2, high2 = c2 * u32(0xCD9E8D57), st.mulhi(c2, u32(0xCD9E8D57))
        c0, c1, c2, c3 = high2 ^ c1 ^ k0, low2, high ^ c3 ^ k1, low
        k0 += u32(0x9E3779B9)
        k1 += u32(0xBB67AE85)
    out[4 * i] = c0
    out[4 * i + 1] = c1
    out[4 * i + 2] = c2
    out[4 * i + 3] = c3


@st.kernel
def black_scholes(
    price: Global[f32], strike: Global[f32], out: Global[f32], n: i32, rate: f32, volatility: f32
) -> None:
    """Value of calls of a year."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        d1 = (st.log(price[i] / strike[i]) + rate + 0.5 * volatility * volatility) / volatility
        d2 = d1 - volatility
        a, b = 0.5 * (1.0 + st.erf(d1 * 0.70710678)), 0.5 * (1.0 + st.erf(d2 * 0.70710678))
        out[i] = price[i] * a - strike[i] * st.exp(-rate) * b


@dataclass
class Particle:
    """The position of a particle, its velocity, and its number of wall collisions."""

    x: f32
    y: f32
    u: f32
    v: f32
    walls: i32


@st.kernel
def move_particles(particles: Global[Particle], n: i32, step: f32, TURNS: Const) -> None:
    """An array of structs: particles that walls throw back."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        x, y, u, v = particles[i].x, particles[i].y, particles[i].u, particles[i].v
        walls = particles[i].walls
        for _ in range(TURNS):
            x += u * step
            y += v * step
            if x < 0.0 or x > 1.0:
                u = -u
                walls += 1
            if y < 0.0 or y > 1.0:
                v = -v
                walls += 1
        particles[i].x = x
        particles[i].y = y
        particles[i].u = u
        particles[i].v = v
        particles[i].walls = walls


# ------------------------------------------------------------------ launches


def _signal(n: int, block: int) -> Args:
    x = draw().standard_normal((n, 2)).astype(np.float32).view(np.complex64).ravel()
    roots = np.exp(-2j * np.pi * np.arange(n // 2) / n).astype(np.complex64)
    return {"x": x, "out": zeros(n, np.complex64), "half": 8, "roots": roots}


def _stage(args: Args) -> dict[str, Values]:
    count, half = len(args["x"]) // 2, args["half"]
    i = np.arange(count)
    k = i % half
    a, b = args["x"][:count], args["x"][count:] * args["roots"][k * (count // half)]
    out = np.zeros_like(args["x"])
    out[2 * (i - k) + k], out[2 * (i - k) + k + half] = a + b, a - b
    return {"out": out}


def _philox(args: Args) -> dict[str, Values]:
    low = np.uint64(0xFFFFFFFF)
    c = np.zeros((4, len(args["out"]) // 4), np.uint64)
    c[0] = np.arange(c.shape[1])
    k0, k1 = int(args["seed"]), 0xCAFE
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = np.stack(
            [b >> np.uint64(32) ^ c[1] ^ np.uint64(k0), b & low, a >> np.uint64(32) ^ c[3] ^ np.uint64(k1), a & low]
        )
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return {"out": c.T.ravel().astype(np.uint32)}


def _options(n: int, block: int) -> Args:
    return {
        "price": 10 + 20 * floats(n), "strike": 10 + 20 * floats(2 * n)[n:], "out": zeros(n), "n": n,
        "rate": 0.02, "volatility": 0.3,
    }  # fmt: skip


def _worth(args: Args) -> dict[str, Values]:
    price, strike = args["price"].astype(np.float64), args["strike"].astype(np.float64)
    below = np.vectorize(lambda d: 0.5 * (1 + math.erf(d / 2**0.5)))
    d1 = (np.log(price / strike) + 0.02 + 0.045) / 0.3
    return {"out": price * below(d1) - strike * math.exp(-0.02) * below(d1 - 0.3)}


def _particles(n: int, block: int) -> Args:
    particles = np.zeros(n, np.dtype([(name, np.float32) for name in "xyuv"] + [("walls", np.int32)]))
    for name, values in zip("xyuv", floats(4, n), strict=True):
        particles[name] = values if name in "xy" else values - np.float32(0.5)
    return {"particles": particles, "n": n, "step": 0.25, "TURNS": 16}


def _moved(args: Args) -> dict[str, Values]:
    particles = args["particles"].copy()
    for _ in range(args["TURNS"]):
        for place, speed in ("xu", "yv"):
            particles[place] += particles[speed] * np.float32(0.25)
            out = (particles[place] < 0) | (particles[place] > 1)
            particles[speed][out] *= -1
            particles["walls"] += out
    return {"particles": particles}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(fft_stage, lambda n, b: n // (2 * b), _signal, _stage, (1024, 128), (1 << 18, 1 << 22), BLOCKS),
    ValidationKernel(
        philox, lambda n, b: n // b, lambda n, b: {"out": zeros(4 * n, np.uint32), "seed": 7}, _philox, (512, 128),
        (1 << 18, 1 << 20), BLOCKS,
    ),
    ValidationKernel(black_scholes, cover, _options, _worth, (500, 128), (1 << 17, 1 << 20), BLOCKS),
    ValidationKernel(
        move_particles, cover, _particles, _moved, (300, 128), (1 << 16, 1 << 19), BLOCKS, restored=("particles",),
    ),
)  # fmt: skip
