"""Records and models: shapes of JSON, weights that decay, passwords, hidden states, small systems, tiles of pixels."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float4, half2, i32, int2, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, tiles, zeros


@st.kernel
def json_shapes(text: Global[u8], start: Global[i32], deepest: Global[i32], strings: Global[i32], n: i32) -> None:
    """deepest = how deep records of JSON are nested, -1 - place of a fault; strings = how many they hold. A thread a record."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    first, end = start[i], start[i + 1]
    depth, most, many, fault = 0, 0, 0, -1
    kinds = u32(0)
    quoted, escaped = False, False
    for at in range(first, end):
        letter = text[at]
        if quoted:
            if escaped:
                escaped = False
            elif letter == ord("\\"):
                escaped = True
            elif letter == ord('"'):
                quoted = False
        elif letter == ord('"'):
            quoted = True
            many += 1
        elif letter == ord("{") or letter == ord("["):
            kinds <<= 1
            if letter == ord("{"):
                kinds |= 1
            depth += 1
            most = max(most, depth)
        elif letter == ord("}") or letter == ord("]"):
            wanted = u32(1) if letter == ord("}") else u32(0)
            if depth == 0 or (kinds & 1) != wanted:
                fault = at - first
                break
            kinds >>= 1
            depth -= 1
    if fault < 0 and (quoted or depth > 0):
        fault = end - first
    deepest[i] = most if fault < 0 else -1 - fault
    strings[i] = many


