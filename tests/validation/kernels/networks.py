"""Networks and matrices: losses of classes, triangular factors, labels that spread in a graph."""

from __future__ import annotations

import math

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, f64, float2, half2, i32

from .kernel import Args, ValidationKernel, Values, cover, draw, ints, warps, zeros

MASK = (1 << 20) - 1


@st.kernel
def cross_entropy_rows(
    logit: Global[half2], target: Global[i32], loss: Global[f32], slope: Global[float2], n: i32, pairs: i32
) -> None:
    """loss = cross entropy of rows of halves and their classes, slope = by each of them; a row of no class is left out."""
    row = st.block.x * (st.block_dim.x // 32) + st.warp
    if row >= n:
        return
    wanted = target[row]
    if wanted < 0:
        for k in range(st.lane, pairs, 32):
            slope[row * pairs + k] = float2(0.0, 0.0)
        if st.lane == 0:
            loss[row] = 0.0
        return
    most, total = -math.inf, 0.0
    for k in range(st.lane, pairs, 32):
        two = logit[row * pairs + k]
        a, b = f32(two.x), f32(two.y)
        if max(a, b) > most:
            total *= st.exp(most - max(a, b))
            most = max(a, b)
        total += st.exp(a - most) + st.exp(b - most)
    for step in (16, 8, 4, 2, 1):
        other_most, other_total = st.shuffle_xor(most, step), st.shuffle_xor(total, step)
        high = max(most, other_most)
        total = total * st.exp(most - high) + other_total * st.exp(other_most - high)
        most = high
    for k in range(st.lane, pairs, 32):
        two = logit[row * pairs + k]
        a, b = st.exp(f32(two.x) - most) / total, st.exp(f32(two.y) - most) / total
        if k == wanted >> 1:
            own = f32(two.y if wanted & 1 != 0 else two.x)
            loss[row] = st.log(total) + most - own
            a, b = (a, b - 1.0) if wanted & 1 != 0 else (a - 1.0, b)
        slope[row * pairs + k] = float2(a, b)


@st.kernel
def givens_factors(a: Global[f64], out: Global[f64], n: i32, ROWS: Const, COLUMNS: Const) -> None:
    """out = triangular factors of small matrices by plane rotations, with diagonals of at least 0, a thread a matrix;
    elements are interleaved."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i >= n:
        return
    m = st.local(f64, ROWS, COLUMNS)
    for row in range(ROWS):
        for column in range(COLUMNS):
            m[row, column] = a[(row * COLUMNS + column) * n + i]
    for column in range(COLUMNS):
        for row in range(ROWS - 1, column, -1):
            if m[row, column] == 0.0:
                continue
            size = st.hypot(m[row - 1, column], m[row, column])
            c, s = m[row - 1, column] / size, m[row, column] / size
            for k in range(column, COLUMNS):
                upper, under = m[row - 1, k], m[row, k]
                m[row - 1, k] = c * upper + s * under
                m[row, k] = c * under - s * upper
    for row in range(COLUMNS):
        sign = -1.0 if m[row, row] < 0.0 else 1.0
        for column in range(COLUMNS):
            out[(row * COLUMNS + column) * n + i] = sign * m[row, column] if column >= row else 0.0


@st.kernel
def label_round(
    start: Global[i32],
    target: Global[i32],
    label: Global[i32],
    out: Global[i32],
    ticket: Global[i32],
    n: i32,
    EACH: Const,
) -> None:
    """out = the label that most neighbours of a vertex have, the least of those; warps take EACH vertices until none is left."""
    while True:
        first = 0
        if st.lane == 0:
            first = st.atomic_add(ticket, 0, EACH)
        first = st.shuffle(first, 0)
        if first >= n:
            break
        for vertex in range(first, min(first + EACH, n)):
            begin, end = start[vertex], start[vertex + 1]
            best = -1
            for i in range(begin + st.lane, end, 32):
                own, same = label[target[i]], 0
                for j in range(begin, end):
                    if label[target[j]] == own:
                        same += 1
                best = max(best, same << 20 | MASK - own)
            best = st.reduce_max(best)
            if st.lane == 0:
                out[vertex] = MASK - (best & MASK) if best >= 0 else label[vertex]


# ------------------------------------------------------------------ launches
CLASSES = 1000


def _classes(n: int, block: int) -> Args:
    logit = draw().normal(0, 3, (n * CLASSES // 2, 2)).astype(np.float16)
    target = ints(n, CLASSES)
    target[::7] = -1
    slope = np.zeros(logit.shape, np.float32)
    return {"logit": logit, "target": target, "loss": zeros(n), "slope": slope, "n": n, "pairs": CLASSES // 2}


def _losses(args: Args) -> dict[str, Values]:
    logit, target = args["logit"].reshape(-1, CLASSES).astype(np.float32), args["target"]
    labelled, rows = target >= 0, np.arange(args["n"])
    exponentials = np.exp(logit - logit.max(axis=1, keepdims=True))
    total = exponentials.sum(axis=1, keepdims=True)
    loss = np.log(total[:, 0]) + logit.max(axis=1) - logit[rows, target]
    slope = exponentials / total
    slope[rows, target] -= 1
    return {"loss": np.where(labelled, loss, 0), "slope": np.where(labelled[:, None], slope, 0)}


ROWS, COLUMNS = 8, 5


def _small(n: int, block: int) -> Args:
    """One element in five is 0."""
    a = draw().normal(0, 1, (ROWS * COLUMNS, n)) * (draw().random((ROWS * COLUMNS, n)) > 0.2)
    a[: COLUMNS * COLUMNS : COLUMNS + 1] += 1
    return {"a": a.ravel(), "out": zeros(COLUMNS * COLUMNS * n, np.float64), "n": n, "ROWS": ROWS, "COLUMNS": COLUMNS}


def _factors(args: Args) -> dict[str, Values]:
    a = args["a"].reshape(ROWS, COLUMNS, -1).transpose(2, 0, 1)
    r = np.linalg.qr(a)[1]
    positive = r * np.where(np.diagonal(r, axis1=1, axis2=2) < 0, -1, 1)[:, :, None]
    return {"out": positive.transpose(1, 2, 0)}


def _friends(n: int, block: int) -> Args:
    """Most vertices have few neighbours, some none, a few of them a hundred."""
    rng = draw()
    degree = np.minimum(rng.pareto(1.2, n) * 6, 120).astype(int)
    start = np.concatenate([[0], np.cumsum(degree)]).astype(np.int32)
    near = np.repeat(np.arange(n), degree) + rng.integers(-40, 41, start[-1])
    label = np.arange(n, dtype=np.int32) // 16 * 16
    return {
        "start": start, "target": (near % n).astype(np.int32), "label": label, "out": zeros(n, np.int32),
        "ticket": zeros(1, np.int32), "n": n, "EACH": 4,
    }  # fmt: skip


def _spread(args: Args) -> dict[str, Values]:
    start, n = args["start"], args["n"]
    vertex = np.repeat(np.arange(n), np.diff(start))
    pair, count = np.unique(vertex * (MASK + 1) + args["label"][args["target"]], return_counts=True)
    out, most = args["label"].copy(), np.zeros(n, int)
    np.maximum.at(most, pair >> 20, count)
    best = (count == most[pair >> 20]).nonzero()[0][::-1]
    out[pair[best] >> 20] = pair[best] & MASK
    return {"out": out}


KERNELS = (
    ValidationKernel(
        cross_entropy_rows, warps, _classes, _losses, (60, 128), (1 << 11, 1 << 14), (64, 128, 512),
    ),
    ValidationKernel(givens_factors, cover, _small, _factors, (1000, 64), (1 << 14, 1 << 17), (64, 256)),
    ValidationKernel(
        label_round, lambda n, b: min(warps(n, b), 528), _friends, _spread, (300, 128), (1 << 14, 1 << 18), (64, 256), restored=("ticket",),
    ),
)  # fmt: skip
