"""Whether a k-mer is solid, asked of an exact set, or of CUDA-EC's Bloom filter.

exact: `keys` is a hash table of packed k-mers, open addressing, a power of two of slots, EMPTY in those without one.
Bloom: 64 bits a k-mer, eight probes in order, the first 0 bit ends the query. `split-first` (the paper's Fig. 1) has
its first probe in a region of its own, a part of the bits, which caches hold better and which is denser: a LAYOUT above
BLOOM is the number of such parts.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, Global, i32, u8, u32, u64

from .hashes import bkdr, dek, djb, js, mixed, packed_key, pjw, rs, sdbm

EXACT, BLOOM = 0, 1
EMPTY = (1 << 64) - 1


@st.device
def bit_set(bits: Global[u32], bit: u32) -> bool:
    word = bits[bit >> 5]
    return (word >> (bit & 31)) & 1 != 0


@st.device
def in_bloom(
    bits: Global[u32], size: u32, letters: Array[u8], first: i32, at: i32, other: u8, K: Const, LAYOUT: Const
) -> bool:
    """`size` is the number of bits."""
    region = size // LAYOUT if LAYOUT > BLOOM else size
    begin = region if LAYOUT > BLOOM else u32(0)
    rest = size - begin
    if not bit_set(bits, rs(letters, first, at, other, K) % region):
        return False
    if not bit_set(bits, begin + js(letters, first, at, other, K) % rest):
        return False
    if not bit_set(bits, begin + pjw(letters, first, at, other, K) % rest):
        return False
    # The fourth function, ELF, is PJW in other words: its bit is the same, and CUDA-EC asks for it again.
    if not bit_set(bits, begin + pjw(letters, first, at, other, K) % rest):
        return False
    if not bit_set(bits, begin + bkdr(letters, first, at, other, K) % rest):
        return False
    if not bit_set(bits, begin + sdbm(letters, first, at, other, K) % rest):
        return False
    if not bit_set(bits, begin + djb(letters, first, at, other, K) % rest):
        return False
    return bit_set(bits, begin + dek(letters, first, at, other, K) % rest)


@st.device
def in_set(keys: Global[u64], hash: u64, key: u64) -> bool:
    """`hash` is mixed(key)."""
    last = u64(len(keys) - 1)
    slot = (hash >> 32) & last
    seen = keys[slot]
    while seen != key and seen != EMPTY:
        slot = (slot + 1) & last
        seen = keys[slot]
    return seen == key


@st.device
def slot_of(keys: Global[u64], hash: u64) -> u64:
    """The first slot in which a key of that hash may be."""
    return (hash >> 32) & u64(len(keys) - 1)


@st.device
def found_from(keys: Global[u64], begin: u64, first_seen: u64, key: u64) -> bool:
    """Whether the key is in the set, of which `first_seen` was in the slot `begin`, the first in which it may be."""
    slot, seen = begin, first_seen
    while seen != key and seen != EMPTY:
        slot = (slot + 1) & u64(len(keys) - 1)
        seen = keys[slot]
    return seen == key


@st.device
def solid(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, at: i32, other: u8, K: Const, FILTER: Const
) -> bool:  # fmt: skip
    """Whether the window of letters, with `other` in place `at`, is solid."""
    if FILTER == EXACT:
        key = packed_key(letters, first, at, other, K)
        return in_set(keys, mixed(key), key)
    else:
        return in_bloom(bits, size, letters, first, at, other, K, FILTER)
