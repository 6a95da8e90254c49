"""Native loops over the k-mers of a text dump."""

from __future__ import annotations

import simtbed as st
from simtbed import Global, i64, u8, u32, u64
from simtbed.native import native

from ...files.text_loops import decimal, line_end, without_return

MAX_COUNT = (1 << 31) - 1
"""Maximum count of a line: the sum of two lines, for both strands, fits into u32."""
LETTERS = 0x47544341
"""Letters of the codes 0 to 3: A, C, T, G."""


@st.device
def blank(letter: u8) -> bool:
    return letter == 32 or letter == 9


@st.device
def number_in(data: Global[u8], first: i64, end: i64) -> i64:
    """Return a count; 0 if it is missing or too large."""
    state = i64(0)
    if end - first > 10:
        return i64(0)
    for at in range(first, end):
        if data[at] < 48 or data[at] > 57:
            return i64(0)
        state = state * 10 + i64(data[at]) - 48
    return state if state < 1 << 32 else i64(0)


@st.device
def is_kmer(data: Global[u8], first: i64, end: i64, k: i64) -> bool:
    """Return whether the bytes are k letters A, C, G, T or U in either case."""
    if end - first != k:
        return False
    wrong = False
    for at in range(first, end):
        letter = data[at] & 0xDF
        wrong = wrong | ((letter != 65) & (letter != 67) & (letter != 71) & (letter != 84) & (letter != 85))
    return not wrong


@native
def scan_spectrum(
    data: Global[u8], length: i64, k: i64, two_lines: bool, keys: Global[u64], counts: Global[u32], state: Global[i64]
) -> bool:
    """Parse records; return whether all are valid. keys: the smaller packed strand of each k-mer. counts: doubled if both strands are
    equal. state: number of k-mers, start of the first invalid line. two_lines: whether a record has two lines."""
    at = i64(0)
    records = i64(0)
    shift = u64(2 * (k - 1))
    while at < length:
        state[0] = records
        state[1] = at
        end = line_end(data, at, length)
        last = without_return(data, at, end)
        kmer = at
        count = i64(0)
        if two_lines:
            if data[at] != 62:
                return False
            count = number_in(data, at + 1, last)
            if end >= length:
                return False
            kmer = end + 1
            end = line_end(data, kmer, length)
            last = without_return(data, kmer, end)
            state[1] = kmer if count > 0 else at
        else:
            middle = kmer
            while middle < last and not blank(data[middle]):
                middle += 1
            number = middle
            while number < last and blank(data[number]):
                number += 1
            count = number_in(data, number, last)
            last = middle
        if count == 0 or not is_kmer(data, kmer, last, k):
            return False
        forward = u64(0)
        reverse = u64(0)
        for place in range(kmer, last):
            code = u64((data[place] >> 1) & 3)  # the same of T and U
            forward = (forward >> 2) | (code << shift)
            reverse = (reverse << 2) | (code ^ 2)
        count = 2 * count if forward == reverse else count
        keys[records] = min(forward, reverse)
        counts[records] = u32(min(count, i64(MAX_COUNT)))
        records += 1
        at = end + 1
    state[0] = records
    return True


@native
def format_spectrum(keys: Global[u64], counts: Global[u32], number: i64, k: i64, to: Global[u8]) -> i64:
    """Write `KMER<tab>COUNT` lines; return the length."""
    at = i64(0)
    for n in range(number):
        rest = keys[n]
        reverse = u64(0)
        for place in range(k):
            code = rest & 3
            rest >>= 2
            reverse = (reverse << 2) | (code ^ 2)
            to[at + place] = u8((u64(LETTERS) >> (8 * code)) & 255)
        to[at + k] = 9
        count = i64(counts[n])
        at = decimal(count // 2 if reverse == keys[n] else count, to, at + k + 1)
        to[at] = 10
        at += 1
    return at
