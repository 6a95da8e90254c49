"""Matter: densities of a fluid, automata of bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float2, float4, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, warps, words, zeros


@st.kernel
def fluid_densities(
    particle: Global[float4], start: Global[i32], out: Global[float2], n: i32, side: i32, rest: f32, stiff: f32
) -> None:
    """out = density and pressure at particles, in order of cells as wide as their radius; w is a mass."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        own = particle[i]
        x, y, z = i32(own.x), i32(own.y), i32(own.z)
        density = 0.0
        for w in range(max(z - 1, 0), min(z + 2, side)):
            for v in range(max(y - 1, 0), min(y + 2, side)):
                row = (w * side + v) * side
                first, last = start[row + max(x - 1, 0)], start[row + min(x + 2, side)]
                for k in range(first, last):
                    other = particle[k]
                    dx, dy, dz = other.x - own.x, other.y - own.y, other.z - own.z
                    rest_of = 1.0 - (dx * dx + dy * dy + dz * dz)
                    if rest_of > 0.0:
                        density += other.w * rest_of * rest_of * rest_of
        density *= 1.5666815
        ratio = density / rest
        out[i] = float2(density, max(stiff * (st.pow(ratio, 7.0) - 1.0), 0.0))


@st.kernel
def automaton_rows(start: Global[u32], out: Global[u32], n: i32, turns: i32, RULE: Const) -> None:
    """out = 1,024 cells on a ring after each step of a rule of three neighbours; a warp a ring, a word of bits a lane."""
    ring = st.block.x * (st.block_dim.x // 32) + st.warp
    if ring >= n:
        return
    own = start[ring * 32 + st.lane]
    for turn in range(turns):
        before = st.shuffle(own, (st.lane + 31) & 31)
        after = st.shuffle(own, (st.lane + 1) & 31)
        left = own << 1 | before >> 31
        right = own >> 1 | after << 31
        fresh = u32(0)
        for k in st.unroll(range(8)):
            if RULE >> k & 1 != 0:
                lit = (left if k & 4 != 0 else ~left) & (own if k & 2 != 0 else ~own)
                fresh |= lit & (right if k & 1 != 0 else ~right)
        own = fresh
        out[(ring * turns + turn) * 32 + st.lane] = own


# ------------------------------------------------------------------ launches
REST, STIFF = 4.0, 0.02


def _fluid(n: int) -> Args:
    """Four particles a cell, on average."""
    rng, side = draw(), round((n / 4) ** (1 / 3))
    place = rng.random((n, 3)) * 0.9999 * side
    x, y, z = place.astype(int).T
    cell = (z * side + y) * side + x
    order = cell.argsort(kind="stable")
    particle = np.concatenate([place, 0.5 + rng.random((n, 1))], axis=1)[order].astype(np.float32)
    start = np.searchsorted(cell[order], np.arange(side**3 + 1)).astype(np.int32)
    return {"particle": particle, "start": start, "n": n, "side": side}


def _near(args: Args) -> Iterator[tuple[Values, Values, Values]]:
    """Yield for some particles at a time: their numbers, the numbers of possible neighbours in order, and squared distances."""
    particle, start, n, side = args["particle"], args["start"], args["n"], args["side"]
    cell = particle[:, :3].astype(int)
    deep = int(np.diff(start).max())
    for first in range(0, n, 4096):
        own = np.arange(first, min(first + 4096, n))
        neighbours = []
        for step in np.ndindex(3, 3, 3):
            at = cell[own] + (np.array(step)[::-1] - 1)
            inside = ((at >= 0) & (at < side)).all(axis=1)
            number = np.where(inside, (at[:, 2] * side + at[:, 1]) * side + at[:, 0], 0)
            candidates = start[number][:, None] + np.arange(deep)
            neighbours.append(np.where(inside[:, None] & (candidates < start[number + 1][:, None]), candidates, -1))
        other = np.concatenate(neighbours, axis=1)
        dx, dy, dz = (particle[other, k] - particle[own, k, None] for k in range(3))
        yield own, other, np.where(other >= 0, dx * dx + dy * dy + dz * dz, np.float32(9))


def _densities(args: Args) -> dict[str, Values]:
    mass, density = args["particle"][:, 3].astype(float), np.zeros(args["n"])
    for own, other, far in _near(args):
        density[own] = 1.5666815 * (mass[other] * np.maximum(1 - far.astype(float), 0) ** 3).sum(axis=1)
    return {"out": np.stack([density, np.maximum(STIFF * ((density / REST) ** 7 - 1), 0)], axis=1)}


GENERATIONS = 64


def _rings(n: int, block: int) -> Args:
    return {
        "start": words(32 * n),
        "out": zeros(32 * n * GENERATIONS, np.uint32),
        "n": n,
        "turns": GENERATIONS,
        "RULE": 110,
    }


def _evolved(args: Args) -> dict[str, Values]:
    cells = np.unpackbits(args["start"].view(np.uint8).reshape(-1, 128), axis=1, bitorder="little")
    out = np.zeros((len(cells), GENERATIONS, 128), np.uint8)
    for generation in range(GENERATIONS):
        pattern = 4 * np.roll(cells, 1, axis=1) + 2 * cells + np.roll(cells, -1, axis=1)
        cells = args["RULE"] >> pattern & 1
        out[:, generation] = np.packbits(cells, axis=1, bitorder="little")
    return {"out": out.view(np.uint32)}


KERNELS = (
    ValidationKernel(
        fluid_densities, lambda n, b: min(cover(n, b), 528),
        lambda n, b: {**_fluid(n), "out": np.zeros((n, 2), np.float32), "rest": REST, "stiff": STIFF}, _densities, (1000, 64),
        (1 << 14, 1 << 17), (64, 128, 512),
    ),
    ValidationKernel(automaton_rows, warps, _rings, _evolved, (64, 128), (1 << 11, 1 << 14), (64, 256)),
)  # fmt: skip
