"""Semi-global alignment with traceback, as in GATK's HaplotypeCaller: the best alignment of an alternate to a reference.

Rows i = 1..n are the reference, columns j = 1..m the alternate; a gap of length L costs opening + (L - 1) extending.

    deletion(i,j)  = max(deletion(i-1,j) + extending, H(i-1,j) + opening)
    insertion(i,j) = max(insertion(i,j-1) + extending, H(i,j-1) + opening)
    H(i,j)         = max(H(i-1,j-1) + match or mismatch, insertion(i,j), deletion(i,j), -10^8)

    row 0 and column 0: 0, or with INDEL and LEADING_INDEL the cost of a gap of that length

On a tie, extension precedes opening, the diagonal precedes the insertion, and the insertion precedes the deletion. End cell:
(n, m) for INDEL; the maximum of the last column for LEADING_INDEL, the lowest one of equals; for SOFTCLIP and IGNORE also the
maximum of the last row, if it is larger, or equal and nearer to the diagonal. The traceback ends at a border. The remainder of
the alternate is clipped (SOFTCLIP), an insertion, or added to the last operation (IGNORE).

Reference: GATK's SmithWatermanJavaAligner.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..family import Answer, Family, Variant, by_name, deferred, load

if TYPE_CHECKING:
    from .host.problem import Problem

REN = "Ren, Ahmed, Bertels, Al-Ars 2019, BMC Genomics 20:184, doi:10.1186/s12864-019-5468-9"
BLAZEWICZ = "Blazewicz, Frohmberg, Kierzynska, Pesch, Wojciechowski 2011, BMC Bioinformatics 12:181"
OURS = "ours"


def _oracle(problem: Problem) -> Answer:
    import numpy as np
    from simtbed.oracles.alignment import align

    from .host.problem import ANSWER

    return np.array(align(problem.pairs(), problem.parameters, problem.strategy.name), ANSWER)


def _variant(name: str, kernel: str, description: str, paper: str) -> Variant:
    return Variant(name, f"{__name__}.{kernel}:{kernel}", description, paper)


_BLOCKS = {"wide": "a block a pair, a thread a column", "passes": "a block a pair, in passes of 128 columns"}
_LAYOUTS = {"diagonal-major": "anti-diagonals", "row-major": "rows"}
_MOVES = {"runs": "runs of matches", "steps": "single matches"}

FAMILY: Family[Problem] = Family(
    name="alignment",
    title="Semi-global alignment with traceback",
    papers=(REN, BLAZEWICZ),
    variants=by_name(
        (
            *(
                _variant(f"{blocks}-{layout}-{moves}", "intratask_vectors", f"{a}; moves stored by {b}, with {c}", REN)
                for blocks, a in _BLOCKS.items()
                for layout, b in _LAYOUTS.items()
                for moves, c in _MOVES.items()
            ),
            *(
                _variant(
                    f"{blocks}-{layout}-{moves}-double-buffered",
                    "intratask",
                    f"as {blocks}-{layout}-{moves}, double buffers and one barrier a step",
                    OURS,
                )
                for blocks in _BLOCKS
                for layout in _LAYOUTS
                for moves in _MOVES
            ),
            Variant(
                "pairalign",
                f"{__name__}.pairalign:pairalign_strips",
                "a thread a pair, strips of 8 rows in shared memory",
                BLAZEWICZ,
            ),
            Variant(
                "pairalign-global",
                f"{__name__}.pairalign_global:pairalign",
                "a thread a pair, row by row, no shared memory",
                OURS,
            ),
            _variant("packed", "packed", "P lanes a pair, K rows a lane in registers, four bits a move", OURS),
        )
    ),
    example=deferred(f"{__name__}.host.files:example"),
    read=deferred(f"{__name__}.host.files:read"),
    solve=deferred(f"{__name__}.host.pipeline:solve"),
    oracle=_oracle,
    compare=deferred(f"{__name__}.host.compare:compare"),
    explained=partial(load, f"{__name__}.explained:EXPLAINED"),
)
