"""Kernels of Numba-CUDA, each with features that `programs.py` lacks, and their results by NumPy. Run under the hook."""

# mypy: allow-untyped-defs
import math
from typing import Any

import numpy as np
from numba import cuda, float32, int32, int64

TABLE = np.array([1.5, -2.0, 4.0, 0.25])
POINT = np.dtype([("x", np.float64), ("n", np.int32)], align=True)


@cuda.jit
def transpose(a, out):
    tile = cuda.shared.array((8, 9), float32)
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 8 + cuda.threadIdx.x
    y = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    if y < out.shape[0] and x < out.shape[1]:
        out[y, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


@cuda.jit
def atomics(x, totals, lock):
    i = cuda.grid(1)
    cuda.atomic.add(totals, 0, x[i])
    cuda.atomic.max(totals, 1, x[i])
    cuda.atomic.min(totals, 2, x[i])
    cuda.atomic.xor(totals, 3, x[i])
    if cuda.atomic.cas(lock, 0, -1, i) == -1:
        cuda.atomic.exch(totals, 4, 77)


@cuda.jit(device=True)
def divided(a, b):
    if b == 0:
        return 0, a
    return a // b, a % b


@cuda.jit
def pairs(a, b, out):
    i = cuda.grid(1)
    quotient, rest = divided(a[i], b[i])
    out[i, 0], out[i, 1] = quotient, rest


@cuda.jit
def warps(x, out):
    i = cuda.grid(1)
    value = x[i]
    for mask in (16, 8, 4, 2, 1):
        other = cuda.shfl_xor_sync(0xFFFFFFFF, value, mask)
        value = max(value, other)
    votes = cuda.ballot_sync(0xFFFFFFFF, x[i] > 0)
    out[i] = value + cuda.popc(votes)


@cuda.jit
def reversed_blocks(x, out):
    buffer = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    buffer[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = buffer[cuda.blockDim.x - 1 - t]


@cuda.jit
def medians(x, out):
    window = cuda.local.array(5, float32)
    i = cuda.grid(1)
    if i >= out.size:
        return
    for k in range(5):
        value = x[i + k]
        j = k
        while j > 0 and window[j - 1] > value:
            window[j] = window[j - 1]
            j -= 1
        window[j] = value
    out[i] = window[2]


@cuda.jit
def rotated(z, factor, out):
    i = cuda.grid(1)
    out[i] = z[i] * factor + factor.real


@cuda.jit
def table_values(x, out):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    out[i] = table[x[i] & 3]


@cuda.jit
def shifted(point, out):
    i = cuda.grid(1)
    out[i] = point.x + i * point.n


@cuda.jit
def bits(x, out):
    i = cuda.grid(1)
    out[i] = int64(cuda.popc(x[i])) + 100 * cuda.clz(x[i]) + 10000 * (cuda.brev(x[i]) & 0xFF)


@cuda.jit
def volume(a, out):
    i, j, k = cuda.grid(3)
    if i < a.shape[0] and j < a.shape[1] and k < a.shape[2]:
        out[k, j, i] = math.sqrt(abs(a[i, j, k])) if a[i, j, k] < 0 else a[i, j, k] ** 2


@cuda.jit
def first_failures(x, limits, out):
    low, high = limits
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        out[i] = -1
        for j in range(x.shape[1]):
            if x[i, j] < low:
                continue
            if x[i, j] > high:
                out[i] = j
                break
        else:
            out[i] = x.shape[1]


def same(name: str, result: Any, expected: Any) -> None:
    assert np.array_equal(result, expected), f"{name}: {result}, expected {expected}"
    print("equal:", name)


def main() -> None:
    """Launch all kernels, compare, and print their names."""
    random = np.random.default_rng(11)
    a: Any = random.random((13, 21)).astype(np.float32)
    out: Any = np.zeros((21, 13), np.float32)
    transpose[(3, 2), (8, 8)](a, out)
    same("transpose", out, a.T)

    x = random.integers(-1000, 1000, 128).astype(np.int32)
    totals, lock = np.zeros(5, np.int32), np.full(1, -1, np.int32)
    atomics[2, 64](x, totals, lock)
    same("atomics", totals, [x.sum(), max(0, x.max()), min(0, x.min()), np.bitwise_xor.reduce(x), 77])

    b, out = random.integers(-3, 4, 128).astype(np.int32), np.zeros((128, 2), np.int32)
    pairs[2, 64](x, b, out)
    divisor = np.where(b == 0, 1, b)
    same("pairs", out, np.stack([np.where(b == 0, 0, x // divisor), np.where(b == 0, x, x % divisor)], 1))

    out = np.zeros_like(x)
    warps[2, 64](x, out)
    rows = x.reshape(-1, 32)
    same("warps", out, np.repeat(rows.max(1) + (rows > 0).sum(1), 32))

    out = np.zeros_like(x)
    reversed_blocks[2, 64, 0, 64 * 4](x, out)
    same("reversed_blocks", out, x.reshape(2, 64)[:, ::-1].ravel())

    values, out = random.random(104).astype(np.float32), np.zeros(100, np.float32)
    medians[2, 64](values, out)
    same("medians", out, np.median(np.lib.stride_tricks.sliding_window_view(values, 5), axis=1))

    z, out = np.arange(64) + 1j * np.arange(64)[::-1], np.zeros(64, np.complex128)
    rotated[1, 64](z, 1 - 2j, out)
    same("rotated", out, z * (1 - 2j) + 1)

    out = np.zeros(128)
    table_values[2, 64](x, out)
    same("table_values", out, TABLE[x & 3])

    out, point = np.zeros(64), np.array([(0.5, 3)], POINT)
    shifted[1, 64](point[0], out)
    same("shifted", out, 0.5 + 3 * np.arange(64))

    words, out = random.integers(0, 2**32, 64).astype(np.uint32), np.zeros(64, np.int64)
    bits[1, 64](words, out)
    texts = [f"{word:032b}" for word in words]
    same("bits", out, [t.count("1") + 100 * t.find("1") + 10000 * int(t[::-1][-8:], 2) for t in texts])

    a, out = random.normal(size=(5, 6, 7)), np.zeros((7, 6, 5))
    volume[(2, 2, 2), (4, 4, 4)](a, out)
    same("volume", out, np.where(a < 0, np.sqrt(abs(a)), a * a).T)

    a, out = random.random((50, 40)).astype(np.float32), np.zeros(50, np.int32)
    first_failures[2, 16](a, (np.float32(0.25), np.float32(0.97)), out)
    above = a > np.float32(0.97)
    same("first_failures", out, np.where(above.any(1), above.argmax(1), 40))


if __name__ == "__main__":
    main()
