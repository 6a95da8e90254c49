"""Ising spins, random walks, options."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i8, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, words, zeros

FLIP = (4294967295, 4294967295, 4294967295, 1470000000, 503000000)
"""Probability in 2^-32 that a spin flips, for neighbours against it by 4, 2, 0, or for it by 2, 4."""


@st.kernel
def ising_metropolis(spins: Global[i8], n: i32, colour: i32, seed: u32) -> None:
    """The spins of one colour of a chequered torus, flipped or not, by their neighbours and random numbers."""
    chances = st.constant(u32, FLIP)
    x = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or x >= n // 2:
        return
    column = 2 * x + ((row + colour) & 1)
    above = spins[(row + n - 1) % n * n + column]
    below = spins[(row + 1) % n * n + column]
    left = spins[row * n + (column + n - 1) % n]
    right = spins[row * n + (column + 1) % n]
    own = i32(spins[row * n + column])
    along = own * (i32(above) + i32(below) + i32(left) + i32(right))
    h = u32(row * n + column) * u32(0x9E3779B1) ^ seed
    h = (h ^ (h >> u32(16))) * u32(0x85EBCA6B)
    h = (h ^ (h >> u32(13))) * u32(0xC2B2AE35)
    h ^= h >> u32(16)
    if h < chances[(along + 4) // 2]:
        spins[row * n + column] = i8(-own)


@st.kernel
def random_walks(seeds: Global[u32], out: Global[i32], n: i32, goal: i32, most: i32) -> None:
    """out[i] = steps until a walk by xorshift reaches 0 or the goal, below 0 where 0; `most` where neither."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    state = seeds[i]
    place, steps = goal // 2, 0
    while True:
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        place += 1 if state & 1 != 0 else -1
        steps += 1
        if place == 0:
            steps = -steps
            break
        if place == goal or steps == most:
            break
    out[i] = steps


