"""Transpose a matrix by three kernels, and compare their counters.

The tutorial (docs/tutorial.md) explains every step.
"""

import numpy as np
import simtbed as st

N, TILE = 256, 32


@st.kernel
def naive(a: st.Global[st.f32], out: st.Global[st.f32], N: st.Const, TILE: st.Const) -> None:
    """Each thread copies one element: rows are read, columns are written."""
    row = st.block.y * TILE + st.thread.y
    column = st.block.x * TILE + st.thread.x
    out[column * N + row] = a[row * N + column]


@st.kernel
def tiled(a: st.Global[st.f32], out: st.Global[st.f32], N: st.Const, TILE: st.Const, PITCH: st.Const) -> None:
    """Each block transposes one tile in shared memory: rows are read, rows are written. PITCH: words per row."""
    tile = st.shared(st.f32, TILE, PITCH)
    x, y = st.thread.x, st.thread.y
    tile[y, x] = a[(st.block.y * TILE + y) * N + st.block.x * TILE + x]
    st.sync()
    out[(st.block.x * TILE + y) * N + st.block.y * TILE + x] = tile[x, y]


def report(name: str, result: st.Result, expected: np.ndarray) -> None:
    """Print the counters that differ between the kernels."""
    assert np.array_equal(result.out, expected)
    total = result.counters.total
    sectors = total("global_load_sectors"), total("global_store_sectors")
    print(f"{name:<8}{sectors[0]:>8,}{sectors[1]:>8,}{total('shared_load_conflicts'):>10,}")


def main() -> None:
    a = np.arange(N * N, dtype=np.float32)
    expected = a.reshape(N, N).T.ravel()
    how = dict(grid=(N // TILE, N // TILE), block=(TILE, TILE))
    print("         loaded  stored conflicts")
    for name, kernel, consts in (
        ("naive", naive, {}),
        ("tiled", tiled, dict(PITCH=TILE)),
        ("padded", tiled, dict(PITCH=TILE + 1)),
    ):
        args = dict(a=a, out=st.empty(N * N, st.f32), N=N, TILE=TILE, **consts)
        report(name, st.launch(kernel, args=args, **how), expected)


if __name__ == "__main__":
    main()
