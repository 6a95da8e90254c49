"""Colours of graphs, extended seeds of alignments, joins of tables, quick selection."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, Shared, f32, i16, i32, u8, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, warps, zeros


@st.kernel
def colour_round(
    start: Global[i32], target: Global[i32], rank: Global[u32], colour: Global[i16], out: Global[i16], left: Global[i32],
    n: i32,
) -> None:  # fmt: skip
    """out = the first free colour of a vertex that ranks above all uncoloured neighbours, -1 of one that waits; a warp a vertex."""
    v = st.block.x * (st.block_dim.x // 32) + st.warp
    if v >= n:
        return
    own = colour[v]
    if own >= 0:
        if st.lane == 0:
            out[v] = own
        return
    mine = rank[v]
    taken = u64(0)
    waits = False
    end = start[v + 1]
    for first in range(start[v], end, 32):
        edge = first + st.lane
        beaten = False
        if edge < end:
            w = target[edge]
            other = i32(colour[w])
            if other >= 0:
                taken |= u64(1) << other
            else:
                above = rank[w]
                beaten = above > mine or (above == mine and w > v)
        if st.any(beaten):
            waits = True
            break
    for step in (16, 8, 4, 2, 1):
        taken |= st.shuffle_xor(taken, step)
    if st.lane == 0:
        found = -1 if waits else st.ffs(~taken) - 1
        out[v] = i16(found)
        if found < 0:
            st.atomic_add(left, 0, 1)


def _half_coloured(n: int, block: int) -> Args:
    """Few vertices have very many neighbours; those of high rank are coloured."""
    random = draw()
    source_end = (n * random.random(6 * n) ** 2.2).astype(np.int64)
    other = random.integers(0, n, 6 * n)
    both = np.unique(np.concatenate([source_end * n + other, other * n + source_end])[np.tile(source_end != other, 2)])
    source, target = np.divmod(both, n)
    rank = random.integers(0, 1 << 20, n, dtype=np.uint32)
    colour = np.where(rank > 1 << 19, np.minimum(random.geometric(0.2, n) - 1, 40), -1)
    return {
        "start": np.searchsorted(source, np.arange(n + 1)).astype(np.int32), "target": target.astype(np.int32), "rank": rank,
        "colour": colour.astype(np.int16), "out": zeros(n, np.int16), "left": zeros(1, np.int32), "n": n,
    }  # fmt: skip


def _coloured(args: Args) -> dict[str, Values]:
    n, colour, target = args["n"], args["colour"].astype(int), args["target"]
    source = np.repeat(np.arange(n), np.diff(args["start"]))
    order = args["rank"].astype(np.int64) * n + np.arange(n)
    beaten = np.bincount(source[(colour[target] < 0) & (order[target] > order[source])], minlength=n) > 0
    used = np.zeros((n, 65), bool)
    coloured = colour[target] >= 0
    used[source[coloured], colour[target[coloured]]] = True
    out = np.where(colour >= 0, colour, np.where(beaten, -1, used.argmin(axis=1)))
    return {"out": out, "left": np.array([(out < 0).sum()])}


@st.kernel
def extend_seeds(
    query: Global[u8], query_start: Global[i32], target: Global[u8], target_start: Global[i32], seed: Global[i16],
    score: Global[i16], query_end: Global[i16], target_end: Global[i16], n: i32, match: i32, mismatch: i32, open: i32,
    extend: i32, drop: i32, BAND: Const, LONGEST: Const,
) -> None:  # fmt: skip
    """score = of the best extension of a seed to the right in a band, with gaps, and where it ends; it stops once it has dropped."""
    k = st.block.x * st.block_dim.x + st.thread.x
    if k >= n:
        return
    before = st.local(i16, LONGEST + 1)
    gap = st.local(i16, LONGEST + 1)
    q, t = query_start[k], target_start[k]
    columns, rows = query_start[k + 1] - q, target_start[k + 1] - t
    begin = i32(seed[k])
    for j in range(min(BAND, columns) + 1):
        before[j] = i16(begin if j == 0 else max(begin - open - extend * j, 0))
        gap[j] = 0
    best, best_row, best_column = begin, 0, 0
    for i in range(rows):
        low, high = max(i - BAND, 0), min(i + BAND + 1, columns)
        left = max(begin - open - extend * (i + 1), 0) if low == 0 else 0
        letter = target[t + i]
        across, most, place = 0, 0, 0
        for j in range(low, high):
            cell, down = i32(before[j]), i32(gap[j])
            before[j] = i16(left)
            if cell > 0:
                cell = max(cell + (match if query[q + j] == letter else -mismatch), 0)
            left = max(cell, max(down, across))
            if left > most:
                most, place = left, j
            opened = max(cell - open - extend, 0)
            gap[j] = i16(max(down - extend, opened))
            across = max(across - extend, opened)
        if high <= low:
            break
        before[high], gap[high] = i16(left), i16(0)
        if most > best:
            best, best_row, best_column = most, i + 1, place + 1
        elif most == 0 or best - most > drop:
            break
    score[k] = i16(best)
    query_end[k] = i16(best_column)
    target_end[k] = i16(best_row)


BAND, LONGEST, MATCH, MISMATCH, OPEN, EXTEND, DROP = 10, 100, 1, 4, 6, 1, 30


def _seeds(n: int, block: int) -> Args:
    """A target has substitutions and a gap; some have other letters at the end."""
    random = draw()
    size = random.integers(30, LONGEST + 1, n)
    text, substitutes = random.integers(0, 4, (2, n, LONGEST), dtype=np.uint8)
    at = np.arange(LONGEST)
    shift = random.integers(-4, 5, (n, 1)) * (random.random((n, 1)) < 0.4)
    moved = np.clip(at + shift * (at > random.integers(5, 60, (n, 1))), 0, LONGEST - 1)
    strange = random.random((n, LONGEST)) < np.where(at > random.integers(10, 3 * LONGEST, (n, 1)), 1, 0.03)
    other = np.where(strange, substitutes, np.take_along_axis(text, moved, axis=1))
    target_size = np.clip(size + random.integers(-12, 13, n), 10, LONGEST)
    starts = [np.concatenate([[0], np.cumsum(s)]).astype(np.int32) for s in (size, target_size)]
    return {
        "query": text[at < size[:, None]], "query_start": starts[0], "target": other[at < target_size[:, None]],
        "target_start": starts[1], "seed": random.integers(15, 40, n).astype(np.int16), "score": zeros(n, np.int16),
        "query_end": zeros(n, np.int16), "target_end": zeros(n, np.int16), "n": n, "match": MATCH, "mismatch": MISMATCH,
        "open": OPEN, "extend": EXTEND, "drop": DROP, "BAND": BAND, "LONGEST": LONGEST,
    }  # fmt: skip


def _rectangle(letters: Values, start: Values, fill: int) -> Values:
    """Strings as rows of one length, BAND letters before them and 2 * BAND behind."""
    out = np.full((len(start) - 1, LONGEST + 3 * BAND), fill, np.uint8)
    at = np.arange(LONGEST + 3 * BAND) - BAND
    out[(at >= 0) & (at < np.diff(start)[:, None])] = letters[start[0] : start[-1]]
    return out


def _extended_some(args: Args, some: slice) -> tuple[Values, Values, Values]:
    """Row by row over many pairs; column c of a row i of the band is letter i + c - BAND, and gaps across are running maxima."""
    query_start, target_start = (args[f"{x}_start"][some.start : some.stop + 1] for x in ("query", "target"))
    query, target = _rectangle(args["query"], query_start, 9), _rectangle(args["target"], target_start, 8)
    columns, rows = np.diff(query_start)[:, None], np.diff(target_start)
    begin = args["seed"][some].astype(np.int16)
    wide = np.arange(2 * BAND + 1, dtype=np.int16)
    first = wide - BAND  # row -1: the column of a cell, counted from 1
    cells = np.where(first > 0, np.maximum(begin[:, None] - OPEN - EXTEND * first, 0), (first == 0) * begin[:, None])
    down = np.zeros_like(cells)
    best, row, column, alive = begin.copy(), np.zeros_like(begin), np.zeros_like(begin), np.ones(begin.size, bool)
    for i in range(LONGEST):
        at = i + wide - BAND
        inside = (at >= 0) & (at < columns)
        mixed = np.where(query[:, i : i + 2 * BAND + 1] == target[:, i + BAND, None], MATCH, -MISMATCH)
        cell = np.where(inside & (cells > 0), np.maximum(cells + mixed, 0), 0)
        opened = np.maximum(cell - OPEN - EXTEND, 0) * inside
        across = np.zeros_like(cell)
        across[:, 1:] = np.maximum.accumulate(opened + EXTEND * wide, axis=1)[:, :-1] - EXTEND * (wide[1:] - 1)
        whole = np.maximum(np.maximum(cell, down), across) * inside
        most, place = whole.max(axis=1), at[whole.argmax(axis=1)]
        alive &= (i < rows) & inside.any(axis=1)
        better = alive & (most > best)
        alive &= better | ((most > 0) & (best - most <= DROP))
        best, row, column = (np.where(better, *x) for x in ((most, best), (i + 1, row), (place + 1, column)))
        if not alive.any():
            break
        gaps = np.maximum(down - EXTEND, opened) * inside
        down = np.concatenate([gaps[:, 1:], 0 * gaps[:, :1]], axis=1)
        cells = np.where(at == -1, np.maximum(begin - OPEN - EXTEND * (i + 1), 0)[:, None], whole)
    return best, column, row


def _extended(args: Args) -> dict[str, Values]:
    slices = (slice(k, min(k + 4096, args["n"])) for k in range(0, args["n"], 4096))
    columns = zip(*(_extended_some(args, some) for some in slices), strict=True)
    return dict(zip(("score", "query_end", "target_end"), map(np.concatenate, columns), strict=True))


@st.kernel
def join_chains(
    head: Global[i32], following: Global[i32], key: Global[u32], asked: Global[u32], out: Global[u64], count: Global[i32],
    n: i32, LOG: Const,
) -> None:  # fmt: skip
    """out = pairs of rows of two tables with equal keys, in any order: chains are walked to count, then to write."""
    k = st.block.x * st.block_dim.x + st.thread.x
    own, begin, found = u32(0), -1, 0
    if k < n:
        own = asked[k]
        begin = head[i32(own * 2654435769 >> (32 - LOG))]
    row = begin
    while row >= 0:
        found += 1 if key[row] == own else 0
        row = following[row]
    end = found
    for step in (1, 2, 4, 8, 16):
        other = st.shuffle_up(end, step)
        end += other if st.lane >= step else 0
    base = 0
    if st.lane == 31 and end > 0:
        base = st.atomic_add(count, 0, end)
    at = st.shuffle(base, 31) + end - found
    row = begin
    while found > 0:
        if key[row] == own:
            out[at] = u64(k) << 32 | u64(row)
            at += 1
            found -= 1
        row = following[row]


def _tables(n: int, block: int) -> Args:
    """A quarter as many build rows as probe rows; a few keys are in many of them."""
    random = draw()
    rows, log = n // 4, max(int(n // 4).bit_length(), 4)
    key = (rows * random.random(rows) ** 1.5).astype(np.uint32) * np.uint32(7919)
    probes = random.integers(0, 2 * rows, n, dtype=np.uint32) * np.uint32(7919)
    slot = (key * np.uint32(2654435769) >> np.uint32(32 - log)).astype(np.int64)
    order = np.argsort(slot, kind="stable")
    same = np.concatenate([[False], slot[order[1:]] == slot[order[:-1]]])
    following, head = np.full(rows, -1, np.int32), np.full(1 << log, -1, np.int32)
    following[order] = np.where(same, np.roll(order, 1), -1)
    head[slot[order]] = order
    return {
        "head": head, "following": following, "key": key, "asked": probes, "out": zeros(n, np.uint64),
        "count": zeros(1, np.int32), "n": n, "LOG": log,
    }  # fmt: skip


def _joined(args: Args) -> dict[str, Values]:
    order = np.argsort(args["key"], kind="stable")
    key = args["key"][order]
    low, high = (np.searchsorted(key, args["asked"], side) for side in ("left", "right"))
    times = high - low
    probe = np.repeat(np.arange(args["n"]), times)
    row = order[np.arange(times.sum()) - np.repeat(np.cumsum(times) - times - low, times)]
    return {"out": (probe << 32 | row).astype(np.uint64), "count": np.array([times.sum()])}


@st.device
def sum_of_block(value: i32, sums: Shared[i32], count: i32) -> i32:
    """The sum over all warps, in every thread."""
    for step in (16, 8, 4, 2, 1):
        value += st.shuffle_xor(value, step)
    if st.lane == 0:
        sums[st.warp] = value
    st.sync()
    total = 0
    for w in range(count):
        total += sums[w]
    st.sync()
    return total


@st.kernel
def quickselect_rows(x: Global[f32], out: Global[f32], rank: i32, LENGTH: Const, BLOCK: Const) -> None:
    """out = the number of some rank of each row, a block a row: the elements on its side of a pivot remain, until few are left."""
    held = st.shared(f32, LENGTH)
    spare = st.shared(f32, LENGTH)
    sums = st.shared(i32, BLOCK // 32)
    t = st.thread.x
    for i in range(t, LENGTH, BLOCK):
        held[i] = x[st.block.x * LENGTH + i]
    st.sync()
    n, k = LENGTH, rank
    while n > 32:
        a, b, c = held[0], held[n // 2], held[n - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        counts = 0
        for i in range(t, n, BLOCK):
            if held[i] < pivot:
                counts += 1
            elif held[i] == pivot:
                counts += 1 << 16
        counts = sum_of_block(counts, sums, BLOCK // 32)
        below, upto = counts & 0xFFFF, (counts & 0xFFFF) + (counts >> 16)
        if below <= k < upto:
            if t == 0:
                out[st.block.x] = pivot
            return
        kept = 0
        for first in range(0, n, BLOCK):
            value = held[first + t] if first + t < n else pivot
            keep = value < pivot if k < below else value > pivot
            mask = st.ballot(keep)
            if st.lane == 0:
                sums[st.warp] = st.popcount(mask)
            st.sync()
            at = kept + st.popcount(mask & st.lanemask_lt())
            for w in range(BLOCK // 32):
                if w < st.warp:
                    at += sums[w]
                kept += sums[w]
            if keep:
                spare[at] = value
            st.sync()
        held, spare = spare, held
        k -= upto if k >= upto else 0
        n = kept
    if t < n:
        own, place = held[t], 0
        for i in range(n):
            if held[i] < own or (held[i] == own and i < t):
                place += 1
        if place == k:
            out[st.block.x] = own


NUMBERS = 2000


def _unsorted(n: int, block: int) -> Args:
    """Some rows have few different numbers, some are nearly in order."""
    random = draw()
    x = random.standard_normal((n, NUMBERS), np.float32)
    x[::5] = np.floor(x[::5] * 8) / 8
    x[3::7] = np.sort(x[3::7], axis=1) + 0.02 * random.standard_normal((len(x[3::7]), NUMBERS), np.float32)
    return {"x": x.ravel(), "out": zeros(n), "rank": 3 * NUMBERS // 4, "LENGTH": NUMBERS, "BLOCK": block}


def _selected(args: Args) -> dict[str, Values]:
    return {"out": np.partition(args["x"].reshape(-1, NUMBERS), args["rank"], axis=1)[:, args["rank"]]}


KERNELS = (
    ValidationKernel(colour_round, warps, _half_coloured, _coloured, (120, 128), (1 << 15, 1 << 18), (64, 128, 256), restored=("left",)),
    ValidationKernel(extend_seeds, cover, _seeds, _extended, (1000, 64), (10_000, 100_000), (32, 64, 128)),
    ValidationKernel(
        join_chains, cover, _tables, _joined, (4000, 128), (1 << 19, 1 << 22), (128, 256, 512), unordered=("out",),
        restored=("count",),
    ),
    ValidationKernel(quickselect_rows, lambda n, b: n, _unsorted, _selected, (12, 128), (512, 8192), (128, 256, 512)),
)  # fmt: skip