@st.kernel
def asian_options(out: Global[f32], n: i32, DAYS: Const, drift: f32, spread: f32, strike: f32) -> None:
    """out[i] = payoff on path i of an option on the mean of DAYS prices; Box and Muller's numbers from a hash."""
    stride = st.grid_dim.x * st.block_dim.x
    for path in range(st.block.x * st.block_dim.x + st.thread.x, n, stride):
        price, total = 1.0, 0.0
        state = u32(path + 1) * u32(2654435761)
        for _ in range(DAYS // 2):
            state = state * u32(747796405) + u32(2891336453)
            u = (f32(state >> u32(9)) + 0.5) * (1.0 / 8388608.0)
            state = state * u32(747796405) + u32(2891336453)
            angle = f32(state >> u32(9)) * (2.0 * math.pi / 8388608.0)
            radius = st.sqrt(-2.0 * st.log(u))
            s, c = st.sincos(angle)
            price *= st.exp(drift + spread * radius * c)
            total += price
            price *= st.exp(drift + spread * radius * s)
            total += price
        out[path] = max(total / DAYS - strike, 0.0)


@st.kernel
def binomial_options(
    price: Global[f32], strike: Global[f32], out: Global[f32], STEPS: Const, up: f32, chance: f32, discount: f32
) -> None:
    """out[b] = an American put, a block an option: values at the leaves in shared memory, and back to the root."""
    values = st.shared(f32, STEPS + 1)
    s, x = price[st.block.x], strike[st.block.x]
    for k in range(st.thread.x, STEPS + 1, st.block_dim.x):
        values[k] = max(x - s * st.pow(up, f32(2 * k - STEPS)), 0.0)
    st.sync()
    for last in range(STEPS, 0, -1):
        first = 0
        while first < last:
            k = first + st.thread.x
            worth = 0.0
            if k < last:
                kept = discount * (chance * values[k + 1] + (1.0 - chance) * values[k])
                worth = max(kept, x - s * st.pow(up, f32(2 * k - last + 1)))
            st.sync()
            if k < last:
                values[k] = worth
            st.sync()
            first += st.block_dim.x
    if st.thread.x == 0:
        out[st.block.x] = values[0]


# ------------------------------------------------------------------ launches
def _spins(n: int, block: object) -> Args:
    return {
        "spins": np.where(draw().random((n, n)) < 0.7, 1, -1).astype(np.int8).ravel(),
        "n": n,
        "colour": 1,
        "seed": 77,
    }


def _mixed(h: Values) -> Values:
    """The finish of Murmur's hash."""
    h = (h ^ (h >> 16)) * np.uint32(0x85EBCA6B)
    h = (h ^ (h >> 13)) * np.uint32(0xC2B2AE35)
    h ^= h >> 16
    return h


def _flipped_spins(args: Args) -> dict[str, Values]:
    n = args["n"]
    spins = args["spins"].reshape(n, n).astype(int)
    around = sum(np.roll(spins, step, axis) for step in (1, -1) for axis in (0, 1))
    at = np.arange(n * n, dtype=np.uint32).reshape(n, n)
    chance = _mixed(at * np.uint32(0x9E3779B1) ^ np.uint32(args["seed"]))
    flipped = (chance < np.array(FLIP)[(spins * around + 4) // 2]) & (
        np.indices((n, n)).sum(axis=0) % 2 == args["colour"]
    )
    return {"spins": np.where(flipped, -spins, spins)}


def _walkers(n: int, block: int) -> Args:
    return {"seeds": words(n) | np.uint32(1), "out": zeros(n, np.int32), "n": n, "goal": 16, "most": 256}


def _walked(args: Args) -> dict[str, Values]:
    state, out = args["seeds"].copy(), np.full(args["n"], args["most"], np.int32)
    walker, place = np.arange(args["n"]), np.full(args["n"], args["goal"] // 2)
    for step in range(1, args["most"] + 1):
        for shift in (13, -17, 5):
            state ^= state << np.uint32(shift) if shift > 0 else state >> np.uint32(-shift)
        place = place + np.where(state % 2 == 1, 1, -1)
        out[walker[place == 0]], out[walker[place == args["goal"]]] = -step, step
        inside = (place > 0) & (place < args["goal"])
        state, walker, place = state[inside], walker[inside], place[inside]
    return {"out": out}


def _paths(n: int, block: int) -> Args:
    return {"out": zeros(n), "n": n, "DAYS": 32, "drift": 1e-3, "spread": 0.05, "strike": 1.0}


def _paid(args: Args) -> dict[str, Values]:
    state = np.arange(1, args["n"] + 1, dtype=np.uint32) * np.uint32(2654435761)
    price, total = np.ones(args["n"]), np.zeros(args["n"])
    for _ in range(args["DAYS"] // 2):
        state = state * np.uint32(747796405) + np.uint32(2891336453)
        radius = np.sqrt(-2 * np.log(((state >> 9) + 0.5) / 2**23))
        state = state * np.uint32(747796405) + np.uint32(2891336453)
        phase = np.exp(2j * np.pi * (state >> 9) / 2**23)
        for normal in (phase.real, phase.imag):
            price = price * np.exp(args["drift"] + args["spread"] * radius * normal)
            total += price
    return {"out": np.maximum(total / args["DAYS"] - args["strike"], 0)}


def _puts(n: int, block: int) -> Args:
    price, strike = floats(2, n) * 20 + 90
    return {
        "price": price, "strike": strike, "out": zeros(n), "STEPS": 255, "up": np.float32(1.01), "chance": np.float32(0.505),
        "discount": np.float32(0.9999),
    }  # fmt: skip


def _priced(args: Args) -> dict[str, Values]:
    steps, chance = args["STEPS"], float(args["chance"])
    price, strike = args["price"][:, None].astype(float), args["strike"][:, None].astype(float)
    values = np.maximum(strike - price * float(args["up"]) ** np.arange(-steps, steps + 1, 2), 0)
    for last in range(steps - 1, -1, -1):
        continuation = float(args["discount"]) * (chance * values[:, 1:] + (1 - chance) * values[:, :-1])
        values = np.maximum(continuation, strike - price * float(args["up"]) ** np.arange(-last, last + 1, 2))
    return {"out": values.ravel()}


SHAPES = ((32, 4), (16, 16), (32, 32))
BLOCKS = (64, 256, 1024)


def _half(n: int, block: tuple[int, int]) -> tuple[int, int]:
    return -(-n // 2 // block[0]), -(-n // block[1])


KERNELS = (
    ValidationKernel(ising_metropolis, _half, _spins, _flipped_spins, (66, (32, 4)), (512, 2048), SHAPES, restored=("spins",)),
    ValidationKernel(random_walks, cover, _walkers, _walked, (1000, 128), (1 << 16, 1 << 20), BLOCKS),
    ValidationKernel(asian_options, lambda n, b: min(cover(n, b), 264), _paths, _paid, (1000, 128), (1 << 16, 1 << 20), BLOCKS),
    ValidationKernel(binomial_options, lambda n, b: n, _puts, _priced, (8, 128), (264, 2048), (64, 128, 256)),
)  # fmt: skip
