"""gpu-pairAlign in the version of Ren 2019's comparison: one thread computes one pair, in strips of eight rows.

Shared memory has two integers per row of the strip, its last score and insertion. Global memory has two per column, the previous
strip's last score and deletion. The four Boolean matrices are four bits per cell, one word for the eight rows of a column. All
arrays are interleaved by the 32 pairs of a warp, so that requests are coalesced and free of bank conflicts.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, i32, int2, int4, u32

from .intratask import FLOOR, NEVER
from .traceback import DIAGONAL, DOWN_EXTENDED, RIGHT, RIGHT_EXTENDED, STRIP


@st.kernel
def pairalign_strips(
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
    BLOCK: Const,
) -> None:
    """Compute the end cell (i, j, score, 0) and the moves of the BLOCK pairs of each block.

    sizes, groups, references, alternates, row_above: see `pairalign`, one group per warp; words of a row are columns here.
    moves: the word of column j in strip s of a lane is at (first word of moves) + 32 (s columns + j) + lane, four bits per row from
    the lowest. first, further, CORNER, LAST_ROW: see `intratask`.
    """
    left_shared = st.shared(int2, STRIP * BLOCK)  # (score, insertion) of the column to the left
    bases_shared = st.shared(u32, STRIP // 4 * BLOCK)
    t = st.thread.x
    pair = st.block.x * BLOCK + t
    size, group = sizes[pair], groups[pair // 32]
    n, m = size.y, size.w
    row, row_score = 0, i32(NEVER)  # best of the last column
    column = m
    at = group.y * 4 + st.lane
    for j in range(m):
        row_above[at + j * 32] = int2(first + j * further, NEVER)
    for above in range(0, n, STRIP):
        rows = min(STRIP, n - above)
        for i in st.unroll(range(STRIP)):
            left_shared[i * BLOCK + t] = int2(first + (above + i) * further, NEVER)
        for word in st.unroll(range(STRIP // 4)):
            if word * 4 < rows:
                bases_shared[word * BLOCK + t] = references[group.x + (above // 4 + word) * 32 + st.lane]
        H_corner = first + (above - 1) * further if above > 0 else 0
        letter_word = u32(0)
        for j in range(m):
            if j % 4 == 0:
                letter_word = alternates[group.y + j // 4 * 32 + st.lane]
            letter = letter_word >> u32(j % 4 * 8) & 255
            H_diagonal = H_corner
            up = row_above[at + j * 32]
            H, deletion = up.x, up.y
            H_corner = H
            bits = u32(0)
            for i in range(rows):
                left = left_shared[i * BLOCK + t]
                base = bases_shared[i // 4 * BLOCK + t] >> u32(i % 4 * 8) & 255
                cell = u32(0)
                if H + opening > deletion + extending:
                    deletion = H + opening
                else:
                    deletion += extending
                    cell |= DOWN_EXTENDED
                insertion = left.y + extending
                if left.x + opening > insertion:
                    insertion = left.x + opening
                else:
                    cell |= RIGHT_EXTENDED
                H = H_diagonal + (match if base == letter else mismatch)
                if insertion <= H and deletion <= H:
                    cell |= DIAGONAL
                elif insertion >= deletion:
                    H = insertion
                    cell |= RIGHT
                else:
                    H = deletion
                H = max(H, FLOOR)
                left_shared[i * BLOCK + t] = int2(H, insertion)
                H_diagonal = left.x
                bits |= cell << u32(i * 4)
            row_above[at + j * 32] = int2(H, deletion)
            moves[group.z + (above // STRIP * group.w + j) * 32 + st.lane] = bits
        for i in range(rows):
            score = left_shared[i * BLOCK + t].x
            if score >= row_score or CORNER:
                row, row_score = above + i + 1, score
    if LAST_ROW:
        best = row_score
        for j in range(m):
            score = row_above[at + j * 32].x
            if score > best or (score == best and abs(n - j - 1) < abs(row - column)):
                row, column, best = n, j + 1, score
        row_score = best
    ends[pair] = int4(row, column, row_score, 0)
