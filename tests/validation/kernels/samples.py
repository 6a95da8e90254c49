"""Kernels as a vendor's samples have them: filters, transforms, sequences, counts, scans, sorts."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float2, i16, i32, int4, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, words, zeros

RADIUS = 8
WEIGHTS = tuple(round(math.exp(-((k - RADIUS) ** 2) / 18) / 7.5, 6) for k in range(2 * RADIUS + 1))


@st.kernel
def convolution_rows(x: Global[f32], out: Global[f32], n: i32, WIDE: Const, HIGH: Const, STEPS: Const) -> None:
    """out = rows of a square by 17 weights; a thread has STEPS pixels, and a block a halo of WIDE on either side."""
    weight = st.constant(f32, WEIGHTS)
    tile = st.shared(f32, HIGH, (STEPS + 2) * WIDE)
    tx, ty = st.thread.x, st.thread.y
    first = (st.block.x * STEPS - 1) * WIDE + tx
    row = (st.block.y * HIGH + ty) * n
    for i in st.unroll(range(STEPS + 2)):
        column = first + i * WIDE
        tile[ty, tx + i * WIDE] = x[row + column] if 0 <= column < n else 0.0
    st.sync()
    for i in st.unroll(range(1, STEPS + 1)):
        total = 0.0
        for j in st.unroll(range(-RADIUS, RADIUS + 1)):
            total += weight[RADIUS - j] * tile[ty, tx + i * WIDE + j]
        out[row + first + i * WIDE] = total


@st.device
def by_angle(v: float2, angle: f32) -> float2:
    """A complex number, rotated."""
    s, c = st.sincos(angle)
    return float2(v.x * c - v.y * s, v.x * s + v.y * c)


@st.kernel
def fft_radix4(x: Global[float2], out: Global[float2], BLOCK: Const) -> None:
    """out = transforms of 4 * BLOCK numbers, a block each: four a thread in registers, exchanged through shared memory."""
    real = st.shared(f32, 4 * BLOCK)
    imaginary = st.shared(f32, 4 * BLOCK)
    t = st.thread.x
    first = st.block.x * 4 * BLOCK
    a, b, c, d = x[first + t], x[first + t + BLOCK], x[first + t + 2 * BLOCK], x[first + t + 3 * BLOCK]
    span = 1
    while span < 4 * BLOCK:
        angle = f32(-math.pi / 2) * f32(t % span) / f32(span)
        b, c, d = by_angle(b, angle), by_angle(c, 2.0 * angle), by_angle(d, 3.0 * angle)
        p, q = float2(a.x + c.x, a.y + c.y), float2(a.x - c.x, a.y - c.y)
        r, s = float2(b.x + d.x, b.y + d.y), float2(b.y - d.y, d.x - b.x)
        to = t // span * span * 4 + t % span
        real[to], imaginary[to] = p.x + r.x, p.y + r.y
        real[to + span], imaginary[to + span] = q.x + s.x, q.y + s.y
        real[to + 2 * span], imaginary[to + 2 * span] = p.x - r.x, p.y - r.y
        real[to + 3 * span], imaginary[to + 3 * span] = q.x - s.x, q.y - s.y
        st.sync()
        a, b = float2(real[t], imaginary[t]), float2(real[t + BLOCK], imaginary[t + BLOCK])
        c = float2(real[t + 2 * BLOCK], imaginary[t + 2 * BLOCK])
        d = float2(real[t + 3 * BLOCK], imaginary[t + 3 * BLOCK])
        st.sync()
        span *= 4
    out[first + t] = a
    out[first + t + BLOCK] = b
    out[first + t + 2 * BLOCK] = c
    out[first + t + 3 * BLOCK] = d


@st.kernel
def walsh_transform(x: Global[f32], out: Global[f32], count: i32) -> None:
    """out = Walsh's transform of `count` numbers, a block each, in dynamic shared memory, by block-stride loops."""
    held = st.dynamic_shared(f32)
    first = st.block.x * count
    for k in range(st.thread.x, count, st.block_dim.x):
        held[k] = x[first + k]
    stride = count >> 1
    while stride > 0:
        st.sync()
        for k in range(st.thread.x, count >> 1, st.block_dim.x):
            low = k & (stride - 1)
            i = ((k - low) << 1) + low
            a, b = held[i], held[i + stride]
            held[i] = a + b
            held[i + stride] = a - b
        stride >>= 1
    st.sync()
    for k in range(st.thread.x, count, st.block_dim.x):
        out[first + k] = held[k]


