"""Images and scenes: filters, corners, morphology, transforms, overlapping boxes, noise, rays."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float4, i32, u8, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, round_off, stored, tiles, zeros

COSINES = tuple(
    float(np.cos((2 * x + 1) * u * np.pi / 16) * (0.5 if u else 0.125**0.5)) for u in range(8) for x in range(8)
)
"""The transform of eight numbers, a row a frequency."""
CORNERS = tuple(int(k) for k in np.random.default_rng(256).permutation(256))
SPHERES = 16
BOUNCES = 4


@st.kernel
def bilateral_filter(x: Global[f32], out: Global[f32], n: i32, RADIUS: Const, distance: f32, contrast: f32) -> None:
    """out = means of neighbours, weighted by how near they are in place and in brightness."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    own = x[row * n + column]
    total, weights = 0.0, 0.0
    for r in range(max(row - RADIUS, 0), min(row + RADIUS, n - 1) + 1):
        for c in range(max(column - RADIUS, 0), min(column + RADIUS, n - 1) + 1):
            value = x[r * n + c]
            apart = f32((r - row) * (r - row) + (c - column) * (c - column))
            weight = st.exp(-apart * distance - (value - own) ** 2 * contrast)
            total += weight * value
            weights += weight
    out[row * n + column] = total / weights


