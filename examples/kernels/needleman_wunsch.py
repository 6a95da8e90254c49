"""Needleman-Wunsch: the score of a global alignment, along anti-diagonals, a block for each pair of sequences."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
MATCH, MISMATCH, GAP = 2, -1, -2


@st.kernel
def align(a: st.Global[st.u8], b: st.Global[st.u8], scores: st.Global[st.i32], WIDTH: st.Const) -> None:
    """scores[p] = the best score of row p of a with row p of b, of WIDTH bytes. A thread a cell of an anti-diagonal."""
    before = st.shared(st.i32, WIDTH + 1)
    last = st.shared(st.i32, WIDTH + 1)
    now = st.shared(st.i32, WIDTH + 1)
    pair, j = st.block.x, st.thread.x
    for diagonal in range(a.shape[1] + WIDTH + 1):
        i = diagonal - j
        if 0 <= i <= a.shape[1]:
            if i == 0 or j == 0:
                now[j] = GAP * diagonal
            else:
                step = MATCH if a[pair, i - 1] == b[pair, j - 1] else MISMATCH
                now[j] = max(before[j - 1] + step, last[j] + GAP, last[j - 1] + GAP)
        st.sync()
        before, last, now = last, now, before
    if j == WIDTH:
        scores[pair] = last[WIDTH]


def scores(a: Bytes, b: Bytes, launch: Callable[..., st.Result] = st.launch) -> Ints:
    """The score of each row of a with the row of b."""
    width = b.shape[1]
    args = dict(a=a, b=b, scores=st.empty(len(a), st.i32), WIDTH=width)
    output: Ints = launch(align, grid=len(a), block=width + 1, args=args).scores
    return output


def reference(a: Bytes, b: Bytes) -> Ints:
    """The same, row by row, all pairs at once."""
    row = np.tile(GAP * np.arange(b.shape[1] + 1, dtype=np.int32), (len(a), 1))
    for i in range(1, a.shape[1] + 1):
        above = row.copy()
        row[:, 0] = GAP * i
        for j in range(1, b.shape[1] + 1):
            step = np.where(a[:, i - 1] == b[:, j - 1], MATCH, MISMATCH)
            row[:, j] = np.maximum(above[:, j - 1] + step, np.maximum(above[:, j], row[:, j - 1]) + GAP)
    return row[:, -1]


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    random = np.random.default_rng(17)
    a, b = random.integers(0, 4, (3, 30), np.uint8), random.integers(0, 4, (3, 40), np.uint8)
    np.testing.assert_array_equal(scores(a, b, launch), reference(a, b))


if __name__ == "__main__":
    check()
