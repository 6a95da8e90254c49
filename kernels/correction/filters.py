"""Filters of solid k-mers: an exact set, CUDA-EC's Bloom filter, and a cache-blocked Bloom filter.

exact: `keys` is a hash table of packed k-mers with open addressing and a power of two of slots; free slots are EMPTY.
Bloom: 64 bits per k-mer, eight probes in order; the first 0 bit ends the query. In `split-first` (the paper's Fig. 1) the first
probe has a separate region, a fraction of the bits, with more cache hits and a higher density: a LAYOUT above BLOCKED is the number
of such fractions.
blocked: `keys` is an array of blocks of 32 bytes, a sector of global memory. A k-mer has two bits in each of the four words of one
block, selected by its packed form, so that a query is one sector. With 64 to 128 bits per k-mer the false positive rate is below
one in a million. Reference: Putze, Sanders, Singler 2010, Cache-, hash- and space-efficient Bloom filters.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, Global, i32, u8, u32, u64

from .hashes import bkdr, dek, djb, js, mixed, packed_key, pjw, remixed, rs, sdbm

EXACT, BLOOM, BLOCKED = 0, 1, 2
BY_KEY = (EXACT, BLOCKED)
"""Filters queried by a packed k-mer."""
WORDS_OF_BLOCK, K_MERS_OF_BLOCK = 4, 4
"""Words of a block of the blocked filter, and the maximum average number of its k-mers."""
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
    region = size // LAYOUT if LAYOUT > BLOCKED else size
    begin = region if LAYOUT > BLOCKED else u32(0)
    rest = size - begin
    if not bit_set(bits, rs(letters, first, at, other, K) % region):
        return False
    if not bit_set(bits, begin + js(letters, first, at, other, K) % rest):
        return False
    if not bit_set(bits, begin + pjw(letters, first, at, other, K) % rest):
        return False
    # The fourth function, ELF, equals PJW: its bit is the same, and CUDA-EC queries it again.
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
def block_of(keys: Global[u64], hash: u64) -> u64:
    """Return the first word of the block of k-mers with that hash."""
    return ((hash >> 32) & (u64(len(keys)) // WORDS_OF_BLOCK - 1)) * WORDS_OF_BLOCK


@st.device
def bits_of_word(hash: u64, word: i32) -> u64:
    """Return the two bits of a k-mer in a word of its block; hash: `remixed`."""
    one = u64(1)
    return (one << (hash >> u64(16 + 12 * word) & 63)) | (one << (hash >> u64(22 + 12 * word) & 63))


@st.device
def in_block(keys: Global[u64], block: u64, first_seen: u64, hash: u64) -> bool:
    """Return whether all bits of a k-mer are in the block, whose first word is `first_seen`. hash: mixed(key)."""
    bits = remixed(hash)
    wanted = bits_of_word(bits, 0)
    if first_seen & wanted != wanted:
        return False
    for word in st.unroll(range(1, WORDS_OF_BLOCK)):
        wanted = bits_of_word(bits, word)
        if keys[block + u64(word)] & wanted != wanted:
            return False
    return True


@st.device
def in_set(keys: Global[u64], hash: u64, key: u64, FILTER: Const) -> bool:
    """Return whether a packed k-mer is in the set or in the blocked filter. `hash` is mixed(key)."""
    if FILTER == EXACT:
        last = u64(len(keys) - 1)
        slot = (hash >> 32) & last
        seen = keys[slot]
        while seen != key and seen != EMPTY:
            slot = (slot + 1) & last
            seen = keys[slot]
        return seen == key
    else:
        block = block_of(keys, hash)
        return in_block(keys, block, keys[block], hash)


@st.device
def slot_of(keys: Global[u64], hash: u64, FILTER: Const) -> u64:
    """Return the first probe of a key with that hash: a slot of the set, or the first word of its block."""
    if FILTER == EXACT:
        return (hash >> 32) & u64(len(keys) - 1)
    else:
        return block_of(keys, hash)


@st.device
def found_from(keys: Global[u64], begin: u64, first_seen: u64, key: u64, FILTER: Const) -> bool:
    """Return the result of `in_set` for the key; `first_seen` is the element at `begin`, its `slot_of`."""
    if FILTER == EXACT:
        slot, seen = begin, first_seen
        while seen != key and seen != EMPTY:
            slot = (slot + 1) & u64(len(keys) - 1)
            seen = keys[slot]
        return seen == key
    else:
        return in_block(keys, begin, first_seen, mixed(key))


@st.device
def solid(
    keys: Global[u64], bits: Global[u32], size: u32, letters: Array[u8], first: i32, at: i32, other: u8, K: Const, FILTER: Const
) -> bool:  # fmt: skip
    """Return whether the window of letters, with `other` in position `at`, is solid."""
    if FILTER == EXACT or FILTER == BLOCKED:  # noqa: SIM109, `in` is not in the language
        key = packed_key(letters, first, at, other, K)
        return in_set(keys, mixed(key), key, FILTER)
    else:
        return in_bloom(bits, size, letters, first, at, other, K, FILTER)