@st.kernel
def srad_coefficients(x: Global[f32], out: Global[f32], rows: i32, columns: i32, speckle: f32) -> None:
    """out = how much an image of ultrasound may diffuse at each pixel, from its gradient and Laplacian."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= rows * columns:
        return
    row = i // columns
    column = i % columns
    own = x[i]
    north = x[i - columns] - own if row > 0 else 0.0
    south = x[i + columns] - own if row < rows - 1 else 0.0
    west = x[i - 1] - own if column > 0 else 0.0
    east = x[i + 1] - own if column < columns - 1 else 0.0
    gradient = (north * north + south * south + west * west + east * east) / (own * own)
    laplacian = (north + south + west + east) / own
    variation = 0.5 * gradient - 0.0625 * laplacian * laplacian
    variation /= (1.0 + 0.25 * laplacian) ** 2
    rate = 1.0 / (1.0 + (variation - speckle) / (speckle * (1.0 + speckle)))
    out[i] = min(max(rate, 0.0), 1.0)


@st.kernel
def erode_tile(x: Global[u8], out: Global[u8], n: i32, RADIUS: Const) -> None:
    """out = the darkest of each square of neighbours: rows, then columns, of a tile in dynamic shared memory."""
    wide, high = st.block_dim.x + 2 * RADIUS, st.block_dim.y + 2 * RADIUS
    tile = st.dynamic_shared(u8, (st.block_dim.x + 2 * RADIUS) * (st.block_dim.y + 2 * RADIUS))
    least = st.dynamic_shared(u8, st.block_dim.x * (st.block_dim.y + 2 * RADIUS))
    left, top = st.block.x * st.block_dim.x - RADIUS, st.block.y * st.block_dim.y - RADIUS
    threads = st.block_dim.x * st.block_dim.y
    t = st.thread.y * st.block_dim.x + st.thread.x
    for k in range(t, wide * high, threads):
        row, column = top + k // wide, left + k % wide
        inside = 0 <= row < n and 0 <= column < n
        tile[k] = x[row * n + column] if inside else u8(255)
    st.sync()
    for k in range(t, st.block_dim.x * high, threads):
        first = k // st.block_dim.x * wide + k % st.block_dim.x
        darkest = tile[first]
        for step in range(1, 2 * RADIUS + 1):
            darkest = min(darkest, tile[first + step])
        least[k] = darkest
    st.sync()
    row, column = top + RADIUS + st.thread.y, left + RADIUS + st.thread.x
    if row < n and column < n:
        darkest = least[t]
        for step in range(1, 2 * RADIUS + 1):
            darkest = min(darkest, least[t + step * st.block_dim.x])
        out[row * n + column] = darkest


@st.kernel
def harris_corners(x: Global[f32], out: Global[f32], n: i32, SIDE: Const) -> None:
    """out = how much of a corner each pixel is: products of gradients over 3 x 3 pixels; 0 within two of the edge."""
    dx = st.shared(f32, SIDE + 2, SIDE + 2)
    dy = st.shared(f32, SIDE + 2, SIDE + 2)
    left, top = st.block.x * SIDE - 1, st.block.y * SIDE - 1
    for r in range(st.thread.y, SIDE + 2, SIDE):
        for c in range(st.thread.x, SIDE + 2, SIDE):
            row, column = top + r, left + c
            across, down = 0.0, 0.0
            if 0 < row < n - 1 and 0 < column < n - 1:
                at = row * n + column
                across = 0.5 * (x[at + 1] - x[at - 1])
                down = 0.5 * (x[at + n] - x[at - n])
            dx[r, c] = across
            dy[r, c] = down
    st.sync()
    row, column = top + 1 + st.thread.y, left + 1 + st.thread.x
    if row >= n or column >= n:
        return
    response = 0.0
    if 1 < row < n - 2 and 1 < column < n - 2:
        xx, xy, yy = 0.0, 0.0, 0.0
        for r in st.unroll(range(3)):
            for c in st.unroll(range(3)):
                u, v = dx[st.thread.y + r, st.thread.x + c], dy[st.thread.y + r, st.thread.x + c]
                xx += u * u
                xy += u * v
                yy += v * v
        response = xx * yy - xy * xy - 0.05 * (xx + yy) ** 2
    out[row * n + column] = response


@st.kernel
def dct_8x8(x: Global[f32], out: Global[f32], n: i32) -> None:
    """out = cosine transforms of the 8 x 8 squares of an image, one a block: rows, then columns."""
    cosines = st.constant(f32, COSINES)
    held = st.shared(f32, 8, 8)
    half = st.shared(f32, 8, 8)
    u, v = st.thread.x, st.thread.y
    at = (st.block.y * 8 + v) * n + st.block.x * 8 + u
    held[v, u] = x[at]
    st.sync()
    total = 0.0
    for k in range(8):
        total += cosines[u * 8 + k] * held[v, k]
    half[v, u] = total
    st.sync()
    total = 0.0
    for k in range(8):
        total += cosines[v * 8 + k] * half[k, u]
    out[at] = total


@st.device
def overlap(a: float4, b: float4) -> f32:
    """Return the intersection of two boxes divided by their union."""
    width = max(min(a.z, b.z) - max(a.x, b.x), 0.0)
    height = max(min(a.w, b.w) - max(a.y, b.y), 0.0)
    both = width * height
    return both / ((a.z - a.x) * (a.w - a.y) + (b.z - b.x) * (b.w - b.y) - both)


@st.kernel
def suppress_boxes(boxes: Global[float4], masks: Global[u64], n: i32, words: i32, limit: f32) -> None:
    """masks[i, w] = bits of the 64 boxes w after box i that overlap it too much."""
    held = st.shared(float4, 64)
    t = st.thread.x
    first = st.block.x * 64
    if first + t < n:
        held[t] = boxes[first + t]
    st.sync()
    i = st.block.y * 64 + t
    if i < n:
        own = boxes[i]
        mask = u64(0)
        start = t + 1 if st.block.x == st.block.y else 0
        if st.block.x >= st.block.y:
            for k in range(start, min(n - first, 64)):
                if overlap(own, held[k]) > limit:
                    mask |= u64(1) << u64(k)
        masks[i * words + st.block.x] = mask


@st.device
def fade(t: f32) -> f32:
    """From 0 to 1, level at both."""
    return t * t * t * (t * (t * 6.0 - 15.0) + 10.0)


@st.device
def slope(corner: i32, x: f32, y: f32) -> f32:
    """The coordinate of a point along one of eight directions."""
    u = x if corner & 4 == 0 else y
    v = y if corner & 4 == 0 else x
    return (u if corner & 1 == 0 else -u) + (2.0 * v if corner & 2 == 0 else -2.0 * v)


@st.kernel
def perlin_noise(out: Global[f32], n: i32, OCTAVES: Const, scale: f32) -> None:
    """out = noise in the plane, of OCTAVES layers, each twice as fine and half as strong as the one before."""
    table = st.shared(i32, 256)
    corners = st.constant(i32, CORNERS)
    t = st.thread.y * st.block_dim.x + st.thread.x
    for k in range(t, 256, st.block_dim.x * st.block_dim.y):
        table[k] = corners[k]
    st.sync()
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    x, y = f32(column) * scale, f32(row) * scale
    total, strength = 0.0, 1.0
    for _ in range(OCTAVES):
        left, top = st.floor(x), st.floor(y)
        i, j = i32(left) & 255, i32(top) & 255
        dx, dy = x - left, y - top
        u, v = fade(dx), fade(dy)
        a, b = table[i] + j, table[(i + 1) & 255] + j
        above, right = slope(table[a & 255], dx, dy), slope(table[b & 255], dx - 1.0, dy)
        below = slope(table[(a + 1) & 255], dx, dy - 1.0)
        beyond = slope(table[(b + 1) & 255], dx - 1.0, dy - 1.0)
        high, low = above + u * (right - above), below + u * (beyond - below)
        total += strength * (high + v * (low - high))
        x, y = 2.0 * x, 2.0 * y
        strength *= 0.5
    out[row * n + column] = total


@st.kernel
def ray_spheres(spheres: Global[float4], out: Global[f32], n: i32) -> None:
    """out = light along rays through each pixel, mirrored by spheres (place and radius) at most BOUNCES times."""
    held = st.shared(float4, SPHERES)
    t = st.thread.y * st.block_dim.x + st.thread.x
    if t < SPHERES:
        held[t] = spheres[t]
    st.sync()
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    if row >= n or column >= n:
        return
    px, py, pz = 0.0, 0.0, -4.0
    dx, dy, dz = (f32(column) + 0.5) / f32(n) - 0.5, (f32(row) + 0.5) / f32(n) - 0.5, 1.0
    norm = 1.0 / st.sqrt(dx * dx + dy * dy + dz * dz)
    dx, dy, dz = dx * norm, dy * norm, dz * norm
    light, share = 0.0, 1.0
    for _ in range(BOUNCES):
        nearest, hit = 1e30, -1
        for k in range(SPHERES):
            s = held[k]
            ox, oy, oz = px - s.x, py - s.y, pz - s.z
            b = ox * dx + oy * dy + oz * dz
            root = b * b - (ox * ox + oy * oy + oz * oz) + s.w * s.w
            if root > 0.0:
                distance = -b - st.sqrt(root)
                if 1e-3 < distance < nearest:
                    nearest = distance
                    hit = k
        if hit < 0:
            light += share * (0.5 + 0.5 * dy)
            break
        s = held[hit]
        px, py, pz = px + nearest * dx, py + nearest * dy, pz + nearest * dz
        nx, ny, nz = (px - s.x) / s.w, (py - s.y) / s.w, (pz - s.z) / s.w
        light += share * 0.2 * max(0.6 * ny - 0.8 * nz, 0.0)
        along = 2.0 * (dx * nx + dy * ny + dz * nz)
        dx, dy, dz = dx - along * nx, dy - along * ny, dz - along * nz
        share *= 0.7
    out[row * n + column] = light


# ------------------------------------------------------------------ launches
def _square(n: int, block: object) -> Args:
    return {"x": floats(n * n), "out": zeros(n * n), "n": n}


def _smoothed(args: Args) -> dict[str, Values]:
    n, radius = args["n"], args["RADIUS"]
    x = args["x"].reshape(n, n).astype(float)
    padded = np.pad(x, radius, constant_values=np.inf)
    total, weights = np.zeros((n, n)), np.zeros((n, n))
    for r, c in np.ndindex(2 * radius + 1, 2 * radius + 1):
        value = padded[r : r + n, c : c + n]
        inside = np.isfinite(value)
        value = np.where(inside, value, 0)
        distance = (r - radius) ** 2 + (c - radius) ** 2
        weight = inside * np.exp(-args["distance"] * distance - args["contrast"] * (value - x) ** 2)
        total += weight * value
        weights += weight
    return {"out": total / weights}


def _scan(n: int, block: int) -> Args:
    x = stored("srad_coefficients_x", n * n)
    if x is None:
        x = round_off(np.exp(0.5 * floats(n * n).astype(np.float64))).astype(np.float32)
    return {"x": x, "out": zeros(n * n), "rows": n, "columns": n, "speckle": 0.05}


def _diffusing(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(args["rows"], -1).astype(float)
    p = np.pad(x, 1, mode="edge")
    sides = np.stack([p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]]) - x
    laplacian = sides.sum(axis=0) / x
    variation = ((sides**2).sum(axis=0) / x**2 / 2 - laplacian**2 / 16) / (1 + laplacian / 4) ** 2
    q = args["speckle"]
    return {"out": np.clip(1 / (1 + (variation - q) / (q * (1 + q))), 0, 1)}


RADIUS = 3


def _bytes(n: int, block: object) -> Args:
    return {"x": draw().integers(0, 256, n * n, np.uint8), "out": zeros(n * n, np.uint8), "n": n, "RADIUS": RADIUS}


def _eroded(args: Args) -> dict[str, Values]:
    least = np.pad(args["x"].reshape(args["n"], -1), RADIUS, constant_values=255)
    for axis in (0, 1):
        least = np.lib.stride_tricks.sliding_window_view(least, 2 * RADIUS + 1, axis=axis).min(axis=2)
    return {"out": least}


def _cornered(args: Args) -> dict[str, Values]:
    n = args["n"]
    x, out = args["x"].reshape(n, n).astype(float), np.zeros((n, n))
    down, across = np.zeros((n, n)), np.zeros((n, n))
    down[1:-1, 1:-1], across[1:-1, 1:-1] = (part[1:-1, 1:-1] for part in np.gradient(x))

    def over(product: Values) -> Values:
        windows = np.lib.stride_tricks.sliding_window_view(product, (3, 3))
        sums: Values = windows.sum(axis=(2, 3))[1:-1, 1:-1]
        return sums

    xx, xy, yy = over(across * across), over(across * down), over(down * down)
    out[2:-2, 2:-2] = xx * yy - xy * xy - 0.05 * (xx + yy) ** 2
    return {"out": out}


def _transformed(args: Args) -> dict[str, Values]:
    n = args["n"]
    u, x = np.indices((8, 8))
    cosines = np.cos((2 * x + 1) * u * np.pi / 16) * np.where(u, 0.5, 0.125**0.5)
    squares = args["x"].reshape(n // 8, 8, n // 8, 8).transpose(0, 2, 1, 3)
    return {"out": (cosines @ squares @ cosines.T).transpose(0, 2, 1, 3)}


def _boxes(n: int, block: int) -> Args:
    corner, size = np.split(draw().integers(0, 64, (n, 4)).astype(np.float32), 2, axis=1)
    words = -(-n // 64)
    return {
        "boxes": np.hstack([corner, corner + size / 2 + 1]), "masks": np.zeros(n * words, np.uint64), "n": n, "words": words,
        "limit": 0.3,
    }  # fmt: skip


def _suppressed(args: Args) -> dict[str, Values]:
    """Whole numbers and halves: areas are exact, and so is the quotient's comparison but for ties."""
    n, boxes, rows = args["n"], args["boxes"], []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for i in range(n):
        least = np.minimum(boxes[i, 2:], boxes[:, 2:]) - np.maximum(boxes[i, :2], boxes[:, :2])
        both = np.maximum(least, 0).prod(axis=1)
        over = (both / (area[i] + area - both) > np.float32(args["limit"])) & (np.arange(n) > i)
        rows.append(np.packbits(np.pad(over, (0, -n % 64)), bitorder="little").view(np.uint64))
    return {"masks": np.concatenate(rows)}


