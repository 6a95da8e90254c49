"""Neutrons in a slab, syndromes of disks, overlapping boxes, tails of distributions, chains of spins."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, float4, i32, u32, u64, uint4

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros

CELLS = 64


@st.device
def next_seed(seed: u64) -> u64:
    """A step of Knuth's linear congruential generator."""
    return seed * u64(6364136223846793005) + u64(1442695040888963407)


@st.device
def uniform(seed: u64) -> f64:
    """A number from 0 to 1, of the upper 53 bits."""
    return f64(seed >> 11) * 1.1102230246251565e-16


@st.kernel
def neutron_slab(
    fates: Global[i32], collisions: Global[i32], n: i32, thickness: f64, total: f64, absorbed: f64, salt: u64
) -> None:
    """Neutrons that enter a slab: reflected, transmitted or absorbed neutrons, and collisions by depth."""
    depth = st.shared(i32, CELLS)
    for k in range(st.thread.x, CELLS, st.block_dim.x):
        depth[k] = 0
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    fate = 3
    if i < n:
        seed = next_seed(next_seed(u64(i) ^ salt))
        x, slope = f64(0), f64(1)
        while True:
            seed = next_seed(seed)
            x -= slope * st.log(1.0 - uniform(seed)) / total
            if x < 0:
                fate = 0
                break
            if x >= thickness:
                fate = 1
                break
            st.atomic_add(depth, i32(x / thickness * CELLS), 1)
            seed = next_seed(seed)
            if uniform(seed) < absorbed:
                fate = 2
                break
            seed = next_seed(seed)
            slope = 2.0 * uniform(seed) - 1.0
    for k in range(3):
        lanes = st.ballot(fate == k)
        if st.lane == 0 and lanes != 0:
            st.atomic_add(fates, k, st.popcount(lanes))
    st.sync()
    for k in range(st.thread.x, CELLS, st.block_dim.x):
        st.atomic_add(collisions, k, depth[k])


def _slab(n: int, block: int) -> Args:
    return {
        "fates": zeros(3, np.int32), "collisions": zeros(CELLS, np.int32), "n": n, "thickness": 2.5, "total": 1.6,
        "absorbed": 0.2, "salt": 0x5DEECE66D1234567,
    }  # fmt: skip


def _flown(args: Args) -> dict[str, Values]:
    factor, more = np.uint64(6364136223846793005), np.uint64(1442695040888963407)

    def next_uniform(seed: Values) -> tuple[Values, Values]:
        seed = seed * factor + more
        return seed, (seed >> np.uint64(11)) / 2.0**53

    seed = (np.arange(args["n"], dtype=np.uint64) ^ np.uint64(args["salt"])) * factor + more
    seed = seed * factor + more
    x, slope = np.zeros(args["n"]), np.ones(args["n"])
    fates, collisions = np.zeros(3, int), np.zeros(CELLS, int)
    while x.size:
        seed, chance = next_uniform(seed)
        x = x - slope * np.log(1 - chance) / args["total"]
        back, through = x < 0, x >= args["thickness"]
        inside = ~(back | through)
        seed, x = seed[inside], x[inside]
        collisions += np.bincount((x / args["thickness"] * CELLS).astype(int), minlength=CELLS)
        seed, chance = next_uniform(seed)
        scattered = chance >= args["absorbed"]
        fates += [back.sum(), through.sum(), (~scattered).sum()]
        x = x[scattered]
        seed, chance = next_uniform(seed[scattered])
        slope = 2 * chance - 1
    return {"fates": fates, "collisions": collisions}


@st.device
def doubled(x: u32) -> u32:
    """Four bytes times 2 in the field of 256 elements."""
    return (x << 1 & 0xFEFEFEFE) ^ (x >> 7 & 0x01010101) * 0x1D


