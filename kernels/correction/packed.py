"""Our own way: most reads are without error, so threads find the weak ones, and full warps mend those.

`screen` has one thread a read; it rolls the packed k-mer along and stops at the first that is not solid. Weak reads go into
a queue. `mend` has a warp for each read of the queue, so that no lane waits for one without work. A warp
asks for 32 windows at once, one a lane; the 3 K mutants of a weak one, each the packed window with one or two bits
flipped, are dealt out to all 32 lanes. Nearly all are not solid, which one access to the filter of words tells; the
rest ask the exact set. A read with one error is mended by asking for the mutants of one window only (`mends_all`).

With a Bloom filter in place of the exact set, the warps do with weak reads what `warp_per_read` does.
"""

from __future__ import annotations

import simtbed.emulator.lang as st
from simtbed.emulator.lang import Const, Global, Memory, i32, int2, u8, u32, u64

from .filters import EXACT, in_bloom, in_set, in_words
from .hashes import code, letter_of, mixed
from .warp_per_read import FARTHEST, correct_and_trim, first_bit, largest_by_shuffle, only_base, rank_of, trimmed


@st.kernel
def screen(
    text: Global[u8],
    places: Global[int2],
    queue: Global[i32],
    queued: Global[u32],
    keys: Global[u64],
    bits: Global[u32],
    size: u32,
    K: Const,
    FILTER: Const,
) -> None:
    """Reads with a window that is not solid go into the queue. queued[0]: how many there are.

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
    if not whole:
        queue[st.atomic_add(queued, 0, 1)] = r


# ------------------------------------------------------------------ what the lanes of a warp know
@st.device
def spread(plane: u32) -> u64:
    """Bit i moved to bit 2 i."""
    x = u64(plane)
    x = (x | (x << 16)) & 0x0000FFFF0000FFFF
    x = (x | (x << 8)) & 0x00FF00FF00FF00FF
    x = (x | (x << 4)) & 0x0F0F0F0F0F0F0F0F
    x = (x | (x << 2)) & 0x3333333333333333
    return (x | (x << 1)) & 0x5555555555555555


@st.device
def key_of_window(text: Global[u8], first: i32, length: i32, begin: i32, K: Const) -> u64:
    """The packed window `begin` + lane of the read, cut out of the two bits of 64 letters that ballots collect."""
    a = code(text[first + min(begin + st.lane, length - 1)])
    b = code(text[first + min(begin + 32 + st.lane, length - 1)])
    low = u64(st.ballot(a & 1 != 0)) | (u64(st.ballot(b & 1 != 0)) << 32)
    high = u64(st.ballot(a & 2 != 0)) | (u64(st.ballot(b & 2 != 0)) << 32)
    mask = u32((1 << K) - 1)
    own = u64(st.lane)
    return spread(u32(low >> own) & mask) | (spread(u32(high >> own) & mask) << 1)


@st.device
def is_weak(keys: Global[u64], windows: i32, p: i32, key: u64) -> bool:
    """Whether window p, which has that key, is there and not solid."""
    return p < windows and not in_set(keys, mixed(key), key)


@st.device
def mutant_is_solid(keys: Global[u64], words: Global[u64], window: u64, v: i32, change: i32) -> bool:
    """Of a window whose code in place v is changed."""
    mutant = window ^ (u64(change) << u64(2 * v))
    hash = mixed(mutant)
    return in_words(words, hash) and in_set(keys, hash, mutant)


@st.device
def changed(window: u64, v: i32, change: i32) -> i32:
    """The code in place v, changed."""
    return i32(window >> u64(2 * v)) & 3 ^ change


# ------------------------------------------------------------------ one change that mends all
@st.device
def mends_all(
    keys: Global[u64], words: Global[u64], text: Global[u8], first: i32, length: i32, begin: i32, weak: i32, K: Const
) -> i32:
    """4 position + code of the change that makes all weak windows solid, `begin` the first and all less than K further;
    -1 if none does, -2 if several do at the first such position.

    Such a change has a vote from each weak window, so no other can have more, and only one that has the vote of the
    first window can have as many: those are all that need be asked for in the other windows. A lane asks for one.
    """
    windows = length - K + 1
    p = begin + st.lane
    key = key_of_window(text, first, length, begin, K)
    mine = is_weak(keys, windows, p, key) and st.lane < K
    window = st.shuffle(key, 0)
    found = -1
    for turn in range((3 * K + 31) // 32):
        task = turn * 32 + st.lane
        hit = False
        if task < 3 * K:
            hit = mutant_is_solid(keys, words, window, st.div(task, 3), st.rem(task, 3) + 1)
        hits = u32(st.ballot(hit))
        while hits != 0:
            which = turn * 32 + first_bit(hits)
            hits &= hits - 1
            v, change = st.div(which, 3), st.rem(which, 3) + 1
            votes = False
            if mine and st.lane <= v:
                votes = mutant_is_solid(keys, words, key, v - st.lane, change)
            if st.popcount(st.ballot(votes)) == weak:
                if found == -1:
                    found = (begin + v) * 4 + changed(window, v, change)
                elif found // 4 == begin + v:
                    found = -2
    return found


# ------------------------------------------------------------------ all votes
@st.device
def votes_on(keys: Global[u64], words: Global[u64], window: u64, votes: Memory[u8], cells: i32, K: Const) -> None:
    """The 3 K mutants of a window dealt out to the lanes. cells: where the votes of its first position begin."""
    for turn in range((3 * K + 31) // 32):
        task = turn * 32 + st.lane
        if task < 3 * K:
            v, change = st.div(task, 3), st.rem(task, 3) + 1
            if mutant_is_solid(keys, words, window, v, change):
                votes[cells + v * 4 + changed(window, v, change)] += 1
    st.syncwarp()


@st.device
def voted(
    keys: Global[u64], words: Global[u64], text: Global[u8], first: i32, length: i32, votes: Memory[u8], ballots: i32,
    start: i32, min_votes: i32, K: Const,
) -> i32:  # fmt: skip
    """4 position + code of the change to make, -1 for none, by the votes of all weak windows from `start` on."""
    for cell in range(st.lane, 4 * length, 32):
        votes[ballots + cell] = 0
    st.syncwarp()
    for begin in range(start, length - K + 1, 32):
        key = key_of_window(text, first, length, begin, K)
        left = u32(st.ballot(is_weak(keys, length - K + 1, begin + st.lane, key)))
        while left != 0:
            at = begin + first_bit(left)
            window = st.shuffle(key, first_bit(left))
            left &= left - 1
            votes_on(keys, words, window, votes, ballots + at * 4, K)
    best = largest_by_shuffle(rank_of(votes, ballots, length))
    fixed = FARTHEST - (best & FARTHEST)
    base = only_base(votes, ballots + fixed * 4, best >> 26)
    st.syncwarp()
    return fixed * 4 + base if best >> 26 > min_votes and base >= 0 else -1


@st.device
def mended(
    keys: Global[u64], words: Global[u64], text: Global[u8], first: i32, length: i32, votes: Memory[u8], ballots: i32,
    min_votes: i32, K: Const,
) -> bool:  # fmt: skip
    """Change the letters; whether all windows are solid then. votes: 4 `length` from `ballots` on."""
    windows = length - K + 1
    start = 0
    mending = True
    while mending:
        whole = True
        weak, begin, last = 0, 0, 0  # weak windows from start on, the first and the last of them
        for chunk in range(0, windows, 32):
            p = chunk + st.lane
            key = key_of_window(text, first, length, chunk, K)
            found = is_weak(keys, windows, p, key)
            whole = whole and not st.any(found)
            left = u32(st.ballot(found and p >= start))
            if left != 0:
                begin = begin if weak > 0 else chunk + first_bit(left)
                last = chunk + 31 - st.clz(left)
                weak += st.popcount(left)
        if whole:
            return True
        change = -1
        if weak > min_votes:
            if last - begin < K:
                change = mends_all(keys, words, text, first, length, begin, weak, K)
            if change == -1:
                change = voted(keys, words, text, first, length, votes, ballots, begin, min_votes, K)
        mending = change >= 0
        if mending:
            st.syncwarp()
            if st.lane == 0:
                text[first + change // 4] = letter_of(change % 4)
            st.syncwarp()
            # After a change of the first letter nothing is voted on any more, only looked at.
            start = change // 4 if change >= 4 else windows
    return False


@st.kernel
def mend(
    text: Global[u8],
    places: Global[int2],
    spans: Global[int2],
    queue: Global[i32],
    count: i32,
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
    """As `warp_per_read`, for the first `count` reads of the queue; other spans are left as they are."""
    at = st.block.x * WARPS + st.warp
    while at < count:
        r = queue[at]
        first, length = places[r].x, places[r].y
        span = int2(0, 0)
        if FILTER != EXACT:
            span = correct_and_trim(
                keys, bits, size, text, first, length, scratch, min_votes, max_trim, K, FILTER, LONGEST, WARPS, True, False,
                VOTES_IN_SHARED,
            )  # fmt: skip
        else:
            whole = False
            if VOTES_IN_SHARED:
                cells = st.shared(u8, WARPS * LONGEST * 4)
                whole = mended(keys, words, text, first, length, cells, st.warp * LONGEST * 4, min_votes, K)
            else:
                place = (st.block.x * WARPS + st.warp) * LONGEST * 4
                whole = mended(keys, words, text, first, length, scratch, place, min_votes, K)
            span = int2(0, length)
            if not whole:
                span = trimmed(keys, bits, size, text, first, length, max_trim, K, FILTER)
        if st.lane == 0:
            spans[r] = span
        at += st.grid_dim.x * WARPS
