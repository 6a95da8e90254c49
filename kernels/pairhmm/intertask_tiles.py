"""Ren 2018, Fig. 4: one thread computes one pair, K rows at a time, so that only every K-th row is stored in global memory.

The left neighbours of a tile's rows are in shared memory: M, I and D, and the sum of M's terms from the top-left, MID in
Algorithm 2. These are four values per row and thread, 2,048 K bytes per block of 128 threads in float, as in the paper's Table 2.
I is stored too, although no row reads it from its left. The parameters of the read's rows are in registers. Accesses are
volatile: each thread reads only its own stores, which nvcc would otherwise keep in registers. Of the 6 m n global accesses of
`intertask_naive`, 6 m n / K remain. Layout and letters are those of `intertask_naive`.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Real, i32, int2, int4, u32, uchar4


@st.kernel
def intertask_tiles(
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
    M = st.shared(Real, K * WARPS * 32)
    I = st.shared(Real, K * WARPS * 32)  # noqa: E741
    D = st.shared(Real, K * WARPS * 32)
    MID = st.shared(Real, K * WARPS * 32)
    base = st.registers(i32, K)
    q = st.registers(Real, K)
    a = st.registers(Real, K)
    d = st.registers(Real, K)
    z = st.registers(Real, K)
    e = st.registers(Real, K)
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
            q[k], a[k], d[k], z[k], e[k] = error[at], alpha[at], delta[at], zeta[at], epsilon[at]
            here = k * (WARPS * 32) + t
            st.volatile_store(M, here, Real(0))
            st.volatile_store(I, here, Real(0))
            st.volatile_store(D, here, Real(0))
            st.volatile_store(MID, here, (1 - e[k]) * initial if i == 0 else Real(0))
        for j in range(0, place.w, 4):
            letters = haplotypes[(place.z + j) // 4 * 32 + st.lane]
            for part in st.unroll(range(4)):
                cell = first_column + (j + part) * 32
                MU, IU, DU = Real(0), Real(0), initial
                if top > 0:
                    MU, IU, DU = match_row[cell], insertion_row[cell], deletion_row[cell]
                for k in st.unroll(range(K)):
                    here = k * (WARPS * 32) + t
                    emission = 1 - q[k] if i32(letters[part]) & base[k] != 0 else q[k] / 3
                    DN = st.fma(z[k], st.volatile_load(M, here), e[k] * st.volatile_load(D, here))
                    MN = emission * st.volatile_load(MID, here)
                    IN = st.fma(d[k], MU, e[k] * IU)
                    st.volatile_store(MID, here, st.fma(a[k], MU, (1 - e[k]) * (IU + DU)))
                    st.volatile_store(M, here, MN)
                    st.volatile_store(I, here, IN)
                    st.volatile_store(D, here, DN)
                    result += MN + IN if top + k == size.x - 1 and j + part < size.y else 0
                    MU, IU, DU = MN, IN, DN
                match_row[cell] = MU
                insertion_row[cell] = IU
                deletion_row[cell] = DU
    sums[pair] = result
