"""Letters, bits and small numbers: alignment, matching, checksums, hashing rounds, counting bits, copies and transposes."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, float4, i16, i32, short2, u8, u32, u64, uchar4

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, tiles, words, zeros

GAP = 2


def _crc_table() -> tuple[int, ...]:
    values = np.arange(256)
    for _ in range(8):
        values = np.where(values & 1, (values >> 1) ^ 0xEDB88320, values >> 1)
    return tuple(int(value) for value in values)


CRC = _crc_table()
"""The table of the CRC of zip files."""


@st.kernel
def needleman_wunsch_diagonal(a: Global[u8], b: Global[u8], scores: Global[i32], n: i32, diagonal: i32) -> None:
    """One anti-diagonal of a global alignment, a cell a thread; the score of a cell is at row * (n + 1) + column."""
    row = st.block.x * st.block_dim.x + st.thread.x + max(1, diagonal - n)
    column = diagonal - row
    if row <= n and column >= 1:
        at = row * (n + 1) + column
        match = 1 if a[row - 1] == b[column - 1] else -1
        scores[at] = max(scores[at - n - 2] + match, max(scores[at - n - 1], scores[at - 1]) - GAP)


@st.kernel
def smith_waterman(a: Global[u8], b: Global[u8], out: Global[i32], LENGTH: Const) -> None:
    """The best local score of a pair a block: anti-diagonals of LENGTH threads, three in shared memory."""
    scores = st.shared(i32, 3, LENGTH + 1)
    best = st.shared(i32, LENGTH)
    t = st.thread.x
    first = st.block.x * LENGTH
    for k in st.unroll(range(3)):
        scores[k, t + 1] = 0
        if t == 0:
            scores[k, 0] = 0
    own, most = a[first + t], 0
    st.sync()
    for diagonal in range(2 * LENGTH - 1):
        column = diagonal - t
        now, before, last = diagonal % 3, (diagonal + 2) % 3, (diagonal + 1) % 3
        if column >= 0 and column < LENGTH:
            match = 2 if own == b[first + column] else -1
            score = max(scores[last, t] + match, max(scores[before, t], scores[before, t + 1]) - 1)
            score = max(score, 0)
            scores[now, t + 1] = score
            most = max(most, score)
        st.sync()
    best[t] = most
    st.sync()
    if t == 0:
        for k in range(LENGTH):
            most = max(most, best[k])
        out[st.block.x] = most


@st.kernel
def edit_distances(a: Global[u8], b: Global[u8], out: Global[i32], n: i32, LENGTH: Const) -> None:
    """The edit distance of a pair a thread, a row of the table in local memory."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        row = st.local(i32, LENGTH + 1)
        for k in range(LENGTH + 1):
            row[k] = k
        for r in range(LENGTH):
            corner, row[0] = row[0], r + 1
            for c in range(LENGTH):
                same = a[r * n + i] == b[c * n + i]
                value = min(corner + (0 if same else 1), min(row[c], row[c + 1]) + 1)
                corner = row[c + 1]
                row[c + 1] = value
        out[i] = row[LENGTH]


@st.kernel
def string_match(text: Global[u8], word: Global[u8], out: Global[u8], n: i32, length: i32) -> None:
    """out[i] = whether the word begins at i; a thread stops at the first letter that differs."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i + length <= n:
        same = 0
        while same < length and text[i + same] == word[same]:
            same += 1
        out[i] = u8(1) if same == length else u8(0)


@st.kernel
def crc32(data: Global[u8], out: Global[u32], n: i32, LENGTH: Const) -> None:
    """A checksum a thread of LENGTH bytes, kept byte by byte, with a table in constant memory."""
    table = st.constant(u32, CRC)
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        crc = u32(0xFFFFFFFF)
        for k in range(LENGTH):
            crc = table[i32((crc ^ u32(data[k * n + i])) & u32(255))] ^ (crc >> u32(8))
        out[i] = ~crc


@st.device
def turned(x: u32, count: Const) -> u32:
    """x rotated right by `count` bits."""
    return st.funnel_shift_right(x, x, u32(count))


@st.kernel
def hash_rounds(message: Global[u32], out: Global[u32], ROUNDS: Const) -> None:
    """Rounds as of SHA-256, with the schedule computed in registers."""
    i = st.block.x * st.block_dim.x + st.thread.x
    w = st.registers(u32, 16)
    for k in st.unroll(range(16)):
        w[k] = message[16 * i + k]
    a, b, c, d = u32(0x6A09E667), u32(0xBB67AE85), u32(0x3C6EF372), u32(0xA54FF53A)
    e, f, g, h = u32(0x510E527F), u32(0x9B05688C), u32(0x1F83D9AB), u32(0x5BE0CD19)
    for _ in range(ROUNDS // 16):
        for k in st.unroll(range(16)):
            s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
            t1 = h + s1 + ((e & f) ^ (~e & g)) + w[k] + u32(0x428A2F98)
            t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
            h, g, f, e, d, c, b, a = g, f, e, d + t1, c, b, a, t1 + t2
        for k in st.unroll(range(16)):
            x, y = w[(k + 1) % 16], w[(k + 14) % 16]
            w[k] += (turned(x, 7) ^ turned(x, 18) ^ (x >> u32(3))) + w[(k + 9) % 16]
            w[k] += turned(y, 17) ^ turned(y, 19) ^ (y >> u32(10))
    out[2 * i] = a ^ b ^ c ^ d
    out[2 * i + 1] = e ^ f ^ g ^ h


@st.kernel
def count_bits(x: Global[u64], out: Global[i32], n: i32) -> None:
    """Hamming distance of each word and the next but seven, the place of the highest bit, and the parity."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i + 7 < n:
        apart = x[i] ^ x[i + 7]
        out[i] = st.popcount(apart) * 256 + st.clz(apart) * 2 + (st.popcount(x[i]) & 1)


