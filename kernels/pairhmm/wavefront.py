"""After gpuPairHMM: P lanes compute one pair along its anti-diagonals, with K rows each in registers.

A lane passes its last row to the next lane by shuffle, one column per step. Emissions are in a table in shared memory, so that a
cell has no branch. Reads of more than P K bases are computed in tiles of P K rows; the last row of a tile is in global memory.

A lane processes a column from top to bottom. M needs I of the previous column, which is computed from the M of that column, still
in registers: I is never stored, and no value is copied.

The sweep has no test for the ends of the matrix. A read is aligned to the end of its rows, so that its last row is the last
lane's; the preceding rows repeat row 0 (D = C / n, M = I = 0). Columns outside the haplotype have the letter BLANK with emission
0, so that M and I are 0: four steps, one word of letters, are executed at a time.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, Real, float4, i32, int4, u8, u32, u64, uchar4

UNKNOWN, BLANK = 4, 5
"""Letters are A 0, C 1, G 2, T 3, N, and the letter outside every haplotype."""


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
    WIDE: Const,
    UNIFORM: Const,
) -> None:
    """Compute sums[pair] = scale * P(read | haplotype) for 32 / P pairs per block of one warp.

    pairs: (first base, m, first word of the haplotype, n); the letters of a haplotype are 4 per word, padded with BLANK, between
    words of BLANK. columns: the largest n of a block. qualities: base, insertion, deletion, gap continuation.
    probability: of a Phred
    score. edges: last row of a tile, at block stride + column; used if TILED, with P = 32 and m > P K. K is a multiple of 4. WIDE:
    Real is f32, and the emissions of four rows are read at once. UNIFORM: every read has P K bases and one gap continuation.

    Letters: M, I, D match, insertion, deletion; alpha M to M, beta I and D to M, delta M to I, zeta M to D, epsilon I to I and D to
    D. diagonal: at (i-1, j-1); left: at (i, j-1).
    """
    if WIDE:
        emissions = st.shared(float4, 6 * (K // 4) * 32)
    else:
        emission = st.shared(Real, 6 * K * 32)
    entry = st.registers(Real, 6 * 4)
    alpha = st.registers(Real, K)
    beta = st.registers(Real, 1 if UNIFORM else K)
    delta = st.registers(Real, K)
    zeta = st.registers(Real, K)
    epsilon = st.registers(Real, 1 if UNIFORM else K)
    M = st.registers(Real, K)
    D = st.registers(Real, K)
    rank = st.lane % P
    pair = st.block.x * (32 // P) + st.lane // P
    place = pairs[pair]
    m, n = place.y, place.w
    edge = st.block.x * stride
    last_word = (n + 3) // 4
    initial = scale / Real(n)
    words = (columns[st.block.x] + (P + 3)) // 4
    tiles = (m + (P * K - 1)) // (P * K) if TILED else 1
    total = Real(0)
    for tile in range(tiles):
        first = tile * P * K + rank * K + m - tiles * P * K  # first read position of the lane, negative before the read
        for row in st.unroll(range(K)):
            position = max(first + row, 0)
            inside = first + row >= 0
            quality = qualities[place.x + position]
            base = i32(bases[place.x + position])
            unknown = base == UNKNOWN
            error = probability[i32(quality.x)]
            gap_insertion = probability[i32(quality.y)]
            gap_deletion = probability[i32(quality.z)]
            gap_continuation = probability[i32(quality.w)]
            delta[row] = gap_insertion if inside else 0
            zeta[row] = gap_deletion if inside else 0
            alpha[row] = max(1 - (delta[row] + zeta[row]), 0)
            if UNIFORM:
                epsilon[0] = gap_continuation
                beta[0] = 1 - gap_continuation
            else:
                epsilon[row] = gap_continuation if inside else 1
                beta[row] = 1 - epsilon[row]
            matching = 1 - error if inside else 0
            differing = error / 3 if inside else 0
            for known in st.unroll(range(4)):
                entry[known * 4 + row % 4] = matching if unknown or base == known else differing
            entry[UNKNOWN * 4 + row % 4] = matching
            entry[BLANK * 4 + row % 4] = 0
            if row % 4 == 3:
                for read in st.unroll(range(6)):
                    if WIDE:
                        emissions[(read * (K // 4) + row // 4) * 32 + st.lane] = float4(
                            entry[4 * read], entry[4 * read + 1], entry[4 * read + 2], entry[4 * read + 3]
                        )
                    else:
                        for part in st.unroll(range(4)):
                            emission[(read * K + row // 4 * 4 + part) * 32 + st.lane] = entry[4 * read + part]
            M[row] = 0
            D[row] = 0 if inside else initial
        total = Real(0)
        M_last, I_last, D_last = Real(0), Real(0), Real(0)
        D_top = initial if tile == 0 else Real(0)
        word_at = -((rank + 3) // 4)  # a lane is `rank` letters behind: word_at words minus -rank & 3 letters
        before = haplotypes[place.z + max(word_at, -1)]
        after = haplotypes[place.z + min(max(word_at + 1, -1), last_word)]
        for word in range(words):
            letters = u32((u64(after) << u64(32) | u64(before)) >> u64((-rank & 3) * 8))
            before = after
            after = haplotypes[place.z + min(max(word_at + word + 2, -1), last_word)]
            for part in st.unroll(range(4)):
                letter = i32(letters >> u32(8 * part)) & 255
                M_moved, I_moved = st.shuffle_up(M_last, 1, P), st.shuffle_up(I_last, 1, P)
                D_moved = st.shuffle_up(D_last, 1, P)
                M_diagonal = M_moved if rank > 0 else 0
                I_diagonal = I_moved if rank > 0 else 0
                D_diagonal = D_moved if rank > 0 else D_top
                if TILED:
                    above = 4 * word + part - 1
                    if rank == 0 and tile > 0 and above >= 0 and above < n:
                        M_diagonal = match_edge[edge + above]
                        I_diagonal = insertion_edge[edge + above]
                        D_diagonal = deletion_edge[edge + above]
                for q in st.unroll(range(K // 4)):
                    if WIDE:
                        four = emissions[(letter * (K // 4) + q) * 32 + st.lane]
                    for r in st.unroll(range(4)):
                        k = 4 * q + r
                        same = 0 if UNIFORM else k
                        emitted = four[r] if WIDE else emission[(letter * K + k) * 32 + st.lane]
                        M_left, D_left = M[k], D[k]
                        M[k] = emitted * st.fma(alpha[k], M_diagonal, beta[same] * (I_diagonal + D_diagonal))
                        D[k] = st.fma(zeta[k], M_left, epsilon[same] * D_left)
                        I_diagonal = st.fma(delta[k], M_diagonal, epsilon[same] * I_diagonal)
                        M_diagonal, D_diagonal = M_left, D_left
                total += M_diagonal + I_diagonal
                M_last, I_last, D_last = M_diagonal, I_diagonal, D_diagonal
                if TILED:
                    column = 4 * word + part - P
                    if rank == P - 1 and column >= 0 and column < n:
                        match_edge[edge + column] = M_diagonal
                        insertion_edge[edge + column] = I_diagonal
                        deletion_edge[edge + column] = D_diagonal
        if TILED:
            st.syncwarp()
    if rank == P - 1:
        sums[pair] = total