@st.kernel
def sobol_points(direction: Global[u32], out: Global[f32], n: i32) -> None:
    """out = n points of Sobol's sequence in each dimension, in the order of Gray's code; a row of blocks a dimension."""
    v = st.shared(u32, 32)
    if st.thread.x < 32:
        v[st.thread.x] = direction[st.block.y * 32 + st.thread.x]
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    stride = st.grid_dim.x * st.block_dim.x
    gray = i ^ (i >> 1)
    point = u32(0)
    for k in range(st.ffs(stride)):
        if gray >> k & 1 != 0:
            point ^= v[k]
    last = v[st.ffs(stride) - 2]
    while i < n:
        out[st.block.y * n + i] = f32(point) * f32(2**-32)
        point ^= last ^ v[st.ffs(~(i | (stride - 1))) - 1]
        i += stride


@st.kernel
def sturm_bisection(diagonal: Global[f32], beside: Global[f32], out: Global[f32], BLOCK: Const) -> None:
    """out = eigenvalues of symmetric tridiagonal matrices, a block a matrix, a thread a value: how many are below a middle."""
    d = st.shared(f32, BLOCK)
    e2 = st.shared(f32, BLOCK)
    t = st.thread.x
    d[t] = diagonal[st.block.x * BLOCK + t]
    off = beside[st.block.x * BLOCK + t]
    e2[t] = off * off
    st.sync()
    low, high = -8.0, 8.0
    while True:
        middle = 0.5 * (low + high)
        if high - low < 1e-5 or not low < middle < high:
            break
        below = 0
        q = d[0] - middle
        for k in range(1, BLOCK):
            if q < 0.0:
                below += 1
            if abs(q) < 1e-20:
                q = 1e-20
            q = d[k] - middle - e2[k - 1] / q
        if q < 0.0:
            below += 1
        if below > t:
            high = middle
        else:
            low = middle
    out[st.block.x * BLOCK + t] = 0.5 * (low + high)


@st.device
def add_byte(table: st.Shared[u8], data: u32, t: i32, BLOCK: Const) -> None:
    """One more of a byte's upper six bits in the column of a thread."""
    at = i32(data >> 2) * BLOCK + t
    table[at] = table[at] + u8(1)


@st.kernel
def histogram_bytes(x: Global[u32], out: Global[i32], n: i32, BLOCK: Const, EACH: Const) -> None:
    """out = bytes by their upper six bits: counters of a byte for each thread in shared memory, at most EACH words a thread."""
    table = st.shared(u8, 64 * BLOCK)
    t = st.thread.x
    for b in range(64):
        table[b * BLOCK + t] = u8(0)
    st.sync()
    first = st.block.x * BLOCK * EACH
    for i in range(first + t, min(first + BLOCK * EACH, n), BLOCK):
        four = x[i]
        add_byte(table, four & 255, t, BLOCK)
        add_byte(table, four >> 8 & 255, t, BLOCK)
        add_byte(table, four >> 16 & 255, t, BLOCK)
        add_byte(table, four >> 24, t, BLOCK)
    st.sync()
    if t < 64:
        total = 0
        at = t & 31
        for _ in range(BLOCK):
            total += i32(table[t * BLOCK + at])
            at += 1
            if at == BLOCK:
                at = 0
        st.atomic_add(out, t, total)


@st.kernel
def scan_with_offsets(x: Global[int4], before: Global[i32], out: Global[int4]) -> None:
    """out = prefix sums: four numbers a thread, by shuffles, through shared memory, plus the sum of the previous blocks."""
    of_warps = st.shared(i32, 32)
    i = st.block.x * st.block_dim.x + st.thread.x
    four = x[i]
    b = four.x + four.y
    c = b + four.z
    own = c + four.w
    total = own
    step = 1
    while step < 32:
        other = st.shuffle_up(total, step)
        total += other if st.lane >= step else 0
        step <<= 1
    if st.lane == 31:
        of_warps[st.warp] = total
    st.sync()
    base = before[st.block.x] + total - own
    for w in range(st.warp):
        base += of_warps[w]
    out[i] = int4(base + four.x, base + b, base + c, base + own)


@st.kernel
def filter_aggregated(x: Global[i32], out: Global[i32], count: Global[i32], n: i32, least: i32) -> None:
    """out = numbers above `least` in any order; the lanes that have one take their places by one atomic."""
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        value = x[i]
        if value > least:
            active = st.active_mask()
            leader = st.ffs(active) - 1
            base = 0
            if st.lane == leader:
                base = st.atomic_add(count, 0, st.popcount(active))
            base = st.shuffle(base, leader, mask=active)
            out[base + st.popcount(active & st.lanemask_lt())] = value


@st.kernel
def bit_reversal(x: Global[float2], LOG: Const) -> None:
    """Numbers change places with those at their index in reverse order of its bits."""
    i = st.block.x * st.block_dim.x + st.thread.x
    j = i32(st.brev(u32(i)) >> (32 - LOG))
    if i < j:
        x[i], x[j] = x[j], x[i]


