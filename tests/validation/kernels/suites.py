"""Kernels as benchmark suites have them: elimination, layers, particles, paths, trees, waves, pairs, frames."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, f64, i32, u8, u16

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, zeros


@st.kernel
def gauss_jordan(a: Global[f32], b: Global[f32], out: Global[f32], N: Const) -> None:
    """out solves systems of N unknowns, a block a system, by elimination with row exchange; the first warp finds pivots."""
    held = st.shared(f32, N, N + 1)
    pivot = st.shared(i32, 1)
    x, y, wide, high = st.thread.x, st.thread.y, st.block_dim.x, st.block_dim.y
    for r in range(y, N, high):
        for c in range(x, N, wide):
            held[r, c] = a[(st.block.x * N + r) * N + c]
        if x == 0:
            held[r, N] = b[st.block.x * N + r]
    st.sync()
    for k in range(N):
        if st.warp == 0:
            best, row = -1.0, k
            if k <= st.lane < N:
                best, row = abs(held[st.lane, k]), st.lane
            for step in (16, 8, 4, 2, 1):
                other, whose = st.shuffle_xor(best, step), st.shuffle_xor(row, step)
                if other > best or (other == best and whose < row):
                    best, row = other, whose
            if st.lane == 0:
                pivot[0] = row
        st.sync()
        found = pivot[0]
        if found != k and y == 0:
            for c in range(k + x, N + 1, wide):
                held[k, c], held[found, c] = held[found, c], held[k, c]
        st.sync()
        for r in range(y, N, high):
            if r == k:
                continue
            factor = held[r, k] / held[k, k]
            for c in range(k + 1 + x, N + 1, wide):
                held[r, c] -= factor * held[k, c]
        st.sync()
    if y == 0:
        for r in range(x, N, wide):
            out[st.block.x * N + r] = held[r, N] / held[r, r]


@st.kernel
def backprop_forward(
    units: Global[f32], weight: Global[f32], partial: Global[f32], hidden: i32, SIDE: Const, LOG: Const
) -> None:
    """partial = sums of SIDE inputs times their weights for each hidden unit; a block is a square of weights."""
    node = st.shared(f32, SIDE)
    product = st.shared(f32, SIDE, SIDE)
    tx, ty = st.thread.x, st.thread.y
    at = (st.block.y * SIDE + ty + 1) * (hidden + 1) + st.block.x * SIDE + tx + 1
    if tx == 0:
        node[ty] = units[st.block.y * SIDE + ty + 1]
    st.sync()
    product[ty, tx] = weight[at]
    st.sync()
    product[ty, tx] = product[ty, tx] * node[ty]
    st.sync()
    for i in range(1, LOG + 1):
        power = 1 << i
        if ty % power == 0:
            product[ty, tx] = product[ty, tx] + product[ty + power // 2, tx]
        st.sync()
    if tx == 0:
        partial[st.block.y * hidden + st.block.x * SIDE + ty] = product[tx, ty]


@st.kernel
def particle_resample(
    cdf: Global[f64], u: Global[f64], x: Global[f64], y: Global[f64], new_x: Global[f64], new_y: Global[f64], n: i32
) -> None:
    """new = particles resampled by their weights: a thread searches the sums of weights for its number."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        index = -1
        for k in range(n):
            if cdf[k] >= u[i]:
                index = k
                break
        if index == -1:
            index = n - 1
        new_x[i] = x[index]
        new_y[i] = y[index]


@st.kernel
def pathfinder_rows(
    wall: Global[i32], source: Global[i32], out: Global[i32], columns: i32, start: i32, ROWS: Const, BLOCK: Const
) -> None:
    """out = the cheapest paths down ROWS rows from row `start` on; blocks overlap by ROWS columns on either side."""
    previous = st.shared(i32, BLOCK)
    t = st.thread.x
    column = st.block.x * (BLOCK - 2 * ROWS) - ROWS + t
    valid = 0 <= column < columns
    if valid:
        previous[t] = source[column]
    st.sync()
    west = t if column == 0 else t - 1
    east = t if column == columns - 1 else t + 1
    for i in range(ROWS):
        computed = valid and i < t < BLOCK - 1 - i
        value = 0
        if computed:
            value = min(previous[west], min(previous[t], previous[east])) + wall[(start + i) * columns + column]
        st.sync()
        if i == ROWS - 1:
            if computed:
                out[column] = value
            break
        if computed:
            previous[t] = value
        st.sync()


