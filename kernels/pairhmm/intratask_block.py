"""Ren 2018, Fig. 6 and 7: a block computes one pair along its anti-diagonals, one thread per read base.

In each step thread t computes TILE columns of its row, one step behind thread t - 1, and reads the cells of thread t - 1 from
shared memory: one barrier before they are overwritten, one after. A read with more bases than threads is computed in passes; the
last row of a pass is stored in global memory.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Real, i32, int4, u8, u32

THREADS = 128
"""Threads of a block, as in the paper."""


@st.kernel
def intratask_block(
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
    THREADS: Const,
    TILE: Const,
) -> None:
    """Compute sums[block] = scale * P(read | haplotype).

    pairs: (first base, m, first word of the haplotype, n); letters are bit sets (A 1, C 2, G 4, T 8, N all), those of haplotypes 4
    per word. edges: last row of a pass, at block stride + column. Dynamic shared memory: a word for every 4 letters
    of the haplotype.

    Letters: M, I, D match, insertion, deletion; up: at (i-1, j); diagonal: at (i-1, j-1); left: at (i, j-1).
    """
    letters = st.dynamic_shared(u32)
    M_row = st.shared(Real, TILE, THREADS)
    I_row = st.shared(Real, TILE, THREADS)
    D_row = st.shared(Real, TILE, THREADS)
    M = st.registers(Real, TILE)
    I = st.registers(Real, TILE)  # noqa: E741
    D = st.registers(Real, TILE)
    t = st.thread.x
    place = pairs[st.block.x]
    m, n = place.y, place.w
    edge = st.block.x * stride
    initial = scale / Real(n)
    for word in range(t, (n + 3) // 4, THREADS):
        letters[word] = haplotypes[place.z + word]
    st.sync()
    total = Real(0)
    for first in range(0, m, THREADS):
        i = first + t
        rows = min(m - first, THREADS)
        here = i < m
        at = place.x + min(i, m - 1)
        base, e, a, d, z, g = u32(bases[at]), error[at], alpha[at], delta[at], zeta[at], epsilon[at]
        b = 1 - g
        M_left, D_left = Real(0), Real(0)
        M_diagonal, I_diagonal, D_diagonal = Real(0), Real(0), initial if i == 0 else Real(0)
        for step in range((n + (TILE - 1)) // TILE + rows - 1):
            column = (step - t) * TILE
            busy = here and column >= 0 and column < n
            if busy:
                for c in st.unroll(range(TILE)):
                    j = column + c
                    M_up, I_up, D_up = Real(0), Real(0), initial
                    if t > 0:
                        M_up, I_up, D_up = M_row[c, t - 1], I_row[c, t - 1], D_row[c, t - 1]
                    elif i > 0 and j < n:
                        M_up, I_up, D_up = match_edge[edge + j], insertion_edge[edge + j], deletion_edge[edge + j]
                    letter = letters[min(j, n - 1) // 4] >> u32(j % 4 * 8)
                    emission = 1 - e if letter & base & u32(255) != u32(0) else e / 3
                    M[c] = emission * st.fma(a, M_diagonal, b * (I_diagonal + D_diagonal))
                    I[c] = st.fma(d, M_up, g * I_up)
                    D[c] = st.fma(z, M_left, g * D_left)
                    if i == m - 1 and j < n:
                        total += M[c] + I[c]
                    M_left, D_left = M[c], D[c]
                    M_diagonal, I_diagonal, D_diagonal = M_up, I_up, D_up
            st.sync()
            if busy:
                for c in st.unroll(range(TILE)):
                    M_row[c, t], I_row[c, t], D_row[c, t] = M[c], I[c], D[c]
                    if t == THREADS - 1 and i < m - 1 and column + c < n:
                        j = edge + column + c
                        match_edge[j], insertion_edge[j], deletion_edge[j] = M[c], I[c], D[c]
            st.sync()
        if i == m - 1:
            sums[st.block.x] = total
