"""Kernels as benchmark suites have them: elimination, differences of frames."""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Const, Global, f32, i32, u8, u16

from .kernel import Args, ValidationKernel, Values, draw, ints, zeros


@st.kernel
def gauss_jordan(a: Global[f32], b: Global[f32], out: Global[f32], N: Const) -> None:
    """out solves systems of N unknowns, a block a system, by elimination with row exchange; the first warp finds pivots."""
    held = st.shared(f32, N, N + 1)
    pivot = st.shared(i32, 1)
    x, y, wide, high = st.thread.x, st.thread.y, st.block_dim.x, st.block_dim.y
    for r in range(y, N, high):
        for c in range(x, N, wide):
            held[r, c] = a[(st.block.x * N + r) * N + c]
        if x == 0:
            held[r, N] = b[st.block.x * N + r]
    st.sync()
    for k in range(N):
        if st.warp == 0:
            best, row = -1.0, k
            if k <= st.lane < N:
                best, row = abs(held[st.lane, k]), st.lane
            for step in (16, 8, 4, 2, 1):
                other, whose = st.shuffle_xor(best, step), st.shuffle_xor(row, step)
                if other > best or (other == best and whose < row):
                    best, row = other, whose
            if st.lane == 0:
                pivot[0] = row
        st.sync()
        found = pivot[0]
        if found != k and y == 0:
            for c in range(k + x, N + 1, wide):
                held[k, c], held[found, c] = held[found, c], held[k, c]
        st.sync()
        for r in range(y, N, high):
            if r == k:
                continue
            factor = held[r, k] / held[k, k]
            for c in range(k + 1 + x, N + 1, wide):
                held[r, c] -= factor * held[k, c]
        st.sync()
    if y == 0:
        for r in range(x, N, wide):
            out[st.block.x * N + r] = held[r, N] / held[r, r]


@st.kernel
def sad_blocks(frame: Global[u8], reference: Global[u8], out: Global[u16], n: i32, RADIUS: Const) -> None:
    """out = sums of absolute differences of the 4 x 4 blocks of 16 x 16 pixels, for each shift by up to RADIUS."""
    current = st.shared(u8, 16, 16)
    for k in range(st.thread.x, 256, st.block_dim.x):
        current[k // 16, k % 16] = frame[(st.block.y * 16 + k // 16) * n + st.block.x * 16 + k % 16]
    st.sync()
    side = 2 * RADIUS + 1
    first = (st.block.y * st.grid_dim.x + st.block.x) * 16 * side * side
    for place in range(st.thread.x, side * side, st.block_dim.x):
        top = st.block.y * 16 + place // side - RADIUS
        left = st.block.x * 16 + place % side - RADIUS
        for part in range(16):
            total = 0
            for r in st.unroll(range(4)):
                row = part // 4 * 4 + r
                line = min(max(top + row, 0), n - 1) * n
                for c in st.unroll(range(4)):
                    column = part % 4 * 4 + c
                    there = reference[line + min(max(left + column, 0), n - 1)]
                    total += abs(i32(current[row, column]) - i32(there))
            out[first + part * side * side + place] = u16(total)


# ------------------------------------------------------------------ launches
UNKNOWNS = 32


def _pivoted(n: int, block: object) -> Args:
    a, b = draw().normal(0, 1, (n, UNKNOWNS, UNKNOWNS)), draw().normal(0, 1, n * UNKNOWNS).astype(np.float32)
    a = a[:, draw().permutation(UNKNOWNS)] + 8 * np.eye(UNKNOWNS)[draw().permutation(UNKNOWNS)]
    return {"a": a.astype(np.float32).ravel(), "b": b, "out": np.zeros_like(b), "N": UNKNOWNS}


def _solved(args: Args) -> dict[str, Values]:
    a = args["a"].reshape(-1, UNKNOWNS, UNKNOWNS).astype(float)
    return {"out": np.linalg.solve(a, args["b"].reshape(-1, UNKNOWNS, 1))}


RADIUS = 4


def _frames(n: int, block: int) -> Args:
    count = (n // 4) ** 2 * (2 * RADIUS + 1) ** 2
    frame = ints(n * n, 256, np.uint8)
    return {"frame": frame, "reference": frame[::-1].copy(), "out": zeros(count, np.uint16), "n": n, "RADIUS": RADIUS}


def _differences(args: Args) -> dict[str, Values]:
    n, side = args["n"], 2 * RADIUS + 1
    frame, padded = (args[name].reshape(n, n).astype(int) for name in ("frame", "reference"))
    padded = np.pad(padded, RADIUS, mode="edge")
    out = np.zeros((n // 16, n // 16, 4, 4, side, side), int)
    for r, c in np.ndindex(side, side):
        blocks = abs(frame - padded[r : r + n, c : c + n]).reshape(n // 16, 4, 4, n // 16, 4, 4)
        out[..., r, c] = blocks.sum(axis=(2, 5)).transpose(0, 2, 1, 3)
    return {"out": out}


KERNELS = (
    ValidationKernel(gauss_jordan, lambda n, b: n, _pivoted, _solved, (3, (32, 4)), (132, 1056), ((16, 16), (32, 4), (32, 8))),
    ValidationKernel(
        sad_blocks, lambda n, b: (n // 16, n // 16), _frames, _differences, (48, 96), (128, 512), (64, 96, 128),
    ),
)  # fmt: skip
