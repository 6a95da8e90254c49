"""One thread per read, as in CUDA-EC, with the votes as the only buffer: solid, maxPos and maxMod of `cuda_ec` are variables here.

The control flow of a thread depends on its read, so the lanes of a warp diverge nearly always. With reads and votes in shared memory
this is the last step but one of Mangal and Jain's Table 4. With SPREAD = 32 only the first lane of each warp has a read: no
divergence, and 31 idle lanes.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, Global, i32, int2, u8, u32, u64

from .filters import solid
from .hashes import letter_of
from .rules import span_of, votes_for


@st.device
def first_weak(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, windows: i32, begin: i32, K: Const,
    FILTER: Const,
) -> i32:  # fmt: skip
    """Return the first window from `begin` on that is not solid; `windows` if all are."""
    p = begin
    while p < windows and solid(keys, bits, size, letters, first + p, -1, u8(0), K, FILTER):
        p += 1
    return p


@st.device
def winner(votes: Array[u8], ballots: i32, length: i32, min_votes: i32) -> i32:
    """4 position + code of the change to make, -1 for none: the first cell with the most votes, more than `min_votes`, if the
    second such cell, if any, is at another position."""
    most, best, second = min_votes, -1, -1
    for cell in range(4 * length):
        given = i32(votes[ballots + cell])
        if given > most:
            most = given
            best = cell
            second = -1
        elif given == most and best >= 0 and second < 0:
            second = cell
    if second >= 0 and second // 4 == best // 4:
        best = -1
    return best


@st.device
def corrected(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, votes: Array[u8],
    ballots: i32, min_votes: i32, K: Const, FILTER: Const, UNROLL: Const,
) -> bool:  # fmt: skip
    """Change the letters; return whether all windows are solid then."""
    windows = length - K + 1
    start = 0
    whole = False
    going_on = True
    while going_on:
        going_on = False
        for cell in range(4 * length):
            votes[ballots + cell] = 0
        weak = 0
        for p in range(start, windows):
            if not solid(keys, bits, size, letters, first + p, -1, u8(0), K, FILTER):
                weak += 1
                for v in range(K):
                    votes_for(keys, bits, size, letters, first, votes, ballots, p, v, K, FILTER, UNROLL)
        whole = start == 0 and weak == 0
        change = -1 if whole else winner(votes, ballots, length, min_votes)
        if change >= 0:
            start = change // 4
            letters[first + start] = letter_of(change % 4)
            whole = first_weak(keys, bits, size, letters, first, windows, 0, K, FILTER) == windows
            going_on = not whole and start > 0
    return whole


@st.device
def mended(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, votes: Array[u8],
    ballots: i32, min_votes: i32, max_trim: i32, K: Const, FILTER: Const, UNROLL: Const,
) -> int2:  # fmt: skip
    """Change the letters; return the [start, end) to retain, (0, 0) for none. max_trim: -1 for no trimming."""
    windows = length - K + 1
    if corrected(keys, bits, size, letters, first, length, votes, ballots, min_votes, K, FILTER, UNROLL):
        return int2(0, length)
    begin = 0
    while begin < windows and not solid(keys, bits, size, letters, first + begin, -1, u8(0), K, FILTER):
        begin += 1
    if begin == windows or max_trim < 0:
        return int2(0, 0)
    end = first_weak(keys, bits, size, letters, first, windows, begin, K, FILTER)
    return span_of(begin, end + K - 1, length, max_trim)


@st.device
def correct_and_trim(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, min_votes: i32,
    max_trim: i32, K: Const, FILTER: Const, LONGEST: Const, PLACES: Const, UNROLL: Const, VOTES_IN_SHARED: Const,
) -> int2:  # fmt: skip
    """Correct and trim with the votes in shared or local memory. PLACES: reads of a block."""
    if VOTES_IN_SHARED:
        cells = st.shared(u8, PLACES * LONGEST * 4)
        at = st.thread.x * PLACES // st.block_dim.x * LONGEST * 4
        return mended(keys, bits, size, letters, first, length, cells, at, min_votes, max_trim, K, FILTER, UNROLL)
    else:
        own = st.local(u8, LONGEST * 4)
        return mended(keys, bits, size, letters, first, length, own, 0, min_votes, max_trim, K, FILTER, UNROLL)


@st.kernel
def thread_per_read(
    text: Global[u8],
    places: Global[int2],
    spans: Global[int2],
    keys: Global[u64],
    bits: Global[u32],
    size: u32,
    min_votes: i32,
    max_trim: i32,
    K: Const,
    FILTER: Const,
    LONGEST: Const,
    THREADS: Const,
    SPREAD: Const,
    UNROLL: Const,
    READS_IN_SHARED: Const,
    VOTES_IN_SHARED: Const,
) -> None:
    """spans[r]: the [start, end) of read r to retain, (0, 0) if it is discarded; `text` is changed in place.

    places[r]: (first letter in text, length up to LONGEST) of a read of A, C, G, T. keys, bits, size: the filter.
    min_votes: a change needs more. max_trim: -1 for no trimming. SPREAD: threads per read, of which one works.
    """
    thread = st.block.x * THREADS + st.thread.x
    r = thread // SPREAD
    if thread % SPREAD != 0 or r >= len(places):
        return
    place = places[r]
    first, length = place.x, place.y
    row = st.shared(u8, THREADS // SPREAD * LONGEST if READS_IN_SHARED else 1)
    if READS_IN_SHARED:
        at = st.thread.x // SPREAD * LONGEST
        for i in range(length):
            row[at + i] = text[first + i]
        spans[r] = correct_and_trim(
            keys,
            bits,
            size,
            row,
            at,
            length,
            min_votes,
            max_trim,
            K,
            FILTER,
            LONGEST,
            THREADS // SPREAD,
            UNROLL,
            VOTES_IN_SHARED,
        )
        for j in range(length):
            text[first + j] = row[at + j]
    else:
        spans[r] = correct_and_trim(
            keys, bits, size, text, first, length, min_votes, max_trim, K, FILTER, LONGEST, THREADS // SPREAD, UNROLL,
            VOTES_IN_SHARED,
        )  # fmt: skip
