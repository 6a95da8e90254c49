"""Filter of the 3 K mutants of a k-mer: a blocked Bloom filter that tests all of them with three accesses.

A solid k-mer is in three words of 64 bits, one for each third of its letters, addressed by the letters outside of that third:
mutants with a change in one third share the word. Its four bits there depend on all letters, by a hash without carries, so that a
mutant's hash is its window's combined with that of its change, from a table.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Shared, i32, u32, u64

from .hashes import mixed, scattered

TASKS = 96
"""Mutants of a window, at most 3 LONGEST_K, in iterations of 32."""


@st.device
def flip_of(task: i32, K: Const) -> u64:
    """Return the difference of a window and its mutant `task` of 3 K; 0 beyond them, which leaves the window unchanged."""
    change = u64(st.rem(task, 3) + 1) if task < 3 * K else u64(0)
    return change << u64(2 * min(st.div(task, 3), K - 1))


@st.device
def hash_of(key: u64) -> u32:
    """The hash of a ^ b is the hash of a ^ the hash of b."""
    return u32(scattered(key) >> 32)


@st.device
def tabulate(hashes: Shared[u32], K: Const) -> None:
    """hashes[task]: of the difference of mutant `task`. Called by all threads of a block of at least TASKS threads."""
    if st.thread.x < TASKS:
        hashes[st.thread.x] = hash_of(flip_of(st.thread.x, K))
    st.sync()


@st.device
def place_of(words: Global[u64], key: u64, third: i32, K: Const) -> u64:
    """Return the index of a k-mer's word for its third 0, 1 or 2, among three times a power of two."""
    size = u64(len(words)) // 3
    low, high = st.div(third * K + 2, 3), st.div((third + 1) * K + 2, 3)
    inside = ((u64(1) << u64(2 * high - 2 * low)) - 1) << u64(2 * low)
    return u64(third) * size + ((mixed(key & ~inside) >> 32) & (size - 1))


@st.device
def bits_of(hash: u32) -> u64:
    """Return the four bits that a k-mer sets in each of its words."""
    one = u64(1)
    return (
        (one << u64(hash & 63))
        | (one << u64(hash >> 6 & 63))
        | (one << u64(hash >> 12 & 63))
        | (one << u64(hash >> 18 & 63))
    )


@st.device
def likely(first: u64, second: u64, third: u64, hash: u32, task: i32, K: Const) -> bool:
    """Return whether mutant `task` with that hash may be solid. first, second, third: its window's three words."""
    word = first if task < st.div(K + 2, 3) * 3 else second if task < st.div(2 * K + 2, 3) * 3 else third
    found = u32(word >> u64(hash & 63)) & u32(word >> u64(hash >> 6 & 63))
    return found & u32(word >> u64(hash >> 12 & 63)) & u32(word >> u64(hash >> 18 & 63)) & 1 != 0
