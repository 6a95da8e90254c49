"""`tiled` for vectors larger than a block: a block owns a section of one product, and a and b are streamed through shared memory."""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f64, i32

from .tiled import multiply, tile_exponent
from .wide import EMPTY, power_of_two

BLOCK = 128
"""Threads of a block, each with its tile; a divisor of the tiles of every vector."""
STAGE = 32
"""Tiles of a in shared memory at a time."""


@st.kernel
def tiled_merge(
    source: Global[f64],
    source_exponents: Global[i32],
    target: Global[f64],
    target_exponents: Global[i32],
    individuals: i32,
    width: i32,
    vectors: i32,
    R: Const,
    GROUP: Const,
    BLOCK: Const,
    STAGE: Const,
) -> None:
    """target = adjacent vectors of source multiplied. A site has `vectors` vectors of `width` tiles; a pair is replaced by the
    2 width tiles of its product. `multiply` is the work of a thread, as in `tiled`."""
    a_tiles = st.shared(f64, STAGE * R)
    b_tiles = st.shared(f64, (BLOCK + STAGE) * R)
    a_powers = st.shared(i32, STAGE)
    b_powers = st.shared(i32, BLOCK + STAGE)
    low = st.registers(f64, R)
    high = st.registers(f64, R)
    window = st.registers(f64, R)
    t = st.thread.x
    stretches = width // BLOCK
    pair = st.block.x // stretches
    first_own = st.block.x % stretches * BLOCK
    own = first_own + t
    b = 2 * pair * width
    a = b + width
    individual = (2 * (pair % (vectors // 2)) + 1) * width * GROUP
    count = 2 * min(max(individuals - individual, 0), width * GROUP) // R + 1
    below, above = i32(EMPTY), i32(EMPTY)
    for i in range(count):
        power = source_exponents[a + i]
        here = power + source_exponents[b + ((own - i) & (width - 1))]
        after = power + source_exponents[b + ((own - i - 1) & (width - 1))]
        below = max(below, here) if i <= own else below
        above = above if i <= own else max(above, here)
        below = max(below, after) if i < own else below
        above = above if i < own else max(above, after)
    for r in st.unroll(range(R)):
        low[r] = 0
        high[r] = 0
    for start in range(0, count, STAGE):
        first = first_own - start - STAGE  # of the tiles of b that these tiles of a are multiplied by
        st.sync()
        for k in range(t, STAGE * R, BLOCK):
            a_tiles[k] = source[(a + start) * R + k]
        for k in range(t, (BLOCK + STAGE) * R, BLOCK):
            b_tiles[k] = source[(b + ((first + k // R) & (width - 1))) * R + k % R]
        for k in range(t, STAGE, BLOCK):
            a_powers[k] = source_exponents[a + start + k]
        for k in range(t, BLOCK + STAGE, BLOCK):
            b_powers[k] = source_exponents[b + ((first + k) & (width - 1))]
        st.sync()
        for stage in range(min(STAGE, count - start)):
            tile, other = start + stage, t + STAGE - stage
            here = a_powers[stage] + b_powers[other] - (below if tile <= own else above)
            after = a_powers[stage] + b_powers[other - 1] - (below if tile < own else above)
            multiply(
                a_tiles, stage * R, b_tiles, other * R, (other - 1) * R, power_of_two(here), power_of_two(after),
                tile == own, low, high, window, R,
            )  # fmt: skip
    if own >= count:
        for r in st.unroll(range(R)):
            low[r] = high[r]
            high[r] = 0
    power = tile_exponent(low, R)
    target_exponents[b + own] = max(below + power, EMPTY)
    for r in st.unroll(range(R)):
        target[(b + own) * R + r] = low[r] * power_of_two(-power)
    power = tile_exponent(high, R)
    target_exponents[a + own] = max(above + power, EMPTY)
    for r in st.unroll(range(R)):
        target[(a + own) * R + r] = high[r] * power_of_two(-power)
