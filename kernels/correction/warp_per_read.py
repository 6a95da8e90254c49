"""The paper's Algorithm 2: one warp per read, lane v for position v of the current k-mer.

All lanes query the same window at once; if it is weak, K of the 32 lanes vote, which gives the paper's warp execution efficiency of
65.7 % at K = 21. The maximum of the votes is found through a buffer in shared memory or, with SHUFFLE (the paper's future work), by
shuffles. Lanes call syncwarp before they read other lanes' writes: warps do not execute in lockstep since compute capability 7.0.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, Global, Shared, i32, int2, u8, u32, u64

from .filters import solid
from .hashes import letter_of
from .rules import span_of, votes_for

FARTHEST = (1 << 26) - 1
"""The lower bits of a rank are FARTHEST - position, so that the first of several equal positions has the largest rank."""


@st.device
def rank_of(votes: Array[u8], ballots: i32, length: i32) -> i32:
    """Of the positions lane, lane + 32, ...: votes * 2^26 + (FARTHEST - position) of the best cell."""
    best = 0
    for at in range(st.lane, length, 32):
        for column in st.unroll(range(4)):
            best = max(best, (i32(votes[ballots + at * 4 + column]) << 26) | (FARTHEST - at))
    return best


@st.device
def only_base(votes: Array[u8], cells: i32, most: i32) -> i32:
    """Return the code of the only cell of a position's four with `most` votes; -1 if there are several."""
    base, equal = -1, 0
    for column in st.unroll(range(4)):
        if i32(votes[cells + column]) == most:
            base = column
            equal += 1
    return base if equal == 1 else -1


@st.device
def largest_by_shuffle(mine: i32) -> i32:
    best = mine
    distance = 16
    while distance > 0:
        best = max(best, st.shuffle_xor(best, distance))
        distance //= 2
    return best


@st.device
def largest_by_buffer(mine: i32, box: Shared[i32]) -> i32:
    """box: 32 elements a warp."""
    at = st.warp * 32 + st.lane
    box[at] = mine
    distance = 16
    while distance > 0:
        st.syncwarp()
        if st.lane < distance:
            box[at] = max(box[at], box[at + distance])
        distance //= 2
    st.syncwarp()
    best = box[st.warp * 32]
    st.syncwarp()
    return best


@st.device
def weak_windows(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, windows: i32, chunk: i32, K: Const,
    FILTER: Const,
) -> u32:  # fmt: skip
    """Bit i: window chunk + i exists and is not solid. Each lane queries one."""
    p = chunk + st.lane
    weak = False
    if p < windows:
        weak = not solid(keys, bits, size, letters, first + p, -1, u8(0), K, FILTER)
    return u32(st.ballot(weak))


@st.device
def all_solid(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, windows: i32, K: Const, FILTER: Const
) -> bool:  # fmt: skip
    for chunk in range(0, windows, 32):  # noqa: SIM110
        if weak_windows(keys, bits, size, letters, first, windows, chunk, K, FILTER) != 0:
            return False
    return True


@st.device
def first_bit(bits: u32) -> i32:
    """Return the index of the lowest bit set."""
    return 31 - st.clz(bits & (~bits + 1))


@st.device
def trimmed(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, max_trim: i32, K: Const,
    FILTER: Const,
) -> int2:  # fmt: skip
    """The first run of solid windows within the limits of trimming; (0, 0) for none."""
    windows = length - K + 1
    begin, end = -1, windows
    for chunk in range(0, windows, 32):
        weak = weak_windows(keys, bits, size, letters, first, windows, chunk, K, FILTER)
        there = min(windows - chunk, 32)
        if begin < 0:
            good = ~weak & (u32(0xFFFFFFFF) >> u32(32 - there))
            if good != 0:
                begin = chunk + first_bit(good)
                weak &= ~u32(0) << u32(begin - chunk)
        if begin >= 0 and weak != 0:
            end = chunk + first_bit(weak)
            break
    if begin < 0 or max_trim < 0:
        return int2(0, 0)
    return span_of(begin, end + K - 1, length, max_trim)


