"""Stage 1 for current GPUs: P lanes compute a pair along its anti-diagonals, with K rows each in registers.

A lane passes its last row to the next lane by shuffle, one column per step. References of more than P K bases are computed in
tiles of P K rows; the last row of a tile is stored in global memory.

Three properties reduce the cost of a cell. Scores are skewed, H(i,j) - (i + j) extending, so that extending a gap costs nothing.
They are multiplied by 16: the four low bits implement GATK's tie rules and are the backtrack. Of three equal scores the diagonal
is the largest number, then the insertion, then the deletion, and an extended gap is larger than an opened one. Two maxima of a
sum and a 3-way maximum, one instruction each on Hopper, therefore also compute the moves. The bits of eight cells form one word,
with coalesced stores.

The sweep has no test for the first row. A reference is aligned to the end of its rows, so that its last row is the last lane's.
The preceding rows match every letter: they carry row 0 diagonally from a border with decreasing values. If opening a gap is
cheaper than extending it and borders have a cost, gaps along a border could exceed it (and if matches and gaps are free, tie
with it): UNEVEN then sets the border explicitly.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, i32, int2, int4, u8, u32

SCALE = 16
LOWEST = -(2**31) + SCALE
"""Lower bound of every score, with the low bits of a closed gap."""


@st.device
def border(distance: i32, first: i32, slope: i32) -> i32:
    """Return the skewed score of a cell of row 0 or column 0 at a distance from the corner."""
    return 0 if distance == 0 else first + distance * slope


@st.kernel
def packed(
    pairs: Global[int4],
    warps: Global[int2],
    references: Global[u8],
    alternates: Global[u8],
    edges: Global[int2],
    moves: Global[u32],
    ends: Global[int4],
    gain: i32,
    loss: i32,
    opening: i32,
    extending: i32,
    first: i32,
    slope: i32,
    stride: i32,
    CORNER: Const,
    LAST_ROW: Const,
    UNEVEN: Const,
    TILED: Const,
    P: Const,
    K: Const,
) -> None:
    """Compute the end cell (i, j, score, 0) and the moves of 32 / P pairs per block of one warp.

    pairs: (first base of the reference, n, first base of the alternate, m); 32 bytes precede the first alternate and follow the
    last one. warps: (first word of its moves, its largest m). moves: word w of a lane's step s is at 32 ((K / 8) s + w) + lane, with
    cell (i, j) in step j - 1 + rank; tiles are consecutive.
    gain, loss: a match, a mismatch minus two extensions; opening: the first base of a gap minus an extension; first, slope: see
    `border`. All of them, unlike `extending`, are multiplied by SCALE.
    CORNER, LAST_ROW: end cells are (n, m) only, or the last column and optionally the last row.
    edges: (H, deletion) of the last row of a tile, at block stride + column; used if TILED, with P = 32 and n > P K.

    H: best score of a cell; insertion, deletion: best score with a gap at its end. All of them are skewed.
    """
    words = st.registers(u32, (K + 7) // 8)
    letters = st.registers(u32, (K + 3) // 4)  # 4 rows per word
    known = st.registers(u32, (K + 3) // 4)  # mask of the compared bits: none in rows before the first
    H = st.registers(i32, K)
    insertion = st.registers(i32, K)
    for word in st.unroll(range((K + 7) // 8)):
        words[word] = 0
    rank = st.lane % P
    pair = st.block.x * (32 // P) + st.lane // P
    place, warp = pairs[pair], warps[st.block.x]
    n, m = place.y, place.w
    edge = st.block.x * stride
    steps = warp.y + (P - 1)
    tiles = (n + (P * K - 1)) // (P * K) if TILED else 1
    free = gain & ~(SCALE - 1)  # gain of a row that matches every letter
    best_row, best_score = 0, i32(LOWEST)  # of the last column
    best_column, best_below = 0, i32(LOWEST)  # of the last row
    for tile in range(tiles):
        above = n - (tiles - tile) * P * K  # row above the tile, not positive in the first tile
        start = above + rank * K  # row above the first row of the lane
        for word in st.unroll(range((K + 3) // 4)):
            letters[word] = 0
            known[word] = 0
        for k in st.unroll(range(K)):
            row = start + k + 1
            if row > 0:
                letters[k // 4] |= u32(references[place.x + row - 1]) << u32(k % 4 * 8)
                known[k // 4] |= u32(255) << u32(k % 4 * 8)
            H[k] = border(abs(row), first, slope) + min(row, 0) * free
            insertion[k] = LOWEST
        diagonal = border(abs(start), first, slope) + min(start, 0) * free
        deletion_low = i32(LOWEST)
        best_below = LOWEST  # each tile has its own last row
        bottom = (n + 1) * extending  # skew of the last row
        at = warp.x + tile * steps * ((K + 7) // 8) * 32 + st.lane
        upcoming = u32(alternates[place.z - rank])
        for step in range(steps):
            column = step - rank
            H_moved, deletion_moved = st.shuffle_up(H[K - 1], 1, P), st.shuffle_up(deletion_low, 1, P)
            letter = upcoming * 0x01010101
            upcoming = u32(alternates[place.z + min(column, m - 1) + 1])
            if column >= 0 and column < m:
                H_up = first + (column + 1 - min(above, 0)) * slope + min(above, 0) * free
                deletion = i32(LOWEST)
                if TILED:  # noqa: SIM102
                    if rank == 0 and tile > 0:
                        passed = edges[edge + column]
                        H_up, deletion = passed.x, passed.y
                H_up = H_up if rank == 0 else H_moved
                deletion = deletion if rank == 0 else deletion_moved
                H_above = H_up  # diagonal predecessor of the next column
                for k in st.unroll(range(K)):
                    differing = ((letters[k // 4] ^ letter) & known[k // 4]) & (u32(255) << u32(k % 4 * 8))
                    matched = diagonal + (gain if differing == 0 else loss)
                    inserted = st.viaddmax(H[k], opening + 4, insertion[k])
                    deleted = st.viaddmax(H_up, opening, deletion)
                    best = st.vimax3(matched, inserted, deleted)
                    cell = best | (inserted & 1) | (deleted & 2)  # the store discards all but the four low bits
                    words[k // 8] = words[k // 8] >> 4 | u32(cell) << 28
                    diagonal = H[k]
                    H_up = best & ~15
                    insertion[k] = inserted | 1
                    deletion = deleted | 2
                    if UNEVEN:  # noqa: SIM102
                        if start + k < 0:
                            H_up, deletion = first + (column + 1) * slope, LOWEST
                    H[k] = H_up
                diagonal = H_above
                deletion_low = deletion
                if TILED:  # noqa: SIM102
                    if rank == P - 1:
                        edges[edge + column] = int2(H[K - 1], deletion)
                for word in st.unroll(range((K + 7) // 8)):
                    unused = u32(max(0, (word + 1) * 8 - K) * 4)
                    moves[at + word * 32] = words[word] >> unused
                if LAST_ROW:
                    score = (H[K - 1] >> 4) + bottom
                    bottom += extending
                    if score > best_below or (score == best_below and column + 1 + best_column < 2 * n):
                        best_below, best_column = score, column + 1
            at += (K + 7) // 8 * 32
        for k in st.unroll(range(K)):
            row = start + k + 1
            score = (H[k] >> 4) + (row + m) * extending
            if row > 0 and score >= best_score:
                best_row, best_score = row, score
        if TILED:
            st.syncwarp()
    if CORNER:
        best_row, best_score = n, (H[K - 1] >> 4) + (n + m) * extending
    else:
        for distance in st.unroll(range(5)):
            if 1 << distance < P:
                other_score = st.shuffle_xor(best_score, 1 << distance)
                other_row = st.shuffle_xor(best_row, 1 << distance)
                if other_score > best_score or (other_score == best_score and other_row > best_row):
                    best_row, best_score = other_row, other_score
    if rank == P - 1:
        end_row, end_column = best_row, m
        if LAST_ROW:
            nearer = abs(n - best_column) < abs(best_row - m)
            if best_below > best_score or (best_below == best_score and nearer):
                end_row, end_column, best_score = n, best_column, best_below
        ends[pair] = int4(end_row, end_column, best_score, 0)
