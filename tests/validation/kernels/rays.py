"""Photons in a slab, rays at a mesh, overlaps of rotated boxes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Global, Local, f32, float2, float4, i32, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, tiles, zeros

RINGS, LAYERS, ALBEDO, MEAN, THICK, EACH = 32, 64, 0.8, 10.0, 1.0, 2


WEAK, LUCK = 0.02, 0.125


class Xorwow(NamedTuple):
    """State of a generator of random numbers."""

    a: u32
    b: u32
    c: u32
    d: u32
    e: u32
    count: u32  # type: ignore[assignment]


@st.device
def next_uniform(state: Xorwow) -> tuple[Xorwow, f32]:
    """A number above 0 and below 1, by Marsaglia's xorwow."""
    t = state.a ^ state.a >> 2
    e = state.e ^ state.e << 4 ^ (t ^ t << 1)
    count = state.count + 362437
    word = e + count
    return Xorwow(state.b, state.c, state.d, state.e, e, count), (f32(word >> 9) + 0.5) * (1.0 / 8388608.0)


@st.kernel
def slab_photons(
    seed: Global[u32], absorbed: Global[f32], reflected: Global[f32], passed: Global[f32], n: i32, thick: f32, path: f32
) -> None:
    """absorbed by depth, reflected by distance, passed = weights of photons that scatter in a slab; weak ones are played for."""
    layer = st.shared(f32, LAYERS)
    ring = st.shared(f32, RINGS)
    through = st.shared(f32, 1)
    for k in range(st.thread.x, LAYERS, st.block_dim.x):
        layer[k] = 0.0
    if st.thread.x < RINGS:
        ring[st.thread.x] = 0.0
    if st.thread.x == 0:
        through[0] = 0.0
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        state = Xorwow(seed[i], seed[n + i], seed[2 * n + i], seed[3 * n + i], seed[4 * n + i], u32(6615241))
        for _ in range(EACH):
            x, y, z = 0.0, 0.0, 0.0
            u, v, w = 0.0, 0.0, 1.0
            weight = 1.0
            while True:
                state, chance = next_uniform(state)
                step = -st.log(chance) * path
                x += u * step
                y += v * step
                z += w * step
                if z < 0.0:
                    back = z / w
                    x -= u * back
                    y -= v * back
                    st.atomic_add(ring, min(i32(st.sqrt(x * x + y * y) * (RINGS / THICK)), RINGS - 1), weight)
                    break
                if z >= thick:
                    st.atomic_add(through, 0, weight)
                    break
                st.atomic_add(layer, min(i32(z / thick * LAYERS), LAYERS - 1), (1.0 - ALBEDO) * weight)
                weight *= ALBEDO
                if weight < WEAK:
                    state, chance = next_uniform(state)
                    if chance >= LUCK:
                        break
                    weight *= 1.0 / LUCK
                p, q, square = 0.0, 0.0, 2.0
                while square >= 1.0:
                    state, p = next_uniform(state)
                    state, q = next_uniform(state)
                    p, q = 2.0 * p - 1.0, 2.0 * q - 1.0
                    square = p * p + q * q
                long = 2.0 * st.sqrt(1.0 - square)
                u, v, w = p * long, q * long, 1.0 - 2.0 * square
    st.sync()
    for k in range(st.thread.x, LAYERS, st.block_dim.x):
        st.atomic_add(absorbed, k, layer[k])
    if st.thread.x < RINGS:
        st.atomic_add(reflected, st.thread.x, ring[st.thread.x])
    if st.thread.x == 0:
        st.atomic_add(passed, 0, through[0])


class Vector(NamedTuple):
    """A place or a direction."""

    x: f32
    y: f32
    z: f32


@st.device
def minus(a: float4, b: float4) -> Vector:
    """From b to a."""
    return Vector(a.x - b.x, a.y - b.y, a.z - b.z)


@st.device
def cross(a: Vector, b: Vector) -> Vector:
    """The vector product."""
    return Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


@st.device
def dot(a: Vector, b: Vector) -> f32:
    """The inner product."""
    return a.x * b.x + a.y * b.y + a.z * b.z


FAR = 1e30


