"""Semi-global alignment with traceback, as GATK's HaplotypeCaller does it: the best way to lay an alternate on a reference.

Rows i = 1..n are the reference, columns j = 1..m the alternate; a gap of length L costs opening + (L - 1) extending.

    deletion(i,j)  = max(deletion(i-1,j) + extending, H(i-1,j) + opening)
    insertion(i,j) = max(insertion(i,j-1) + extending, H(i,j-1) + opening)
    H(i,j)         = max(H(i-1,j-1) + match or mismatch, insertion(i,j), deletion(i,j), -10^8)

    row 0 and column 0: 0, or with INDEL and LEADING_INDEL the cost of a gap of that length

On a tie a gap is extended rather than opened, and the diagonal comes before the insertion, the insertion before the
deletion. The alignment ends with INDEL in (n, m); with LEADING_INDEL in the largest H of the last column, the lowest
of equals; with SOFTCLIP and IGNORE also in the last row, if H is larger there, or equal and nearer to the diagonal.
From there the moves are followed to a border. What remains of the alternate is clipped (SOFTCLIP), an insertion, or
part of the last operation (IGNORE).

Reference: GATK's SmithWatermanJavaAligner.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..family import Agreement, Answer, Family, Variant
from . import intratask, packed, pairalign
from .host import files, pipeline
from .host.problem import ANSWER, NEW, Parameters, Problem, Strategy

REN = "Ren, Ahmed, Bertels, Al-Ars 2019, BMC Genomics 20:184, doi:10.1186/s12864-019-5468-9"
BLAZEWICZ = "Blazewicz, Frohmberg, Kierzynska, Pesch, Wojciechowski 2011, BMC Bioinformatics 12:181"
OURS = "of this project"


def _compare(answer: Answer, expected: Answer) -> Agreement:
    """Pairs that differ in anything; the largest difference of scores."""
    if answer.shape != expected.shape:
        raise ValueError(f"an answer of {len(answer)} pairs cannot be compared with one of {len(expected)}")
    apart = np.abs(answer["score"].astype(np.int64) - expected["score"])
    return Agreement(len(answer), int((answer != expected).sum()), float(apart.max(initial=0)), 0.0, "of score")


def _example() -> Problem:
    return files.read(Path(__file__).with_name("example.tsv"))


def _oracle(problem: Problem) -> Answer:
    from simtbed.oracles import alignment as oracle  # late: most commands do without it, and it brings Numba

    return np.array(oracle.align(problem.pairs(), problem.parameters, problem.strategy.name), ANSWER)


def _intratask(name: str) -> Variant:
    blocks = (
        "a block a pair, a thread a column" if name.startswith("wide") else "a block a pair, in passes of 128 columns"
    )
    layout = "anti-diagonals" if "diagonal-major" in name else "rows"
    moves = "runs of matches" if name.endswith("runs") else "single matches"
    return Variant(name, intratask.intratask, f"{blocks}; moves stored by {layout}, with {moves}", REN)


FAMILY = Family(
    name="alignment",
    title="Semi-global alignment with traceback",
    papers=(REN, BLAZEWICZ),
    variants={
        variant.name: variant
        for variant in (
            *(_intratask(name) for name in pipeline.STAGES if name.startswith(("wide", "passes"))),
            Variant("pairalign", pairalign.pairalign, "one thread a pair, four Boolean matrices of moves", BLAZEWICZ),
            Variant("packed", packed.packed, "P lanes a pair, K rows a lane in registers, four bits a move", OURS),
        )
    },
    example=_example,
    read=files.read,
    solve=pipeline.solve,
    oracle=_oracle,
    compare=_compare,
)

__all__ = ["FAMILY", "NEW", "Parameters", "Problem", "Strategy"]
