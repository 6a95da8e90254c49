"""Wavefront with five instructions per cell: I and D are rescaled by row, haplotypes are streamed past a read.

With I~(i,j) = I(i,j) / delta_i, D~(i,j) = D(i,j) / zeta_i (zeta_0 = 1) and emissions multiplied by alpha_i,

    I~(i,j) = M(i-1,j) + (epsilon_i delta_{i-1} / delta_i) I~(i-1,j)
    D~(i,j) = M(i,j-1) + epsilon_i D~(i,j-1)
    M(i,j)  = (lambda_ij alpha_i) (M(i-1,j-1) + (beta_i delta_{i-1} / alpha_i) I~(i-1,j-1)
                                              + (beta_i zeta_{i-1} / alpha_i) D~(i-1,j-1))

and I~ of a column is computed from the M of the rows above, so that it is never stored. Requires alpha_i > 0.

P lanes have the rows of a read, K rows each. The letters of consecutive haplotypes move past them, one column per step and lane.
The letter BLANK separates two haplotypes: it has emission 0 and resets a lane. The rest is as in `wavefront`: a read is aligned
to the end of its rows, and the preceding rows repeat row 0.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32, float4, i32, int4, u8, u32, uchar4

from .wavefront import BLANK, UNKNOWN


@st.kernel
def wavefront_rescaled(
    items: Global[int4],
    ends: Global[i32],
    words: Global[i32],
    bases: Global[u8],
    qualities: Global[uchar4],
    letters: Global[u32],
    probability: Global[f32],
    sums: Global[f32],
    initial: f32,
    shift: i32,
    P: Const,
    K: Const,
    UNIFORM: Const,
) -> None:
    """Compute sums[pair] = initial * n * P(read | haplotype of length n) for 32 / P items per block of one warp.

    items: (first base, m, index of the first letter, first pair): a read and consecutive haplotypes; ends: the last pair + 1. words:
    of 4 letters, the maximum of the items of a block, including the pipeline latency of the lanes. letters: the
    stream, 4 letters per word, in four copies at a distance of `shift` words, copy c delayed by c letters; it starts with
    at least 32 BLANKs and ends with enough BLANKs for every item of a block. qualities, probability: as for `wavefront`.
    UNIFORM: every read has P K bases and one gap continuation.
    """
    emission = st.shared(float4, 6 * (K // 4) * 32)
    to_insertion = st.registers(f32, K)
    from_insertion = st.registers(f32, K)
    from_deletion = st.registers(f32, K)
    epsilon = st.registers(f32, 1 if UNIFORM else K)
    M = st.registers(f32, K)
    D = st.registers(f32, K)
    entry = st.registers(f32, 24)
    rank = st.lane % P
    item = st.block.x * (32 // P) + st.lane // P
    place = items[item]
    first = rank * K + place.y - P * K  # first read position of the lane, negative before the read
    delta_last = f32(0)
    for q in st.unroll(range(K // 4)):
        for part in st.unroll(range(4)):
            row = 4 * q + part
            position = place.x + max(first + row, 0)
            inside = first + row >= 0
            quality = qualities[position]
            before = qualities[max(position - 1, place.x)]
            base = i32(bases[position])
            unknown = base == UNKNOWN
            error, gap = probability[i32(quality.x)], probability[i32(quality.w)]
            delta, zeta = probability[i32(quality.y)], probability[i32(quality.z)]
            alpha, beta = 1 - (delta + zeta), 1 - gap
            delta_before = probability[i32(before.y)]
            zeta_before = probability[i32(before.z)] if first + row > 0 else f32(1)
            delta_last = delta
            to_insertion[row] = gap * (delta_before / delta) if inside else 0
            from_insertion[row] = beta * (delta_before / alpha) if inside else 0
            from_deletion[row] = beta * (zeta_before / alpha) if inside else 0
            if UNIFORM:
                epsilon[0] = gap
            else:
                epsilon[row] = gap if inside else 1
            matching = (1 - error) * alpha if inside else 0
            differing = error / 3 * alpha if inside else 0
            for known in st.unroll(range(4)):
                entry[known * 4 + part] = matching if unknown or base == known else differing
            entry[UNKNOWN * 4 + part] = matching
            entry[BLANK * 4 + part] = 0
            M[row] = 0
            D[row] = 0 if inside else initial
        for read in st.unroll(range(6)):
            emission[(read * (K // 4) + q) * 32 + st.lane] = float4(
                entry[4 * read], entry[4 * read + 1], entry[4 * read + 2], entry[4 * read + 3]
            )
    start = place.z - rank
    copy = -start & 3
    word_at = copy * shift + (start + copy) // 4
    pair, end = place.w, ends[item]
    total = f32(0)
    M_last, I_last, D_last = f32(0), f32(0), f32(0)
    for step in range(words[st.block.x]):
        word = letters[word_at + step]
        for part in st.unroll(range(4)):
            letter = i32(word >> u32(8 * part)) & 255
            M_moved, I_moved = st.shuffle_up(M_last, 1, P), st.shuffle_up(I_last, 1, P)
            D_moved = st.shuffle_up(D_last, 1, P)
            M_diagonal = M_moved if rank > 0 else 0
            I_diagonal = I_moved if rank > 0 else 0
            D_diagonal = D_moved if rank > 0 else initial
            for q in st.unroll(range(K // 4)):
                emitted = emission[(letter * (K // 4) + q) * 32 + st.lane]
                for r in st.unroll(range(4)):
                    k = 4 * q + r
                    M_left, D_left = M[k], D[k]
                    arriving = st.fma(from_insertion[k], I_diagonal, M_diagonal)
                    M[k] = emitted[r] * st.fma(from_deletion[k], D_diagonal, arriving)
                    D[k] = st.fma(epsilon[0 if UNIFORM else k], D_left, M_left)
                    I_diagonal = st.fma(to_insertion[k], I_diagonal, M_diagonal)
                    M_diagonal, D_diagonal = M_left, D_left
            total += st.fma(delta_last, I_diagonal, M_diagonal)
            M_last, I_last, D_last = M_diagonal, I_diagonal, D_diagonal
            if letter == BLANK:
                if rank == P - 1 and 4 * step + part >= rank and pair < end:
                    sums[pair] = total
                    pair += 1
                total = 0
                for again in st.unroll(range(K)):
                    D[again] = 0 if first + again >= 0 else initial
