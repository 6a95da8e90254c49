"""Searches and numbers: boards, shortest paths, joined sets, neighbours, divisors, powers, sums of long numbers."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, i32, int2, u32, u64

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, tiles, warps, words, zeros

FAR = 1 << 29


@st.kernel
def n_queens(out: Global[i32], n: i32, MOST: Const) -> None:
    """out[i] = placements of queens below four with the columns of the digits of i to the base n; masks are on a stack."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n * n * n * n:
        return
    full = (1 << n) - 1
    columns, left, right = 0, 0, 0
    rest = i
    for _ in range(4):
        place = 1 << rest % n
        rest //= n
        if place & (columns | left | right) != 0:
            out[i] = 0
            return
        columns |= place
        left = (left | place) << 1
        right = (right | place) >> 1
    free = st.local(i32, MOST)
    lefts = st.local(i32, MOST)
    rights = st.local(i32, MOST)
    taken = st.local(i32, MOST)
    free[0] = full & ~(columns | left | right)
    lefts[0], rights[0], taken[0] = left, right, columns
    depth, found = 0, 0
    while depth >= 0:
        choices = free[depth]
        if choices == 0:
            depth -= 1
            continue
        place = choices & -choices
        free[depth] = choices ^ place
        columns = taken[depth] | place
        if columns == full:
            found += 1
            continue
        left = (lefts[depth] | place) << 1
        right = (rights[depth] | place) >> 1
        depth += 1
        lefts[depth], rights[depth], taken[depth] = left, right, columns
        free[depth] = full & ~(columns | left | right)
    out[i] = found


@st.kernel
def floyd_warshall_tile(way: Global[i32], n: i32, pivot: i32, TILE: Const) -> None:
    """Shorter paths through the vertices of one tile: of all tiles but those in its row and column."""
    if st.block.x == pivot or st.block.y == pivot:
        return
    down = st.shared(i32, TILE, TILE)
    across = st.shared(i32, TILE, TILE)
    x, y = st.thread.x, st.thread.y
    row, column = st.block.y * TILE + y, st.block.x * TILE + x
    down[y, x] = way[row * n + pivot * TILE + x]
    across[y, x] = way[(pivot * TILE + y) * n + column]
    st.sync()
    shortest = way[row * n + column]
    for k in st.unroll(range(TILE)):
        shortest = min(shortest, down[y, k] + across[k, x])
    way[row * n + column] = shortest


@st.kernel
def relax_edges(
    source: Global[i32], target: Global[i32], weight: Global[i32], old: Global[i32], new: Global[i32], edges: i32
) -> None:
    """new = shorter paths to each vertex with one edge more than the old ones."""
    for k in range(st.block.x * st.block_dim.x + st.thread.x, edges, st.grid_dim.x * st.block_dim.x):
        reached = old[source[k]]
        if reached == FAR:
            continue
        length = reached + weight[k]
        if length < old[target[k]]:
            st.atomic_min(new, target[k], length)


@st.device
def root(parent: Global[i32], at: i32) -> i32:
    """Whose set it is in, while others join sets."""
    up = st.volatile_load(parent, at)
    while up != at:
        at = up
        up = st.volatile_load(parent, at)
    return at


@st.kernel
def join_sets(source: Global[i32], target: Global[i32], parent: Global[i32], joined: Global[i32], edges: i32) -> None:
    """joined[0] = edges that joined two sets; the root with the larger index becomes a child of the other."""
    k = st.block.x * st.block_dim.x + st.thread.x
    if k >= edges:
        return
    a, b = root(parent, source[k]), root(parent, target[k])
    while a != b:
        if a < b:
            a, b = b, a
        before = st.compare_swap(parent, a, a, b)
        if before == a:
            st.atomic_add(joined, 0, 1)
            break
        a = root(parent, before)


@st.kernel
def nearest_places(
    asked: Global[int2], known: Global[int2], out: Global[i32], n: i32, count: i32, K: Const, BLOCK: Const
) -> None:
    """out = the K known places that are nearest to each, in order, by insertion in registers; known ones by tiles."""
    tile = st.shared(int2, BLOCK)
    i = st.block.x * BLOCK + st.thread.x
    own = asked[min(i, n - 1)]
    least = st.registers(i32, K)
    which = st.registers(i32, K)
    for k in st.unroll(range(K)):
        least[k] = FAR
        which[k] = -1
    for first in range(0, count, BLOCK):
        if first + st.thread.x < count:
            tile[st.thread.x] = known[first + st.thread.x]
        st.sync()
        for k in range(min(BLOCK, count - first)):
            dx, dy = tile[k].x - own.x, tile[k].y - own.y
            far = dx * dx + dy * dy
            if far < least[K - 1]:
                at = first + k
                for p in st.unroll(range(K)):
                    if far < least[p] or (far == least[p] and at < which[p]):
                        least[p], far = far, least[p]
                        which[p], at = at, which[p]
        st.sync()
    if i < n:
        for k in st.unroll(range(K)):
            out[i * K + k] = which[k]