@st.device
def corrected(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, votes: Array[u8],
    ballots: i32, box: Shared[i32], min_votes: i32, max_trim: i32, K: Const, FILTER: Const, UNROLL: Const, SHUFFLE: Const,
) -> int2:  # fmt: skip
    """Change the letters; return the [start, end) to retain, (0, 0) for none. max_trim: -1 for no trimming."""
    windows = length - K + 1
    start = 0
    whole = False
    going_on = True
    while going_on:
        going_on = False
        for cell in range(st.lane, 4 * length, 32):
            votes[ballots + cell] = 0
        st.syncwarp()
        weak = 0
        for p in range(start, windows):
            if not solid(keys, bits, size, letters, first + p, -1, u8(0), K, FILTER):
                weak += 1
                if st.lane < K:
                    votes_for(keys, bits, size, letters, first, votes, ballots, p, st.lane, K, FILTER, UNROLL)
                st.syncwarp()
        whole = start == 0 and weak == 0
        if not whole:
            mine = rank_of(votes, ballots, length)
            best = largest_by_shuffle(mine) if SHUFFLE else largest_by_buffer(mine, box)
            most = best >> 26
            at = FARTHEST - (best & FARTHEST)
            base = only_base(votes, ballots + at * 4, most)
            st.syncwarp()
            if most > min_votes and base >= 0:
                start = at
                if st.lane == 0:
                    letters[first + at] = letter_of(base)
                st.syncwarp()
                whole = all_solid(keys, bits, size, letters, first, windows, K, FILTER)
                going_on = not whole and start > 0
    if whole:
        return int2(0, length)
    return trimmed(keys, bits, size, letters, first, length, max_trim, K, FILTER)


@st.device
def correct_and_trim(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, scratch: Global[u8],
    min_votes: i32, max_trim: i32, K: Const, FILTER: Const, LONGEST: Const, WARPS: Const, UNROLL: Const, SHUFFLE: Const,
    VOTES_IN_SHARED: Const,
) -> int2:  # fmt: skip
    """Correct and trim with the votes in shared or global memory."""
    box = st.shared(i32, 1 if SHUFFLE else 32 * WARPS)
    if VOTES_IN_SHARED:
        cells = st.shared(u8, WARPS * LONGEST * 4)
        ballots = st.warp * LONGEST * 4
        return corrected(
            keys,
            bits,
            size,
            letters,
            first,
            length,
            cells,
            ballots,
            box,
            min_votes,
            max_trim,
            K,
            FILTER,
            UNROLL,
            SHUFFLE,
        )
    else:
        place = (st.block.x * WARPS + st.warp) * LONGEST * 4
        return corrected(
            keys,
            bits,
            size,
            letters,
            first,
            length,
            scratch,
            place,
            box,
            min_votes,
            max_trim,
            K,
            FILTER,
            UNROLL,
            SHUFFLE,
        )


@st.kernel
def warp_per_read(
    text: Global[u8],
    places: Global[int2],
    spans: Global[int2],
    scratch: Global[u8],
    keys: Global[u64],
    bits: Global[u32],
    size: u32,
    min_votes: i32,
    max_trim: i32,
    K: Const,
    FILTER: Const,
    LONGEST: Const,
    WARPS: Const,
    UNROLL: Const,
    SHUFFLE: Const,
    READS_IN_SHARED: Const,
    VOTES_IN_SHARED: Const,
) -> None:
    """As `thread_per_read`. WARPS: of a block. scratch: 4 LONGEST votes a warp of the grid, if they are not in shared memory."""
    row = st.shared(u8, WARPS * LONGEST if READS_IN_SHARED else 1)
    at = st.warp * LONGEST
    r = st.block.x * WARPS + st.warp
    while r < len(places):
        place = places[r]
        first, length = place.x, place.y
        span = int2(0, 0)
        if READS_IN_SHARED:
            for i in range(st.lane, length, 32):
                row[at + i] = text[first + i]
            st.syncwarp()
            span = correct_and_trim(
                keys, bits, size, row, at, length, scratch, min_votes, max_trim, K, FILTER, LONGEST, WARPS, UNROLL, SHUFFLE,
                VOTES_IN_SHARED,
            )  # fmt: skip
            for j in range(st.lane, length, 32):
                text[first + j] = row[at + j]
        else:
            span = correct_and_trim(
                keys, bits, size, text, first, length, scratch, min_votes, max_trim, K, FILTER, LONGEST, WARPS, UNROLL, SHUFFLE,
                VOTES_IN_SHARED,
            )  # fmt: skip
        if st.lane == 0:
            spans[r] = span
        st.syncwarp()
        r += st.grid_dim.x * WARPS