@st.device
def adam(p: f32, g: f32, m: f32, v: f32, rate: f32, decay: f32, fix_m: f32, fix_v: f32) -> tuple[f32, f32, f32]:
    """A weight and the moments of its gradient a step on."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    p -= rate * decay * p
    p -= rate * (m * fix_m) / (st.sqrt(v * fix_v) + 1e-8)
    return p, m, v


@st.kernel
def adamw_step(
    weight: Global[float4], slope: Global[half2], mean: Global[float4], square: Global[float4], norm: Global[f32], n: i32,
    most: f32, rate: f32, decay: f32, fix_m: f32, fix_v: f32,
) -> None:  # fmt: skip
    """A step of AdamW, four weights at once; slopes are halves, and are made shorter where their norm is above `most`."""
    clip = min(1.0, most / (norm[0] + 1e-6))
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        p, m, v = weight[i], mean[i], square[i]
        g, h = slope[2 * i], slope[2 * i + 1]
        px, mx, vx = adam(p.x, clip * f32(g.x), m.x, v.x, rate, decay, fix_m, fix_v)
        py, my, vy = adam(p.y, clip * f32(g.y), m.y, v.y, rate, decay, fix_m, fix_v)
        pz, mz, vz = adam(p.z, clip * f32(h.x), m.z, v.z, rate, decay, fix_m, fix_v)
        pw, mw, vw = adam(p.w, clip * f32(h.y), m.w, v.w, rate, decay, fix_m, fix_v)
        weight[i] = float4(px, py, pz, pw)
        mean[i] = float4(mx, my, mz, mw)
        square[i] = float4(vx, vy, vz, vw)


SINES = tuple(int(abs(math.sin(k + 1)) * 2**32) for k in range(64))


TURNS = ((7, 12, 17, 22), (5, 9, 14, 20), (4, 11, 16, 23), (6, 10, 15, 21))


@st.kernel
def md5_words(target: Global[u32], found: Global[i32], n: i32, first: i32, targets: i32) -> None:
    """found = numbers of the words of six letters with the given MD5 sums; a thread makes the word of its number, and its sum."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    w = st.registers(u32, 16)
    for k in st.unroll(range(16)):
        w[k] = 0
    rest = first + i
    for k in st.unroll(range(6)):
        w[k // 4] |= u32(97 + rest % 26) << (8 * (k % 4))
        rest //= 26
    w[1] |= 0x800000
    w[14] = 48
    a, b, c, d = u32(0x67452301), u32(0xEFCDAB89), u32(0x98BADCFE), u32(0x10325476)
    for k in st.unroll(range(64)):
        if k < 16:
            f = (b & c | ~b & d) + w[k]
        elif k < 32:
            f = (d & b | ~d & c) + w[(5 * k + 1) % 16]
        elif k < 48:
            f = (b ^ c ^ d) + w[(3 * k + 5) % 16]
        else:
            f = (c ^ (b | ~d)) + w[7 * k % 16]
        f += a + SINES[k]
        by = TURNS[k // 16][k % 4]
        a, d, c, b = d, c, b, b + (f << by | f >> (32 - by))
    a += 0x67452301
    b += 0xEFCDAB89
    c += 0x98BADCFE
    d += 0x10325476
    for k in range(targets):
        if target[4 * k] == a and target[4 * k + 1] == b and target[4 * k + 2] == c and target[4 * k + 3] == d:
            found[k] = first + i


@st.kernel
def hidden_states_forward(
    chain: Global[f32],
    sends: Global[f32],
    begin: Global[f32],
    seen: Global[u8],
    out: Global[f32],
    steps: i32,
    STATES: Const,
) -> None:
    """out = logarithm of how likely each sequence is under a hidden Markov model; a block a sequence, a thread a state."""
    chance = st.shared(f32, STATES)
    partial = st.shared(f32, STATES // 32)
    state = st.thread.x
    sequence = st.block.x
    likely = 0.0
    for step in range(steps):
        value = 0.0
        if step == 0:
            value = begin[state]
        else:
            for k in range(STATES):
                value += chance[k] * chain[k * STATES + state]
        value *= sends[i32(seen[sequence * steps + step]) * STATES + state]
        total = value
        for offset in (16, 8, 4, 2, 1):
            total += st.shuffle_xor(total, offset)
        if st.lane == 0:
            partial[st.warp] = total
        st.sync()
        total = 0.0
        for k in range(STATES // 32):
            total += partial[k]
        chance[state] = value / total
        likely += st.log(total)
        st.sync()
    if state == 0:
        out[sequence] = likely


ROWS, PACKED = 6, 21


@st.kernel
def packed_systems(matrix: Global[f32], right: Global[f32], out: Global[f32], n: i32) -> None:
    """out solves symmetric systems of six unknowns by L D L.T in registers, a thread each; lower triangles are stored by rows."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    a = st.registers(f32, PACKED)
    x = st.registers(f32, ROWS)
    for k in st.unroll(range(PACKED)):
        a[k] = matrix[i * PACKED + k]
    for k in st.unroll(range(ROWS)):
        x[k] = right[i * ROWS + k]
    for j in st.unroll(range(ROWS)):
        for k in st.unroll(range(j)):
            held = a[j * (j + 1) // 2 + k]
            a[j * (j + 1) // 2 + j] -= held * held * a[k * (k + 1) // 2 + k]
        over = 1.0 / a[j * (j + 1) // 2 + j]
        for r in st.unroll(range(j + 1, ROWS)):
            value = a[r * (r + 1) // 2 + j]
            for k in st.unroll(range(j)):
                value -= a[r * (r + 1) // 2 + k] * a[j * (j + 1) // 2 + k] * a[k * (k + 1) // 2 + k]
            a[r * (r + 1) // 2 + j] = value * over
    for r in st.unroll(range(ROWS)):
        for k in st.unroll(range(r)):
            x[r] -= a[r * (r + 1) // 2 + k] * x[k]
    for r in st.unroll(range(ROWS)):
        x[r] /= a[r * (r + 1) // 2 + r]
    for r in st.unroll(range(ROWS - 1, -1, -1)):
        for k in st.unroll(range(r + 1, ROWS)):
            x[r] -= a[k * (k + 1) // 2 + r] * x[k]
    for k in st.unroll(range(ROWS)):
        out[i * ROWS + k] = x[k]


@st.kernel
def raster_tiles(
    corner: Global[int2], depth: Global[f32], out: Global[f32], count: i32, wide: i32, high: i32, BATCH: Const
) -> None:
    """out = the smallest depth at each pixel, 1 for none: a block a tile; it first lists the triangles near the tile."""
    kept = st.shared(i32, 1)
    place = st.shared(i32, BATCH, 7)
    height = st.shared(f32, BATCH, 3)
    t = st.thread.y * st.block_dim.x + st.thread.x
    x = st.block.x * st.block_dim.x + st.thread.x
    y = st.block.y * st.block_dim.y + st.thread.y
    px, py = 16 * x + 8, 16 * y + 8
    left, top = 16 * st.block.x * st.block_dim.x, 16 * st.block.y * st.block_dim.y
    right, bottom = left + 16 * st.block_dim.x, top + 16 * st.block_dim.y
    nearest = 1.0
    for first in range(0, count, BATCH):
        if t == 0:
            kept[0] = 0
        st.sync()
        a, b, c = int2(0, 0), int2(0, 0), int2(0, 0)
        area = 0
        meets = False
        if first + t < count:
            a = corner[3 * (first + t)]
            b = corner[3 * (first + t) + 1]
            c = corner[3 * (first + t) + 2]
            area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
            across = min(a.x, min(b.x, c.x)) <= right and max(a.x, max(b.x, c.x)) >= left
            down = min(a.y, min(b.y, c.y)) <= bottom and max(a.y, max(b.y, c.y)) >= top
            meets = area > 0 and across and down
        lanes = st.ballot(meets)
        base = 0
        if st.lane == 0:
            base = st.atomic_add(kept, 0, st.popcount(lanes))
        slot = st.shuffle(base, 0) + st.popcount(lanes & st.lanemask_lt())
        if meets:
            place[slot, 0], place[slot, 1] = a.x, a.y
            place[slot, 2], place[slot, 3] = b.x, b.y
            place[slot, 4], place[slot, 5] = c.x, c.y
            place[slot, 6] = area
            for k in st.unroll(range(3)):
                height[slot, k] = depth[3 * (first + t) + k]
        st.sync()
        for k in range(kept[0]):
            ax, ay, bx, by = place[k, 0], place[k, 1], place[k, 2], place[k, 3]
            cx, cy = place[k, 4], place[k, 5]
            of_a = (cx - bx) * (py - by) - (cy - by) * (px - bx)
            of_b = (ax - cx) * (py - cy) - (ay - cy) * (px - cx)
            of_c = (bx - ax) * (py - ay) - (by - ay) * (px - ax)
            if of_a >= 0 and of_b >= 0 and of_c >= 0:
                z = (f32(of_a) * height[k, 0] + f32(of_b) * height[k, 1] + f32(of_c) * height[k, 2]) / f32(place[k, 6])
                nearest = min(nearest, z)
        st.sync()
    if x < wide and y < high:
        out[y * wide + x] = nearest


WORDS = (
    "id",
    "name",
    'say "yes"',
    "back\\slash",
    "{brace}",
    "[list]",
    "",
    "a longer piece of text, as there is in logs",
)


def _record(random: np.random.Generator, deep: int) -> Any:
    """A value of JSON, nested at most so deep."""
    kind = random.integers(0, 6 if deep > 0 else 4)
    if kind < 4:
        return (int(random.integers(0, 10**6)), True, WORDS[random.integers(0, len(WORDS))], None)[kind]
    values = [_record(random, deep - 1) for _ in range(random.integers(0, 5))]
    return values if kind == 4 else {f"{WORDS[k % len(WORDS)]}{k}": part for k, part in enumerate(values)}


def _pool() -> list[bytes]:
    """Return records; some have lost a letter."""
    random, pool = draw(), []
    for _ in range(3000):
        whole = json.dumps({"log": _record(random, 6), "by": [_record(random, 3)]})
        lost = random.integers(0, len(whole)) if random.random() < 0.2 else len(whole)
        pool.append((whole[:lost] + whole[lost + 1 :]).encode())
    return pool


def _lines(n: int, block: int) -> Args:
    pool = _pool()
    lines = [pool[k] for k in draw().integers(0, len(pool), n)]
    start = np.concatenate([[0], np.cumsum([len(one) for one in lines])]).astype(np.int32)
    text = np.frombuffer(b"".join(lines), np.uint8)
    return {"text": text, "start": start, "deepest": zeros(n, np.int32), "strings": zeros(n, np.int32), "n": n}


def _shape(line: bytes) -> tuple[int, int]:
    """Return the depth (or the fault) and the number of strings of one record; strings are found first."""
    inside, many, at, waits, most = False, 0, 0, [], 0
    while at < len(line):
        letter = line[at : at + 1]
        if inside:
            at += letter == b"\\"
            inside = letter != b'"'
        elif letter == b'"':
            inside = True
            many += 1
        elif letter in b"{[":
            waits.append(b"}" if letter == b"{" else b"]")
            most = max(most, len(waits))
        elif letter in b"}]" and (not waits or waits.pop() != letter):
            return -1 - at, many
        at += 1
    return (-1 - len(line) if inside or waits else most), many


def _shapes(args: Args) -> dict[str, Values]:
    shapes = np.array([_shape(line) for line in _pool()])
    deepest, strings = shapes[draw().integers(0, len(shapes), args["n"])].T
    return {"deepest": deepest, "strings": strings}


RATE, DECAY, MOST, STEP = 1e-3, 0.01, 1.0, 10


def _weights(n: int, block: int) -> Args:
    random = draw()
    slope = random.normal(0, 0.02, (2 * n, 2)).astype(np.float16)
    return {
        "weight": random.normal(0, 0.05, (n, 4)).astype(np.float32), "slope": slope,
        "mean": random.normal(0, 0.01, (n, 4)).astype(np.float32), "square": 1e-4 * floats(n, 4),
        "norm": np.array([np.sqrt((slope.astype(np.float32) ** 2).sum())], np.float32), "n": n, "most": MOST, "rate": RATE,
        "decay": DECAY, "fix_m": 1 / (1 - 0.9**STEP), "fix_v": 1 / (1 - 0.999**STEP),
    }  # fmt: skip


def _stepped(args: Args) -> dict[str, Values]:
    slope = args["slope"].astype(float).reshape(-1, 4) * min(1.0, MOST / (args["norm"][0] + 1e-6))
    mean, square = 0.9 * args["mean"] + 0.1 * slope, 0.999 * args["square"] + 0.001 * slope**2
    move = mean * args["fix_m"] / (np.sqrt(square * args["fix_v"]) + 1e-8)
    return {"weight": args["weight"] * (1 - RATE * DECAY) - RATE * move, "mean": mean, "square": square}


FIRST, TARGETS = 1_000_000, 8


def _letters(number: int) -> bytes:
    """The word of a number: six letters, those that change first in front."""
    return bytes(97 + number // 26**k % 26 for k in range(6))


def _sums(n: int, block: int) -> Args:
    preimages = [*draw().choice(n, TARGETS - 2, replace=False).tolist(), n + 5, 2 * n + 7]
    sums = b"".join(hashlib.md5(_letters(FIRST + k)).digest() for k in preimages)
    return {
        "target": np.frombuffer(sums, np.uint32), "found": zeros(TARGETS, np.int32) - 1, "n": n, "first": FIRST,
        "targets": TARGETS,
    }  # fmt: skip


def _cracked(args: Args) -> dict[str, Values]:
    sums = {args["target"][4 * k : 4 * k + 4].tobytes(): k for k in range(TARGETS)}
    numbers = np.full(TARGETS, -1)
    words = itertools.product(range(97, 123), repeat=6)
    for number, word in enumerate(itertools.islice(words, FIRST, FIRST + args["n"]), FIRST):
        which = sums.get(hashlib.md5(bytes(word[::-1])).digest())
        if which is not None:
            numbers[which] = number
    return {"found": numbers}


STEPS, SYMBOLS = 32, 12


def _sequences(n: int, block: int) -> Args:
    random = draw()
    return {
        "chain": random.dirichlet(np.full(block, 0.3), block).astype(np.float32).ravel(),
        "sends": random.dirichlet(np.full(SYMBOLS, 0.7), block).T.astype(np.float32).ravel(),
        "begin": random.dirichlet(np.ones(block)).astype(np.float32),
        "seen": random.integers(0, SYMBOLS, n * STEPS, dtype=np.uint8), "out": zeros(n), "steps": STEPS, "STATES": block,
    }  # fmt: skip


def _likely(args: Args) -> dict[str, Values]:
    states = args["STATES"]
    chain, sends = (args[name].reshape(-1, states).astype(float) for name in ("chain", "sends"))
    observed = args["seen"].reshape(-1, STEPS)
    chance = args["begin"] * sends[observed[:, 0]]
    for step in range(1, STEPS):
        chance = chance @ chain * sends[observed[:, step]]
    return {"out": np.log(chance.sum(axis=1))}


def _systems(n: int, block: int) -> Args:
    random = draw()
    matrix = random.normal(0, 1, (n, ROWS, ROWS))
    matrix = matrix @ matrix.swapaxes(1, 2) + 3 * np.eye(ROWS)
    packed = matrix[:, *np.tril_indices(ROWS)].astype(np.float32)
    right = random.normal(0, 1, n * ROWS).astype(np.float32)
    return {"matrix": packed.ravel(), "right": right, "out": zeros(n * ROWS), "n": n}


def _solved(args: Args) -> dict[str, Values]:
    row, column = np.tril_indices(ROWS)
    matrix = np.zeros((args["n"], ROWS, ROWS))
    matrix[:, row, column] = matrix[:, column, row] = args["matrix"].reshape(-1, PACKED)
    return {"out": np.linalg.solve(matrix, args["right"].reshape(-1, ROWS, 1).astype(float))}


TRIANGLES = 600


def _scene(n: int, block: tuple[int, int]) -> Args:
    random = draw()
    middle = random.integers(0, 16 * n, (TRIANGLES, 1, 2))
    corner = middle + random.integers(-n, n + 1, (TRIANGLES, 3, 2))
    return {
        "corner": corner.reshape(-1, 2).astype(np.int32), "depth": 0.95 * floats(3 * TRIANGLES), "out": zeros(n * n),
        "count": TRIANGLES, "wide": n, "high": n, "BATCH": block[0] * block[1],
    }  # fmt: skip


def _rasterised(args: Args) -> dict[str, Values]:
    wide, high = args["wide"], args["high"]
    nearest = np.ones((high, wide))
    for corner, depth in zip(args["corner"].reshape(-1, 3, 2).astype(int), args["depth"].reshape(-1, 3), strict=True):
        (left, top), (right, bottom) = (np.clip(f(corner, axis=0) // 16, 0, wide) for f in (np.min, np.max))
        y, x = np.mgrid[top : min(bottom + 1, high), left : min(right + 1, wide)] * 16 + 8
        shares = []
        for k in range(3):
            (next_x, next_y), (last_x, last_y) = corner[(k + 1) % 3], corner[(k + 2) % 3]
            shares.append((last_x - next_x) * (y - next_y) - (last_y - next_y) * (x - next_x))
        area = sum(shares)
        covered = np.logical_and.reduce([share >= 0 for share in shares]) & (area > 0)
        z = sum(share * one for share, one in zip(shares, depth.astype(float), strict=True)) / np.maximum(area, 1)
        window = nearest[top : min(bottom + 1, high), left : min(right + 1, wide)]
        window[covered] = np.minimum(window, z)[covered]
    return {"out": nearest}


KERNELS = (
    ValidationKernel(json_shapes, cover, _lines, _shapes, (800, 64), (1 << 13, 1 << 17), (64, 256, 1024)),
    ValidationKernel(
        adamw_step, lambda n, b: min(cover(n, b), 1056), _weights, _stepped, (8000, 128), (1 << 16, 1 << 20), (64, 256, 1024),
        restored=("weight", "mean", "square"),
    ),
    ValidationKernel(md5_words, cover, _sums, _cracked, (10000, 128), (1 << 17, 1 << 20), (64, 256, 512)),
    ValidationKernel(hidden_states_forward, lambda n, b: n, _sequences, _likely, (24, 64), (132, 528), (32, 64, 128)),
    ValidationKernel(packed_systems, cover, _systems, _solved, (5000, 64), (1 << 15, 1 << 18), (64, 128, 256)),
    ValidationKernel(raster_tiles, tiles, _scene, _rasterised, (100, (16, 8)), (256, 1024), ((8, 8), (16, 16), (32, 8))),
)  # fmt: skip
