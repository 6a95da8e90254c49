"""Tables of rows: groups, filters, places of set bits, joins of sorted columns, patterns, partitions, order statistics."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import simtbed as st
from simtbed import Const, Constant, Global, f32, i16, i32, i64, u8, u32, uchar4

from .kernel import Args, ValidationKernel, Values, cover, draw, floats, ints, words, zeros

VACANT = -1
ANY, ONE = ord("%"), ord("_")


@st.device
def place_of(key: i32, slots: i32) -> i32:
    """Where a search for a key begins in a table of a power of two."""
    mixed = u32(key) * 0x85EBCA6B
    return i32((mixed ^ mixed >> 15) & u32(slots - 1))


@st.kernel
def group_sums(
    key: Global[i32], amount: Global[i16], keys: Global[i32], sums: Global[i64], counts: Global[i32], n: i32, slots: i32,
    ROOM: Const,
) -> None:  # fmt: skip
    """sums, counts = amounts and rows of each key: a table of the block first, then one of all blocks, both by open addresses."""
    own_key = st.shared(i32, ROOM)
    own_sum = st.shared(i32, ROOM)
    own_count = st.shared(i32, ROOM)
    for k in range(st.thread.x, ROOM, st.block_dim.x):
        own_key[k] = VACANT
        own_sum[k] = 0
        own_count[k] = 0
    st.sync()
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        wanted = key[i]
        at = place_of(wanted, ROOM)
        while True:
            found = st.compare_swap(own_key, at, VACANT, wanted)
            if found in (VACANT, wanted):
                break
            at = (at + 1) & (ROOM - 1)
        st.atomic_add(own_sum, at, i32(amount[i]))
        st.atomic_add(own_count, at, 1)
    st.sync()
    for k in range(st.thread.x, ROOM, st.block_dim.x):
        wanted = own_key[k]
        if wanted == VACANT:
            continue
        at = place_of(wanted, slots)
        found = st.compare_swap(keys, at, VACANT, wanted)
        while found != VACANT and found != wanted:
            at = (at + 1) & (slots - 1)
            found = st.compare_swap(keys, at, VACANT, wanted)
        st.atomic_add(sums, at, i64(own_sum[k]))
        st.atomic_add(counts, at, own_count[k])


@st.kernel
def where_bits(
    price: Global[f32], kind: Global[uchar4], day: Global[i32], bits: Global[u32], count: Global[i32], n: i32, limit: f32,
    first: i32, last: i32,
) -> None:  # fmt: skip
    """bits = rows that a condition of several columns holds for, 32 a word; count[0] = how many they are."""
    total = 0
    for base in range(st.block.x * st.block_dim.x, n, st.grid_dim.x * st.block_dim.x):
        i = base + st.thread.x
        holds = False
        if i < n:
            holds = first <= day[i] < last and (price[i] < limit or kind[i].x == 7)
            if not holds and price[i] > 2.0 * limit:
                kinds = kind[i]
                holds = kinds.y in (1, 3, 5) or (kinds.z > kinds.w and kinds.w != 0)
        word = st.ballot(holds)
        if st.lane == 0 and i < n:
            bits[i >> 5] = word
            total += st.popcount(word)
    if total > 0:
        st.atomic_add(count, 0, total)


@st.kernel
def select_rows(bits: Global[u32], start: Global[i32], value: Global[i32], out: Global[i32], n: i32) -> None:
    """out = values of the rows with set bits, in order; a thread a word, with a known number of rows before it."""
    w = st.block.x * st.block_dim.x + st.thread.x
    if w >= n:
        return
    word, to = bits[w], start[w]
    while word != 0:
        out[to] = value[32 * w + st.ffs(word) - 1]
        to += 1
        word &= word - 1


@st.kernel
def gallop_counts(left: Global[i32], right: Global[i32], out: Global[i32], n: i32, m: i32, EACH: Const) -> None:
    """out = how many rows of a sorted column have each key of another: EACH keys a thread, in steps that double."""
    begin = (st.block.x * st.block_dim.x + st.thread.x) * EACH
    at = 0
    for i in range(begin, min(begin + EACH, n)):
        key = left[i]
        step = 1
        while at + step < m and right[at + step] < key:
            at += step
            step *= 2
        low, high = at, min(at + step, m)
        while low < high:
            middle = low + (high - low) // 2
            if right[middle] < key:
                low = middle + 1
            else:
                high = middle
        at = low
        same = 0
        while at + same < m and right[at + same] == key:
            same += 1
        out[i] = same


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


@st.kernel
def kth_of_rows(x: Global[u32], out: Global[u32], wide: i32, k: i32, EACH: Const) -> None:
    """out = the k-th smallest number of each row, bit by bit from the highest; a block a row, EACH numbers a thread."""
    own = st.registers(u32, EACH)
    for j in st.unroll(range(EACH)):
        column = j * st.block_dim.x + st.thread.x
        own[j] = x[st.block.x * wide + column] if column < wide else u32(0xFFFFFFFF)
    answer, rest = u32(0), k
    for bit in range(31, -1, -1):
        below = 0
        for j in st.unroll(range(EACH)):
            below += st.sync_count(own[j] >> bit == answer >> bit)
        if rest >= below:
            rest -= below
            answer |= u32(1) << bit
    if st.thread.x == 0:
        out[st.block.x] = answer


# ------------------------------------------------------------------ launches
GROUPS = 300


def _groups(n: int, block: int) -> Args:
    """A few groups have most rows."""
    key = (draw().beta(0.6, 3, n) * GROUPS).astype(np.int32) * 7919
    return {
        "key": key, "amount": ints(n, 1000, np.int16) + 1, "keys": np.full(1024, VACANT, np.int32), "sums": zeros(1024, np.int64),
        "counts": zeros(1024, np.int32), "n": n, "slots": 1024, "ROOM": 512,
    }  # fmt: skip


def _grouped(args: Args) -> dict[str, Values]:
    keys, group, counts = np.unique(args["key"], return_inverse=True, return_counts=True)
    return {"keys": keys, "sums": np.bincount(group, args["amount"]).astype(int), "counts": counts}


def _orders(n: int, block: int) -> Args:
    kind = ints(4 * n, 10, np.uint8).reshape(n, 4)
    return {
        "price": floats(n), "kind": kind, "day": ints(n, 365), "bits": zeros(n // 32, np.uint32), "count": zeros(1, np.int32),
        "n": n, "limit": 0.3, "first": 100, "last": 250,
    }  # fmt: skip


def _qualified(args: Args) -> dict[str, Values]:
    price, day, limit = args["price"], args["day"], np.float32(args["limit"])
    x, y, z, w = args["kind"].T
    holds = (args["first"] <= day) & (day < args["last"]) & ((price < limit) | (x == 7))
    holds |= (price > 2 * limit) & (np.isin(y, (1, 3, 5)) | (z > w) & (w != 0))
    return {"bits": np.packbits(holds, bitorder="little").view(np.uint32), "count": np.array([holds.sum()])}


def _selection(n: int, block: int) -> Args:
    bits = words(n) & np.where(draw().random(n) < 0.3, 0xFFFFFFFF, 0x11100001).astype(np.uint32)
    start = np.concatenate([[0], np.cumsum(np.bitwise_count(bits), dtype=int)]).astype(np.int32)
    return {"bits": bits, "start": start, "value": ints(32 * n, 1 << 20), "out": zeros(start[-1], np.int32), "n": n}


def _selected(args: Args) -> dict[str, Values]:
    selected = np.unpackbits(args["bits"].view(np.uint8), bitorder="little") != 0
    return {"out": args["value"][selected]}


def _columns(n: int, block: int) -> Args:
    rng = draw()
    left = np.sort(rng.integers(0, 2 * n, n, dtype=np.int32))
    right = np.sort(rng.integers(0, 2 * n, 4 * n, dtype=np.int32))
    return {"left": left, "right": right, "out": zeros(n, np.int32), "n": n, "m": 4 * n, "EACH": 8}


def _equal(args: Args) -> dict[str, Values]:
    left, right = args["left"], args["right"]
    first, last = np.searchsorted(right, left), np.searchsorted(right, left, "right")
    return {"out": np.asarray(last - first)}


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


WIDE = 1000


def _statistics(n: int, block: int) -> Args:
    return {"x": words(n * WIDE), "out": zeros(n, np.uint32), "wide": WIDE, "k": 321, "EACH": cover(WIDE, block)}


def _waves(n: int, block: int) -> int:
    return min(cover(n, block), 264)


KERNELS = (
    ValidationKernel(
        group_sums, _waves, _groups, _grouped, (8000, 128), (1 << 17, 1 << 21), (128, 256, 512), unordered=("keys", "sums", "counts"),
        restored=("keys", "sums", "counts"),
    ),
    ValidationKernel(
        where_bits, _waves, _orders, _qualified, (6400, 128), (1 << 17, 1 << 21), (64, 256, 1024), restored=("count",),
    ),
    ValidationKernel(select_rows, cover, _selection, _selected, (1500, 64), (1 << 14, 1 << 18), (64, 256)),
    ValidationKernel(gallop_counts, lambda n, b: cover(n, 8 * b), _columns, _equal, (8000, 64), (1 << 16, 1 << 20), (64, 128)),
    ValidationKernel(like_patterns, cover, _names, _like_matches, (1500, 128), (1 << 15, 1 << 19), (64, 128, 512)),
    ValidationKernel(
        partition_rows, _waves, _rows, _partitioned, (4000, 256), (1 << 17, 1 << 21), (256, 512, 1024), unordered=("out",),
        restored=("cursor",),
    ),
    ValidationKernel(
        kth_of_rows, lambda n, b: n, _statistics,
        lambda args: {"out": np.sort(args["x"].reshape(-1, WIDE), axis=1)[:, args["k"]]}, (10, 128), (512, 8192), (128, 256, 512),
    ),
)  # fmt: skip
