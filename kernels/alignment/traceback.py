"""Stage 2, traceback: a thread or a warp follows the moves of a pair from the end cell to a border and writes the CIGAR.

Stage 1 has five forms of moves. `RUNS` and `STEPS` store the length of a gap: a gap is one access to memory; with `RUNS`, a run
of diagonal moves is one access too. `FLAGS`, `BOOLEANS` and `STRIPS` store four bits per cell, and a gap is followed through the
bits of its extensions. With `FLAGS` a warp processes 32 cells at a time.
"""

from __future__ import annotations

import simtbed as st
from simtbed import Const, Global, i32, int2, int4, u32

RUNS, STEPS, FLAGS, BOOLEANS, STRIPS = range(5)
"""Forms of moves. RUNS: a short2 in a word, the signed length of a gap low, the length of the run high."""

STRIP = 8
"""Rows of a strip of `pairalign_strips`: their bits fill a word."""

SOFTCLIP, INDEL, LEADING_INDEL, IGNORE = range(4)
M, I, D, S = 0, 1, 2, 4  # noqa: E741
"""Operations of a CIGAR, with BAM's numbers."""

DIAGONAL, RIGHT, RIGHT_EXTENDED, DOWN_EXTENDED = 8, 4, 1, 2
"""Bits of a cell: its best predecessor is the diagonal; otherwise it is the gap from the left (insertion) rather than from above
(deletion); its insertion, its deletion extends that of the neighbour."""