def _noise(args: Args) -> dict[str, Values]:
    x = np.arange(args["n"], dtype=np.float32) * np.float32(args["scale"])
    table, total, strength = np.array(CORNERS), np.zeros((len(x), len(x))), 1.0
    gradients = np.array([(1, 2), (-1, 2), (1, -2), (-1, -2), (2, 1), (2, -1), (-2, 1), (-2, -1)])
    for _ in range(args["OCTAVES"]):
        whole, fraction = np.floor(x).astype(int), (x % 1).astype(float)
        smooth = 6 * fraction**5 - 15 * fraction**4 + 10 * fraction**3
        for i, k in np.ndindex(2, 2):  # across and down
            corner = table[(table[(whole + i) % 256][None, :] + whole[:, None] + k) % 256] & 7
            gradient = gradients[corner]
            along = gradient[..., 0] * (fraction - i)[None, :] + gradient[..., 1] * (fraction - k)[:, None]
            total += strength * along * abs(1 - i - smooth)[None, :] * abs(1 - k - smooth)[:, None]
        x, strength = 2 * x, strength / 2
    return {"out": total}


def _scene(n: int, block: object) -> Args:
    place = np.array([(x, y, 0.5 * ((x + y) % 2)) for x in range(4) for y in range(4)]) - (1.5, 1.5, 0)
    return {"spheres": np.column_stack([place, np.full(16, 0.45)]).astype(np.float32), "out": zeros(n * n), "n": n}


