"""Ren 2018, Algorithm 2: one thread computes one pair, with the rows of M, I and D in global memory.

All arrays are interleaved by the 32 pairs of a warp, so that each access is one coalesced request (Fig. 5). A cell loads three
values of the row above and stores three values: 6 m n accesses. The kernel implements the paper's equations. Its Algorithm 2
swaps match and mismatch, does not reset the left neighbours of a row, and returns only the last term of the sum.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Real, i32, int2, int4, u32, uchar4

WARPS = 4
"""Warps of a block; each processes its own group of 32 pairs."""


@st.kernel
def intertask_naive(
    groups: Global[int4],
    lengths: Global[int2],
    reads: Global[u32],
    haplotypes: Global[uchar4],
    error: Global[Real],
    alpha: Global[Real],
    delta: Global[Real],
    zeta: Global[Real],
    epsilon: Global[Real],
    match_row: Global[Real],
    insertion_row: Global[Real],
    deletion_row: Global[Real],
    sums: Global[Real],
    scale: Real,
    WARPS: Const,
) -> None:
    """Compute sums[pair] = scale * P(read | haplotype) for 32 pairs per group.

    groups: (first row, rows, first column, columns) of a group; rows and columns are those of its longest read and haplotype,
    columns a multiple of 4. lengths: (m, n) of a pair. The values of row i of a lane are at 32 (first row + i) + lane; its base is
    byte i % 4 of word i // 4. Haplotypes and the three rows have the same layout. Bases are bit sets (A 1, C 2, G 4, T 8, N all), so
    that N matches everything.

    Letters: M, I, D match, insertion, deletion; N at (i, j); U up, at (i-1, j); MID all terms of M from (i-1, j-1); alpha M to M,
    beta I and D to M, delta M to I, zeta M to D, epsilon I to I and D to D.
    """
    group = st.block.x * WARPS + st.warp
    pair = group * 32 + st.lane
    place, size = groups[group], lengths[pair]
    first_row = place.x * 32 + st.lane
    first_column = place.z * 32 + st.lane
    initial = scale / Real(size.y)
    result = Real(0)
    word = u32(0)
    for i in range(place.y):
        if i % 4 == 0:
            word = reads[(place.x + i) // 4 * 32 + st.lane]
        base = i32(word >> u32(i % 4 * 8)) & 255
        at = first_row + i * 32
        q, a, d, z, e = error[at], alpha[at], delta[at], zeta[at], epsilon[at]
        b = 1 - e
        matching, differing = 1 - q, q / 3
        last = i == size.x - 1
        MN, DN = Real(0), Real(0)
        MID = b * initial if i == 0 else Real(0)
        for j in range(0, place.w, 4):
            letters = haplotypes[(place.z + j) // 4 * 32 + st.lane]
            for part in st.unroll(range(4)):
                cell = first_column + (j + part) * 32
                MU, IU, DU = Real(0), Real(0), initial
                if i > 0:
                    MU, IU, DU = match_row[cell], insertion_row[cell], deletion_row[cell]
                emission = matching if i32(letters[part]) & base != 0 else differing
                DN = st.fma(z, MN, e * DN)
                MN = emission * MID
                IN = st.fma(d, MU, e * IU)
                MID = st.fma(a, MU, b * (IU + DU))
                match_row[cell] = MN
                insertion_row[cell] = IN
                deletion_row[cell] = DN
                result += MN + IN if last and j + part < size.y else 0
    sums[pair] = result
