"""Kernels of Numba-CUDA with iterators, reshaped arrays, tuples of arrays, prints and conversions, compared with Python."""

# mypy: allow-untyped-defs, allow-untyped-calls

import numpy as np
from numba import cuda, types
from numba.cuda.misc.special import literal_unroll

TABLES = (np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0]), np.array([[1.0, 2.0], [3.0, 4.0]]))


@cuda.jit
def double(x, i):
    return 2 * x[i]


@cuda.jit("f8(f8)", device=True)
def half(x):
    return x / 2


@cuda.jit
def twice(x):
    x[0] = half(double(x, 0)) * 2


@cuda.jit
def iterate(x, y, out):
    for i, (a, b) in enumerate(zip(x, y)):  # noqa: B905 - Numba has no strict
        out[i] = i + a * b
    for row in range(2):
        for value in x.reshape(2, 3)[row]:
            out[6 + row] += value


@cuda.jit
def unroll(out):
    i = 0
    for table in literal_unroll(TABLES):
        out[i] = table.sum()
        i += 1  # noqa: SIM113 - literal_unroll is no iterator


@cuda.jit
def report(x, y, n):
    print(x > 1, "x", x, y > 1, n)


@cuda.jit("void(i4[::1], i4)")
def fill(out, value):
    out[cuda.grid(1)] = value


@cuda.jit
def with_type(out, dtype):
    tile = cuda.shared.array(10, dtype)
    tile[cuda.threadIdx.x] = cuda.threadIdx.x
    cuda.syncthreads()
    out[cuda.threadIdx.x] = tile[9 - cuda.threadIdx.x]


def main() -> None:
    x, y = np.arange(6) + 1, np.arange(6) * 2
    out = np.zeros(8, np.int64)
    iterate[1, 1](x, y, out)
    assert out.tolist() == [*(i + a * b for i, (a, b) in enumerate(zip(x, y, strict=True))), 6, 15]

    number = np.ones(1)
    twice[1, 1](number)
    assert number[0] == 2
    assert not any("simtbed" in text for text in twice.inspect_llvm().values())

    sums = np.zeros(3)
    unroll[1, 1](sums)
    assert sums.tolist() == [table.sum() for table in TABLES]

    report[1, 1](1.5, np.float32(0.25), np.uint64(2**63))
    cuda.synchronize()

    try:
        fill[1, 1](np.zeros(1, np.int32), 12.3)
    except TypeError as error:
        print(error)

    compiled = with_type.specialize(np.zeros(10, np.float32), types.float32)
    assert compiled.get_shared_mem_per_block() == 40
    try:  # Numba passes no types to kernels
        with_type[1, 10](np.zeros(10, np.float32), types.float32)
    except NotImplementedError as error:
        print(error)


if __name__ == "__main__":
    main()
