"""Ren 2019, Fig. 6: a block computes one pair along its anti-diagonals, one thread per column, one barrier per step.

A thread stores its column's last score and deletion in registers and reads its left neighbour's from a double buffer in shared
memory. `wide` has a thread for each column. `passes` processes BLOCK columns per pass: the last thread of a pass stores the
input of the next pass in three vectors in global memory.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, i32, int2, int4, u8, u32

from .traceback import RUNS

FLOOR = -100_000_000
"""Lower bound of all scores."""
NEVER = -(2**30)
"""Score of a closed gap."""


@st.kernel
def intratask(
    pairs: Global[int4],
    places: Global[int4],
    references: Global[u8],
    alternates: Global[u8],
    H_edge: Global[i32],
    insertion_edge: Global[i32],
    lengths_edge: Global[i32],
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
    FORM: Const,
    BLOCK: Const,
) -> None:
    """Compute the end cell (i, j, score, 0) of each block's pair in `ends`, and the backtrack matrix in `moves`.

    pairs: (first base of the reference, n, first base of the alternate, m). places: cell (i, j) is word x + (i - 1) y + (j - 1) z of
    the moves, with the FORM RUNS or STEPS; w is the start of the pair's edges, n elements of each.

    first, further: cost of the first cell of row 0 and column 0, and of each further cell. CORNER, LAST_ROW: end cells are (n, m)
    only, or the last column and optionally the last row.

    H: best score of a cell; insertion, deletion: best score with a gap at its end, and the length of the gap; run: number of
    consecutive diagonal moves. lengths: length of the insertion and, with RUNS, of the run, in one word.
    """
    H_shared = st.shared(i32, 2, BLOCK)
    insertion_shared = st.shared(i32, 2, BLOCK)
    lengths_shared = st.shared(i32, 2, BLOCK)
    best_shared = st.shared(i32, BLOCK)
    column_shared = st.shared(i32, BLOCK)
    last_shared = st.shared(int2, 1)
    t = st.thread.x
    pair, place = pairs[st.block.x], places[st.block.x]
    n, m = pair.y, pair.w
    row, row_score = 0, i32(NEVER)  # best of the last column
    column, column_score = 0, i32(NEVER)  # best of the last row, of this thread's columns
    for pass_first in range(0, m, BLOCK):
        j = pass_first + t + 1
        letter = alternates[pair.z + min(j, m) - 1]
        H = first + (j - 1) * further
        H_diagonal = first + (j - 2) * further if j > 1 else 0
        deletion, deletion_length = i32(NEVER), 0
        run_diagonal = 0
        for step in range(n + min(BLOCK, m - pass_first) - 1):
            i = step - t + 1
            if i >= 1 and i <= n and j <= m:
                H_left, insertion, lengths = first + (i - 1) * further, i32(NEVER), 0
                if t > 0:
                    H_left = H_shared[(step + 1) % 2, t - 1]
                    insertion = insertion_shared[(step + 1) % 2, t - 1]
                    lengths = lengths_shared[(step + 1) % 2, t - 1]
                elif pass_first > 0:
                    H_left = H_edge[place.w + i - 1]
                    insertion = insertion_edge[place.w + i - 1]
                    lengths = lengths_edge[place.w + i - 1]
                insertion_length = lengths & 0xFFFF if FORM == RUNS else lengths
                deletion += extending
                deletion_length += 1
                if H + opening > deletion:
                    deletion, deletion_length = H + opening, 1
                insertion += extending
                insertion_length += 1
                if H_left + opening > insertion:
                    insertion, insertion_length = H_left + opening, 1
                diagonal = H_diagonal + (match if references[pair.x + i - 1] == letter else mismatch)
                H_diagonal = H_left
                gap, run = 0, 0
                if diagonal >= insertion and diagonal >= deletion:
                    H, run = diagonal, run_diagonal + 1
                elif insertion >= deletion:
                    H, gap = insertion, -insertion_length
                else:
                    H, gap = deletion, deletion_length
                H = max(H, FLOOR)
                run_diagonal = lengths >> 16
                word = run << 16 | gap & 0xFFFF if FORM == RUNS else gap
                lengths = run << 16 | insertion_length if FORM == RUNS else insertion_length
                moves[place.x + (i - 1) * place.y + (j - 1) * place.z] = u32(word)
                H_shared[step % 2, t] = H
                insertion_shared[step % 2, t] = insertion
                lengths_shared[step % 2, t] = lengths
                if t == BLOCK - 1 and j < m:
                    H_edge[place.w + i - 1] = H
                    insertion_edge[place.w + i - 1] = insertion
                    lengths_edge[place.w + i - 1] = lengths
                if j == m and row_score <= H:
                    row, row_score = i, H
                if i == n and (column_score < H or (column_score == H and abs(n - j) < abs(n - column))):
                    column, column_score = j, H
                if i == n and j == m and CORNER:
                    row, row_score = n, H
            st.sync()
    best_shared[t] = column_score
    column_shared[t] = column
    if t == (m - 1) % BLOCK:
        last_shared[0] = int2(row, row_score)
    st.sync()
    for halving in st.unroll(range(10)):
        width = 512 >> halving
        if width < BLOCK:
            if t < width and t + width < BLOCK:
                score, other = best_shared[t + width], column_shared[t + width]
                nearer = abs(n - other) < abs(n - column) or (abs(n - other) == abs(n - column) and other < column)
                if score > column_score or (score == column_score and nearer):
                    column, column_score = other, score
                    best_shared[t] = score
                    column_shared[t] = other
            st.sync()
    if t == 0:
        last = last_shared[0]
        end_row, end_column, end_score = last.x, m, last.y
        if LAST_ROW:
            nearer = abs(n - column) < abs(end_row - m)
            if column_score > end_score or (column_score == end_score and nearer):
                end_row, end_column, end_score = n, column, column_score
        ends[st.block.x] = int4(end_row, end_column, end_score, 0)
