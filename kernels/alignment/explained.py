"""Descriptions of the alignment variants: section of the paper, work of a thread, layout in memory."""

from __future__ import annotations

from ..family import Explained

_STEPS = """\
            alternate  1    2    3    4  ...
reference 1            t0   t1   t2   t3           thread t computes column t + 1, in step s its row s - t + 1
          2            t0   t1   t2   t3           s = row + column - 2: one anti-diagonal per step,
          3            t0   t1   t2   t3           and {barriers} each step"""

_REGISTERS = """\
registers per thread:        H of the last row of its column and of the previous row to the left, the deletion above and its
                             length, the run of matches that ends on the diagonal"""
_VECTORS = f"""\
{_REGISTERS}
shared memory per block:     H[t]  insertion[t]  {{lengths}}
                             values of thread t - 1 in the previous step: read | barrier | write | barrier
                             best cell of the last column, best cell of the last row"""
_CHOICES = (
    "Two barriers a step: vectors with a single copy need them.",
    "The best cells of the last column and of the last row are in shared memory: one thread writes each of them in a step.",
    "Ties are broken as in GATK, and the traceback of each strategy is GATK's.",
    "Letters of the reference are read from global memory.",
    "With steps, the vector of the lengths of insertions has one number per thread.",
)
_BUFFERS = f"""\
{_REGISTERS}
shared memory per block:     H[2][t]  insertion[2][t]  lengths[2][t]     values of thread t - 1 in the previous step (two buffers)
                             best[t]  column[t]                          search for the best end, a tree of log2 t steps"""

_EDGES = """\
                             H_edge[i]  insertion_edge[i]  lengths_edge[i]   written by the last thread of a pass, row by row,
                             for the first thread of the next pass"""

_DIAGONAL_MAJOR = """\
global memory per pair:      moves, by anti-diagonals:  (1,1) | (2,1) (1,2) | (3,1) (2,2) (1,3) | ...
                             adjacent lanes of a warp store adjacent words: a store touches one line"""
_ROW_MAJOR = """\
global memory per pair:      moves, by rows:  (1,1) (1,2) (1,3) ... | (2,1) (2,2) ...
                             adjacent lanes of a warp store with a stride of one row: a store touches one line per lane"""

_RUNS = """\
move, one word:              run << 16 | gap & 0xFFFF     gap > 0 deletion, < 0 insertion of that length; 0: a run of matches
second stage:                one thread per pair, one load of a move per operation of the CIGAR"""
_STEPS_OF_MOVES = """\
move, one word:              gap                          gap > 0 deletion, < 0 insertion of that length; 0: a match
second stage:                one thread per pair, one load of a move per gap and per single match"""


def _intratask(blocks: str, layout: str, moves: str, double: bool) -> Explained:
    wide, runs = blocks == "wide", moves == "runs"
    section = [
        "First stage implementation, Intra-task parallelization, Figure 6" + ("" if wide else " (several passes)"),
        "Figure 7b" if layout == "diagonal-major" else "Figure 7a",
        "Recording the length, Algorithm 1" if runs else "baseline of Algorithm 1 in Figure 9",
    ]
    mapping = "One block computes one pair along its anti-diagonals, one thread per column of the alternate."
    mapping += (
        " The block has as many warps as the alternate needs."
        if wide
        else " It has 128 threads; longer alternates take several passes of 128 columns."
    )
    lengths = "short2 (length of the insertion, run)[t]" if runs else "length of the insertion[t]"
    memory = [
        _BUFFERS if double else _VECTORS.format(lengths=lengths),
        _DIAGONAL_MAJOR if layout == "diagonal-major" else _ROW_MAJOR,
        *([] if wide else [_EDGES]),
    ]
    steps = _STEPS.format(barriers="one barrier after" if double else "two barriers in")
    picture = [steps, "\n".join(memory), _RUNS if runs else _STEPS_OF_MOVES]
    described = "; ".join(section)
    layout_text = "\n\n".join(picture)
    if double:
        return Explained(f"none: addition to {described}", mapping, layout_text)
    return Explained(described, mapping, layout_text, _CHOICES if not runs else _CHOICES[:-1])


_BITS = "cell, four bits: diagonal | right (insertion) | down extended | right extended"

EXPLAINED: dict[str, Explained] = {
    **{
        f"{blocks}-{layout}-{moves}{'-double-buffered' if double else ''}": _intratask(blocks, layout, moves, double)
        for double in (False, True)
        for blocks in ("wide", "passes")
        for layout in ("diagonal-major", "row-major")
        for moves in ("runs", "steps")
    },
    "pairalign": Explained(
        section="Performance comparison with gpu-pairAlign, Figures 10 and 11",
        mapping="One thread computes one pair, in strips of eight rows: one pass along the alternate per strip, eight cells "
        "per column. A block has 128 threads, a warp 32 pairs of similar lengths.",
        layout=f"""\
                column j-1             column j
strip   row 1   (H, insertion)[1][t]   cell            shared memory: int2 [8][128], the column left of the strip
        ...     ...                    ...             shared memory: the eight letters of the strip, four per word
        row 8   (H, insertion)[8][t]   cell
above and below the strip:  (H, deletion) of column j, one int2 per lane in global memory: read once and written once per strip

{_BITS}, as four Boolean matrices
moves, one word: the eight cells of a strip's column; words of 32 lanes are adjacent
second stage: one thread per pair, one load of a move per base""",
    ),
    "pairalign-global": Explained(
        section="none: addition to Figures 10 and 11",
        mapping="One thread computes one pair, row by row; a warp has 32 pairs of similar lengths.",
        layout=f"""\
registers:      H and insertion of the left cell, H of the diagonal cell
global memory:  (H, deletion) of the row above, one int2 per column and lane: read once and written once per cell

{_BITS}
moves, one word: one bit of 32 columns of a row; the four matrices in sequence, words of 32 lanes are adjacent
second stage: one thread per pair, one load of a move per base""",
    ),
    "packed": Explained(
        section="none: simtbed's own",
        mapping="P lanes compute one pair along its anti-diagonals, K rows of the reference per lane; a warp has 32 / P "
        "pairs. A shuffle passes the last row of a lane to the next lane.",
        layout=f"""\
                lane 0            lane 1            ...  lane P-1
    rows        1 .. K            K+1 .. 2K              (P-1)K+1 .. PK      H, insertion: registers of the lane
    column      j                 j-1                    j-P+1
                     H, deletion of the last row --shuffle-->  first row

score, one word:  28 bits of the skewed score | 4 bits that decide ties and are the backtrack
{_BITS}
moves, one word:  eight rows per lane and step, coalesced
global memory:    (H, deletion) of a tile's last row, if references have more than P K bases
second stage:     one warp per pair, 32 cells at a time""",
    ),
}
