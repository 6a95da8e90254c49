"""Which blocks of a launch stand for all of them: drawn by their numbers, so the same ones each time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i64
from ..native import native

FACTORS = (-0x61C8864680B583EB, 0x2545F491)
"""Odd factors, by which bits are mixed; which ones does not matter. Compiled code that traces has them too (`counters.trace`)."""


@st.device
def number_of(number: i64) -> i64:
    """24 bits drawn for a number."""
    return ((number + 1) * FACTORS[0] >> 17 & 0x7FFFFFFFFFF) * FACTORS[1] >> 15 & 0xFFFFFF


@st.device
def is_drawn(block: i64, apart: i64) -> bool:
    """Whether a block is kept where one of so many is."""
    return number_of(block) * apart < i64(1) << 24


@native
def _drawn(blocks: Global[i64], count: i64, apart: i64, found: Global[bool]) -> None:
    for n in range(count):
        found[n] = is_drawn(blocks[n], apart)


def drawn(blocks: npt.NDArray[np.int64], apart: int) -> npt.NDArray[np.bool_]:
    """`is_drawn`, of many blocks."""
    found = np.ones(len(blocks), np.bool_)
    if apart > 1:
        _drawn(np.ascontiguousarray(blocks), len(blocks), apart, found)
    return found