def _dot(a: Values, b: Values) -> Values:
    """Sums of stacked vectors, added in the order of their elements."""
    x, y, z = a * b
    total: Values = x + y + z
    return total


def _lit(args: Args) -> dict[str, Values]:
    """In the precision of the kernel: a ray that just misses a ball has another path."""
    n, spheres, f = args["n"], args["spheres"], np.float32
    row, column = np.indices((n, n)).reshape(2, -1).astype(f)
    direction = np.stack([(column + f(0.5)) / f(n) - f(0.5), (row + f(0.5)) / f(n) - f(0.5), np.ones(n * n, f)])
    direction *= f(1) / np.sqrt(_dot(direction, direction))
    place, light, index = np.tile(np.array([[0], [0], [-4]], f), n * n), np.zeros(n * n), np.arange(n * n)
    for bounce in range(BOUNCES):
        nearest, hit = np.full(len(index), np.inf, f), np.full(len(index), -1)
        for k, ball in enumerate(spheres):
            away = place - ball[:3, None]
            b = _dot(away, direction)
            root = b * b - _dot(away, away) + ball[3] * ball[3]
            distance = np.where(root > 0, -b - np.sqrt(np.maximum(root, 0)), f(np.inf))
            closer = (distance > f(1e-3)) & (distance < nearest)
            nearest[closer], hit[closer] = distance[closer], k
        missed, hits = hit < 0, hit >= 0
        light[index[missed]] += 0.7**bounce * (0.5 + 0.5 * direction[1, missed])
        index, direction, place, balls = (
            index[hits],
            direction[:, hits],
            place[:, hits] + nearest[hits] * direction[:, hits],
            spheres[hit[hits]].T,
        )
        normal = (place - balls[:3]) / balls[3]
        light[index] += 0.7**bounce * 0.2 * np.maximum(0.6 * normal[1] - 0.8 * normal[2], 0)
        direction = direction - f(2) * _dot(direction, normal) * normal
    return {"out": light}


