"""Walks over graphs, sparse rows, strings and trees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, int4, u8

from .kernel import Args, ValidationKernel, Values, cover, draw, warps, zeros


@st.kernel
def shortest_paths_step(
    start: Global[i32],
    target: Global[i32],
    weight: Global[i32],
    cost: Global[i32],
    mask: Global[i32],
    updated: Global[i32],
    n: i32,
) -> None:
    """updated = lowest costs once the edges of all masked vertices are relaxed, a warp a vertex; the mask is cleared."""
    vertex = (st.block.x * st.block_dim.x + st.thread.x) // 32
    if vertex >= n:
        return
    if mask[vertex] == 0:
        return
    own = cost[vertex]
    for edge in range(start[vertex] + st.lane, start[vertex + 1], 32):
        st.atomic_min(updated, target[edge], own + weight[edge])
    st.syncwarp()
    if st.lane == 0:
        mask[vertex] = 0


@st.kernel
def sparse_times_dense(
    start: Global[i32],
    column: Global[i32],
    value: Global[f32],
    dense: Global[f32],
    out: Global[f32],
    rows: i32,
    width: i32,
) -> None:
    """out = a sparse matrix in rows times a dense one; a warp a row of 64 columns, its entries broadcast by shuffles."""
    row = st.block.x * st.block_dim.y + st.thread.y
    if row >= rows:
        return
    left = st.block.y * 64 + st.thread.x
    end = start[row + 1]
    a, b = 0.0, 0.0
    for first in range(start[row], end, 32):
        c, v = 0, 0.0
        if first + st.thread.x < end:
            c = column[first + st.thread.x] * width
            v = value[first + st.thread.x]
        for k in range(min(32, end - first)):
            offset = st.shuffle(c, k) + left
            factor = st.shuffle(v, k)
            a += factor * dense[offset]
            b += factor * dense[offset + 32]
    out[row * width + left] = a
    out[row * width + left + 32] = b


@st.kernel
def common_subsequences(
    a: Global[u8], b: Global[u8], long_a: Global[i32], long_b: Global[i32], out: Global[i32], MOST: Const
) -> None:
    """out = lengths of the longest common subsequences, a block a pair of strings, by anti-diagonals in shared memory."""
    text_a = st.shared(u8, MOST)
    text_b = st.shared(u8, MOST)
    best = st.shared(i32, 3, MOST + 1)
    pair = st.block.x
    m, n = long_a[pair], long_b[pair]
    for k in range(st.thread.x, m, st.block_dim.x):
        text_a[k] = a[pair * MOST + k]
    for k in range(st.thread.x, n, st.block_dim.x):
        text_b[k] = b[pair * MOST + k]
    for k in range(st.thread.x, MOST + 1, st.block_dim.x):
        best[0, k] = 0
        best[1, k] = 0
        best[2, k] = 0
    st.sync()
    for diagonal in range(2, m + n + 1):
        now, last, older = diagonal % 3, (diagonal + 2) % 3, (diagonal + 1) % 3
        low, high = max(1, diagonal - n), min(m, diagonal - 1)
        for i in range(low + st.thread.x, high + 1, st.block_dim.x):
            j = diagonal - i
            if text_a[i - 1] == text_b[j - 1]:
                best[now, i] = best[older, i - 1] + 1
            else:
                above = best[last, i - 1]
                left = best[last, i] if j > 1 else 0
                best[now, i] = max(above, left)
        st.sync()
    if st.thread.x == 0:
        out[pair] = best[(m + n) % 3, m]


@st.kernel
def horspool_search(
    text: Global[u8],
    pattern: Global[u8],
    skip: Global[i32],
    count: Global[i32],
    total: Global[i32],
    n: i32,
    m: i32,
    EACH: Const,
) -> None:
    """count = occurrences that begin in each stretch of EACH letters, by Horspool's skips; total is their sum."""
    word = st.shared(u8, 32)
    jump = st.shared(i32, 256)
    if st.thread.x < m:
        word[st.thread.x] = pattern[st.thread.x]
    for k in range(st.thread.x, 256, st.block_dim.x):
        jump[k] = skip[k]
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    place = i * EACH
    if place >= n:
        return
    stop = min(place + EACH, n - m + 1)
    found = 0
    while place < stop:
        letter = text[place + m - 1]
        if letter == word[m - 1]:
            k = m - 2
            while k >= 0 and text[place + k] == word[k]:
                k -= 1
            if k < 0:
                found += 1
        place += jump[i32(letter)]
    count[i] = found
    if found > 0:
        st.atomic_add(total, 0, found)


