"""Ren 2018, warp-based: a warp computes one pair along its anti-diagonals, one lane per read base, with shuffles only.

The sweep has no block barrier. A read of more than 32 bases is computed in passes of 32 rows. The last row of a pass is in
shared memory if the warp is a block of its own, and in global memory if a block has eight warps with a pair each (the paper's
improved form). With two copies of this row, a pass reads one and writes the other, and the warp synchronises between passes. With
one copy, half the memory, the warp synchronises in each step: lane 0 reads a column, and lane 31 writes it 31 steps later.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Real, i32, int4, u8, u32

WARPS = 8
"""Warps of a block of the improved form."""


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
    COPIES: Const,
) -> None:
    """Compute sums[pair] = scale * P(read | haplotype), WARPS pairs per block.

    Arguments as for `intratask_block`, except that the edges, at (pair COPIES + copy) stride + column, are used only if SHARED is
    false. COLUMNS: a multiple of 4, at least the largest n. COPIES: of the last row of a pass, 1 or 2.
    """
    letters = st.shared(u32, WARPS, COLUMNS // 4)
    M_edge = st.shared(Real, COPIES * COLUMNS if SHARED else 1)
    I_edge = st.shared(Real, COPIES * COLUMNS if SHARED else 1)
    D_edge = st.shared(Real, COPIES * COLUMNS if SHARED else 1)
    pair = st.block.x * WARPS + st.warp
    place = pairs[pair]
    m, n = place.y, place.w
    initial = scale / Real(n)
    for word in range(st.lane, (n + 3) // 4, 32):
        letters[st.warp, word] = haplotypes[place.z + word]
    total = Real(0)
    for first in range(0, m, 32):
        st.syncwarp()
        copy = first // 32 % COPIES  # copy written in this pass; the other copy is read
        before, after = (COPIES - 1 - copy) * COLUMNS, copy * COLUMNS
        if not SHARED:
            before, after = (pair * COPIES + COPIES - 1 - copy) * stride, (pair * COPIES + copy) * stride
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
                    at_edge = before + j
                    if SHARED:
                        M_up, I_up, D_up = M_edge[at_edge], I_edge[at_edge], D_edge[at_edge]
                    else:
                        M_up, I_up, D_up = match_edge[at_edge], insertion_edge[at_edge], deletion_edge[at_edge]
                letter = letters[st.warp, j // 4] >> u32(j % 4 * 8)
                emission = 1 - e if letter & base & u32(255) != u32(0) else e / 3
                D = st.fma(z, M, g * D)
                M = emission * st.fma(a, M_diagonal, b * (I_diagonal + D_diagonal))
                I = st.fma(d, M_up, g * I_up)  # noqa: E741
                M_diagonal, I_diagonal, D_diagonal = M_up, I_up, D_up
                if i == m - 1:
                    total += M + I
                elif st.lane == 31:
                    to_edge = after + j
                    if SHARED:
                        M_edge[to_edge], I_edge[to_edge], D_edge[to_edge] = M, I, D
                    else:
                        match_edge[to_edge], insertion_edge[to_edge], deletion_edge[to_edge] = M, I, D
            if COPIES == 1:
                st.syncwarp()  # in a later step lane 31 writes the element that lane 0 reads in this one
        if i == m - 1:
            sums[pair] = total
