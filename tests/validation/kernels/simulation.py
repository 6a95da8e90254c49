"""Simulations: heat, flow, fields, molecules, bodies in a tree."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, float2, float4, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, zeros

VX = (0, 1, 0, -1, 0, 1, -1, -1, 1)
VY = (0, 0, 1, 0, -1, 1, 1, -1, -1)
WEIGHT = (4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36)
DEPTH = 6
"""Levels of the tree below its root."""


@st.kernel
def hotspot_halo(heat: Global[f32], power: Global[f32], out: Global[f32], n: i32, SIDE: Const, STEPS: Const) -> None:
    """out = heat of a chip after STEPS steps; a block's tile loses a ring with each, and blocks overlap by as much."""
    here = st.shared(f32, SIDE, SIDE)
    there = st.shared(f32, SIDE, SIDE)
    x, y = st.thread.x, st.thread.y
    column = st.block.x * (SIDE - 2 * STEPS) + x - STEPS
    row = st.block.y * (SIDE - 2 * STEPS) + y - STEPS
    inside = 0 <= row < n and 0 <= column < n
    watts = 0.0
    if inside:
        here[y, x] = heat[row * n + column]
        watts = power[row * n + column]
    st.sync()
    for step in range(STEPS):
        valid = inside and step < x < SIDE - 1 - step and step < y < SIDE - 1 - step
        if valid:
            own = here[y, x]
            left = here[y, x - 1] if column > 0 else own
            right = here[y, x + 1] if column < n - 1 else own
            above = here[y - 1, x] if row > 0 else own
            below = here[y + 1, x] if row < n - 1 else own
            there[y, x] = own + 0.1 * (left + right - 2.0 * own) + 0.15 * (above + below - 2.0 * own) + 0.5 * watts
        st.sync()
        if valid:
            here[y, x] = there[y, x]
        st.sync()
    if inside and STEPS <= x < SIDE - STEPS and STEPS <= y < SIDE - STEPS:
        out[row * n + column] = here[y, x]


@st.kernel
def lattice_boltzmann(f: Global[f32], out: Global[f32], n: i32, rate: f32) -> None:
    """out = the nine flows of each cell of a torus after they moved and collided."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    held = st.registers(f32, 9)
    density, u, v = 0.0, 0.0, 0.0
    for k in st.unroll(range(9)):
        held[k] = f[(k * n + (row - VY[k] + n) % n) * n + (column - VX[k] + n) % n]
        density += held[k]
        u += VX[k] * held[k]
        v += VY[k] * held[k]
    u /= density
    v /= density
    square = 1.0 - 1.5 * (u * u + v * v)
    for k in st.unroll(range(9)):
        along = 3.0 * (VX[k] * u + VY[k] * v)
        rest = WEIGHT[k] * density * (square + along + 0.5 * along * along)
        out[(k * n + row) * n + column] = held[k] + rate * (rest - held[k])


@st.kernel
def fdtd_magnetic(ex: Global[f64], ey: Global[f64], hz: Global[f64]) -> None:
    """hz after half a step of a field in the plane, by the electric field at its four sides."""
    j = st.block.x * st.block_dim.x + st.thread.x
    i = st.block.y * st.block_dim.y + st.thread.y
    if i < hz.shape[0] and j < hz.shape[1]:
        hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])


@st.kernel
def lennard_jones_cells(
    place: Global[float4], start: Global[i32], force: Global[float4], n: i32, side: i32, cutoff: f32
) -> None:
    """force[i] = forces and energy of particle i, by those in its cell and the 26 around it."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    own = place[i]
    cx, cy, cz = i32(own.x), i32(own.y), i32(own.z)
    fx, fy, fz, energy = 0.0, 0.0, 0.0, 0.0
    for z in range(max(cz - 1, 0), min(cz + 2, side)):
        for y in range(max(cy - 1, 0), min(cy + 2, side)):
            for x in range(max(cx - 1, 0), min(cx + 2, side)):
                cell = (z * side + y) * side + x
                for k in range(start[cell], start[cell + 1]):
                    other = place[k]
                    dx, dy, dz = own.x - other.x, own.y - other.y, own.z - other.z
                    square = dx * dx + dy * dy + dz * dz
                    if k == i or square >= cutoff * cutoff:
                        continue
                    near = 0.09 / square
                    sixth = near * near * near
                    push = 24.0 * sixth * (2.0 * sixth - 1.0) / square
                    fx += push * dx
                    fy += push * dy
                    fz += push * dz
                    energy += 4.0 * sixth * (sixth - 1.0)
    force[i] = float4(fx, fy, fz, energy)


@st.device
def lorenz(x: f64, y: f64, z: f64) -> tuple[f64, f64, f64]:
    """The derivative of the system."""
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.6666666666666665 * z