@st.device
def enters(low: float4, high: float4, eye: Vector, inverse: Vector, best: f32) -> f32:
    """The distance at which a ray enters a box; FAR if it misses the box or enters it after `best`."""
    ax, bx = (low.x - eye.x) * inverse.x, (high.x - eye.x) * inverse.x
    ay, by = (low.y - eye.y) * inverse.y, (high.y - eye.y) * inverse.y
    az, bz = (low.z - eye.z) * inverse.z, (high.z - eye.z) * inverse.z
    first = max(max(min(ax, bx), min(ay, by)), max(min(az, bz), 0.0))
    last = min(min(max(ax, bx), max(ay, by)), min(max(az, bz), best))
    return first if first <= last * 1.00001 else FAR


@st.kernel
def mesh_rays(
    low: Global[float4], high: Global[float4], corner: Global[float4], out: Global[f32], width: i32, height: i32,
    eye_x: f32, eye_y: f32, eye_z: f32, LOG: Const, LEAF: Const,
) -> None:  # fmt: skip
    """out = how far the nearest triangle is along the ray of each pixel; a tree of boxes with a stack, the nearer child first."""
    px = st.block.x * st.block_dim.x + st.thread.x
    py = st.block.y * st.block_dim.y + st.thread.y
    if px >= width or py >= height:
        return
    stack = st.local(i32, LOG + 1)
    enter = st.local(f32, LOG + 1)
    eye = Vector(eye_x, eye_y, eye_z)
    ray = Vector((f32(px) + 0.5) / f32(width) - 0.5, (f32(py) + 0.5) / f32(height) - 0.4, -1.0)
    inverse = Vector(1.0 / ray.x, 1.0 / ray.y, 1.0 / ray.z)
    best = FAR
    node, top = 0, 0
    leaves = (1 << LOG) - 1
    while True:
        if node >= leaves:
            for k in range(LEAF):
                at = 3 * ((node - leaves) * LEAF + k)
                a = corner[at]
                one, two = minus(corner[at + 1], a), minus(corner[at + 2], a)
                normal = cross(ray, two)
                size = dot(one, normal)
                if abs(size) < 1e-12:
                    continue
                away = Vector(eye.x - a.x, eye.y - a.y, eye.z - a.z)
                u = dot(away, normal) / size
                if u < -1e-4 or u > 1.0001:
                    continue
                other = cross(away, one)
                v = dot(ray, other) / size
                if v < -1e-4 or u + v > 1.0001:
                    continue
                t = dot(two, other) / size
                if 0.0 < t < best:
                    best = t
        else:
            left, right = 2 * node + 1, 2 * node + 2
            to_left = enters(low[left], high[left], eye, inverse, best)
            to_right = enters(low[right], high[right], eye, inverse, best)
            if to_right < to_left:
                left, right = right, left
                to_left, to_right = to_right, to_left
            if to_left < FAR:
                if to_right < FAR:
                    stack[top], enter[top] = right, to_right
                    top += 1
                node = left
                continue
        while top > 0 and enter[top - 1] > best:
            top -= 1
        if top == 0:
            break
        top -= 1
        node = stack[top]
    out[py * width + px] = best


@st.device
def corners_of(box: float4, turn: f32, corner: Local[float2]) -> None:
    """The four corners of a rotated box with a centre, a width and a height."""
    s, c = st.sincos(turn)
    for k in st.unroll(range(4)):
        u = 0.5 * box.z if k == 0 or k == 3 else -0.5 * box.z
        v = 0.5 * box.w if k < 2 else -0.5 * box.w
        corner[k] = float2(box.x + u * c - v * s, box.y + u * s + v * c)


