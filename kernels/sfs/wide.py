"""Coefficients of any size: 32 adjacent ones, or a tile, share an exponent of two, so that mantissas remain in the range of doubles.

Over a whole spectrum, C(2N, j) alone spans e^138000 at N = 100,000. Adjacent coefficients differ by a factor of at most 2N, so a
segment of 32 remains well inside the range of doubles. A vector is stored as mantissas and one exponent per segment: coefficient j
is mantissa[j] 2^exponent[j // 32], and the largest mantissa of a segment is in [1, 2). Scaling by powers of two is exact. A merge
first bounds the exponents of its result, then adds products scaled to them, then normalises the mantissas.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f64, i32, i64

SEGMENT = 32
"""Coefficients that share an exponent in `iterative` and the reductions."""
WARP = 32
EMPTY = -(1 << 28)
"""Exponent of a segment of zeros; far below every other, and sums of two fit into i32."""


@st.device
def power_of_two(exponent: i32) -> f64:
    """Return 2^exponent; 0 below the normal doubles and 2^1023 above them."""
    return st.bitcast(f64, i64(min(max(exponent + 1023, 0), 2046)) << i64(52))


@st.device
def exponent_of(x: f64) -> i32:
    """Return the largest e with 2^e <= x, EMPTY for 0; -1023 for other numbers that are not normal doubles."""
    return i32(st.bitcast(i64, x) >> i64(52)) - 1023 if x > 0 else i32(EMPTY)


@st.device
def meet(TEAM: Const) -> None:
    """Wait for the team, a warp or a block: its threads see each other's earlier writes."""
    if TEAM == WARP:
        st.syncwarp()
    else:
        st.sync()


@st.device
def bound(
    source_exponents: Global[i32],
    target_exponents: Global[i32],
    a: i32,
    a_segments: i32,
    b: i32,
    b_segments: i32,
    c: i32,
    c_segments: i32,
    rank: i32,
    TEAM: Const,
) -> None:
    """Exponents for c = a (x) b, not exceeded by any product: segments I of a and J of b affect I + J and I + J + 1 of c."""
    for segment in range(rank, c_segments, TEAM):
        most = i32(EMPTY)
        for i in range(max(segment - b_segments, 0), min(segment + 1, a_segments)):
            j = segment - i
            other = i32(EMPTY)
            if j < b_segments:
                other = source_exponents[b + j]
            if j > 0:
                other = max(other, source_exponents[b + j - 1])
            most = max(most, source_exponents[a + i] + other)
        target_exponents[c + segment] = most


@st.device
def settle(
    target: Global[f64], target_exponents: Global[i32], c: i32, length: i32, exponents: i32, rank: i32, TEAM: Const
) -> None:
    """Scale each segment of a new vector so that its largest mantissa is in [1, 2). A warp scales a segment."""
    for segment in range(rank // WARP, (length + SEGMENT - 1) // SEGMENT, TEAM // WARP):
        at = segment * SEGMENT + st.lane
        value = target[c + at] if at < length else f64(0)
        most = exponent_of(value)
        for k in st.unroll(range(5)):
            most = max(most, st.shuffle_xor(most, 16 >> k))
        if at < length:
            target[c + at] = value * power_of_two(-most)
        if st.lane == 0:
            target_exponents[exponents + segment] = max(target_exponents[exponents + segment] + most, EMPTY)
