"""Radix sort, four bits a pass: count the digits of each block, scan the counts, move each key to its place."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import simtbed as st

Keys = npt.NDArray[np.uint32]
THREADS = 128
WARPS = THREADS // st.WARP_SIZE
DIGITS = 16


@st.device
def digit_of(key: st.u32, shift: st.u32) -> st.i32:
    """The four bits from bit `shift` on."""
    return st.i32((key >> shift) & (DIGITS - 1))


@st.kernel
def count(keys: st.Global[st.u32], tallies: st.Global[st.i32], shift: st.u32) -> None:
    """tallies[d, b] = keys of block b that have digit d."""
    table = st.shared(st.i32, DIGITS)
    if st.thread.x < DIGITS:
        table[st.thread.x] = 0
    st.sync()
    i = st.block.x * THREADS + st.thread.x
    if i < len(keys):
        st.atomic_add(table, digit_of(keys[i], shift), 1)
    st.sync()
    if st.thread.x < DIGITS:
        tallies[st.thread.x, st.block.x] = table[st.thread.x]


@st.kernel
def scan(tallies: st.Global[st.i32]) -> None:
    """tallies = exclusive prefix sums in row-major order. One warp."""
    total = 0
    for d in range(DIGITS):
        for start in range(0, tallies.shape[1], st.WARP_SIZE):
            b = start + st.lane
            own = tallies[d, b] if b < tallies.shape[1] else 0
            value = own
            for step in st.unroll(range(5)):
                before = st.shuffle_up(value, 1 << step)
                if st.lane >= 1 << step:
                    value += before
            if b < tallies.shape[1]:
                tallies[d, b] = total + value - own
            total += st.shuffle(value, st.WARP_SIZE - 1)


@st.kernel
def move(keys: st.Global[st.u32], places: st.Global[st.i32], out: st.Global[st.u32], shift: st.u32) -> None:
    """out = keys in the order of their digits; keys of one digit keep their order."""
    of_warps = st.shared(st.i32, WARPS, DIGITS)
    if st.lane < DIGITS:
        of_warps[st.warp, st.lane] = 0
    st.syncwarp()
    i = st.block.x * THREADS + st.thread.x
    digit = digit_of(keys[i], shift) if i < len(keys) else DIGITS
    alike = st.match_any(digit)
    rank = st.popcount(alike & st.lanemask_lt())
    if rank == 0 and digit < DIGITS:
        of_warps[st.warp, digit] = st.popcount(alike)
    st.sync()
    if i < len(keys):
        place = places[digit, st.block.x] + rank
        for w in range(st.warp):
            place += of_warps[w, digit]
        out[place] = keys[i]


def radix_sorted(keys: Keys, launch: Callable[..., st.Result] = st.launch) -> Keys:
    """The keys in ascending order."""
    blocks = -(-len(keys) // THREADS)
    for shift in range(0, 32, 4):
        args = dict(keys=keys, tallies=st.empty((DIGITS, blocks), st.i32), shift=shift)
        tallies = launch(count, grid=blocks, block=THREADS, args=args).tallies
        places = launch(scan, grid=1, block=st.WARP_SIZE, args=dict(tallies=tallies)).tallies
        args = dict(keys=keys, places=places, out=st.empty(len(keys), st.u32), shift=shift)
        keys = launch(move, grid=blocks, block=THREADS, args=args).out
    return keys


def check(launch: Callable[..., st.Result] = st.launch) -> None:
    """Raise AssertionError if the result differs from NumPy."""
    keys = np.random.default_rng(8).integers(0, 2**32, 500, np.uint32)
    np.testing.assert_array_equal(radix_sorted(keys, launch), np.sort(keys))


if __name__ == "__main__":
    check()