@st.kernel
def smallest_divisors(out: Global[i32], n: i32, first: i32) -> None:
    """out[i] = the least divisor above 1 of first + i, by trial."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    number = first + i
    if number % 2 == 0:
        out[i] = 2
        return
    divisor = 3
    while divisor * divisor <= number:
        if number % divisor == 0:
            break
        divisor += 2
    out[i] = divisor if divisor * divisor <= number else number


@st.device
def product_modulo(a: u64, b: u64, modulus: u64) -> u64:
    """A product of numbers below 2^32."""
    return a * b % modulus


@st.kernel
def power_modulo(base: Global[u32], exponent: Global[u32], modulus: Global[u32], out: Global[u32], n: i32) -> None:
    """out = base ** exponent % modulus, by squares."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        m = u64(modulus[i])
        square, power = u64(base[i]) % m, u64(1)
        bits = exponent[i]
        while bits != 0:
            if bits & 1 != 0:
                power = product_modulo(power, square, m)
            square = product_modulo(square, square, m)
            bits >>= 1
        out[i] = u32(power)


@st.kernel
def long_sums(a: Global[u32], b: Global[u32], out: Global[u32], n: i32, words: i32) -> None:
    """out = sums of long numbers, a warp a number: 32 words at once, with carries through a ballot."""
    number = st.block.x * (st.block_dim.x // 32) + st.warp
    if number >= n:
        return
    carry = u64(0)
    for first in range(0, words, 32):
        at = number * words + first + st.lane
        total = a[at] + b[at]
        makes = st.ballot(total < a[at])
        hands = st.ballot(total == 0xFFFFFFFF)
        into = (u64(hands) + (u64(makes) << 1) + carry) ^ u64(hands)
        out[at] = total + u32((into >> u64(st.lane)) & 1)
        carry = into >> 32


# ------------------------------------------------------------------ launches
def _placed(args: Args) -> dict[str, Values]:
    """Boards as masks, a row at a time; index: number of the first four rows."""
    n = args["n"]
    index = np.arange(n**4)
    columns = left = right = np.zeros(n**4, np.int32)
    for row in range(n):
        boards_of_row = []
        for column in [index // n**row % n] if row < 4 else range(n):
            place = np.int32(1) << np.asarray(column, np.int32)
            fits = (columns | left | right) & place == 0
            boards = (part[fits] for part in (columns | place, (left | place) << 1, (right | place) >> 1))
            boards_of_row.append((index[fits], *boards))
        index, columns, left, right = (np.concatenate(parts) for parts in zip(*boards_of_row, strict=True))
    return {"out": np.bincount(index, minlength=n**4)}


def _path_lengths(n: int, block: tuple[int, int]) -> Args:
    return {"way": ints(n * n, 1000), "n": n, "pivot": 1, "TILE": block[0]}


def _shorter(args: Args) -> dict[str, Values]:
    n, first = args["n"], args["TILE"] * args["pivot"]
    length = args["way"].reshape(n, n).copy()
    remaining = np.r_[0:first, first + args["TILE"] : n]
    for k in range(first, first + args["TILE"]):
        length[np.ix_(remaining, remaining)] = np.minimum(
            length[np.ix_(remaining, remaining)], length[remaining, k, None] + length[k, remaining]
        )
    return {"way": length}


def _edges(n: int, block: int) -> Args:
    rng, places = draw(), n // 8
    old = rng.integers(0, 1000, places, np.int32)
    old[rng.random(places) < 0.4] = FAR
    source, target = rng.integers(0, places, (2, n), np.int32)
    return {
        "source": source, "target": target, "weight": rng.integers(1, 100, n, np.int32), "old": old, "new": old.copy(),
        "edges": n,
    }  # fmt: skip


def _relaxed(args: Args) -> dict[str, Values]:
    new, distance = args["new"].copy(), args["old"][args["source"]]
    reachable = distance < FAR
    np.minimum.at(new, args["target"][reachable], (distance + args["weight"])[reachable])
    return {"new": new}


def _pairs(n: int, block: int) -> Args:
    """Places on a line, joined to near ones."""
    rng, places = draw(), 2 * n
    source = rng.integers(0, places, n, np.int32)
    target = np.minimum(source + rng.integers(1, 65, n, np.int32), places - 1).astype(np.int32)
    return {
        "source": source, "target": target, "parent": np.arange(places, dtype=np.int32), "joined": zeros(1, np.int32), "edges": n,
    }  # fmt: skip


def _joined(args: Args) -> dict[str, Values]:
    """Each set loses all of its places but one."""
    source, target, label = args["source"], args["target"], args["parent"].copy()
    while (label[source] != label[target]).any():
        least = np.minimum(label[source], label[target])
        for ends in (source, target):
            np.minimum.at(label, label[ends], least)
        while (label[label] != label).any():
            label = label[label]
    return {"joined": np.array([len(label) - len(np.unique(label))])}


POINTS = 512


def _places(n: int, block: int) -> Args:
    points, queries = draw().integers(0, 1000, (POINTS, 2), np.int32), draw().integers(0, 1000, (n, 2), np.int32)
    return {
        "asked": queries, "known": points, "out": zeros(4 * n, np.int32), "n": n, "count": POINTS, "K": 4, "BLOCK": block,
    }  # fmt: skip


def _nearest(args: Args) -> dict[str, Values]:
    """Keys that hold the distance and then the place: 2 * 1000 ** 2 * POINTS is below 2 ** 31."""
    result = []
    for queries in np.array_split(args["asked"], cover(args["n"], 4096)):
        far = ((queries[:, None] - args["known"]) ** 2).sum(axis=2)
        result.append(np.sort(np.partition(far * POINTS + np.arange(POINTS), 3, axis=1)[:, :4], axis=1) % POINTS)
    return {"out": np.concatenate(result)}


FIRST = 1 << 20


def _divisors(args: Args) -> dict[str, Values]:
    out = np.arange(FIRST, FIRST + args["n"])
    for divisor in range(int((FIRST + args["n"]) ** 0.5) + 1, 1, -1):
        out[-FIRST % divisor :: divisor] = divisor
    return {"out": out}


def _powers(n: int, block: int) -> Args:
    """Exponents of any number of bits."""
    base, exponent, modulus = words(3 * n).reshape(3, n)
    return {
        "base": base, "exponent": exponent >> (words(n) % 28), "modulus": modulus | np.uint32(1), "out": zeros(n, np.uint32), "n": n,
    }  # fmt: skip


def _raised(args: Args) -> dict[str, Values]:
    numbers = zip(*(args[name].tolist() for name in ("base", "exponent", "modulus")), strict=True)
    return {"out": np.array([pow(*three) for three in numbers])}


LONG = 128


def _numbers(n: int, block: int) -> Args:
    """Return words that are often full."""
    a, b = words(2 * n * LONG).reshape(2, -1)
    full = draw().random(n * LONG) < 0.5
    b[full] = ~a[full]
    return {"a": a.copy(), "b": b.copy(), "out": zeros(n * LONG, np.uint32), "n": n, "words": LONG}


def _summed(args: Args) -> dict[str, Values]:
    a, b = (args[name].reshape(-1, LONG) for name in ("a", "b"))
    size, sums = 4 * LONG, []
    for left, right in zip(a, b, strict=True):
        total = int.from_bytes(left.tobytes(), "little") + int.from_bytes(right.tobytes(), "little")
        sums.append((total % (1 << 8 * size)).to_bytes(size, "little"))
    return {"out": np.frombuffer(b"".join(sums), np.uint32)}


BLOCKS = (64, 256, 1024)


def _strided(n: int, block: int) -> int:
    return min(cover(n, block), 132 * 2048 // block)


KERNELS = (
    ValidationKernel(
        n_queens, lambda n, b: cover(n**4, b), lambda n, b: {"out": zeros(n**4, np.int32), "n": n, "MOST": 16}, _placed,
        (7, 128), (10, 13), (64, 128, 256),
    ),
    ValidationKernel(
        floyd_warshall_tile, tiles, _path_lengths, _shorter, (64, (16, 16)), (512, 2048), ((8, 8), (16, 16), (32, 32)),
    ),
    ValidationKernel(relax_edges, _strided, _edges, _relaxed, (3000, 128), (1 << 18, 1 << 22), BLOCKS),
    ValidationKernel(
        join_sets, cover, _pairs, _joined, (1000, 128), (1 << 16, 1 << 20), BLOCKS, unordered=("parent",),
        restored=("parent", "joined"),
    ),
    ValidationKernel(nearest_places, cover, _places, _nearest, (300, 128), (1 << 13, 1 << 17), (64, 256, 512)),
    ValidationKernel(
        smallest_divisors, cover, lambda n, b: {"out": zeros(n, np.int32), "n": n, "first": FIRST}, _divisors, (700, 128),
        (1 << 14, 1 << 18), BLOCKS,
    ),
    ValidationKernel(power_modulo, cover, _powers, _raised, (700, 128), (1 << 14, 1 << 18), (64, 256, 512)),
    ValidationKernel(long_sums, warps, _numbers, _summed, (60, 128), (1 << 12, 1 << 16), BLOCKS),
)  # fmt: skip
