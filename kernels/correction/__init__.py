"""Spectrum-based error correction of short reads: rare k-mers are errors, and one change often makes them frequent.

A k-mer is solid if the reads and their reverse complements hold it min_multiplicity times or more. For a read with
k-mers (windows) that are not solid, from `start` = 0:

    for each weak window p >= start, each place v of it and each other base b: votes[p + v][b] += 1 if that change
        makes the window solid
    the change with the most votes is made if it has more than min_votes, and if no other base of the first such
        position has as many; `start` becomes its position, and as long as that is above 0 and a window weak, again

A read whose windows are all solid then is kept (F). Of another one the first stretch of solid windows is kept if at
most max_trim bases are lost at either end; else it is discarded (D), and so is a read with any letter but A, C, G, T.
A read shorter than k is kept as it is (S).

Reference: CUDA-EC 1.0.2, kernel fix_errors1 (Shi, Schmidt, Liu, Mueller-Wittig 2010).
"""

from __future__ import annotations

import numpy as np

from ..family import Agreement, Answer, Family, Variant
from . import packed, spectrum, thread_per_read, warp_per_read
from .host import files, pipeline
from .host.generate import genome, simulate
from .host.problem import Parameters, Problem, strings

MANGAL = "Mangal, Jain 2014, Error correction in high-throughput short-read data on GPU"
SHI = "Shi, Schmidt, Liu, Mueller-Wittig 2010, Journal of Computational Biology 17(4), CUDA-EC"
OURS = "ours"


def _example() -> Problem:
    """700 bases, 15 times over, one base in a hundred wrong."""
    return Problem(simulate(1, genome(1, 700), 250, (30, 50), 0.01, unknown=0.001).reads)


def _oracle(problem: Problem) -> Answer:
    from simtbed.oracles import correction as oracle  # late: most commands do without it, and it brings Numba

    p = problem.parameters
    layout = {"exact": None, "bloom": "standard", "split-first": "split-first"}[p.filter]
    found = oracle.corrected(problem.reads.strings(), p.k, p.min_multiplicity, p.min_votes, p.max_trim, p.trim, layout)
    return strings(f"{read.flag} {read.sequence}" for read in found)


def _compare(answer: Answer, expected: Answer) -> Agreement:
    """Read by read; two reads are as far apart as the letters in which they differ, missing ones included."""
    if answer.shape != expected.shape:
        raise ValueError(f"{len(answer)} reads cannot be compared with {len(expected)}")
    different = np.flatnonzero(answer != expected)
    worst = max((_letters(answer[r], expected[r]) for r in different), default=0)
    return Agreement(len(answer), len(different), float(worst), 0.0, "letters")


def _letters(a: str, b: str) -> int:
    return sum(x != y for x, y in zip(a, b, strict=False)) + abs(len(a) - len(b))


FAMILY = Family(
    name="correction",
    title="Spectrum-based error correction of reads",
    papers=(MANGAL, SHI),
    variants={
        variant.name: variant
        for variant in (
            Variant(
                "thread-per-read",
                thread_per_read.thread_per_read,
                "one thread a read, votes in local memory",
                SHI,
            ),
            Variant(
                "one-lane-per-warp",
                thread_per_read.thread_per_read,
                "the same, by the first lane of each warp alone",
                MANGAL,
            ),
            Variant(
                "warp-per-read",
                warp_per_read.warp_per_read,
                "one warp a read, a lane a place of the k-mer, read and votes in shared memory",
                MANGAL,
            ),
            Variant(
                "warp-per-read-shuffle",
                warp_per_read.warp_per_read,
                "the same, the largest vote by shuffles",
                MANGAL,
            ),
            Variant(
                "packed",
                packed.mend,
                "threads mend single errors, full warps the rest; packed k-mers, a blocked filter",
                OURS,
            ),
        )
    },
    example=_example,
    read=files.read,
    solve=pipeline.solve,
    oracle=_oracle,
    compare=_compare,
    preparing=spectrum.KERNELS,
)

__all__ = ["FAMILY", "Parameters", "Problem"]
