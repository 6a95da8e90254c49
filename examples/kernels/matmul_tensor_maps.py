"""Product of two matrices by a warpgroup; the hardware copies its tiles ahead of the products (TMA).

Two tiles of each matrix are in shared memory. The copies of the next pair run while the warpgroup multiplies a pair.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import simtbed as st

Matrix = npt.NDArray[Any]
SIDE = 64
TILE = SIDE * SIDE
STAGES = 2


@st.kernel
def pipelined_product(a: st.TensorMap[st.f16], b: st.TensorMap[st.f16], c: st.Global[st.f32]) -> None:
    """c = a @ b. The block is a warpgroup. Rows, columns and the inner dimension are multiples of SIDE."""
    tiles = st.shared(st.f16, STAGES * 2 * TILE)  # of a, then of b, for each stage
    full = st.shared(st.u64, STAGES)
    row, column, steps = SIDE * st.block.y, SIDE * st.block.x, a.shape[1] // SIDE
    if st.thread.x == 0:
        for stage in range(STAGES):
            st.mbarrier_init(full, stage, 1)
        st.fence_async()
    st.sync()
    total = st.registers(st.f32, SIDE // 2)
    for n in st.unroll(range(SIDE // 2)):
        total[n] = st.f32(0)
    for ahead in range(steps + STAGES - 1):
        if st.thread.x == 0 and ahead < steps:
            place = 2 * TILE * (ahead % STAGES)
            st.mbarrier_arrive_expect_tx(full, ahead % STAGES, 2 * 2 * TILE)
            st.tensor_copy(tiles, place, a, (row, SIDE * ahead), full, ahead % STAGES)
            st.tensor_copy(tiles, place + TILE, b, (SIDE * ahead, column), full, ahead % STAGES)
        step = ahead - (STAGES - 1)
        if step >= 0:
            while not st.mbarrier_try_wait_parity(full, step % STAGES, step // STAGES % 2):
                pass
            first = 2 * 2 * TILE * (step % STAGES)
            st.wgmma_fence()
            for k in st.unroll(range(SIDE // 16)):
                rows = st.matrix_descriptor(first + 32 * k, leading=16, stride=1024, swizzle=128)
                columns = st.matrix_descriptor(first + 2 * TILE + 2048 * k, leading=8192, stride=1024, swizzle=128)
                st.wgmma(total, (tiles, rows), (tiles, columns), "m64n64k16", "f16", transposed="b")
            st.wgmma_commit()
            st.wgmma_wait()
        st.sync()  # all warps have read the tiles before the next copies to them
    y, x = row + st.warp * 16 + st.lane // 4, column + st.lane % 4 * 2
    for n in st.unroll(range(SIDE // 2)):
        c[y + n // 2 % 2 * 8, x + n // 4 * 8 + n % 2] = total[n]


def product(a: Matrix, b: Matrix, launch: Callable[..., st.Result] = st.launch) -> Matrix:
    """a @ b of halves, as f32."""
    rows, columns = a.shape[0], b.shape[1]
    maps = {name: st.tensor_map(x, box=(SIDE, SIDE), swizzle=128) for name, x in (("a", a), ("b", b))}
    args = dict(**maps, c=st.empty((rows, columns), st.f32))
    output: Matrix = launch(pipelined_product, grid=(columns // SIDE, rows // SIDE), block=128, args=args).c
    return output


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    random = np.random.default_rng(2)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((64, 320), (320, 128)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(product(a, b, launch), exact, rtol=1e-4, atol=1e-3)


if __name__ == "__main__":
    check()
