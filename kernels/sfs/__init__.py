"""Site frequency spectra: the probability that a site has 0, 1, ... 2N minor alleles, from the genotype likelihoods of N individuals.

    h = v_1 (x) v_2 (x) ... (x) v_N     product of polynomials, 2N + 1 coefficients, j the number of minor alleles
    product   v = g = (major/major, het, minor/minor), unchanged       log h
    saf       v = (g0, 2 g1, g2)                                       log h - log C(2N, j), minus its maximum
    gama      v = g normalised to sum 1, times Hardy-Weinberg          p h / b, plus (1 - p) g / b at j = 0

gama: p is the prior probability that a site varies, g the likelihood that it does not, b = p sum(h) + (1 - p) g.

References: ANGSD's -doSaf for saf, realSFS 2010 and GAMA for gama. The representation of `wide` keeps the coefficients of any
number of individuals in the range of doubles: those above e^-80 of a site's maximum have a relative error below 1e-5.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..family import Answer, Family, Variant, by_name, deferred, load

if TYPE_CHECKING:
    from .host.problem import Problem

LU = "Lu, Zhao, Luo, Wang 2012, Accelerating Minor Allele Frequency Computation with Graphics Processors, BigMine"
OWN = "ours"


def _oracle(problem: Problem) -> Answer:
    from simtbed.oracles import sfs as oracle

    if problem.mode == "saf":
        return oracle.saf(problem.likelihoods)
    if problem.mode == "gama":
        return oracle.gama(problem.likelihoods, problem.frequency, problem.variable)
    scale = problem.scale[:, None] if len(problem.scale) else 0.0
    return oracle.product(problem.likelihoods) + scale


def _variant(name: str, kernel: str, description: str, paper: str = LU) -> Variant:
    return Variant(name, f"{__name__}.{kernel}:{kernel}", description, paper)


def _scaled(name: str, kernel: str, unscaled: str) -> Variant:
    return _variant(name, kernel, f"as {unscaled}, with an exponent per 32 coefficients: no limit on individuals", OWN)


_PLAIN = f"{__name__}.plain:merge_shared"

FAMILY: Family[Problem] = Family(
    name="sfs",
    title="Site frequency spectra",
    papers=(LU,),
    variants=by_name(
        (
            _variant(
                "iterative", "algorithm1", "Algorithm 1: one thread per site, three loads per step, plain doubles"
            ),
            Variant(
                "reduction",
                f"{__name__}.plain:merge",
                "Algorithm 2 and Fig. 4: pairwise merges in global memory, one warp each, plain doubles",
                LU,
            ),
            Variant("reduction-shared", _PLAIN, "Fig. 5: b and c block by block in shared memory, plain doubles", LU),
            Variant("reduction-shared-skip", _PLAIN, "the same; zeros of the sparser vector skipped", LU),
            Variant(
                "reduction-shared-block",
                f"{__name__}.plain_block:merge_shared_block",
                "Fig. 11: reduction-shared with one block per merge and its barrier in the inner loop",
                LU,
            ),
            _variant(
                "iterative-carried",
                "iterative",
                "one thread per site, one load per step, exponents (formerly iterative)",
                OWN,
            ),
            _scaled("reduction-scaled", "reduction", "reduction"),
            _scaled("reduction-block-scaled", "reduction", "reduction, one block and its barrier per merge"),
            _scaled("reduction-shared-scaled", "reduction_shared", "reduction-shared"),
            _scaled("reduction-shared-block-scaled", "reduction_shared", "reduction-shared-block"),
            _scaled("reduction-shared-skip-scaled", "reduction_shared", "reduction-shared-skip"),
            _scaled(
                "reduction-shared-skip-block-scaled", "reduction_shared", "reduction-shared-skip, one block per merge"
            ),
            _variant("tiled", "tiled", "tiles of 17 x 17 in registers, whole sites in a block", OWN),
        )
    ),
    example=deferred(f"{__name__}.host.generate:example"),
    read=deferred(f"{__name__}.host.files:read"),
    solve=deferred(f"{__name__}.host.pipeline:solve"),
    oracle=_oracle,
    compare=deferred(f"{__name__}.host.compare:compare"),
    explained=partial(load, f"{__name__}.explained:EXPLAINED"),
)
