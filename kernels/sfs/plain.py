"""Lu 2012, Algorithm 2 and Figs. 4 and 5 as in the paper: vectors merged in pairs, in plain doubles, one warp per merge.

The reductions of `reduction` and `reduction_shared` without their exponents, for comparison with Algorithm 1, which has none.
A launch is one level. Each lane loads a coefficient of a and scans b. In one step the lanes write to distinct elements; a warp
barrier (`syncwarp`) follows each step. Fermi's warps executed in lockstep and needed none.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Shared, f64, i32, u32

from .reduction_shared import zeros
from .wide import WARP


@st.device
def pass_on(source: Global[f64], target: Global[f64], a: i32, length: i32, c: i32) -> None:
    """Copy a vector without a partner to the next level."""
    for j in range(st.lane, length, WARP):
        target[c + j] = source[a + j]


@st.kernel
def merge(source: Global[f64], target: Global[f64], individuals: i32, group: i32, sites: i32, TEAMS: Const) -> None:
    """target = adjacent vectors of source multiplied; places as in `reduction`. TEAMS: warps of a block."""
    merges = ((individuals + group - 1) // group + 1) // 2
    number = st.block.x * TEAMS + st.warp
    site, pair = number // merges, number % merges
    if site >= sites:
        return
    a_length = 2 * min(group, individuals - 2 * pair * group) + 1
    b_length = 2 * min(group, individuals - (2 * pair + 1) * group) + 1
    a = 3 * individuals * site + 2 * pair * (2 * group + 1)
    b = a + 2 * group + 1
    c = 3 * individuals * site + pair * (4 * group + 1)
    if b_length <= 1:
        pass_on(source, target, a, a_length, c)
        return
    for k in range(st.lane, a_length + b_length - 1, WARP):
        target[c + k] = 0
    st.syncwarp()
    for first in range(0, a_length, WARP):
        i = first + st.lane
        busy = i < a_length
        mask = st.ballot(busy)
        if busy:
            mine = source[a + i]
            for j in range(b_length):
                target[c + i + j] = st.fma(mine, source[b + j], target[c + i + j])
                st.syncwarp(mask)
        st.syncwarp()


@st.device
def add_products(
    window: Shared[f64], at: i32, inner: Shared[f64], inner_at: i32, count: i32, mine: f64, mask: u32
) -> None:
    """window[at + t] += mine times coefficient t of b, for the lanes of the mask, with a barrier after each step."""
    for t in range(count):
        window[at + t] = st.fma(mine, inner[inner_at + t], window[at + t])
        st.syncwarp(mask)


@st.kernel
def merge_shared(
    source: Global[f64],
    target: Global[f64],
    individuals: i32,
    group: i32,
    sites: i32,
    TEAMS: Const,
    B: Const,
    SKIP: Const,
) -> None:
    """As `merge`, with B coefficients of b and the affected window of c in shared memory (Fig. 5).

    SKIP: a is the vector with more zeros, and a lane with a zero coefficient skips its scan.
    """
    inners = st.shared(f64, TEAMS * B)
    windows = st.shared(f64, TEAMS * (B + WARP - 1))
    inner, window = st.warp * B, st.warp * (B + WARP - 1)
    merges = ((individuals + group - 1) // group + 1) // 2
    number = st.block.x * TEAMS + st.warp
    site, pair = number // merges, number % merges
    if site >= sites:
        return
    a_length = 2 * min(group, individuals - 2 * pair * group) + 1
    b_length = 2 * min(group, individuals - (2 * pair + 1) * group) + 1
    a = 3 * individuals * site + 2 * pair * (2 * group + 1)
    b = a + 2 * group + 1
    c = 3 * individuals * site + pair * (4 * group + 1)
    if b_length <= 1:
        pass_on(source, target, a, a_length, c)
        return
    if SKIP:
        a_zeros = zeros(source, a, a_length, st.lane, WARP)
        b_zeros = zeros(source, b, b_length, st.lane, WARP)
        if b_zeros > a_zeros:
            a, b = b, a
            a_length, b_length = b_length, a_length
    c_length = a_length + b_length - 1
    for k in range(st.lane, c_length, WARP):
        target[c + k] = 0
    st.syncwarp()
    for start in range(0, b_length, B):
        held = min(B, b_length - start)
        for t in range(st.lane, held, WARP):
            inners[inner + t] = source[b + start + t]
        for t in range(st.lane, held - 1, WARP):
            windows[window + t] = target[c + start + t]
        for first in range(0, a_length, WARP):
            arriving = start + first + held - 1 + st.lane
            windows[window + held - 1 + st.lane] = target[c + arriving] if arriving < c_length else f64(0)
            st.syncwarp()
            i = first + st.lane
            mine = source[a + i] if i < a_length else f64(0)
            busy = mine != 0 if SKIP else i < a_length
            mask = st.ballot(busy)
            if busy:
                add_products(windows, window + st.lane, inners, inner, held, mine, mask)
            st.syncwarp()
            finished = start + first + st.lane
            if finished < c_length:
                target[c + finished] = windows[window + st.lane]
            for t in range(0, held - 1, WARP):
                moving = windows[window + t + WARP + st.lane] if t + st.lane < held - 1 else f64(0)
                st.syncwarp()
                if t + st.lane < held - 1:
                    windows[window + t + st.lane] = moving
            st.syncwarp()
        last = start + (a_length + WARP - 1) // WARP * WARP
        for t in range(st.lane, held - 1, WARP):
            if last + t < c_length:
                target[c + last + t] = windows[window + t]
        st.syncwarp()
