"""Particles and cells: forces by lists, gases on triangles, nerves, particles by their cells, neighbours in the plane."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, float2, float4, i32, short2

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, zeros


@st.kernel
def neighbour_forces(
    place: Global[float4], near: Global[i32], force: Global[float4], n: i32, count: i32, cut: f32
) -> None:
    """force = of the neighbours in a list by a potential of powers 6 and 12; the j-th neighbours of all particles are contiguous."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    own = place[i]
    fx, fy, fz = 0.0, 0.0, 0.0
    j = 0
    while j < count:
        other = place[near[j * n + i]]
        dx, dy, dz = own.x - other.x, own.y - other.y, own.z - other.z
        r2 = dx * dx + dy * dy + dz * dz
        if r2 < cut:
            r2 = 1.0 / r2
            r6 = r2 * r2 * r2
            pull = r2 * r6 * (1.5 * r6 - 2.0)
            fx += dx * pull
            fy += dy * pull
            fz += dz * pull
        j += 1
    force[i] = float4(fx, fy, fz, 0.0)


@st.device
def pressure(density: f32, momentum: float2, energy: f32) -> f32:
    """Pressure of a perfect gas of two atoms a molecule."""
    return 0.4 * (energy - 0.5 * (momentum.x * momentum.x + momentum.y * momentum.y) / density)


@st.device
def across(density: f32, momentum: float2, energy: f32, normal: float2) -> tuple[f32, f32, f32, f32, f32]:
    """Flow through a side, and the speed of the fastest wave there."""
    p = pressure(density, momentum, energy)
    speed = (momentum.x * normal.x + momentum.y * normal.y) / density
    sound = st.sqrt(1.4 * p / density)
    return (
        density * speed, momentum.x * speed + p * normal.x, momentum.y * speed + p * normal.y, (energy + p) * speed,
        abs(speed) + sound,
    )  # fmt: skip


@st.kernel
def euler_flux(
    density: Global[f32], momentum: Global[float2], energy: Global[f32], near: Global[i32], normal: Global[float2],
    out: Global[float4], n: i32,
) -> None:  # fmt: skip
    """out = flow out of triangles of gas through their sides; -1 is a wall, -2 the free stream, else a neighbour."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    d, m, e = density[i], momentum[i], energy[i]
    a, b, c, w = 0.0, 0.0, 0.0, 0.0
    for side in st.unroll(range(3)):
        other, to = near[side * n + i], normal[side * n + i]
        if other == -1:
            p = pressure(d, m, e)
            b += p * to.x
            c += p * to.y
        else:
            od, om, oe = f32(1.4), float2(0.7, 0.0), f32(2.7)
            if other >= 0:
                od, om, oe = density[other], momentum[other], energy[other]
            own, theirs = across(d, m, e, to), across(od, om, oe, to)
            fast = max(own[4], theirs[4])
            a += 0.5 * (own[0] + theirs[0] - fast * (od - d))
            b += 0.5 * (own[1] + theirs[1] - fast * (om.x - m.x))
            c += 0.5 * (own[2] + theirs[2] - fast * (om.y - m.y))
            w += 0.5 * (own[3] + theirs[3] - fast * (oe - e))
    out[i] = float4(a, b, c, w)


@st.device
def rate(v: f64, scale: f64, shift: f64, width: f64) -> f64:
    """scale * (v + shift) / (1 - exp(-(v + shift) / width)), by its limit near 0."""
    u = v + shift
    if abs(u) < 1e-6:
        return scale * width
    return scale * u / (1.0 - st.exp(-u / width))


@st.kernel
def hodgkin_huxley(
    state: Global[f64], current: Global[f64], spikes: Global[i32], n: i32, step: f64, STEPS: Const
) -> None:
    """Nerve cells after STEPS steps of Euler's method: voltage and three gates, each in its own row; spikes: rises above 0."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    v, m, h, g = state[0, i], state[1, i], state[2, i], state[3, i]
    above, seen = v > 0.0, 0
    for _ in range(STEPS):
        sodium = 120.0 * m * m * m * h * (v - 50.0)
        potassium = 36.0 * g * g * g * g * (v + 77.0)
        dv = current[i] - sodium - potassium - 0.3 * (v + 54.4)
        dm = rate(v, 0.1, 40.0, 10.0) * (1.0 - m) - 4.0 * st.exp(-(v + 65.0) / 18.0) * m
        dh = 0.07 * st.exp(-(v + 65.0) / 20.0) * (1.0 - h) - h / (1.0 + st.exp(-(v + 35.0) / 10.0))
        dg = rate(v, 0.01, 55.0, 10.0) * (1.0 - g) - 0.125 * st.exp(-(v + 65.0) / 80.0) * g
        v += step * dv
        m += step * dm
        h += step * dh
        g += step * dg
        now = v > 0.0
        if now and not above:
            seen += 1
        above = now
    state[0, i], state[1, i], state[2, i], state[3, i] = v, m, h, g
    spikes[i] = seen