@st.kernel
def turned_overlaps(
    box: Global[float4], turn: Global[f32], other: Global[float4], other_turn: Global[f32], out: Global[f32], n: i32,
    m: i32,
) -> None:  # fmt: skip
    """out = intersection over union of each two rotated boxes; one is clipped at the sides of the other."""
    i = st.block.y * st.block_dim.y + st.thread.y
    j = st.block.x * st.block_dim.x + st.thread.x
    if i >= n or j >= m:
        return
    a, b = box[i], other[j]
    dx, dy = a.x - b.x, a.y - b.y
    reach = 0.5 * (st.sqrt(a.z * a.z + a.w * a.w) + st.sqrt(b.z * b.z + b.w * b.w))
    if dx * dx + dy * dy > reach * reach:
        out[i * m + j] = 0.0
        return
    shape = st.local(float2, 2, 8)
    side = st.local(float2, 4)
    corners_of(a, turn[i], shape[0, :])
    corners_of(b, other_turn[j], side)
    many = 4
    for k in range(4):
        now, then = k & 1, 1 - (k & 1)
        p, q = side[k], side[(k + 1) & 3]
        ex, ey = q.x - p.x, q.y - p.y
        kept = 0
        last = shape[now, many - 1] if many > 0 else p
        last_in = ex * (last.y - p.y) - ey * (last.x - p.x)
        for corner in range(many):
            here = shape[now, corner]
            inside = ex * (here.y - p.y) - ey * (here.x - p.x)
            if (inside >= 0.0) != (last_in >= 0.0):
                part = last_in / (last_in - inside)
                shape[then, kept] = float2(last.x + part * (here.x - last.x), last.y + part * (here.y - last.y))
                kept += 1
            if inside >= 0.0:
                shape[then, kept] = here
                kept += 1
            last, last_in = here, inside
        many = kept
        if many == 0:
            break
    twice = 0.0
    if many > 2:
        first = shape[0, 0]
        for corner in range(1, many - 1):
            p, q = shape[0, corner], shape[0, corner + 1]
            twice += (p.x - first.x) * (q.y - first.y) - (p.y - first.y) * (q.x - first.x)
    shared = 0.5 * max(twice, 0.0)
    out[i * m + j] = shared / (a.z * a.w + b.z * b.w - shared)


def _photons(n: int, block: int) -> Args:
    return {
        "seed": draw().integers(1, 2**32, 5 * n, dtype=np.uint32), "absorbed": zeros(LAYERS), "reflected": zeros(RINGS),
        "passed": zeros(1), "n": n, "thick": THICK, "path": 1 / MEAN,
    }  # fmt: skip


class _Uniforms:
    """Xorwow, a generator a photon."""

    def __init__(self, seed: Values) -> None:
        self.words = list(seed.copy())
        self.count = np.full(seed.shape[1], 6615241, np.uint32)

    def __call__(self, own: Values) -> Values:
        a, b, c, d, e = (word[own] for word in self.words)
        t = a ^ a >> 2
        fresh = e ^ e << 4 ^ (t ^ t << 1)
        for word, value in zip(self.words, (b, c, d, e, fresh), strict=True):
            word[own] = value
        self.count[own] += np.uint32(362437)
        result: Values = ((fresh + self.count[own] >> 9).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-23)
        return result


def _scattered(args: Args) -> dict[str, Values]:
    n, uniform, unit = args["n"], _Uniforms(args["seed"].reshape(5, -1)), np.float32(1)
    absorbed, reflected, passed = np.zeros(LAYERS), np.zeros(RINGS), 0.0
    for _ in range(EACH):
        own, weight = np.arange(n), np.ones(n, np.float32)
        place, direction = np.zeros((3, n), np.float32), np.zeros((3, n), np.float32)
        direction[2] = 1
        while len(own):
            step = -np.log(uniform(own)) * np.float32(args["path"])
            before = place[2]
            place = place + direction * step
            out, beyond = place[2] < 0, place[2] >= THICK
            to = before[out] / -direction[2, out]
            flat = place[:2, out] + direction[:2, out] * (to - step[out])
            ring = np.minimum((np.sqrt((flat**2).sum(axis=0)) * (RINGS / THICK)).astype(int), RINGS - 1)
            reflected += np.bincount(ring, weight[out], RINGS)
            passed += float(weight[beyond].sum(dtype=float))
            alive = ~(out | beyond)
            own, weight, place = own[alive], weight[alive], place[:, alive]
            layer = np.minimum((place[2] * LAYERS).astype(int), LAYERS - 1)
            absorbed += np.bincount(layer, (1 - ALBEDO) * weight, LAYERS)
            weight = weight * np.float32(ALBEDO)
            weak = np.flatnonzero(weight < np.float32(WEAK))
            lucky = uniform(own[weak]) < np.float32(LUCK)
            weight[weak] *= np.float32(1 / LUCK)
            alive = np.ones(len(own), bool)
            alive[weak[~lucky]] = False
            own, weight, place = own[alive], weight[alive], place[:, alive]
            p, q = np.zeros((2, len(own)), np.float32)
            left = np.arange(len(own))
            while len(left):
                p[left], q[left] = 2 * uniform(own[left]) - unit, 2 * uniform(own[left]) - unit
                left = left[p[left] ** 2 + q[left] ** 2 >= 1]
            square = p**2 + q**2
            long = 2 * np.sqrt(unit - square)
            direction = np.array([p * long, q * long, unit - 2 * square])
    return {"absorbed": absorbed, "reflected": reflected, "passed": np.array([passed])}


