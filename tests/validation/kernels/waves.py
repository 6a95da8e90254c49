"""Tiles and volumes: products of rows, waves in three dimensions, excited cells, charges, residues, rotated volumes."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, float4, i32, u8, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, zeros

TILE, DEEP, PITCH = 64, 16, 68
"""Sizes of a product: rows and columns of a block, depth of a step, and words from line to line in shared memory."""


@st.kernel
def matmul_rows_by_rows(a: Global[float4], b: Global[float4], out: Global[f32], m: i32, n: i32, quads: i32) -> None:
    """out = a @ b.T of any sizes: 64 x 64 elements a block of 16 x 16, 4 x 4 a thread; loads of four are stored
    transposed in shared memory."""
    left = st.shared(f32, DEEP, PITCH)
    right = st.shared(f32, DEEP, PITCH)
    tx, ty = st.thread.x, st.thread.y
    t = ty * 16 + tx
    row, part = t // 4, t % 4
    top, side = st.block.y * TILE, st.block.x * TILE
    total = st.registers(f32, 16)
    u = st.registers(f32, 4)
    v = st.registers(f32, 4)
    for i in st.unroll(range(16)):
        total[i] = 0.0
    for first in range(0, quads, DEEP // 4):
        p, q = float4(0.0, 0.0, 0.0, 0.0), float4(0.0, 0.0, 0.0, 0.0)
        if first + part < quads:
            if top + row < m:
                p = a[(top + row) * quads + first + part]
            if side + row < n:
                q = b[(side + row) * quads + first + part]
        for j in st.unroll(range(4)):
            left[4 * part + j, row] = p[j]
            right[4 * part + j, row] = q[j]
        st.sync()
        for k in st.unroll(range(DEEP)):
            for j in st.unroll(range(4)):
                u[j] = left[k, ty * 4 + j]
                v[j] = right[k, tx + 16 * j]
            for i in st.unroll(range(4)):
                for j in st.unroll(range(4)):
                    total[4 * i + j] += u[i] * v[j]
        st.sync()
    for i in st.unroll(range(4)):
        for j in st.unroll(range(4)):
            y, x = top + ty * 4 + i, side + tx + 16 * j
            if y < m and x < n:
                out[y * n + x] = total[4 * i + j]


REACH = 4


TAPS = (-2.84722222, 1.6, -0.2, 0.0253968254, -0.00178571429)
"""A second derivative of the eighth order: the centre, and the points at a distance of one to four."""


@st.kernel
def wave_eighth_order(
    now: Global[f32], before: Global[f32], speed: Global[f32], after: Global[f32], wide: i32, high: i32, deep: i32,
    W: Const, H: Const,
) -> None:  # fmt: skip
    """after = a wave one step on, by 25 points: a tile of a plane and its halo in shared memory, nine planes in registers."""
    tile = st.shared(f32, H + 2 * REACH, W + 2 * REACH)
    tx, ty = st.thread.x + REACH, st.thread.y + REACH
    x = st.block.x * W + tx
    y = st.block.y * H + ty
    plane = wide * high
    ahead = y * wide + x
    behind4 = now[ahead]
    behind3 = now[ahead + plane]
    behind2 = now[ahead + 2 * plane]
    behind1 = now[ahead + 3 * plane]
    current = now[ahead + 4 * plane]
    front1 = now[ahead + 5 * plane]
    front2 = now[ahead + 6 * plane]
    front3 = now[ahead + 7 * plane]
    front4 = 0.0
    at = ahead + 4 * plane
    ahead += 8 * plane
    for _ in range(REACH, deep - REACH):
        front4 = now[ahead]
        st.sync()
        if st.thread.y < REACH:
            tile[st.thread.y, tx] = now[at - REACH * wide]
            tile[st.thread.y + H + REACH, tx] = now[at + H * wide]
        if st.thread.x < REACH:
            tile[ty, st.thread.x] = now[at - REACH]
            tile[ty, st.thread.x + W + REACH] = now[at + W]
        tile[ty, tx] = current
        st.sync()
        value = 3.0 * TAPS[0] * current
        value += TAPS[1] * (
            front1 + behind1 + tile[ty - 1, tx] + tile[ty + 1, tx] + tile[ty, tx - 1] + tile[ty, tx + 1]
        )
        value += TAPS[2] * (
            front2 + behind2 + tile[ty - 2, tx] + tile[ty + 2, tx] + tile[ty, tx - 2] + tile[ty, tx + 2]
        )
        value += TAPS[3] * (
            front3 + behind3 + tile[ty - 3, tx] + tile[ty + 3, tx] + tile[ty, tx - 3] + tile[ty, tx + 3]
        )
        value += TAPS[4] * (
            front4 + behind4 + tile[ty - 4, tx] + tile[ty + 4, tx] + tile[ty, tx - 4] + tile[ty, tx + 4]
        )
        after[at] = 2.0 * current - before[at] + speed[at] * value
        behind4, behind3, behind2, behind1 = behind3, behind2, behind1, current
        current, front1, front2, front3 = front1, front2, front3, front4
        at += plane
        ahead += plane


@st.kernel
def excitable_cells(cells: Global[u8], out: Global[u8], n: i32, states: i32, least: i32) -> None:
    """out = cells of a torus in three dimensions: 0 is excited to 1 by enough of its 26 neighbours, others rest until 0 again."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    z = st.block.z * st.block_dim.z + st.thread.z
    if x >= n or y >= n or z >= n:
        return
    at = (z * n + y) * n + x
    state = i32(cells[at])
    if state > 0:
        out[at] = u8((state + 1) % states)
        return
    excited = 0
    for dz in range(-1, 2):
        for dy in range(-1, 2):
            row = ((z + dz + n) % n * n + (y + dy + n) % n) * n
            for dx in range(-1, 2):
                if dx == 0 and dy == 0 and dz == 0:
                    continue
                if cells[row + (x + dx + n) % n] == 1:
                    excited += 1
    out[at] = u8(1) if excited >= least else u8(0)


