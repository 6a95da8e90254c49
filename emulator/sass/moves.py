"""Moves of 8x8 matrices of 16-bit elements between the lanes of a warp, as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.matrices import moved
from ..language.hints import Global, i64, u32
from ..language.intrinsics import WARP_SIZE
from ..native import native

FORMS = tuple((mode, transposed) for mode in ("load", "store", "move") for transposed in (False, True))
"""Moves of `ir.matrices.moved`."""


def places() -> Any:
    """Return the two elements, low | high << 16, of each word of the result of a move: u32[FORMS, 4 registers, 32 lanes]. Elements are
    numbered through the words of the values, [4, 32]."""
    words = np.arange(4 * WARP_SIZE, dtype=np.uint32).reshape(4, WARP_SIZE)
    return np.array([moved(*form, list(2 * words | (2 * words + 1) << 16)) for form in FORMS], np.uint32)


@native
def move_elements(words: Global[u32], places: Global[u32], out: Global[u32]) -> None:
    """Move elements. words, out: [4, 32]; places: those of a form."""
    for n in range(i64(4 * WARP_SIZE)):
        low, high = places[n] & u32(0xFFFF), places[n] >> u32(16)
        first = words[i64(low >> u32(1))] >> (u32(16) * (low & u32(1)))
        second = words[i64(high >> u32(1))] >> (u32(16) * (high & u32(1)))
        out[n] = (first & u32(0xFFFF)) | second << u32(16)
