"""Our own way: most reads are without error, so threads find the weak ones, and full warps mend those.

`screen` has one thread a read; it rolls the packed k-mer along and stops at the first that is not solid. Weak reads go into
a queue. `mend` has warps that take reads from the queue until it is empty, so that none waits for another. A warp
asks for 32 windows at once, one a lane; the 3 K mutants of a weak one, each the packed window with two bits
flipped, are dealt out to all 32 lanes. Nearly all are not solid, which one access to the filter of words tells; the
rest ask the exact set.
"""

from __future__ import annotations

import simtbed.emulator.lang as st
from simtbed.emulator.lang import Const, Global, Memory, i32, int2, u8, u32, u64

from .filters import EXACT, in_bloom, in_set, in_words
from .hashes import code, letter_of, mixed, packed_key
from .warp_per_read import FARTHEST, first_bit, largest_by_shuffle, only_base, rank_of, trimmed


@st.kernel
def screen(
    text: Global[u8],
    places: Global[int2],
    spans: Global[int2],
    queue: Global[i32],
    queued: Global[u32],
    keys: Global[u64],
    bits: Global[u32],
    size: u32,
    K: Const,
    FILTER: Const,
) -> None:
    """spans[r]: all of read r, if all its windows are solid; else r goes into the queue. queued[0]: how many there are.

    places[r]: (first letter in text, length) of a read of A, C, G, T.
    """
    r = st.block.x * st.block_dim.x + st.thread.x
    if r >= len(places):
        return
    first, length = places[r].x, places[r].y
    key = u64(0)
    whole = True
    i = 0
    while whole and i < length:
        key = (key >> 2) | (code(text[first + i]) << (2 * K - 2))
        i += 1
        if i >= K:
            if FILTER == EXACT:  # noqa: SIM108
                whole = in_set(keys, mixed(key), key)
            else:
                whole = in_bloom(bits, size, text, first + i - K, -1, u8(0), K, FILTER)
    if whole:
        spans[r] = int2(0, length)
    else:
        queue[st.atomic_add(queued, 0, 1)] = r


@st.device
def is_solid(
    keys: Global[u64], words: Global[u64], bits: Global[u32], size: u32, text: Global[u8], first: i32, key: u64, at: i32,
    other: u8, K: Const, FILTER: Const,
) -> bool:  # fmt: skip
    """Of a mutant: its key or, for a Bloom filter, the letters from `first` on with `other` in place `at`."""
    if FILTER == EXACT:
        hash = mixed(key)
        return in_words(words, hash) and in_set(keys, hash, key)
    else:
        return in_bloom(bits, size, text, first, at, other, K, FILTER)


@st.device
def votes_on(
    keys: Global[u64], words: Global[u64], bits: Global[u32], size: u32, text: Global[u8], first: i32, window: u64,
    votes: Memory[u8], cells: i32, K: Const, FILTER: Const,
) -> None:  # fmt: skip
    """The 3 K mutants of a window dealt out to the lanes. cells: where the votes of its first position begin."""
    for turn in st.unroll(range((3 * K + 31) // 32)):
        task = turn * 32 + st.lane
        if task < 3 * K:
            v, change = task // 3, task % 3 + 1
            other = i32(window >> u64(2 * v)) & 3 ^ change
            mutant = window ^ (u64(change) << u64(2 * v))
            if is_solid(keys, words, bits, size, text, first, mutant, v, letter_of(other), K, FILTER):
                votes[cells + v * 4 + other] += 1
    st.syncwarp()


@st.device
def mended(
    keys: Global[u64], words: Global[u64], bits: Global[u32], size: u32, text: Global[u8], first: i32, length: i32,
    votes: Memory[u8], ballots: i32, min_votes: i32, max_trim: i32, K: Const, FILTER: Const,
) -> int2:  # fmt: skip
    """Change the letters; the [start, end) to keep, (0, 0) for none. votes: 4 `length` from `ballots` on."""
    windows = length - K + 1
    start = 0
    voting, mending = True, True
    while mending:
        for cell in range(st.lane, 4 * length, 32):
            votes[ballots + cell] = 0
        st.syncwarp()
        whole = True
        for chunk in range(0, windows, 32):
            p = chunk + st.lane
            key = packed_key(text, first + min(p, windows - 1), -1, u8(0), K)
            weak = False
            if p < windows:
                if FILTER == EXACT:
                    weak = not in_set(keys, mixed(key), key)
                else:
                    weak = not in_bloom(bits, size, text, first + p, -1, u8(0), K, FILTER)
            whole = whole and not st.any(weak)
            left = u32(st.ballot(weak and voting and p >= start))
            while left != 0:
                i = first_bit(left)
                left &= left - 1
                window = st.shuffle(key, i)
                at = chunk + i
                votes_on(keys, words, bits, size, text, first + at, window, votes, ballots + at * 4, K, FILTER)
        if whole:
            return int2(0, length)
        mending = voting
        if voting:
            best = largest_by_shuffle(rank_of(votes, ballots, length))
            most, fixed = best >> 26, FARTHEST - (best & FARTHEST)
            base = only_base(votes, ballots + fixed * 4, most)
            mending = most > min_votes and base >= 0
            st.syncwarp()
            if mending:
                if st.lane == 0:
                    text[first + fixed] = letter_of(base)
                st.syncwarp()
                start = fixed
                voting = fixed > 0
    return trimmed(keys, bits, size, text, first, length, max_trim, K, FILTER)


@st.kernel
def mend(
    text: Global[u8],
    places: Global[int2],
    spans: Global[int2],
    queue: Global[i32],
    queued: Global[u32],
    scratch: Global[u8],
    keys: Global[u64],
    words: Global[u64],
    bits: Global[u32],
    size: u32,
    min_votes: i32,
    max_trim: i32,
    K: Const,
    FILTER: Const,
    LONGEST: Const,
    WARPS: Const,
    VOTES_IN_SHARED: Const,
) -> None:
    """As `warp_per_read`, for the reads of the queue. queued: (how many there are, how many are taken)."""
    cells = st.shared(u8, WARPS * LONGEST * 4 if VOTES_IN_SHARED else 1)
    count = queued[0]
    ticket = u32(0)
    while ticket < count:
        if st.lane == 0:
            ticket = st.atomic_add(queued, 1, 1)
        ticket = st.shuffle(ticket, 0)
        if ticket < count:
            r = queue[ticket]
            first, length = places[r].x, places[r].y
            span = int2(0, 0)
            if VOTES_IN_SHARED:
                at = st.warp * LONGEST * 4
                span = mended(keys, words, bits, size, text, first, length, cells, at, min_votes, max_trim, K, FILTER)
            else:
                place = (st.block.x * WARPS + st.warp) * LONGEST * 4
                span = mended(
                    keys, words, bits, size, text, first, length, scratch, place, min_votes, max_trim, K, FILTER
                )
            if st.lane == 0:
                spans[r] = span
