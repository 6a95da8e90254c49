"""The pair-HMM forward algorithm: the probability of a read given a haplotype, summed over all alignments.

Rows i = 1..m are the read, columns j = 1..n the haplotype; Q are Phred scores, C a scale against underflow.

    e = 10^(-Q_base/10)   delta = 10^(-Q_ins/10)   zeta = 10^(-Q_del/10)   epsilon = 10^(-Q_gcp/10)
    alpha = max(0, 1 - (delta + zeta))   beta = 1 - epsilon
    lambda = 1 - e  where the bases are equal or one is N,  e / 3  elsewhere

    M(i,j) = lambda (alpha M(i-1,j-1) + beta (I(i-1,j-1) + D(i-1,j-1)))
    I(i,j) = delta M(i-1,j) + epsilon I(i-1,j)
    D(i,j) = zeta M(i,j-1) + epsilon D(i,j-1)

    row 0: M = I = 0, D(0,j) = C / n for j = 0..n; column 0 of the other rows: 0
    result: log10(sum over j = 1..n of M(m,j) + I(m,j)) - log10 C

Reference: GATK's LoglessPairHMM and Intel's GKL. C is 2^120 in float; where the sum is below 1e-28 the pair is
computed again in double, with C = 2^1020.
"""

from __future__ import annotations

from pathlib import Path

from ..family import Agreement, Answer, Family, Variant, agreement
from . import intertask_naive, intertask_tiled, intratask_block, intratask_warp, wavefront, wavefront_rescaled
from .host import files, pipeline
from .host.problem import Problem

TOLERANCE = 1e-5
"""Of a log10 likelihood; what GATK asks of its own implementations."""

REN = "Ren, Bertels, Al-Ars 2018, Evolutionary Bioinformatics 14, doi:10.1177/1176934318760543"
SCHMIDT = "Schmidt, Kallenborn, Wichmann, Chacon, Hundt 2024, gpuPairHMM, github.com/asbschmidt/gpuPairHMM"


def _compare(answer: Answer, expected: Answer) -> Agreement:
    return agreement(answer, expected, TOLERANCE, "log10")


def _example() -> Problem:
    return files.read(Path(__file__).with_name("example.in"))


def _oracle(problem: Problem) -> Answer:
    from simtbed.oracles import pairhmm as oracle  # late: most commands do without it, and it brings Numba

    return oracle.log10_likelihoods(problem.records())


FAMILY = Family(
    name="pairhmm",
    title="Pair-HMM forward algorithm",
    papers=(REN, SCHMIDT),
    variants={
        variant.name: variant
        for variant in (
            Variant(
                "intertask-naive",
                intertask_naive.intertask_naive,
                "one thread a pair, rows interleaved in global memory",
                REN,
            ),
            *(
                Variant(
                    f"intertask-tile{k}", intertask_tiled.intertask_tiled, f"one thread a pair, {k} rows a turn", REN
                )
                for k in pipeline.TILES
            ),
            Variant(
                "intratask-naive",
                intratask_block.intratask_block,
                "one block a pair, anti-diagonals, rows in shared memory",
                REN,
            ),
            Variant("intratask-tile2", intratask_block.intratask_block, "the same, two columns a barrier", REN),
            Variant("intratask-warp", intratask_warp.intratask_warp, "one warp a pair and block, shuffles", REN),
            Variant(
                "intratask-warps", intratask_warp.intratask_warp, "eight warps a block, each with its own pair", REN
            ),
            Variant("wavefront", wavefront.wavefront, "P lanes a pair, K rows a lane in registers, shuffles", SCHMIDT),
            Variant(
                "wavefront-rescaled",
                wavefront_rescaled.wavefront_rescaled,
                "the same with five instructions a cell, haplotypes streamed past a read",
                "ours",
            ),
        )
    },
    example=_example,
    read=files.read,
    solve=pipeline.solve,
    oracle=_oracle,
    compare=_compare,
)

__all__ = ["FAMILY", "Problem"]
