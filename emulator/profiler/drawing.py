"""Which blocks of a launch stand for all of them: drawn by their numbers, so the same ones each time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i64
from ..native import native


@st.device
def number_of(number: i64) -> i64:
    """24 bits drawn for a number."""
    return ((number + 1) * -0x61C8864680B583EB >> 17 & 0x7FFFFFFFFFF) * 0x2545F491 >> 15 & 0xFFFFFF


@native
def _draw(numbers: Global[i64], count: i64) -> None:
    """Instead of each number what is drawn for it."""
    for n in range(count):
        numbers[n] = number_of(numbers[n])


def drawn(blocks: npt.NDArray[np.int64], apart: int) -> npt.NDArray[np.bool_]:
    """Which blocks are kept where one of so many is."""
    if apart == 1:
        return np.ones(len(blocks), np.bool_)
    numbers = np.array(blocks)
    _draw(numbers, len(numbers))
    return np.asarray(numbers * apart < 1 << 24)
