"""Grids and grid-stride loops: a rank update, Jacobi's method, records to columns, a permutation, a convolution, a text search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32, u8, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, zeros

BASE = 257
PRIME = 1_000_000_007


class Star(NamedTuple):
    """A record of a catalogue."""

    x: f32
    y: f32
    z: f32
    speed: f32
    mass: f32
    kind: i32


@st.kernel
def syrk_triangle(a: Global[f32], c: Global[f32], n: i32, m: i32, alpha: f32, beta: f32) -> None:
    """c = alpha * a @ a.T + beta * c, the lower triangle; c is added to in global memory."""
    j = st.block.x * st.block_dim.x + st.thread.x
    i = st.block.y * st.block_dim.y + st.thread.y
    if i >= n or j > i:
        return
    c[i * n + j] *= beta
    for k in range(m):
        c[i * n + j] += alpha * a[i * m + k] * a[j * m + k]


@st.kernel
def jacobi_until(old: Global[f64], source: Global[f64], new: Global[f64], moved: Global[i32], tolerance: f64) -> None:
    """new = old after a sweep for Poisson's equation; moved[0] = 1 where any point moved by more than the tolerance."""
    j = st.block.x * st.block_dim.x + st.thread.x
    i = st.block.y * st.block_dim.y + st.thread.y
    rows, columns = old.shape
    changed = False
    if 0 < i < rows - 1 and 0 < j < columns - 1:
        value = 0.25 * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1] - source[i, j])
        changed = abs(value - old[i, j]) > tolerance
        new[i, j] = value
    elif i < rows and j < columns:
        new[i, j] = old[i, j]
    any_changed = st.sync_or(changed)
    if any_changed and st.thread.x == 0 and st.thread.y == 0:
        st.atomic_or(moved, 0, 1)


