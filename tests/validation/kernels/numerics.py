"""Numerical work: many bodies, normalisations, transforms, random numbers, iterations of unequal length."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import simtbed as st
from simtbed import Const, Global, c64, f32, f64, float4, i32, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, words, zeros


@st.kernel
def n_body(bodies: Global[float4], out: Global[float4], n: i32, BLOCK: Const) -> None:
    """Accelerations of n bodies (place and mass), by tiles of them in shared memory."""
    tile = st.shared(float4, BLOCK)
    i = st.block.x * BLOCK + st.thread.x
    own = bodies[i]
    ax, ay, az = 0.0, 0.0, 0.0
    for start in range(0, n, BLOCK):
        tile[st.thread.x] = bodies[start + st.thread.x]
        st.sync()
        for k in range(BLOCK):
            other = tile[k]
            dx, dy, dz = other.x - own.x, other.y - own.y, other.z - own.z
            square = dx * dx + dy * dy + dz * dz + 0.01
            weight = other.w / (square * st.sqrt(square))
            ax = st.fma(weight, dx, ax)
            ay = st.fma(weight, dy, ay)
            az = st.fma(weight, dz, az)
        st.sync()
    out[i] = float4(ax, ay, az, 0.0)


@st.kernel
def softmax_rows(x: Global[f32], out: Global[f32], columns: i32) -> None:
    """A block a row: the largest, the sum of powers, the quotients."""
    held = st.shared(f32, 32)
    row = st.block.x * columns
    most = -1e30
    for c in range(st.thread.x, columns, st.block_dim.x):
        most = max(most, x[row + c])
    for step in st.unroll(range(5)):
        most = max(most, st.shuffle_xor(most, 16 >> step))
    if st.lane == 0:
        held[st.warp] = most
    st.sync()
    for w in range(st.block_dim.x // 32):
        most = max(most, held[w])
    st.sync()
    total = 0.0
    for c in range(st.thread.x, columns, st.block_dim.x):
        total += st.exp(x[row + c] - most)
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 16 >> step)
    if st.lane == 0:
        held[st.warp] = total
    st.sync()
    total = 0.0
    for w in range(st.block_dim.x // 32):
        total += held[w]
    for c in range(st.thread.x, columns, st.block_dim.x):
        out[row + c] = st.exp(x[row + c] - most) / total


@st.kernel
def layer_norm(x: Global[f32], gain: Global[f32], out: Global[f32], rows: i32, columns: i32) -> None:
    """A warp a row: mean, variance, and the scaled deviation."""
    row = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if row >= rows:
        return
    total, squares = 0.0, 0.0
    for c in range(st.lane, columns, 32):
        value = x[row * columns + c]
        total += value
        squares += value * value
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 16 >> step)
        squares += st.shuffle_xor(squares, 16 >> step)
    mean = total / f32(columns)
    scale = 1.0 / st.sqrt(squares / f32(columns) - mean * mean + 1e-5)
    for c in range(st.lane, columns, 32):
        out[row * columns + c] = (x[row * columns + c] - mean) * scale * gain[c]


@st.kernel
def k_means_assign(x: Global[f32], centres: Global[f32], out: Global[i32], n: i32, K: Const, WIDTH: Const) -> None:
    """The nearest of K centres in shared memory."""
    held = st.shared(f32, K * WIDTH)
    for k in range(st.thread.x, K * WIDTH, st.block_dim.x):
        held[k] = centres[k]
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        best, nearest = 0, 1e30
        for k in range(K):
            distance = 0.0
            for d in st.unroll(range(WIDTH)):
                apart = x[d * n + i] - held[k * WIDTH + d]
                distance += apart * apart
            if distance < nearest:
                best = k
                nearest = distance
        out[i] = best


@st.kernel
def mandelbrot(out: Global[i32], n: i32, LIMIT: Const) -> None:
    """Iterations until a point of the plane escapes."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    u, v = f32(column) * (3.0 / f32(n)) - 2.0, f32(row) * (2.0 / f32(n)) - 1.0
    x, y, turns = 0.0, 0.0, 0
    while turns < LIMIT and x * x + y * y <= 4.0:
        x, y = x * x - y * y + u, 2.0 * x * y + v
        turns += 1
    out[row * n + column] = turns


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
def lcg_circle(seeds: Global[u32], out: Global[i32], n: i32, TURNS: Const) -> None:
    """Points of a linear congruential generator that fall into a circle."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        state, inside = seeds[i], 0
        for _ in range(TURNS):
            state = state * u32(1664525) + u32(1013904223)
            x = i32(state >> u32(17))
            state = state * u32(1664525) + u32(1013904223)
            y = i32(state >> u32(17))
            if x * x + y * y < 1 << 30:
                inside += 1
        out[i] = inside


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


@st.kernel
def horner_f64(x: Global[f64], out: Global[f64], n: i32, TERMS: Const) -> None:
    """The series of the sine, with divided terms."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        square, total = x[i] * x[i], f64(1)
        for k in range(TERMS, 0, -1):
            total = 1.0 - total * square / f64(2 * k * (2 * k + 1))
        out[i] = x[i] * total


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


