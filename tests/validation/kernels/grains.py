"""Grains in contact, outbreaks of a disease, quantised rows, raw images."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, Shared, char4, f32, float4, half2, i8, i32, u8, u16, u32, uchar4

from .kernel import Args, ValidationKernel, Values, cover, draw, words, zeros


@st.kernel
def grain_contacts(
    place: Global[float4], speed: Global[float4], spin: Global[float4], first: Global[i32], force: Global[float4],
    torque: Global[float4], n: i32, side: i32, inverse: f32, stiffness: f32, damping: f32, drag: f32, friction: f32,
) -> None:  # fmt: skip
    """force and torque on grains (w: radius) by the grains in contact, with damping and friction; grains are in order of cells."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    own, own_speed, own_spin = place[i], speed[i], spin[i]
    cell_x, cell_y, cell_z = i32(own.x * inverse), i32(own.y * inverse), i32(own.z * inverse)
    fx, fy, fz, tx, ty, tz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for z in range(max(cell_z - 1, 0), min(cell_z + 2, side)):
        for y in range(max(cell_y - 1, 0), min(cell_y + 2, side)):
            row = (z * side + y) * side
            for j in range(first[row + max(cell_x - 1, 0)], first[row + min(cell_x + 1, side - 1) + 1]):
                if j == i:
                    continue
                other = place[j]
                dx, dy, dz = other.x - own.x, other.y - own.y, other.z - own.z
                square = dx * dx + dy * dy + dz * dz
                reach = own.w + other.w
                if square >= reach * reach or square == 0.0:
                    continue
                distance = st.sqrt(square)
                overlap = reach - distance
                nx, ny, nz = dx / distance, dy / distance, dz / distance
                moves, turns = speed[j], spin[j]
                sx = own_spin.x * own.w + turns.x * other.w
                sy = own_spin.y * own.w + turns.y * other.w
                sz = own_spin.z * own.w + turns.z * other.w
                vx = own_speed.x - moves.x + (sy * nz - sz * ny)
                vy = own_speed.y - moves.y + (sz * nx - sx * nz)
                vz = own_speed.z - moves.z + (sx * ny - sy * nx)
                closing = vx * nx + vy * ny + vz * nz
                press = stiffness * overlap * st.sqrt(overlap) * max(1.0 + damping * closing, 0.0)
                vx, vy, vz = vx - closing * nx, vy - closing * ny, vz - closing * nz
                slip = st.sqrt(vx * vx + vy * vy + vz * vz)
                hold = drag if drag * slip < friction * press else friction * press / slip
                gx, gy, gz = -hold * vx, -hold * vy, -hold * vz
                fx += gx - press * nx
                fy += gy - press * ny
                fz += gz - press * nz
                tx += own.w * (ny * gz - nz * gy)
                ty += own.w * (nz * gx - nx * gz)
                tz += own.w * (nx * gy - ny * gx)
    force[i] = float4(fx, fy, fz, 0.0)
    torque[i] = float4(tx, ty, tz, 0.0)


REACH = 1.0


def _heap(n: int, block: int) -> Args:
    """Grains of radii 0.3 to 0.5 on a lattice that was shaken; cells are as wide as the largest grain."""
    random = draw()
    lattice = next(m for m in range(1, n + 1) if m**3 >= n)
    at = np.stack(np.unravel_index(np.sort(random.permutation(lattice**3)[:n]), (lattice,) * 3), axis=1)
    place = np.empty((n, 4), np.float32)
    place[:, :3] = (at + 0.5) * 0.82 + random.uniform(-0.12, 0.12, (n, 3))
    place[:, 3] = random.uniform(0.3, 0.5, n)
    side = int(place[:, :3].max() / REACH) + 1
    x, y, z = (place[:, :3] * np.float32(1 / REACH)).astype(int).T
    cell = (z * side + y) * side + x
    order = np.argsort(cell, kind="stable")
    speed, spin = np.zeros((2, n, 4), np.float32)
    speed[:, :3], spin[:, :3] = random.standard_normal((n, 3)), 2 * random.standard_normal((n, 3))
    return {
        "place": place[order], "speed": speed, "spin": spin,
        "first": np.searchsorted(cell[order], np.arange(side**3 + 1)).astype(np.int32), "force": np.zeros((n, 4), np.float32),
        "torque": np.zeros((n, 4), np.float32), "n": n, "side": side, "inverse": 1 / REACH, "stiffness": 1000.0,
        "damping": 0.2, "drag": 20.0, "friction": 0.4,
    }  # fmt: skip


