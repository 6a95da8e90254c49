"""Kernels for the spectrum: k-mers counted in a hash table with atomics, and filters built from the solid ones.

A k-mer and its reverse complement are counted together, under the smaller of their keys; both strands of a read count, so a k-mer
equal to its reverse complement counts twice. Filters contain both strands.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, i32, i64, u8, u32, u64

from .filters import BLOCKED, EMPTY, WORDS_OF_BLOCK, bits_of_word, block_of
from .hashes import bkdr, code, dek, djb, js, letter_of, mixed, pjw, remixed, rs, sdbm
from .mutants import bits_of, hash_of, place_of

THREADS = 128
"""Threads per block of every kernel here."""
SPAN = 32
"""Consecutive windows counted by a thread."""
BINS = 256
"""Bins of the histogram of counts; the last one includes all higher counts."""


@st.device
def claimed(keys: Global[u64], key: u64) -> i64:
    """The key's slot, or -1 minus the slot if the key was inserted."""
    last = u64(len(keys) - 1)
    slot = (mixed(key) >> 32) & last
    while True:
        seen = keys[slot]  # simtbed: allow race - a set key does not change, and only compare_swap sets one
        if seen == EMPTY:
            seen = st.compare_swap(keys, slot, EMPTY, key)
            if seen == EMPTY:
                return -1 - i64(slot)
        if seen == key:
            return i64(slot)
        slot = (slot + 1) & last


@st.device
def tallied(keys: Global[u64], counts: Global[u32], used: Global[u32], key: u64, amount: u32) -> None:
    slot = claimed(keys, key)
    if slot < 0:
        st.atomic_add(used, 0, 1)
        slot = -1 - slot
    st.atomic_add(counts, slot, amount)


@st.device
def base(letter: u8) -> bool:
    return letter == 65 or letter == 67 or letter == 71 or letter == 84


@st.kernel
def count(text: Global[u8], keys: Global[u64], counts: Global[u32], used: Global[u32], K: Const) -> None:
    """Count the windows of the text that consist of bases. used[0]: number of used slots of the table."""
    begin = (st.block.x * THREADS + st.thread.x) * SPAN
    end = min(begin + SPAN + K - 1, len(text))
    mask = (u64(1) << (2 * K)) - 1
    forward, reverse = u64(0), u64(0)
    run = 0  # bases since the last other letter
    for i in range(begin, end):
        letter = text[i]
        forward = (forward >> 2) | (code(letter) << (2 * K - 2))
        reverse = ((reverse << 2) | (code(letter) ^ 2)) & mask
        run = run + 1 if base(letter) else 0
        if run >= K:
            tallied(keys, counts, used, min(forward, reverse), u32(2) if forward == reverse else u32(1))


@st.kernel
def rehash(
    old_keys: Global[u64], old_counts: Global[u32], keys: Global[u64], counts: Global[u32], used: Global[u32]
) -> None:
    """Copy the counts of one table into a larger one."""
    slot = st.block.x * THREADS + st.thread.x
    if slot < len(old_keys):
        key = old_keys[slot]
        if key != EMPTY:
            tallied(keys, counts, used, key, old_counts[slot])


@st.kernel
def histogram(keys: Global[u64], counts: Global[u32], bins: Global[u32]) -> None:
    """bins[n]: number of keys with count n."""
    mine = st.shared(u32, BINS)
    for i in range(st.thread.x, BINS, THREADS):
        mine[i] = 0
    st.sync()
    slot = st.block.x * THREADS + st.thread.x
    if slot < len(keys):  # noqa: SIM102
        if keys[slot] != EMPTY:
            st.atomic_add(mine, i32(min(counts[slot], BINS - 1)), 1)
    st.sync()
    for i in range(st.thread.x, BINS, THREADS):
        times = mine[i]
        if times > 0:
            st.atomic_add(bins, i, times)


@st.kernel
def gather(
    keys: Global[u64], counts: Global[u32], found: Global[u64], total: Global[u32], minimum: u32, K: Const
) -> None:
    """The solid k-mers of both strands, unordered; total[0] of them."""
    slot = st.block.x * THREADS + st.thread.x
    if slot >= len(keys) or counts[slot] < minimum:
        return
    key = keys[slot]
    rest, reverse = key, u64(0)
    for _ in range(K):
        reverse = (reverse << 2) | ((rest & 3) ^ 2)
        rest >>= 2
    strands = u32(1) if reverse == key else u32(2)
    at = st.atomic_add(total, 0, strands)
    found[at] = key
    if strands == 2:
        found[at + 1] = reverse


# ------------------------------------------------------------------ filters
@st.kernel
def build_set(found: Global[u64], keys: Global[u64]) -> None:
    """keys: more slots than k-mers, EMPTY at first."""
    i = st.block.x * THREADS + st.thread.x
    if i < len(found):
        claimed(keys, found[i])


@st.kernel
def build_blocked(found: Global[u64], keys: Global[u64]) -> None:
    """Build the cache-blocked filter: the bits of every k-mer in the words of its block."""
    i = st.block.x * THREADS + st.thread.x
    if i < len(found):
        hash = mixed(found[i])
        block = block_of(keys, hash)
        for word in st.unroll(range(WORDS_OF_BLOCK)):
            st.atomic_or(keys, i64(block) + i64(word), bits_of_word(remixed(hash), word))


@st.kernel
def build_words(found: Global[u64], words: Global[u64], K: Const) -> None:
    """Build the filter of mutants: the bits of every k-mer in its three words."""
    i = st.block.x * THREADS + st.thread.x
    if i < len(found):
        key = found[i]
        bits = bits_of(hash_of(key))
        for third in st.unroll(range(3)):
            st.atomic_or(words, i64(place_of(words, key, third, K)), bits)


@st.device
def set_bit(bits: Global[u32], bit: u32) -> None:
    st.atomic_or(bits, bit >> 5, u32(1) << (bit & 31))


@st.kernel
def build_bloom(found: Global[u64], bits: Global[u32], size: u32, K: Const, LAYOUT: Const) -> None:
    """Set the eight bits of every k-mer among `size`."""
    letters = st.local(u8, K)
    i = st.block.x * THREADS + st.thread.x
    if i < len(found):
        key = found[i]
        for k in range(K):
            letters[k] = letter_of(i32((key >> u64(2 * k)) & 3))
        region = size // LAYOUT if LAYOUT > BLOCKED else size
        begin = region if LAYOUT > BLOCKED else u32(0)
        rest = size - begin
        nowhere, nothing = -1, u8(0)
        set_bit(bits, rs(letters, 0, nowhere, nothing, K) % region)
        set_bit(bits, begin + js(letters, 0, nowhere, nothing, K) % rest)
        set_bit(bits, begin + pjw(letters, 0, nowhere, nothing, K) % rest)
        set_bit(bits, begin + bkdr(letters, 0, nowhere, nothing, K) % rest)
        set_bit(bits, begin + sdbm(letters, 0, nowhere, nothing, K) % rest)
        set_bit(bits, begin + djb(letters, 0, nowhere, nothing, K) % rest)
        set_bit(bits, begin + dek(letters, 0, nowhere, nothing, K) % rest)


KERNELS = frozenset((count, rehash, histogram, gather, build_set, build_blocked, build_words, build_bloom))
