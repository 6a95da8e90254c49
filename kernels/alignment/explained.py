"""Descriptions of the alignment variants: section of the paper, work of a thread, layout in memory."""

from __future__ import annotations

from ..family import Explained

_STEPS = """\
            alternate  1    2    3    4  ...
reference 1            t0   t1   t2   t3           thread t has column t + 1; in step s it computes row s - t + 1
          2            t0   t1   t2   t3           s = row + column - 2: an anti-diagonal a step,
          3            t0   t1   t2   t3           and a barrier after it"""

_BLOCK = """\
registers, a thread:         H of its column's last row and of the row before it on the left, the deletion above and its
                             length, the run of matches that ends on the diagonal
shared memory, a block:      H[2][t]  insertion[2][t]  lengths[2][t]     what thread t - 1 left one step before; halves take turns
                             best[t]  column[t]                          the search for the best end, a tree of log2 t steps"""

_EDGES = """\
                             H_edge[i]  insertion_edge[i]  lengths_edge[i]   left by the last thread of a pass, row by row,
                             for the first thread of the next one"""

_DIAGONAL_MAJOR = """\
global memory, a pair:       moves, by anti-diagonals:  (1,1) | (2,1) (1,2) | (3,1) (2,2) (1,3) | ...
                             lanes of a warp stand side by side: a store is one line"""
_ROW_MAJOR = """\
global memory, a pair:       moves, by rows:  (1,1) (1,2) (1,3) ... | (2,1) (2,2) ...
                             lanes of a warp stand a row apart: a store touches as many lines as lanes"""

_RUNS = """\
a move, a word:              run << 16 | gap & 0xFFFF     gap > 0 deletion, < 0 insertion of that length; 0: a run of matches
the second stage:            a thread a pair, one look at the moves for each operation of the CIGAR"""
_STEPS_OF_MOVES = """\
a move, a word:              gap                          gap > 0 deletion, < 0 insertion of that length; 0: a match
the second stage:            a thread a pair, one look for each gap and for each single match"""


def _intratask(blocks: str, layout: str, moves: str) -> Explained:
    wide = blocks == "wide"
    section = [
        "First stage implementation, Intra-task parallelization, Figure 6" + ("" if wide else " (several passes)"),
        "Figure 7b" if layout == "diagonal-major" else "Figure 7a",
        "Recording the length, Algorithm 1" if moves == "runs" else "what Figure 9 compares Algorithm 1 with",
    ]
    mapping = "One block computes one pair along its anti-diagonals, a thread a column of the alternate."
    mapping += (
        " The block has as many warps as the alternate needs."
        if wide
        else " It has 128 threads and goes over longer alternates in passes of 128 columns."
    )
    memory = [_BLOCK, _DIAGONAL_MAJOR if layout == "diagonal-major" else _ROW_MAJOR, *([] if wide else [_EDGES])]
    picture = [_STEPS, "\n".join(memory), _RUNS if moves == "runs" else _STEPS_OF_MOVES]
    return Explained("; ".join(section), mapping, "\n\n".join(picture))


_BITS = "a cell, four bits: diagonal | right (insertion) | down extended | right extended"

EXPLAINED: dict[str, Explained] = {
    **{
        f"{blocks}-{layout}-{moves}": _intratask(blocks, layout, moves)
        for blocks in ("wide", "passes")
        for layout in ("diagonal-major", "row-major")
        for moves in ("runs", "steps")
    },
    "pairalign": Explained(
        section="Performance comparison with gpu-pairAlign, Figures 10 and 11",
        mapping="One thread computes one pair, in strips of eight rows: it goes along the alternate once for every strip, eight "
        "cells a column. A block has 128 threads, a warp 32 pairs of like lengths.",
        layout=f"""\
                column j-1             column j
strip   row 1   (H, insertion)[1][t]   cell            shared memory: int2 [8][128], what is left of the strip
        ...     ...                    ...             shared memory: the eight letters of the strip, four a word
        row 8   (H, insertion)[8][t]   cell
above and below the strip:  (H, deletion) of column j, an int2 a lane in global memory: read once and written once a strip

{_BITS}, as four Boolean matrices
moves, a word:  the eight cells of a strip's column; words of 32 lanes side by side
the second stage: a thread a pair, one look for each base""",
    ),
    "pairalign-global": Explained(
        section="none: ours, beside Figures 10 and 11",
        mapping="One thread computes one pair, row by row; a warp has 32 pairs of like lengths.",
        layout=f"""\
registers:      H and insertion of the cell to the left, H of the diagonal one
global memory:  (H, deletion) of the row above, an int2 a column and lane: read once and written once a cell

{_BITS}
moves, a word:  one bit of 32 columns of a row; the four matrices one after the other, words of 32 lanes side by side
the second stage: a thread a pair, one look for each base""",
    ),
    "packed": Explained(
        section="none: ours",
        mapping="P lanes compute one pair along its anti-diagonals, K rows of the reference a lane; a warp has 32 / P pairs. A lane "
        "hands its last row on by shuffle.",
        layout=f"""\
                lane 0            lane 1            ...  lane P-1
    rows        1 .. K            K+1 .. 2K              (P-1)K+1 .. PK      H, insertion: registers of the lane
    column      j                 j-1                    j-P+1
                     H, deletion of the last row --shuffle-->  first row

a score, a word:  28 bits of the skewed score | 4 bits that decide ties and are the backtrack
{_BITS}
moves, a word:    eight rows of a lane and step, coalesced
global memory:    (H, deletion) of a tile's last row, where references have more than P K bases
the second stage: a warp a pair looks at 32 cells at a time""",
    ),
}
