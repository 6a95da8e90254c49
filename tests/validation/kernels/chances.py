"""Ising spins, options."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i8, i32, u32

from .kernel import Args, ValidationKernel, Values, draw, floats, zeros

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


def _half(n: int, block: tuple[int, int]) -> tuple[int, int]:
    return -(-n // 2 // block[0]), -(-n // block[1])


KERNELS = (
    ValidationKernel(ising_metropolis, _half, _spins, _flipped_spins, (66, (32, 4)), (512, 2048), SHAPES, restored=("spins",)),
    ValidationKernel(binomial_options, lambda n, b: n, _puts, _priced, (8, 128), (264, 2048), (64, 128, 256)),
)  # fmt: skip