@st.kernel
def records_to_columns(
    star: Global[Star],
    x: Global[f32],
    y: Global[f32],
    z: Global[f32],
    speed: Global[f32],
    mass: Global[f32],
    kind: Global[i32],
    n: i32,
) -> None:
    """An array of structures to an array for each of their fields."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        one = star[i]
        x[i] = one.x
        y[i] = one.y
        z[i] = one.z
        speed[i] = one.speed
        mass[i] = one.mass
        kind[i] = one.kind


@st.kernel
def permute_axes(x: Global[f32], out: Global[f32], depth: u32, rows: u32, columns: u32) -> None:
    """out[c, d, r] = x[d, r, c]: the indices of each element of out by division and remainder."""
    total = depth * rows * columns
    for i in range(u32(st.block.x * st.block_dim.x + st.thread.x), total, u32(st.grid_dim.x * st.block_dim.x)):
        r = i % rows
        d = i // rows % depth
        c = i // (rows * depth)
        out[i] = x[(d * rows + r) * columns + c]


@st.kernel
def convolution_channels(
    x: Global[f32], weight: Global[f32], bias: Global[f32], out: Global[f32], stride: i32, pad: i32, SIDE: Const
) -> None:
    """out[f] = all channels of an image by filter f of SIDE x SIDE at a stride of `stride` pixels, and at least 0."""
    column = st.block.x * st.block_dim.x + st.thread.x
    row = st.block.y * st.block_dim.y + st.thread.y
    f = st.block.z
    if row >= out.shape[1] or column >= out.shape[2]:
        return
    channels, high, wide = x.shape
    total = bias[f]
    for c in range(channels):
        for r in range(SIDE):
            at_row = row * stride - pad + r
            if at_row < 0 or at_row >= high:
                continue
            for s in range(SIDE):
                at_column = column * stride - pad + s
                if at_column >= 0 and at_column < wide:
                    total += x[c, at_row, at_column] * weight[f, c, r, s]
    out[f, row, column] = max(total, 0.0)


@st.device
def hash_of(text: Global[u8], first: i32, length: i32) -> u64:
    """A polynomial in BASE of the letters from `first` on, modulo PRIME."""
    value = u64(0)
    for k in range(length):
        value = (value * BASE + u64(text[first + k])) % PRIME
    return value


@st.kernel
def rolling_hash_search(text: Global[u8], word: Global[u8], out: Global[u32], n: i32, length: i32, power: u64) -> None:
    """out = a bit for each place where a word begins, 32 places a thread: a hash that rolls on, then letter by letter."""
    t = st.block.x * st.block_dim.x + st.thread.x
    first, last = 32 * t, n - length
    if first > last:
        return
    goal = hash_of(word, 0, length)
    value = hash_of(text, first, length)
    found = u32(0)
    for k in range(32):
        at = first + k
        if value == goal:
            m = 0
            while m < length and text[at + m] == word[m]:
                m += 1
            if m == length:
                found |= u32(1) << k
        if at >= last:
            break
        value += PRIME - u64(text[at]) * power % PRIME
        value = (value * BASE + u64(text[at + length])) % PRIME
    out[t] = found


# ------------------------------------------------------------------ launches
def _update(n: int, block: object) -> Args:
    m = n // 2
    return {"a": floats(n * m), "c": draw().random(n * n, np.float32), "n": n, "m": m, "alpha": 1.5, "beta": 0.75}


def _updated(args: Args) -> dict[str, Values]:
    n, a = args["n"], args["a"].reshape(args["n"], -1)
    c = args["c"].reshape(n, n)
    return {"c": np.where(np.tri(n, dtype=bool), 1.5 * (a @ a.T) + 0.75 * c, c).ravel()}


def _field(n: int, block: object) -> Args:
    """Return a field with its upper half at rest."""
    old = np.broadcast_to(np.linspace(0, 1, n), (n, n)).copy()
    old[n // 2 :] = draw().random((n - n // 2, n))
    source = np.zeros((n, n))
    source[n // 2 :] = 0.01
    return {"old": old, "source": source, "new": np.zeros((n, n)), "moved": zeros(1, np.int32), "tolerance": 1e-6}


def _swept(args: Args) -> dict[str, Values]:
    old = args["old"]
    new = old.copy()
    around = old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]
    new[1:-1, 1:-1] = 0.25 * (around - args["source"][1:-1, 1:-1])
    return {"new": new, "moved": np.array([(abs(new - old) > args["tolerance"]).any()])}


FIELDS = ("x", "y", "z", "speed", "mass", "kind")


def _catalogue(n: int, block: int) -> Args:
    star = np.zeros(n, np.dtype([(name, np.int32 if name == "kind" else np.float32) for name in FIELDS], align=True))
    for name, numbers in zip(FIELDS, floats(len(FIELDS), n), strict=True):
        star[name] = numbers * 100
    return {"star": star, **{name: zeros(n, star[name].dtype) for name in FIELDS}, "n": n}


def _few(n: int, block: int) -> int:
    return min(1056, cover(n, block))


def _box(n: int, block: int) -> Args:
    depth, rows, columns = n, n + 5, n - 3
    count = depth * rows * columns
    return {"x": floats(count), "out": zeros(count), "depth": depth, "rows": rows, "columns": columns}


def _permuted(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(args["depth"], args["rows"], args["columns"])
    return {"out": x.transpose(2, 0, 1).ravel()}


CHANNELS, FILTERS = 8, 16


def _layer(n: int, block: object) -> Args:
    x, weight = floats(CHANNELS, n, n), floats(FILTERS, CHANNELS, 3, 3) - np.float32(0.5)
    half = (n + 1) // 2
    out = np.zeros((FILTERS, half, half), np.float32)
    return {"x": x, "weight": weight, "bias": floats(FILTERS), "out": out, "stride": 2, "pad": 1, "SIDE": 3}


def _convolved(args: Args) -> dict[str, Values]:
    _, high, wide = args["out"].shape
    padded = np.pad(args["x"], ((0, 0), (1, 1), (1, 1)))
    total = np.repeat(args["bias"], high * wide).reshape(-1, high, wide)
    for r, s in np.ndindex(3, 3):
        window = padded[:, r : r + 2 * high - 1 : 2, s : s + 2 * wide - 1 : 2]
        total += np.einsum("fc,cij->fij", args["weight"][:, :, r, s], window, optimize=True)
    return {"out": np.maximum(total, 0)}


LENGTH = 12


def _text(n: int, block: int) -> Args:
    text = draw().integers(97, 101, n, np.uint8)
    word = draw().integers(97, 101, LENGTH, np.uint8)
    for start in draw().integers(0, n - LENGTH, n // 300):
        text[start : start + LENGTH] = word
    return {
        "text": text, "word": word, "out": zeros(cover(n, 32), np.uint32), "n": n, "length": LENGTH,
        "power": pow(BASE, LENGTH - 1, PRIME),
    }  # fmt: skip


def _positions(args: Args) -> dict[str, Values]:
    places = args["n"] - LENGTH + 1
    fits = np.ones(places, bool)
    for k in range(LENGTH):
        fits &= args["text"][k : k + places] == args["word"][k]
    bits = np.pad(fits, (0, 32 * len(args["out"]) - places))
    return {"out": np.packbits(bits, bitorder="little").view(np.uint32)}


SHAPES = ((32, 8), (16, 16), (32, 4))
BLOCKS = (128, 256, 512)

KERNELS = (
    ValidationKernel(syrk_triangle, tiles, _update, _updated, (100, (32, 8)), (256, 640), SHAPES, restored=("c",)),
    ValidationKernel(jacobi_until, tiles, _field, _swept, (150, (16, 16)), (512, 2500), SHAPES),
    ValidationKernel(
        records_to_columns, _few, _catalogue, lambda a: {name: a["star"][name] for name in FIELDS}, (20_000, 128),
        (1 << 16, 1 << 21), BLOCKS,
    ),
    ValidationKernel(
        permute_axes, lambda n, b: _few(n**3, b), _box, _permuted, (40, 256), (64, 200), BLOCKS,
    ),
    ValidationKernel(
        convolution_channels, lambda n, b: (*tiles((n + 1) // 2, b), FILTERS), _layer, _convolved, (50, (16, 8)), (128, 450),
        SHAPES,
    ),
    ValidationKernel(
        rolling_hash_search, lambda n, b: cover(n, 32 * b), _text, _positions, (1 << 17, 128), (1 << 18, 1 << 23), (64, 128, 256),
    ),
)  # fmt: skip
