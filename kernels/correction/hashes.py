"""Hash functions of the filters: CUDA-EC's eight over letters, and one over a k-mer packed into 64 bits.

The eight are Arash Partow's, over ASCII in 32-bit arithmetic. Each takes a window of letters and a letter `other` that replaces
letter `at` (at = -1: none), so that a mutant is hashed without being written. PJW and ELF are equal.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Array, Const, i32, u8, u32, u64


@st.device
def letter_at(letters: Array[u8], first: i32, i: i32, at: i32, other: u8) -> u32:
    """Return letter i of the window, after the replacement."""
    letter = letters[first + i]
    return u32(other if i == at else letter)


@st.device
def rs(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u32:
    h, a = u32(0), u32(63689)
    for i in range(K):
        h = h * a + letter_at(letters, first, i, at, other)
        a *= 378551
    return h


@st.device
def js(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u32:
    h = u32(1315423911)
    for i in range(K):
        h ^= (h << 5) + letter_at(letters, first, i, at, other) + (h >> 2)
    return h


@st.device
def pjw(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u32:
    h = u32(0)
    for i in range(K):
        h = (h << 4) + letter_at(letters, first, i, at, other)
        h = (h ^ ((h & 0xF0000000) >> 24)) & 0x0FFFFFFF
    return h


@st.device
def bkdr(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u32:
    h = u32(0)
    for i in range(K):
        h = h * 131 + letter_at(letters, first, i, at, other)
    return h


@st.device
def sdbm(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u32:
    h = u32(0)
    for i in range(K):
        h = letter_at(letters, first, i, at, other) + (h << 6) + (h << 16) - h
    return h


@st.device
def djb(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u32:
    h = u32(5381)
    for i in range(K):
        h = (h << 5) + h + letter_at(letters, first, i, at, other)
    return h


@st.device
def dek(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u32:
    h = u32(K)
    for i in range(K):
        h = (h << 5) ^ (h >> 27) ^ letter_at(letters, first, i, at, other)
    return h


# ------------------------------------------------------------------ packed k-mers
@st.device
def code(letter: u8) -> u64:
    """A 0, C 1, T 2, G 3: two bits of the letter itself. The complement's code differs in the upper bit."""
    return u64((letter >> 1) & 3)


@st.device
def letter_of(coded: i32) -> u8:
    """Return the letter of a code, from the four in one word."""
    return u8(u32(0x47544341) >> u32(coded * 8))


@st.device
def packed_key(letters: Array[u8], first: i32, at: i32, other: u8, K: Const) -> u64:
    """Return the window as 2 K bits, its first letter lowest."""
    key = u64(0)
    for i in range(K):
        letter = letters[first + i]
        key = (key >> 2) | (code(other if i == at else letter) << (2 * K - 2))
    return key


@st.device
def mixed(key: u64) -> u64:
    """Return a 64-bit hash; its upper bits depend on all bits of the key."""
    return (key ^ (key >> 29)) * 0x9E3779B97F4A7C15


@st.device
def remixed(hash: u64) -> u64:
    """Return a second 64-bit hash of a k-mer with 48 good upper bits: `hash` is mixed(key)."""
    return (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93


@st.device
def scattered(key: u64) -> u64:
    """Return a 64-bit hash without carries: the hash of a ^ b is the hash of a ^ the hash of b. A mutant's hash follows from its
    window's and its change's."""
    h = key ^ (key << 21)
    h ^= h >> 35
    h ^= h << 4
    h ^= h >> 13
    return h ^ (h << 25)
