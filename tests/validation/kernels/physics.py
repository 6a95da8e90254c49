"""Physics in steps: shallow water, gravity, charges on a mesh, atoms on springs."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float2, float4, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, zeros

WALL, OPEN, INFLOW = 0, 1, 2
"""The state beyond an edge of the water."""
DEEP, FAST = 1.5, 0.5
"""Depth and speed of water that flows in."""


@st.device
def beyond(kind: i32, inward: f32, depth: f32, normal: f32, tangent: f32) -> tuple[f32, f32, f32]:
    """Depth and momenta in a cell outside the domain; inward is the sign of the normal that points inside."""
    if kind == WALL:
        normal = -normal
    elif kind == INFLOW:
        depth = DEEP
        normal = inward * DEEP * FAST
        tangent = 0.0
    return depth, normal, tangent


@st.kernel
def shallow_water_step(
    h: Global[f32], hu: Global[f32], hv: Global[f32], new_h: Global[f32], new_hu: Global[f32], new_hv: Global[f32], n: i32,
    gravity: f32, ratio: f32, west: i32, east: i32, south: i32, north: i32,
) -> None:  # fmt: skip
    """One step of Lax and Friedrichs for the shallow water equations, with a boundary condition at each edge."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x >= n or y >= n:
        return
    at = y * n + x
    own_h, own_u, own_v = h[at], hu[at], hv[at]

    if x > 0:
        hw, uw, vw = h[at - 1], hu[at - 1], hv[at - 1]
    else:
        hw, uw, vw = beyond(west, 1.0, own_h, own_u, own_v)
    if x < n - 1:
        he, ue, ve = h[at + 1], hu[at + 1], hv[at + 1]
    else:
        he, ue, ve = beyond(east, -1.0, own_h, own_u, own_v)
    if y > 0:
        hs, us, vs = h[at - n], hu[at - n], hv[at - n]
    else:
        hs, vs, us = beyond(south, 1.0, own_h, own_v, own_u)
    if y < n - 1:
        hn, un, vn = h[at + n], hu[at + n], hv[at + n]
    else:
        hn, vn, un = beyond(north, -1.0, own_h, own_v, own_u)

    half = 0.5 * ratio
    flux_h = (ue - uw) + (vn - vs)
    flux_u = (ue * ue / he + 0.5 * gravity * he * he) - (uw * uw / hw + 0.5 * gravity * hw * hw)
    flux_u += un * vn / hn - us * vs / hs
    flux_v = (vn * vn / hn + 0.5 * gravity * hn * hn) - (vs * vs / hs + 0.5 * gravity * hs * hs)
    flux_v += ue * ve / he - uw * vw / hw
    new_h[at] = 0.25 * (hw + he + hs + hn) - half * flux_h
    new_hu[at] = 0.25 * (uw + ue + us + un) - half * flux_u
    new_hv[at] = 0.25 * (vw + ve + vs + vn) - half * flux_v


@st.device
def attract(own: float4, other: float4, pull: float4, softening: f32) -> float4:
    """The pull on one body with that of another added."""
    dx = other.x - own.x
    dy = other.y - own.y
    dz = other.z - own.z
    inverse = st.rsqrt(dx * dx + dy * dy + dz * dz + softening)
    strength = other.w * inverse * inverse * inverse
    return float4(pull.x + strength * dx, pull.y + strength * dy, pull.z + strength * dz, 0.0)


@st.device
def pushed(velocity: float4, pull: float4, dt: f32) -> float4:
    """A velocity after a step."""
    return float4(velocity.x + pull.x * dt, velocity.y + pull.y * dt, velocity.z + pull.z * dt, 0.0)


@st.device
def drifted(place: float4, velocity: float4, dt: f32) -> float4:
    """A place after a step."""
    return float4(place.x + velocity.x * dt, place.y + velocity.y * dt, place.z + velocity.z * dt, place.w)


@st.kernel
def gravity_leapfrog(
    place: Global[float4], velocity: Global[float4], new_place: Global[float4], new_velocity: Global[float4], n: i32, dt: f32,
    softening: f32, BLOCK: Const, UNROLL: Const,
) -> None:  # fmt: skip
    """Places and velocities of n bodies after a step under the gravity of all of them; a thread moves two bodies."""
    tile = st.shared(float4, BLOCK)
    first = st.block.x * 2 * BLOCK + st.thread.x
    second = first + BLOCK
    a, b = place[first], place[second]
    pull_a = float4(0.0, 0.0, 0.0, 0.0)
    pull_b = float4(0.0, 0.0, 0.0, 0.0)
    for start in range(0, n, BLOCK):
        tile[st.thread.x] = place[start + st.thread.x]
        st.sync()
        for k in range(0, BLOCK, UNROLL):
            for j in st.unroll(range(UNROLL)):
                other = tile[k + j]
                pull_a = attract(a, other, pull_a, softening)
                pull_b = attract(b, other, pull_b, softening)
        st.sync()
    speed_a = pushed(velocity[first], pull_a, dt)
    speed_b = pushed(velocity[second], pull_b, dt)
    new_velocity[first], new_place[first] = speed_a, drifted(a, speed_a, dt)
    new_velocity[second], new_place[second] = speed_b, drifted(b, speed_b, dt)


