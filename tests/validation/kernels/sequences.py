"""Sequences, automata, independent sets, a filter of a database."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, Shared, i32, u8, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros


@st.device
def copy_letters(text: Global[u8], first: i32, n: i32, out: Shared[u8], count: i32, t: i32, threads: i32) -> None:
    """Some letters of a text to shared memory; 0 behind its end."""
    for k in range(t, count, threads):
        out[k] = text[first + k] if first + k < n else u8(0)


@st.kernel
def dot_plot(
    a: Global[u8], b: Global[u8], out: Global[u8], n: i32, least: i32, WINDOW: Const, WIDE: Const, HIGH: Const
) -> None:
    """out = 1 where two windows, one of each sequence, have at least the given number of equal letters."""
    across = st.shared(u8, WIDE + WINDOW - 1)
    down = st.shared(u8, HIGH + WINDOW - 1)
    x, y = st.thread.x, st.thread.y
    t = y * WIDE + x
    copy_letters(a, st.block.y * HIGH, n, down, HIGH + WINDOW - 1, t, WIDE * HIGH)
    copy_letters(b, st.block.x * WIDE, n, across, WIDE + WINDOW - 1, t, WIDE * HIGH)
    st.sync()
    side = n - WINDOW + 1
    i = st.block.y * HIGH + y
    j = st.block.x * WIDE + x
    if i < side and j < side:
        same = 0
        for k in range(WINDOW):
            if down[y + k] == across[x + k]:
                same += 1
        out[i * side + j] = u8(1) if same >= least else u8(0)


WINDOW, LEAST = 11, 7


LETTERS = np.frombuffer(b"ACGT", np.uint8)


def _sequences(n: int, block: tuple[int, int]) -> Args:
    random = draw()
    a = LETTERS[random.integers(0, 4, n)]
    b = np.where(random.random(n) < 0.3, LETTERS[random.integers(0, 4, n)], np.roll(a, n // 5))
    return {
        "a": a, "b": b, "out": zeros((n - WINDOW + 1) ** 2, np.uint8), "n": n, "least": LEAST, "WINDOW": WINDOW,
        "WIDE": block[0], "HIGH": block[1],
    }  # fmt: skip


def _plotted(args: Args) -> dict[str, Values]:
    side = args["n"] - WINDOW + 1
    same = np.zeros((side, side), np.uint8)
    for k in range(WINDOW):
        same += args["a"][k : k + side, None] == args["b"][k : k + side]
    return {"out": (same >= LEAST).astype(np.uint8)}


@st.device
def scrambled(key: u64, mask: u64) -> u64:
    """An invertible hash of some bits, by Wang."""
    key = (~key + (key << 21)) & mask
    key ^= key >> 24
    key = (key + (key << 3) + (key << 8)) & mask
    key ^= key >> 14
    key = (key + (key << 2) + (key << 4)) & mask
    key ^= key >> 28
    return (key + (key << 31)) & mask


@st.kernel
def minimizers(
    sequence: Global[u8], place: Global[i32], marks: Global[u32], n: i32, K: Const, WINDOW: Const, BLOCK: Const
) -> None:
    """place = where the least hash of K letters or of their complement begins in each window, marks = a bit for each such place."""
    codes = st.shared(u8, BLOCK + WINDOW + K - 2)
    hashes = st.shared(u64, BLOCK + WINDOW - 1)
    t = st.thread.x
    first = st.block.x * BLOCK
    for k in range(t, BLOCK + WINDOW + K - 2, BLOCK):
        codes[k] = (sequence[min(first + k, n - 1)] >> 1) & 3
    st.sync()
    mask = (u64(1) << (2 * K)) - 1
    for k in range(t, BLOCK + WINDOW - 1, BLOCK):
        forward, backward = u64(0), u64(0)
        for j in range(K):
            code = u64(codes[k + j])
            forward = forward << 2 | code
            backward = backward >> 2 | (code ^ 2) << (2 * K - 2)
        hashes[k] = scrambled(min(forward, backward), mask)
    st.sync()
    best, least = t, hashes[t]
    for k in range(t + 1, t + WINDOW):
        if hashes[k] < least:
            best, least = k, hashes[k]
    best += first
    before = st.shuffle_up(best, 1)
    i = first + t
    if i < n - K - WINDOW + 2:
        place[i] = best
        if st.lane == 0 or before != best:
            st.atomic_or(marks, best >> 5, u32(1) << (best & 31))


LENGTH, SPAN = 15, 10


def _genome(n: int, block: int) -> Args:
    return {
        "sequence": LETTERS[draw().integers(0, 4, n)], "place": zeros(n - LENGTH - SPAN + 2, np.int32),
        "marks": zeros(cover(n, 32), np.uint32), "n": n, "K": LENGTH, "WINDOW": SPAN, "BLOCK": block,
    }  # fmt: skip


def _least(args: Args) -> dict[str, Values]:
    code = np.zeros(256, np.uint64)
    code[list(b"ACTG")] = range(4)
    digit = code[args["sequence"]]
    long = args["n"] - LENGTH + 1
    key, other = np.zeros((2, long), np.uint64)
    for k in range(LENGTH):
        own = digit[k : k + long]
        key += own << np.uint64(2 * (LENGTH - 1 - k))
        other += (own + np.uint64(2)) % np.uint64(4) << np.uint64(2 * k)
    key = np.minimum(key, other)
    whole = np.uint64(4**LENGTH)
    key = (key * np.uint64(2**21 - 1) - np.uint64(1)) % whole
    for factor, shift in ((1, 24), (265, 14), (21, 28)):
        key = key * np.uint64(factor) % whole
        key ^= key >> np.uint64(shift)
    key = key * np.uint64(2**31 + 1) % whole
    place = np.lib.stride_tricks.sliding_window_view(key, SPAN).argmin(axis=1) + np.arange(long - SPAN + 1)
    marked = np.zeros(cover(args["n"], 32) * 32, np.uint8)
    marked[place] = 1
    return {"place": place, "marks": np.packbits(marked, bitorder="little").view(np.uint32)}


@st.kernel
def aho_corasick(
    text: Global[u8], follow: Global[i32], found: Global[i32], hits: Global[i32], n: i32, patterns: i32
) -> None:
    """found = the longest pattern that begins at each letter, or -1; hits = how often each pattern is in the text."""
    root = st.shared(i32, 256)
    for k in range(st.thread.x, 256, st.block_dim.x):
        root[k] = follow[patterns, k]
    st.sync()
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    longest = -1
    state = root[i32(text[i])]
    at = i + 1
    while state >= 0:
        if state < patterns:
            longest = state
            st.atomic_add(hits, state, 1)
        if at >= n:
            break
        state = follow[state, i32(text[at])]
        at += 1
    found[i] = longest


PATTERNS, LONGEST = 400, 8


def _dictionary(n: int, block: int) -> Args:
    random = draw()
    often = 1 / np.arange(1, 27)
    letters = 97 + random.choice(26, n, p=often / often.sum()).astype(np.uint8)
    begin, count = random.integers(0, n - LONGEST, 3 * PATTERNS), random.integers(3, LONGEST + 1, 3 * PATTERNS)
    words = sorted({letters[b : b + c].tobytes() for b, c in zip(begin, count, strict=True)})
    words = [words[k] for k in random.permutation(len(words))[:PATTERNS]]
    rows = [[-1] * 256 for _ in range(PATTERNS + 1)]
    final = {word: k for k, word in enumerate(words)}
    states = {b"": PATTERNS}
    for word in words:
        for long in range(1, len(word) + 1):
            prefix = word[:long]
            if prefix not in states:
                states[prefix] = final.get(prefix, len(rows))
                if prefix not in final:
                    rows.append([-1] * 256)
                rows[states[prefix[:-1]]][prefix[-1]] = states[prefix]
    return {
        "text": letters, "follow": np.array(rows, np.int32), "found": zeros(n, np.int32), "hits": zeros(PATTERNS, np.int32),
        "n": n, "patterns": PATTERNS,
    }  # fmt: skip


def _spell(follow: Values) -> dict[int, bytes]:
    """The patterns, from their automaton."""
    words, prefixes = {}, {PATTERNS: b""}
    while prefixes:
        prefixes = {
            int(follow[s, c]): w + bytes([c]) for s, w in prefixes.items() for c in np.flatnonzero(follow[s] >= 0)
        }
        words.update({s: w for s, w in prefixes.items() if s < PATTERNS})
    return words


def _matches(args: Args) -> dict[str, Values]:
    text, n = args["text"], args["n"]
    last, hits = np.full(n, -1), np.zeros(PATTERNS, int)
    key = np.zeros(n, np.uint64)
    words = _spell(args["follow"])
    for long in range(1, LONGEST + 1):
        key = key[: n - long + 1] * np.uint64(256) + text[long - 1 :]
        pairs = sorted((int.from_bytes(w, "big"), s) for s, w in words.items() if len(w) == long)
        if pairs:
            keys, state = np.array(pairs, np.uint64).T
            at = np.minimum(np.searchsorted(keys, key), keys.size - 1)
            matched = np.flatnonzero(keys[at] == key)
            last[matched] = state[at[matched]]
            hits += np.bincount(state[at[matched]].astype(int), minlength=PATTERNS)
    return {"found": last, "hits": hits}


UNDECIDED, CHOSEN, COVERED = 0, 1, 2


@st.kernel
def luby_round(
    start: Global[i32], target: Global[i32], priority: Global[u32], state: Global[u8], out: Global[u8], left: Global[i32],
    n: i32,
) -> None:  # fmt: skip
    """out = a round of Luby's independent set: a vertex is covered by a chosen neighbour, or chosen where it ranks highest."""
    v = st.block.x * st.block_dim.x + st.thread.x
    decided = True
    if v < n:
        becomes = i32(state[v])
        if becomes == UNDECIDED:
            own = priority[v]
            becomes = CHOSEN
            for edge in range(start[v], start[v + 1]):
                w = target[edge]
                other = state[w]
                if other == CHOSEN:
                    becomes = COVERED
                    break
                if other == UNDECIDED:
                    rank = priority[w]
                    if rank > own or (rank == own and w > v):
                        becomes = UNDECIDED
            decided = becomes != UNDECIDED
        out[v] = u8(becomes)
    count = st.sync_count(not decided)
    if st.thread.x == 0:
        st.atomic_add(left, 0, count)


