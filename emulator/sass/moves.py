"""Moves of 8x8 matrices of 16-bit elements between the lanes of a warp, as machine code."""

from functools import cache
from typing import Any

import numpy as np

from ..ir.matrices import moved_elements
from ..language.hints import Global, i64, u32
from ..language.intrinsics import WARP_SIZE
from ..native import native

FORMS = tuple((mode, transposed) for mode in ("load", "store", "move") for transposed in (False, True))
"""Moves of `ir.matrices.moved`."""


@cache
def places() -> Any:
    """Return `ir.matrices.moved_elements` of each form, u32[FORMS, 4 registers, 32 lanes]."""
    return np.array([moved_elements(*form, 4) for form in FORMS], np.uint32)


@native
def move_elements(words: Global[u32], places: Global[u32], out: Global[u32]) -> None:
    """Move elements. words, out: [4, 32]; places: those of a form."""
    for n in range(i64(4 * WARP_SIZE)):
        low, high = places[n] & u32(0xFFFF), places[n] >> u32(16)
        first = words[i64(low >> u32(1))] >> (u32(16) * (low & u32(1)))
        second = words[i64(high >> u32(1))] >> (u32(16) * (high & u32(1)))
        out[n] = (first & u32(0xFFFF)) | second << u32(16)
