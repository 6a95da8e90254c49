"""Systems and lists: stiff reactions, cores of graphs, patched bits, reflectors of panels, ranks in accord."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, i32, int4, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, round_off, warps, zeros


class Triple(NamedTuple):
    """Three concentrations, or how fast they change."""

    x: f64
    y: f64
    z: f64


@st.device
def reacts(c: Triple, slow: f64, quick: f64, fast: f64) -> Triple:
    """Return the rates of change of Robertson's three substances."""
    made = slow * c.x - quick * c.y * c.z
    lost = fast * c.y * c.y
    return Triple(-made, made - lost, lost)


@st.device
def ahead(c: Triple, k: Triple, h: f64) -> Triple:
    """c + h k."""
    return Triple(c.x + h * k.x, c.y + h * k.y, c.z + h * k.z)


@st.device
def solved(c: Triple, slow: f64, quick: f64, fast: f64, w: f64, right: Triple) -> Triple:
    """(1 - w J)^-1 times the right side, J the derivatives of `reacts`; z follows, and two unknowns are left."""
    b, d = w * quick * c.z, w * quick * c.y
    p, q = 2.0 * w * fast * c.y, w * slow
    a00, a01, a10 = 1.0 + q, -b - d * p, -q
    a11 = 1.0 + b + p + d * p
    r0, r1 = right.x + d * right.z, right.y - d * right.z
    factor = a10 / a00
    y = (r1 - factor * r0) / (a11 - factor * a01)
    x = (r0 - a01 * y) / a00
    return Triple(x, y, right.z + p * y)


GAMMA, E32 = 1 / (2 + 2**0.5), 6 + 2**0.5