def _ranks(args: Args, rank: Values) -> tuple[Values, Values, Values]:
    """Both ends of each edge, and whether the other end ranks higher."""
    source = np.repeat(np.arange(args["n"]), np.diff(args["start"]))
    target = args["target"]
    return source, target, (rank[target] > rank[source]) | ((rank[target] == rank[source]) & (target > source))


def _graph(n: int, block: int) -> Args:
    random = draw()
    source_end = (n * random.random(4 * n) ** 2.5).astype(np.int64)
    other = random.integers(0, n, 4 * n)
    both = np.unique(np.concatenate([source_end * n + other, other * n + source_end])[np.tile(source_end != other, 2)])
    source, target = np.divmod(both, n)
    state = np.full(n, UNDECIDED, np.uint8)
    args = {
        "start": np.searchsorted(source, np.arange(n + 1)).astype(np.int32), "target": target.astype(np.int32),
        "priority": random.integers(0, 1 << 16, n, dtype=np.uint32), "state": state,
        "out": zeros(n, np.uint8), "left": zeros(1, np.int32), "n": n,
    }  # fmt: skip
    lower, _, higher = _ranks(args, random.random(n))
    state[np.bincount(lower[higher], minlength=n) == 0] = CHOSEN
    return args


def _chosen(args: Args) -> dict[str, Values]:
    state, n = args["state"], args["n"]
    source, target, higher = _ranks(args, args["priority"])
    covered = np.bincount(source[state[target] == CHOSEN], minlength=n) > 0
    beaten = np.bincount(source[higher & (state[target] == UNDECIDED)], minlength=n) > 0
    out = np.where(state != UNDECIDED, state, np.where(covered, COVERED, np.where(beaten, UNDECIDED, CHOSEN)))
    return {"out": out, "left": np.array([(out == UNDECIDED).sum()])}


