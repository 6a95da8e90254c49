"""Physics in steps: gravity, charges on a mesh."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float2, float4, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, zeros


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


# ------------------------------------------------------------------ launches


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


KERNELS = (
    ValidationKernel(
        gravity_leapfrog, lambda n, b: n // (2 * b), _bodies, _leapt, (8192, 128), (2048, 8192), (64, 128, 256),
    ),
    ValidationKernel(
        deposit_charge, lambda n, b: min(cover(n, b), 1056), _plasma, _deposited, (20000, 256), (1 << 17, 1 << 21),
        (128, 256, 512), restored=("density",), unordered=("density",),
    ),
)  # fmt: skip
