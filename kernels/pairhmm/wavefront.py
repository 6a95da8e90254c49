"""gpuPairHMM: P lanes compute one pair along its anti-diagonals, with K rows each in registers.

A lane hands the last of its rows to the next lane by shuffle, one column a step, and the haplotype's letter with it;
emissions come from a table in shared memory, so that a cell decides nothing. Reads of more than P K bases are
computed in tiles of P K rows whose last row goes through global memory.

Nothing in the sweep asks where the matrix ends. A read stands at the end of its rows, so that its last row is the
last lane's; the rows before it repeat row 0 (D = C / n, M = I = 0). Columns outside the haplotype hold the letter
BLANK, which nothing emits, so that M and I are 0 there.
"""

from __future__ import annotations

import simtbed.emulator.lang as st
from simtbed.emulator.lang import Const, Global, Real, i32, int4, u8, u32, uchar4

UNKNOWN, BLANK = 4, 5
"""Letters are A 0, C 1, G 2, T 3, N and the letter outside every haplotype."""


@st.kernel
def wavefront(
    pairs: Global[int4],
    columns: Global[i32],
    bases: Global[u8],
    qualities: Global[uchar4],
    haplotypes: Global[u32],
    probability: Global[Real],
    match_edge: Global[Real],
    insertion_edge: Global[Real],
    deletion_edge: Global[Real],
    sums: Global[Real],
    scale: Real,
    stride: i32,
    P: Const,
    K: Const,
    TILED: Const,
) -> None:
    """sums[pair] = scale * P(read | haplotype), for 32 / P pairs a block of one warp.

    pairs: (first base, m, first word of the haplotype, n); a haplotype's letters stand 4 a word, the last word filled
    up with BLANK and followed by a word of BLANK. columns: the largest n of a block. qualities: base, insertion, deletion, gap
    continuation. probability: of a Phred score. edges: last row of a tile, at block stride + column; used if TILED,
    which needs P = 32 and lets m exceed P K.

    Letters: M, I, D match, insertion, deletion; alpha M to M, beta I and D to M, delta M to I, zeta M to D,
    epsilon I to I and D to D. up: at (i-1, j); diagonal: at (i-1, j-1); left: at (i, j-1).
    """
    emission = st.shared(Real, 6 * K * 32)
    alpha = st.registers(Real, K)
    beta = st.registers(Real, K)
    delta = st.registers(Real, K)
    zeta = st.registers(Real, K)
    epsilon = st.registers(Real, K)
    M = st.registers(Real, K)
    I = st.registers(Real, K)  # noqa: E741
    D = st.registers(Real, K)
    rank = st.lane % P
    pair = st.block.x * (32 // P) + st.lane // P
    place = pairs[pair]
    m, n = place.y, place.w
    edge = st.block.x * stride
    last_word = (n + 3) // 4
    initial = scale / Real(n)
    steps = columns[st.block.x] + (P - 1)
    tiles = (m + (P * K - 1)) // (P * K) if TILED else 1
    total = Real(0)
    for tile in range(tiles):
        first = tile * P * K + rank * K + m - tiles * P * K  # the lane's first read position, negative before the read
        for k in st.unroll(range(K)):
            position = max(first + k, 0)
            inside = first + k >= 0
            quality = qualities[place.x + position]
            base = i32(bases[place.x + position])
            unknown = base == UNKNOWN
            error = probability[i32(quality.x)]
            gap_insertion = probability[i32(quality.y)]
            gap_deletion = probability[i32(quality.z)]
            gap_continuation = probability[i32(quality.w)]
            delta[k] = gap_insertion if inside else 0
            zeta[k] = gap_deletion if inside else 0
            epsilon[k] = gap_continuation if inside else 1
            alpha[k] = max(1 - (delta[k] + zeta[k]), 0)
            beta[k] = 1 - epsilon[k]
            matching = 1 - error if inside else 0
            differing = error / 3 if inside else 0
            for letter in st.unroll(range(4)):
                emission[(letter * K + k) * 32 + st.lane] = matching if unknown or base == letter else differing
            emission[(UNKNOWN * K + k) * 32 + st.lane] = matching
            emission[(BLANK * K + k) * 32 + st.lane] = 0
            M[k] = 0
            I[k] = 0
            D[k] = 0 if inside else initial
        total = Real(0)
        current = i32(BLANK)
        word = u32(0)
        M_diagonal, I_diagonal = Real(0), Real(0)
        D_diagonal = initial if tile == 0 and rank == 0 else Real(0)
        for step in range(steps):
            if step % 4 == 0:
                word = haplotypes[place.z + min(step // 4, last_word)]
            arriving = i32(word >> u32(step % 4 * 8)) & 255
            letter_moved = st.shuffle_up(current, 1, P)
            M_moved, I_moved = st.shuffle_up(M[K - 1], 1, P), st.shuffle_up(I[K - 1], 1, P)
            D_moved = st.shuffle_up(D[K - 1], 1, P)
            current = arriving if rank == 0 else letter_moved
            M_top, I_top, D_top = Real(0), Real(0), initial
            if TILED:  # noqa: SIM102
                if rank == 0 and tile > 0 and step < n:
                    M_top = match_edge[edge + step]
                    I_top = insertion_edge[edge + step]
                    D_top = deletion_edge[edge + step]
            M_up = M_top if rank == 0 else M_moved
            I_up = I_top if rank == 0 else I_moved
            D_up = D_top if rank == 0 else D_moved
            M_above, I_above, D_above = M_up, I_up, D_up  # what the next column finds on its diagonal
            for k in st.unroll(range(K)):
                M_left, I_left, D_left = M[k], I[k], D[k]
                emitted = emission[(current * K + k) * 32 + st.lane]
                M[k] = emitted * st.fma(alpha[k], M_diagonal, beta[k] * (I_diagonal + D_diagonal))
                I[k] = st.fma(delta[k], M_up, epsilon[k] * I_up)
                D[k] = st.fma(zeta[k], M_left, epsilon[k] * D_left)
                M_up, I_up = M[k], I[k]
                M_diagonal, I_diagonal, D_diagonal = M_left, I_left, D_left
            M_diagonal, I_diagonal, D_diagonal = M_above, I_above, D_above
            total += M[K - 1] + I[K - 1]
            if TILED:
                column = step - (P - 1)
                if rank == P - 1 and column >= 0 and column < n:
                    match_edge[edge + column] = M[K - 1]
                    insertion_edge[edge + column] = I[K - 1]
                    deletion_edge[edge + column] = D[K - 1]
        if TILED:
            st.syncwarp()
    if rank == P - 1:
        sums[pair] = total