@st.device
def packed_cell(moves: Global[u32], place: int4, i: i32, j: i32, P: Const, K: Const) -> i32:
    """Return the four bits of cell (i, j) of `packed`; 0 outside the matrix."""
    if i <= 0 or j <= 0:
        return 0
    row = i - 1 + place.w
    lane, k = row // K % P, row % K
    word = place.x + ((row // (P * K) * place.z + j - 1 + lane) * ((K + 7) // 8) + k // 8) * 32
    return i32(moves[word + place.y + lane] >> u32(k % 8 * 4)) & 15


@st.device
def boolean_cell(moves: Global[u32], place: int4, i: i32, j: i32, FORM: Const) -> i32:
    """Return the four bits of cell (i, j) of `pairalign_strips` or `pairalign`."""
    if FORM == STRIPS:
        strip_word = moves[place.x + ((i - 1) // STRIP * place.y + j - 1) * 32]
        return i32(strip_word >> u32((i - 1) % STRIP * 4)) & 15
    word = place.x + ((i - 1) * place.y + (j - 1) // 32) * 4 * 32
    found = 0
    for matrix in st.unroll(range(4)):
        found |= i32(moves[word + matrix * 32] >> u32((j - 1) % 32) & 1) << matrix
    return found


@st.device
def holding(bit: bool) -> i32:
    """Return the number of consecutive lanes from lane 0 on with a set bit."""
    stops = st.ballot(not bit)
    return st.popcount((stops & (0 - stops)) - 1)


@st.device
def packed_move(moves: Global[u32], place: int4, i: i32, j: i32, P: Const, K: Const) -> int2:
    """Return (operation, length) from cell (i, j) on: 32 lanes read ahead along the diagonal or along the gap."""
    cell = packed_cell(moves, place, i - st.lane, j - st.lane, P, K)
    run = holding(cell & DIAGONAL != 0)
    if run > 0:
        return int2(M, run)
    right = st.shuffle(cell, 0) & RIGHT != 0
    extended = RIGHT_EXTENDED if right else DOWN_EXTENDED
    length, run = 0, 32
    while run == 32:
        ahead = length + st.lane
        cell = packed_cell(moves, place, i if right else i - ahead, j - ahead if right else j, P, K)
        run = holding(cell & extended != 0)
        length += min(run + 1, 32)
    return int2(I if right else D, length)


@st.device
def boolean_move(moves: Global[u32], place: int4, i: i32, j: i32, FORM: Const) -> int2:
    """Return (operation, length) from cell (i, j) on: one diagonal move, or a gap followed base by base."""
    cell = boolean_cell(moves, place, i, j, FORM)
    if cell & DIAGONAL != 0:
        return int2(M, 1)
    right = cell & RIGHT != 0
    extended = RIGHT_EXTENDED if right else DOWN_EXTENDED
    length = 1
    while cell & extended != 0:
        cell = boolean_cell(moves, place, i if right else i - length, j - length if right else j, FORM)
        length += 1
    return int2(I if right else D, length)


@st.device
def sized_move(word: i32, FORM: Const) -> int2:
    """Return (operation, length) of a word of RUNS or STEPS."""
    gap = word << 16 >> 16 if FORM == RUNS else word
    run = word >> 16 if FORM == RUNS else 1
    return int2(D if gap > 0 else I if gap < 0 else M, abs(gap) if gap != 0 else run)


@st.device
def push(operations: Global[u32], at: i32, stride: i32, capacity: i32, count: i32, operation: i32, length: i32) -> i32:
    """Write a non-empty operation within the capacity. Return the number of operations, including those beyond the capacity."""
    if length > 0:
        if count < capacity:
            operations[at + count * stride] = u32(length << 4 | operation)
        return count + 1
    return count


@st.kernel
def traceback(
    chosen: Global[i32],
    places: Global[int4],
    sizes: Global[int4],
    ends: Global[int4],
    moves: Global[u32],
    operations: Global[u32],
    results: Global[int2],
    capacity: i32,
    STRATEGY: Const,
    FORM: Const,
    P: Const,
    K: Const,
) -> None:
    """Compute results[t] = (number of operations, offset) of pair chosen[t]; operation o, from the end, is at o * len(chosen) + t.

    An operation is a word, length << 4 | letter, as in BAM. Operations beyond `capacity` are counted and not written.
    places: RUNS and STEPS: cell (i, j) at x + (i - 1) y + (j - 1) z. FLAGS: (first word of the warp, lane of the first row, steps of
    a tile, rows before row 1). BOOLEANS: (first word, words of a row and matrix, -, -). STRIPS: (first word, columns of a strip, -,
    -). sizes: (-, n, -, m). ends: end cell (i, j, -, -).
    """
    t = st.block.x * st.block_dim.x + st.thread.x
    room = capacity
    if FORM == FLAGS:
        t //= 32
        room = capacity if st.lane == 0 else 0  # the other lanes only count
    if t >= len(chosen):
        return
    pair = chosen[t]
    place, end = places[pair], ends[pair]
    i, j = end.x, end.y
    stride = len(chosen)
    count = 0
    state = S if STRATEGY == SOFTCLIP else M
    length = sizes[pair].w - j  # overhang of the alternate
    while i > 0 and j > 0:
        if FORM == FLAGS:
            move = packed_move(moves, place, i, j, P, K)
        elif FORM >= BOOLEANS:  # or STRIPS
            move = boolean_move(moves, place, i, j, FORM)
        else:
            move = sized_move(i32(moves[place.x + (i - 1) * place.y + (j - 1) * place.z]), FORM)
        operation, step = move.x, move.y
        i -= 0 if operation == I else step
        j -= 0 if operation == D else step
        if operation == state:
            length += step
        else:
            count = push(operations, t, stride, room, count, state, length)
            state, length = operation, step
    if STRATEGY == IGNORE:
        length += j
    else:
        rest = S if STRATEGY == SOFTCLIP else D if i > 0 else I
        left = j if STRATEGY == SOFTCLIP else i + j
        if rest == state:
            length += left
        else:
            count = push(operations, t, stride, room, count, state, length)
            state, length = rest, left
    count = push(operations, t, stride, room, count, state, length)
    if FORM != FLAGS or st.lane == 0:
        results[t] = int2(count, i if STRATEGY == SOFTCLIP else i - j if STRATEGY == IGNORE else 0)
