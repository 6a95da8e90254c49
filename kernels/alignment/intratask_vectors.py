"""Ren 2019, Fig. 6: a block computes one pair along its anti-diagonals, one thread per column, two barriers per step.

A thread stores its column's last score and deletion in registers. Two vectors and a short2 vector in shared memory have the values of
each thread in the previous step: a thread reads those of its left neighbour, a barrier follows, each thread writes its own, and
another barrier follows. `wide` has a thread for each column. `passes` processes BLOCK columns per pass: the last thread of a pass
stores the input of the next pass in three vectors in global memory.

The best cells of the last row and of the last column are in shared memory: one thread computes a cell of either in each step.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, i16, i32, int2, int4, short2, u8, u32

from .intratask import FLOOR, NEVER
from .traceback import RUNS


@st.kernel
def intratask_vectors(
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

    Arguments and names are those of `intratask`.
    """
    H_shared = st.shared(i32, BLOCK)
    insertion_shared = st.shared(i32, BLOCK)
    if FORM == RUNS:
        lengths_shared = st.shared(short2, BLOCK)  # insertion, run
    else:
        insertion_length_shared = st.shared(i32, BLOCK)
    last_column = st.shared(int2, 1)  # row and score of the best cell
    last_row = st.shared(int2, 1)  # column and score of the best cell
    t = st.thread.x
    pair, place = pairs[st.block.x], places[st.block.x]
    n, m = pair.y, pair.w
    if t == 0:
        last_column[0] = int2(0, NEVER)
        last_row[0] = int2(0, NEVER)
    for pass_first in range(0, m, BLOCK):
        j = pass_first + t + 1
        letter = alternates[pair.z + min(j, m) - 1]
        H = first + (j - 1) * further
        H_diagonal = first + (j - 2) * further if j > 1 else 0
        deletion, deletion_length = i32(NEVER), 0
        run_diagonal = 0
        for step in range(n + min(BLOCK, m - pass_first) - 1):
            i = step - t + 1
            busy = i >= 1 and i <= n and j <= m
            H_left, insertion = first + (i - 1) * further, i32(NEVER)
            insertion_length, run_left = 0, 0
            if busy:
                if t > 0:
                    H_left = H_shared[t - 1]
                    insertion = insertion_shared[t - 1]
                    if FORM == RUNS:
                        left = lengths_shared[t - 1]
                        insertion_length, run_left = i32(left.x), i32(left.y)
                    else:
                        insertion_length = insertion_length_shared[t - 1]
                elif pass_first > 0:
                    H_left = H_edge[place.w + i - 1]
                    insertion = insertion_edge[place.w + i - 1]
                    lengths = lengths_edge[place.w + i - 1]
                    insertion_length = lengths & 0xFFFF if FORM == RUNS else lengths
                    run_left = lengths >> 16
            st.sync()
            if busy:
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
                run_diagonal = run_left
                word = run << 16 | gap & 0xFFFF if FORM == RUNS else gap
                moves[place.x + (i - 1) * place.y + (j - 1) * place.z] = u32(word)
                H_shared[t] = H
                insertion_shared[t] = insertion
                if FORM == RUNS:
                    lengths_shared[t] = short2(i16(insertion_length), i16(run))
                else:
                    insertion_length_shared[t] = insertion_length
                if t == BLOCK - 1 and j < m:
                    H_edge[place.w + i - 1] = H
                    insertion_edge[place.w + i - 1] = insertion
                    lengths_edge[place.w + i - 1] = run << 16 | insertion_length if FORM == RUNS else insertion_length
                if j == m and ((CORNER and i == n) or (not CORNER and last_column[0].y <= H)):
                    last_column[0] = int2(i, H)
                if LAST_ROW and i == n:
                    best = last_row[0]
                    if best.y < H or (best.y == H and abs(n - j) < abs(n - best.x)):
                        last_row[0] = int2(j, H)
            st.sync()
    if t == 0:
        end_row, end_column, end_score = last_column[0].x, m, last_column[0].y
        if LAST_ROW:
            best = last_row[0]
            nearer = abs(n - best.x) < abs(end_row - m)
            if best.y > end_score or (best.y == end_score and nearer):
                end_row, end_column, end_score = n, best.x, best.y
        ends[st.block.x] = int4(end_row, end_column, end_score, 0)