@st.kernel
def lorenz_runge_kutta(start: Global[f64], out: Global[f64], n: i32, STEPS: Const, step: f64) -> None:
    """out = states of n Lorenz systems after STEPS steps of the fourth order; x, y and z are separate arrays."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        x, y, z = start[i], start[n + i], start[2 * n + i]
        half = 0.5 * step
        for _ in range(STEPS):
            ax, ay, az = lorenz(x, y, z)
            bx, by, bz = lorenz(x + half * ax, y + half * ay, z + half * az)
            cx, cy, cz = lorenz(x + half * bx, y + half * by, z + half * bz)
            dx, dy, dz = lorenz(x + step * cx, y + step * cy, z + step * cz)
            x += step / 6.0 * (ax + 2.0 * bx + 2.0 * cx + dx)
            y += step / 6.0 * (ay + 2.0 * by + 2.0 * cy + dy)
            z += step / 6.0 * (az + 2.0 * bz + 2.0 * cz + dz)
        out[i] = x
        out[n + i] = y
        out[2 * n + i] = z


@st.kernel
def tree_walk(place: Global[float2], nodes: Global[float4], out: Global[f32], n: i32, inner: i32, angle: f32) -> None:
    """out[i] = the potential at a place, by a quadtree with a stack; nodes: place, mass (0 of none) and width squared."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    stack = st.local(i32, 3 * DEPTH + 1)
    stack[0] = 0
    top, total, own = 1, 0.0, place[i]
    while top > 0:
        top -= 1
        at = stack[top]
        node = nodes[at]
        if node.z == 0.0:
            continue
        dx, dy = node.x - own.x, node.y - own.y
        square = dx * dx + dy * dy + 1e-4
        if at >= inner or node.w < angle * square:
            total += node.z * st.rsqrt(square)
        else:
            for child in range(4):
                stack[top] = 4 * at + 1 + child
                top += 1
    out[i] = total


# ------------------------------------------------------------------ launches
def _chip(n: int, block: tuple[int, int]) -> Args:
    return {
        "heat": floats(n * n), "power": floats(2, n * n)[1], "out": zeros(n * n), "n": n, "SIDE": block[0], "STEPS": 2,
    }  # fmt: skip


def _heated(args: Args) -> dict[str, Values]:
    n = args["n"]
    heat, power = args["heat"].reshape(n, n).astype(float), args["power"].reshape(n, n)
    for _ in range(args["STEPS"]):
        p = np.pad(heat, 1, mode="edge")
        across, down = p[1:-1, :-2] + p[1:-1, 2:], p[:-2, 1:-1] + p[2:, 1:-1]
        heat = 0.5 * heat + 0.1 * across + 0.15 * down + 0.5 * power
    return {"out": heat}


def _flows(n: int, block: object) -> Args:
    return {"f": (floats(9 * n * n) * np.float32(0.2) + 1) / 9, "out": zeros(9 * n * n), "n": n, "rate": 0.6}


def _flowed(args: Args) -> dict[str, Values]:
    n = args["n"]
    f = args["f"].reshape(9, n, n).astype(float)
    moved = np.stack([np.roll(f[k], (VY[k], VX[k]), (0, 1)) for k in range(9)])
    density = moved.sum(axis=0)
    u, v = (np.tensordot(way, moved, 1) / density for way in (VX, VY))
    along = np.multiply.outer(VX, u) + np.multiply.outer(VY, v)
    rest = np.array(WEIGHT)[:, None, None] * density * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u * u + v * v))
    return {"out": 0.4 * moved + 0.6 * rest}


def _field(n: int, block: object) -> Args:
    ex, ey, hz = draw().random((3, n + 1, n + 1))
    return {"ex": ex, "ey": ey, "hz": hz[:n, :n].copy()}


def _curled(args: Args) -> dict[str, Values]:
    n = len(args["hz"])
    return {"hz": args["hz"] - 0.7 * (np.diff(args["ex"])[:n, :n] + np.diff(args["ey"], axis=0)[:n, :n])}


PER_CELL = 5


