"""Deterministic sampling of the blocks of a launch: a hash of the block's number decides, so each run samples the same blocks."""

import numpy as np
import numpy.typing as npt

from .. import language as st
from ..language.hints import Global, i64
from ..native import native

FACTORS = (-0x61C8864680B583EB, 0x2545F491)
"""Odd factors of the hash. Compiled code that traces has the same hash (`counters.trace`)."""


@st.device
def is_sampled(block: i64, interval: i64) -> bool:
    """Return whether a block is sampled. interval: one of so many blocks is."""
    hash = ((block + 1) * FACTORS[0] >> 17 & 0x7FFFFFFFFFF) * FACTORS[1] >> 15 & 0xFFFFFF  # 24 bits
    return hash * interval < i64(1) << 24


@native
def _sample(blocks: Global[i64], count: i64, interval: i64, sampled: Global[bool]) -> None:
    for n in range(count):
        sampled[n] = is_sampled(blocks[n], interval)


def sampled_blocks(blocks: npt.NDArray[np.int64], interval: int) -> npt.NDArray[np.bool_]:
    """Return `is_sampled` of each block."""
    sampled = np.ones(len(blocks), np.bool_)
    if interval > 1:
        _sample(np.ascontiguousarray(blocks), len(blocks), interval, sampled)
    return sampled