@st.kernel
def ewald_real_space(
    place: Global[float4], force: Global[f32], n: i32, each: i32, box: f32, reach: f32, alpha: f32, BLOCK: Const
) -> None:
    """force += near forces and energy of charges (w) in a periodic box, by tiles of some of the others; blocks along y share them."""
    tile = st.shared(float4, BLOCK)
    i = st.block.x * BLOCK + st.thread.x
    own = float4(0.0, 0.0, 0.0, 0.0)
    if i < n:
        own = place[i]
    fx, fy, fz, energy = 0.0, 0.0, 0.0, 0.0
    over = 1.0 / box
    begin = st.block.y * each
    end = min(begin + each, n)
    for first in range(begin, end, BLOCK):
        if first + st.thread.x < end:
            tile[st.thread.x] = place[first + st.thread.x]
        st.sync()
        for k in range(min(BLOCK, end - first)):
            other = tile[k]
            dx, dy, dz = own.x - other.x, own.y - other.y, own.z - other.z
            dx -= box * st.rint(dx * over)
            dy -= box * st.rint(dy * over)
            dz -= box * st.rint(dz * over)
            square = dx * dx + dy * dy + dz * dz
            if square < reach * reach and first + k != i:
                apart = st.sqrt(square)
                inverse = 1.0 / apart
                scaled = alpha * apart
                fall = st.exp(-scaled * scaled)
                t = 1.0 / (1.0 + 0.3275911 * scaled)
                rest = (
                    t
                    * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
                    * fall
                )
                coulomb = own.w * other.w * inverse
                pull = coulomb * (rest + 1.128379167 * scaled * fall) * inverse * inverse
                fx += pull * dx
                fy += pull * dy
                fz += pull * dz
                energy += 0.5 * coulomb * rest
        st.sync()
    if i < n:
        st.atomic_add(force, 4 * i, fx)
        st.atomic_add(force, 4 * i + 1, fy)
        st.atomic_add(force, 4 * i + 2, fz)
        st.atomic_add(force, 4 * i + 3, energy)