@st.kernel
def stiff_kinetics(
    rate: Global[f64], out: Global[f64], steps: Global[i32], n: i32, end: f64, relative: f64, absolute: f64, most: i32
) -> None:
    """out = three substances over time, steps = number of steps, by Rosenbrock's method with adaptive steps."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    slow, quick, fast = rate[i], rate[n + i], rate[2 * n + i]
    c = Triple(1.0, 0.0, 0.0)
    f0 = reacts(c, slow, quick, fast)
    t, h, tried = 0.0, 1e-4, 0
    while t < end and tried < most:
        h = min(h, end - t)
        w = h * GAMMA
        k1 = solved(c, slow, quick, fast, w, f0)
        f1 = reacts(ahead(c, k1, 0.5 * h), slow, quick, fast)
        k2 = solved(c, slow, quick, fast, w, ahead(f1, k1, -1.0))
        k2 = ahead(k2, k1, 1.0)
        fresh = ahead(c, k2, h)
        f2 = reacts(fresh, slow, quick, fast)
        right = ahead(ahead(f2, ahead(k2, f1, -1.0), -E32), ahead(k1, f0, -1.0), -2.0)
        k3 = solved(c, slow, quick, fast, w, right)
        ex = abs(k1.x - 2.0 * k2.x + k3.x) / (absolute + relative * max(abs(c.x), abs(fresh.x)))
        ey = abs(k1.y - 2.0 * k2.y + k3.y) / (absolute + relative * max(abs(c.y), abs(fresh.y)))
        ez = abs(k1.z - 2.0 * k2.z + k3.z) / (absolute + relative * max(abs(c.z), abs(fresh.z)))
        error = max(ex, max(ey, ez)) * h / 6.0
        if error <= 1.0:
            t += h
            c = fresh
            f0 = f2
        h *= min(5.0, max(0.2, 0.8 * st.rcbrt(max(error, 1e-12))))
        tried += 1
    out[i] = c.x
    out[n + i] = c.y
    out[2 * n + i] = c.z
    steps[i] = tried


@st.kernel
def peel_core(
    start: Global[i32], target: Global[i32], degree: Global[i32], frontier: Global[i32], queue: Global[i32], tail: Global[i32],
    count: i32, k: i32,
) -> None:  # fmt: skip
    """degree = neighbours left after the removal of a frontier, queue = vertices that now have fewer than k; a warp a vertex."""
    stride = st.grid_dim.x * (st.block_dim.x // 32)
    for f in range(st.block.x * (st.block_dim.x // 32) + st.warp, count, stride):
        vertex = frontier[f]
        first, last = start[vertex], start[vertex + 1]
        while first < last:
            edge = first + st.lane
            other, falls = -1, False
            if edge < last:
                other = target[edge]
                falls = st.atomic_sub(degree, other, 1) == k
            votes = st.ballot(falls)
            if votes != 0:
                base = 0
                if st.lane == 0:
                    base = st.atomic_add(tail, 0, st.popcount(votes))
                base = st.shuffle(base, 0)
                if falls:
                    queue[base + st.popcount(votes & st.lanemask_lt())] = other
            first += 32


@st.kernel
def unpack_patched(
    header: Global[int4], packed: Global[u32], place: Global[u8], upper: Global[u32], out: Global[u32], n: i32, WARPS: Const,
) -> None:  # fmt: skip
    """out = rising numbers, a warp 128 of them, from differences of few bits; those that need more have the rest in patches."""
    room = st.shared(u32, WARPS, 128)
    w = st.warp
    group = st.block.x * WARPS + w
    if group >= n:
        return
    head = header[group]
    bits, patches = head.y & 63, head.y >> 6
    word = head.x
    for r in st.unroll(range(4)):
        value = u32(0)
        if bits > 0:
            at = (32 * r + st.lane) * bits
            pair = st.funnel_shift_right(packed[word + (at >> 5)], packed[word + (at >> 5) + 1], u32(at & 31))
            value = pair & u32(0xFFFFFFFF) >> (32 - bits)
        room[w, 32 * r + st.lane] = value
    st.syncwarp()
    for k in range(st.lane, patches, 32):
        room[w, i32(place[head.z + k])] |= upper[head.z + k] << bits
    st.syncwarp()
    before = u32(head.w)
    for r in st.unroll(range(4)):
        value = room[w, 32 * r + st.lane]
        for step in st.unroll(range(5)):
            other = st.shuffle_up(value, 1 << step)
            if st.lane >= 1 << step:
                value += other
        value += before
        out[group * 128 + 32 * r + st.lane] = value
        before = st.shuffle(value, 31)


@st.device
def sum_of_lanes(value: f32) -> f32:
    """In every lane."""
    for step in (16, 8, 4, 2, 1):
        value += st.shuffle_xor(value, step)
    return value


@st.kernel
def householder_panels(a: Global[f32], factor: Global[f32], ROWS: Const, COLUMNS: Const) -> None:
    """a = its triangular factor above, reflectors below; a block a panel in shared memory, a warp some columns of it."""
    panel = st.shared(f32, COLUMNS, ROWS)
    scale = st.shared(f32, 1)
    lane, warp = st.thread.x, st.thread.y
    base = st.block.x * ROWS * COLUMNS
    for k in range(warp * 32 + lane, ROWS * COLUMNS, 32 * st.block_dim.y):
        panel[k % COLUMNS, k // COLUMNS] = a[base + k]
    st.sync()
    for j in range(COLUMNS):
        if warp == 0:
            square = 0.0
            for i in range(j + 1 + lane, ROWS, 32):
                square += panel[j, i] * panel[j, i]
            square = sum_of_lanes(square)
            alpha, tau = panel[j, j], 0.0
            st.syncwarp()
            if square > 0.0:
                beta = -st.copysign(st.sqrt(alpha * alpha + square), alpha)
                tau = (beta - alpha) / beta
                shrink = 1.0 / (alpha - beta)
                for i in range(j + 1 + lane, ROWS, 32):
                    panel[j, i] *= shrink
                if lane == 0:
                    panel[j, j] = beta
            if lane == 0:
                scale[0] = tau
                factor[st.block.x * COLUMNS + j] = tau
        st.sync()
        tau = scale[0]
        for c in range(j + 1 + warp, COLUMNS, st.block_dim.y):
            along = panel[c, j] if lane == 0 else 0.0
            for i in range(j + 1 + lane, ROWS, 32):
                along = st.fma(panel[j, i], panel[c, i], along)
            along = tau * sum_of_lanes(along)
            if lane == 0:
                panel[c, j] -= along
            for i in range(j + 1 + lane, ROWS, 32):
                panel[c, i] -= along * panel[j, i]
        st.sync()
    for k in range(warp * 32 + lane, ROWS * COLUMNS, 32 * st.block_dim.y):
        a[base + k] = panel[k % COLUMNS, k // COLUMNS]


@st.device
def sign_of(a: i32) -> i32:
    """-1, 0 or 1."""
    return (1 if a > 0 else 0) - (1 if a < 0 else 0)


@st.kernel
def kendall_ranks(x: Global[i32], out: Global[f32], columns: i32, length: i32, BLOCK: Const) -> None:
    """out = rank correlation of each two columns, without ties (tau-b); a block two columns, rows by tiles."""
    tile = st.shared(i32, 2, BLOCK)
    total = st.shared(i32, 3)
    one, two = st.block.y, st.block.x
    if one >= two:
        if one == two and st.thread.x == 0:
            out[one * columns + two] = 1.0
        return
    t = st.thread.x
    if t < 3:
        total[t] = 0
    agree, ranked_one, ranked_two = 0, 0, 0
    for base in range(0, length, BLOCK):
        i = base + t
        a, b = 0, 0
        if i < length:
            a, b = x[one * length + i], x[two * length + i]
        for begin in range(base, length, BLOCK):
            st.sync()
            if begin + t < length:
                tile[0, t] = x[one * length + begin + t]
                tile[1, t] = x[two * length + begin + t]
            st.sync()
            if i >= length:
                continue
            for k in range(t + 1 if begin == base else 0, min(BLOCK, length - begin)):
                u, v = sign_of(tile[0, k] - a), sign_of(tile[1, k] - b)
                agree += u * v
                ranked_one += u & 1
                ranked_two += v & 1
    agree, ranked_one, ranked_two = st.reduce_add(agree), st.reduce_add(ranked_one), st.reduce_add(ranked_two)
    if st.lane == 0:
        st.atomic_add(total, 0, agree)
        st.atomic_add(total, 1, ranked_one)
        st.atomic_add(total, 2, ranked_two)
    st.sync()
    if t == 0:
        tau = f32(total[0]) / (st.sqrt(f32(total[1])) * st.sqrt(f32(total[2])))
        out[one * columns + two] = tau
        out[two * columns + one] = tau


def _reactors(n: int, block: int) -> Args:
    random = draw()
    rate = np.array([0.04, 1e4, 3e7])[:, None] * round_off(10 ** (random.random((3, n)) - 0.5))
    return {
        "rate": rate.ravel(), "out": zeros(3 * n, np.float64), "steps": zeros(n, np.int32), "n": n, "end": 40.0,
        "relative": 1e-4, "absolute": 1e-8, "most": 1000,
    }  # fmt: skip


def _reacted(args: Args) -> dict[str, Values]:
    n, end = args["n"], args["end"]
    rate = args["rate"].reshape(3, n)

    def speed(c: Values, own: Any) -> Values:
        produced, lost = rate[0, own] * c[0] - rate[1, own] * c[1] * c[2], rate[2, own] * c[1] ** 2
        return np.array([-produced, produced - lost, lost])

    c, t, h, tried = np.zeros((3, n)), np.zeros(n), np.full(n, 1e-4), np.zeros(n, int)
    c[0] = 1
    own = np.arange(n)
    while len(own):
        now, step = c[:, own], np.minimum(h[own], end - t[own])
        a, b, d = rate[:, own]
        zero = np.zeros(len(own))
        slopes = np.array(
            [[-a, b * now[2], b * now[1]], [a, -b * now[2] - 2 * d * now[1], -b * now[1]], [zero, 2 * d * now[1], zero]]
        )
        inverse = np.linalg.inv(np.eye(3) - (step * GAMMA * slopes).transpose(2, 0, 1))
        f0 = speed(now, own)
        k1 = np.einsum("nij,jn->in", inverse, f0)
        f1 = speed(now + step / 2 * k1, own)
        k2 = np.einsum("nij,jn->in", inverse, f1 - k1) + k1
        fresh = now + step * k2
        f2 = speed(fresh, own)
        k3 = np.einsum("nij,jn->in", inverse, f2 - E32 * (k2 - f1) - 2 * (k1 - f0))
        size = args["absolute"] + args["relative"] * np.maximum(abs(now), abs(fresh))
        error = (abs(k1 - 2 * k2 + k3) / size).max(axis=0) * step / 6
        good = own[error <= 1]
        c[:, good] = fresh[:, error <= 1]
        t[good] += step[error <= 1]
        h[own] = step * np.clip(0.8 * np.maximum(error, 1e-12) ** (-1 / 3), 0.2, 5)
        tried[own] += 1
        own = own[(t[own] < end) & (tried[own] < args["most"])]
    return {"out": c, "steps": tried}


CORE = 12


def _graph(n: int, block: int) -> Args:
    """In both directions; some vertices have many neighbours."""
    random = draw()
    a, b = (random.random((2, 8 * n)) ** 1.7 * n).astype(int)
    a, b = a[a != b], b[a != b]
    pairs = np.unique(np.minimum(a, b) * n + np.maximum(a, b))
    name = random.permutation(n)
    a, b = name[pairs // n], name[pairs % n]
    source, target = np.concatenate([a, b]), np.concatenate([b, a])
    degree = np.bincount(source, minlength=n).astype(np.int32)
    return {
        "start": np.concatenate([[0], np.cumsum(degree)]).astype(np.int32),
        "target": target[source.argsort(kind="stable")].astype(np.int32), "degree": degree,
        "frontier": np.flatnonzero(degree < CORE).astype(np.int32), "queue": np.full(n, -1, np.int32),
        "tail": zeros(1, np.int32), "count": int((degree < CORE).sum()), "k": CORE,
    }  # fmt: skip


def _peeled(args: Args) -> dict[str, Values]:
    before, start = args["degree"], args["start"]
    removed = np.zeros(len(before), bool)
    removed[args["frontier"]] = True
    removed_edges = np.repeat(removed, np.diff(start))
    after = before - np.bincount(args["target"][removed_edges], minlength=len(before))
    queue = np.flatnonzero((before >= CORE) & (after < CORE))
    return {"degree": after, "queue": queue, "tail": np.array([len(queue)])}


def _lists(n: int, block: int) -> Args:
    """n numbers; the density of a group is its own, one difference of thirty is far longer."""
    random, groups = draw(), n // 128
    dense = 2.0 ** random.integers(0, 7, groups)[:, None]
    delta = (random.exponential(dense, (groups, 128))).astype(np.uint32)
    delta <<= np.where(random.random((groups, 128)) < 1 / 30, 4, 0).astype(np.uint32)
    wide = np.where(delta > 0, np.floor(np.log2(np.maximum(delta, 1))) + 1, 0).astype(int)
    bits = np.sort(wide, axis=1)[:, 118]
    word = np.concatenate([[0], np.cumsum(4 * bits)])
    packed = zeros(int(word[-1]) + 1, np.uint32)
    for width in np.unique(bits[bits > 0]):
        own = np.flatnonzero(bits == width)
        single = (delta[own][..., None] >> np.arange(width, dtype=np.uint32) & 1).astype(np.uint8)
        rows = np.packbits(single.reshape(len(own), -1), axis=1, bitorder="little").view(np.uint32)
        packed[word[own][:, None] + np.arange(4 * width)] = rows
    patched = wide > bits[:, None]
    group, place = np.nonzero(patched)
    many = patched.sum(axis=1)
    first = np.cumsum(delta.sum(axis=1, dtype=np.uint32), dtype=np.uint32) - delta.sum(axis=1, dtype=np.uint32)
    header = np.stack([word[:-1], bits | many << 6, np.cumsum(many) - many, first.view(np.int32)], axis=1)
    return {
        "header": header.astype(np.int32), "packed": packed, "place": place.astype(np.uint8),
        "upper": delta[group, place] >> bits[group].astype(np.uint32), "out": zeros(n, np.uint32), "n": groups,
        "WARPS": block // 32,
    }  # fmt: skip


def _unpacked(args: Args) -> dict[str, Values]:
    """Bit by bit."""
    word, wide, _, first = args["header"].T
    bits, many = wide & 63, wide >> 6
    delta = np.zeros((len(word), 128), np.uint64)
    for k in range(int(bits.max())):
        place = np.arange(128) * bits[:, None] + k
        source = np.minimum(word[:, None] + place // 32, len(args["packed"]) - 1)
        single = args["packed"][source] >> (place % 32).astype(np.uint32) & 1
        delta |= np.where(k < bits[:, None], single, 0).astype(np.uint64) << np.uint64(k)
    group = np.repeat(np.arange(len(word)), many)
    delta[group, args["place"]] += args["upper"].astype(np.uint64) << bits[group].astype(np.uint64)
    return {"out": (np.cumsum(delta, axis=1) + first.view(np.uint32)[:, None]).astype(np.uint32)}


TALL, NARROW = 96, 16


def _panels(n: int, block: tuple[int, int]) -> Args:
    a = draw().standard_normal(n * TALL * NARROW, np.float32)
    return {"a": a, "factor": zeros(n * NARROW), "ROWS": TALL, "COLUMNS": NARROW}


def _reflected(args: Args) -> dict[str, Values]:
    raw, factor = np.linalg.qr(args["a"].reshape(-1, TALL, NARROW).astype(float), mode="raw")
    return {"a": np.swapaxes(raw, -1, -2), "factor": factor}


LENGTH = 300


def _ratings(n: int, block: int) -> Args:
    random = draw()
    taste = random.standard_normal((n, LENGTH)) + random.standard_normal(LENGTH)
    x = np.clip(np.rint(2 * taste + 5), 0, 10).astype(np.int32)
    return {"x": x.ravel(), "out": zeros(n * n), "columns": n, "length": LENGTH, "BLOCK": block}


def _in_accord(args: Args) -> dict[str, Values]:
    x = args["x"].reshape(-1, LENGTH)
    sign = np.sign(x[:, :, None] - x[:, None, :]).reshape(len(x), -1).astype(np.float32)
    ranked = np.sqrt(abs(sign).sum(axis=1, dtype=float))
    return {"out": (sign @ sign.T) / ranked / ranked[:, None]}


KERNELS = (
    ValidationKernel(stiff_kinetics, cover, _reactors, _reacted, (500, 128), (1 << 13, 1 << 16), (64, 128, 256)),
    ValidationKernel(
        peel_core, lambda n, b: min(warps(cover(n, 8), b), 1056), _graph, _peeled, (4000, 128), (1 << 15, 1 << 18), (64, 256, 1024),
        unordered=("queue",), restored=("degree", "tail"),
    ),
    ValidationKernel(
        unpack_patched, lambda n, b: warps(n // 128, b), _lists, _unpacked, (1 << 16, 128), (1 << 18, 1 << 22), (64, 128, 512),
    ),
    ValidationKernel(
        householder_panels, lambda n, b: n, _panels, _reflected, (16, (32, 4)), (264, 2112), ((32, 4), (32, 8), (32, 16)),
        restored=("a",),
    ),
    ValidationKernel(kendall_ranks, lambda n, b: (n, n), _ratings, _in_accord, (8, 128), (24, 56), (64, 128, 256)),
)  # fmt: skip
