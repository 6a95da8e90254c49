"""Searches: boards, joined sets."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, zeros


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


BLOCKS = (64, 256, 1024)


KERNELS = (
    ValidationKernel(
        n_queens, lambda n, b: cover(n**4, b), lambda n, b: {"out": zeros(n**4, np.int32), "n": n, "MOST": 16}, _placed,
        (7, 128), (10, 13), (64, 128, 256),
    ),
    ValidationKernel(
        join_sets, cover, _pairs, _joined, (1000, 128), (1 << 16, 1 << 20), BLOCKS, unordered=("parent",),
        restored=("parent", "joined"),
    ),
)  # fmt: skip
