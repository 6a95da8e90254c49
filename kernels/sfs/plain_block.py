"""Lu 2012, Fig. 11: the merges of Fig. 5 with explicit synchronization, one block per merge, in plain doubles.

The barrier is in the inner loop, after each step. No thread can skip its scan then, so that the variant has no nested-loop
optimization.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Shared, f64, i32


@st.device
def add_products(window: Shared[f64], at: i32, inner: Shared[f64], count: i32, mine: f64, busy: bool) -> None:
    """window[at + t] += mine times coefficient t of b by each busy thread, with a barrier of the block after each step."""
    for t in range(count):
        if busy:
            window[at + t] = st.fma(mine, inner[t], window[at + t])
        st.sync()


@st.kernel
def merge_shared_block(
    source: Global[f64], target: Global[f64], individuals: i32, group: i32, TEAM: Const, B: Const
) -> None:  # fmt: skip
    """As `merge_shared`, by the TEAM threads of a block; a block for each merge of each site."""
    inner = st.shared(f64, B)
    window = st.shared(f64, B + TEAM - 1)
    rank = st.thread.x
    merges = ((individuals + group - 1) // group + 1) // 2
    site, pair = st.block.x // merges, st.block.x % merges
    a_length = 2 * min(group, individuals - 2 * pair * group) + 1
    b_length = 2 * min(group, individuals - (2 * pair + 1) * group) + 1
    a = 3 * individuals * site + 2 * pair * (2 * group + 1)
    b = a + 2 * group + 1
    c = 3 * individuals * site + pair * (4 * group + 1)
    if b_length <= 1:
        for j in range(rank, a_length, TEAM):
            target[c + j] = source[a + j]
        return
    c_length = a_length + b_length - 1
    for k in range(rank, c_length, TEAM):
        target[c + k] = 0
    st.sync()
    for start in range(0, b_length, B):
        size = min(B, b_length - start)
        for t in range(rank, size, TEAM):
            inner[t] = source[b + start + t]
        for t in range(rank, size - 1, TEAM):
            window[t] = target[c + start + t]
        for first in range(0, a_length, TEAM):
            arriving = start + first + size - 1 + rank
            window[size - 1 + rank] = target[c + arriving] if arriving < c_length else f64(0)
            st.sync()
            i = first + rank
            mine = source[a + i] if i < a_length else f64(0)
            add_products(window, rank, inner, size, mine, i < a_length)
            finished = start + first + rank
            if finished < c_length:
                target[c + finished] = window[rank]
            for t in range(0, size - 1, TEAM):
                moving = window[t + TEAM + rank] if t + rank < size - 1 else f64(0)
                st.sync()
                if t + rank < size - 1:
                    window[t + rank] = moving
            st.sync()
        last = start + (a_length + TEAM - 1) // TEAM * TEAM
        for t in range(rank, size - 1, TEAM):
            if last + t < c_length:
                target[c + last + t] = window[t]
        st.sync()
