"""Cells under a microscope, potentials on a lattice, hybrid rows, three-way partitions, folds, smooth colours."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, float4, i32, int4, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, tiles, zeros

CIRCLES, POINTS, MARGIN = 5, 48, 12


@st.kernel
def gicov_scores(
    across: Global[f32], down: Global[f32], dx: Constant[i32], dy: Constant[i32], cosine: Constant[f32], sine: Constant[f32],
    out: Global[f32], width: i32, height: i32,
) -> None:  # fmt: skip
    """out = score of a cell around each pixel: of circles, the largest squared mean of outward slopes by their variance."""
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    if x < MARGIN or y < MARGIN or x >= width - MARGIN or y >= height - MARGIN:
        return
    best = 0.0
    for circle in range(CIRCLES):
        total, mean, spread = 0.0, 0.0, 0.0
        for n in range(POINTS):
            at = (y + dy[circle * POINTS + n]) * width + x + dx[circle * POINTS + n]
            slope = across[at] * cosine[n] + down[at] * sine[n]
            total += slope
            change = slope - mean
            mean += change / f32(n + 1)
            spread += change * (slope - mean)
        mean = total / POINTS
        variance = spread / (POINTS - 1)
        if mean * mean / variance > best:
            best = mean * mean / variance
    out[y * width + x] = best


SLOTS, REGION, AHEAD = 8, 8, 9


@st.kernel
def cutoff_potentials(
    bins: Global[float4], near: Constant[i32], out: Global[f32], side: i32, spacing: f32, cutoff: f32, DEEP: Const
) -> None:
    """out = potentials of charges within a cutoff at points of a lattice; a block a cube of 8, charges by bins of 8 as wide."""
    cache = st.shared(float4, AHEAD * SLOTS)
    layers = st.registers(f32, REGION // DEEP)
    wide = side // REGION + 2
    home = ((st.block.z + 1) * wide + st.block.y + 1) * wide + st.block.x + 1
    column, row = st.block.x * REGION + st.thread.x, st.block.y * REGION + st.thread.y
    first = st.block.z * REGION + st.thread.z
    x, y, z = f32(column) * spacing, f32(row) * spacing, f32(first) * spacing
    square, inverse = cutoff * cutoff, 1.0 / (cutoff * cutoff)
    t = (st.thread.z * REGION + st.thread.y) * REGION + st.thread.x
    for k in st.unroll(range(REGION // DEEP)):
        layers[k] = 0.0
    for batch in range(0, len(near), AHEAD):
        st.sync()
        for k in range(t, AHEAD * SLOTS, REGION * REGION * DEEP):
            cache[k] = bins[(home + near[batch + k // SLOTS]) * SLOTS + k % SLOTS]
        st.sync()
        for b in range(AHEAD):
            for slot in range(SLOTS):
                atom = cache[b * SLOTS + slot]
                if atom.w == 0.0:
                    break
                ax, ay, az = atom.x - x, atom.y - y, atom.z - z
                flat = ax * ax + ay * ay
                for k in st.unroll(range(REGION // DEEP)):
                    far = flat + az * az
                    if far < square:
                        fade = 1.0 - far * inverse
                        layers[k] += atom.w * st.rsqrt(far) * fade * fade
                    az -= DEEP * spacing
    for k in st.unroll(range(REGION // DEEP)):
        out[((first + k * DEEP) * side + row) * side + column] = layers[k]


@st.kernel
def spmv_hybrid(
    column: Global[i32], value: Global[f32], tail_row: Global[i32], tail_column: Global[i32], tail_value: Global[f32],
    x: Global[f32], out: Global[f32], rows: i32, width: i32, tail: i32,
) -> None:  # fmt: skip
    """out += a sparse matrix times x: a padded array of `width` columns, a thread a row, then the other entries, a warp a range."""
    row = st.block.x * st.block_dim.x + st.thread.x
    if row < rows:
        total = 0.0
        for k in range(width):
            c = column[k * rows + row]
            if c < 0:
                break
            total += value[k * rows + row] * x[c]
        st.atomic_add(out, row, total)
    warp = (st.block.x * st.block_dim.x + st.thread.x) // 32
    count = st.grid_dim.x * st.block_dim.x // 32
    stretch = (tail + count * 32 - 1) // (count * 32) * 32
    begin, end = warp * stretch, min((warp + 1) * stretch, tail)
    held_row, held = -1, 0.0
    for base in range(begin, end, 32):
        k = base + st.lane
        own, product = -1, 0.0
        if k < end:
            own = tail_row[k]
            product = tail_value[k] * x[tail_column[k]]
        if st.lane == 0 and held_row >= 0:
            if held_row == own:
                product += held
            else:
                st.atomic_add(out, held_row, held)
        for step in (1, 2, 4, 8, 16):
            other, more = st.shuffle_up(own, step), st.shuffle_up(product, step)
            if st.lane >= step and other == own:
                product += more
        after = st.shuffle_down(own, 1)
        if st.lane < 31 and own >= 0 and after != own:
            st.atomic_add(out, own, product)
        held_row, held = st.shuffle(own, 31), st.shuffle(product, 31)
    if st.lane == 0 and held_row >= 0:
        st.atomic_add(out, held_row, held)


@st.device
def part_of(value: i32, low: i32, high: i32) -> u32:
    """Return one in the lower half for a value below, in the upper half for a value between."""
    if value < low:
        return u32(1)
    if value < high:
        return u32(1 << 16)
    return u32(0)


@st.kernel
def partition_three_ways(
    x: Global[int4], below: Global[i32], between: Global[i32], above: Global[i32], out: Global[i32], n: i32, low: i32,
    high: i32, BLOCK: Const,
) -> None:  # fmt: skip
    """out = numbers below `low`, then those below `high`, then the others, each in order; where a block's begin is known."""
    staged = st.shared(i32, 4 * BLOCK)
    of_warps = st.shared(u32, 32)
    t = st.thread.x
    i = st.block.x * BLOCK + t
    part = st.registers(u32, 4)
    item = st.registers(i32, 4)
    for k in st.unroll(range(4)):
        item[k], part[k] = 0, u32(0)
    if i < n // 4:
        four = x[i]
        for k in st.unroll(range(4)):
            item[k] = four[k]
            part[k] = part_of(four[k], low, high)
    own = part[0] + part[1] + part[2] + part[3]
    upto = own
    for step in (1, 2, 4, 8, 16):
        before = st.shuffle_up(upto, step)
        if st.lane >= step:
            upto += before
    if st.lane == 31:
        of_warps[st.warp] = upto
    st.sync()
    if st.warp == 0:
        mine = of_warps[st.lane] if st.lane < BLOCK // 32 else u32(0)
        for step in (1, 2, 4, 8, 16):
            before = st.shuffle_up(mine, step)
            if st.lane >= step:
                mine += before
        of_warps[st.lane] = mine
    st.sync()
    if st.warp > 0:
        upto += of_warps[st.warp - 1]
    all = of_warps[BLOCK // 32 - 1]
    firsts, seconds = i32(all & 0xFFFF), i32(all >> 16)
    place = upto - own
    for k in st.unroll(range(4)):
        left, middle = i32(place & 0xFFFF), i32(place >> 16)
        if part[k] == 1:
            staged[left] = item[k]
        elif part[k] != 0:
            staged[firsts + middle] = item[k]
        else:
            staged[firsts + seconds + 4 * t + k - left - middle] = item[k]
        place += part[k]
    st.sync()
    for k in range(t, min(4 * BLOCK, n - st.block.x * 4 * BLOCK), BLOCK):
        if k < firsts:
            out[below[st.block.x] + k] = staged[k]
        elif k < firsts + seconds:
            out[between[st.block.x] + k - firsts] = staged[k]
        else:
            out[above[st.block.x] + k - firsts - seconds] = staged[k]


LETTERS, LOOP = 72, 3


@st.device
def pairs_up(a: i32, b: i32) -> bool:
    """Whether two of A, C, G, U hold together."""
    return a + b == 3 or (a + b == 5 and a != b)


@st.kernel
def fold_pairs(text: Global[u8], out: Global[i32], table: Global[u8]) -> None:
    """out = the maximum of pairs of a folded strand, table = those of its substrings; a block a strand, by diagonals."""
    letter = st.shared(i32, LETTERS)
    best = st.shared(i32, LETTERS, LETTERS)
    strand = st.block.x
    for k in range(st.thread.x, LETTERS, st.block_dim.x):
        letter[k] = i32(text[strand * LETTERS + k])
    for k in range(st.thread.x, LETTERS * LETTERS, st.block_dim.x):
        best[k // LETTERS, k % LETTERS] = 0
    st.sync()
    for span in range(LOOP + 1, LETTERS):
        for i in range(st.thread.x, LETTERS - span, st.block_dim.x):
            j = i + span
            most = max(best[i + 1, j], best[i, j - 1])
            if pairs_up(letter[i], letter[j]):
                most = max(most, best[i + 1, j - 1] + 1)
            for k in range(i + LOOP + 1, j - LOOP - 1):
                most = max(most, best[i, k] + best[j, k + 1])
            best[i, j] = most
            best[j, i] = most
        st.sync()
    for k in range(st.thread.x, LETTERS * LETTERS, st.block_dim.x):
        table[strand * LETTERS * LETTERS + k] = u8(best[k // LETTERS, k % LETTERS])
    if st.thread.x == 0:
        out[strand] = best[0, LETTERS - 1]


REACH = 3


@st.kernel
def kuwahara_tiles(image: Global[u8], out: Global[u8], width: i32, height: i32, WIDE: Const, HIGH: Const) -> None:
    """out = for each pixel the mean of that of four squares at it that varies least; tiles with a rim in shared memory."""
    tile = st.shared(i32, HIGH + 2 * REACH, WIDE + 2 * REACH)
    left, top = st.block.x * WIDE - REACH, st.block.y * HIGH - REACH
    for v in range(st.thread.y, HIGH + 2 * REACH, HIGH):
        y = min(max(top + v, 0), height - 1)
        for u in range(st.thread.x, WIDE + 2 * REACH, WIDE):
            x = min(max(left + u, 0), width - 1)
            tile[v, u] = i32(image[y * width + x])
    st.sync()
    x, y = st.block.x * WIDE + st.thread.x, st.block.y * HIGH + st.thread.y
    if x >= width or y >= height:
        return
    least, smooth = 2147483647, 0
    for corner in st.unroll(range(4)):
        total, squares = 0, 0
        for v in st.unroll(range(REACH + 1)):
            for u in st.unroll(range(REACH + 1)):
                grey = tile[st.thread.y + v + corner // 2 * REACH, st.thread.x + u + corner % 2 * REACH]
                total += grey
                squares += grey * grey
        varies = (REACH + 1) * (REACH + 1) * squares - total * total
        if varies < least:
            least = varies
            smooth = (total + 8) >> 4
    out[y * width + x] = u8(smooth)


def _slopes(n: int, block: tuple[int, int]) -> Args:
    angle = 2 * math.pi * np.arange(POINTS) / POINTS
    radius = 2.0 * np.arange(1, CIRCLES + 1)[:, None] + 1
    across, down = floats(2, n * n) - np.float32(0.4)
    return {
        "across": across, "down": down, "dx": np.rint(radius * np.cos(angle)).astype(np.int32).ravel(),
        "dy": np.rint(radius * np.sin(angle)).astype(np.int32).ravel(), "cosine": np.cos(angle).astype(np.float32),
        "sine": np.sin(angle).astype(np.float32), "out": zeros(n * n), "width": n, "height": n,
    }  # fmt: skip


def _scored(args: Args) -> dict[str, Values]:
    n = args["width"]
    across, down = (args[name].reshape(n, n).astype(float) for name in ("across", "down"))
    own, best = slice(MARGIN, n - MARGIN), np.zeros((n, n))
    for circle in range(CIRCLES):
        total, squares = np.zeros((2, n - 2 * MARGIN, n - 2 * MARGIN))
        for k in range(POINTS):
            dx, dy = int(args["dx"][circle * POINTS + k]), int(args["dy"][circle * POINTS + k])
            at = (slice(MARGIN + dy, n - MARGIN + dy), slice(MARGIN + dx, n - MARGIN + dx))
            slope = across[at] * args["cosine"][k] + down[at] * args["sine"][k]
            total += slope
            squares += slope * slope
        mean = total / POINTS
        score = mean**2 * (POINTS - 1) / (squares - total * mean)
        best[own, own] = np.maximum(best[own, own], score)
    return {"out": best}


SPACING, CUTOFF = 0.5, 4.0


def _atoms(n: int, block: tuple[int, int, int]) -> Args:
    """At most 8 charges a bin, none beyond the lattice."""
    wide, length, random = n // REGION + 2, REGION * SPACING, draw()
    bins = np.zeros((wide, wide, wide, SLOTS, 4), np.float32)
    z, y, x = np.meshgrid(*3 * [np.arange(wide) - 1], indexing="ij")
    corner = np.stack([x, y, z], axis=-1)[..., None, :] * length
    bins[..., :3] = corner + random.random((*bins.shape[:4], 3)) * length
    bins[..., 3] = random.choice([-1.0, 1.0], bins.shape[:4]) * (0.2 + random.random(bins.shape[:4]))
    inside = ((corner >= 0) & (corner < n * SPACING)).all(axis=-1)
    many = random.integers(2, SLOTS + 1, bins.shape[:3])
    bins *= (inside & (np.arange(SLOTS) < many[..., None]))[..., None]
    near = [(c * wide + b) * wide + a for c in (-1, 0, 1) for b in (-1, 0, 1) for a in (-1, 0, 1)]
    return {
        "bins": bins.reshape(-1, 4), "near": np.array(near, np.int32), "out": zeros(n**3), "side": n, "spacing": SPACING,
        "cutoff": CUTOFF, "DEEP": block[2],
    }  # fmt: skip


def _potentials(args: Args) -> dict[str, Values]:
    n, wide = args["side"], args["side"] // REGION + 2
    bins = args["bins"].reshape(wide, wide, wide, SLOTS, 4)
    at = np.arange(n, dtype=np.float32) * np.float32(SPACING)
    out = np.zeros((n, n, n))
    home = np.arange(n) // REGION + 1
    for dz, dy, dx in np.ndindex(3, 3, 3):
        for slot in range(SLOTS):
            atom = bins[np.ix_(home + dz - 1, home + dy - 1, home + dx - 1)][..., slot, :]
            far = (atom[..., 0] - at) ** 2
            far += (atom[..., 1] - at[:, None]) ** 2
            far += (atom[..., 2] - at[:, None, None]) ** 2
            z, y, x = np.nonzero((far < CUTOFF**2) & (atom[..., 3] != 0))
            near = far[z, y, x].astype(float)
            out[z, y, x] += atom[z, y, x, 3] / np.sqrt(near) * (1 - near / CUTOFF**2) ** 2
    return {"out": out}


WIDTH = 6


def _hybrid(n: int, block: int) -> Args:
    """Most rows are short, some are long."""
    random = draw()
    many = np.minimum(random.geometric(0.22, n) + (random.random(n) < 0.01) * random.integers(20, 300, n), n)
    row = np.repeat(np.arange(n), many)
    place = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
    columns, values = random.integers(0, n, len(row)).astype(np.int32), random.random(len(row), dtype=np.float32)
    column, value = np.full((WIDTH, n), -1, np.int32), np.zeros((WIDTH, n), np.float32)
    short = place < WIDTH
    column[place[short], row[short]] = columns[short]
    value[place[short], row[short]] = values[short]
    return {
        "column": column.ravel(), "value": value.ravel(), "tail_row": row[~short].astype(np.int32),
        "tail_column": columns[~short], "tail_value": values[~short], "x": random.random(n, dtype=np.float32),
        "out": zeros(n), "rows": n, "width": WIDTH, "tail": int((~short).sum()),
    }  # fmt: skip


def _multiplied(args: Args) -> dict[str, Values]:
    x, n = args["x"].astype(float), args["rows"]
    column = args["column"].reshape(WIDTH, n)
    out = (np.where(column >= 0, x[column], 0) * args["value"].reshape(WIDTH, n)).sum(axis=0)
    return {"out": out + np.bincount(args["tail_row"], args["tail_value"] * x[args["tail_column"]], n)}


LOW, HIGH = 300, 650


def _thirds(n: int, block: int) -> Args:
    x, blocks = ints(n, 1000), cover(n, 4 * block)
    third = np.full(blocks * 4 * block, 3)
    third[:n] = (x >= LOW).astype(int) + (x >= HIGH)
    many = np.array([(third.reshape(blocks, -1) == k).sum(axis=1) for k in range(3)])
    begin = np.concatenate([[0], np.cumsum(many.ravel())])[:-1].reshape(3, blocks).astype(np.int32)
    return {
        "x": x.reshape(-1, 4), "below": begin[0], "between": begin[1], "above": begin[2], "out": zeros(n, np.int32), "n": n,
        "low": LOW, "high": HIGH, "BLOCK": block,
    }  # fmt: skip


def _partitioned(args: Args) -> dict[str, Values]:
    x = args["x"].ravel()
    return {"out": x[np.argsort((x >= LOW).astype(int) + (x >= HIGH), kind="stable")]}


def _strands(n: int, block: int) -> Args:
    return {
        "text": ints(n * LETTERS, 4, np.uint8), "out": zeros(n, np.int32), "table": zeros(n * LETTERS * LETTERS, np.uint8),
    }  # fmt: skip


def _folded(args: Args) -> dict[str, Values]:
    """Compute by diagonals: best[span][:, i] is the value of the substring from i to i + span."""
    text = args["text"].reshape(-1, LETTERS).astype(int)
    best = [np.zeros((len(text), LETTERS - span), int) for span in range(LETTERS)]
    table = np.zeros((len(text), LETTERS, LETTERS), np.uint8)
    for span in range(LOOP + 1, LETTERS):
        many = LETTERS - span
        a, b = text[:, :many], text[:, span:]
        holds = np.array([[0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])[a, b]
        most = np.maximum(best[span - 1][:, 1:], best[span - 1][:, :-1])
        most = np.maximum(most, (best[span - 2][:, 1:-1] + 1) * holds)
        for k in range(span):
            most = np.maximum(most, best[k][:, :many] + best[span - k - 1][:, k + 1 : k + 1 + many])
        best[span] = most
        for i in range(many):
            table[:, i, i + span] = table[:, i + span, i] = most[:, i]
    return {"out": best[-1].ravel(), "table": table}


def _greys(n: int, block: tuple[int, int]) -> Args:
    return {
        "image": ints(n * n, 256, np.uint8), "out": zeros(n * n, np.uint8), "width": n, "height": n, "WIDE": block[0],
        "HIGH": block[1],
    }  # fmt: skip


def _painted(args: Args) -> dict[str, Values]:
    n, size = args["width"], REACH + 1
    padded = np.pad(args["image"].reshape(n, n).astype(int), REACH, mode="edge")
    totals, varied = [], []
    for top, left in ((0, 0), (0, REACH), (REACH, 0), (REACH, REACH)):
        total, squares = np.zeros((2, n, n), int)
        for v, u in np.ndindex(size, size):
            grey = padded[top + v : top + v + n, left + u : left + u + n]
            total += grey
            squares += grey**2
        totals.append(total)
        varied.append(size**2 * squares - total**2)
    which = np.argmin(varied, axis=0)
    return {"out": (np.take_along_axis(np.array(totals), which[None], axis=0)[0] + 8) // 16}


KERNELS = (
    ValidationKernel(gicov_scores, tiles, _slopes, _scored, (64, (16, 16)), (256, 512), ((16, 8), (16, 16), (32, 32))),
    ValidationKernel(
        cutoff_potentials, lambda n, b: 3 * (n // REGION,), _atoms, _potentials, (16, (8, 8, 2)), (32, 64),
        ((8, 8, 2), (8, 8, 4), (8, 8, 8)),
    ),
    ValidationKernel(
        spmv_hybrid, cover, _hybrid, _multiplied, (5000, 128), (1 << 15, 1 << 18), (64, 256, 1024),
        restored=("out",), unordered=("out",),
    ),
    ValidationKernel(
        partition_three_ways, lambda n, b: cover(n, 4 * b), _thirds, _partitioned, (50000, 128), (1 << 18, 1 << 22), (64, 256, 1024),
    ),
    ValidationKernel(fold_pairs, lambda n, b: n, _strands, _folded, (8, 64), (132, 1056), (32, 64, 128)),
    ValidationKernel(kuwahara_tiles, tiles, _greys, _painted, (100, (32, 8)), (256, 1024), ((16, 16), (32, 8), (32, 32))),
)  # fmt: skip
