"""Products of two matrices by the tensor cores, from tiles of halves in shared memory.

A warp computes 16 x 8 elements, a warpgroup 64 x 64.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st

Matrix = npt.NDArray[Any]
TILE = 16


@st.kernel
def product_of_halves(a: st.Global[st.f16], b: st.Global[st.f16], c: st.Global[st.f32]) -> None:
    """c = a @ b. The block is two warps. Rows, columns and the inner dimension are multiples of TILE."""
    tile_a = st.shared(st.f16, TILE, TILE + 8)  # with 8 more, the 8 rows of a matrix are in different banks
    tile_b = st.shared(st.f16, TILE, TILE + 8)
    row, column = st.block.y * TILE, st.block.x * TILE
    total = st.float4(0.0, 0.0, 0.0, 0.0)
    for start in range(0, a.shape[1], TILE):
        for i in range(st.thread.x, TILE * TILE, 64):
            y, x = i // TILE, i % TILE
            tile_a[y, x] = a[row + y, start + x]
            tile_b[y, x] = b[start + y, column + x]
        st.sync()
        rows = st.load_matrix(tile_a, (st.lane % 16, st.lane // 16 * 8))
        columns = st.load_matrix(tile_b, (st.lane % 16, st.warp * 8), count=2, transposed=True)
        total = st.mma(rows, columns, total, shape="m16n8k16", type="f16")
        st.sync()
    y, x = row + st.lane // 4, column + st.warp * 8 + st.lane % 4 * 2
    c[y, x], c[y, x + 1] = total.x, total.y
    c[y + 8, x], c[y + 8, x + 1] = total.z, total.w


SIDE = 64


@st.kernel
def product_by_warpgroups(a: st.Global[st.f16], b: st.Global[st.f16], c: st.Global[st.f32]) -> None:
    """c = a @ b. The block is a warpgroup. Rows, columns and the inner dimension are multiples of SIDE."""
    tile_a = st.shared(st.f16, SIDE * SIDE)  # rows of 128 bytes, their chunks of 8 elements exchanged by row
    tile_b = st.shared(st.f16, SIDE * SIDE)
    row, column = st.block.y * SIDE, st.block.x * SIDE
    total = st.registers(st.f32, SIDE // 2)
    for n in st.unroll(range(SIDE // 2)):
        total[n] = st.f32(0)
    for start in range(0, a.shape[1], SIDE):
        for i in range(st.thread.x, SIDE * SIDE, 128):
            y, x = i // SIDE, i % SIDE
            place = SIDE * y + (x ^ (y % 8 * 8))
            tile_a[place] = a[row + y, start + x]
            tile_b[place] = b[start + y, column + x]
        st.fence_async()
        st.sync()
        st.wgmma_fence()
        for step in st.unroll(range(SIDE // 16)):
            rows = st.matrix_descriptor(32 * step, leading=16, stride=1024, swizzle=128)
            columns = st.matrix_descriptor(2048 * step, leading=8192, stride=1024, swizzle=128)
            st.wgmma(total, (tile_a, rows), (tile_b, columns), "m64n64k16", "f16", transposed="b")
        st.wgmma_commit()
        st.wgmma_wait()
        st.sync()
    y, x = row + st.warp * 16 + st.lane // 4, column + st.lane % 4 * 2
    for n in st.unroll(range(SIDE // 2)):
        c[y + n // 2 % 2 * 8, x + n // 4 * 8 + n % 2] = total[n]


def product_of_large(a: Matrix, b: Matrix, launch: Callable[..., st.Result] = st.launch) -> Matrix:
    """a @ b of halves, as f32, by warpgroups."""
    rows, columns = a.shape[0], b.shape[1]
    args = dict(a=a, b=b, c=st.empty((rows, columns), st.f32))
    output: Matrix = launch(product_by_warpgroups, grid=(columns // SIDE, rows // SIDE), block=128, args=args).c
    return output


def product(a: Matrix, b: Matrix, launch: Callable[..., st.Result] = st.launch) -> Matrix:
    """a @ b of halves, as f32."""
    rows, columns = a.shape[0], b.shape[1]
    args = dict(a=a, b=b, c=st.empty((rows, columns), st.f32))
    output: Matrix = launch(product_of_halves, grid=(columns // TILE, rows // TILE), block=64, args=args).c
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    random = np.random.default_rng(2)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((48, 64), (64, 32)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(product(a, b, launch), exact, rtol=1e-4, atol=1e-4)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((64, 128), (128, 128)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(product_of_large(a, b, launch), exact, rtol=1e-4, atol=1e-3)


if __name__ == "__main__":
    check()