@st.kernel
def collatz(out: Global[i32], n: i32) -> None:
    """Steps from i + 1 to 1."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        number, steps = u64(i + 1), 0
        while number != u64(1):
            number = number >> u64(1) if number & u64(1) == u64(0) else number * u64(3) + u64(1)
            steps += 1
        out[i] = steps


@st.kernel
def newton_roots(x: Global[f32], out: Global[f32], turns: Global[i32], n: i32) -> None:
    """Cube roots; a thread leaves when it is near enough."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    value, guess = x[i], 1.0
    for turn in range(60):
        if abs(guess * guess * guess - value) <= 1e-3 * value:
            turns[i] = turn
            out[i] = guess
            return
        guess = (2.0 * guess + value / (guess * guess)) / 3.0
    out[i] = 0.0


# ------------------------------------------------------------------ launches
def _bodies(n: int, block: int) -> Args:
    return {"bodies": floats(n, 4), "out": np.zeros((n, 4), np.float32), "n": n, "BLOCK": block}


def _pulled(args: Args) -> dict[str, Values]:
    place, mass = args["bodies"][:, :3].astype(np.float64), args["bodies"][:, 3]
    out = np.zeros((len(place), 4))
    for first in range(0, len(place), 256):
        offset = place[None] - place[first : first + 256, None]
        weight = mass / ((offset**2).sum(axis=2) + 0.01) ** 1.5
        out[first : first + 256, :3] = np.einsum("ij,ijk->ik", weight, offset)
    return {"out": out}


COLUMNS = 1000


def _rows(n: int, block: int) -> Args:
    x = draw().standard_normal(n * COLUMNS, np.float32)
    return {"x": x, "out": zeros(n * COLUMNS), "columns": COLUMNS}


def _softmax(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, COLUMNS).astype(np.float64)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {"out": (powers / powers.sum(axis=1, keepdims=True)).ravel()}


def _normalised(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, COLUMNS).astype(np.float64)
    deviation = x - x.mean(axis=1, keepdims=True)
    return {"out": (deviation / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * args["gain"]).ravel()}


def _points(n: int, block: int) -> Args:
    x = floats(4 * n)
    return {"x": x, "centres": floats(200)[136:], "out": zeros(n, np.int32), "n": n, "K": 16, "WIDTH": 4}


def _nearest(args: Args) -> dict[str, Values]:
    x, centres = args["x"].reshape(4, -1), args["centres"].reshape(16, 4)
    distances = np.zeros((16, args["n"]), np.float32)
    for d in range(4):
        distances += (x[d] - centres[:, d, None]) ** 2
    return {"out": distances.argmin(axis=0)}


def _escaped(args: Args) -> dict[str, Values]:
    n, unit = args["n"], np.float32(1)
    places = np.arange(n, dtype=np.float32)
    u, v = np.meshgrid(places * (3 * unit / n) - 2, places * (2 * unit / n) - 1)
    x, y, iterations = np.zeros_like(u), np.zeros_like(u), np.zeros(u.shape, np.int32)
    for _ in range(args["LIMIT"]):
        alive = x * x + y * y <= 4
        iterations += alive
        x, y = np.where(alive, x * x - y * y + u, x), np.where(alive, 2 * x * y + v, y)
    return {"out": iterations.ravel()}


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


