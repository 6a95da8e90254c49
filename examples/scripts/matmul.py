"""A matrix product: one thread an element, and with tiles of both factors in shared memory."""

import argparse

import numpy as np
import simtbed as st

TILE = 16


@st.kernel
def plain(a: st.Global[st.f32], b: st.Global[st.f32], c: st.Global[st.f32], m: st.i32, n: st.i32, k: st.i32) -> None:
    """c = a @ b for a of m rows and k columns, b of k rows and n columns."""
    row = st.block.y * TILE + st.thread.y
    column = st.block.x * TILE + st.thread.x
    if row < m and column < n:
        total = st.f32(0)
        for p in range(k):
            total = st.fma(a[row * k + p], b[p * n + column], total)
        c[row * n + column] = total


@st.kernel
def tiled(a: st.Global[st.f32], b: st.Global[st.f32], c: st.Global[st.f32], m: st.i32, n: st.i32, k: st.i32) -> None:
    """The same, tile by tile."""
    left = st.shared(st.f32, TILE, TILE)
    right = st.shared(st.f32, TILE, TILE)
    x, y = st.thread.x, st.thread.y
    row, column = st.block.y * TILE + y, st.block.x * TILE + x
    total = st.f32(0)
    for first in range(0, k, TILE):
        left[y, x] = a[row * k + first + x] if row < m and first + x < k else st.f32(0)
        right[y, x] = b[(first + y) * n + column] if first + y < k and column < n else st.f32(0)
        st.sync()
        for p in st.unroll(range(TILE)):
            total = st.fma(left[y, p], right[p, x], total)
        st.sync()
    if row < m and column < n:
        c[row * n + column] = total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, nargs=3, default=(50, 40, 30), metavar=("M", "N", "K"))
    m, n, k = parser.parse_args().size
    random = np.random.default_rng(4)
    a, b = random.random((m, k), dtype=np.float32), random.random((k, n), dtype=np.float32)
    grid = (-(-n // TILE), -(-m // TILE))
    for kernel in (plain, tiled):
        args = dict(a=a.ravel(), b=b.ravel(), c=st.empty(m * n, st.f32), m=m, n=n, k=k)
        c = st.launch(kernel, grid=grid, block=(TILE, TILE), args=args).c.reshape(m, n)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4)
    print("two products of", m, "by", n, "are right")


if __name__ == "__main__":
    main()