SHAPES = ((32, 4), (16, 16), (32, 32))


def _halo(n: int, block: tuple[int, int]) -> int:
    """Bytes of `erode_tile`."""
    return (2 * block[0] + 2 * RADIUS) * (block[1] + 2 * RADIUS)


KERNELS = (
    ValidationKernel(
        bilateral_filter, tiles, lambda n, b: {**_square(n, b), "RADIUS": 3, "distance": 0.1, "contrast": 10.0}, _smoothed,
        (60, (32, 4)), (256, 1024), SHAPES,
    ),
    ValidationKernel(srad_coefficients, lambda n, b: cover(n * n, b), _scan, _diffusing, (50, 128), (512, 2048), (64, 256, 1024)),
    ValidationKernel(erode_tile, tiles, _bytes, _eroded, (70, (32, 8)), (512, 2048), SHAPES, shared=_halo),
    ValidationKernel(
        harris_corners, tiles, lambda n, b: {**_square(n, b), "SIDE": b[0]}, _cornered, (70, (16, 16)), (512, 2048),
        ((8, 8), (16, 16), (32, 32)),
    ),
    ValidationKernel(dct_8x8, tiles, _square, _transformed, (64, (8, 8)), (512, 2048), ((8, 8),)),
    ValidationKernel(
        suppress_boxes, lambda n, b: (cover(n, b), cover(n, b)), _boxes, _suppressed, (300, 64), (1024, 6000), (64,),
    ),
    ValidationKernel(
        perlin_noise, tiles, lambda n, b: {"out": zeros(n * n), "n": n, "OCTAVES": 4, "scale": 0.0625}, _noise,
        (60, (32, 4)), (512, 2048), SHAPES,
    ),
    ValidationKernel(ray_spheres, tiles, _scene, _lit, (60, (16, 16)), (256, 1024), ((8, 8), (16, 16), (32, 16))),
)  # fmt: skip