SIDE, DEEP, LEAF = 64, 11, 4


EYE = (0.03, 0.2, 2.5)


def _hills() -> Values:
    """Triangles of gentle hills, from -2 to 2 in the plane."""
    at = np.linspace(-2, 2, SIDE + 1)
    x, y = np.meshgrid(at, at)
    z = 0.08 * np.sin(5 * x + 1) * np.cos(4 * y) + 0.03 * np.sin(13 * y + 3 * x)
    corner = np.stack([x, y, z, np.zeros_like(x)], axis=-1).astype(np.float32)
    a, b, c, d = corner[:-1, :-1], corner[:-1, 1:], corner[1:, :-1], corner[1:, 1:]
    return np.stack([np.stack([a, b, c], axis=2), np.stack([d, c, b], axis=2)]).reshape(-1, 3, 4)


def _mesh(n: int, block: tuple[int, int]) -> Args:
    """Split by the longer side of the middles, down to leaves; a node's box contains its children's boxes."""
    triangles = _hills()
    order = np.arange(len(triangles))[None]
    middle = triangles.mean(axis=1)
    for _ in range(DEEP):
        own = middle[order]
        axis = np.ptp(own, axis=1)[:, :3].argmax(axis=1)
        along = np.take_along_axis(own, axis[:, None, None], axis=2)[..., 0]
        order = np.take_along_axis(order, along.argsort(axis=1, kind="stable"), axis=1)
        order = order.reshape(2 * len(order), -1)
    leaves = triangles[order]
    low, high = [leaves.min(axis=(1, 2))], [leaves.max(axis=(1, 2))]
    for _ in range(DEEP):
        low.append(np.minimum(low[-1][::2], low[-1][1::2]))
        high.append(np.maximum(high[-1][::2], high[-1][1::2]))
    return {
        "low": np.concatenate(low[::-1]), "high": np.concatenate(high[::-1]), "corner": leaves.reshape(-1, 4),
        "out": zeros(n * n), "width": n, "height": n, "eye_x": EYE[0], "eye_y": EYE[1], "eye_z": EYE[2], "LOG": DEEP,
        "LEAF": LEAF,
    }  # fmt: skip


def _distances(args: Args) -> dict[str, Values]:
    """Each triangle is rendered on the image, the nearest last."""
    n = args["width"]
    out = np.full((n, n), np.inf)
    eye = np.array(EYE)
    for triangle in args["corner"][:, :3].astype(float).reshape(-1, 3, 3) - eye:
        u, v = triangle[:, 0] / -triangle[:, 2], triangle[:, 1] / -triangle[:, 2]
        px, py = (u + 0.5) * n - 0.5, (v + 0.4) * n - 0.5
        x0, x1 = max(int(np.ceil(px.min() - 1e-6)), 0), min(int(px.max() + 1e-6), n - 1) + 1
        y0, y1 = max(int(np.ceil(py.min() - 1e-6)), 0), min(int(py.max() + 1e-6), n - 1) + 1
        if x0 >= x1 or y0 >= y1:
            continue
        x, y = np.arange(x0, x1)[None, :], np.arange(y0, y1)[:, None]
        inside = np.ones((y1 - y0, x1 - x0), bool)
        orientation = np.sign((px[1] - px[0]) * (py[2] - py[0]) - (py[1] - py[0]) * (px[2] - px[0]))
        for k in range(3):
            ex, ey = px[(k + 1) % 3] - px[k], py[(k + 1) % 3] - py[k]
            inside &= orientation * (ex * (y - py[k]) - ey * (x - px[k])) >= -1e-9 * n
        normal = np.cross(triangle[1] - triangle[0], triangle[2] - triangle[0])
        along = normal[0] * ((x + 0.5) / n - 0.5) + normal[1] * ((y + 0.5) / n - 0.4) - normal[2]
        far = np.where(inside, normal @ triangle[0] / along, np.inf)
        out[y0:y1, x0:x1] = np.minimum(out[y0:y1, x0:x1], far)
    return {"out": out}


