"""Polynomial products as outer products of tiles in registers; a block computes one or several whole sites.

A thread owns R = 17 adjacent coefficients of c and the 17 coefficients one period above. It reads a in tiles of 17, too. A tile of a
times the matching tiles of b are 289 multiply-adds for 51 values from shared memory; 17 is odd, so that the accesses of threads
with a stride of one tile have no bank conflicts. Vectors of 8 individuals have 17 coefficients; all others have a power of two
of tiles.

b is read periodically, so that whole tiles suffice. At the wrap-around a thread saves its sums (coefficients below the period) and
restarts at zero (those above). Every thread does the same work without waiting. Each tile has its own exponent (see `wide`),
normalised by its owner.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Registers, Shared, f64, i32

from .wide import EMPTY, exponent_of, power_of_two

R = 17
"""Coefficients of a tile."""
GROUP = 8
"""Individuals whose product is one tile."""
FUSED = 256
"""Tiles of the longest vector computed inside a block."""
SLOTS = 128
"""Minimum number of tiles of a block: it computes several sites if a site has fewer tiles."""


@st.device
def multiply(
    a: Shared[f64],
    a_at: i32,
    b: Shared[f64],
    b_at: i32,
    b_next: i32,
    here: f64,
    after: f64,
    turn: bool,
    low: Registers[f64],
    high: Registers[f64],
    window: Registers[f64],
    R: Const,
) -> None:
    """high += tile of a times its two tiles of b, `here` and `after` their scales; at the wrap-around (`turn`), high moves to low."""
    for r in st.unroll(range(R)):
        window[r] = b[b_at + r] * here
    for t in st.unroll(range(R)):
        x = a[a_at + t]
        for r in st.unroll(range(R)):
            high[r] = st.fma(x, window[(r - t + R) % R], high[r])
        # Coefficient t now includes all products below the wrap-around.
        if turn:
            low[t] = high[t]
            high[t] = 0
        window[R - 1 - t] = b[b_next + (R - 1 - t)] * after


@st.device
def tile_exponent(tile: Registers[f64], R: Const) -> i32:
    """Return the exponent of a tile's largest coefficient."""
    largest = tile[0]
    for r in st.unroll(range(1, R)):
        largest = max(largest, tile[r])
    return exponent_of(largest)


@st.kernel
def tiled(
    vectors: Global[f64],
    h: Global[f64],
    exponents: Global[i32],
    individuals: i32,
    parts: i32,
    sites: i32,
    LEAVES: Const,
    HELD: Const,
    R: Const,
    GROUP: Const,
) -> None:
    """h = the product of the polynomials of a section of a site: GROUP LEAVES individuals; a site has `parts` of them.

    vectors: p of individual GROUP leaf + q of a section and power g at ((section GROUP + q) 3 + g) LEAVES + leaf; 1 0 0 for
    missing individuals. h: R LEAVES coefficients a section, exponents: LEAVES. A block has HELD sections and as many
    threads as pairs of tiles.
    """
    tiles = st.shared(f64, HELD * LEAVES * R)
    powers = st.shared(i32, HELD * LEAVES)
    low = st.registers(f64, R)
    high = st.registers(f64, R)
    window = st.registers(f64, R)
    first_part = st.block.x * HELD
    for slot in range(st.thread.x, HELD * LEAVES, HELD * LEAVES // 2):
        part = min(first_part + slot // LEAVES, parts * sites - 1)
        for r in st.unroll(range(R)):
            high[r] = 0
        high[0] = 1
        for q in st.unroll(range(GROUP)):
            at = (part * GROUP + q) * 3 * LEAVES + slot % LEAVES
            p0, p1, p2 = vectors[at], vectors[at + LEAVES], vectors[at + 2 * LEAVES]
            for k in st.unroll(range(2 * q + 1)):  # from the last coefficient down
                lower = st.fma(p1, high[2 * q + 1 - k], p2 * high[2 * q - k])
                high[2 * q + 2 - k] = st.fma(p0, high[2 * q + 2 - k], lower)
            high[1] = st.fma(p0, high[1], p1 * high[0])
            high[0] = p0 * high[0]
        power = tile_exponent(high, R)
        powers[slot] = power
        for r in st.unroll(range(R)):
            tiles[slot * R + r] = high[r] * power_of_two(-power)

    width = 1  # tiles of a vector
    while width < LEAVES:
        own = st.thread.x & (width - 1)
        b = (st.thread.x - own) * 2
        a = b + width
        part = (first_part + st.thread.x * 2 // LEAVES) % parts
        individual = (part * LEAVES + a % LEAVES) * GROUP
        a_tiles = 2 * min(max(individuals - individual, 0), width * GROUP) // R + 1
        st.sync()
        below, above = i32(EMPTY), i32(EMPTY)  # exponents of the thread's two tiles of c, not exceeded by any product
        for i in range(a_tiles):
            power = powers[a + i]
            here = power + powers[b + ((own - i) & (width - 1))]
            after = power + powers[b + ((own - i - 1) & (width - 1))]
            below = max(below, here) if i <= own else below
            above = above if i <= own else max(above, here)
            below = max(below, after) if i < own else below
            above = above if i < own else max(above, after)
        for r in st.unroll(range(R)):
            low[r] = 0
            high[r] = 0
        for i in range(a_tiles):
            j, j_next = (own - i) & (width - 1), (own - i - 1) & (width - 1)
            power = powers[a + i]
            here = power + powers[b + j] - (below if i <= own else above)
            after = power + powers[b + j_next] - (below if i < own else above)
            multiply(
                tiles, (a + i) * R, tiles, (b + j) * R, (b + j_next) * R, power_of_two(here), power_of_two(after),
                i == own, low, high, window, R,
            )  # fmt: skip
        if own >= a_tiles:
            for r in st.unroll(range(R)):
                low[r] = high[r]
                high[r] = 0
        st.sync()
        power = tile_exponent(low, R)
        powers[b + own] = max(below + power, EMPTY)
        for r in st.unroll(range(R)):
            tiles[(b + own) * R + r] = low[r] * power_of_two(-power)
        power = tile_exponent(high, R)
        powers[a + own] = max(above + power, EMPTY)
        for r in st.unroll(range(R)):
            tiles[(a + own) * R + r] = high[r] * power_of_two(-power)
        width *= 2

    st.sync()
    held = min(parts * sites - first_part, HELD)
    for k in range(st.thread.x, held * LEAVES * R, HELD * LEAVES // 2):
        h[first_part * LEAVES * R + k] = tiles[k]
    for k in range(st.thread.x, held * LEAVES, HELD * LEAVES // 2):
        exponents[first_part * LEAVES + k] = powers[k]