def _touching(place: Values) -> tuple[Values, Values]:
    """Return both orders of touching pairs: strips along x, one by y and z, are searched within reach along x."""
    place = place.astype(float)
    key = (np.floor(place[:, 1] / REACH) * 2**12 + np.floor(place[:, 2] / REACH)) * 2**12 + place[:, 0]
    order = np.argsort(key)
    pairs = []
    for shift in (0, 2**12, 2**24 - 2**12, 2**24, 2**24 + 2**12):
        low, high = (np.searchsorted(key[order], key + shift + far) for far in (-REACH, REACH))
        for k in range(int((high - low).max())):
            i = np.flatnonzero(low + k < high)
            j = order[low[i] + k]
            near = ((place[i, :3] - place[j, :3]) ** 2).sum(axis=1) < (place[i, 3] + place[j, 3]) ** 2
            near &= (j > i) | (shift > 0)
            pairs.append((i[near], j[near]))
    i, j = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    return np.concatenate([i, j]), np.concatenate([j, i])


def _pushed(args: Args) -> dict[str, Values]:
    place, speed, spin = (args[name].astype(float) for name in ("place", "speed", "spin"))
    i, j = _touching(args["place"])
    offset = place[j, :3] - place[i, :3]
    distance = np.linalg.norm(offset, axis=1, keepdims=True)
    normal = offset / distance
    own, other = place[i, 3:], place[j, 3:]
    slide = speed[i, :3] - speed[j, :3] + np.cross(spin[i, :3] * own + spin[j, :3] * other, normal)
    closing = (slide * normal).sum(axis=1, keepdims=True)
    press = args["stiffness"] * (own + other - distance) ** 1.5 * np.maximum(1 + args["damping"] * closing, 0)
    slide -= closing * normal
    slip = np.linalg.norm(slide, axis=1, keepdims=True)
    tangent = -np.minimum(args["drag"] * slip, args["friction"] * press) * slide / np.maximum(slip, 1e-30)
    force, torque = np.zeros((2, *place.shape))
    for axis in range(3):
        force[:, axis] = np.bincount(i, (tangent - press * normal)[:, axis], len(place))
        torque[:, axis] = np.bincount(i, (own * np.cross(normal, tangent))[:, axis], len(place))
    return {"force": force, "torque": torque}


@st.device
def xorshift(state: u32) -> u32:
    """The next of Marsaglia's numbers."""
    state ^= state << 13
    state ^= state >> 17
    return state ^ state << 5


@st.device
def uniform(state: u32) -> f32:
    """A number above 0 and up to 1."""
    return f32((state >> 8) + 1) * (1.0 / 16777216)


@st.kernel
def epidemic_outbreaks(
    seed: Global[u32], counts: Global[i32], duration: Global[f32], runs: i32, people: i32, contact: f32, recovery: f32
) -> None:
    """duration = length of an outbreak by Gillespie's method, event by event; counts = outbreaks by number of infected people."""
    run = st.block.x * st.block_dim.x + st.thread.x
    if run >= runs:
        return
    state = seed[run]
    healthy, infected = people - 1, 1
    time = 0.0
    while infected > 0:
        spread = contact * f32(healthy) * f32(infected)
        total = spread + recovery * f32(infected)
        state = xorshift(state)
        time -= st.log(uniform(state)) / total
        state = xorshift(state)
        if uniform(state) * total <= spread:
            healthy -= 1
            infected += 1
        else:
            infected -= 1
    duration[run] = time
    st.atomic_add(counts, people - healthy, 1)


PEOPLE = 200


def _villages(n: int, block: int) -> Args:
    return {
        "seed": words(n) | np.uint32(1), "counts": zeros(PEOPLE + 1, np.int32), "duration": zeros(n), "runs": n,
        "people": PEOPLE, "contact": 1.4 / PEOPLE, "recovery": 1.0,
    }  # fmt: skip


def _ended(args: Args) -> dict[str, Values]:
    """All active runs take a step together, in single precision, because the next event depends on it."""
    n, half = args["runs"], np.float32
    contact, recovery = half(args["contact"]), half(args["recovery"])
    state = args["seed"].copy()

    def uniform() -> Values:
        for left, shift in ((True, 13), (False, 17), (True, 5)):
            state[:] ^= state << np.uint32(shift) if left else state >> np.uint32(shift)
        whole: Values = ((state >> np.uint32(8)) + np.uint32(1)).astype(half)
        return whole / half(2**24)

    run, healthy, infected = np.arange(n), np.full(n, half(PEOPLE - 1)), np.ones(n, half)
    time, duration, counts = np.zeros(n), np.zeros(n), np.zeros(PEOPLE + 1, int)
    while run.size:
        spread = contact * healthy * infected
        total = spread + recovery * infected
        time -= np.log(uniform()) / total
        caught = uniform() * total <= spread
        healthy, infected = healthy - caught, infected + np.where(caught, half(1), half(-1))
        over = infected == 0
        duration[run[over]] = time[over]
        counts += np.bincount(PEOPLE - healthy[over].astype(int), minlength=PEOPLE + 1)
        run, healthy, infected, time, state = (x[~over] for x in (run, healthy, infected, time, state))
    return {"counts": counts, "duration": duration}