@st.kernel
def run_lengths(x: Global[u8], out: Global[i32], n: i32) -> None:
    """out[i] = length of the run that starts at i, 0 where none does; a thread reads it."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        length = 0
        if i == 0 or x[i] != x[max(i - 1, 0)]:
            length = 1
            while i + length < n and x[min(i + length, n - 1)] == x[i]:
                length += 1
        out[i] = length


@st.kernel
def blend(a: Global[uchar4], b: Global[uchar4], out: Global[uchar4], weight: i32) -> None:
    """Two images of four bytes a pixel, mixed."""
    i = st.block.x * st.block_dim.x + st.thread.x
    p, q = a[i], b[i]
    out[i] = uchar4(
        u8((i32(p.x) * weight + i32(q.x) * (256 - weight)) >> 8), u8((i32(p.y) * weight + i32(q.y) * (256 - weight)) >> 8),
        u8((i32(p.z) * weight + i32(q.z) * (256 - weight)) >> 8), u8((i32(p.w) * weight + i32(q.w) * (256 - weight)) >> 8),
    )  # fmt: skip


@st.kernel
def mix_samples(x: Global[short2], out: Global[i16], n: i32) -> None:
    """Two channels of 16 bits made one, saturated."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        both = x[i]
        out[i] = i16(min(max((3 * i32(both.x) + i32(both.y)) // 2, -32768), 32767))


@st.kernel
def copy_vectors(x: Global[float4], out: Global[float4], n: i32) -> None:
    """16 bytes a load."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i]


@st.kernel
def transpose_naive(x: Global[f32], out: Global[f32], n: i32) -> None:
    """Loads of neighbours, stores at the stride of a row."""
    column, row = st.block.x * st.block_dim.x + st.thread.x, st.block.y * st.block_dim.y + st.thread.y
    if row < n and column < n:
        out[column * n + row] = x[row * n + column]


@st.kernel
def transpose_tiled(x: Global[f32], out: Global[f32], n: i32, ROWS: Const, PITCH: Const) -> None:
    """Tiles of 32 x 32 by ROWS threads a column; PITCH: words from row to row in shared memory."""
    tile = st.shared(f32, 32, PITCH)
    column = st.block.x * 32 + st.thread.x
    for r in range(st.thread.y, 32, ROWS):
        tile[r, st.thread.x] = x[(st.block.y * 32 + r) * n + column]
    st.sync()
    column = st.block.y * 32 + st.thread.x
    for r in range(st.thread.y, 32, ROWS):
        out[(st.block.x * 32 + r) * n + column] = tile[st.thread.x, r]


@st.kernel
def shuffle_local(x: Global[i32], order: Global[u8], out: Global[i32], n: i32, LENGTH: Const) -> None:
    """LENGTH numbers a thread, put into an order that differs from thread to thread, in local memory."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        held = st.local(i32, LENGTH)
        for k in range(LENGTH):
            held[i32(order[k * n + i])] = x[k * n + i]
        for k in range(LENGTH):
            out[k * n + i] = held[k]


# ------------------------------------------------------------------ launches
def _letters(n: int, most: int = 4) -> Values:
    return ints(n, most, np.uint8)


def _diagonal(n: int, block: int) -> Args:
    both = _letters(2 * n)
    scores = draw().integers(-50, 50, (n + 1) * (n + 1), np.int32)
    return {"a": both[:n], "b": both[n:], "scores": scores, "n": n, "diagonal": n + n // 4}


def _scored(args: Args) -> dict[str, Values]:
    n, d, scores = args["n"], args["diagonal"], args["scores"].copy()
    row = np.arange(max(1, d - n), min(n, d - 1) + 1)
    at = row * (n + 1) + d - row
    match = np.where(args["a"][row - 1] == args["b"][d - row - 1], 1, -1)
    scores[at] = np.maximum(scores[at - n - 2] + match, np.maximum(scores[at - n - 1], scores[at - 1]) - GAP)
    return {"scores": scores}


def _pairs(n: int, block: int) -> Args:
    both = _letters(2 * n * block)
    return {"a": both[: n * block], "b": both[n * block :], "out": zeros(n, np.int32), "LENGTH": block}


def _local_scores(args: Args) -> dict[str, Values]:
    length = args["LENGTH"]
    a, b = args["a"].reshape(-1, length), args["b"].reshape(-1, length)
    scores = np.zeros((len(a), length + 1, length + 1), np.int32)
    for r in range(length):
        for c in range(length):
            match = np.where(a[:, r] == b[:, c], 2, -1)
            gap = np.maximum(scores[:, r, c + 1], scores[:, r + 1, c]) - 1
            scores[:, r + 1, c + 1] = np.maximum(0, np.maximum(scores[:, r, c] + match, gap))
    return {"out": scores.max(axis=(1, 2))}


def _columns(n: int, block: int) -> Args:
    both = _letters(32 * n)
    return {"a": both[: 16 * n], "b": both[16 * n :], "out": zeros(n, np.int32), "n": n, "LENGTH": 16}


def _edited(args: Args) -> dict[str, Values]:
    a, b, n = args["a"].reshape(16, -1), args["b"].reshape(16, -1), args["n"]
    row = np.repeat(np.arange(17)[:, None], n, axis=1)
    for r in range(16):
        fresh = np.full_like(row, r + 1)
        for c in range(16):
            fresh[c + 1] = np.minimum(row[c] + (a[r] != b[c]), np.minimum(fresh[c], row[c + 1]) + 1)
        row = fresh
    return {"out": row[16]}


def _text(n: int, block: int) -> Args:
    text = _letters(n, 2)
    return {"text": text, "word": text[n // 2 : n // 2 + 12].copy(), "out": zeros(n, np.uint8), "n": n, "length": 12}


def _matched(args: Args) -> dict[str, Values]:
    windows = np.lib.stride_tricks.sliding_window_view(args["text"], 12)
    out = np.zeros(args["n"], np.uint8)
    out[: len(windows)] = (windows == args["word"]).all(axis=1)
    return {"out": out}


def _data(n: int, block: int) -> Args:
    return {"data": _letters(32 * n, 256), "out": zeros(n, np.uint32), "n": n, "LENGTH": 32}


def _checked(args: Args) -> dict[str, Values]:
    rows = np.ascontiguousarray(args["data"].reshape(32, -1).T)
    return {"out": np.array([zlib.crc32(row) for row in rows], np.uint32)}


def _rotated(x: Values, count: int) -> Values:
    return x >> np.uint32(count) | x << np.uint32(32 - count)


def _hashed(args: Args) -> dict[str, Values]:
    w = list(args["message"].reshape(-1, 16).T.copy())
    first = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
    a, b, c, d, e, f, g, h = (np.full(len(w[0]), value, np.uint32) for value in first)
    for _ in range(args["ROUNDS"] // 16):
        for k in range(16):
            t1 = (
                h
                + (_rotated(e, 6) ^ _rotated(e, 11) ^ _rotated(e, 25))
                + ((e & f) ^ (~e & g))
                + w[k]
                + np.uint32(0x428A2F98)
            )
            t2 = (_rotated(a, 2) ^ _rotated(a, 13) ^ _rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
            h, g, f, e, d, c, b, a = g, f, e, d + t1, c, b, a, t1 + t2
        for k in range(16):
            x, y = w[(k + 1) % 16], w[(k + 14) % 16]
            w[k] = w[k] + (_rotated(x, 7) ^ _rotated(x, 18) ^ (x >> np.uint32(3))) + w[(k + 9) % 16]
            w[k] = w[k] + (_rotated(y, 17) ^ _rotated(y, 19) ^ (y >> np.uint32(10)))
    return {"out": np.stack([a ^ b ^ c ^ d, e ^ f ^ g ^ h], axis=1).ravel()}


def _bits(n: int, block: int) -> Args:
    return {"x": words(2 * n).view(np.uint64), "out": zeros(n, np.int32), "n": n}


def _bits_counted(args: Args) -> dict[str, Values]:
    x, n = args["x"], args["n"]
    difference, out = x[:-7] ^ x[7:], np.zeros(n, np.int32)
    high = np.frompyfunc(lambda word: 64 - int(word).bit_length(), 1, 1)(difference).astype(np.int64)
    out[:-7] = np.bitwise_count(difference).astype(np.int64) * 256 + high * 2 + np.bitwise_count(x[:-7]) % 2
    return {"out": out}


def _runs(n: int, block: int) -> Args:
    return {"x": (np.cumsum(draw().random(n) < 0.2) % 256).astype(np.uint8), "out": zeros(n, np.int32), "n": n}


def _run(args: Args) -> dict[str, Values]:
    heads = np.flatnonzero(np.concatenate([[True], np.diff(args["x"]) != 0]))
    out = np.zeros(args["n"], np.int32)
    out[heads] = np.diff(np.append(heads, args["n"]))
    return {"out": out}


def _images(n: int, block: int) -> Args:
    a, b = draw().integers(0, 256, (2, n, 4), np.uint8)
    return {"a": a, "b": b, "out": np.zeros((n, 4), np.uint8), "weight": 77}


def _samples(n: int, block: int) -> Args:
    return {"x": draw().integers(-32768, 32768, (n, 2)).astype(np.int16), "out": zeros(n, np.int16), "n": n}


def _mixed(args: Args) -> dict[str, Values]:
    x = args["x"].astype(np.int32)
    return {"out": np.clip((3 * x[:, 0] + x[:, 1]) // 2, -32768, 32767)}


def _matrix(n: int, block: Any, **consts: int) -> Args:
    return {"x": floats(n * n), "out": zeros(n * n), "n": n, **consts}


def _transposed(args: Args) -> dict[str, Values]:
    return {"out": args["x"].reshape(args["n"], -1).T.ravel()}


def _orders(n: int, block: int) -> Args:
    order = draw().random((16, n)).argsort(axis=0).astype(np.uint8)
    return {"x": ints(16 * n, 1 << 20), "order": order.ravel(), "out": zeros(16 * n, np.int32), "n": n, "LENGTH": 16}


def _ordered(args: Args) -> dict[str, Values]:
    out = np.empty((16, args["n"]), np.int32)
    np.put_along_axis(out, args["order"].reshape(16, -1).astype(np.int64), args["x"].reshape(16, -1), 0)
    return {"out": out.ravel()}


BLOCKS = (64, 256, 1024)


def _wide(n: int, block: int) -> int:
    return n // block


KERNELS = (
    ValidationKernel(needleman_wunsch_diagonal, cover, _diagonal, _scored, (300, 64), (1 << 11, 1 << 13), (32, 128, 512)),
    ValidationKernel(smith_waterman, lambda n, b: n, _pairs, _local_scores, (5, 64), (528,), (32, 64, 128)),
    ValidationKernel(edit_distances, cover, _columns, _edited, (200, 64), (1 << 14, 1 << 16), (32, 128, 512)),
    ValidationKernel(string_match, cover, _text, _matched, (1000, 128), (1 << 18, 1 << 22), BLOCKS),
    ValidationKernel(crc32, cover, _data, _checked, (300, 128), (1 << 14, 1 << 17), BLOCKS),
    ValidationKernel(
        hash_rounds, _wide, lambda n, b: {"message": words(16 * n), "out": zeros(2 * n, np.uint32), "ROUNDS": 64}, _hashed,
        (256, 128), (1 << 14, 1 << 17), BLOCKS,
    ),
    ValidationKernel(count_bits, cover, _bits, _bits_counted, (1000, 128), (1 << 17, 1 << 20), BLOCKS),
    ValidationKernel(run_lengths, cover, _runs, _run, (1000, 128), (1 << 18, 1 << 21), BLOCKS),
    ValidationKernel(
        blend, _wide, _images,
        lambda a: {"out": (a["a"].astype(np.int32) * 77 + a["b"].astype(np.int32) * 179) >> 8}, (512, 128),
        (1 << 18, 1 << 22), BLOCKS,
    ),
    ValidationKernel(mix_samples, cover, _samples, _mixed, (1000, 128), (1 << 18, 1 << 22), BLOCKS),
    ValidationKernel(
        copy_vectors, cover, lambda n, b: {"x": floats(n, 4), "out": np.zeros((n, 4), np.float32), "n": n},
        lambda a: {"out": a["x"]}, (500, 128), (1 << 18, 1 << 22), BLOCKS,
    ),
    ValidationKernel(transpose_naive, tiles, _matrix, _transposed, (100, (32, 8)), (1024, 4096), ((32, 8), (16, 16), (32, 32))),
    ValidationKernel(
        transpose_tiled, lambda n, b: (n // 32, n // 32), lambda n, b: _matrix(n, b, ROWS=b[1], PITCH=33), _transposed,
        (128, (32, 8)), (1024, 4096), ((32, 4), (32, 8), (32, 32)),
    ),
    ValidationKernel(shuffle_local, cover, _orders, _ordered, (200, 64), (1 << 14, 1 << 17), (32, 128, 512)),
)  # fmt: skip
