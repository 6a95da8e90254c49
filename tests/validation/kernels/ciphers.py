"""Digests: SHA-3, SipHash."""

from __future__ import annotations

import hashlib

import numpy as np
import simtbed as st
from simtbed import Global, i32, u8, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, zeros

TURNS = (
    0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14,
)  # fmt: skip
ROUNDS = (
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800A, 0x800000008000000A, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
)  # fmt: skip


@st.kernel
def sha3_messages(message: Global[u64], out: Global[u64], n: i32, length: i32) -> None:
    """out = SHA3-256 of messages of `length` words of 64 bits, a thread a message; words of one message are n words from each other."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    rounds = st.constant(u64, ROUNDS)
    a = st.registers(u64, 25)
    b = st.registers(u64, 25)
    c = st.registers(u64, 5)
    for k in st.unroll(range(25)):
        a[k] = u64(0)
    for first in range(0, length + 1, 17):
        for k in st.unroll(range(17)):
            if first + k < length:
                a[k] ^= message[(first + k) * n + i]
            elif first + k == length:
                a[k] ^= u64(6)
        if first + 17 > length:
            a[16] ^= u64(1) << 63
        for r in range(24):
            for x in st.unroll(range(5)):
                c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20]
            for x in st.unroll(range(5)):
                mixed = c[(x + 4) % 5] ^ (c[(x + 1) % 5] << 1 | c[(x + 1) % 5] >> 63)
                for y in st.unroll(range(5)):
                    a[x + 5 * y] ^= mixed
            for x in st.unroll(range(5)):
                for y in st.unroll(range(5)):
                    word = a[x + 5 * y]
                    b[y + 5 * ((2 * x + 3 * y) % 5)] = word << TURNS[x + 5 * y] | word >> (-TURNS[x + 5 * y] & 63)
            for y in st.unroll(range(5)):
                for x in st.unroll(range(5)):
                    a[x + 5 * y] = b[x + 5 * y] ^ (~b[(x + 1) % 5 + 5 * y] & b[(x + 2) % 5 + 5 * y])
            a[0] ^= rounds[r]
    for k in st.unroll(range(4)):
        out[k * n + i] = a[k]


@st.device
def sip_round(a: u64, b: u64, c: u64, d: u64) -> tuple[u64, u64, u64, u64]:
    """The state of SipHash after a round."""
    a += b
    b = (b << 13 | b >> 51) ^ a
    a = a << 32 | a >> 32
    c += d
    d = (d << 16 | d >> 48) ^ c
    a += d
    d = (d << 21 | d >> 43) ^ a
    c += b
    b = (b << 17 | b >> 47) ^ c
    c = c << 32 | c >> 32
    return a, b, c, d


@st.kernel
def siphash_strings(text: Global[u8], start: Global[i32], out: Global[u64], n: i32, low: u64, high: u64) -> None:
    """out = SipHash-2-4 of strings of any length, a thread a string."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    a, b = low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D
    c, d = low ^ 0x6C7967656E657261, high ^ 0x7465646279746573
    first, end = start[i], start[i + 1]
    size = end - first
    for at in range(first, end + 1, 8):
        word = u64(0)
        for k in range(min(8, end - at)):
            word |= u64(text[at + k]) << (8 * k)
        if end - at < 8:
            word |= u64(size) << 56
        d ^= word
        a, b, c, d = sip_round(a, b, c, d)
        a, b, c, d = sip_round(a, b, c, d)
        a ^= word
    c ^= 0xFF
    for _ in range(4):
        a, b, c, d = sip_round(a, b, c, d)
    out[i] = a ^ b ^ c ^ d


# ------------------------------------------------------------------ launches


LENGTH = 40


def _messages(n: int, block: int) -> Args:
    message = draw().integers(0, 2**64, LENGTH * n, dtype=np.uint64)
    return {"message": message, "out": zeros(4 * n, np.uint64), "n": n, "length": LENGTH}


def _digests(args: Args) -> dict[str, Values]:
    digests = [hashlib.sha3_256(row.tobytes()).digest() for row in args["message"].reshape(LENGTH, -1).T]
    return {"out": np.frombuffer(b"".join(digests), np.uint64).reshape(-1, 4).T}


def _strings(n: int, block: int) -> Args:
    start = np.concatenate([[0], np.cumsum(draw().integers(0, 60, n))]).astype(np.int32)
    return {
        "text": ints(int(start[-1]), 256, np.uint8), "start": start, "out": zeros(n, np.uint64), "n": n,
        "low": 0x0706050403020100, "high": 0x0F0E0D0C0B0A0908,
    }  # fmt: skip


def _sipped(args: Args) -> dict[str, Values]:
    """All strings at once: each is padded, and rests when it has ended."""
    start, n = args["start"], args["n"]
    size = np.diff(start)
    padded = np.zeros((n, 64), np.uint8)
    padded[np.arange(64) < size[:, None]] = args["text"]
    padded[np.arange(n), size // 8 * 8 + 7] = size
    whole = padded.view(np.uint64)
    low, high = args["low"], args["high"]
    keys = (low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D, low ^ 0x6C7967656E657261, high ^ 0x7465646279746573)
    state = np.array(keys, np.uint64)[:, None] * np.ones(n, np.uint64)

    def mixing_rounds(v: Values, many: int) -> Values:
        a, b, c, d = v
        for _ in range(many):
            a, c = a + b, c + d
            b, d = _left(b, 13) ^ a, _left(d, 16) ^ c
            a = _left(a, 32) + d
            c = c + b
            d, b = _left(d, 21) ^ a, _left(b, 17) ^ c
            c = _left(c, 32)
        return np.stack([a, b, c, d])

    for k in range(8):
        active = k <= size // 8
        state[3, active] ^= whole[active, k]
        state[:, active] = mixing_rounds(state[:, active], 2)
        state[0, active] ^= whole[active, k]
    state[2] ^= np.uint64(0xFF)
    return {"out": np.bitwise_xor.reduce(mixing_rounds(state, 4), axis=0)}


def _left(x: Values, count: int) -> Values:
    return x << np.uint64(count) | x >> np.uint64(64 - count)


KERNELS = (
    ValidationKernel(sha3_messages, cover, _messages, _digests, (1000, 64), (1 << 13, 1 << 16), (64, 128)),
    ValidationKernel(siphash_strings, cover, _strings, _sipped, (2000, 128), (1 << 15, 1 << 18), (64, 256)),
)  # fmt: skip