PRIME, ROOT = 998244353, 3


@st.kernel
def residue_transform(x: Global[u32], root: Global[u32], out: Global[u32], BLOCK: Const, LOG: Const) -> None:
    """out = polynomials of two numbers a thread at the powers of a root of one modulo a prime, a block each; root: its powers."""
    part = st.shared(u32, 2 * BLOCK)
    t = st.thread.x
    first = st.block.x * 2 * BLOCK
    part[i32(st.brev(u32(t)) >> (32 - LOG))] = x[first + t]
    part[i32(st.brev(u32(t + BLOCK)) >> (32 - LOG))] = x[first + t + BLOCK]
    st.sync()
    half = 1
    while half <= BLOCK:
        k = t % half
        low = 2 * t - k
        w = root[k * (BLOCK // half)]
        a = part[low]
        b = u32(u64(part[low + half]) * u64(w) % PRIME)
        added = a + b
        if added >= PRIME:
            added -= PRIME
        part[low] = added
        part[low + half] = a - b if a >= b else a + PRIME - b
        st.sync()
        half *= 2
    out[first + t] = part[t]
    out[first + t + BLOCK] = part[t + BLOCK]


@st.kernel
def turn_volume(x: Global[f32], turn: Constant[f32], out: Global[f32], n: i32, wide: i32, high: i32, deep: i32) -> None:
    """out = a volume of n x n x n from another, by an affine map of positions and eight neighbours; the border continues outside."""
    i = st.block.x * st.block_dim.x + st.thread.x
    j = st.block.y * st.block_dim.y + st.thread.y
    k = st.block.z * st.block_dim.z + st.thread.z
    if i >= n or j >= n or k >= n:
        return
    u = turn[0] * f32(i) + turn[1] * f32(j) + turn[2] * f32(k) + turn[3]
    v = turn[4] * f32(i) + turn[5] * f32(j) + turn[6] * f32(k) + turn[7]
    w = turn[8] * f32(i) + turn[9] * f32(j) + turn[10] * f32(k) + turn[11]
    u = min(max(u, 0.0), f32(wide - 1))
    v = min(max(v, 0.0), f32(high - 1))
    w = min(max(w, 0.0), f32(deep - 1))
    x0, y0, z0 = i32(u), i32(v), i32(w)
    x1, y1, z1 = min(x0 + 1, wide - 1), min(y0 + 1, high - 1), min(z0 + 1, deep - 1)
    fx, fy, fz = u - f32(x0), v - f32(y0), w - f32(z0)
    c00 = x[(z0 * high + y0) * wide + x0] * (1.0 - fx) + x[(z0 * high + y0) * wide + x1] * fx
    c10 = x[(z0 * high + y1) * wide + x0] * (1.0 - fx) + x[(z0 * high + y1) * wide + x1] * fx
    c01 = x[(z1 * high + y0) * wide + x0] * (1.0 - fx) + x[(z1 * high + y0) * wide + x1] * fx
    c11 = x[(z1 * high + y1) * wide + x0] * (1.0 - fx) + x[(z1 * high + y1) * wide + x1] * fx
    near = c00 * (1.0 - fy) + c10 * fy
    far = c01 * (1.0 - fy) + c11 * fy
    out[(k * n + j) * n + i] = near * (1.0 - fz) + far * fz


QUADS = 35


def _columns(n: int) -> int:
    return 3 * n // 4 + 5


def _factors(n: int, block: object) -> Args:
    a, b = draw().normal(0, 1, (n * QUADS, 4)), draw().normal(0, 1, (_columns(n) * QUADS, 4))
    return {
        "a": a.astype(np.float32), "b": b.astype(np.float32), "out": zeros(n * _columns(n)), "m": n, "n": _columns(n),
        "quads": QUADS,
    }  # fmt: skip


def _product(args: Args) -> dict[str, Values]:
    return {"out": args["a"].reshape(args["m"], -1) @ args["b"].reshape(args["n"], -1).T}


PLANES = 24


def _waves(n: int, block: tuple[int, int]) -> Args:
    side, deep = n + 2 * REACH, PLANES + 2 * REACH
    now, before, speed = floats(3, deep * side * side)
    return {
        "now": now, "before": before, "speed": np.float32(0.1) * speed, "after": zeros(now.size), "wide": side, "high": side,
        "deep": deep, "W": block[0], "H": block[1],
    }  # fmt: skip


def _waved(args: Args) -> dict[str, Values]:
    shape = args["deep"], args["high"], args["wide"]
    now, before, speed = (args[name].reshape(shape) for name in ("now", "before", "speed"))
    inner = (slice(REACH, -REACH),) * 3
    bent = 3 * np.float32(TAPS[0]) * now[inner]
    for axis in range(3):
        for far in range(1, REACH + 1):
            for step in (-far, far):
                bent += np.float32(TAPS[far]) * np.roll(now, step, axis)[inner]
    after = np.zeros(shape, np.float32)
    after[inner] = 2 * now[inner] - before[inner] + speed[inner] * bent
    return {"after": after}


STATES, LEAST = 5, 3


def _medium(n: int, block: object) -> Args:
    cells = draw().choice(np.arange(STATES, dtype=np.uint8), n**3, p=(0.7, 0.1, 0.08, 0.07, 0.05))
    return {"cells": cells, "out": np.zeros_like(cells), "n": n, "states": STATES, "least": LEAST}


def _excited(args: Args) -> dict[str, Values]:
    cells = args["cells"].reshape((args["n"],) * 3)
    many = (cells == 1).astype(np.int8)
    for axis in range(3):
        many = np.roll(many, 1, axis) + many + np.roll(many, -1, axis)
    return {"out": np.where(cells > 0, (cells + 1) % STATES, many >= LEAST)}


def _cubes(n: int, block: tuple[int, int, int]) -> tuple[int, int, int]:
    return cover(n, block[0]), cover(n, block[1]), cover(n, block[2])


SHARES = 8


def _charges(n: int, block: int) -> Args:
    """Charges near the sites of a lattice, in any order."""
    random, box = draw(), (n / 50) ** (1 / 3)
    charge = random.choice((-1.0, 1.0), (n, 1)) * (0.5 + random.random((n, 1)))
    side = math.ceil(n ** (1 / 3) - 1e-9)
    site = np.stack(np.unravel_index(random.permutation(side**3)[:n], (side,) * 3), axis=1)
    place = (site + 0.25 + 0.5 * random.random((n, 3))) * (box / side)
    place = np.concatenate([place, charge], axis=1).astype(np.float32)
    return {
        "place": place, "force": zeros(4 * n), "n": n, "each": cover(n, SHARES), "box": box, "reach": 0.9, "alpha": 2.5,
        "BLOCK": block,
    }  # fmt: skip


def _pulled(args: Args) -> dict[str, Values]:
    place, charge, box = args["place"][:, :3], args["place"][:, 3].astype(float), np.float32(args["box"])
    force = np.zeros((args["n"], 4))
    for first in range(0, args["n"], 256):
        own = np.arange(first, min(first + 256, args["n"]))
        offset = place[own, None] - place
        offset -= box * np.rint(offset / box)
        square = (offset * offset).sum(axis=2)
        own_index, other = np.nonzero(
            (square < np.float32(args["reach"]) ** 2) & (own[:, None] != np.arange(args["n"]))
        )
        far, line = np.sqrt(square[own_index, other].astype(float)), offset[own_index, other]
        scaled = args["alpha"] * far
        fall, t = np.exp(-scaled * scaled), 1 / (1 + 0.3275911 * scaled)
        rest = fall * np.polyval((1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0), t)
        coulomb = charge[own[own_index]] * charge[other] / far
        pull = coulomb * (rest + 2 / math.sqrt(math.pi) * scaled * fall) / far**2
        for k in range(3):
            force[own, k] = np.bincount(own_index, pull * line[:, k], own.size)
        force[own, 3] = np.bincount(own_index, coulomb * rest / 2, own.size)
    return {"force": force.ravel()}


def _powers(count: int, base: int) -> Values:
    powers = [1]
    for _ in range(count - 1):
        powers.append(powers[-1] * base % PRIME)
    return np.array(powers, np.uint32)


def _polynomials(n: int, block: int) -> Args:
    x = draw().integers(0, PRIME, n * 2 * block, dtype=np.uint32)
    root = _powers(block, pow(ROOT, (PRIME - 1) // (2 * block), PRIME))
    return {"x": x, "root": root, "out": np.zeros_like(x), "BLOCK": block, "LOG": (2 * block).bit_length() - 1}


def _at_powers(x: Values) -> Values:
    """Rows at the powers of a root of one, from their halves of even and of odd places."""
    wide = x.shape[1]
    if wide == 1:
        return x
    even, odd = _at_powers(x[:, ::2]), _at_powers(x[:, 1::2])
    odd = odd * _powers(wide // 2, pow(ROOT, (PRIME - 1) // wide, PRIME)).astype(np.uint64) % PRIME
    return np.concatenate([even + odd, even + PRIME - odd], axis=1) % PRIME


def _transformed(args: Args) -> dict[str, Values]:
    return {"out": _at_powers(args["x"].reshape(-1, 2 * args["BLOCK"]).astype(np.uint64))}


def _scan(n: int, block: object) -> Args:
    wide, high, deep = n, n - 6, n - 11
    rotation = np.array([0.92, -0.31, 0.12, 5.3, 0.33, 0.89, -0.21, -4.1, -0.06, 0.24, 0.97, -2.7], np.float32)
    return {
        "x": floats(wide * high * deep), "turn": rotation, "out": zeros(n**3), "n": n, "wide": wide, "high": high, "deep": deep,
    }  # fmt: skip


def _resampled(args: Args) -> dict[str, Values]:
    sides, n = (args["wide"], args["high"], args["deep"]), args["n"]
    x, rotation = args["x"].reshape(sides[::-1]), args["turn"].reshape(3, 4).astype(float)
    k, j, i = np.indices((n, n, n))
    lows, highs, fractions = [], [], []
    for row, side in zip(rotation, sides, strict=True):
        place = np.clip(row[0] * i + row[1] * j + row[2] * k + row[3], 0, side - 1)
        low = place.astype(int)
        lows.append(low)
        highs.append(np.minimum(low + 1, side - 1))
        fractions.append(place - low)
    out = np.zeros((n, n, n))
    for corner in np.ndindex(2, 2, 2):
        at = [high if upper else low for upper, low, high in zip(corner, lows, highs, strict=True)]
        share = np.ones((n, n, n))
        for upper, fraction in zip(corner, fractions, strict=True):
            share *= fraction if upper else 1 - fraction
        out += share * x[at[2], at[1], at[0]]
    return {"out": out}


KERNELS = (
    ValidationKernel(
        matmul_rows_by_rows, lambda n, b: (cover(_columns(n), TILE), cover(n, TILE)), _factors, _product, (150, (16, 16)),
        (512, 2048), ((16, 16),),
    ),
    ValidationKernel(
        wave_eighth_order, lambda n, b: (n // b[0], n // b[1]), _waves, _waved, (64, (16, 16)), (128, 512),
        ((16, 16), (32, 8), (32, 16)),
    ),
    ValidationKernel(excitable_cells, _cubes, _medium, _excited, (24, (8, 8, 4)), (48, 160), ((8, 8, 4), (32, 4, 2), (16, 8, 8))),
    ValidationKernel(
        ewald_real_space, lambda n, b: (cover(n, b), SHARES), _charges, _pulled, (600, 64), (2000, 8000), (64, 128, 256),
        restored=("force",), unordered=("force",),
    ),
    ValidationKernel(residue_transform, lambda n, b: n, _polynomials, _transformed, (24, 128), (132, 2112), (64, 256, 1024)),
    ValidationKernel(turn_volume, _cubes, _scan, _resampled, (36, (8, 8, 4)), (64, 192), ((8, 8, 8), (32, 4, 2), (16, 16, 1))),
)  # fmt: skip
