"""Tables of rows: patterns, partitions."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, i32, i64, u8

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros

ANY, ONE = ord("%"), ord("_")


@st.kernel
def like_patterns(text: Global[u8], start: Global[i32], pattern: Constant[u8], out: Global[u8], n: i32) -> None:
    """out = whether a pattern matches each text; in a pattern % matches any letters, _ one letter."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    at, end = start[i], start[i + 1]
    size = len(pattern)
    p, again, mark = 0, -1, at
    fits = True
    while at < end:
        if p < size and pattern[p] == ANY:
            again = p
            mark = at
            p += 1
        elif p < size and (pattern[p] == ONE or pattern[p] == text[at]):
            p += 1
            at += 1
        elif again >= 0:
            p = again + 1
            mark += 1
            at = mark
        else:
            fits = False
            break
    while fits and p < size:
        fits = pattern[p] == ANY
        p += 1
    out[i] = u8(fits)


@st.kernel
def partition_rows(row: Global[i64], cursor: Global[i32], out: Global[i64], n: i32, shift: i32, PARTS: Const) -> None:
    """out = rows partitioned by some bits of their keys; a block counts its own, reserves slots in each partition, and stores them."""
    count = st.shared(i32, PARTS)
    base = st.shared(i32, PARTS)
    each = (n + st.grid_dim.x - 1) // st.grid_dim.x
    begin, end = st.block.x * each, min((st.block.x + 1) * each, n)
    for part in range(st.thread.x, PARTS, st.block_dim.x):
        count[part] = 0
    st.sync()
    for i in range(begin + st.thread.x, end, st.block_dim.x):
        st.atomic_add(count, i32(row[i] >> shift) & (PARTS - 1), 1)
    st.sync()
    for part in range(st.thread.x, PARTS, st.block_dim.x):
        if count[part] > 0:
            base[part] = st.atomic_add(cursor, part, count[part])
            count[part] = 0
    st.sync()
    for i in range(begin + st.thread.x, end, st.block_dim.x):
        own = row[i]
        part = i32(own >> shift) & (PARTS - 1)
        out[base[part] + st.atomic_add(count, part, 1)] = own


# ------------------------------------------------------------------ launches


def _names(n: int, block: int) -> Args:
    rng = draw()
    syllables = ("ab", "ba", "abc", "cab", "b", "aab", "c")
    names = ["".join(syllables[k] for k in rng.integers(0, 7, size)) for size in rng.integers(1, 16, 512)]
    rows = [names[k] for k in rng.integers(0, 512, n)]
    start = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    text, pattern = (np.frombuffer(given.encode(), np.uint8) for given in ("".join(rows), "%ab_c%ba_ab%"))
    return {"text": text, "start": start, "pattern": pattern, "out": zeros(n, np.uint8), "n": n}


def _like_matches(args: Args) -> dict[str, Values]:
    text, start = args["text"].tobytes().decode(), args["start"]
    fits = re.compile(args["pattern"].tobytes().decode().replace("%", ".*").replace("_", ".")).fullmatch
    return {"out": np.array([fits(text, a, b) is not None for a, b in pairwise(start)])}


PARTITIONS = 256


def _rows(n: int, block: int) -> Args:
    row = draw().integers(0, 2**48, n)
    count = np.bincount(row >> 8 & (PARTITIONS - 1), minlength=PARTITIONS)
    cursor = (np.cumsum(count) - count).astype(np.int32)
    return {"row": row, "cursor": cursor, "out": zeros(n, np.int64), "n": n, "shift": 8, "PARTS": PARTITIONS}


def _partitioned(args: Args) -> dict[str, Values]:
    return {
        "cursor": np.cumsum(np.bincount(args["row"] >> 8 & (PARTITIONS - 1), minlength=PARTITIONS)),
        "out": args["row"],
    }


def _waves(n: int, block: int) -> int:
    return min(cover(n, block), 264)


KERNELS = (
    ValidationKernel(like_patterns, cover, _names, _like_matches, (1500, 128), (1 << 15, 1 << 19), (64, 128, 512)),
    ValidationKernel(
        partition_rows, _waves, _rows, _partitioned, (4000, 256), (1 << 17, 1 << 21), (256, 512, 1024), unordered=("out",),
        restored=("cursor",),
    ),
)  # fmt: skip
