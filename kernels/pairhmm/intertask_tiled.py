"""Ren 2018, Fig. 4 with exchanged memories: read parameters of a tile in shared memory, left neighbours in registers.

One thread computes one pair, K rows at a time, so that only every K-th row is stored in global memory.

Shared memory has four values per row of the tile and thread (2,048 K bytes per block of 128 threads in float, as in the paper's
Table 2). The cells to the left of the tile are in registers. Of the 6 m n global accesses of `intertask_naive`, 6 m n / K remain.
Layout and letters are those of `intertask_naive`.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Real, i32, int2, int4, u32, uchar4


@st.kernel
def intertask_tiled(
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
    K: Const,
) -> None:
    """Compute sums[pair] = scale * P(read | haplotype) for 32 pairs per group.

    Arguments as for `intertask_naive`, except that the rows of a group are a multiple of K and 4.
    """
    q = st.shared(Real, K, WARPS * 32)
    a = st.shared(Real, K, WARPS * 32)
    d = st.shared(Real, K, WARPS * 32)
    z = st.shared(Real, K, WARPS * 32)
    base = st.registers(i32, K)
    e = st.registers(Real, K)
    MN = st.registers(Real, K)
    DN = st.registers(Real, K)
    MID = st.registers(Real, K)
    t = st.thread.x
    group = st.block.x * WARPS + st.warp
    pair = group * 32 + st.lane
    place, size = groups[group], lengths[pair]
    first_row = place.x * 32 + st.lane
    first_column = place.z * 32 + st.lane
    initial = scale / Real(size.y)
    result = Real(0)
    for top in range(0, place.y, K):
        for k in st.unroll(range(K)):
            i = top + k
            word = reads[(place.x + i) // 4 * 32 + st.lane]
            base[k] = i32(word >> u32(i % 4 * 8)) & 255
            at = first_row + i * 32
            q[k, t], a[k, t], d[k, t], z[k, t], e[k] = error[at], alpha[at], delta[at], zeta[at], epsilon[at]
            MN[k], DN[k], MID[k] = 0, 0, 0
        if top == 0:
            MID[0] = (1 - e[0]) * initial
        for j in range(0, place.w, 4):
            letters = haplotypes[(place.z + j) // 4 * 32 + st.lane]
            for part in st.unroll(range(4)):
                cell = first_column + (j + part) * 32
                MU, IU, DU = Real(0), Real(0), initial
                if top > 0:
                    MU, IU, DU = match_row[cell], insertion_row[cell], deletion_row[cell]
                for k in st.unroll(range(K)):
                    emission = 1 - q[k, t] if i32(letters[part]) & base[k] != 0 else q[k, t] / 3
                    DN[k] = st.fma(z[k, t], MN[k], e[k] * DN[k])
                    MN[k] = emission * MID[k]
                    IN = st.fma(d[k, t], MU, e[k] * IU)
                    MID[k] = st.fma(a[k, t], MU, (1 - e[k]) * (IU + DU))
                    result += MN[k] + IN if top + k == size.x - 1 and j + part < size.y else 0
                    MU, IU, DU = MN[k], IN, DN[k]
                match_row[cell] = MU
                insertion_row[cell] = IU
                deletion_row[cell] = DU
    sums[pair] = result
