"""CUDA-EC's kernel as studied by Mangal and Jain, and the result of their "other optimization"; one thread per read.

ORIGINAL includes all costs that their section 6.3 removes: the kernel copies the read into a second buffer in global memory and
corrects it there, checks every base and converts it to upper case, checks every window again, and reads the next base from a
table in global memory. Both versions write a mutant into the read before they query it, and both have three buffers in local
memory: `whole` (their solid, a flag per window), `most_at` and `most_base` (their maxPos and maxMod, every cell with the most
votes, of which two are used). Section 6.2 removes these buffers (`thread_per_read`).
UNROLL unrolls the loop over the three mutants of a position. With SPREAD = 32 only the first lane of each warp has a read: the
second row of Table 4.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, Global, Local, i32, int2, u8, u32, u64

from .filters import solid
from .hashes import code, letter_of
from .rules import span_of

BLOCK = 256
"""Threads of a block, as in the paper: its 85 registers give 25 % occupancy on a K20m, its 56 registers 50 %."""


@st.device
def upper(letter: u8) -> u8:
    return letter - 32 if letter - u8(97) < 26 else letter


@st.device
def is_base(letter: u8) -> bool:
    return letter == 65 or letter == 67 or letter == 71 or letter == 84


@st.device
def prepare(letters: Array[u8], first: i32, length: i32) -> bool:
    """Convert the letters to upper case; return whether all are bases."""
    for i in range(length):
        letters[first + i] = upper(letters[first + i])
        if not is_base(letters[first + i]):
            return False
    return True


@st.device
def all_bases(letters: Array[u8], first: i32, K: Const) -> bool:
    """Return whether a window consists of bases; `prepare` has already checked the whole read."""
    for i in range(K):  # noqa: SIM110
        if not is_base(letters[first + i]):
            return False
    return True


@st.device
def following(base: u8, successor: Global[u8], ORIGINAL: Const) -> u8:
    """Return the successor in the cycle A, C, T, G, from the table or by its code."""
    if ORIGINAL:
        return successor[i32(base)]
    else:
        return letter_of((i32(code(base)) + 1) & 3)


@st.device
def vote(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, votes: Local[u8], p: i32, v: i32,
    successor: Global[u8], K: Const, FILTER: Const, ORIGINAL: Const,
) -> None:  # fmt: skip
    """Write the next base into position v of window p, and vote for it if the window is solid then."""
    letters[first + p + v] = following(letters[first + p + v], successor, ORIGINAL)
    if solid(keys, bits, size, letters, first + p, -1, u8(0), K, FILTER):
        votes[4 * (p + v) + i32(code(letters[first + p + v]))] += 1


@st.device
def vote_for_mutants(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, votes: Local[u8], p: i32,
    successor: Global[u8], K: Const, FILTER: Const, ORIGINAL: Const, UNROLL: Const,
) -> None:  # fmt: skip
    """Add the votes of a weak window; its letters are unchanged afterwards."""
    for v in range(K):
        if UNROLL:
            for _ in st.unroll(range(3)):
                vote(keys, bits, size, letters, first, votes, p, v, successor, K, FILTER, ORIGINAL)
        else:
            for _ in range(3):
                vote(keys, bits, size, letters, first, votes, p, v, successor, K, FILTER, ORIGINAL)
        letters[first + p + v] = following(letters[first + p + v], successor, ORIGINAL)


@st.device
def change_of(
    votes: Local[u8], most_at: Local[i32], most_base: Local[i32], length: i32, min_votes: i32
) -> i32:  # fmt: skip
    """4 position + code of the change to make, -1 for none; the buffers receive all cells with the most votes."""
    most, enough = 0, 0
    for p in range(length):
        for m in range(4):
            if i32(votes[4 * p + m]) > min_votes:
                enough += 1
            if i32(votes[4 * p + m]) >= most:
                most = i32(votes[4 * p + m])
    found = 0
    for at in range(length):
        for base in range(4):
            if i32(votes[4 * at + base]) == most:
                most_at[found] = at
                most_base[found] = base
                found += 1
    if enough > 0 and (found == 1 or most_at[0] != most_at[1]):
        return 4 * most_at[0] + most_base[0]
    return -1


@st.device
def all_solid(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, begin: i32, end: i32, K: Const,
    FILTER: Const,
) -> bool:  # fmt: skip
    """Return whether the windows `begin` to `end` - 1 are solid."""
    for p in range(begin, end):  # noqa: SIM110
        if not solid(keys, bits, size, letters, first + p, -1, u8(0), K, FILTER):
            return False
    return True


@st.device
def trimmed(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, max_trim: i32, K: Const,
    FILTER: Const,
) -> int2:  # fmt: skip
    """The first run of solid windows within the limits of trimming, queried once more; (0, 0) for none."""
    windows = length - K + 1
    begin = 0
    while begin < windows and not solid(keys, bits, size, letters, first + begin, -1, u8(0), K, FILTER):
        begin += 1
    if begin == windows:
        return int2(0, 0)
    end = begin + 1
    while end < windows and solid(keys, bits, size, letters, first + end, -1, u8(0), K, FILTER):
        end += 1
    span = span_of(begin, end + K - 1, length, max_trim)
    if span.y > 0 and not all_solid(keys, bits, size, letters, first, begin, end, K, FILTER):
        return int2(0, 0)
    return span


@st.device
def corrected(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, length: i32, min_votes: i32,
    max_trim: i32, successor: Global[u8], K: Const, FILTER: Const, LONGEST: Const, ORIGINAL: Const, UNROLL: Const,
) -> int2:  # fmt: skip
    """Change the letters; return the [start, end) to retain, (0, 0) for none. max_trim: -1 for no trimming."""
    votes = st.local(u8, 4 * LONGEST)
    whole = st.local(i32, LONGEST)
    most_at = st.local(i32, 4 * LONGEST)
    most_base = st.local(i32, 4 * LONGEST)
    windows = length - K + 1
    start = 0
    going_on = True
    while going_on:
        for m in range(length):
            for n in range(4):
                votes[4 * m + n] = 0
        for w in range(length):
            whole[w] = 0
        for p in range(start, windows):
            known = all_bases(letters, first + p, K) if ORIGINAL else True
            if known:
                if solid(keys, bits, size, letters, first + p, -1, u8(0), K, FILTER):
                    whole[p] = 1
                else:
                    vote_for_mutants(keys, bits, size, letters, first, votes, p, successor, K, FILTER, ORIGINAL, UNROLL)
        q = 0
        while q < windows and whole[q] != 0:
            q += 1
        if q == windows:
            return int2(0, length)
        change = change_of(votes, most_at, most_base, length, min_votes)
        going_on = change >= 4  # a change of the first base is the last one
        if change >= 0:
            start = change // 4
            letters[first + start] = letter_of(change % 4)
            if all_solid(keys, bits, size, letters, first, 0, windows, K, FILTER):
                return int2(0, length)
    if max_trim < 0:
        return int2(0, 0)
    return trimmed(keys, bits, size, letters, first, length, max_trim, K, FILTER)


@st.kernel
def cuda_ec(
    text: Global[u8],
    copies: Global[u8],
    places: Global[int2],
    spans: Global[int2],
    keys: Global[u64],
    bits: Global[u32],
    size: u32,
    successor: Global[u8],
    min_votes: i32,
    max_trim: i32,
    K: Const,
    FILTER: Const,
    LONGEST: Const,
    SPREAD: Const,
    ORIGINAL: Const,
    UNROLL: Const,
) -> None:
    """As `thread_per_read`. copies: as long as `text`, corrected by ORIGINAL; successor: of each base by its ASCII code."""
    thread = st.block.x * st.block_dim.x + st.thread.x
    r = thread // SPREAD
    if thread % SPREAD != 0 or r >= len(places):
        return
    place = places[r]
    first, length = place.x, place.y
    if ORIGINAL:
        for i in range(length):
            copies[first + i] = text[first + i]
        span = int2(0, 0)
        if prepare(copies, first, length):
            span = corrected(
                keys, bits, size, copies, first, length, min_votes, max_trim, successor, K, FILTER, LONGEST, ORIGINAL, UNROLL
            )  # fmt: skip
        spans[r] = span
        for j in range(length):
            text[first + j] = copies[first + j]
    else:
        spans[r] = corrected(
            keys, bits, size, text, first, length, min_votes, max_trim, successor, K, FILTER, LONGEST, ORIGINAL, UNROLL
        )  # fmt: skip