@st.kernel
def b_tree_search(
    keys: Global[i32], child: Global[i32], record: Global[i32], asked: Global[i32], out: Global[i32], ORDER: Const, LEVELS: Const
) -> None:  # fmt: skip
    """out = the record of each key, -1 where it is not there; a block a key, a thread a key of a node."""
    node = st.shared(i32, 1)
    found = st.shared(i32, 1)
    t = st.thread.x
    if t == 0:
        node[0] = 0
        found[0] = -1
    st.sync()
    key = asked[st.block.x]
    for _ in range(LEVELS):
        at = node[0]
        st.sync()
        if keys[at, t] <= key and key < keys[at, t + 1]:
            node[0] = child[at, t]
            if keys[at, t] == key:
                found[0] = child[at, t]
        st.sync()
    if t == 0:
        out[st.block.x] = record[node[0]] if found[0] == node[0] else -1


@st.kernel
def mri_q(
    k: Constant[f32], x: Global[f32], y: Global[f32], z: Global[f32], qr: Global[f32], qi: Global[f32], n: i32, SAMPLES: Const
) -> None:  # fmt: skip
    """qr, qi = sums of waves at each voxel: frequencies and magnitudes in constant memory, four numbers a sample."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    sx, sy, sz = x[i], y[i], z[i]
    real, imaginary = 0.0, 0.0
    for s in range(SAMPLES):
        angle = f32(2 * math.pi) * (k[4 * s] * sx + k[4 * s + 1] * sy + k[4 * s + 2] * sz)
        real += k[4 * s + 3] * st.cos(angle)
        imaginary += k[4 * s + 3] * st.sin(angle)
    qr[i] = real
    qi[i] = imaginary


@st.kernel
def angular_pairs(
    x: Global[f32], y: Global[f32], z: Global[f32], bound: Constant[f32], out: Global[i32], n: i32, BINS: Const, BLOCK: Const
) -> None:  # fmt: skip
    """out = pairs by the cosine of their angle, with a binary search of the bin; a histogram a warp in shared memory."""
    histogram = st.shared(i32, BINS * (BLOCK // 32))
    tx = st.shared(f32, BLOCK)
    ty = st.shared(f32, BLOCK)
    tz = st.shared(f32, BLOCK)
    t = st.thread.x
    for b in range(t, BINS * (BLOCK // 32), BLOCK):
        histogram[b] = 0
    i = st.block.x * BLOCK + t
    ox, oy, oz = x[i], y[i], z[i]
    for first in range(0, n, BLOCK):
        st.sync()
        tx[t], ty[t], tz[t] = x[first + t], y[first + t], z[first + t]
        st.sync()
        for j in range(BLOCK):
            if first + j > i:
                dot = ox * tx[j] + oy * ty[j] + oz * tz[j]
                low, high = 0, BINS
                while high > low + 1:
                    middle = (low + high) // 2
                    if dot >= bound[middle]:
                        high = middle
                    else:
                        low = middle
                st.atomic_add(histogram, low * (BLOCK // 32) + st.warp, 1)
    st.sync()
    if t < BINS:
        total = 0
        for w in range(BLOCK // 32):
            total += histogram[t * (BLOCK // 32) + w]
        st.atomic_add(out, t, total)


@st.kernel
def sad_blocks(frame: Global[u8], reference: Global[u8], out: Global[u16], n: i32, RADIUS: Const) -> None:
    """out = sums of absolute differences of the 4 x 4 blocks of 16 x 16 pixels, for each shift by up to RADIUS."""
    current = st.shared(u8, 16, 16)
    for k in range(st.thread.x, 256, st.block_dim.x):
        current[k // 16, k % 16] = frame[(st.block.y * 16 + k // 16) * n + st.block.x * 16 + k % 16]
    st.sync()
    side = 2 * RADIUS + 1
    first = (st.block.y * st.grid_dim.x + st.block.x) * 16 * side * side
    for place in range(st.thread.x, side * side, st.block_dim.x):
        top = st.block.y * 16 + place // side - RADIUS
        left = st.block.x * 16 + place % side - RADIUS
        for part in range(16):
            total = 0
            for r in st.unroll(range(4)):
                row = part // 4 * 4 + r
                line = min(max(top + row, 0), n - 1) * n
                for c in st.unroll(range(4)):
                    column = part % 4 * 4 + c
                    there = reference[line + min(max(left + column, 0), n - 1)]
                    total += abs(i32(current[row, column]) - i32(there))
            out[first + part * side * side + place] = u16(total)


@st.kernel
def spmv_jagged(
    value: Global[f32], column: Global[i32], start: Global[i32], length: Global[i32], order: Global[i32], x: Global[f32],
    out: Global[f32], n: i32,
) -> None:  # fmt: skip
    """A matrix in jagged diagonals times x: rows by length, the k-th entries of all rows together."""
    row = st.block.x * st.block_dim.x + st.thread.x
    if row < n:
        total = 0.0
        for k in range(length[row]):
            j = start[k] + row
            total += value[j] * x[column[j]]
        out[order[row]] = total


# ------------------------------------------------------------------ launches
UNKNOWNS = 32


def _pivoted(n: int, block: object) -> Args:
    a, b = draw().normal(0, 1, (n, UNKNOWNS, UNKNOWNS)), draw().normal(0, 1, n * UNKNOWNS).astype(np.float32)
    a = a[:, draw().permutation(UNKNOWNS)] + 8 * np.eye(UNKNOWNS)[draw().permutation(UNKNOWNS)]
    return {"a": a.astype(np.float32).ravel(), "b": b, "out": np.zeros_like(b), "N": UNKNOWNS}


def _solved(args: Args) -> dict[str, Values]:
    a = args["a"].reshape(-1, UNKNOWNS, UNKNOWNS).astype(float)
    return {"out": np.linalg.solve(a, args["b"].reshape(-1, UNKNOWNS, 1))}


HIDDEN = 64


def _layer(n: int, block: tuple[int, int]) -> Args:
    side = block[0]
    weight = floats((n + 1) * (HIDDEN + 1)) - np.float32(0.5)
    partial = zeros(n // side * HIDDEN)
    return {
        "units": floats(n + 1), "weight": weight, "partial": partial, "hidden": HIDDEN, "SIDE": side, "LOG": side.bit_length() - 1,
    }  # fmt: skip


def _forwarded(args: Args) -> dict[str, Values]:
    weight = args["weight"].reshape(-1, HIDDEN + 1)[1:, 1:].astype(float)
    return {"partial": (weight * args["units"][1:, None]).reshape(-1, args["SIDE"], HIDDEN).sum(axis=1)}


def _weighted(n: int, block: int) -> Args:
    cdf = np.cumsum(draw().random(n))
    x, y = draw().normal(0, 1, (2, n))
    return {
        "cdf": cdf / cdf[-1], "u": (0.3 + np.arange(n)) / n, "x": x.copy(), "y": y.copy(), "new_x": zeros(n, np.float64),
        "new_y": zeros(n, np.float64), "n": n,
    }  # fmt: skip


def _resampled(args: Args) -> dict[str, Values]:
    at = np.minimum(np.searchsorted(args["cdf"], args["u"]), args["n"] - 1)
    return {"new_x": args["x"][at], "new_y": args["y"][at]}


ROWS = 8


def _walls(n: int, block: int) -> Args:
    return {
        "wall": ints(n * (ROWS + 2), 10), "source": ints(n, 100), "out": zeros(n, np.int32), "columns": n, "start": 2, "ROWS": ROWS,
        "BLOCK": block,
    }  # fmt: skip


def _path_costs(args: Args) -> dict[str, Values]:
    now = args["source"]
    for row in args["wall"].reshape(-1, args["columns"])[args["start"] :]:
        padded = np.pad(now, 1, mode="edge")
        now = row + np.minimum(np.minimum(padded[:-2], padded[2:]), now)
    return {"out": now}


def _tree(n: int, block: int) -> Args:
    """Two levels; a key of a leaf is the place of its record."""
    count = block * block
    key = np.sort(draw().choice(4 * count, count, replace=False)).astype(np.int32)
    key[0] = 0
    low = np.concatenate([key[None, ::block], key.reshape(block, block)])
    high = np.append(key[::block], 2**31 - 1)
    ends = np.concatenate([high[-1:], high[1:]]).astype(np.int32)
    child = np.concatenate([np.arange(1, block + 1), np.arange(count)]).astype(np.int32)
    return {
        "keys": np.column_stack([low, ends]), "child": child.reshape(-1, block), "record": ints(count, 1 << 20),
        "asked": ints(n, 4 * count), "out": zeros(n, np.int32), "ORDER": block, "LEVELS": 2,
    }  # fmt: skip


def _records(args: Args) -> dict[str, Values]:
    key = args["keys"][1:, :-1].ravel()
    at = np.searchsorted(key, args["asked"], "right") - 1
    return {"out": np.where(key[at] == args["asked"], args["record"][at], -1)}


SAMPLES = 96


def _voxels(n: int, block: int) -> Args:
    x, y, z = floats(3, n)
    k = draw().normal(0, 1, (SAMPLES, 4)).astype(np.float32)
    return {
        "k": k.ravel(), "x": x.copy(), "y": y.copy(), "z": z.copy(), "qr": zeros(n), "qi": zeros(n), "n": n, "SAMPLES": SAMPLES,
    }  # fmt: skip


def _waves(args: Args) -> dict[str, Values]:
    k = args["k"].reshape(-1, 4).astype(float)
    total = np.zeros(args["n"], complex)
    for kx, ky, kz, size in k:
        total += size * np.exp(2j * np.pi * (kx * args["x"] + ky * args["y"] + kz * args["z"]))
    return {"qr": total.real, "qi": total.imag}


BINS = 18
BOUND = np.cos(np.geomspace(0.01, math.pi, BINS)).astype(np.float32)


def _stars(n: int, block: int) -> Args:
    place = draw().normal(0, 1, (3, n))
    x, y, z = (place / np.linalg.norm(place, axis=0)).astype(np.float32)
    return {
        "x": x.copy(), "y": y.copy(), "z": z.copy(), "bound": BOUND, "out": zeros(BINS, np.int32), "n": n, "BINS": BINS, "BLOCK": block,
    }  # fmt: skip


def _binned(args: Args) -> dict[str, Values]:
    out = np.zeros(BINS, int)
    for i in range(args["n"] - 1):
        dot = sum(args[axis][i] * args[axis][i + 1 :] for axis in "xyz")
        out += np.bincount((dot[:, None] < args["bound"][1:]).sum(axis=1), minlength=BINS)
    return {"out": out}


RADIUS = 4


def _frames(n: int, block: int) -> Args:
    count = (n // 4) ** 2 * (2 * RADIUS + 1) ** 2
    frame = ints(n * n, 256, np.uint8)
    return {"frame": frame, "reference": frame[::-1].copy(), "out": zeros(count, np.uint16), "n": n, "RADIUS": RADIUS}


def _differences(args: Args) -> dict[str, Values]:
    n, side = args["n"], 2 * RADIUS + 1
    frame, padded = (args[name].reshape(n, n).astype(int) for name in ("frame", "reference"))
    padded = np.pad(padded, RADIUS, mode="edge")
    out = np.zeros((n // 16, n // 16, 4, 4, side, side), int)
    for r, c in np.ndindex(side, side):
        blocks = abs(frame - padded[r : r + n, c : c + n]).reshape(n // 16, 4, 4, n // 16, 4, 4)
        out[..., r, c] = blocks.sum(axis=(2, 5)).transpose(0, 2, 1, 3)
    return {"out": out}


def _jagged(n: int, block: int) -> Args:
    """Most rows are short."""
    length = np.sort((32 * draw().random(n) ** 3).astype(np.int32))[::-1].copy()
    rows = (length[:, None] > np.arange(33)).sum(axis=0)
    start = np.concatenate([[0], np.cumsum(rows)]).astype(np.int32)
    return {
        "value": floats(start[-1]), "column": ints(int(start[-1]), n), "start": start, "length": length,
        "order": draw().permutation(n).astype(np.int32), "x": floats(n), "out": zeros(n), "n": n,
    }  # fmt: skip


def _multiplied(args: Args) -> dict[str, Values]:
    total = np.zeros(args["n"])
    for first, last in zip(args["start"], args["start"][1:], strict=False):
        total[: last - first] += args["value"][first:last] * args["x"][args["column"][first:last]]
    out = np.zeros_like(total)
    out[args["order"]] = total
    return {"out": out}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(gauss_jordan, lambda n, b: n, _pivoted, _solved, (3, (32, 4)), (132, 1056), ((16, 16), (32, 4), (32, 8))),
    ValidationKernel(
        backprop_forward, lambda n, b: (HIDDEN // b[0], n // b[1]), _layer, _forwarded, (128, (16, 16)), (1 << 13, 1 << 16),
        ((8, 8), (16, 16), (32, 32)),
    ),
    ValidationKernel(particle_resample, cover, _weighted, _resampled, (400, 128), (1 << 11, 1 << 13), (64, 256, 512)),
    ValidationKernel(
        pathfinder_rows, lambda n, b: cover(n, b - 2 * ROWS), _walls, _path_costs, (1000, 128), (1 << 15, 1 << 19), BLOCKS,
    ),
    ValidationKernel(b_tree_search, lambda n, b: n, _tree, _records, (40, 64), (1 << 11, 1 << 14), (64, 128, 256)),
    ValidationKernel(mri_q, cover, _voxels, _waves, (300, 128), (1 << 13, 1 << 16), (64, 256, 512)),
    ValidationKernel(angular_pairs, cover, _stars, _binned, (256, 128), restored=("out",)),
    ValidationKernel(
        sad_blocks, lambda n, b: (n // 16, n // 16), _frames, _differences, (48, 96), (128, 512), (64, 96, 128),
    ),
    ValidationKernel(spmv_jagged, cover, _jagged, _multiplied, (600, 128), (1 << 16, 1 << 19), BLOCKS),
)  # fmt: skip
