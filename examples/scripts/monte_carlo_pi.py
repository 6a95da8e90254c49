"""Pi from random points in a square, with a generator in each thread, launched from several host threads."""

import argparse
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import simtbed as st

THREADS, BLOCKS = 128, 8


@st.device
def next_random(state: st.u32) -> st.u32:
    """xorshift32."""
    state ^= state << 13
    state ^= state >> 17
    state ^= state << 5
    return state


@st.kernel
def throw(hits: st.Global[st.u32], points: st.i32, seed: st.u32) -> None:
    """hits[0] += points of this launch inside the quarter of a disc."""
    i = st.u32(st.block.x * THREADS + st.thread.x)
    state = (i + 1) * 2654435761 ^ seed
    inside = st.u32(0)
    for _ in range(points):
        state = next_random(state)
        x = st.f32(state >> 8) * (1.0 / 16777216.0)
        state = next_random(state)
        y = st.f32(state >> 8) * (1.0 / 16777216.0)
        if x * x + y * y <= 1.0:
            inside += 1
    for step in st.unroll(range(5)):
        inside += st.shuffle_xor(inside, 1 << step)
    if st.lane == 0:
        st.atomic_add(hits, 0, inside)


def piece(seed: int, points: int) -> int:
    args = dict(hits=st.zeros(1, st.u32), points=points, seed=np.uint32(seed))
    return int(st.launch(throw, grid=BLOCKS, block=THREADS, args=args).hits[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20, help="of each thread")
    parser.add_argument("--pieces", type=int, default=4)
    options = parser.parse_args()
    with ThreadPoolExecutor(2) as pool:
        hits = sum(pool.map(lambda n: piece(1234567 * (n + 1), options.points), range(options.pieces)))
    pi = 4 * hits / (options.pieces * options.points * BLOCKS * THREADS)
    assert abs(pi - np.pi) < 0.05, pi
    print(f"pi is about {pi:.4f}")


if __name__ == "__main__":
    main()
