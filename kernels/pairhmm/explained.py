"""Descriptions of the pair-HMM variants: section of the paper, work of a thread, layout in memory."""

from __future__ import annotations

from ..family import Explained

_INTERTASK = """\
global memory, one row of M, I and D for each pair, 32 pairs interleaved:

             lane 0  lane 1  ...  lane 31        one coalesced request
    row j    M(j)    M(j)    ...  M(j)           = one line of 128 bytes
    row j+1  M(j+1)  M(j+1)  ...  M(j+1)

letters (Fig. 5), four to a word:
    bytes   0 -  127: letters 0-3 of pair 0 | of pair 1 | ... | of pair 31
    bytes 128 -  255: letters 4-7 of pair 0 | of pair 1 | ... | of pair 31"""

_NAIVE = Explained(
    section="Intertask implementations; Algorithm 2, Figures 3 and 5",
    mapping="One thread computes one pair, row after row; a warp has 32 pairs, sorted by the lengths of read and haplotype.",
    layout=_INTERTASK
    + """

cell:    loads  M, I, D of (i-1, j)  from the row      registers: MN, DN (left), MID (all inputs of M
         stores M, I, D of (i, j)    to the row        from the top-left)""",
)
_TILES = Explained(
    section="Intertask implementations; Figure 4, Table 2",
    mapping="One thread computes one pair, K rows at once: one pass along the haplotype for every K rows of the read.",
    layout=_INTERTASK
    + """

shared memory, K rows for each thread t of 128:        registers: constants of the K rows of the read
    M[k][t]  I[k][t]  D[k][t]  MID[k][t]               (base, q, alpha, delta, zeta, epsilon)
    = the left neighbours of the tile, 16 K bytes per thread

column of the tile:     row above (global)  ->  k = 0
                                                k = 1
                                                ...
                                                k = K-1  ->  row below (global)""",
)
_TILES_EXCHANGED = Explained(
    section="none: addition to Figure 4",
    mapping=_TILES.mapping,
    layout="""\
as intertask-tile, but
shared memory, for each thread: q[k]  alpha[k]  delta[k]  zeta[k] of the K rows
registers: MN[k], DN[k], MID[k], the left neighbours, and the K bases""",
)
_DIAGONALS = """\
        H1  H2  H3  H4  ...            step s: thread t is at column s - t
    R1  t0: s0  s1  s2  s3
    R2  t1:     s1  s2  s3  s4         thread t-1 has a cell's upper and upper-left neighbours,
    R3  t2:         s2  s3  s4         the thread itself has the left neighbour"""
_BLOCK = Explained(
    section="Intratask implementations; Figures 6 and 7",
    mapping="One block of 128 threads computes one pair along its anti-diagonals, one thread per base of the read; "
    "longer reads take several passes.",
    layout=_DIAGONALS
    + """

shared memory:  M_row[c][t]  I_row[c][t]  D_row[c][t]   last cells of each thread, TILE columns; letters of the haplotype
barriers:       step: read the cells of thread t-1 | barrier | write the own cells | barrier
global memory:  the last row of a pass, for the first row of the next""",
)


_ONE_COPY = "lane 0 reads column j, and lane 31 writes it 31 steps later"
_ONE_COPY_CHOICES = (
    "The warp synchronises once a step, between the read and the write of a column: the warps of later GPUs are not in step.",
    "Arrays of a block have the length of the launch's longest haplotype, rounded up to 256.",
)
_IN_GLOBAL = "Vectors of more than 40 KiB are in global memory."


def _warp(edges: str, section: str, choices: tuple[str, ...] = ()) -> Explained:
    return Explained(
        choices=choices,
        section=section,
        mapping="One warp computes one pair along its anti-diagonals, one lane per base of the read; reads take passes of 32 rows.",
        layout=f"""\
{_DIAGONALS}

shuffles:       M, I, D of lane t-1 in the previous step
shared memory:  letters of the haplotype
{edges}""",
    )


