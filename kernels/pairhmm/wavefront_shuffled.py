"""After gpuPairHMM: P lanes compute one pair along its anti-diagonals, with reads at the end of the rows and one sum per lane.

A lane has K rows of the matrix in registers and passes its last row to the next lane, one column per step, with the letter of the
column; the first lane loads the letters, four at once. Emissions are in a table in shared memory. The ends of the matrix are
treated as in `wavefront`, which loads a word of letters in every lane instead: a read is aligned to the end of its rows, the
preceding rows repeat row 0, and columns outside the haplotype have the letter BLANK.

`partition` first distributes the reads over lists, one per kernel; the host sorts and packs the pairs of each list.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32, float4, i32, int4, u8, u32, uchar4

from .wavefront import BLANK, UNKNOWN

THREADS = 512
"""Threads of a block of `partition`."""
WARPS = THREADS // st.WARP_SIZE


@st.kernel
def partition(lengths: Global[i32], sizes: Global[i32], counts: Global[i32], lists: Global[i32], reads: i32) -> None:
    """Write the reads with lengths in (sizes[l - 1], sizes[l]] to list l, in order; block l writes list l.

    sizes: ascending. counts: reads of each list. lists: list l starts at l * reads.
    """
    of_warps = st.shared(i32, WARPS)
    kernel = st.block.x
    longest = sizes[kernel]
    shorter = sizes[kernel - 1] if kernel > 0 else -1
    found = i32(0)
    for first in range(0, reads, THREADS):
        read = first + st.thread.x
        mine = False
        if read < reads:
            mine = shorter < lengths[read] <= longest
        lanes = st.ballot(mine)
        if st.lane == 0:
            of_warps[st.warp] = st.popcount(lanes)
        st.sync()
        at = found + st.popcount(lanes & st.lanemask_lt())
        for warp in st.unroll(range(WARPS)):
            if warp < st.warp:
                at += of_warps[warp]
            found += of_warps[warp]
        if mine:
            lists[kernel * reads + at] = read
        st.sync()
    if st.thread.x == 0:
        counts[kernel] = found


@st.kernel
def wavefront_shuffled(
    pairs: Global[int4],
    columns: Global[i32],
    bases: Global[u8],
    qualities: Global[uchar4],
    haplotypes: Global[u32],
    probability: Global[f32],
    sums: Global[f32],
    scale: f32,
    P: Const,
    K: Const,
    UNIFORM: Const,
) -> None:
    """Compute sums[pair] = scale * P(read | haplotype) for 32 / P pairs per block of one warp.

    Arguments and letters are those of `wavefront`, in float and without tiles.
    """
    emissions = st.shared(float4, 6 * (K // 4) * 32)
    entry = st.registers(f32, 6 * 4)
    alpha = st.registers(f32, K)
    beta = st.registers(f32, 1 if UNIFORM else K)
    delta = st.registers(f32, K)
    zeta = st.registers(f32, K)
    epsilon = st.registers(f32, 1 if UNIFORM else K)
    M = st.registers(f32, K)
    D = st.registers(f32, K)
    rank = st.lane % P
    pair = st.block.x * (32 // P) + st.lane // P
    place = pairs[pair]
    m, n = place.y, place.w
    last_word = (n + 3) // 4
    initial = scale / f32(n)
    first = rank * K + m - P * K  # first read position of the lane, negative before the read
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
                emissions[(read * (K // 4) + row // 4) * 32 + st.lane] = float4(
                    entry[4 * read], entry[4 * read + 1], entry[4 * read + 2], entry[4 * read + 3]
                )
        M[row] = 0
        D[row] = 0 if inside else initial
    total = f32(0)
    M_last, I_last, D_last = f32(0), f32(0), f32(0)
    letter = i32(BLANK)
    letters = u32(0)
    for step in range(columns[st.block.x] + P):
        if step % 4 == 0 and rank == 0:
            letters = haplotypes[place.z + min(step // 4, last_word)]
        letter = st.shuffle_up(letter, 1, P)
        M_moved, I_moved = st.shuffle_up(M_last, 1, P), st.shuffle_up(I_last, 1, P)
        D_moved = st.shuffle_up(D_last, 1, P)
        if rank == 0:
            letter = i32(letters >> u32(step % 4 * 8)) & 255
        M_diagonal = M_moved if rank > 0 else 0
        I_diagonal = I_moved if rank > 0 else 0
        D_diagonal = D_moved if rank > 0 else initial
        for q in st.unroll(range(K // 4)):
            four = emissions[(letter * (K // 4) + q) * 32 + st.lane]
            for r in st.unroll(range(4)):
                k = 4 * q + r
                same = 0 if UNIFORM else k
                M_left, D_left = M[k], D[k]
                M[k] = four[r] * st.fma(alpha[k], M_diagonal, beta[same] * (I_diagonal + D_diagonal))
                D[k] = st.fma(zeta[k], M_left, epsilon[same] * D_left)
                I_diagonal = st.fma(delta[k], M_diagonal, epsilon[same] * I_diagonal)
                M_diagonal, D_diagonal = M_left, D_left
        total += M_diagonal + I_diagonal
        M_last, I_last, D_last = M_diagonal, I_diagonal, D_diagonal
    if rank == P - 1:
        sums[pair] = total
