"""Lu 2012, Algorithm 2 and Fig. 4: pairs of vectors merged level by level, in global memory.

A launch is one level. A team of threads, a warp or a block, computes one merge: each thread loads a coefficient of a and scans b.
In one step the threads write to distinct elements; a barrier follows each step. The paper's warps executed in lockstep on Fermi;
current warps need `syncwarp`, and a block its barrier (Fig. 11).
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f64, i32

from .wide import SEGMENT, WARP, bound, meet, power_of_two, settle


@st.device
def carry(
    source: Global[f64],
    source_exponents: Global[i32],
    target: Global[f64],
    target_exponents: Global[i32],
    a: i32,
    a_exponents: i32,
    length: i32,
    c: i32,
    c_exponents: i32,
    rank: i32,
    TEAM: Const,
) -> None:
    """Copy a vector without a partner to the next level."""
    for j in range(rank, length, TEAM):
        target[c + j] = source[a + j]
    for segment in range(rank, (length + SEGMENT - 1) // SEGMENT, TEAM):
        target_exponents[c_exponents + segment] = source_exponents[a_exponents + segment]


@st.kernel
def reduction(
    source: Global[f64],
    source_exponents: Global[i32],
    target: Global[f64],
    target_exponents: Global[i32],
    individuals: i32,
    group: i32,
    sites: i32,
    TEAM: Const,
    TEAMS: Const,
) -> None:
    """target = adjacent vectors of source multiplied, the polynomials of `group` individuals each.

    A vector has 2 group + 1 coefficients (the last of a site 2 individuals + 1 for its remaining individuals), vector after
    vector; a site's begin at 3 individuals site, their exponents at (individuals + 1) site. TEAM threads a merge,
    TEAMS merges a block.
    """
    rank = st.thread.x % TEAM
    merges = ((individuals + group - 1) // group + 1) // 2
    number = st.block.x * TEAMS + st.thread.x // TEAM
    site, merge = number // merges, number % merges
    if site >= sites:
        return
    a_length = 2 * min(group, individuals - 2 * merge * group) + 1
    b_length = 2 * min(group, individuals - (2 * merge + 1) * group) + 1
    a = 3 * individuals * site + 2 * merge * (2 * group + 1)
    b = a + 2 * group + 1
    c = 3 * individuals * site + merge * (4 * group + 1)
    a_exponents = (individuals + 1) * site + 2 * merge * (2 * group // SEGMENT + 1)
    b_exponents = a_exponents + 2 * group // SEGMENT + 1
    c_exponents = (individuals + 1) * site + merge * (4 * group // SEGMENT + 1)
    if b_length <= 1:
        carry(source, source_exponents, target, target_exponents, a, a_exponents, a_length, c, c_exponents, rank, TEAM)
        return

    c_length = a_length + b_length - 1
    a_segments = (a_length + SEGMENT - 1) // SEGMENT
    b_segments = (b_length + SEGMENT - 1) // SEGMENT
    c_segments = (c_length + SEGMENT - 1) // SEGMENT
    for k in range(rank, c_length, TEAM):
        target[c + k] = 0
    bound(
        source_exponents, target_exponents, a_exponents, a_segments, b_exponents, b_segments, c_exponents, c_segments,
        rank, TEAM,
    )  # fmt: skip
    meet(TEAM)
    for first in range(0, a_length, TEAM):
        i = first + rank
        busy = i < a_length
        mask = st.ballot(busy)
        if busy or TEAM != WARP:
            segment = min(i, a_length - 1) // SEGMENT
            mine = source[a + min(i, a_length - 1)]
            own_exponent = source_exponents[a_exponents + segment]
            for part in range(b_segments):
                exponent = own_exponent + source_exponents[b_exponents + part]
                reached = segment + part
                near = mine * power_of_two(exponent - target_exponents[c_exponents + reached])
                beyond = min(reached + 1, c_segments - 1)
                far = mine * power_of_two(exponent - target_exponents[c_exponents + beyond])
                for j in range(part * SEGMENT, min(part * SEGMENT + SEGMENT, b_length)):
                    if TEAM == WARP or busy:
                        at = c + i + j
                        scaled = near if (i + j) // SEGMENT == reached else far
                        target[at] = st.fma(scaled, source[b + j], target[at])
                    if TEAM == WARP:
                        st.syncwarp(mask)
                    else:
                        st.sync()
        meet(TEAM)
    settle(target, target_exponents, c, c_length, c_exponents, rank, TEAM)
