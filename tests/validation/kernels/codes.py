"""Codes and sequences: text for mail, digests, ciphers, codes of unequal length, words of genomes, alignments."""

from __future__ import annotations

import base64
import hashlib
import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, words, zeros

LETTERS = tuple(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
FILL = ord("=")
PRIMES = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
ROUND = tuple(int(p ** (1 / 3) % 1 * 2**32) for p in PRIMES)
START = tuple(int(p**0.5 % 1 * 2**32) for p in PRIMES[:8])
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 7)
"""Bits of each of eight symbols; codes of a length follow one another."""


@st.kernel
def base64_encode(x: Global[u8], out: Global[u8], n: i32) -> None:
    """out = text for n bytes, a thread three bytes and four letters; the end is padded with =."""
    letters = st.constant(u8, LETTERS)
    i = st.block.x * st.block_dim.x + st.thread.x
    at = 3 * i
    if at >= n:
        return
    bits = u32(x[at]) << 16
    if at + 1 < n:
        bits |= u32(x[at + 1]) << 8
    if at + 2 < n:
        bits |= u32(x[at + 2])
    out[4 * i] = letters[bits >> 18]
    out[4 * i + 1] = letters[(bits >> 12) & 63]
    out[4 * i + 2] = letters[(bits >> 6) & 63] if at + 1 < n else u8(FILL)
    out[4 * i + 3] = letters[bits & 63] if at + 2 < n else u8(FILL)


@st.device
def turned(x: u32, n: u32) -> u32:
    """Bits moved to the right, around."""
    return (x >> n) | (x << (u32(32) - n))


@st.kernel
def sha256_blocks(x: Global[u32], out: Global[u32], n: i32) -> None:
    """out = SHA-256 of n padded messages of 55 bytes: 64 rounds, with the last 16 words in a ring."""
    rounds = st.constant(u32, ROUND)
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    w = st.local(u32, 16)
    for k in range(16):
        w[k] = st.byte_perm(x[16 * i + k], 0, 0x0123)
    a, b, c, d = u32(START[0]), u32(START[1]), u32(START[2]), u32(START[3])
    e, f, g, h = u32(START[4]), u32(START[5]), u32(START[6]), u32(START[7])
    for k in range(64):
        if k >= 16:
            old, late = w[(k + 1) & 15], w[(k + 14) & 15]
            s0 = turned(old, 7) ^ turned(old, 18) ^ (old >> 3)
            s1 = turned(late, 17) ^ turned(late, 19) ^ (late >> 10)
            w[k & 15] += s0 + w[(k + 9) & 15] + s1
        choice = (e & f) ^ (~e & g)
        most = (a & b) ^ (a & c) ^ (b & c)
        first = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + choice + rounds[k] + w[k & 15]
        second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + most
        h, g, f, e, d, c, b, a = g, f, e, d + first, c, b, a, first + second
    out[8 * i], out[8 * i + 1], out[8 * i + 2], out[8 * i + 3] = a + START[0], b + START[1], c + START[2], d + START[3]
    out[8 * i + 4], out[8 * i + 5], out[8 * i + 6], out[8 * i + 7] = (
        e + START[4],
        f + START[5],
        g + START[6],
        h + START[7],
    )


@st.kernel
def aes_tables(x: Global[u32], table: Global[u32], key: Global[u32], out: Global[u32], n: i32, ROUNDS: Const) -> None:
    """out = n blocks of four words after ROUNDS rounds of a cipher by lookups in one table in shared memory."""
    held = st.shared(u32, 256)
    for k in range(st.thread.x, 256, st.block_dim.x):
        held[k] = table[k]
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    a, b, c, d = x[4 * i] ^ key[0], x[4 * i + 1] ^ key[1], x[4 * i + 2] ^ key[2], x[4 * i + 3] ^ key[3]
    for r in range(1, ROUNDS + 1):
        p = held[a & 255] ^ turned(held[(b >> 8) & 255], 24) ^ turned(held[(c >> 16) & 255], 16)
        q = held[b & 255] ^ turned(held[(c >> 8) & 255], 24) ^ turned(held[(d >> 16) & 255], 16)
        s = held[c & 255] ^ turned(held[(d >> 8) & 255], 24) ^ turned(held[(a >> 16) & 255], 16)
        t = held[d & 255] ^ turned(held[(a >> 8) & 255], 24) ^ turned(held[(b >> 16) & 255], 16)
        p ^= turned(held[d >> 24], 8) ^ key[4 * r]
        q ^= turned(held[a >> 24], 8) ^ key[4 * r + 1]
        s ^= turned(held[b >> 24], 8) ^ key[4 * r + 2]
        t ^= turned(held[c >> 24], 8) ^ key[4 * r + 3]
        a, b, c, d = p, q, s, t
    out[4 * i] = a
    out[4 * i + 1] = b
    out[4 * i + 2] = c
    out[4 * i + 3] = d


