"""Site frequency spectra: how likely a site has 0, 1, ... 2N minor alleles, from the genotype likelihoods of N individuals.

    h = v_1 (x) v_2 (x) ... (x) v_N     the product of polynomials, 2N + 1 coefficients, j the number of minor alleles
    product   v = g = (major/major, het, minor/minor) as given         log h
    saf       v = (g0, 2 g1, g2)                                       log h - log C(2N, j), less its maximum
    gama      v = g normalised to sum 1, times Hardy-Weinberg          p h / b, with (1 - p) g / b more at j = 0

gama: p is the prior that a site varies, g the likelihood that it does not, b = p sum(h) + (1 - p) g.

References: ANGSD's -doSaf for saf, realSFS 2010 and GAMA for gama. Coefficients are kept as `wide` says, so that no
number of individuals leaves the range of doubles: those above e^-80 of a site's largest are right to 1e-5.
"""

from __future__ import annotations

from ..family import Answer, Family, Variant
from . import iterative, reduction, reduction_shared, tiled
from .host import files, pipeline
from .host.agree import agree
from .host.generate import generate
from .host.problem import Problem

LU = "Lu, Zhao, Luo, Wang 2012, Accelerating Minor Allele Frequency Computation with Graphics Processors, BigMine"
OWN = "ours"


def _example() -> Problem:
    """A hundred sites, neither a multiple of a block nor a power of two individuals."""
    return generate(20, sites=100, individuals=45)


def _oracle(problem: Problem) -> Answer:
    from simtbed.oracles import sfs as oracle  # late: most commands do without it, and it brings Numba

    if problem.mode == "saf":
        return oracle.saf(problem.likelihoods)
    if problem.mode == "gama":
        return oracle.gama(problem.likelihoods, problem.frequency, problem.variable)
    scale = problem.scale[:, None] if len(problem.scale) else 0.0
    return oracle.product(problem.likelihoods) + scale


_SHARED, _SKIP = "b and c block by block in shared memory", "as reduction-shared; zeros of the sparser vector skipped"

FAMILY = Family(
    name="sfs",
    title="Site frequency spectra",
    papers=(LU,),
    variants={
        variant.name: variant
        for variant in (
            Variant("iterative", iterative.iterative, "one thread a site, individual after individual", LU),
            Variant("reduction", reduction.reduction, "pairwise merges in global memory, a warp each", LU),
            Variant("reduction-block", reduction.reduction, "the same, a block and its barrier each", LU),
            Variant("reduction-shared", reduction_shared.reduction_shared, f"{_SHARED}, a warp a merge", LU),
            Variant("reduction-shared-block", reduction_shared.reduction_shared, f"{_SHARED}, a block a merge", LU),
            Variant("reduction-shared-skip", reduction_shared.reduction_shared, f"{_SKIP}, a warp a merge", LU),
            Variant("reduction-shared-skip-block", reduction_shared.reduction_shared, f"{_SKIP}, a block a merge", LU),
            Variant("tiled", tiled.tiled, "tiles of 17 x 17 in registers, whole sites in a block", OWN),
        )
    },
    example=_example,
    read=files.read,
    solve=pipeline.solve,
    oracle=_oracle,
    compare=agree,
)

__all__ = ["FAMILY", "Problem"]
