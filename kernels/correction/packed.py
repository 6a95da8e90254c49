"""Correction in three kernels: most reads have no error, most others have one, and full warps correct the rest.

`screen` has one thread per read; it rolls the packed k-mer along, queries several windows at once, and appends weak reads to a
queue. `mend_one` has one thread for each of those: a single error is in the intersection of the weak windows, and a change there
that makes all of them solid has more votes than any other. `mend` has a warp for each remaining read. Its lanes query 32 windows at
once and share the 3 K mutants of a weak window. Nearly all mutants are not solid: a filter rejects them without a separate access
(`mutants`); the others query the exact set.

With a Bloom filter in place of the exact set, the warps correct weak reads as `warp_per_read` does.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, Global, Shared, i32, int2, int4, u8, u32, u64

from .filters import BLOCKED, EXACT, found_from, in_bloom, in_set, slot_of
from .hashes import code, letter_of, mixed
from .mutants import TASKS, flip_of, hash_of, likely, place_of, tabulate
from .rules import span_of
from .warp_per_read import FARTHEST, correct_and_trim, first_bit, largest_by_shuffle, only_base, rank_of

TOGETHER = 4
"""Windows that a thread queries at once: number of outstanding loads."""


# ------------------------------------------------------------------ a thread's windows
@st.device
def weak_of(
    keys: Global[u64],
    text: Global[u8],
    first: i32,
    length: i32,
    key: u64,
    begin: i32,
    end: i32,
    K: Const,
    FILTER: Const,
) -> int4:
    """(the first, the last, the number, 0) of the windows `begin` to `end` - 1 that are not solid, `key` that of `begin`.

    TOGETHER windows are queried at once: no query waits for the result of the preceding one.
    """
    asked = st.registers(u64, TOGETHER)
    slots = st.registers(u64, TOGETHER)
    seen = st.registers(u64, TOGETHER)
    lowest, highest, weak = 0, 0, 0
    for p in range(begin, end, TOGETHER):
        for j in st.unroll(range(TOGETHER)):
            asked[j] = key
            # Beyond the end all query the same slot.
            slots[j] = slot_of(keys, mixed(key), FILTER) if p + j < end else u64(0)
            seen[j] = keys[slots[j]]
            key = (key >> 2) | (code(text[first + min(p + j + K, length - 1)]) << (2 * K - 2))
        for i in st.unroll(range(TOGETHER)):
            if p + i < end and not found_from(keys, slots[i], seen[i], asked[i], FILTER):
                lowest = lowest if weak > 0 else p + i
                highest = p + i
                weak += 1
    return int4(lowest, highest, weak, 0)


@st.device
def first_key(text: Global[u8], first: i32, K: Const) -> u64:
    """Return the packed window at `first`."""
    key = u64(0)
    for i in range(K):
        key = (key >> 2) | (code(text[first + i]) << (2 * K - 2))
    return key


@st.kernel
def screen(
    text: Global[u8],
    places: Global[int2],
    queue: Global[int4],
    queued: Global[u32],
    keys: Global[u64],
    bits: Global[u32],
    size: u32,
    K: Const,
    FILTER: Const,
) -> None:
    """Append reads with a window that is not solid to the queue. queued[0]: their number.

    places[r]: (first letter in text, length) of a read of A, C, G, T. queue: (read, its first weak window, the last, the
    number of weak windows); with a Bloom filter only the read is known.
    """
    r = st.block.x * st.block_dim.x + st.thread.x
    if r >= len(places):
        return
    place = places[r]
    first, length = place.x, place.y
    found = int4(0, 0, 0, 0)
    if FILTER == EXACT or FILTER == BLOCKED:  # noqa: SIM109, `in` is not in the language
        found = weak_of(keys, text, first, length, first_key(text, first, K), 0, length - K + 1, K, FILTER)
    else:
        p = 0
        while p + K <= length and in_bloom(bits, size, text, first + p, -1, u8(0), K, FILTER):
            p += 1
        if p + K <= length:
            found = int4(p, p, 1, 0)
    if found.z > 0:
        queue[st.atomic_add(queued, 0, 1)] = int4(r, found.x, found.y, found.z)


# ------------------------------------------------------------------ a read with one error
@st.kernel
def mend_one(
    text: Global[u8],
    places: Global[int2],
    queue: Global[int4],
    count: i32,
    left: Global[int4],
    queued: Global[u32],
    keys: Global[u64],
    words: Global[u64],
    min_votes: i32,
    K: Const,
    FILTER: Const,
) -> None:
    """Correct the reads, of the first `count` of the queue, in which one change makes all windows solid, if a quick test finds
    it; append the others to `left` unchanged, queued[0] of them.

    The weak windows are consecutive, and are all windows with the changed letter: after the change the read is solid. Each of
    them votes for it, so no change has more votes. A change with as many votes that precedes it, or of the same letter, would
    also make the first weak window solid; if the filter contains any such change, the read is not corrected here.
    """
    hashes = st.shared(u32, TASKS)
    tabulate(hashes, K)
    q = st.block.x * st.block_dim.x + st.thread.x
    if q >= count:
        return
    entry = queue[q]
    r, begin, last, weak = entry.x, entry.y, entry.z, entry.w
    place = places[r]
    first, length = place.x, place.y
    windows = length - K + 1
    # The letters that belong to exactly these windows: from `low` to `high`.
    low = last if begin == 0 else begin + K - 1
    high = K - 1 if begin == 0 and last == windows - 1 else low
    done = False
    if weak > min_votes and weak == last - begin + 1 and low < begin + K and min(low, windows - 1) == last:
        window = first_key(text, first + begin, K)
        hash = hash_of(window)
        a = words[place_of(words, window, 0, K)]
        b = words[place_of(words, window, 1, K)]
        c = words[place_of(words, window, 2, K)]
        hits, hit = 0, 0
        for task in range(3 * (last - begin), 3 * (high - begin + 1)):
            if likely(a, b, c, hash ^ hashes[task], task, K):
                hits += 1
                hit = task
        at = st.div(hit, 3)
        if hits == 1 and begin + at >= low:
            mutant = window ^ flip_of(hit, K)
            if weak_of(keys, text, first, length, mutant, begin, last + 1, K, FILTER).z == 0:
                text[first + begin + at] = letter_of(i32(mutant >> u64(2 * at)) & 3)
                done = True
    if not done:
        left[st.atomic_add(queued, 0, 1)] = int4(r, begin, last, weak)


# ------------------------------------------------------------------ windows of the lanes of a warp
@st.device
def spread(plane: u32) -> u64:
    """Move bit i to bit 2 i."""
    x = u64(plane)
    x = (x | (x << 16)) & 0x0000FFFF0000FFFF
    x = (x | (x << 8)) & 0x00FF00FF00FF00FF
    x = (x | (x << 4)) & 0x0F0F0F0F0F0F0F0F
    x = (x | (x << 2)) & 0x3333333333333333
    return (x | (x << 1)) & 0x5555555555555555


@st.device
def key_of_window(text: Global[u8], first: i32, length: i32, begin: i32, K: Const) -> u64:
    """Return the packed window `begin` + lane of the read, from the two bits of 64 letters collected by ballots."""
    a = code(text[first + min(begin + st.lane, length - 1)])
    b = code(text[first + min(begin + 32 + st.lane, length - 1)])
    low = u64(st.ballot(a & 1 != 0)) | (u64(st.ballot(b & 1 != 0)) << 32)
    high = u64(st.ballot(a & 2 != 0)) | (u64(st.ballot(b & 2 != 0)) << 32)
    mask = u32((1 << K) - 1)
    own = u64(st.lane)
    return spread(u32(low >> own) & mask) | (spread(u32(high >> own) & mask) << 1)


@st.device
def is_weak(keys: Global[u64], windows: i32, p: i32, key: u64, FILTER: Const) -> bool:
    """Return whether window p with that key exists and is not solid."""
    return p < windows and not in_set(keys, mixed(key), key, FILTER)


@st.device
def changed(window: u64, v: i32, change: i32) -> i32:
    """Return the code in position v, changed."""
    return i32(window >> u64(2 * v)) & 3 ^ change


# ------------------------------------------------------------------ one change for all weak windows
@st.device
def mends_all(
    keys: Global[u64], words: Global[u64], hashes: Shared[u32], text: Global[u8], first: i32, length: i32, begin: i32,
    weak: i32, K: Const, FILTER: Const,
) -> i32:  # fmt: skip
    """4 position + code of the change that makes all weak windows solid, `begin` the first and all less than K further;
    -1 if none does, -2 if several do at the first such position.

    Such a change has a vote from each weak window, so no other can have more, and only a change with the vote of the first
    window can have as many: only those are queried in the other windows, one by each lane.
    """
    windows = length - K + 1
    p = begin + st.lane
    key = key_of_window(text, first, length, begin, K)
    mine = is_weak(keys, windows, p, key, FILTER) and st.lane < K
    window = st.shuffle(key, 0)
    hash = hash_of(window)
    a = words[place_of(words, window, 0, K)]
    b = words[place_of(words, window, 1, K)]
    c = words[place_of(words, window, 2, K)]
    found = -1
    for turn in range((3 * K + 31) // 32):
        task = turn * 32 + st.lane
        hits = u32(st.ballot(likely(a, b, c, hash ^ hashes[task], task, K) and task < 3 * K))
        while hits != 0:
            which = turn * 32 + first_bit(hits)
            hits &= hits - 1
            v, change = st.div(which, 3), st.rem(which, 3) + 1
            votes = False
            if mine and st.lane <= v:
                other = key ^ (u64(change) << u64(2 * (v - st.lane)))
                votes = in_set(keys, mixed(other), other, FILTER)
            if st.popcount(st.ballot(votes)) == weak:
                if found == -1:
                    found = (begin + v) * 4 + changed(window, v, change)
                elif found // 4 == begin + v:
                    found = -2
    return found


# ------------------------------------------------------------------ all votes
@st.device
def votes_on(
    keys: Global[u64], hashes: Shared[u32], key: u64, owner: i32, hash: u32, a: u64, b: u64, c: u64, votes: Array[u8],
    cells: i32, K: Const, FILTER: Const,
) -> None:  # fmt: skip
    """Distribute the 3 K mutants of a weak window, the `key` of lane `owner`, over the lanes. a, b, c: its words. cells:
    index of the votes of its first position."""
    asking = st.registers(bool, TASKS // 32)
    some = False
    for turn in st.unroll(range((3 * K + 31) // 32)):
        task = turn * 32 + st.lane
        asking[turn] = likely(a, b, c, hash ^ hashes[task], task, K)
        some = some or asking[turn]
    if st.any(some):
        window = st.shuffle(key, owner)
        for turn in st.unroll(range((3 * K + 31) // 32)):
            # The last iteration's surplus lanes query the window itself, which is weak.
            task = turn * 32 + st.lane
            mutant = window ^ flip_of(task, K)
            if asking[turn] and in_set(keys, mixed(mutant), mutant, FILTER):
                v = st.div(task, 3)
                votes[cells + v * 4 + changed(mutant, v, 0)] += 1
        st.syncwarp()


@st.device
def voted(
    keys: Global[u64], words: Global[u64], hashes: Shared[u32], text: Global[u8], first: i32, length: i32, votes: Array[u8],
    ballots: i32, start: i32, min_votes: i32, K: Const, FILTER: Const,
) -> i32:  # fmt: skip
    """4 position + code of the change to make, -1 for none, by the votes of all weak windows from `start` on."""
    for cell in range(st.lane, 4 * length, 32):
        votes[ballots + cell] = 0
    st.syncwarp()
    for begin in range(start, length - K + 1, 32):
        key = key_of_window(text, first, length, begin, K)
        weak = is_weak(keys, length - K + 1, begin + st.lane, key, FILTER)
        # Each lane prepares its own window.
        hash = hash_of(key)
        a, b, c = u64(0), u64(0), u64(0)
        if weak:
            a = words[place_of(words, key, 0, K)]
            b = words[place_of(words, key, 1, K)]
            c = words[place_of(words, key, 2, K)]
        left = u32(st.ballot(weak))
        while left != 0:
            owner = first_bit(left)
            left &= left - 1
            votes_on(
                keys, hashes, key, owner, st.shuffle(hash, owner), st.shuffle(a, owner), st.shuffle(b, owner),
                st.shuffle(c, owner), votes, ballots + (begin + owner) * 4, K, FILTER,
            )  # fmt: skip
    best = largest_by_shuffle(rank_of(votes, ballots, length))
    fixed = FARTHEST - (best & FARTHEST)
    base = only_base(votes, ballots + fixed * 4, best >> 26)
    st.syncwarp()
    return fixed * 4 + base if best >> 26 > min_votes and base >= 0 else -1


@st.device
def look(keys: Global[u64], text: Global[u8], first: i32, length: i32, start: i32, K: Const, FILTER: Const) -> int4:
    """(the first weak window from `start` on, the last, their number, the number before `start`, or 1 for several)."""
    weak, begin, last, before = 0, 0, 0, 0
    for chunk in range(0, length - K + 1, 32):
        p = chunk + st.lane
        found = is_weak(keys, length - K + 1, p, key_of_window(text, first, length, chunk, K), FILTER)
        before = max(before, i32(st.any(found and p < start)))
        left = u32(st.ballot(found and p >= start))
        if left != 0:
            begin = begin if weak > 0 else chunk + first_bit(left)
            last = chunk + 31 - st.clz(left)
            weak += st.popcount(left)
    return int4(begin, last, weak, before)


@st.device
def mended(
    keys: Global[u64], words: Global[u64], hashes: Shared[u32], text: Global[u8], first: i32, length: i32, seen: int4,
    votes: Array[u8], ballots: i32, min_votes: i32, K: Const, FILTER: Const,
) -> bool:  # fmt: skip
    """Change the letters; return whether all windows are solid then. seen: first weak window, last one, number of weak
    windows; votes: 4 `length` from `ballots` on."""
    begin, last, weak = seen.x, seen.y, seen.z
    at_first = True
    mending = weak > min_votes
    while mending:
        change = -1
        if not at_first and last - begin < K:  # one change hardly ever suffices for a read that is still here
            change = mends_all(keys, words, hashes, text, first, length, begin, weak, K, FILTER)
        if change == -1:
            change = voted(keys, words, hashes, text, first, length, votes, ballots, begin, min_votes, K, FILTER)
        at_first = False
        mending = change >= 0
        if mending:
            st.syncwarp()
            if st.lane == 0:
                text[first + change // 4] = letter_of(change % 4)
            st.syncwarp()
            # After a change of the first letter there is no further vote, only a check.
            now = look(keys, text, first, length, change // 4 if change >= 4 else length, K, FILTER)
            begin, last, weak = now.x, now.y, now.z
            if weak == 0 and now.w == 0:
                return True
            mending = weak > min_votes
    return False


@st.device
def trimmed(
    keys: Global[u64], text: Global[u8], first: i32, length: i32, max_trim: i32, K: Const, FILTER: Const
) -> int2:
    """The first run of solid windows within the limits of trimming; (0, 0) for none."""
    windows = length - K + 1
    begin, end = windows, windows
    for chunk in range(0, windows, 32):
        p = chunk + st.lane
        weak = is_weak(keys, windows, p, key_of_window(text, first, length, chunk, K), FILTER)
        good = u32(st.ballot(p < windows and not weak))
        if begin == windows and good != 0:
            begin = chunk + first_bit(good)
        bad = u32(st.ballot(weak and p > begin))
        if bad != 0:
            end = chunk + first_bit(bad)
            break
    if begin == windows or max_trim < 0:
        return int2(0, 0)
    return span_of(begin, end + K - 1, length, max_trim)


@st.kernel
def mend(
    text: Global[u8],
    places: Global[int2],
    spans: Global[int2],
    queue: Global[int4],
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
    """As `warp_per_read`, for the first `count` reads of the queue; other spans are unchanged."""
    hashes = st.shared(u32, TASKS)
    tabulate(hashes, K)
    at = st.block.x * WARPS + st.warp
    while at < count:
        entry = queue[at]
        r, seen = entry.x, int4(entry.y, entry.z, entry.w, 0)
        where = places[r]
        first, length = where.x, where.y
        span = int2(0, 0)
        if FILTER != EXACT and FILTER != BLOCKED:
            span = correct_and_trim(
                keys, bits, size, text, first, length, scratch, min_votes, max_trim, K, FILTER, LONGEST, WARPS, True, False,
                VOTES_IN_SHARED,
            )  # fmt: skip
        else:
            whole = False
            if VOTES_IN_SHARED:
                cells = st.shared(u8, WARPS * LONGEST * 4)
                whole = mended(
                    keys, words, hashes, text, first, length, seen, cells, st.warp * LONGEST * 4, min_votes, K, FILTER
                )
            else:
                place = (st.block.x * WARPS + st.warp) * LONGEST * 4
                whole = mended(keys, words, hashes, text, first, length, seen, scratch, place, min_votes, K, FILTER)
            span = int2(0, length)
            if not whole:
                span = trimmed(keys, text, first, length, max_trim, K, FILTER)
        if st.lane == 0:
            spans[r] = span
        at += st.grid_dim.x * WARPS
