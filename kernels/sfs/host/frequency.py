"""The frequency of an allele at a site, from genotype likelihoods or from counted reads."""

from __future__ import annotations

import numpy as np
from numba import njit

from .problem import EPSILON, Counts, Floats

CLOSE = 1e-10
TURNS = 1000


@njit(cache=True)
def _by_em(likelihoods: Floats) -> float:
    f = 0.5
    for _ in range(TURNS):
        alleles, individuals = 0.0, 0
        for i in range(len(likelihoods)):
            g0, g1, g2 = likelihoods[i, 0], likelihoods[i, 1], likelihoods[i, 2]
            if g0 == g1 and g1 == g2:
                continue
            one, two = g1 * 2 * f * (1 - f), g2 * f * f
            whole = g0 * (1 - f) * (1 - f) + one + two
            if whole > 0:
                alleles += (one + 2 * two) / whole
                individuals += 1
        if individuals == 0:
            return f
        before, f = f, alleles / (2 * individuals)
        if abs(f - before) < CLOSE:
            break
    return f


def by_em(likelihoods: Floats) -> Floats:
    """The most likely frequency of the second allele under Hardy-Weinberg; (sites, N, 3) to (sites,).

    Individuals without information are left out; 0.5 where nobody has any.
    """
    return np.array([_by_em(site) for site in likelihoods], np.float64)


def by_reads(minor: Counts, reads: Counts, epsilon: float = EPSILON) -> Floats:
    """realSFS 2010: individuals' shares of minor reads, less the error rate, averaged with weights 2n / (n + 1).

    minor, reads: (sites, N). Between 0 and 1; NaN where a site has no reads.
    """
    n = np.maximum(reads, 1)
    share = (minor - epsilon * n) / (n * (1 - 2 * epsilon))
    weight = np.where(reads > 0, 2 * n / (n + 1), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.clip((weight * share).sum(axis=1) / weight.sum(axis=1), 0.0, 1.0))
