"""The pair-HMM forward algorithm: the probability of a read given a haplotype, summed over all alignments.

Rows i = 1..m are the read, columns j = 1..n the haplotype; Q are Phred scores, C is a scale against underflow.

    e = 10^(-Q_base/10)   delta = 10^(-Q_ins/10)   zeta = 10^(-Q_del/10)   epsilon = 10^(-Q_gcp/10)
    alpha = max(0, 1 - (delta + zeta))   beta = 1 - epsilon
    lambda = 1 - e  for equal bases or an N,  e / 3  otherwise

    M(i,j) = lambda (alpha M(i-1,j-1) + beta (I(i-1,j-1) + D(i-1,j-1)))
    I(i,j) = delta M(i-1,j) + epsilon I(i-1,j)
    D(i,j) = zeta M(i,j-1) + epsilon D(i,j-1)

    row 0: M = I = 0, D(0,j) = C / n for j = 0..n; column 0 of the other rows: 0
    result: log10(sum over j = 1..n of M(m,j) + I(m,j)) - log10 C

Reference: GATK's LoglessPairHMM and Intel's GKL. C is 2^120 in float; a pair with a sum below 1e-28 is computed again in double,
with C = 2^1020, and a likelihood below 10^-612 in logarithms.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..family import Answer, Family, Variant, by_name, deferred, load

if TYPE_CHECKING:
    from .host.problem import Problem

REN = "Ren, Bertels, Al-Ars 2018, Evolutionary Bioinformatics 14, doi:10.1177/1176934318760543"
SCHMIDT = "Schmidt, Kallenborn, Wichmann, Chacon, Hundt 2024, gpuPairHMM, github.com/asbschmidt/gpuPairHMM"


def _oracle(problem: Problem) -> Answer:
    from simtbed.oracles.pairhmm import log10_likelihoods

    return log10_likelihoods(problem.records())


def _variant(name: str, kernel: str, description: str, paper: str) -> Variant:
    return Variant(name, f"{__name__}.{kernel}:{kernel}", description, paper)


FAMILY: Family[Problem] = Family(
    name="pairhmm",
    title="Pair-HMM forward algorithm",
    papers=(REN, SCHMIDT),
    variants=by_name(
        (
            _variant("intertask-naive", "intertask_naive", "one thread a pair, rows interleaved in global memory", REN),
            _variant(
                "intertask-naive-unsorted", "intertask_naive", "the same, pairs in the order of the input", "ours"
            ),
            *(
                _variant(f"intertask-tile{k}", "intertask_tiles", f"one thread a pair, {k} rows an iteration", REN)
                for k in (2, 4, 6, 8)
            ),
            *(
                _variant(
                    f"intertask-tile{k}-registers",
                    "intertask_tiled",
                    f"{k} rows an iteration, left neighbours in registers, read parameters in shared memory",
                    "ours",
                )
                for k in (2, 4, 6, 8)
            ),
            _variant(
                "intratask-naive", "intratask_block", "one block a pair, anti-diagonals, rows in shared memory", REN
            ),
            _variant("intratask-tile2", "intratask_block", "the same, two columns a barrier", REN),
            _variant("intratask-warp", "intratask_warp", "one warp a pair and block, shuffles", REN),
            _variant(
                "intratask-warp-two-copies", "intratask_warp", "the same, two copies of a pass's last row", "ours"
            ),
            _variant("intratask-warps", "intratask_warp", "eight warps a block, each with its own pair", REN),
            _variant(
                "intratask-warps-two-copies", "intratask_warp", "the same, two copies of a pass's last row", "ours"
            ),
            _variant(
                "wavefront",
                "wavefront_columns",
                "P lanes a pair, K columns a lane in registers, each with its sum; lists of reads by length, made on the GPU",
                SCHMIDT,
            ),
            _variant(
                "wavefront-row-end",
                "wavefront_shuffled",
                "the same, reads at the end of the rows: one sum a lane; pairs sorted and packed by the host",
                "ours",
            ),
            _variant(
                "wavefront-loaded", "wavefront", "as wavefront-row-end, each lane loads its letters; no lists", "ours"
            ),
            _variant(
                "wavefront-rescaled",
                "wavefront_rescaled",
                "the same with five instructions a cell, haplotypes streamed past a read",
                "ours",
            ),
        )
    ),
    example=deferred(f"{__name__}.host.files:example"),
    read=deferred(f"{__name__}.host.files:read"),
    solve=deferred(f"{__name__}.host.pipeline:solve"),
    oracle=_oracle,
    compare=deferred(f"{__name__}.host.compare:compare"),
    explained=partial(load, f"{__name__}.explained:EXPLAINED"),
)
