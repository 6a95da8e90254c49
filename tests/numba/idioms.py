"""Idioms of Numba-CUDA programs, with the results of NumPy. Run under the hook."""

# mypy: allow-untyped-defs
import numpy as np
from numba import cuda, float32

N, THREADS = 150, 64


@cuda.jit
def members(x, values, out):
    """Iterate over the elements of an array."""
    i = cuda.grid(1)
    if i < x.size:
        for value in values:
            if x[i] == value:
                out[i] = 1
                break


@cuda.jit
def row_sums(x, out):
    """Iterate over the rows of an array, here a view with strides."""
    i = cuda.grid(1)
    if i == 0:
        for number, row in enumerate(x):
            for value in row:
                out[number] += value


@cuda.jit
def differences(x, n, first, out):
    """Return in two places before a barrier."""
    tile = cuda.shared.array(THREADS, float32)
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    if i >= n:
        return
    if cuda.blockIdx.x < first:
        return
    tile[t] = x[i]
    cuda.syncthreads()
    out[i] = tile[t] - tile[max(t - 1, 0)]


def check() -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, N).astype(np.float32)
    values = np.array([2, 5, 7], np.float32)
    out = np.zeros(N, np.int8)
    members[3, THREADS](x, values, out)
    assert np.array_equal(out, np.isin(x, values))

    matrix = rng.integers(0, 99, (6, 8)).astype(np.int64)
    for view in (matrix, matrix[::2, 1::3], matrix.T):
        sums = np.zeros(len(view), np.int64)
        row_sums[1, 32](cuda.to_device(matrix)[::2, 1::3] if view.shape == (3, 3) else cuda.to_device(view), sums)
        assert np.array_equal(sums, view.sum(1))

    for first in (0, 1):
        result = np.zeros(N, np.float32)
        differences[3, THREADS](x, N, first, result)
        expected = np.diff(x, prepend=x[0])
        expected[::THREADS] = 0
        expected[: first * THREADS] = 0
        assert np.array_equal(result, expected)


if __name__ == "__main__":
    check()
    print("equal")