@st.kernel
def forecast_revenue(
    shipped: Global[i32], discount: Global[u8], quantity: Global[u8], price: Global[i32], out: Global[u64], n: i32,
    since: i32, until: i32, low: i32, high: i32, most: i32,
) -> None:  # fmt: skip
    """out = the sum of price times discount over the rows that a query selects, in cents and percent."""
    partial = st.shared(u64, 32)
    total = u64(0)
    for i in range(st.block.x * st.block_dim.x + st.thread.x, n, st.grid_dim.x * st.block_dim.x):
        day = shipped[i]
        if day >= since and day < until:
            off = i32(discount[i])
            if off >= low and off <= high and i32(quantity[i]) < most:
                total += u64(price[i]) * u64(off)
    for step in (16, 8, 4, 2, 1):
        total += st.shuffle_down(total, step)
    if st.lane == 0:
        partial[st.warp] = total
    st.sync()
    if st.warp == 0:
        total = partial[st.lane] if st.lane < st.block_dim.x // 32 else u64(0)
        for step in (16, 8, 4, 2, 1):
            total += st.shuffle_down(total, step)
        if st.lane == 0:
            st.atomic_add(out, 0, total)


def _items(n: int, block: int) -> Args:
    random = draw()
    return {
        "shipped": random.integers(8036, 10562, n, dtype=np.int32), "discount": random.integers(0, 11, n, dtype=np.uint8),
        "quantity": random.integers(1, 51, n, dtype=np.uint8), "price": random.integers(90000, 10500000, n, dtype=np.int32),
        "out": zeros(1, np.uint64), "n": n, "since": 8766, "until": 9131, "low": 5, "high": 7, "most": 24,
    }  # fmt: skip