@st.kernel
def raid_syndromes(data: Global[uint4], p: Global[uint4], q: Global[uint4], n: i32, disks: i32) -> None:
    """p = the parity of the disks, q = their sum with powers of 2 as weights in the field of 256 elements; 16 bytes a thread."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    plain = data[disks - 1, i]
    weighted = plain
    for disk in range(disks - 2, -1, -1):
        word = data[disk, i]
        plain = uint4(plain.x ^ word.x, plain.y ^ word.y, plain.z ^ word.z, plain.w ^ word.w)
        weighted = uint4(
            doubled(weighted.x) ^ word.x, doubled(weighted.y) ^ word.y, doubled(weighted.z) ^ word.z,
            doubled(weighted.w) ^ word.w,
        )  # fmt: skip
    p[i] = plain
    q[i] = weighted


DISKS = 10


def _stripes(n: int, block: int) -> Args:
    data = draw().integers(0, 2**32, (DISKS, n, 4), dtype=np.uint32)
    return {"data": data, "p": np.zeros((n, 4), np.uint32), "q": np.zeros((n, 4), np.uint32), "n": n, "disks": DISKS}


def _syndromes(args: Args) -> dict[str, Values]:
    data = args["data"]
    q = np.zeros(data[0].nbytes, np.uint8)
    times = np.arange(256)
    for disk in data:
        q ^= times.astype(np.uint8)[np.ascontiguousarray(disk).view(np.uint8).ravel()]
        times = np.where(times < 128, 2 * times, (2 * times) ^ 0x11D)
    return {"p": np.bitwise_xor.reduce(data, axis=0), "q": q.view(np.uint32).reshape(-1, 4)}


@st.device
def overlap(a: float4, b: float4) -> f32:
    """The area of two boxes' intersection by that of their union."""
    wide = max(min(a.z, b.z) - max(a.x, b.x), 0.0)
    high = max(min(a.w, b.w) - max(a.y, b.y), 0.0)
    both = wide * high
    return both / ((a.z - a.x) * (a.w - a.y) + (b.z - b.x) * (b.w - b.y) - both)


@st.kernel
def suppressed_boxes(box: Global[float4], mask: Global[u64], n: i32, limit: f32) -> None:
    """mask = for each box the later ones that overlap it too much, 64 a word; blocks of 64 threads."""
    row, column = st.block.y, st.block.x
    if row > column:
        return
    t = st.thread.x
    others = st.shared(float4, 64)
    count = min(n - column * 64, 64)
    if t < count:
        others[t] = box[column * 64 + t]
    st.sync()
    i = row * 64 + t
    if i < n:
        own = box[i]
        bits = u64(0)
        for k in range(t + 1 if row == column else 0, count):
            if overlap(own, others[k]) > limit:
                bits |= u64(1) << k
        mask[i * st.grid_dim.x + column] = bits


def _boxes(n: int, block: int) -> Args:
    random = draw()
    middle = np.repeat(random.integers(200, 3800, (cover(n, 6), 2)), 6, axis=0)[:n] + random.integers(-30, 31, (n, 2))
    half = random.integers(20, 121, (n, 2))
    box = np.concatenate([middle - half, middle + half], axis=1)[random.permutation(n)]
    return {"box": box.astype(np.float32) / 4, "mask": zeros(n * cover(n, 64), np.uint64), "n": n, "limit": 0.5}


def _suppressed(args: Args) -> dict[str, Values]:
    n, words = args["n"], cover(args["n"], 64)
    left, top, right, bottom = (args["box"] * 4).astype(np.int32).T
    area = (right - left) * (bottom - top)
    mask = np.zeros((n, words), np.uint64)
    for i in range(n):
        wide = np.minimum(right, right[i]) - np.maximum(left, left[i])
        high = np.minimum(bottom, bottom[i]) - np.maximum(top, top[i])
        both = np.maximum(wide, 0) * np.maximum(high, 0)
        bits = np.zeros(words * 64, np.uint8)
        bits[:n] = 2 * both > area + area[i] - both
        bits[: i + 1] = 0
        mask[i] = np.packbits(bits, bitorder="little").view(np.uint64)
    return {"mask": mask}


TURNS, CLOSE, TINY = 200, 3e-7, 1e-30


@st.device
def gamma_series(a: f32, x: f32) -> f32:
    """The lower incomplete gamma function without its factor, by its series."""
    term = 1.0 / a
    total, n = term, a
    for _ in range(TURNS):
        n += 1.0
        term *= x / n
        total += term
        if term < total * CLOSE:
            break
    return total


@st.device
def gamma_fraction(a: f32, x: f32) -> f32:
    """The upper incomplete gamma function without its factor, by Lentz's continued fraction."""
    b = x + 1.0 - a
    c = f32(1 / TINY)
    d = 1.0 / b
    h = d
    for k in range(1, TURNS):
        n = f32(k)
        weight = n * (a - n)
        b += 2.0
        d = weight * d + b
        if abs(d) < TINY:
            d = TINY
        c = b + weight / c
        if abs(c) < TINY:
            c = TINY
        d = 1.0 / d
        change = d * c
        h *= change
        if abs(change - 1.0) < CLOSE:
            break
    return h


