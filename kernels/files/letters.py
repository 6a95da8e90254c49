"""Letters of sequences: one rule for every family and format.

A, C, G, T and N are read in either case, U as T, and every other IUPAC code as N. Other characters are no letters.
"""

from __future__ import annotations

import numpy as np
import simtbed as st
from simtbed import Global, SimtbedError, i64, u8
from simtbed.native import native

from .pieces import Bytes
from .text import excerpt

EXPECTED = "expected A, C, G, T, U, N or another IUPAC code"
_IUPAC = b"RYSWKMBDHV"
_NO_LETTER = 0


def _table() -> bytes:
    table = bytearray(256)
    for codes, bases in ((b"ACGTUN", b"ACGTTN"), (_IUPAC, b"N" * len(_IUPAC))):
        for code, base in zip(codes, bases, strict=True):
            table[code] = table[code | 0x20] = base
    return bytes(table)


FOLDED = _table()
"""The base A, C, G, T or N of each character, for `bytes.translate`; 0 for a character that is no letter."""
_FOLDED = np.frombuffer(FOLDED, np.uint8)
_CODES = tuple(FOLDED)


def folded(sequence: Bytes) -> Bytes:
    """Return the bases of letters. Raises SimtbedError for another character."""
    bases = _FOLDED[sequence]
    if len(bases) and not bases.min():
        raise SimtbedError(f"{no_letter(sequence.tobytes())}, {EXPECTED}")
    return bases


def no_letter(sequence: bytes) -> str:
    """Return the first character that is no letter and its position from 1; an empty text if all are letters."""
    at = sequence.translate(FOLDED).find(_NO_LETTER)
    return "" if at < 0 else f"{excerpt(sequence[at : at + 1])} at {at + 1}"


@st.device
def fold_letters(data: Global[u8], first: i64, length: i64, to: Global[u8], begin: i64) -> bool:
    """Write the bases of letters. Return whether all characters are letters.

    The first loop has A, C, G, T, U and N only, so that it can be vectorised.
    """
    others = False
    for i in range(length):
        c = data[first + i] & 0xDF
        c = c - u8(c == 85)
        others = others | ((c != 65) & (c != 67) & (c != 71) & (c != 84) & (c != 78))
        to[begin + i] = c
    if others:
        codes = st.constant(u8, _CODES)
        others = False
        for i in range(length):
            base = codes[i64(data[first + i])]
            others = others | (base == _NO_LETTER)
            to[begin + i] = base
    return not others


@native
def fold_sequences(text: Global[u8], offsets: Global[i64], count: i64) -> i64:
    """Replace the letters of sequences by their bases. Return the first sequence without letters or with another character, or -1."""
    for number in range(count):
        first, end = offsets[number], offsets[number + 1]
        if first == end or not fold_letters(text, first, end - first, text, first):
            return i64(number)
    return i64(-1)
