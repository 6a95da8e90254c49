"""Lu 2012, Fig. 5 and section 3.3: the merges of `reduction` with blocks of b and a window of c in shared memory.

Each thread of a team loads a coefficient of a. The team scans a block of b and adds to the affected window of c. The window then
moves with a: only its new and its finished coefficients are accessed in global memory. With SKIP, a is the vector with more zeros,
and a thread with a zero coefficient skips its scan.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Shared, f64, i32, u32

from .reduction import carry
from .wide import SEGMENT, WARP, bound, meet, power_of_two, settle


def shared_bytes(team: int, block: int) -> int:
    """Return the shared memory of a team in bytes: `block` coefficients of b and the window of c. Fig. 10 starts at 504 bytes."""
    return 8 * (block + block + team - 1)


@st.device
def zeros(source: Global[f64], first: i32, length: i32, rank: i32, TEAM: Const) -> i32:
    """Return the number of zero coefficients of a vector to every thread of the team."""
    found = i32(0)
    for start in range(0, length, TEAM):
        zero = source[first + start + rank] == 0 if start + rank < length else False
        if TEAM == WARP:
            found += st.popcount(st.ballot(zero))
        else:
            found += st.sync_count(zero)
    return found


@st.device
def scan(
    window: Shared[f64],
    at: i32,
    inner: Shared[f64],
    inner_at: i32,
    count: i32,
    crossing: i32,
    near: f64,
    far: f64,
    busy: bool,
    mask: u32,
    TEAM: Const,
) -> None:
    """window[at + t] += coefficient inner[inner_at + t] for t < count; from t = crossing on, c has another exponent.

    With a warp per merge only the lanes of `mask` call it; the barrier of a block needs every thread.
    """
    for t in range(count):
        if TEAM == WARP or busy:
            scaled = near if t < crossing else far
            window[at + t] = st.fma(scaled, inner[inner_at + t], window[at + t])
        if TEAM == WARP:
            st.syncwarp(mask)
        else:
            st.sync()


@st.kernel
def reduction_shared(
    source: Global[f64],
    source_exponents: Global[i32],
    target: Global[f64],
    target_exponents: Global[i32],
    individuals: i32,
    group: i32,
    sites: i32,
    TEAM: Const,
    TEAMS: Const,
    B: Const,
    SKIP: Const,
) -> None:
    """As `reduction`, with B coefficients of b in shared memory: 16, or a multiple of 32."""
    inners = st.shared(f64, TEAMS * B)
    windows = st.shared(f64, TEAMS * (B + TEAM - 1))
    rank, team = st.thread.x % TEAM, st.thread.x // TEAM
    inner, window = team * B, team * (B + TEAM - 1)
    merges = ((individuals + group - 1) // group + 1) // 2
    number = st.block.x * TEAMS + team
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
    if SKIP:
        a_zeros = zeros(source, a, a_length, rank, TEAM)
        b_zeros = zeros(source, b, b_length, rank, TEAM)
        if b_zeros > a_zeros:
            a, b = b, a
            a_length, b_length = b_length, a_length
            a_exponents, b_exponents = b_exponents, a_exponents

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
    for start in range(0, b_length, B):
        held = min(B, b_length - start)
        for t in range(rank, held, TEAM):
            inners[inner + t] = source[b + start + t]
        for t in range(rank, held - 1, TEAM):
            windows[window + t] = target[c + start + t]
        for first in range(0, a_length, TEAM):
            arriving = start + first + held - 1 + rank
            windows[window + held - 1 + rank] = target[c + arriving] if arriving < c_length else f64(0)
            meet(TEAM)
            i = first + rank
            segment = min(i, a_length - 1) // SEGMENT
            mine = source[a + i] if i < a_length else f64(0)
            busy = mine != 0 if SKIP else i < a_length
            mask = st.ballot(busy)
            if busy or TEAM != WARP:
                own_exponent = source_exponents[a_exponents + segment]
                for offset in range(0, held, SEGMENT):
                    part = (start + offset) // SEGMENT
                    exponent = own_exponent + source_exponents[b_exponents + part]
                    reached = segment + part
                    near = mine * power_of_two(exponent - target_exponents[c_exponents + reached])
                    beyond = min(reached + 1, c_segments - 1)
                    far = mine * power_of_two(exponent - target_exponents[c_exponents + beyond])
                    count = min(SEGMENT, held - offset)
                    crossing = (reached + 1) * SEGMENT - i - start - offset
                    scan(
                        windows, window + rank + offset, inners, inner + offset, count, crossing, near, far, busy,
                        mask, TEAM,
                    )  # fmt: skip
            meet(TEAM)
            finished = start + first + rank
            if finished < c_length:
                target[c + finished] = windows[window + rank]
            for t in range(0, held - 1, TEAM):
                moving = windows[window + t + TEAM + rank] if t + rank < held - 1 else f64(0)
                meet(TEAM)
                if t + rank < held - 1:
                    windows[window + t + rank] = moving
            meet(TEAM)
        last = start + (a_length + TEAM - 1) // TEAM * TEAM
        for t in range(rank, held - 1, TEAM):
            if last + t < c_length:
                target[c + last + t] = windows[window + t]
        meet(TEAM)
    settle(target, target_exponents, c, c_length, c_exponents, rank, TEAM)