@st.kernel
def deposit_charge(particle: Global[float2], density: Global[f32], n: i32, side: i32, charge: f32) -> None:
    """density += the charge of each particle, shared among the four nodes around it on a periodic mesh."""
    stride = st.block_dim.x * st.grid_dim.x
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, stride):
        p = particle[i]
        left, low = i32(st.floor(p.x)), i32(st.floor(p.y))
        fx, fy = p.x - f32(left), p.y - f32(low)
        right, high = left + 1, low + 1
        if right == side:
            right = 0
        if high == side:
            high = 0
        st.atomic_add(density, low * side + left, charge * (1.0 - fx) * (1.0 - fy))
        st.atomic_add(density, low * side + right, charge * fx * (1.0 - fy))
        st.atomic_add(density, high * side + left, charge * (1.0 - fx) * fy)
        st.atomic_add(density, high * side + right, charge * fx * fy)


@st.kernel
def bonded_verlet(
    now: Global[float4], before: Global[float4], after: Global[float4], start: Global[i32], partner: Global[i32],
    length: Global[f32], n: i32, stiffness: f32, damping: f32, gravity: f32, dt: f32,
) -> None:  # fmt: skip
    """after = places of atoms on springs by a Verlet step over a floor at 0; w is an inverse mass, 0 for a fixed atom."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    p = now[i]
    if p.w == 0.0:
        after[i] = p
        return
    fx, fy, fz = 0.0, 0.0, 0.0
    for bond in range(start[i], start[i + 1]):
        q = now[partner[bond]]
        dx, dy, dz = q.x - p.x, q.y - p.y, q.z - p.z
        apart = st.sqrt(dx * dx + dy * dy + dz * dz)
        tension = stiffness * (apart - length[bond]) / max(apart, 1e-6)
        fx += tension * dx
        fy += tension * dy
        fz += tension * dz
    old = before[i]
    step = dt * dt * p.w
    x = p.x + (p.x - old.x) * damping + fx * step
    y = p.y + (p.y - old.y) * damping + fy * step
    z = p.z + (p.z - old.z) * damping + fz * step - gravity * dt * dt
    if z < 0.0:
        z = -0.5 * z
    after[i] = float4(x, y, z, p.w)


# ------------------------------------------------------------------ launches
def _water(n: int, block: object) -> Args:
    depth, along, across = floats(3, n * n)
    return {
        "h": 1 + depth, "hu": along - np.float32(0.5), "hv": across - np.float32(0.5), "new_h": zeros(n * n),
        "new_hu": zeros(n * n), "new_hv": zeros(n * n), "n": n, "gravity": 9.81, "ratio": 0.1, "west": INFLOW, "east": OPEN,
        "south": WALL, "north": WALL,
    }  # fmt: skip


def _stepped(args: Args) -> dict[str, Values]:
    n, g, half = args["n"], np.float32(args["gravity"]), np.float32(args["ratio"] / 2)
    h, u, v = (np.pad(args[name].reshape(n, n), 1, mode="edge") for name in ("h", "hu", "hv"))
    h[:, 0], u[:, 0], v[:, 0] = DEEP, DEEP * FAST, 0
    v[0], v[-1] = -v[0], -v[-1]

    def sides(x: Values) -> tuple[Values, Values, Values, Values]:
        return x[1:-1, :-2], x[1:-1, 2:], x[:-2, 1:-1], x[2:, 1:-1]

    def flow(x: Values, y: Values) -> Values:
        west, east, _, _ = sides(x)
        _, _, south, north = sides(y)
        return half * (east - west + north - south)

    pressure, cross = g / 2 * h * h, u * v / h
    flows = flow(u, v), flow(u * u / h + pressure, cross), flow(cross, v * v / h + pressure)
    new = [sum(sides(x)) / 4 - f for x, f in zip((h, u, v), flows, strict=True)]
    return {"new_h": new[0], "new_hu": new[1], "new_hv": new[2]}


def _bodies(n: int, block: int) -> Args:
    places, speeds = floats(n, 4), floats(n, 4) - np.float32(0.5)
    speeds[:, 3] = 0
    return {
        "place": places, "velocity": speeds, "new_place": np.zeros_like(places), "new_velocity": np.zeros_like(places), "n": n,
        "dt": 0.001, "softening": 0.01, "BLOCK": block, "UNROLL": 8,
    }  # fmt: skip


def _leapt(args: Args) -> dict[str, Values]:
    place, velocity, dt = args["place"], args["velocity"].copy(), args["dt"]
    for some in np.array_split(np.arange(args["n"]), max(args["n"] // 256, 1)):
        offset = [place[None, :, axis] - place[some, None, axis] for axis in range(3)]
        square = sum(one * one for one in offset) + np.float32(args["softening"])
        strength = place[:, 3] / (square * np.sqrt(square))
        for axis in range(3):
            velocity[some, axis] += dt * (strength * offset[axis]).sum(axis=1)
    moved = place + np.float32(dt) * velocity
    return {"new_velocity": velocity, "new_place": moved}


SIDE = 256


def _plasma(n: int, block: int) -> Args:
    middle = draw().random((8, 2)) * SIDE
    places = (middle[draw().integers(0, 8, n)] + draw().normal(0, 20, (n, 2))) % SIDE
    places = np.minimum(places.astype(np.float32), np.nextafter(np.float32(SIDE), np.float32(0)))
    return {"particle": places, "density": zeros(SIDE * SIDE), "n": n, "side": SIDE, "charge": 0.25}


def _deposited(args: Args) -> dict[str, Values]:
    p = args["particle"].astype(np.float64)
    low = np.floor(p).astype(int)
    fraction = p - low
    density = np.zeros(SIDE * SIDE)
    for dx in (0, 1):
        for dy in (0, 1):
            share = np.abs(1 - dx - fraction[:, 0]) * np.abs(1 - dy - fraction[:, 1])
            at = (low[:, 1] + dy) % SIDE * SIDE + (low[:, 0] + dx) % SIDE
            density += np.bincount(at, share * args["charge"], SIDE * SIDE)
    return {"density": density}


def _springs(n: int, block: int) -> Args:
    random = draw()
    ends = np.concatenate(
        [
            np.stack([np.arange(n - 1), np.arange(1, n)]),
            np.stack([np.arange(n), (np.arange(n) + random.integers(2, 100, n)) % n])[:, random.random(n) < 0.6],
        ],
        axis=1,
    )
    both = np.concatenate([ends, ends[::-1]], axis=1)
    both = both[:, np.argsort(both[0], kind="stable")]
    now = np.concatenate([random.random((n, 3)) * 4, random.choice((0.0, 0.5, 1.0), (n, 1), p=(0.1, 0.4, 0.5))], axis=1)
    before = now + random.normal(0, 0.01, (n, 4))
    return {
        "now": now.astype(np.float32), "before": before.astype(np.float32), "after": np.zeros((n, 4), np.float32),
        "start": np.searchsorted(both[0], np.arange(n + 1)).astype(np.int32), "partner": both[1].astype(np.int32),
        "length": random.random(both.shape[1], dtype=np.float32) + 1, "n": n, "stiffness": 50.0, "damping": 0.99,
        "gravity": 9.81, "dt": 0.01,
    }  # fmt: skip


def _sprung(args: Args) -> dict[str, Values]:
    n, dt = args["n"], args["dt"]
    now, before = args["now"].astype(np.float64), args["before"].astype(np.float64)
    own = np.repeat(np.arange(n), np.diff(args["start"]))
    offset = now[args["partner"], :3] - now[own, :3]
    long = np.sqrt((offset * offset).sum(axis=1))
    tension = args["stiffness"] * (long - args["length"]) / np.maximum(long, 1e-6)
    after = now.copy()
    for axis in range(3):
        force = np.bincount(own, tension * offset[:, axis], n)
        speed = (now[:, axis] - before[:, axis]) * args["damping"]
        after[:, axis] += speed + force * dt * dt * now[:, 3]
    after[:, 2] -= args["gravity"] * dt * dt
    after[:, 2] = np.where(after[:, 2] < 0, -0.5 * after[:, 2], after[:, 2])
    return {"after": np.where(now[:, 3:] == 0, now, after)}


KERNELS = (
    ValidationKernel(
        shallow_water_step, tiles, _water, _stepped, (150, (32, 8)), (512, 2048), ((16, 16), (32, 8), (64, 4)),
    ),
    ValidationKernel(
        gravity_leapfrog, lambda n, b: n // (2 * b), _bodies, _leapt, (8192, 128), (2048, 8192), (64, 128, 256),
    ),
    ValidationKernel(
        deposit_charge, lambda n, b: min(cover(n, b), 1056), _plasma, _deposited, (20000, 256), (1 << 17, 1 << 21),
        (128, 256, 512), restored=("density",), unordered=("density",),
    ),
    ValidationKernel(bonded_verlet, cover, _springs, _sprung, (10000, 128), (1 << 16, 1 << 20), (64, 256, 1024)),
)  # fmt: skip
