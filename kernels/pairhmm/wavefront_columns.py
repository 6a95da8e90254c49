"""gpuPairHMM as in the paper: index lists of reads, made on the GPU, are the arguments of the kernels.

The matrix is that of Fig. 2: a column is a base of the read, a row a letter of the haplotype. Each of the P threads of a sub-warp
has K columns. In an iteration it computes its K cells of one row in registers, one row behind the thread before it, and adds M + I
of each column to an accumulator of that column. The accumulator of the last base is the result: a shorter read is filled up with N.

I of a row is computed in the next iteration, from M of that row, so that it needs no registers of its own; it is added to the
accumulators there. Letters outside the haplotype are BLANK with emission 0: before and after the haplotype M, I and D of the rows
add nothing, and the sweep has no test for its ends.

`partition_reads` writes the lists (Fig. 3), with the number of the first alignment of each read: a sub-warp finds its read by a
binary search.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, f32, float4, i32, int2, int4, u8, u32

from .wavefront import BLANK, UNKNOWN

THREADS = 512
"""Threads of a block of `partition_reads`."""
WARPS = THREADS // st.WARP_SIZE


@st.kernel
def partition_reads(
    lengths: Global[i32],
    alignments: Global[i32],
    sizes: Global[i32],
    totals: Global[int2],
    lists: Global[int2],
    reads: i32,
) -> None:
    """Write the reads with lengths in (sizes[l - 1], sizes[l]] to list l, in order; block l writes list l.

    sizes: ascending. alignments: of each read. totals: (reads, alignments) of each list. lists: list l starts at l * reads; an entry
    is a read and the number of alignments of the reads before it in the list.
    """
    reads_of_warps = st.shared(i32, WARPS)
    alignments_of_warps = st.shared(i32, WARPS)
    kernel = st.block.x
    longest = sizes[kernel]
    shorter = sizes[kernel - 1] if kernel > 0 else -1
    listed, aligned = i32(0), i32(0)
    for first in range(0, reads, THREADS):
        read = first + st.thread.x
        mine, own = False, i32(0)
        if read < reads:
            mine = shorter < lengths[read] <= longest
            if mine:
                own = alignments[read]
        lanes = st.ballot(mine)
        scan = own
        for step in st.unroll(range(5)):
            below = st.shuffle_up(scan, 1 << step)
            scan += below if st.lane >= 1 << step else 0
        if st.lane == 31:
            reads_of_warps[st.warp] = st.popcount(lanes)
            alignments_of_warps[st.warp] = scan
        st.sync()
        at = listed + st.popcount(lanes & st.lanemask_lt())
        before = aligned + scan - own
        for warp in st.unroll(range(WARPS)):
            if warp < st.warp:
                at += reads_of_warps[warp]
                before += alignments_of_warps[warp]
            listed += reads_of_warps[warp]
            aligned += alignments_of_warps[warp]
        if mine:
            lists[kernel * reads + at] = int2(read, before)
        st.sync()
    if st.thread.x == 0:
        totals[kernel] = int2(listed, aligned)


@st.device
def entry_of(lists: Global[int2], first: i32, listed: i32, alignment: i32) -> int2:
    """Return the last entry of the list whose first alignment is at most `alignment`."""
    low, high = first, first + listed - 1
    while low < high:
        middle = low + (high - low + 1) // 2
        if lists[middle].y <= alignment:
            low = middle
        else:
            high = middle - 1
    return lists[low]


@st.kernel
def wavefront_columns(
    lists: Global[int2],
    reads: Global[int4],
    haplotypes: Global[int2],
    bases: Global[u8],
    base_quality: Global[u8],
    insertion: Global[u8],
    deletion: Global[u8],
    continuation: Global[u8],
    letters: Global[u32],
    probability: Global[f32],
    sums: Global[f32],
    scale: f32,
    first: i32,
    listed: i32,
    alignments: i32,
    P: Const,
    K: Const,
    UNIFORM: Const,
) -> None:
    """Compute sums[pair] = scale * P(read | haplotype) of the alignments of a list, one by each sub-warp of P threads.

    lists: of `partition_reads`; the list starts at `first` and has `listed` reads with `alignments` haplotypes in total. reads:
    (first base, m, first haplotype, first pair). haplotypes: (first word of letters, n); letters are 4 per word, padded with BLANK,
    between words of BLANK. The other arrays have an element for each base of the reads; scores are Phred scores, and probability
    maps them. K is a multiple of 4. UNIFORM: every read has one gap continuation.

    Letters: M, I, D match, insertion, deletion; alpha M to M, beta I and D to M, delta M to I, zeta M to D, epsilon I to I and D to
    D. diagonal: of the column before and the row before; edge: of the last column of the thread before.
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
    accumulator = st.registers(f32, K)
    rank = st.lane % P
    alignment = st.block.x * (32 // P) + st.lane // P
    listed_read = entry_of(lists, first, listed, min(alignment, alignments - 1))
    number = min(alignment, alignments - 1) - listed_read.y  # of the haplotype, among those of the read
    read = reads[listed_read.x]
    haplotype = haplotypes[read.z + number]
    m, n = read.y, haplotype.y
    last_word = (n + 3) // 4
    initial = scale / f32(n)
    column = rank * K  # the first of the thread
    for c in st.unroll(range(K)):
        at = read.x + min(column + c, m - 1)
        base = i32(bases[at])
        unknown = base == UNKNOWN or column + c >= m
        error = probability[i32(base_quality[at])]
        delta[c] = probability[i32(insertion[at])]
        zeta[c] = probability[i32(deletion[at])]
        alpha[c] = max(1 - (delta[c] + zeta[c]), 0)
        epsilon[0 if UNIFORM else c] = probability[i32(continuation[at])]
        beta[0 if UNIFORM else c] = 1 - epsilon[0 if UNIFORM else c]
        for known in st.unroll(range(4)):
            entry[known * 4 + c % 4] = 1 - error if unknown or base == known else error / 3
        entry[UNKNOWN * 4 + c % 4] = 1 - error
        entry[BLANK * 4 + c % 4] = 0
        if c % 4 == 3:
            for letter in st.unroll(range(6)):
                emissions[(letter * (K // 4) + c // 4) * 32 + st.lane] = float4(
                    entry[4 * letter], entry[4 * letter + 1], entry[4 * letter + 2], entry[4 * letter + 3]
                )
        M[c] = 0
        D[c] = 0
        accumulator[c] = 0
    rows = n
    for step in st.unroll(range(5)):  # all sub-warps of a warp iterate to the end of their longest haplotype
        if 1 << step >= P:
            rows = max(rows, st.shuffle_xor(rows, 1 << step))
    M_edge, I_edge, D_edge = f32(0), f32(0), f32(0) if rank > 0 else initial
    M_corner, D_corner = f32(0), f32(0) if rank > 0 else initial
    current = i32(BLANK)
    word = u32(0)
    for iteration in range(rows + P):
        if iteration % 4 == 0 and rank == 0:
            word = letters[haplotype.x + min(iteration // 4, last_word)]
        current = st.shuffle_up(current, 1, P)
        if rank == 0:
            current = i32(word >> u32(iteration % 4 * 8)) & 255
        M_diagonal, I_diagonal, D_diagonal = M_corner, I_edge, D_corner
        for q in st.unroll(range(K // 4)):
            four = emissions[(current * (K // 4) + q) * 32 + st.lane]
            for r in st.unroll(range(4)):
                k = 4 * q + r
                same = 0 if UNIFORM else k
                M_above, D_above = M[k], D[k]
                M[k] = four[r] * st.fma(alpha[k], M_diagonal, beta[same] * (I_diagonal + D_diagonal))
                D[k] = st.fma(zeta[k], M_above, epsilon[same] * D_above)
                I_diagonal = st.fma(delta[k], M_diagonal, epsilon[same] * I_diagonal)
                accumulator[k] += M_above + I_diagonal
                M_diagonal, D_diagonal = M_above, D_above
        M_corner, D_corner = M_edge, D_edge
        M_edge, I_edge = st.shuffle_up(M[K - 1], 1, P), st.shuffle_up(I_diagonal, 1, P)
        D_edge = st.shuffle_up(D[K - 1], 1, P)
        if rank == 0:
            M_edge, I_edge, D_edge = f32(0), f32(0), initial
    last = m - 1 - column
    for c in st.unroll(range(K)):
        if c == last and alignment < alignments:
            sums[read.w + number] = accumulator[c]
