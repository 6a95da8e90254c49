"""Packed bytes: Adler's sums, UTF-8, numbers of varying length, matches."""

from __future__ import annotations

import zlib
from itertools import pairwise

import numpy as np
import simtbed as st
from simtbed import Const, Global, i32, u8, u32, uchar4

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, warps, zeros


@st.kernel
def adler_chunks(x: Global[uchar4], out: Global[u32], CHUNK: Const) -> None:
    """out = Adler's sums of chunks of CHUNK bytes, a block a chunk: two sums by shuffles, then over the warps."""
    sums = st.shared(u32, 32)
    weighted = st.shared(u32, 32)
    plain, heavy = u32(0), u32(0)
    for k in range(st.thread.x, CHUNK // 4, st.block_dim.x):
        four = x[st.block.x * (CHUNK // 4) + k]
        for part in st.unroll(range(4)):
            plain += u32(four[part])
            heavy += u32(CHUNK - 4 * k - part) * u32(four[part])
    for step in (16, 8, 4, 2, 1):
        plain += st.shuffle_down(plain, step)
        heavy += st.shuffle_down(heavy, step)
    if st.lane == 0:
        sums[st.warp] = plain
        weighted[st.warp] = heavy
    st.sync()
    if st.thread.x == 0:
        for w in range(1, st.block_dim.x // 32):
            plain += sums[w]
            heavy += weighted[w]
        out[st.block.x] = (heavy + CHUNK) % 65521 << 16 | (plain + 1) % 65521


@st.kernel
def utf8_lines(text: Global[u8], start: Global[i32], out: Global[i32], n: i32) -> None:
    """out = where the first letter of each line begins that is no UTF-8, -1 where all is well."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    at, end = start[i], start[i + 1]
    while at < end:
        lead = text[at]
        if lead < 0x80:
            at += 1
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            low = 0xA0 if lead == 0xE0 else 0x80
            high = 0x9F if lead == 0xED else 0xBF
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            low = 0x90 if lead == 0xF0 else 0x80
            high = 0x8F if lead == 0xF4 else 0xBF
        else:
            break
        if at + more >= end or i32(text[at + 1]) < low or i32(text[at + 1]) > high:
            break
        good = True
        for k in range(2, more + 1):
            good = good and text[at + k] >> 6 == 2
        if not good:
            break
        at += more + 1
    out[i] = -1 if at == end else at - start[i]


@st.kernel
def varint_lists(packed: Global[u8], start: Global[i32], place: Global[i32], out: Global[i32], n: i32) -> None:
    """out = ascending and descending lists, packed as differences in seven bits a byte, the sign in the lowest bit."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        at, to, value = start[i], place[i], 0
        while at < start[i + 1]:
            bits, shift = u32(0), 0
            while True:
                byte = u32(packed[at])
                at += 1
                bits |= (byte & 127) << shift
                if byte < 128:
                    break
                shift += 7
            value += i32(bits >> 1) ^ -i32(bits & 1)
            out[to] = value
            to += 1


@st.kernel
def lz_expand(packed: Global[u8], start: Global[i32], out: Global[u8], n: i32, ROOM: Const) -> None:
    """out = chunks of equal size from runs of letters and matches before them, a warp a chunk; lengths of four bits and more."""
    chunk = st.block.x * (st.block_dim.x // 32) + st.warp
    if chunk >= n:
        return
    at, end = start[chunk], start[chunk + 1]
    base = chunk * ROOM
    to = base
    while at < end:
        token = i32(packed[at])
        at += 1
        letters = token >> 4
        if letters == 15:
            while packed[at] == 255:
                letters += 255
                at += 1
            letters += i32(packed[at])
            at += 1
        for k in range(st.lane, letters, 32):
            out[to + k] = packed[at + k]
        to += letters
        at += letters
        if at >= end:
            break
        distance = i32(packed[at]) | i32(packed[at + 1]) << 8
        length = (token & 15) + 4
        at += 2
        if length == 19:
            while packed[at] == 255:
                length += 255
                at += 1
            length += i32(packed[at])
            at += 1
        st.syncwarp()
        for k in range(st.lane, length, 32):
            out[to + k] = out[to - distance + k % distance]
        to += length
        st.syncwarp()


# ------------------------------------------------------------------ launches
CHUNK = 4096


def _chunks(n: int, block: int) -> Args:
    return {"x": ints(n * CHUNK, 256, np.uint8).reshape(-1, 4), "out": zeros(n, np.uint32), "CHUNK": CHUNK}


def _adlers(args: Args) -> dict[str, Values]:
    return {"out": np.array([zlib.adler32(row.tobytes()) for row in args["x"].reshape(-1, CHUNK)], np.uint32)}


def _lines(n: int, block: int) -> Args:
    """Letters of every length; in one line of four a byte is changed."""
    rng = draw()
    fragments = [b"a few words", "r\u00e9sum\u00e9".encode(), "\u4e2d\u6587".encode(), "\U0001f600".encode(), b" and "]
    kinds = [b"".join(fragments[k] for k in rng.integers(0, 5, rng.integers(1, 16))) for _ in range(256)]
    for k in range(0, 256, 4):
        spoilt = bytearray(kinds[k])
        spoilt[rng.integers(len(spoilt))] = rng.integers(0x80, 0x100)
        kinds[k] = bytes(spoilt)
    lines = [kinds[k] for k in rng.integers(0, 256, n)]
    start = np.cumsum([0, *map(len, lines)]).astype(np.int32)
    return {"text": np.frombuffer(b"".join(lines), np.uint8), "start": start, "out": zeros(n, np.int32), "n": n}


def _first_bad(line: bytes) -> int:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _valid(args: Args) -> dict[str, Values]:
    text, start = args["text"].tobytes(), args["start"].tolist()
    return {"out": np.array([_first_bad(text[a:b]) for a, b in pairwise(start)])}


def _varints(n: int, block: int) -> Args:
    rng = draw()
    place = np.concatenate([[0], np.cumsum(rng.integers(0, 40, n))]).astype(np.int32)
    change = (rng.normal(0, 1, place[-1]) * 10 ** rng.integers(0, 6, place[-1])).astype(np.int64)
    signed = np.where(change < 0, -2 * change - 1, 2 * change)
    least = np.stack([signed >> 7 * k & 127 for k in range(4)], axis=1)
    size = 1 + sum((signed >> 7 * k > 0).astype(int) for k in (1, 2, 3))
    used = np.arange(4) < size[:, None]
    packed = (least | np.where(np.arange(4) < size[:, None] - 1, 128, 0))[used].astype(np.uint8)
    bytes_before = np.concatenate([[0], np.cumsum(size)])
    return {
        "packed": packed, "start": bytes_before[place].astype(np.int32), "place": place, "out": zeros(place[-1], np.int32), "n": n,
    }  # fmt: skip


def _unpacked(args: Args) -> dict[str, Values]:
    packed, place = args["packed"].astype(np.int64), args["place"]
    last = packed < 128
    first = np.flatnonzero(np.concatenate([[True], last[:-1]]))
    inside = np.arange(len(packed)) - np.repeat(first, np.diff([*first, len(packed)]))
    bits = np.add.reduceat((packed & 127) << 7 * inside, first)
    total = np.concatenate([[0], np.cumsum(bits >> 1 ^ -(bits & 1))])
    return {"out": total[1:] - np.repeat(total[place[:-1]], np.diff(place))}


EXPANDED = 2048


def _length(size: int) -> bytes:
    """Return the length bytes after a token; the token itself encodes up to 15."""
    return bytes([255] * ((size - 15) // 255) + [(size - 15) % 255]) if size >= 15 else b""


def _squeezed(rng: np.random.Generator) -> bytes:
    out, size = b"", 0
    while EXPANDED - size > 400:
        letters, length = int(rng.geometric(0.08)), 3 + int(rng.geometric(0.04))
        letters, length = min(letters, 100), min(length, 290)
        distance = int(rng.integers(1, size + letters + 1))
        out += bytes([min(letters, 15) << 4 | min(length - 4, 15)]) + _length(letters)
        out += rng.integers(97, 123, letters, dtype=np.uint8).tobytes()
        out += distance.to_bytes(2, "little") + _length(length - 4)
        size += letters + length
    out += bytes([15 << 4]) + _length(EXPANDED - size)
    return out + rng.integers(97, 123, EXPANDED - size, dtype=np.uint8).tobytes()


def _squeezes(n: int, block: int) -> Args:
    rng = draw()
    kinds = [_squeezed(rng) for _ in range(40)]
    chunks = [kinds[k] for k in rng.integers(0, 40, n)]
    start = np.cumsum([0, *map(len, chunks)]).astype(np.int32)
    packed = np.frombuffer(b"".join(chunks), np.uint8)
    return {"packed": packed, "start": start, "out": zeros(n * EXPANDED, np.uint8), "n": n, "ROOM": EXPANDED}


def _expanded(packed: bytes) -> bytes:
    out, at = bytearray(), 0

    def more(size: int) -> int:
        nonlocal at
        while size >= 15:
            at += 1
            size += packed[at - 1]
            if packed[at - 1] < 255:
                break
        return size

    while True:
        token = packed[at]
        at += 1
        letters = more(token >> 4)
        out += packed[at : at + letters]
        at += letters
        if at == len(packed):
            return bytes(out)
        distance = int.from_bytes(packed[at : at + 2], "little")
        at += 2
        match = out[-distance:]
        length = more(token & 15) + 4
        out += (match * (length // distance + 1))[:length]


def _restored(args: Args) -> dict[str, Values]:
    packed, start = args["packed"].tobytes(), args["start"].tolist()
    expanded: dict[bytes, bytes] = {}
    out = []
    for a, b in pairwise(start):
        out.append(expanded.get(packed[a:b]) or expanded.setdefault(packed[a:b], _expanded(packed[a:b])))
    return {"out": np.frombuffer(b"".join(out), np.uint8)}


KERNELS = (
    ValidationKernel(adler_chunks, lambda n, b: n, _chunks, _adlers, (16, 128), (1024, 1 << 14), (64, 256, 1024)),
    ValidationKernel(utf8_lines, cover, _lines, _valid, (1500, 128), (1 << 15, 1 << 18), (64, 128, 512)),
    ValidationKernel(varint_lists, cover, _varints, _unpacked, (1500, 128), (1 << 15, 1 << 18), (64, 256)),
    ValidationKernel(lz_expand, warps, _squeezes, _restored, (48, 128), (1024, 8192), (32, 128, 256)),
)  # fmt: skip
