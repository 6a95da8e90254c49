"""k-means: each point takes the nearest centre, each block moves one centre to the mean of its points."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st
from scipy.cluster.vq import kmeans2

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
THREADS = 128


@st.kernel
def assign(points: st.Global[st.f32], centres: st.Global[st.f32], labels: st.Global[st.i32]) -> None:
    """labels[i] = the centre nearest to point i."""
    i = st.block.x * THREADS + st.thread.x
    if i < points.shape[0]:
        best, nearest = 0, math.inf
        for c in range(centres.shape[0]):
            distance = 0.0
            for d in range(points.shape[1]):
                distance += (points[i, d] - centres[c, d]) ** 2
            if distance < nearest:
                best, nearest = c, distance
        labels[i] = best


@st.kernel
def move(points: st.Global[st.f32], labels: st.Global[st.i32], centres: st.Global[st.f32]) -> None:
    """Each centre to the mean of the points that have its label. A block for each, a warp for each of its coordinates."""
    total, count = 0.0, 0
    for i in range(st.lane, points.shape[0], st.WARP_SIZE):
        if labels[i] == st.block.x:
            total += points[i, st.warp]
            count += 1
    for step in st.unroll(range(5)):
        total += st.shuffle_xor(total, 1 << step)
        count += st.shuffle_xor(count, 1 << step)
    if st.lane == 0 and count > 0:
        centres[st.block.x, st.warp] = total / st.f32(count)


def k_means(
    points: Floats, centres: Floats, steps: int, launch: Callable[..., st.Result] = st.launch
) -> tuple[Floats, Ints]:
    """The centres after some steps, and the label of each point in the last one."""
    count, width = points.shape
    labels: Ints = np.zeros(count, np.int32)
    for _ in range(steps):
        args = dict(points=points, centres=centres, labels=st.empty(count, st.i32))
        labels = launch(assign, grid=-(-count // THREADS), block=THREADS, args=args).labels
        args = dict(points=points, labels=labels, centres=centres)
        centres = launch(move, grid=len(centres), block=width * st.WARP_SIZE, args=args).centres
    return centres, labels


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from SciPy."""
    random = np.random.default_rng(21)
    points = (random.integers(0, 3, (300, 1)) * 4 + random.standard_normal((300, 2))).astype(np.float32)
    centres, labels = k_means(points, points[:4].copy(), 5, launch)
    expected, _ = kmeans2(points, points[:4], 5, minit="matrix")
    np.testing.assert_allclose(centres, expected, rtol=1e-4, atol=1e-4)
    assert labels.shape == (300,)


if __name__ == "__main__":
    check()