def _circle(args: Args) -> dict[str, Values]:
    state, inside = args["seeds"], np.zeros(args["n"], np.int32)
    for _ in range(args["TURNS"]):
        places = []
        for _axis in range(2):
            state = state * np.uint32(1664525) + np.uint32(1013904223)
            places.append((state >> np.uint32(17)).astype(np.int64))
        inside += places[0] ** 2 + places[1] ** 2 < 1 << 30
    return {"out": inside}


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


def _collatz(args: Args) -> dict[str, Values]:
    number = np.arange(1, args["n"] + 1)
    steps = np.zeros(args["n"], np.int32)
    while (number > 1).any():
        steps += number > 1
        number = np.where(number == 1, 1, np.where(number % 2, 3 * number + 1, number // 2))
    return {"out": steps}


def _cubes(n: int, block: int) -> Args:
    x = (floats(n) * 100 + np.float32(0.1)).astype(np.float32)
    return {"x": x, "out": zeros(n), "turns": zeros(n, np.int32), "n": n}


def _rooted(args: Args) -> dict[str, Values]:
    value, guess, iterations = args["x"], np.ones_like(args["x"]), np.full(args["n"], -1)
    for iteration in range(60):
        near = np.abs(guess * guess * guess - value) <= np.float32(1e-3) * value
        iterations[near & (iterations < 0)] = iteration
        guess = np.where(iterations >= 0, guess, (2 * guess + value / (guess * guess)) / 3)
    return {"out": guess, "turns": iterations}


BLOCKS = (64, 256, 1024)
SHAPES = ((32, 4), (16, 16), (32, 32))

KERNELS = (
    ValidationKernel(n_body, lambda n, b: n // b, _bodies, _pulled, (256, 64), (2048, 4096), (64, 128, 256)),
    ValidationKernel(softmax_rows, lambda n, b: n, _rows, _softmax, (3, 128), (264, 2048), (64, 256, 1024)),
    ValidationKernel(
        layer_norm, lambda n, b: -(-n // (b // 32)), lambda n, b: {**_rows(n, b), "gain": floats(COLUMNS), "rows": n},
        _normalised, (10, 128), (1024, 4096), (64, 256, 1024),
    ),
    ValidationKernel(k_means_assign, cover, _points, _nearest, (500, 128), (1 << 16, 1 << 19), BLOCKS),
    ValidationKernel(
        mandelbrot, tiles, lambda n, b: {"out": zeros(n * n, np.int32), "n": n, "LIMIT": 100}, _escaped, (60, (16, 16)),
        (512, 1024), SHAPES,
    ),
    ValidationKernel(fft_stage, lambda n, b: n // (2 * b), _signal, _stage, (1024, 128), (1 << 18, 1 << 22), BLOCKS),
    ValidationKernel(
        philox, lambda n, b: n // b, lambda n, b: {"out": zeros(4 * n, np.uint32), "seed": 7}, _philox, (512, 128),
        (1 << 18, 1 << 20), BLOCKS,
    ),
    ValidationKernel(
        lcg_circle, cover, lambda n, b: {"seeds": words(n), "out": zeros(n, np.int32), "n": n, "TURNS": 50}, _circle, (300, 128),
        (1 << 16, 1 << 19), BLOCKS,
    ),
    ValidationKernel(black_scholes, cover, _options, _worth, (500, 128), (1 << 17, 1 << 20), BLOCKS),
    ValidationKernel(
        horner_f64, cover, lambda n, b: {"x": draw().random(n), "out": zeros(n, np.float64), "n": n, "TERMS": 9},
        lambda a: {"out": np.sin(a["x"])}, (500, 128), (1 << 16, 1 << 19), BLOCKS,
    ),
    ValidationKernel(
        move_particles, cover, _particles, _moved, (300, 128), (1 << 16, 1 << 19), BLOCKS, restored=("particles",),
    ),
    ValidationKernel(collatz, cover, lambda n, b: {"out": zeros(n, np.int32), "n": n}, _collatz, (500, 128), (1 << 16, 1 << 19), BLOCKS),
    ValidationKernel(newton_roots, cover, _cubes, _rooted, (500, 128), (1 << 17, 1 << 20), BLOCKS),
)  # fmt: skip