def _rotated_boxes(n: int, block: tuple[int, int]) -> Args:
    random, args = draw(), {}
    for name, angle in (("box", "turn"), ("other", "other_turn")):
        sizes = 0.3 + 2 * random.random((n, 2))
        args[name] = np.concatenate([random.random((n, 2)) * 12, sizes], axis=1).astype(np.float32)
        args[angle] = (random.random(n, dtype=np.float32) - np.float32(0.5)) * np.float32(3)
    return {**args, "out": zeros(n * n), "n": n, "m": n}


def _outline(box: Values, angle: Values) -> Values:
    """Corners, to the left around."""
    u, v = box[:, 2, None] / 2 * np.array([1, -1, -1, 1]), box[:, 3, None] / 2 * np.array([1, 1, -1, -1])
    s, c = np.sin(angle)[:, None], np.cos(angle)[:, None]
    return np.stack([box[:, 0, None] + u * c - v * s, box[:, 1, None] + u * s + v * c], axis=-1)


def _shared_areas(args: Args) -> dict[str, Values]:
    """The outline of the intersection consists of segments of both outlines: of each side the segment inside the other box."""
    box, other = args["box"].astype(float), args["other"].astype(float)
    ours, theirs = _outline(box, args["turn"].astype(float)), _outline(other, args["other_turn"].astype(float))
    twice = np.zeros((len(box), len(other)))
    for sides, walls, transposed in ((ours, theirs, False), (theirs, ours, True)):
        for k in range(4):
            p, q = sides[:, None, k], sides[:, None, (k + 1) % 4]
            enter, leave = np.zeros((2, len(sides), len(walls)))
            leave += 1
            for w in range(4):
                a, b = walls[None, :, w], walls[None, :, (w + 1) % 4]
                edge = b - a
                at_p = edge[..., 0] * (p - a)[..., 1] - edge[..., 1] * (p - a)[..., 0]
                at_q = edge[..., 0] * (q - a)[..., 1] - edge[..., 1] * (q - a)[..., 0]
                with np.errstate(divide="ignore", invalid="ignore"):
                    fraction = at_p / (at_p - at_q)
                enter = np.where((at_p < 0) & (at_q >= 0), np.maximum(enter, fraction), enter)
                leave = np.where((at_p >= 0) & (at_q < 0), np.minimum(leave, fraction), leave)
                leave = np.where((at_p < 0) & (at_q < 0), -1, leave)
            area = np.maximum(leave - enter, 0) * (p[..., 0] * q[..., 1] - p[..., 1] * q[..., 0])
            twice += area.T if transposed else area
    size, other_size = box[:, 2] * box[:, 3], other[:, 2] * other[:, 3]
    return {"out": twice / 2 / (size[:, None] + other_size - twice / 2)}


KERNELS = (
    ValidationKernel(
        slab_photons, cover, _photons, _scattered, (1000, 128), (1 << 13, 1 << 17), (64, 128, 512),
        restored=("absorbed", "reflected", "passed"),
    ),
    ValidationKernel(mesh_rays, tiles, _mesh, _distances, (64, (8, 8)), (256, 1024), ((8, 8), (16, 16), (32, 8))),
    ValidationKernel(
        turned_overlaps, tiles, _rotated_boxes, _shared_areas, (100, (16, 8)), (256, 1024), ((16, 8), (32, 8), (16, 16)),
    ),
)  # fmt: skip
