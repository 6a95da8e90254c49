"""gpu-pairAlign row by row, without shared memory: one thread computes one pair and four Boolean matrices of moves.

`pairalign` is the version in strips of Ren 2019's comparison. Here the score and insertion of a row are in registers. All arrays
are interleaved by the 32 pairs of a warp, so that each access is one coalesced request; the previous row and its deletions are
in global memory. A bit is one cell of one matrix, 32 columns per word.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, i32, int2, int4, u32

from .intratask import FLOOR, NEVER


@st.kernel
def pairalign(
    sizes: Global[int4],
    groups: Global[int4],
    references: Global[u32],
    alternates: Global[u32],
    row_above: Global[int2],
    moves: Global[u32],
    ends: Global[int4],
    match: i32,
    mismatch: i32,
    opening: i32,
    extending: i32,
    first: i32,
    further: i32,
    CORNER: Const,
    LAST_ROW: Const,
) -> None:
    """Compute the end cell (i, j, score, 0) and the moves of the 32 pairs of each block of one warp.

    sizes: (-, n, -, m) of a pair, 0 for no pair. groups: (first word of references, first word of alternates, first word of moves,
    words of a row and matrix). Letter i of a lane is byte i % 4 of word i // 4, with words interleaved by lanes. row_above:
    (H, deletion) of column j at 4 (first word of alternates) + 32 j + lane. first, further, CORNER, LAST_ROW: see `intratask`.
    """
    size, group = sizes[st.block.x * 32 + st.lane], groups[st.block.x]
    n, m = size.y, size.w
    row, row_score = 0, i32(NEVER)  # best of the last column
    column, column_score = m, i32(NEVER)  # best of all
    base_word, letter_word = u32(0), u32(0)
    for i in range(n):
        if i % 4 == 0:
            base_word = references[group.x + i // 4 * 32 + st.lane]
        base = base_word >> u32(i % 4 * 8) & 255
        H_left, insertion = first + i * further, i32(NEVER)
        H_diagonal = first + (i - 1) * further if i > 0 else 0
        right_extended, down_extended, right, diagonal = u32(0), u32(0), u32(0), u32(0)
        for j in range(m):
            if j % 4 == 0:
                letter_word = alternates[group.y + j // 4 * 32 + st.lane]
            letter = letter_word >> u32(j % 4 * 8) & 255
            at = group.y * 4 + j * 32 + st.lane
            H_up, deletion = first + j * further, i32(NEVER)
            if i > 0:
                above = row_above[at]
                H_up, deletion = above.x, above.y
            bit = u32(1) << u32(j % 32)
            if H_up + opening > deletion + extending:
                deletion = H_up + opening
            else:
                deletion += extending
                down_extended |= bit
            if H_left + opening > insertion + extending:
                insertion = H_left + opening
            else:
                insertion += extending
                right_extended |= bit
            H = H_diagonal + (match if base == letter else mismatch)
            if insertion <= H and deletion <= H:
                diagonal |= bit
            elif insertion >= deletion:
                H = insertion
                right |= bit
            else:
                H = deletion
            H = max(H, FLOOR)
            row_above[at] = int2(H, deletion)
            H_left, H_diagonal = H, H_up
            if j % 32 == 31 or j == m - 1:
                word = group.z + (i * group.w + j // 32) * 4 * 32 + st.lane
                moves[word] = right_extended
                moves[word + 32] = down_extended
                moves[word + 64] = right
                moves[word + 96] = diagonal
                right_extended, down_extended, right, diagonal = u32(0), u32(0), u32(0), u32(0)
        if H_left >= row_score or CORNER:
            row, row_score = i + 1, H_left
    if LAST_ROW:
        column_score = row_score
        for j in range(m):
            score = row_above[group.y * 4 + j * 32 + st.lane].x
            if score > column_score or (score == column_score and abs(n - j - 1) < abs(row - column)):
                row, column, column_score = n, j + 1, score
        row_score = column_score
    ends[st.block.x * 32 + st.lane] = int4(row, column, row_score, 0)