@st.kernel
def quantise_rows(
    x: Global[half2], smooth: Global[f32], out: Global[char4], scale: Global[f32], COLUMNS: Const, BLOCK: Const
) -> None:
    """out = rows of halves, smoothed by column, as whole numbers up to 127; scale = value of one unit. A block a row."""
    largest = st.shared(f32, BLOCK // 32)
    row = st.block.x
    most = 0.0
    for k in range(st.thread.x, COLUMNS // 2, BLOCK):
        pair = x[row * (COLUMNS // 2) + k]
        most = max(most, max(abs(f32(pair.x) * smooth[2 * k]), abs(f32(pair.y) * smooth[2 * k + 1])))
    for step in (16, 8, 4, 2, 1):
        most = max(most, st.shuffle_xor(most, step))
    if st.lane == 0:
        largest[st.warp] = most
    st.sync()
    for w in range(BLOCK // 32):
        most = max(most, largest[w])
    factor = 127.0 / most if most > 0.0 else 0.0
    if st.thread.x == 0:
        scale[row] = most / 127.0
    for k in range(st.thread.x, COLUMNS // 4, BLOCK):
        low, high = x[row * (COLUMNS // 2) + 2 * k], x[row * (COLUMNS // 2) + 2 * k + 1]
        out[row * (COLUMNS // 4) + k] = char4(
            i8(st.rint(f32(low.x) * smooth[4 * k] * factor)),
            i8(st.rint(f32(low.y) * smooth[4 * k + 1] * factor)),
            i8(st.rint(f32(high.x) * smooth[4 * k + 2] * factor)),
            i8(st.rint(f32(high.y) * smooth[4 * k + 3] * factor)),
        )


COLUMNS = 1720


def _activations(n: int, block: int) -> Args:
    """A few columns are far larger than the others, and a few rows are nought."""
    random = draw()
    x = random.standard_normal((n, COLUMNS), np.float32)
    x[:, ::97] *= 20
    x[::50] = 0
    smooth = np.where(np.arange(COLUMNS) % 97 == 0, 0.1, random.uniform(0.5, 1.5, COLUMNS)).astype(np.float32)
    return {
        "x": x.astype(np.float16).reshape(-1, 2), "smooth": smooth, "out": np.zeros((n * COLUMNS // 4, 4), np.int8),
        "scale": zeros(n), "COLUMNS": COLUMNS, "BLOCK": block,
    }  # fmt: skip


def _quantised(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, COLUMNS).astype(np.float32) * args["smooth"]
    most = np.abs(x).max(axis=1, keepdims=True)
    factor = np.divide(np.float32(127), most, out=np.zeros_like(most), where=most > 0)
    return {"out": np.rint(x * factor).astype(np.int8), "scale": most[:, 0] / np.float32(127)}


@st.device
def mirrored(at: i32, n: i32) -> i32:
    """An index beyond an edge, reflected at the outermost pixel."""
    at = -at if at < 0 else at
    return 2 * (n - 1) - at if at >= n else at


@st.device
def to_byte(sixteenths: i32) -> u8:
    """The upper eight of twelve bits, rounded and within bounds."""
    return u8(min(max((sixteenths + 8) >> 4, 0), 4095) >> 4)


@st.device
def along(tile: Shared[u16], y: i32, x: i32, dy: i32, dx: i32) -> tuple[i32, i32]:
    """The sums of both neighbours one and two pixels away."""
    near = i32(tile[y - dy, x - dx]) + i32(tile[y + dy, x + dx])
    return near, i32(tile[y - 2 * dy, x - 2 * dx]) + i32(tile[y + 2 * dy, x + 2 * dx])


@st.kernel
def demosaic_bayer(
    raw: Global[u16], out: Global[uchar4], width: i32, height: i32, BLOCK_X: Const, BLOCK_Y: Const
) -> None:
    """out = red, green and blue of the raw pixels of a sensor of twelve bits, by the 5 x 5 filters of Malvar, He and Cutler."""
    tile = st.shared(u16, BLOCK_Y + 4, BLOCK_X + 4)
    left, top = st.block.x * BLOCK_X, st.block.y * BLOCK_Y
    for row in range(st.thread.y, BLOCK_Y + 4, BLOCK_Y):
        for column in range(st.thread.x, BLOCK_X + 4, BLOCK_X):
            tile[row, column] = raw[mirrored(top + row - 2, height) * width + mirrored(left + column - 2, width)]
    st.sync()
    x, y = left + st.thread.x, top + st.thread.y
    if x >= width or y >= height:
        return
    column, row = st.thread.x + 2, st.thread.y + 2
    own = i32(tile[row, column])
    across, far_across = along(tile, row, column, 0, 1)
    down, far_down = along(tile, row, column, 1, 0)
    diagonal = along(tile, row, column, 1, 1)[0] + along(tile, row, column, 1, -1)[0]
    if (x ^ y) & 1 != 0:
        of_row = to_byte(10 * own + 8 * across - 2 * (diagonal + far_across) + far_down)
        of_column = to_byte(10 * own + 8 * down - 2 * (diagonal + far_down) + far_across)
        red, blue = (of_row, of_column) if y & 1 == 0 else (of_column, of_row)
        out[y * width + x] = uchar4(red, to_byte(16 * own), blue, 255)
    else:
        green = to_byte(8 * own + 4 * (across + down) - 2 * (far_across + far_down))
        opposite = to_byte(12 * own + 4 * diagonal - 3 * (far_across + far_down))
        red, blue = (to_byte(16 * own), opposite) if y & 1 == 0 else (opposite, to_byte(16 * own))
        out[y * width + x] = uchar4(red, green, blue, 255)


def _raw(n: int, block: tuple[int, int]) -> Args:
    """Waves, edges and noise; three quarters as high as wide."""
    y, x = np.mgrid[: 3 * n // 4, :n].astype(np.float32)
    light = 1800 + 1200 * np.sin(x / 37) * np.cos(y / 23) + 900 * ((x // 11 + y // 17) % 2) * np.where(y % 2, 1, 0.6)
    light += 120 * draw().standard_normal(x.shape, np.float32)
    return {
        "raw": np.clip(light, 0, 4095).astype(np.uint16).ravel(), "out": np.zeros((x.size, 4), np.uint8), "width": n,
        "height": 3 * n // 4, "BLOCK_X": block[0], "BLOCK_Y": block[1],
    }  # fmt: skip


FILTERS = {  # sixteenths, of rows of 5
    "green": (0, 0, -2, 0, 0, 0, 0, 4, 0, 0, -2, 4, 8, 4, -2, 0, 0, 4, 0, 0, 0, 0, -2, 0, 0),
    "row": (0, 0, 1, 0, 0, 0, -2, 0, -2, 0, -2, 8, 10, 8, -2, 0, -2, 0, -2, 0, 0, 0, 1, 0, 0),
    "column": (0, 0, -2, 0, 0, 0, -2, 8, -2, 0, 1, 0, 10, 0, 1, 0, -2, 8, -2, 0, 0, 0, -2, 0, 0),
    "opposite": (0, 0, -3, 0, 0, 0, 4, 0, 4, 0, -3, 0, 12, 0, -3, 0, 4, 0, 4, 0, 0, 0, -3, 0, 0),
    "own": (0,) * 12 + (16,) + (0,) * 12,
}
PATTERN = ("own green opposite", "row own column", "column own row", "opposite green own")


def _colours(args: Args) -> dict[str, Values]:
    height, width = args["height"], args["width"]
    wide = np.pad(args["raw"].reshape(height, width).astype(np.int32), 2, mode="reflect")
    out = np.full((height, width, 4), 255)
    for site, names in enumerate(PATTERN):
        places = np.s_[site // 2 :: 2], np.s_[site % 2 :: 2]
        for channel, name in enumerate(names.split()):
            taps = ((k // 5, k % 5, weight) for k, weight in enumerate(FILTERS[name]) if weight)
            total = sum(weight * wide[y : y + height, x : x + width][places] for y, x, weight in taps)
            out[(*places, channel)] = np.clip((total + 8) // 16, 0, 4095) // 16
    return {"out": out}


KERNELS = (
    ValidationKernel(grain_contacts, cover, _heap, _pushed, (1000, 64), (20_000, 200_000), (64, 128, 256)),
    ValidationKernel(epidemic_outbreaks, cover, _villages, _ended, (2000, 128), (20_000, 300_000), (64, 128, 256), restored=("counts",)),
    ValidationKernel(quantise_rows, lambda n, b: n, _activations, _quantised, (9, 128), (4096, 32768), (64, 128, 256)),
    ValidationKernel(
        demosaic_bayer, lambda n, b: (cover(n, b[0]), cover(3 * n // 4, b[1])), _raw, _colours, (50, (32, 8)), (2000, 6000),
        ((16, 16), (32, 8), (32, 16)),
    ),
)  # fmt: skip