@st.kernel
def fill_cells(
    place: Global[float2], count: Global[i32], held: Global[i32], lost: Global[i32], n: i32, SIDE: Const, ROOM: Const
) -> None:
    """held = particles of each cell in any order, up to its capacity; count = number of particles, lost[0] = particles without a slot."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    p = place[i]
    cell = i32(p.y * f32(SIDE)) * SIDE + i32(p.x * f32(SIDE))
    slot = st.atomic_add(count, cell, 1)
    if slot < ROOM:
        held[cell * ROOM + slot] = i + 1
    else:
        st.atomic_add(lost, 0, 1)


@st.kernel
def kd_tree_nearest(tree: Global[short2], asked: Global[short2], out: Global[i32], n: i32, LEVELS: Const) -> None:
    """out = squared distances to the nearest of 2^LEVELS - 1 points; levels are split by x and y alternately, with a stack of branches."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    own = asked[i]
    px, py = i32(own.x), i32(own.y)
    stack = st.local(i32, LEVELS)
    gap = st.local(i32, LEVELS)
    best, top, node, depth = 2**31 - 1, 0, 1, 0
    while True:
        if node < 1 << LEVELS:
            q = tree[node]
            dx, dy = px - i32(q.x), py - i32(q.y)
            best = min(best, dx * dx + dy * dy)
            apart = dx if depth % 2 == 0 else dy
            side = 0 if apart < 0 else 1
            stack[top] = 2 * node + 1 - side
            gap[top] = apart * apart
            top += 1
            node = 2 * node + side
            depth += 1
            continue
        while top > 0 and gap[top - 1] >= best:
            top -= 1
        if top == 0:
            break
        top -= 1
        node = stack[top]
        depth = 31 - st.clz(node)
    out[i] = best


# ------------------------------------------------------------------ launches
NEIGHBOURS = 32