def _molecules(side: int, block: int) -> Args:
    """Occupy some of the eight places in each cell, none too near to another, in order of their cells."""
    rng, n = draw(), PER_CELL * side**3
    site = np.sort(rng.permutation(8 * side**3)[:n])
    cell, corner_index = site // 8, site % 8
    corner = np.stack([cell % side, cell // side % side, cell // side**2], axis=1)
    half = np.stack([corner_index % 2, corner_index // 2 % 2, corner_index // 4], axis=1)
    place = np.zeros((n, 4), np.float32)
    place[:, :3] = corner + 0.25 + 0.5 * half + rng.uniform(-0.1, 0.1, (n, 3))
    start = np.searchsorted(cell, np.arange(side**3 + 1)).astype(np.int32)
    return {"place": place, "start": start, "force": zeros(n * 4).reshape(n, 4), "n": n, "side": side, "cutoff": 1.0}


def _forces(args: Args) -> dict[str, Values]:
    """Pairs of a cell and one of the 27 about it, of eight particles each at most."""
    side, n = args["side"], args["n"]
    slots = np.full((side + 2,) * 3 + (8,), n)  # a ring of empty cells around
    cell = args["place"][:, :3].astype(int)
    slots[(*(cell.T + 1)[::-1], np.arange(n) - args["start"][cell @ [1, side, side * side]])] = np.arange(n)
    place = np.vstack([args["place"][:, :3].astype(float), np.full(3, np.inf)])
    force, own = np.zeros((n, 4)), np.arange(n)
    for shift in np.ndindex(3, 3, 3):
        neighbours = slots[tuple((cell[:, ::-1] + shift).T)]
        offset = place[own, None] - place[neighbours]
        square = (offset**2).sum(axis=2)
        near = (square < 1) & (neighbours != own[:, None])
        offset, square = np.where(near[..., None], offset, 0), np.where(near, square, 1)
        sixth = np.where(near, 0.09**3 / square**3, 0)
        force[:, :3] += ((24 * sixth * (2 * sixth - 1) / square)[..., None] * offset).sum(axis=1)
        force[:, 3] += (4 * sixth * (sixth - 1)).sum(axis=1)
    return {"force": force}


def _systems(n: int, block: int) -> Args:
    return {"start": draw().normal(0, 5, 3 * n), "out": zeros(3 * n, np.float64), "n": n, "STEPS": 100, "step": 0.01}


def _integrated(args: Args) -> dict[str, Values]:
    def derivative(p: Values) -> Values:
        x, y, z = p
        return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    p, h = args["start"].reshape(3, -1), args["step"]
    for _ in range(args["STEPS"]):
        a = derivative(p)
        b = derivative(p + h / 2 * a)
        c = derivative(p + h / 2 * b)
        p = p + h / 6 * (a + 2 * b + 2 * c + derivative(p + h * c))
    return {"out": p.ravel()}


def _bodies(n: int, block: int) -> Args:
    """A complete tree over points in a few clusters, level by level; queries are in the tree's order."""
    rng, side = draw(), 1 << DEPTH
    points = np.clip(rng.normal(rng.random((8, 1, 2)), 0.1, (8, n // 8, 2)), 0, 0.9999).reshape(-1, 2)
    cell, levels = (points * side).astype(int), []
    order = sum(((cell[:, axis] >> bit) & 1) << (2 * bit + axis) for bit in range(DEPTH) for axis in (0, 1))
    sums = np.stack([np.bincount(order, w, side * side) for w in (*points.T, np.ones(len(points)))], axis=1)
    for level in range(DEPTH, -1, -1):
        middle = sums[:, :2] / np.maximum(sums[:, 2:], 1)
        levels.append(np.column_stack([middle, sums[:, 2], np.full(len(sums), 4.0**-level)]))
        sums = sums.reshape(-1, 4, 3).sum(axis=1) if level else sums
    return {
        "place": points[np.argsort(order, kind="stable")].astype(np.float32),
        "nodes": np.concatenate(levels[::-1]).astype(np.float32), "out": zeros(n), "n": n, "inner": (4**DEPTH - 1) // 3,
        "angle": 0.5,
    }  # fmt: skip


def _potentials(args: Args) -> dict[str, Values]:
    """All walks at once, a level at a time."""
    out, nodes, angle = np.zeros(args["n"]), args["nodes"], np.float32(args["angle"])
    point, node = np.arange(args["n"]), np.zeros(args["n"], int)
    while len(point):
        visited = nodes[node]
        dx, dy = (visited[:, :2] - args["place"][point]).T
        square = dx * dx + dy * dy + np.float32(1e-4)
        accepted = (node >= args["inner"]) | (visited[:, 3] < angle * square)
        out += np.bincount(point, accepted * visited[:, 2] / np.sqrt(square), args["n"])
        opened = ~accepted & (visited[:, 2] > 0)
        point, node = np.repeat(point[opened], 4), (4 * node[opened, None] + np.arange(1, 5)).ravel()
    return {"out": out}


SHAPES = ((32, 4), (16, 16), (32, 32))


KERNELS = (
    ValidationKernel(
        hotspot_halo, lambda n, b: tiles(n, (b[0] - 4, b[1] - 4)), _chip, _heated, (50, (16, 16)), (512, 2048),
        ((8, 8), (16, 16), (32, 32)),
    ),
    ValidationKernel(lattice_boltzmann, tiles, _flows, _flowed, (40, (32, 4)), (256, 1024), SHAPES),
    ValidationKernel(fdtd_magnetic, tiles, _field, _curled, (45, (32, 4)), (512, 2048), SHAPES, restored=("hz",)),
    ValidationKernel(
        lennard_jones_cells, lambda n, b: cover(PER_CELL * n**3, b), _molecules, _forces, (6, 128), (16, 32), (64, 128, 256),
    ),
    ValidationKernel(
        lorenz_runge_kutta, lambda n, b: min(cover(n, b), 4096 // (b // 32)), _systems, _integrated, (1000, 128),
        (1 << 15, 1 << 18), (64, 256, 512),
    ),
    ValidationKernel(tree_walk, cover, _bodies, _potentials, (1000, 128), (1 << 14, 1 << 17), (64, 128, 512)),
)  # fmt: skip
