"""Kernels of Numba-CUDA as users write them, with arguments and the results of NumPy. Numba-CUDA is imported: run under the hook."""

# mypy: allow-untyped-defs
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, float32, float64, int32
from numba.cuda.random import create_xoroshiro128p_states, xoroshiro128p_uniform_float32

TILE = 8
THREADS = 64


@cuda.jit
def vector_add(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


@cuda.jit
def scaled_sum(alpha, x, y):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        y[i] = alpha * x[i] + y[i]


@cuda.jit
def tiled_matmul(a, b, c):
    tile_a = cuda.shared.array((TILE, TILE), float32)
    tile_b = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for step in range((a.shape[1] + TILE - 1) // TILE):
        tile_a[ty, tx] = 0
        tile_b[ty, tx] = 0
        if row < a.shape[0] and tx + step * TILE < a.shape[1]:
            tile_a[ty, tx] = a[row, tx + step * TILE]
        if column < b.shape[1] and ty + step * TILE < b.shape[0]:
            tile_b[ty, tx] = b[ty + step * TILE, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[ty, k] * tile_b[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@cuda.jit
def block_sum(x, out):
    partial = cuda.shared.array(THREADS, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    partial[t] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    width = cuda.blockDim.x // 2
    while width > 0:
        if t < width:
            partial[t] += partial[t + width]
        cuda.syncthreads()
        width //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


@cuda.jit
def histogram(values, low, high, counts):
    i = cuda.grid(1)
    if i >= values.size:
        return
    bin_width = (high - low) / counts.shape[0]
    n = int32((values[i] - low) / bin_width)
    if n < 0 or n >= counts.shape[0]:
        return
    cuda.atomic.add(counts, n, 1)


@cuda.jit(device=True)
def escape_time(c, limit):
    z = 0j
    for n in range(limit):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag >= 4.0:
            return n
    return limit


@cuda.jit
def mandelbrot(left, top, dx, dy, image, limit):
    column, row = cuda.grid(2)
    if row < image.shape[0] and column < image.shape[1]:
        image[row, column] = escape_time(complex(left + column * dx, top + row * dy), limit)


@cuda.jit
def stencil(a, out):
    i, j = cuda.grid(2)
    rows, columns = a.shape
    if 1 <= i < rows - 1 and 1 <= j < columns - 1:
        window = a[i - 1 : i + 2, j - 1 : j + 2]
        total = 0.0
        for p in range(3):
            for q in range(3):
                total += window[p, q]
        out[i, j] = math.sqrt(total / 9.0)


@cuda.jit
def warp_sum(x, out):
    i = cuda.grid(1)
    value = x[i]
    for offset in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, offset)
    if cuda.laneid == 0:
        out[i // 32] = value


@cuda.jit
def estimate_pi(states, tries, out):
    i = cuda.grid(1)
    if i < out.size:
        inside = 0
        for _ in range(tries):
            x = xoroshiro128p_uniform_float32(states, i)
            y = xoroshiro128p_uniform_float32(states, i)
            if x * x + y * y <= 1.0:
                inside += 1
        out[i] = 4.0 * inside / tries


PARTICLE = np.dtype([("x", np.float32), ("n", np.int32), ("y", np.float64)], align=True)


@cuda.jit
def move_particles(particles, out):
    i = cuda.grid(1)
    if i < particles.size:
        particles[i].y = particles[i].x * 2.0
        particles[i]["n"] += 1
        out[i] = particles[i].y + particles[i].n


@cuda.jit
def floor_and_wrap(a, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        items = (a[-1 - i], a[i] // 7, a[i] % -7)
        out[i, 0] = items[0]
        out[i, 1] = items[1]
        out[i, 2] = items[2]


@dataclass(frozen=True)
class Case:
    """One launch. arguments: host arrays and numbers; view: applied to an array on the device, by its position.

    outputs: positions of the arrays to compare. expected: their values, in the same order. tolerance: relative.
    """

    kernel: Any
    grid: Any
    block: Any
    arguments: tuple[Any, ...]
    outputs: tuple[int, ...]
    expected: tuple[Any, ...]
    tolerance: float = 0.0
    views: dict[int, Callable[[Any], Any]] | None = None

    def run(self) -> list[Any]:
        """Return the outputs of a launch on device arrays."""
        arrays = [cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in self.arguments]
        for position, view in (self.views or {}).items():
            arrays[position] = view(arrays[position])
        self.kernel[self.grid, self.block](*arrays)
        return [arrays[n].copy_to_host() for n in self.outputs]

    def check(self) -> None:
        """Launch and compare. Raises AssertionError."""
        for result, expected in zip(self.run(), self.expected, strict=True):
            same = np.array_equal if not self.tolerance else (lambda a, b: np.allclose(a, b, self.tolerance, 0))
            assert same(result, expected), f"{self.kernel.py_func.__name__}: {result}, expected {expected}"


def cases(seed: int = 1) -> dict[str, Case]:
    """Return a launch of each kernel by its name."""
    random = np.random.default_rng(seed)
    a, b = (random.random(300).astype(np.float32) for _ in range(2))
    left, right = random.random((13, 21)).astype(np.float32), random.random((21, 10)).astype(np.float32)
    x = random.integers(0, 1000, 500).astype(np.float64)
    wide = random.random((24, 36))
    window = np.lib.stride_tricks.sliding_window_view(wide[::2, 1::3], (3, 3)).sum((2, 3))
    averages = np.zeros((12, 12))
    averages[1:-1, 1:-1] = np.sqrt(window / 9)
    warps = random.integers(-50, 50, 256).astype(np.int32)
    numbers = random.integers(-1000, 1000, 100)
    particles = np.zeros(50, PARTICLE)
    particles["x"], particles["n"] = random.integers(0, 9, 50), np.arange(50)
    moved = particles.copy()
    moved["y"], moved["n"] = 2 * moved["x"], moved["n"] + 1
    bins = ((a.astype(np.float64) - 0.125) / (0.75 / 16)).astype(np.int32)
    counts = np.bincount(bins[(bins >= 0) & (bins < 16)], minlength=16)
    states = create_xoroshiro128p_states(64, seed=7).copy_to_host()
    return {
        "vector add": Case(vector_add, 5, 64, (a, b, np.zeros_like(a)), (2,), (a + b,)),
        "grid-stride loop": Case(scaled_sum, 2, 64, (2.0, x, x), (2,), (3 * x,)),
        "shared-memory matmul": Case(
            tiled_matmul, (2, 2), (TILE, TILE), (left, right, np.zeros((13, 10), np.float32)), (2,), (left @ right,), 1e-5
        ),
        "block reduction": Case(block_sum, 8, THREADS, (x, np.zeros(1)), (1,), (np.array([x.sum()]),)),
        "histogram": Case(histogram, 5, 64, (a, 0.125, 0.875, np.zeros(16, np.int32)), (3,), (counts,)),
        "mandelbrot": Case(
            mandelbrot, (3, 2), (8, 8), (-2.0, -1.0, 0.125, 0.125, np.zeros((16, 24), np.int32), 40), (4,), (_image(),)
        ),
        "stencil on a strided view": Case(
            stencil, (2, 2), (8, 8), (wide, np.zeros((12, 12))), (1,), (averages,), 1e-14,
            {0: lambda array: array[::2, 1::3]},
        ),
        "warp shuffle": Case(warp_sum, 2, 128, (warps, np.zeros(8, np.int32)), (1,), (warps.reshape(8, 32).sum(1),)),
        "random numbers": Case(estimate_pi, 1, 64, (states, 200, np.zeros(64)), (2,), (np.full(64, math.pi),), 0.2),
        "records": Case(
            move_particles, 1, 64, (particles, np.zeros(50)), (0, 1), (moved, moved["y"] + moved["n"])
        ),
        "negative index, floor division": Case(
            floor_and_wrap, 1, 128, (numbers, np.zeros((100, 3), np.int64)), (1,),
            (np.stack([numbers[::-1], numbers // 7, numbers % -7], 1),),
        ),
    }  # fmt: skip


def _image() -> Any:
    points = [[complex(-2 + 0.125 * column, -1 + 0.125 * row) for column in range(24)] for row in range(16)]
    return np.array([[escape_time.py_func(point, 40) for point in line] for line in points], np.int32)


if __name__ == "__main__":
    for title, case in cases().items():
        if title in sys.argv[1:]:  # not wanted
            continue
        case.check()
        print("equal:", title)
