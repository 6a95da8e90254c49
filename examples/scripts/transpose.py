"""Transpose a matrix by three kernels: naive, with a tile, and with a padded tile."""

import argparse

import numpy as np
import simtbed as st

TILE = 32


@st.kernel
def naive(a: st.Global[st.f32], out: st.Global[st.f32], n: st.i32) -> None:
    """Rows are read, columns are written."""
    x = st.block.x * TILE + st.thread.x
    for j in range(st.thread.y, TILE, 8):
        y = st.block.y * TILE + j
        if x < n and y < n:
            out[x * n + y] = a[y * n + x]


@st.kernel
def tiled(a: st.Global[st.f32], out: st.Global[st.f32], n: st.i32, PITCH: st.Const) -> None:
    """Rows are read and rows are written. PITCH: words from row to row of the tile."""
    tile = st.shared(st.f32, TILE, PITCH)
    x, y = st.block.x * TILE + st.thread.x, st.block.y * TILE
    for j in range(st.thread.y, TILE, 8):
        if x < n and y + j < n:
            tile[j, st.thread.x] = a[(y + j) * n + x]
    st.sync()
    x, y = st.block.y * TILE + st.thread.x, st.block.x * TILE
    for j in range(st.thread.y, TILE, 8):
        if x < n and y + j < n:
            out[(y + j) * n + x] = tile[st.thread.x, j]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    n = options.n
    a = np.random.default_rng(1).random((n, n), dtype=np.float32)
    tiles = -(-n // TILE)
    shape = dict(grid=(tiles, tiles), block=(TILE, 8))
    arguments = dict(a=a.ravel(), out=st.empty(n * n, st.f32), n=n)
    for _ in range(options.repeat):
        outputs = [st.launch(naive, args=arguments, **shape).out]
        outputs += [st.launch(tiled, args=dict(arguments, PITCH=pitch), **shape).out for pitch in (TILE, TILE + 1)]
    assert all(np.array_equal(one.reshape(n, n), a.T) for one in outputs)
    print("three transposes of", n, "by", n, "are right")


if __name__ == "__main__":
    main()
