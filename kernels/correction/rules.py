"""Rules common to all variants: votes for a change, and trimming of uncorrectable reads."""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, Global, i32, int2, u8, u32, u64

from .filters import solid
from .hashes import code, letter_of


@st.device
def vote(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, votes: Array[u8], ballots: i32,
    p: i32, v: i32, change: i32, K: Const, FILTER: Const,
) -> None:  # fmt: skip
    """Vote for another base in position v of window p if it makes the window solid. The bases other than one with
    code c have the codes c ^ 1, c ^ 2 and c ^ 3. votes[ballots + 4 position + code] are the read's votes."""
    other = i32(code(letters[first + p + v])) ^ change
    if solid(keys, bits, size, letters, first + p, v, letter_of(other), K, FILTER):
        votes[ballots + (p + v) * 4 + other] += 1


@st.device
def votes_for(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, votes: Array[u8], ballots: i32,
    p: i32, v: i32, K: Const, FILTER: Const, UNROLL: Const,
) -> None:  # fmt: skip
    """Add the votes of one position of a window."""
    if UNROLL:
        for change in st.unroll(range(1, 4)):
            vote(keys, bits, size, letters, first, votes, ballots, p, v, change, K, FILTER)
    else:
        for which in range(1, 4):
            vote(keys, bits, size, letters, first, votes, ballots, p, v, which, K, FILTER)


@st.device
def span_of(first_solid: i32, end: i32, length: i32, max_trim: i32) -> int2:
    """Return the [start, end) after trimming; (0, 0) if that removes too much."""
    if first_solid > max_trim or length - end > max_trim:
        return int2(0, 0)
    return int2(first_solid, end)
