"""Feature kernels of the words for a warp beyond shuffles and votes, and of its time. See features.py."""

from functools import reduce

import simtbed as st
from simtbed import Global, i32, i64, u32

from .feature import feature, out

_ALL = 0xFFFFFFFF


@feature([v for x in range(64) for v in (_ALL if x < 32 else 0, int(x < 32))], block=64, out=out(128, "u32"))
@st.kernel
def matches_of_all(out: Global[u32]) -> None:
    t = st.thread.x
    mask, equal = st.match_all(t // 40)
    out[2 * t] = mask
    out[2 * t + 1] = u32(equal)


@feature([v for x in range(32) for v in (496, 0, 31)], out=out(96))
@st.kernel
def reductions_of_i32(out: Global[i32]) -> None:
    x = st.lane
    out[3 * x] = st.reduce_add(x)
    out[3 * x + 1] = st.reduce_min(x - 16) + 16
    out[3 * x + 2] = st.reduce_max(x - 16) + 16


@feature(
    [
        v
        for x in range(32)
        for same in [[n for n in range(32) if n % 4 == x % 4]]
        for v in (
            sum(same) + len(same) * 0xFFFFFF00 & _ALL,
            min(same),
            max(same),
            reduce(lambda a, b: a & b, (0xFF ^ n for n in same)),
            reduce(lambda a, b: a | b, same),
            reduce(lambda a, b: a ^ b, same[1:], same[0]),
        )
    ],
    out=out(192, "u32"),
)
@st.kernel
def reductions_of_parts_of_a_warp(out: Global[u32]) -> None:
    x = u32(st.lane)
    mask = st.match_any(st.lane % 4)
    for part in range(4):
        if st.lane % 4 == part:
            out[6 * st.lane] = st.reduce_add(x + 0xFFFFFF00, mask)
            out[6 * st.lane + 1] = st.reduce_min(x, mask)
            out[6 * st.lane + 2] = st.reduce_max(x, mask)
            out[6 * st.lane + 3] = st.reduce_and(x ^ 0xFF, mask)
            out[6 * st.lane + 4] = st.reduce_or(x, mask)
            out[6 * st.lane + 5] = st.reduce_xor(x, mask)


@feature([sum(range(16)) if x < 16 else 7 for x in range(32)], out=out())
@st.kernel
def reduction_in_a_branch(out: Global[i32]) -> None:
    total = 7
    if st.lane < 16:
        total = st.reduce_add(st.lane, 0xFFFF)
    out[st.lane] = total


@feature(
    [v for x in range(32) for v in ((1 << x) - 1, (2 << x) - 1, 1 << x, _ALL ^ ((1 << x) - 1), _ALL ^ ((2 << x) - 1))],
    out=out(160, "u32"),
)
@st.kernel
def lane_masks(out: Global[u32]) -> None:
    x = 5 * st.lane
    out[x] = st.lanemask_lt()
    out[x + 1] = st.lanemask_le()
    out[x + 2] = st.lanemask_eq()
    out[x + 3] = st.lanemask_ge()
    out[x + 4] = st.lanemask_gt()


@feature([1] * 32, out=out())
@st.kernel
def clocks_move_on(out: Global[i32]) -> None:
    first = st.clock64()
    narrow = st.clock()
    waited = i64(0)
    while waited < 10:
        st.nanosleep(u32(20))
        waited = st.clock64() - first
    out[st.lane] = i32(st.clock64() > first and st.clock() - narrow > 0)


@feature([(x * 2654435761 >> 32) + (32 - x.bit_length() if x else 32) for x in range(32)], out=out())
@st.kernel
def bits_of_integers(out: Global[i32]) -> None:
    x = u32(st.lane)
    high = st.mulhi(x, 2654435761)
    swapped = st.byte_perm(st.brev(x), 0, 0x0123)
    again = st.byte_perm(swapped, u32(0), 0x0123)
    out[st.lane] = i32(high) + st.clz(st.brev(again))