def _revenue(args: Args) -> dict[str, Values]:
    day, off = args["shipped"], args["discount"]
    within = np.isin(off, np.arange(args["low"], args["high"] + 1)) & (args["quantity"] < args["most"])
    rows = within & (args["since"] <= day) & (day < args["until"])
    return {"out": np.array([np.dot(args["price"][rows].astype(np.uint64), off[rows].astype(np.uint64))])}


KERNELS = (
    ValidationKernel(
        dot_plot, lambda n, b: (cover(n - WINDOW + 1, b[0]), cover(n - WINDOW + 1, b[1])), _sequences, _plotted,
        (150, (32, 8)), (1500, 4096), ((16, 16), (32, 8), (32, 32)),
    ),
    ValidationKernel(
        minimizers, lambda n, b: cover(n - LENGTH - SPAN + 2, b), _genome, _least, (3000, 128), (1 << 19, 1 << 22),
        (64, 128, 256), restored=("marks",),
    ),
    ValidationKernel(
        aho_corasick, cover, _dictionary, _matches, (4000, 128), (1 << 19, 1 << 22), (128, 256, 512), restored=("hits",),
    ),
    ValidationKernel(luby_round, cover, _graph, _chosen, (3000, 128), (1 << 16, 1 << 19), (64, 256, 1024), restored=("left",)),
    ValidationKernel(
        forecast_revenue, lambda n, b: min(cover(n, 4 * b), 528), _items, _revenue, (10000, 128), (1 << 22, 1 << 25),
        (128, 256, 512), restored=("out",),
    ),
)  # fmt: skip