@st.kernel
def chi_square_tails(x: Global[f32], freedom: Global[i32], out: Global[f32], n: i32) -> None:
    """out = how likely a chi-square statistic is at least as large, by a series or a continued fraction."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    a, half = 0.5 * f32(freedom[i]), 0.5 * x[i]
    if half <= 0:
        out[i] = 1.0
        return
    factor = st.exp(a * st.log(half) - half - st.lgamma(a))
    if half < a + 1:
        out[i] = 1.0 - factor * gamma_series(a, half)
    else:
        out[i] = factor * gamma_fraction(a, half)


def _statistics(n: int, block: int) -> Args:
    random = draw()
    freedom = random.integers(1, 61, n).astype(np.int32)
    x = (random.chisquare(freedom) * random.uniform(0.5, 2, n)).astype(np.float32)
    x[random.random(n) < 0.02] = 0
    return {"x": x, "freedom": freedom, "out": zeros(n), "n": n}


def _tails(args: Args) -> dict[str, Values]:
    half, freedom = args["x"].astype(float) / 2, args["freedom"]
    odd = freedom % 2 == 1
    root = np.sqrt(half)
    out = np.where(odd, [math.erfc(r) for r in root], np.exp(-half))
    term = np.where(odd, 2 * root / math.sqrt(math.pi), half) * np.exp(-half)
    for k in range(3, freedom.max() + 1):
        more = (freedom >= k) & (odd == k % 2)
        out[more] += term[more]
        term[more] *= half[more] / (k / 2)
    return {"out": out}


@st.kernel
def heisenberg_product(psi: Global[f64], field: Global[f64], out: Global[f64], coupling: f64, SITES: Const) -> None:
    """out = the Hamiltonian of a ring of spins in a field, times a vector; a basis state a thread, its bits are the spins."""
    state = u32(st.block.x * st.block_dim.x + st.thread.x)
    if state >= u32(1 << SITES):
        return
    diagonal, total = f64(0), f64(0)
    for k in range(SITES):
        here = state >> k & 1
        there = state >> ((k + 1) % SITES) & 1
        diagonal += field[k] * (f64(here) - 0.5)
        if here == there:
            diagonal += 0.25 * coupling
        else:
            diagonal -= 0.25 * coupling
            total += psi[state ^ (u32(1) << k | u32(1) << ((k + 1) % SITES))]
    out[state] = diagonal * psi[state] + 0.5 * coupling * total


def _spins(n: int, block: int) -> Args:
    random, sites = draw(), n.bit_length() - 1
    psi = random.standard_normal(n)
    return {
        "psi": psi / math.sqrt(math.fsum(psi * psi)), "field": random.uniform(-3, 3, sites), "out": zeros(n, np.float64), "coupling": 1.3,
        "SITES": sites,
    }  # fmt: skip


def _hamiltonian(args: Args) -> dict[str, Values]:
    sites = args["SITES"]
    psi = args["psi"].reshape((2,) * sites)
    up, out = np.array([-0.5, 0.5]), np.zeros_like(psi)
    for k in range(sites):
        axis, neighbour = sites - 1 - k, sites - 1 - (k + 1) % sites
        along, next_to = (up.reshape([2 if d == where else 1 for d in range(sites)]) for where in (axis, neighbour))
        out += (args["field"][k] * along + args["coupling"] * along * next_to) * psi
        out += args["coupling"] / 2 * (along != next_to) * psi.swapaxes(axis, neighbour)
    return {"out": out.ravel()}


KERNELS = (
    ValidationKernel(
        neutron_slab, cover, _slab, _flown, (2000, 128), (1 << 18, 1 << 21), (64, 128, 256), restored=("fates", "collisions"),
    ),
    ValidationKernel(raid_syndromes, cover, _stripes, _syndromes, (2500, 128), (1 << 18, 1 << 21), (64, 128, 256)),
    ValidationKernel(
        suppressed_boxes, lambda n, b: (cover(n, 64), cover(n, 64)), _boxes, _suppressed, (400, 64), (3000, 9000), (64,),
    ),
    ValidationKernel(chi_square_tails, cover, _statistics, _tails, (2000, 128), (1 << 17, 1 << 20), (64, 256, 1024)),
    ValidationKernel(heisenberg_product, cover, _spins, _hamiltonian, (1 << 11, 128), (1 << 19, 1 << 22), (64, 128, 512)),
)  # fmt: skip