def _atoms(n: int, block: int) -> Args:
    """On a line that is bent; neighbours are those with near numbers."""
    spot = np.arange(n)
    place = np.stack([spot * 0.4, np.sin(spot), np.cos(spot * 0.7), 0 * spot], axis=1).astype(np.float32)
    shift = np.concatenate([np.arange(1, NEIGHBOURS // 2 + 1), -np.arange(1, NEIGHBOURS // 2 + 1)])
    near = ((spot + shift[:, None]) % n).astype(np.int32)
    return {
        "place": place,
        "near": near.ravel(),
        "force": np.zeros_like(place),
        "n": n,
        "count": NEIGHBOURS,
        "cut": 16.0,
    }


def _pulled(args: Args) -> dict[str, Values]:
    place = args["place"][:, :3].astype(float)
    force = np.zeros((args["n"], 4))
    for near in args["near"].reshape(NEIGHBOURS, -1):
        offset = place - place[near]
        r2 = (offset * offset).sum(axis=1, keepdims=True)
        force[:, :3] += np.where(r2 < args["cut"], offset * r2**-4 * (1.5 * r2**-3 - 2), 0)
    return {"force": force}


def _gas(n: int, block: int) -> Args:
    rng = draw()
    near = (np.arange(n) + rng.integers(-40, 41, (3, n))) % n
    near[rng.random((3, n)) < 0.05] = -1
    near[rng.random((3, n)) < 0.05] = -2
    angle = rng.random((3, n)) * 2 * np.pi
    return {
        "density": floats(n) + np.float32(1), "momentum": rng.normal(0, 0.3, (n, 2)).astype(np.float32), "energy": floats(n) + 2,
        "near": near.astype(np.int32).ravel(),
        "normal": np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(-1, 2).astype(np.float32),
        "out": np.zeros((n, 4), np.float32), "n": n,
    }  # fmt: skip


def _flows(state: Values, normal: Values) -> tuple[Values, Values, Values]:
    """Through sides, the fastest waves, and the pressures; a state is density, momentum and energy."""
    d, mx, my, e = state
    p = 0.4 * (e - 0.5 * (mx**2 + my**2) / d)
    speed = (mx * normal[0] + my * normal[1]) / d
    flow = np.stack([d * speed, mx * speed + p * normal[0], my * speed + p * normal[1], (e + p) * speed])
    return flow, abs(speed) + np.sqrt(1.4 * p / d), p


def _left(args: Args) -> dict[str, Values]:
    n, free = args["n"], np.array([[1.4], [0.7], [0.0], [2.7]])
    state = np.stack([args["density"], *args["momentum"].T, args["energy"]]).astype(float)
    out = np.zeros_like(state)
    for near, normal in zip(args["near"].reshape(3, n), args["normal"].reshape(3, n, 2), strict=True):
        other = np.where(near >= 0, state[:, near], free)
        own, fast, p = _flows(state, normal.T)
        theirs, faster, _ = _flows(other, normal.T)
        flow = 0.5 * (own + theirs - np.maximum(fast, faster) * (other - state))
        out += np.where(near == -1, p * np.stack([0 * p, *normal.T, 0 * p]), flow)
    return {"out": out.T}


STEPS = 50


def _cells(n: int, block: int) -> Args:
    state = np.stack([draw().uniform(-75, -40, n), *draw().random((3, n))])
    return {
        "state": state, "current": draw().uniform(0, 20, n), "spikes": zeros(n, np.int32), "n": n, "step": 0.005, "STEPS": STEPS,
    }  # fmt: skip


def _rate(v: Values, scale: float, shift: float, width: float) -> Values:
    return np.asarray(scale * (v + shift) / (1 - np.exp(-(v + shift) / width)))


def _excited(args: Args) -> dict[str, Values]:
    v, m, h, g = args["state"]
    spikes = np.zeros(args["n"], int)
    for _ in range(STEPS):
        before = v
        dv = args["current"] - 120 * m**3 * h * (v - 50) - 36 * g**4 * (v + 77) - 0.3 * (v + 54.4)
        dm = _rate(v, 0.1, 40, 10) * (1 - m) - 4 * np.exp(-(v + 65) / 18) * m
        dh = 0.07 * np.exp(-(v + 65) / 20) * (1 - h) - h / (1 + np.exp(-(v + 35) / 10))
        dg = _rate(v, 0.01, 55, 10) * (1 - g) - 0.125 * np.exp(-(v + 65) / 80) * g
        v, m, h, g = (old + args["step"] * d for old, d in ((v, dv), (m, dm), (h, dh), (g, dg)))
        spikes += (v > 0) & (before <= 0)
    return {"state": np.stack([v, m, h, g]), "spikes": spikes}


SIDE, CAPACITY = 32, 24


def _spread(n: int, block: int) -> Args:
    cells = zeros(SIDE * SIDE * CAPACITY, np.int32)
    return {
        "place": floats(n, 2), "count": zeros(SIDE * SIDE, np.int32), "held": cells, "lost": zeros(1, np.int32), "n": n, "SIDE": SIDE,
        "ROOM": CAPACITY,
    }  # fmt: skip


def _filled(args: Args) -> dict[str, Values]:
    x, y = (args["place"] * np.float32(SIDE)).astype(int).T
    count = np.bincount(y * SIDE + x, minlength=SIDE * SIDE)
    return {"count": count, "lost": np.array([np.maximum(count - CAPACITY, 0).sum()])}


LEVELS = 9


def _split(n: int, block: int) -> Args:
    points, tree = draw().integers(-4000, 4000, (2**LEVELS - 1, 2), np.int16), np.zeros((2**LEVELS, 2), np.int16)
    subsets = {1: points}
    for node in range(1, 2**LEVELS):
        points_of_node = subsets.pop(node)
        points_of_node = points_of_node[np.argsort(points_of_node[:, (node.bit_length() - 1) % 2], kind="stable")]
        half = len(points_of_node) // 2
        tree[node], subsets[2 * node], subsets[2 * node + 1] = (
            points_of_node[half],
            points_of_node[:half],
            points_of_node[half + 1 :],
        )
    query = draw().integers(-4000, 4000, (n, 2), np.int16)
    return {"tree": tree, "asked": query, "out": zeros(n, np.int32), "n": n, "LEVELS": LEVELS}


def _nearest(args: Args) -> dict[str, Values]:
    best = np.full(args["n"], 2**31 - 1)
    query = args["asked"].astype(int)
    for point in args["tree"][1:].astype(int):
        best = np.minimum(best, ((query - point) ** 2).sum(axis=1))
    return {"out": best}


KERNELS = (
    ValidationKernel(neighbour_forces, cover, _atoms, _pulled, (300, 128)),
    ValidationKernel(euler_flux, cover, _gas, _left, (500, 128), (1 << 15, 1 << 18), (64, 192, 512)),
    ValidationKernel(
        hodgkin_huxley, cover, _cells, _excited, (200, 64), (1 << 12, 1 << 15), (64, 128, 256), restored=("state",),
    ),
    ValidationKernel(fill_cells, cover, _spread, _filled, (3000, 128), unordered=("held",), restored=("count", "held", "lost")),
    ValidationKernel(kd_tree_nearest, cover, _split, _nearest, (300, 128), (1 << 13, 1 << 17), (64, 128, 256)),
)  # fmt: skip
