"""Codes and digests: SHA-256, codes of unequal length."""

from __future__ import annotations

import hashlib

import numpy as np
import simtbed as st
from simtbed import Global, i32, u8, u32

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros

PRIMES = [p for p in range(2, 312) if all(p % q for q in range(2, p))]
ROUND = tuple(int(p ** (1 / 3) % 1 * 2**32) for p in PRIMES)
START = tuple(int(p**0.5 % 1 * 2**32) for p in PRIMES[:8])
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 7)
"""Bits of each of eight symbols; codes of a length follow one another."""


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


# ------------------------------------------------------------------ launches


def _messages(n: int, block: int) -> Args:
    x = draw().integers(0, 256, (n, 64), np.uint8)
    x[:, 55:] = [128, 0, 0, 0, 0, 0, 0, 55 * 8 // 256, 55 * 8 % 256]
    return {"x": x.ravel().view(np.uint32), "out": zeros(8 * n, np.uint32), "n": n}


def _digests(args: Args) -> dict[str, Values]:
    texts = args["x"].view(np.uint8).reshape(-1, 64)[:, :55]
    return {"out": np.frombuffer(b"".join(hashlib.sha256(text.tobytes()).digest() for text in texts), ">u4")}


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


KERNELS = (
    ValidationKernel(sha256_blocks, cover, _messages, _digests, (700, 128), (1 << 15, 1 << 18), (64, 128, 512)),
    ValidationKernel(
        prefix_decode, cover, _packed, lambda a: {"out": _symbols(a["n"])}, (300, 64), (1 << 13, 1 << 17), (32, 128, 512),
    ),
)  # fmt: skip