@st.kernel
def prefix_decode(bits: Global[u32], start: Global[i32], out: Global[u8], n: i32, length: i32) -> None:
    """out = symbols of codes of one to seven bits, `length` from each start on, a thread a run: bit by bit until one fits."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    at = start[i]
    word = bits[at >> 5] >> u32(at & 31)
    for k in range(length):
        ones = 0
        while ones < 7:
            one = word & 1
            word >>= 1
            at += 1
            if at & 31 == 0:
                word = bits[at >> 5]
            if one == 0:
                break
            ones += 1
        out[i * length + k] = u8(ones)


@st.kernel
def count_words(x: Global[u8], counts: Global[i32], n: i32, LENGTH: Const) -> None:
    """counts of each word of LENGTH letters of a genome; 4 is a letter that is not known, and no word holds it."""
    mask = (1 << (2 * LENGTH)) - 1
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n - LENGTH + 1, st.grid_dim.x * st.block_dim.x):
        code = 0
        known = True
        for k in range(LENGTH):
            letter = i32(x[i + k])
            if letter > 3:
                known = False
                break
            code = (code << 2 | letter) & mask
        if known:
            st.atomic_add(counts, code, 1)


@st.kernel
def viterbi(
    seen: Global[i32],
    step: Global[f32],
    emit: Global[f32],
    best: Global[f32],
    path: Global[u8],
    length: i32,
    STATES: Const,
) -> None:
    """best = the logarithm of the most likely path of each sequence through STATES states, path = the predecessor of each state."""
    now = st.shared(f32, STATES)
    then = st.shared(f32, STATES)
    state = st.thread.x
    first = st.block.x * length
    now[state] = emit[seen[first] * STATES + state]
    st.sync()
    for k in range(1, length):
        most, source = -math.inf, 0
        for s in range(STATES):
            value = now[s] + step[s * STATES + state]
            if value > most:
                most, source = value, s
        then[state] = most + emit[seen[first + k] * STATES + state]
        path[(first + k) * STATES + state] = u8(source)
        st.sync()
        now, then = then, now
    best[st.block.x * STATES + state] = now[state]


@st.kernel
def warp_distances(a: Global[f32], b: Global[f32], out: Global[f32], n: i32, length: i32, BAND: Const) -> None:
    """out = distance of two series under dynamic time warping, in a band of BAND; series are interleaved."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    row = st.local(f32, 2 * BAND + 2)
    for k in range(2 * BAND + 2):
        row[k] = math.inf
    row[BAND] = 0.0
    for y in range(length):
        left = math.inf
        own = a[y * n + i]
        for k in range(2 * BAND + 1):
            x = y + k - BAND
            value = math.inf
            if 0 <= x < length:
                least = min(left, row[k + 1])
                if x > 0 or y == 0:
                    least = min(least, row[k])
                value = abs(own - b[x * n + i]) + least
            row[k] = value
            left = value
    out[i] = row[BAND]