@st.kernel
def lifting_wavelet(x: Global[i16], out: Global[i16], N: Const, LEVELS: Const) -> None:
    """out = rows of N numbers by the wavelet of JPEG 2000 without loss, a block a row: lifting in shared memory."""
    even = st.shared(i32, N)
    odd = st.shared(i32, N // 2)
    first = st.block.x * N
    for k in range(st.thread.x, N, st.block_dim.x):
        even[k] = i32(x[first + k])
    half = N // 2
    for _ in range(LEVELS):
        st.sync()
        for k in range(st.thread.x, half, st.block_dim.x):
            right = even[2 * k + 2] if k + 1 < half else even[2 * k]
            odd[k] = even[2 * k + 1] - ((even[2 * k] + right) >> 1)
        st.sync()
        kept = 0
        for start in range(0, half, st.block_dim.x):
            k = start + st.thread.x
            if k < half:
                kept = even[2 * k] + ((odd[max(k - 1, 0)] + odd[k] + 2) >> 2)
                out[first + half + k] = i16(odd[k])
            st.sync()
            if k < half:
                even[k] = kept
        half //= 2
    st.sync()
    for k in range(st.thread.x, 2 * half, st.block_dim.x):
        out[first + k] = i16(even[k])


@st.kernel
def warp_sort_pairs(key: Global[u32], value: Global[i32], out_key: Global[u32], out_value: Global[i32]) -> None:
    """Each 32 pairs sorted by their keys in a warp by shuffles."""
    i = st.block.x * st.block_dim.x + st.thread.x
    k, v = key[i], value[i]
    size = 2
    while size <= 32:
        stride = size // 2
        while stride > 0:
            other, whose = st.shuffle_xor(k, stride), st.shuffle_xor(v, stride)
            upper = st.lane & stride != 0
            descending = st.lane & size != 0
            if (other < k) != (upper != descending) and other != k:
                k, v = other, whose
            stride //= 2
        size *= 2
    out_key[i] = k
    out_value[i] = v


# ------------------------------------------------------------------ launches
STEPS = 4


def _filtered(n: int, block: tuple[int, int]) -> Args:
    return {"x": floats(n * n), "out": zeros(n * n), "n": n, "WIDE": block[0], "HIGH": block[1], "STEPS": STEPS}


def _weighted(args: Args) -> dict[str, Values]:
    n = args["n"]
    padded = np.pad(args["x"].reshape(n, n).astype(float), ((0, 0), (RADIUS, RADIUS)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, len(WEIGHTS), axis=1)
    return {"out": windows @ np.array(WEIGHTS[::-1])}


def _waves(n: int, block: int) -> Args:
    x = draw().normal(0, 1, (n * 4 * block, 2)).astype(np.float32)
    return {"x": x, "out": np.zeros_like(x), "BLOCK": block}


def _transformed(args: Args) -> dict[str, Values]:
    x = args["x"].astype(float).view(complex).reshape(-1, 4 * args["BLOCK"])
    return {"out": np.fft.fft(x).view(float)}


COUNT = 1024


def _signs(args: Args) -> dict[str, Values]:
    x = args["x"].astype(float).reshape(-1, COUNT)
    for k in range(10):
        pairs = x.reshape(len(x), -1, 2, 1 << k)
        x = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2).reshape(len(x), -1)
    return {"out": x}


DIMENSIONS = 6


def _directions(n: int, block: int) -> Args:
    """Each has its own highest bit, and any below."""
    top = np.uint32(1) << np.arange(31, -1, -1, dtype=np.uint32)
    v = (words(32 * DIMENSIONS).reshape(-1, 32) & ~(top - np.uint32(1)) & ~top) | top
    return {"direction": v.ravel(), "out": zeros(n * DIMENSIONS), "n": n}


def _points(args: Args) -> dict[str, Values]:
    i = np.arange(args["n"])
    gray, out = i ^ i >> 1, np.zeros((DIMENSIONS, args["n"]), np.uint32)
    for k, v in enumerate(args["direction"].reshape(-1, 32).T[:24]):
        out ^= np.where(gray >> k & 1, v[:, None], np.uint32(0))
    return {"out": out * 2.0**-32}


def _bands(n: int, block: int) -> Args:
    d, e = draw().uniform(-2, 2, (2, n * block)).astype(np.float32)
    return {"diagonal": d.copy(), "beside": e.copy(), "out": np.zeros_like(d), "BLOCK": block}


def _eigenvalues(args: Args) -> dict[str, Values]:
    d, e = (args[name].reshape(-1, args["BLOCK"]).astype(float) for name in ("diagonal", "beside"))
    k = np.arange(args["BLOCK"])
    m = np.zeros((len(d), len(k), len(k)))
    m[:, k, k], m[:, k[1:], k[:-1]] = d, e[:, :-1]
    return {"out": np.linalg.eigvalsh(m)}


WORDS_PER_THREAD = 48


def _sixes(args: Args) -> dict[str, Values]:
    return {"out": np.bincount(args["x"].view(np.uint8) >> 2, minlength=64)}


def _sums(n: int, block: int) -> Args:
    x = ints(4 * n, 100)
    before = np.concatenate([[0], np.cumsum(x.reshape(-1, 4 * block).sum(axis=1))[:-1]]).astype(np.int32)
    return {"x": x.reshape(-1, 4), "before": before, "out": np.zeros((n, 4), np.int32)}


def _numbers(n: int, block: int) -> Args:
    return {"x": ints(n, 1000), "out": zeros(n, np.int32), "count": zeros(1, np.int32), "n": n, "least": 700}


def _above(args: Args) -> dict[str, Values]:
    selected = args["x"][args["x"] > args["least"]]
    return {"out": selected, "count": np.array([len(selected)])}


def _reversed(args: Args) -> dict[str, Values]:
    return {"x": args["x"].reshape(*[2] * args["LOG"], 2).transpose(*range(args["LOG"])[::-1], args["LOG"])}


SAMPLES = 512


def _rows(n: int, block: int) -> Args:
    x = ints(n * SAMPLES, 256, np.int16)
    return {"x": x, "out": np.zeros_like(x), "N": SAMPLES, "LEVELS": 3}


def _lifted(args: Args) -> dict[str, Values]:
    x, details = args["x"].reshape(-1, SAMPLES).astype(int), []
    for _ in range(3):
        even, odd = x[:, ::2], x[:, 1::2]
        odd = odd - (even + np.concatenate([even[:, 1:], even[:, -1:]], axis=1) >> 1)
        x = even + (np.concatenate([odd[:, :1], odd[:, :-1]], axis=1) + odd + 2 >> 2)
        details.append(odd)
    return {"out": np.concatenate([x, *details[::-1]], axis=1)}


def _paired(n: int, block: int) -> Args:
    return {
        "key": words(n), "value": np.arange(n, dtype=np.int32), "out_key": zeros(n, np.uint32), "out_value": zeros(n, np.int32),
    }  # fmt: skip


def _ordered(args: Args) -> dict[str, Values]:
    key = args["key"].reshape(-1, 32)
    order = np.argsort(key, axis=1)
    return {"out_key": np.take_along_axis(key, order, 1), "out_value": order + np.arange(0, key.size, 32)[:, None]}


BLOCKS = (64, 256, 1024)

KERNELS = (
    ValidationKernel(
        convolution_rows, lambda n, b: (n // (STEPS * b[0]), n // b[1]), _filtered, _weighted, (128, (16, 4)), (512, 2048),
        ((16, 4), (32, 4), (32, 8)),
    ),
    ValidationKernel(fft_radix4, lambda n, b: n, _waves, _transformed, (4, 64), (264, 2048), (16, 64, 256)),
    ValidationKernel(
        walsh_transform, lambda n, b: n, lambda n, b: {"x": floats(n * COUNT), "out": zeros(n * COUNT), "count": COUNT}, _signs,
        (3, 128), (264, 4096), (128, 256, 512), shared=lambda n, b: 4 * COUNT,
    ),
    ValidationKernel(
        sobol_points, lambda n, b: (min(n // b, 16), DIMENSIONS), _directions, _points, (2048, 64), (1 << 15, 1 << 19), (64, 128, 256),
    ),
    ValidationKernel(sturm_bisection, lambda n, b: n, _bands, _eigenvalues, (2, 64), (132, 528), (64, 128, 256)),
    ValidationKernel(
        histogram_bytes, lambda n, b: cover(n, b * WORDS_PER_THREAD),
        lambda n, b: {"x": words(n), "out": zeros(64, np.int32), "n": n, "BLOCK": b, "EACH": WORDS_PER_THREAD}, _sixes, (5000, 64),
        (1 << 18, 1 << 22), (64, 128, 256), restored=("out",),
    ),
    ValidationKernel(scan_with_offsets, cover, _sums, lambda args: {"out": np.cumsum(args["x"])}, (1024, 128)),
    ValidationKernel(
        filter_aggregated, lambda n, b: min(cover(n, b), 1056), _numbers, _above, (3000, 128), (1 << 18, 1 << 22), BLOCKS,
        unordered=("out",), restored=("count",),
    ),
    ValidationKernel(
        bit_reversal, cover, lambda n, b: {"x": floats(n, 2), "LOG": n.bit_length() - 1}, _reversed, (1 << 11, 128),
        (1 << 16, 1 << 21), BLOCKS, restored=("x",),
    ),
    ValidationKernel(lifting_wavelet, lambda n, b: n, _rows, _lifted, (4, 128)),
    ValidationKernel(warp_sort_pairs, cover, _paired, _ordered, (1024, 128)),
)  # fmt: skip
