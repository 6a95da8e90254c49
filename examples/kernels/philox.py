"""Philox 4x32-10, a random generator that counts: each thread computes its own numbers from its index."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Words = npt.NDArray[np.uint32]
THREADS = 128
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)


@st.device
def philox(
    a: st.u32, b: st.u32, c: st.u32, d: st.u32, low: st.u32, high: st.u32
) -> tuple[st.u32, st.u32, st.u32, st.u32]:
    """Four random words of a counter of four words and a key of two."""
    for _ in st.unroll(range(10)):
        a, b, c, d = (
            st.mulhi(c, MULTIPLIERS[1]) ^ b ^ low,
            c * MULTIPLIERS[1],
            st.mulhi(a, MULTIPLIERS[0]) ^ d ^ high,
            a * MULTIPLIERS[0],
        )
        low += STEPS[0]
        high += STEPS[1]
    return a, b, c, d


@st.kernel
def fill(out: st.Global[st.u32], low: st.u32, high: st.u32) -> None:
    """Row i of out = the four words of counter i."""
    i = st.block.x * THREADS + st.thread.x
    if i < out.shape[0]:
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = philox(st.u32(i), 0, 0, 0, low, high)


def words(count: int, key: tuple[int, int], launch: Callable[..., st.Result] = st.launch) -> Words:
    """The words of the counters from 0 on, four a row."""
    args = dict(out=st.empty((count, 4), st.u32), low=key[0], high=key[1])
    output: Words = launch(fill, grid=-(-count // THREADS), block=THREADS, args=args).out
    return output


def reference(count: int, key: tuple[int, int]) -> Words:
    """The same by NumPy, in 64 bits."""
    a, b, c, d = np.arange(count, dtype=np.uint64), *np.zeros((3, count), np.uint64)
    low, high = (np.uint64(part) for part in key)
    word, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        first, second = a * np.uint64(MULTIPLIERS[0]), c * np.uint64(MULTIPLIERS[1])
        a, b, c, d = (second >> half) ^ b ^ low, second & word, (first >> half) ^ d ^ high, first & word
        low, high = (low + np.uint64(STEPS[0])) & word, (high + np.uint64(STEPS[1])) & word
    return np.stack([a, b, c, d], axis=1).astype(np.uint32)


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raises AssertionError unless it is what NumPy computes, and what the authors of Philox published."""
    np.testing.assert_array_equal(words(300, (11, 22), launch), reference(300, (11, 22)))
    assert words(1, (0, 0), launch)[0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


if __name__ == "__main__":
    check()
