"""Ren 2018, warp-based: a warp computes one pair along its anti-diagonals, a lane a read base, by shuffles alone.

No barrier stands in the sweep. A read of more than 32 bases takes passes of 32 rows; the last row of a pass goes
through shared memory where the warp is a block of its own, and through global memory where a block has eight, each
with its own pair (the paper's improved form).
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Real, i32, int4, u8, u32

WARPS = 8
"""Of a block of the improved form."""


@st.kernel
def intratask_warp(
    pairs: Global[int4],
    bases: Global[u8],
    error: Global[Real],
    alpha: Global[Real],
    delta: Global[Real],
    zeta: Global[Real],
    epsilon: Global[Real],
    haplotypes: Global[u32],
    match_edge: Global[Real],
    insertion_edge: Global[Real],
    deletion_edge: Global[Real],
    sums: Global[Real],
    scale: Real,
    stride: i32,
    WARPS: Const,
    COLUMNS: Const,
    SHARED: Const,
) -> None:
    """sums[pair] = scale * P(read | haplotype), WARPS pairs a block.

    As `intratask_block`, but that the edges, at pair stride + column, are used only if SHARED is false. COLUMNS: a
    multiple of 4, no less than any n.
    """
    letters = st.shared(u32, WARPS, COLUMNS // 4)
    M_edge = st.shared(Real, COLUMNS if SHARED else 1)
    I_edge = st.shared(Real, COLUMNS if SHARED else 1)
    D_edge = st.shared(Real, COLUMNS if SHARED else 1)
    pair = st.block.x * WARPS + st.warp
    place = pairs[pair]
    m, n = place.y, place.w
    edge = pair * stride
    initial = scale / Real(n)
    for word in range(st.lane, (n + 3) // 4, 32):
        letters[st.warp, word] = haplotypes[place.z + word]
    total = Real(0)
    for first in range(0, m, 32):
        st.syncwarp()
        i = first + st.lane
        here = i < m
        at = place.x + min(i, m - 1)
        base, e, a, d, z, g = u32(bases[at]), error[at], alpha[at], delta[at], zeta[at], epsilon[at]
        b = 1 - g
        M, I, D = Real(0), Real(0), Real(0)  # noqa: E741
        M_diagonal, I_diagonal, D_diagonal = Real(0), Real(0), initial if i == 0 else Real(0)
        for step in range(n + min(m - first, 32) - 1):
            j = step - st.lane
            M_up, I_up, D_up = st.shuffle_up(M, 1), st.shuffle_up(I, 1), st.shuffle_up(D, 1)
            if here and j >= 0 and j < n:
                if i == 0:
                    M_up, I_up, D_up = Real(0), Real(0), initial
                elif st.lane == 0:
                    if SHARED:
                        M_up, I_up, D_up = M_edge[j], I_edge[j], D_edge[j]
                    else:
                        M_up, I_up, D_up = match_edge[edge + j], insertion_edge[edge + j], deletion_edge[edge + j]
                letter = letters[st.warp, j // 4] >> u32(j % 4 * 8)
                emission = 1 - e if letter & base & u32(255) != u32(0) else e / 3
                D = st.fma(z, M, g * D)
                M = emission * st.fma(a, M_diagonal, b * (I_diagonal + D_diagonal))
                I = st.fma(d, M_up, g * I_up)  # noqa: E741
                M_diagonal, I_diagonal, D_diagonal = M_up, I_up, D_up
                if i == m - 1:
                    total += M + I
                elif st.lane == 31:
                    # Lane 0 read what was here 31 shuffles ago, and these values are made from it.
                    if SHARED:
                        # simtbed: allow race - 31 shuffles stand between
                        M_edge[j], I_edge[j], D_edge[j] = M, I, D
                    else:
                        # simtbed: allow race - 31 shuffles stand between
                        match_edge[edge + j], insertion_edge[edge + j], deletion_edge[edge + j] = M, I, D
        if i == m - 1:
            sums[pair] = total