@st.kernel
def ternary_look_up(
    tree: Global[int4], number: Global[i32], text: Global[u8], start: Global[i32], out: Global[i32], n: i32
) -> None:
    """out = numbers of words in a ternary search tree, -1 of those not there; a node is a letter and three children."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    at, end = start[i], start[i + 1]
    node, found = 0, -1
    while node >= 0 and at < end:
        letter = i32(text[at])
        here = tree[node]
        if letter < here.x:
            node = here.y
        elif letter > here.x:
            node = here.w
        else:
            at += 1
            if at == end:
                found = number[node]
                break
            node = here.z
    out[i] = found


# ------------------------------------------------------------------ launches
FAR = 1 << 30


def _roads(n: int, block: int) -> Args:
    random = draw()
    degree = np.minimum(random.zipf(1.7, n) + 3, 400)
    start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    cost = np.where(random.random(n) < 0.6, random.integers(0, 1000, n), FAR).astype(np.int32)
    mask = ((cost < FAR) & (random.random(n) < 0.5)).astype(np.int32)
    return {
        "start": start, "target": random.integers(0, n, start[-1]).astype(np.int32),
        "weight": random.integers(1, 100, start[-1]).astype(np.int32), "cost": cost, "mask": mask, "updated": cost.copy(), "n": n,
    }  # fmt: skip


def _relaxed(args: Args) -> dict[str, Values]:
    own = np.repeat(np.arange(args["n"]), np.diff(args["start"]))
    active = args["mask"][own] != 0
    updated = args["updated"].copy()
    np.minimum.at(updated, args["target"][active], (args["cost"][own] + args["weight"])[active])
    return {"updated": updated, "mask": np.zeros_like(args["mask"])}


WIDTH = 128


def _sparse(n: int, block: tuple[int, int]) -> Args:
    random = draw()
    degree = random.poisson(12, n) + np.where(random.random(n) < 0.05, 60, 0)
    start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    return {
        "start": start, "column": random.integers(0, n, start[-1]).astype(np.int32),
        "value": random.random(start[-1], dtype=np.float32), "dense": random.random((n * WIDTH,), dtype=np.float32),
        "out": zeros(n * WIDTH), "rows": n, "width": WIDTH,
    }  # fmt: skip


def _multiplied(args: Args) -> dict[str, Values]:
    dense, n = args["dense"].reshape(-1, WIDTH), args["rows"]
    own = np.repeat(np.arange(n), np.diff(args["start"]))
    out = np.zeros((n, WIDTH))
    for k in range(WIDTH):
        out[:, k] = np.bincount(own, args["value"] * dense[args["column"], k], n)
    return {"out": out}


LONGEST = 256


def _strings(n: int, block: int) -> Args:
    random = draw()
    return {
        "a": random.choice(np.frombuffer(b"ACGT", np.uint8), (n * LONGEST,)),
        "b": random.choice(np.frombuffer(b"ACGT", np.uint8), (n * LONGEST,)),
        "long_a": random.integers(100, LONGEST + 1, n).astype(np.int32),
        "long_b": random.integers(60, LONGEST + 1, n).astype(np.int32), "out": zeros(n, np.int32), "MOST": LONGEST,
    }  # fmt: skip


def _common(args: Args) -> dict[str, Values]:
    a, b = (args[name].reshape(-1, LONGEST) for name in ("a", "b"))
    m, n = args["long_a"], args["long_b"]
    index, best, out = np.arange(len(a)), np.zeros((len(a), LONGEST + 1), np.int32), np.zeros(len(a), np.int32)
    for i in range(LONGEST):
        matched = np.where(a[:, i : i + 1] == b, best[:, :-1] + 1, best[:, 1:])
        best = np.concatenate([best[:, :1], np.maximum.accumulate(matched, axis=1)], axis=1)
        ends = m == i + 1
        out[ends] = best[index, n][ends]
    return {"out": out}


PATTERN = b"parallel"
LETTERS = 128
"""Places that a thread searches."""


def _book(n: int, block: int) -> Args:
    random = draw()
    words = [bytes(random.integers(97, 123, random.integers(2, 10), dtype=np.uint8)) for _ in range(500)]
    words += [b"parallel", b"unparalleled", b"barrel", b"personal", b"label"]
    page = b" ".join(words[k] for k in random.integers(0, len(words), 1 << 15))
    last = len(PATTERN) - 1
    skip = np.full(256, len(PATTERN), np.int32)
    for k, letter in enumerate(PATTERN[:-1]):
        skip[letter] = last - k
    return {
        "text": np.resize(np.frombuffer(page, np.uint8), n), "pattern": np.frombuffer(PATTERN, np.uint8), "skip": skip,
        "count": zeros(cover(n, LETTERS), np.int32), "total": zeros(1, np.int32), "n": n, "m": len(PATTERN), "EACH": LETTERS,
    }  # fmt: skip


def _occurrences(args: Args) -> dict[str, Values]:
    text, many = args["text"], args["n"] - len(PATTERN) + 1
    begins = np.ones(many, bool)
    for k, letter in enumerate(PATTERN):
        begins &= text[k : k + many] == letter
    count = np.add.reduceat(begins.astype(np.int32), np.arange(0, args["n"], LETTERS))
    return {"count": count, "total": np.array([begins.sum()])}


def _vocabulary() -> list[bytes]:
    random = draw()
    syllables = [bytes(random.integers(97, 123, k % 3 + 1, dtype=np.uint8)) for k in range(60)]
    words = {b"".join(syllables[k] for k in random.integers(0, 60, random.integers(1, 6))) for _ in range(6000)}
    ordered = sorted(words)
    return [ordered[k] for k in random.permutation(len(ordered))]


def _tree(words: list[bytes]) -> tuple[Values, Values]:
    """The nodes of the tree of words, and the numbers of the words that end there."""
    nodes: list[list[int]] = []
    number: list[int] = []
    for which, word in enumerate(words):
        place, node, parent, side = 0, 0 if nodes else -1, -1, 0
        while True:
            if node < 0:
                node = len(nodes)
                nodes.append([word[place], -1, -1, -1])
                number.append(-1)
                if parent >= 0:
                    nodes[parent][side] = node
            letter = nodes[node][0]
            if word[place] == letter:
                place += 1
                if place == len(word):
                    number[node] = which
                    break
                side = 2
            else:
                side = 1 if word[place] < letter else 3
            parent, node = node, nodes[node][side]
    return np.array(nodes, np.int32), np.array(number, np.int32)


def _queries(n: int, block: int) -> Args:
    random, words = draw(), _vocabulary()
    tree, number = _tree(words)
    pool = words + [word[::-1] for word in words[:1000]] + [word + b"s" for word in words[:1000]]
    queries = [pool[k] for k in random.integers(0, len(pool), n)]
    start = np.concatenate([[0], np.cumsum([len(word) for word in queries])]).astype(np.int32)
    text = np.frombuffer(b"".join(queries), np.uint8)
    return {"tree": tree, "number": number, "text": text, "start": start, "out": zeros(n, np.int32), "n": n}


def _numbers(args: Args) -> dict[str, Values]:
    number_of = {word: k for k, word in enumerate(_vocabulary())}
    text, start = args["text"].tobytes(), args["start"].tolist()
    return {"out": np.array([number_of.get(text[a:b], -1) for a, b in pairwise(start)])}


KERNELS = (
    ValidationKernel(
        shortest_paths_step, warps, _roads, _relaxed, (2000, 128), (1 << 14, 1 << 18), (64, 128, 512), restored=("mask", "updated"),
    ),
    ValidationKernel(
        sparse_times_dense, lambda n, b: (cover(n, b[1]), WIDTH // 64), _sparse, _multiplied, (1000, (32, 8)), (1 << 13, 1 << 16),
        ((32, 4), (32, 8), (32, 16)),
    ),
    ValidationKernel(common_subsequences, lambda n, b: n, _strings, _common, (64, 128), (264, 2112), (64, 128, 256)),
    ValidationKernel(
        horspool_search, lambda n, b: cover(cover(n, LETTERS), b), _book, _occurrences, (1000000, 128), (1 << 20, 1 << 25),
        (64, 128, 256), restored=("total",),
    ),
    ValidationKernel(ternary_look_up, cover, _queries, _numbers, (20000, 128), (1 << 16, 1 << 19), (64, 256, 1024)),
)  # fmt: skip