# ------------------------------------------------------------------ launches
def _bytes(n: int, block: int) -> Args:
    return {"x": draw().integers(0, 256, n, np.uint8), "out": zeros(4 * -(-n // 3), np.uint8), "n": n}


def _mailed(args: Args) -> dict[str, Values]:
    return {"out": np.frombuffer(base64.b64encode(args["x"].tobytes()), np.uint8)}


def _messages(n: int, block: int) -> Args:
    x = draw().integers(0, 256, (n, 64), np.uint8)
    x[:, 55:] = [128, 0, 0, 0, 0, 0, 0, 55 * 8 // 256, 55 * 8 % 256]
    return {"x": x.ravel().view(np.uint32), "out": zeros(8 * n, np.uint32), "n": n}


def _digests(args: Args) -> dict[str, Values]:
    texts = args["x"].view(np.uint8).reshape(-1, 64)[:, :55]
    return {"out": np.frombuffer(b"".join(hashlib.sha256(text.tobytes()).digest() for text in texts), ">u4")}


def _plain(n: int, block: int) -> Args:
    return {
        "x": words(4 * n),
        "table": words(256),
        "key": words(44)[::-1].copy(),
        "out": zeros(4 * n, np.uint32),
        "n": n,
        "ROUNDS": 10,
    }


def _ciphered(args: Args) -> dict[str, Values]:
    """Compute by bytes: the column of byte k of a word is the column of the table, rotated by k."""
    key, table = args["key"].reshape(-1, 4), args["table"]
    x = args["x"].reshape(-1, 4) ^ key[0]
    rotated = [table << np.uint32(8 * k) | (table >> np.uint32(32 - 8 * k) if k else np.uint32(0)) for k in range(4)]
    for r in range(1, args["ROUNDS"] + 1):
        columns = x.view(np.uint8).reshape(-1, 4, 4)
        new = np.broadcast_to(key[r], x.shape)
        for k in range(4):
            new = new ^ rotated[k][np.roll(columns[:, :, k], -k, axis=1)]
        x = np.ascontiguousarray(new)
    return {"out": x.ravel()}


RUN = 64


def _symbols(n: int) -> Values:
    return np.minimum(draw().geometric(0.5, n * RUN) - 1, 7).astype(np.uint8)


def _packed(n: int, block: int) -> Args:
    """Symbol s is s ones and a nought; the last has none."""
    symbols = _symbols(n).astype(int)
    ends = np.cumsum(np.array(LENGTHS)[symbols])
    bits = np.ones((ends[-1] // 32 + 2) * 32, np.uint8)
    bits[ends[symbols < 7] - 1] = 0
    start = np.concatenate([[0], ends[RUN - 1 : -1 : RUN]]).astype(np.int32)
    return {
        "bits": np.packbits(bits, bitorder="little").view(np.uint32), "start": start, "out": zeros(n * RUN, np.uint8), "n": n,
        "length": RUN,
    }  # fmt: skip


def _genome(n: int, block: int) -> Args:
    x = draw().choice(5, n, p=[0.3, 0.19, 0.2, 0.3, 0.01]).astype(np.uint8)
    return {"x": x, "counts": zeros(4**6, np.int32), "n": n, "LENGTH": 6}


def _counted(args: Args) -> dict[str, Values]:
    windows = np.lib.stride_tricks.sliding_window_view(args["x"], 6)
    return {"counts": np.bincount(windows[(windows < 4).all(axis=1)] @ 4 ** np.arange(5, -1, -1), minlength=4**6)}


def _observed(n: int, block: int) -> Args:
    """Chances in quarters of a bit: sums are exact."""
    rng, length = draw(), 64
    step, emit = (np.round(-32 * rng.random(size)).astype(np.float32) / 4 for size in (block * block, 16 * block))
    return {
        "seen": ints(n * length, 16), "step": step, "emit": emit, "best": zeros(n * block),
        "path": zeros(n * length * block, np.uint8), "length": length, "STATES": block,
    }  # fmt: skip


def _likeliest(args: Args) -> dict[str, Values]:
    states, length = args["STATES"], args["length"]
    observed, step, emit = (
        args["seen"].reshape(-1, length),
        args["step"].reshape(states, -1),
        args["emit"].reshape(16, -1),
    )
    now, path = emit[observed[:, 0]], args["path"].reshape(-1, length, states).copy()
    for k in range(1, length):
        most, source = np.full(now.shape, -np.inf, np.float32), np.zeros(now.shape, np.uint8)
        for s in range(states):
            value = now[:, s, None] + step[s]
            source[value > most] = s
            most = np.maximum(most, value)
        path[:, k], now = source, most + emit[observed[:, k]]
    return {"best": now, "path": path}


def _series(n: int, block: int) -> Args:
    a, b = floats(2, 64 * n)
    return {"a": a, "b": b, "out": zeros(n), "n": n, "length": 64, "BAND": 8}


def _stretched(args: Args) -> dict[str, Values]:
    """A whole table, a diagonal being no further than the band from the middle."""
    length, band = args["length"], args["BAND"]
    a, b = (args[name].reshape(length, -1).astype(float) for name in ("a", "b"))
    above = np.full((length + 1, args["n"]), np.inf)
    above[0] = 0
    for y in range(length):
        row = np.full_like(above, np.inf)
        for x in range(max(0, y - band), min(length, y + band + 1)):
            row[x + 1] = abs(a[y] - b[x]) + np.minimum(np.minimum(above[x], above[x + 1]), row[x])
        above = row
    return {"out": above[-1]}


BLOCKS = (64, 256, 1024)


def _strided(n: int, block: int) -> int:
    return min(cover(n, block), 132 * 2048 // block)


KERNELS = (
    ValidationKernel(
        base64_encode, lambda n, b: cover(cover(n, 3), b), _bytes, _mailed, (2999, 128), (1 << 20, 1 << 25), BLOCKS,
    ),
    ValidationKernel(sha256_blocks, cover, _messages, _digests, (700, 128), (1 << 15, 1 << 18), (64, 128, 512)),
    ValidationKernel(aes_tables, cover, _plain, _ciphered, (700, 128), (1 << 16, 1 << 20), BLOCKS),
    ValidationKernel(
        prefix_decode, cover, _packed, lambda a: {"out": _symbols(a["n"])}, (300, 64), (1 << 13, 1 << 17), (32, 128, 512),
    ),
    ValidationKernel(count_words, _strided, _genome, _counted, (3000, 128), (1 << 20, 1 << 23), BLOCKS, restored=("counts",)),
    ValidationKernel(viterbi, lambda n, b: n, _observed, _likeliest, (6, 64), (132, 1056), (32, 64, 128)),
    ValidationKernel(warp_distances, cover, _series, _stretched, (200, 64), (1 << 13, 1 << 16), (64, 128, 256)),
)  # fmt: skip