_COLUMNS = """\
                lane 0            lane 1            ...  lane P-1
    columns     0 .. K-1          K .. 2K-1              (P-1)K .. PK-1      M, D, sum of M + I, alpha, beta, delta,
    row         j                 j-1                    j-P+1               zeta, epsilon: registers, K of each
                     last column --shuffle-->  first column

a column is a base of the read, a row a letter of the haplotype; a cell adds M + I to the sum of its column
shared memory: emissions[letter A C G T N BLANK][column][lane], four columns per load
a read shorter than P K is filled up with N; the sum of its last base is the result

partition: block l writes list l, in input order: the reads with kernel l as the smallest kernel of P K >= length,
           and the number of alignments of the reads before each; the lists remain on the GPU
kernel:    one launch per non-empty list; a sub-warp finds its read by a binary search of the list
letters:   lane 0 loads a word of four, every fourth iteration; each iteration passes one letter --shuffle-->"""
_COLUMNS_CHOICES = (
    "Letters before and after a haplotype have emission 0: they add nothing to the sums, and the sweep does not test for its ends.",
    "I of a row is computed in the next iteration, from M of that row: one register instead of K.",
    "Reads with one gap continuation have one register of beta and one of epsilon; others have K of each.",
    "The K emissions of a lane are in groups of four, next to the groups of the other lanes: no bank conflicts.",
    "A warp iterates to the end of the longest haplotype of its sub-warps. Haplotypes are not sorted.",
    "Of two kernels with equal P K, the one with K nearest to 16 is used.",
    "The host encodes letters as numbers and pads haplotypes to words of four letters, in the order of the input.",
    "Reads of more than 1,024 bases are computed in tiles, as by wavefront-loaded.",
    "A pair with a sum below 1e-28 is computed again in double precision, as by wavefront-loaded.",
)
_ROWS = """\
                lane 0            lane 1            ...  lane P-1
    rows        0 .. K-1          K .. 2K-1              (P-1)K .. PK-1      M, D, alpha, beta, delta, zeta,
    column      j                 j-1                    j-P+1               epsilon: registers of the lane
                     last row --shuffle-->  first row

shared memory: emissions[letter A C G T N BLANK][row][lane], four rows per load
a read occupies the end of the P K rows; rows before it repeat row 0 (D = C / n)"""
_PARAGRAPH = "III.B, Figure 2"

EXPLAINED: dict[str, Explained] = {
    "intertask-naive": _NAIVE,
    "intertask-naive-unsorted": Explained(
        "none: unsorted input, against the advice of Data set preparation",
        "As intertask-naive, with pairs in the order of the input: a warp works until its longest pair is done.",
        _INTERTASK,
    ),
    **{f"intertask-tile{k}": _TILES for k in (2, 4, 6, 8)},
    **{f"intertask-tile{k}-registers": _TILES_EXCHANGED for k in (2, 4, 6, 8)},
    "intratask-naive": _BLOCK,
    "intratask-tile2": _BLOCK,
    "intratask-warp": _warp(
        f"                last row of a pass, three vectors: {_ONE_COPY}",
        "Intratask implementations (warp-based), Table 4",
        (*_ONE_COPY_CHOICES, _IN_GLOBAL),
    ),
    "intratask-warp-two-copies": _warp(
        "                last row of a pass, twice: read [pass - 1], write [pass]; the warp synchronises once a pass",
        "none: addition to the warp-based implementation",
    ),
    "intratask-warps": _warp(
        f"global memory:  last row of a pass, three vectors for each pair: {_ONE_COPY}",
        "Intratask implementations (improved warp-based), Table 4",
        _ONE_COPY_CHOICES,
    ),
    "intratask-warps-two-copies": _warp(
        "global memory:  last row of a pass, twice for each of the block's eight pairs; the warp synchronises once a pass",
        "none: addition to the improved warp-based implementation",
    ),
    "wavefront": Explained(
        f"{_PARAGRAPH}; III.C, Figure 3",
        "P lanes compute one pair, one row per iteration; lane t is t rows behind lane 0, and a warp has 32 / P pairs.",
        _COLUMNS,
        _COLUMNS_CHOICES,
    ),
    "wavefront-row-end": Explained(
        f"none: addition to {_PARAGRAPH}",
        "P lanes compute one pair, one column per step; lane t is t columns behind lane 0, and a warp has 32 / P pairs.",
        _ROWS
        + """

a lane has one sum, of its last row, instead of K; the last lane's is the result
letters:  lane 0 loads a word of four, every fourth step; each step passes one letter --shuffle-->
partition: block l writes list l, in input order: the reads with kernel l as the smallest kernel of P K >= length;
           the host reads the lists, sorts the pairs of each by the length of the haplotype and packs their input""",
    ),
    "wavefront-loaded": Explained(
        f"none: addition to {_PARAGRAPH}",
        "As wavefront-row-end; every lane loads its own words of letters, one word per four steps.",
        _ROWS
        + """

letters:  lane t joins two words, so that its four letters are t columns behind
reads of more than 1,024 bases: tiles of 512 rows; the last row of a tile is in global memory""",
    ),
    "wavefront-rescaled": Explained(
        "none: simtbed's own",
        "P lanes hold one read; the letters of all its haplotypes pass through them in sequence, one column per step.",
        _ROWS
        + """

letters:  ... haplotype 1 | BLANK | haplotype 2 | BLANK | ...   at a BLANK a lane starts the next haplotype
I and D are stored divided by the delta and zeta of their row: five instructions per cell""",
    ),
}
"""Descriptions by variant."""
